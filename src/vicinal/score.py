"""Scores: how far each prediction can be trusted. Every one returns a ``Trust``; larger is more trustworthy.

The paper's score, and rivals that look at neighbours, take a bank, queries and predictions:

    distance        the predicted class's share of the weight around the query (Eq. 1)
    kth_distance    how near the k-th neighbour lies, whatever its class
    trust_ratio     how much farther the nearest other class is than the nearest of the same
    mahalanobis     how near the query lies to the centre of a class, in units of the spread within classes

Rivals that look at the network's outputs take logits, or probabilities where they are said to be such:

    margin          the largest softmax output
    entropy         the negative entropy of the softmax outputs
    top_two_gap     the gap between the two largest softmax outputs
    max_logit       the largest logit
    energy          the log-sum of the exponentials of the logits
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Literal

import numpy as np

from vicinal import checks, mass
from vicinal.bank import Bank
from vicinal.checks import Floats, Integers, Vectors
from vicinal.errors import InputError
from vicinal.search import Masses
from vicinal.search.protocol import Codes
from vicinal.values import Neighbors, Rival, Trust

__all__ = [
    "distance",
    "energy",
    "entropy",
    "kth_distance",
    "mahalanobis",
    "margin",
    "max_logit",
    "top_two_gap",
    "trust_ratio",
]

_SHOWN = 10  # neighbours kept as the reason, where every point of the bank is weighed, or too many to keep all
_KEPT = 2**25  # neighbours of all queries together that are kept, at 24 bytes each
_ROWS = 2**14  # rows of the bank that are looked at in float64 together
_ROUNDING = float(np.finfo(np.float32).eps)
_BATCH = 2**22  # neighbours that are looked at together, where there are more
_LARGEST = 1e300  # logits beyond it are taken as it, so that their differences stay finite
_COLDEST = 1e-100  # temperatures beyond it, or beyond its inverse, leave nothing to rank
_LEAST = 1e-300  # stands for 0 where a logarithm or a quotient would be infinite


def distance(
    bank: Bank,
    queries: Any,
    predicted: Any,
    *,
    k: int | Literal["all"] = 50,
    kernel: mass.Kernel = "exp",
    exclude_self: bool | Any = False,
) -> Trust:
    """The paper's distance score: do the training points around a prediction agree with it?

    With f(x) the query, A(x) its k nearest points of the bank and ŷ the predicted class, the confidence is Eq. 1:

        D(x) = Σ_{j in A, y_j = ŷ} exp(-|f(x) - f(x_j)|) / Σ_{j in A} exp(-|f(x) - f(x_j)|)

    The log-odds are L = log Σ exp(-d | same class) - log Σ exp(-d | other classes), so that D = 1 / (1 + exp(-L)).
    Where all k neighbours agree, D is 1 and says no more; L then takes the single nearest point of any other class, and
    where none agrees the nearest of the predicted class, wherever it lies. So L ranks where D is tied: rank by L.

    A point that stands for w points (see :class:`Bank`) counts w times in both, though it is one of the k neighbours.

    A predicted class that the bank does not have gets confidence 0, log-odds as if its nearest point lay farther away
    than any point of the bank, and a note.

    Args:
        bank: the training points.
        queries: (m, d), embeddings from the same layer of the same network.
        predicted: (m,), the classes predicted.
        k: how many neighbours, or ``"all"``: every point of the bank (to 1e-4 in the log-odds, as the products are
            float32 there; for a number of neighbours all is float64).
        kernel: the weight of a neighbour at distance d: ``"exp"`` exp(-d); ``"count"`` 1; ``"inverse"`` 1 / d.
        exclude_self: as in :meth:`Bank.nearest`, to score the bank's own points.

    Returns:
        Trust: confidence D in [0, 1], log-odds L, the neighbours, and the rival class. The neighbours are all k, save
        with ``"all"`` or where k times the queries passes 33 million: then the nearest 10 of each.

    Example:
        >>> bank = Bank([[0.0], [1.0], [4.0]], labels=[0, 0, 1])
        >>> trust = distance(bank, [[0.5], [3.0]], predicted=[0, 0], k=3)
        >>> trust.confidence.round(3)
        array([0.976, 0.335])
        >>> trust.rival.labels
        array([1, 1])
    """
    kernel = checks.one_of(kernel, "kernel", mass.KERNELS)
    queries = _asked(bank, queries)
    labels = checks.labels(predicted, "predicted", rows=len(queries), of="query")
    skip = bank.left_out(exclude_self, len(queries))
    if isinstance(k, str) and k == "all":
        shown = min(_SHOWN, len(bank) - (skip is not None))
        if kernel == "count":
            raise InputError(
                "kernel: expected 'exp' or 'inverse' with k='all', got 'count', which would not look at all"
            )
        near, masses = bank.masses(queries, labels, k=shown, inverse=kernel == "inverse", exclude_self=exclude_self)
        share = _sigmoid(masses.same - np.logaddexp(masses.rival, masses.rest))
    else:
        near, share, masses = _summed(bank, queries, labels, bank.checked_k(k, skip), kernel, skip)
    return _judged(bank, queries, labels, near, share, masses, kernel)


def kth_distance(
    bank: Bank, queries: Any, *, k: int = 50, unit: bool = False, exclude_self: bool | Any = False
) -> Trust:
    """How near the k-th neighbour lies, whatever its class: the confidence is minus its distance, in (-inf, 0].

    A rival for novelty (Sun et al., 2022, with ``unit=True``); it does not look at the prediction. Log-odds:
    -log(distance), which ranks alike.

    Args:
        bank: the training points.
        queries: (m, d).
        k: which neighbour.
        unit: put all vectors on the unit sphere first; a zero vector is refused.
        exclude_self: as in :meth:`Bank.nearest`.
    """
    queries = _asked(bank, queries)
    if unit:
        bank, queries = bank.unit(), checks.unit_vectors(queries, "queries")
    near = bank.nearest(queries, k, exclude_self=exclude_self)
    farthest = near.distances[:, -1]
    return Trust("kth_distance", -farthest, -np.log(np.maximum(farthest, _LEAST)), neighbors=near)


def trust_ratio(bank: Bank, queries: Any, predicted: Any, *, exclude_self: bool | Any = False) -> Trust:
    """How many times farther the nearest point of another class lies than the nearest of the predicted one.

    The trust score of Jiang et al. (2018) without its filter; in [0, inf). Log-odds: its logarithm. A class that the
    bank does not have is taken to lie farther away than any point of the bank.
    """
    queries = _asked(bank, queries)
    labels = checks.labels(predicted, "predicted", rows=len(queries), of="query")
    near = bank.nearest(queries, 1, predicted=labels, exclude_self=exclude_self)
    assert near.same is not None
    assert near.other is not None
    far = bank.farthest(queries)
    same = np.maximum(np.where(np.isfinite(near.same.distances), near.same.distances, far), _LEAST)
    other = np.maximum(np.where(np.isfinite(near.other.distances), near.other.distances, far), _LEAST)
    log_ratio = np.log(other) - np.log(same)
    ratio = np.exp(np.minimum(log_ratio, 700.0))
    return Trust("trust_ratio", ratio, log_ratio, labels, near, notes=_unseen(bank, labels))


def mahalanobis(bank: Bank, queries: Any, predicted: Any = None, *, relative: bool = False) -> Trust:
    """How near the query lies to a class's centre, in units of the spread within classes (Lee et al., 2018).

    With class means μ_c and the covariance Σ that all classes share, the confidence is

        -(x - μ_c)ᵀ Σ⁻¹ (x - μ_c)    in (-inf, 0],

    for the predicted class c, or for the nearest class where no prediction is given. ``relative`` adds the same form
    with the mean and covariance of all points together (Ren et al., 2021). Log-odds: the confidence itself.
    Directions in which the bank does not spread at all are left out (a pseudo-inverse).
    """
    asked = _asked(bank, queries).astype(np.float64)
    vectors, codes = bank.vectors, bank.codes(bank.labels)
    means = np.stack([vectors[codes == c].mean(axis=0, dtype=np.float64) for c in range(len(bank.classes))])
    whiten = _whitening(vectors, means, codes)
    points, centres = asked @ whiten, means @ whiten
    squares = (points**2).sum(axis=1)[:, None] - 2 * points @ centres.T + (centres**2).sum(axis=1)
    squares = np.maximum(squares, 0)
    labels = None if predicted is None else checks.labels(predicted, "predicted", rows=len(asked), of="query")
    if labels is None:
        nearest = squares.min(axis=1)
    else:
        chosen = bank.codes(labels)
        # a class without points is farther than every class, and farther than any of them can be
        nearest = np.where(chosen >= 0, squares[np.arange(len(asked)), chosen], 2 * squares.max(axis=1) + 1)
    confidence = -nearest
    if relative:
        whole = vectors.mean(axis=0, dtype=np.float64)
        gaps = (asked - whole) @ _whitening(vectors, whole[None], np.zeros_like(codes))
        confidence = confidence + (gaps**2).sum(axis=1)
    notes = () if labels is None else _unseen(bank, labels)
    return Trust("mahalanobis", confidence, confidence, labels, notes=notes)


def margin(logits: Any = None, *, probabilities: Any = None, temperature: float = 1.0) -> Trust:
    """The largest softmax output, in [1 / c, 1]: the paper's *max margin*. Log-odds: log(p / (1 - p)), from the logits.

    Args:
        logits: (n, c); or
        probabilities: (n, c), rows that sum to 1, said to be such.
        temperature: what the logits are divided by.

    Example:
        >>> trust = margin([[40.0, 0.0], [50.0, 0.0]])
        >>> trust.confidence, trust.log_odds
        (array([1., 1.]), array([40., 50.]))
    """
    logs = _log_softmax(logits, probabilities, temperature)
    top, rest = _split_top(logs)
    return Trust("margin", np.exp(top), top - rest, probability=True)


def entropy(logits: Any = None, *, probabilities: Any = None, temperature: float = 1.0) -> Trust:
    """The negative entropy of the softmax outputs, in [-log c, 0]. Log-odds: -log of the entropy, which ranks alike.

    The entropy's logarithm is summed from logarithms, so that it does not saturate where one output is all but 1.
    """
    logs = _log_softmax(logits, probabilities, temperature)
    top, rest = _split_top(logs)
    # -log p of the largest output, without cancellation: log(1 + exp(rest - top))
    surprise = -logs
    surprise[np.arange(len(logs)), logs.argmax(axis=1)] = np.log1p(np.exp(rest - top))
    with np.errstate(divide="ignore"):
        parts = logs + np.log(surprise)
    log_entropy = _log_sum(parts)
    return Trust("entropy", -np.exp(log_entropy), -log_entropy)


def top_two_gap(logits: Any = None, *, probabilities: Any = None, temperature: float = 1.0) -> Trust:
    """The gap between the two largest softmax outputs, in [0, 1]. Log-odds: those of the gap, as if a probability."""
    logs = _log_softmax(logits, probabilities, temperature)
    ordered = np.partition(logs, -2, axis=1)
    first, second = ordered[:, -1], ordered[:, -2]
    _, rest = _split_top(logs)
    with np.errstate(divide="ignore"):
        log_gap = first + np.log(-np.expm1(second - first))
    log_gap = np.maximum(log_gap, np.log(_LEAST))
    log_remainder = np.logaddexp(rest, second)  # 1 - (p1 - p2) is all that is not first, and the second once more
    return Trust("top_two_gap", np.exp(log_gap), log_gap - log_remainder)


def max_logit(logits: Any, *, temperature: float = 1.0) -> Trust:
    """The largest logit, divided by the temperature, in (-inf, inf) (Hendrycks et al., 2022). Log-odds: the same."""
    scaled = _scaled(logits, temperature)
    top = scaled.max(axis=1)
    return Trust("max_logit", top, top)


def energy(logits: Any, *, temperature: float = 1.0) -> Trust:
    """The negative free energy T log Σ exp(logit / T), in (-inf, inf) (Liu et al., 2020). Log-odds: the same."""
    found = temperature * _log_sum(_scaled(logits, temperature))
    return Trust("energy", found, found)


def _asked(bank: Bank, queries: Any) -> Vectors:
    if not isinstance(bank, Bank):
        raise InputError(
            f"bank: expected a Bank, got {type(bank).__name__}; make one with vicinal.Bank(vectors, labels)"
        )
    return checks.vectors(queries, "queries", columns=bank.dimension)


def _judged(
    bank: Bank, queries: Any, labels: Integers, near: Neighbors, share: Floats, masses: Masses, kernel: mass.Kernel
) -> Trust:
    """Log-odds and rival from the masses, an empty side filled with the nearest point of its kind."""
    assert near.same is not None
    assert near.other is not None
    far = bank.farthest(checks.vectors(queries, "queries"))
    sides = []
    for summed, nearest in ((masses.same, near.same), (masses.rival, near.other)):
        alone = np.where(np.isfinite(nearest.distances), nearest.distances, far)
        sides.append(np.where(np.isneginf(summed), mass.log_weights(alone, kernel, nearest.weights), summed))
    same, rival = sides
    log_odds = same - np.logaddexp(rival, masses.rest)
    rival_labels = np.where(masses.rival_codes >= 0, bank.classes[masses.rival_codes], near.other.labels)
    rival_labels = np.where(near.other.indices >= 0, rival_labels, labels)
    against = Rival(rival_labels, rival - np.logaddexp(same, masses.rest))
    notes = _unseen(bank, labels)
    return Trust("distance", share, log_odds, labels, near, against, notes, probability=True)


def _summed(
    bank: Bank, queries: Vectors, labels: Integers, k: int, kernel: mass.Kernel, skip: Integers | None
) -> tuple[Neighbors, Floats, Masses]:
    """The k nearest and their weights summed by class, a batch of queries at a time where k is large."""
    whole = k * len(queries) <= _KEPT
    size = len(queries) if whole else max(1, _BATCH // k)
    parts = []
    for start in range(0, len(queries), size):
        rows = slice(start, start + size)
        left_out = False if skip is None else skip[rows]
        near = bank.nearest(queries[rows], k, predicted=labels[rows], exclude_self=left_out)
        sums = mass.sum_neighbors(
            mass.log_weights(near.distances, kernel, near.weights),
            bank.codes(near.labels),
            bank.codes(labels[rows]),
            len(bank.classes),
        )
        parts.append((near if whole else near.first(_SHOWN), sums))
    masses = [sums.masses for _, sums in parts]
    joined = Masses(*(np.concatenate([getattr(one, f.name) for one in masses]) for f in fields(Masses)))
    return Neighbors.join([near for near, _ in parts]), np.concatenate([sums.share for _, sums in parts]), joined


def _unseen(bank: Bank, labels: Integers) -> tuple[str, ...]:
    missing = bank.codes(labels) < 0
    if not missing.any():
        return ()
    names = ", ".join(str(label) for label in np.unique(labels[missing])[:5])
    return (f"{int(missing.sum())} predictions name a class that the bank does not have ({names})",)


def _scaled(logits: Any, temperature: float) -> Floats:
    temperature = checks.fraction(temperature, "temperature", low=_COLDEST, high=1 / _COLDEST)
    with np.errstate(over="ignore"):
        scaled: Floats = checks.logits(logits, "logits") / temperature
    return np.clip(scaled, -_LARGEST, _LARGEST)


def _log_softmax(logits: Any, probabilities: Any, temperature: float) -> Floats:
    if (logits is None) == (probabilities is None):
        got = "neither" if logits is None else "both"
        raise InputError(f"logits, probabilities: expected one of the two, got {got}")
    if logits is None:
        with np.errstate(divide="ignore"):
            logits = np.maximum(np.log(checks.probabilities(probabilities, "probabilities")), np.log(_LEAST))
    scaled = _scaled(logits, temperature)
    logs: Floats = scaled - _log_sum(scaled)[:, None]
    return logs


def _split_top(logs: Floats) -> tuple[Floats, Floats]:
    """The largest log-probability of each row, and the log-sum of all others."""
    top = logs.argmax(axis=1)
    others = logs.copy()
    others[np.arange(len(logs)), top] = -np.inf
    return logs[np.arange(len(logs)), top], _log_sum(others)


def _log_sum(logs: Floats) -> Floats:
    """The logarithm of Σ exp of each row."""
    top = logs.max(axis=1, keepdims=True)
    with np.errstate(over="ignore"):
        found: Floats = top[:, 0] + np.log(np.exp(logs - top).sum(axis=1))
    return found


def _sigmoid(values: Floats) -> Floats:
    from scipy.special import expit

    found: Floats = expit(values)
    return found


def _whitening(vectors: Vectors, means: Floats, codes: Codes) -> Floats:
    """(d, r): maps to coordinates in which the gaps between vectors and their means have unit covariance.

    Directions without spread are left out: columns that vary by no more than float32 rounds them, and combinations of
    columns, each brought to unit spread, that vary by no more than the rounding of all of them.
    """
    d = vectors.shape[1]
    covariance, largest = np.zeros((d, d)), np.zeros(d)
    for start in range(0, len(vectors), _ROWS):
        block = vectors[start : start + _ROWS].astype(np.float64)
        largest = np.maximum(largest, np.abs(block).max(axis=0))
        block -= means[codes[start : start + _ROWS]]
        covariance += block.T @ block
    spread = np.sqrt(np.diag(covariance) / len(vectors))
    varies = spread > 2 * _ROUNDING * largest
    scale = np.where(varies, 1 / np.where(varies, spread, 1), 0)
    variances, axes = np.linalg.eigh(covariance / len(vectors) * scale * scale[:, None])
    keep = variances > variances.max() * 4 * d * _ROUNDING**2
    found: Floats = scale[:, None] * axes[:, keep] / np.sqrt(variances[keep])
    return found
