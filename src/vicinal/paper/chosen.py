"""What is chosen for each network, on its validation points alone: k, a temperature, and a fusion of scores."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from vicinal import metrics
from vicinal.checks import Flags, Floats
from vicinal.held_out import Caution
from vicinal.paper.scores import K
from vicinal.selective import Fusion
from vicinal.values import Embeddings, Trust

__all__ = ["Chosen", "best_k", "choose", "fit_temperature"]


@dataclass(frozen=True, eq=False)
class Chosen:
    """The settings of one network.

    Attributes:
        ks: how many neighbours, for each score that looks at some.
        temperature: what logits are divided by.
        fusion: of distance, margin and density.
        notes: what the reader should know.
    """

    ks: Mapping[str, int]
    temperature: float
    fusion: Fusion
    notes: tuple[str, ...] = ()

    def fused(self, scores: Mapping[str, Floats]) -> Floats:
        """The fusion's log-odds, of the scores of other predictions."""
        return self.fusion(_parts(scores, self.ks["distance"])).log_odds


def choose(scores: Mapping[str, Floats], seen: Embeddings) -> Chosen:
    """Choose on validation points: each k by AUROC, the temperature by likelihood, the weights of the fusion.

    Args:
        scores: of ``of_neighbors`` and ``of_outputs``.
        seen: the validation points, with labels.
    """
    ks = {name: best_k(_by_k(name, scores), seen.correct) for name in ("distance", "density", "kth_distance")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Caution)  # so few errors are in the notes
        fusion = Fusion.fit(_parts(scores, ks["distance"]), seen.correct)
    return Chosen(ks, fit_temperature(seen), fusion, fusion.notes)


def best_k(ranks: Mapping[int, Floats], right: Flags) -> int:
    """The number of neighbours by which a score tells right from wrong best; the least of several such.

    Where all are right, or all wrong, K or the largest there is.

    Example:
        >>> rising, falling = np.array([1.0, 2.0]), np.array([2.0, 1.0])
        >>> best_k({20: rising, 10: rising, 5: falling}, np.array([False, True]))
        10
    """
    if not 0 < right.sum() < len(right):
        return min(K, max(ranks))
    return max(sorted(ranks), key=lambda k: metrics.auroc(ranks[k], right))


def _by_k(name: str, scores: Mapping[str, Floats]) -> dict[int, Floats]:
    """A score for each number of neighbours."""
    return {int(one.removeprefix(f"{name} ")): scores[one] for one in scores if one.startswith(f"{name} ")}


def fit_temperature(seen: Embeddings) -> float:
    """The temperature at which the softmax of the logits is likeliest (Guo et al. 2017), from 0.01 to 100.

    Example:
        >>> logits = np.array([[4.0, 0.0], [4.0, 0.0], [4.0, 0.0], [4.0, 0.0]])
        >>> wrong_at_times = Embeddings(np.zeros((4, 1)), logits, labels=[0, 0, 0, 1])
        >>> round(fit_temperature(wrong_at_times), 2)  # where the softmax is 3/4: 4 / log 3
        3.64
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import logsumexp

    assert seen.logits is not None
    assert seen.labels is not None
    assert seen.classes is not None
    logits = seen.logits
    truth = logits[np.arange(len(logits)), np.searchsorted(seen.classes, seen.labels)]

    def surprise(log_temperature: float) -> float:
        scale = np.exp(-log_temperature)
        return float((logsumexp(logits * scale, axis=1) - truth * scale).mean())

    bound = np.log(100)
    return float(np.exp(minimize_scalar(surprise, bounds=(-bound, bound), method="bounded").x))


def _parts(scores: Mapping[str, Floats], k: int) -> dict[str, Trust]:
    names = {"distance": f"distance {k}", "margin": "margin", "density": f"density {k}"}
    return {name: Trust(name, scores[place], scores[place]) for name, place in names.items()}
