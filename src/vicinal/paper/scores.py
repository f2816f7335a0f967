"""Every score of one network's predictions, from a single search of its bank.

The search looks for as many neighbours as the largest k asks for; each smaller k, each kernel and each rival takes the
first of them. Scores are arrays of log-odds (n,), by name; those of a number of neighbours are called ``distance 50``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vicinal import mass, novelty, score
from vicinal.bank import Bank
from vicinal.checks import Floats, Integers, Vectors
from vicinal.density import density
from vicinal.paper.peers import peer_scores
from vicinal.paper.remembering import Remembering
from vicinal.progress import track
from vicinal.values import LOG_PROBABILITIES, Embeddings, Neighbors

__all__ = ["KERNELS", "K", "as_published", "novelty_scores", "of_neighbors", "of_outputs"]

K = 50  # neighbours where nothing was chosen
KERNELS = ("exp", "count", "inverse", "scaled")  # of the claims, at K or as many neighbours as a class has points
_BATCH = 4096
_ON_OUTPUTS = ("margin", "entropy", "top_two_gap", "max_logit", "energy")
_RAW = ("max_logit", "energy")  # look at the size of logits, which averaged probabilities do not have
_NOVELTY = ("class_density", "class_kth_distance", "mahalanobis", "relative_mahalanobis")


def of_neighbors(bank: Bank, seen: Embeddings, ks: Sequence[int]) -> dict[str, Floats]:
    """The scores that look at neighbours, and those of other packages.

    Args:
        bank: the training points.
        seen: inputs with predictions.
        ks: numbers of neighbours; those larger than the bank are left out.

    Returns:
        For each k ``distance k`` (log-odds), ``share k`` (D), ``density k`` and ``kth_distance k``; the distance score
        by each of ``KERNELS``; ``as_published``, ``trust_ratio``, ``mahalanobis`` and the peers.
    """
    assert seen.predicted is not None
    sizes = usable(ks, bank)
    parts = []
    for start in track(range(0, len(seen), _BATCH), "scoring"):
        rows = slice(start, start + _BATCH)
        parts.append(_of_batch(bank, seen.vectors[rows], seen.predicted[rows], sizes))
    found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    found["mahalanobis"] = score.mahalanobis(bank, seen.vectors, seen.predicted).log_odds
    return {**found, **peer_scores(bank, seen.vectors)}


def of_outputs(seen: Embeddings, temperature: float = 1.0) -> dict[str, Floats]:
    """The scores that look at logits alone, and ``temperature``: the margin of logits divided by one.

    Example:
        >>> sorted(of_outputs(Embeddings([[0.0]], logits=[[2.0, 1.0]])))
        ['energy', 'entropy', 'margin', 'max_logit', 'temperature', 'top_two_gap']
    """
    averaged = LOG_PROBABILITIES in seen.facts.items()
    names = [name for name in _ON_OUTPUTS if not (averaged and name in _RAW)]
    found: dict[str, Floats] = {name: getattr(score, name)(seen.logits).log_odds for name in names}
    found["temperature"] = score.margin(seen.logits, temperature=temperature).log_odds
    return found


def novelty_scores(bank: Bank, seen: Embeddings) -> dict[str, Floats]:
    """The scores that are made for novelty, beyond those of ``of_neighbors``."""
    found = novelty.scores(bank, seen, names=_NOVELTY, k=min(K, len(bank)))
    return {f"{name} (novelty)" if name == "mahalanobis" else name: one.log_odds for name, one in found.items()}


def usable(ks: Sequence[int], bank: Bank) -> list[int]:
    """The numbers of neighbours that a bank has."""
    return [k for k in ks if k <= len(bank)] or [len(bank)]


def as_published(near: Neighbors, predicted: Integers) -> Floats:
    """Eq. 1 as one writes it down: in float32, without care; 0 where every weight underflows.

    Example:
        >>> near = Neighbors(np.array([[1.0, 2.0], [200.0, 300.0]]), np.zeros((2, 2)), np.array([[0, 1], [0, 0]]))
        >>> as_published(near, np.array([0, 0])).round(3)
        array([0.731, 0.   ])
    """
    weights = np.exp(-near.distances.astype(np.float32))
    total = weights.sum(axis=1)
    same = (weights * (near.labels == predicted[:, None])).sum(axis=1)
    share: Floats = np.divide(same, total, out=np.zeros_like(total), where=total > 0).astype(np.float64)
    return share


def _of_batch(bank: Bank, vectors: Vectors, predicted: Integers, ks: Sequence[int]) -> dict[str, Floats]:
    shared = Remembering(bank, max(ks))
    of_a_class = max(1, min(shared.k, len(bank) // len(bank.classes)))
    found: dict[str, Floats] = {}
    for size in ks:
        trust = score.distance(shared, vectors, predicted, k=size)
        found |= {f"distance {size}": trust.log_odds, f"share {size}": trust.confidence}
        found[f"density {size}"] = density(shared, vectors, k=size).log_odds
        found[f"kth_distance {size}"] = score.kth_distance(shared, vectors, k=size).log_odds
    k = min(K, of_a_class)
    for kernel in mass.KERNELS:
        found[kernel] = score.distance(shared, vectors, predicted, k=k, kernel=kernel).log_odds
    near = shared.nearest(vectors, shared.k, predicted=predicted)
    scaled = shared.scaled(1 / max(float(near.distances[:, :k].mean()), 1e-30))
    found["scaled"] = score.distance(scaled, vectors, predicted, k=k).log_odds
    found["trust_ratio"] = score.trust_ratio(shared, vectors, predicted).log_odds
    found["as_published"] = as_published(near.first(of_a_class), predicted)
    return found
