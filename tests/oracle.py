"""The same answers, slowly and plainly: float64 loops that share no code with vicinal."""

from __future__ import annotations

import math

import numpy as np


def distances(points, query) -> list[float]:
    """Euclidean, from the differences of the float32 entries, in float64."""
    out = []
    for x in np.asarray(points, np.float32).astype(float):
        total = 0.0
        for a, b in zip(x, np.asarray(query, np.float32).astype(float), strict=True):
            total += (a - b) ** 2
        out.append(math.sqrt(total))
    return out


def nearest(points, query, k, skip=None) -> list[tuple[float, int]]:
    """The k nearest as (distance, row), ties by the lowest row."""
    found = [(d, j) for j, d in enumerate(distances(points, query)) if j != skip]
    return sorted(found)[:k]


def log_sum(terms: list[float]) -> float:
    """log of the sum of exponentials."""
    if not terms:
        return -math.inf
    top = max(terms)
    return top + math.log(math.fsum(math.exp(t - top) for t in terms))


def log_weight(d: float, kernel: str) -> float:
    return {"exp": -d, "count": 0.0, "inverse": -math.log(max(d, 1e-280))}[kernel]


def share_and_log_odds(
    points, labels, query, predicted, k, kernel="exp", skip=None, weights=None
) -> tuple[float, float]:
    """Eq. 1 and its log-odds, the empty side filled by the nearest point of its kind; both kinds must exist."""

    def weigh(d: float, j: int) -> float:
        return log_weight(d, kernel) + (0.0 if weights is None else math.log(weights[j]))

    everyone = nearest(points, query, len(points), skip)
    chosen = everyone[:k]
    same = [weigh(d, j) for d, j in chosen if labels[j] == predicted]
    other = [weigh(d, j) for d, j in chosen if labels[j] != predicted]
    top = max(same + other)
    share = math.fsum(math.exp(w - top) for w in same) / math.fsum(math.exp(w - top) for w in same + other)
    if not same:
        same = [next(weigh(d, j) for d, j in everyone if labels[j] == predicted)]
    if not other:
        other = [next(weigh(d, j) for d, j in everyone if labels[j] != predicted)]
    return share, log_sum(same) - log_sum(other)
