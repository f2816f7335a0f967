"""Eq. 1 and its log-odds from neighbours: the weights around each query, summed by class, without underflow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from vicinal.checks import Floats
from vicinal.compiled import compiled
from vicinal.search.protocol import Codes, Masses
from vicinal.search.weighing import LEAST

__all__ = ["KERNELS", "Kernel", "Sums", "log_weights", "sum_neighbors"]

Kernel: TypeAlias = Literal["exp", "count", "inverse"]
KERNELS: tuple[Kernel, ...] = ("exp", "count", "inverse")


@dataclass(frozen=True, eq=False)
class Sums:
    """Eq. 1 for each of m queries, and the masses that its log-odds need.

    Attributes:
        share: (m,), D: the predicted class's share of the weight of the k neighbours.
        masses: the summed weights, as logarithms.
    """

    share: Floats
    masses: Masses


def log_weights(distances: Floats, kernel: Kernel, counts: Floats | None = None) -> Floats:
    """The logarithm of a neighbour's weight: -d (``exp``), 0 (``count``) or -log d (``inverse``).

    ``counts`` says how many points each neighbour stands for; None, that each stands for itself.
    """
    if kernel == "exp":
        weights = -distances
    elif kernel == "count":
        weights = np.zeros_like(distances)
    else:
        weights = -np.log(np.maximum(distances, LEAST))
    return weights if counts is None else weights + np.log(counts)


def sum_neighbors(log_weight: Floats, codes: Codes, predicted: Codes, classes: int) -> Sums:
    """Sum the weights of k neighbours by class.

    Args:
        log_weight: (m, k), in any order along a row.
        codes: (m, k), the class of each neighbour, from 0 to ``classes`` - 1.
        predicted: (m,), the class predicted; -1 for one that the bank does not have.
        classes: how many there are.
    """
    m = len(log_weight)
    share, logs, rivals = np.empty(m), np.empty((m, 3)), np.empty(m, np.int32)
    _sum(log_weight, codes, predicted, np.zeros(classes), share, logs, rivals)
    return Sums(share, Masses(logs[:, 0], logs[:, 1], logs[:, 2], rivals))


@compiled()
def _sum(  # type: ignore[no-untyped-def]
    log_weight, codes, predicted, totals, share, logs, rivals
):
    m, k = log_weight.shape
    for i in range(m):
        wanted = predicted[i]
        # each side is summed against its own largest weight, so that neither can underflow
        top_same = top_other = -np.inf
        for j in range(k):
            if codes[i, j] == wanted:
                top_same = max(top_same, log_weight[i, j])
            else:
                top_other = max(top_other, log_weight[i, j])
        same = other = 0.0
        for j in range(k):
            if codes[i, j] == wanted:
                same += np.exp(log_weight[i, j] - top_same)
            else:
                weight = np.exp(log_weight[i, j] - top_other)
                other += weight
                totals[codes[i, j]] += weight
        rival, largest = -1, 0.0
        for j in range(k):
            code = codes[i, j]
            if code != wanted and totals[code] > largest:
                rival, largest = code, totals[code]
        rest = 0.0
        for j in range(k):
            code = codes[i, j]
            if code != wanted:
                if code != rival:
                    rest += totals[code]
                totals[code] = 0.0
        rivals[i] = rival
        logs[i, 0] = top_same + np.log(same) if same > 0 else -np.inf
        logs[i, 1] = top_other + np.log(largest) if largest > 0 else -np.inf
        logs[i, 2] = top_other + np.log(rest) if rest > 0 else -np.inf
        top = max(top_same, top_other)
        same, other = same * np.exp(top_same - top), other * np.exp(top_other - top)
        share[i] = same / (same + other)
