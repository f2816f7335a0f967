"""What the paper printed: Mandelbaum and Weinshall, Distance-based Confidence Score for Neural Network Classifiers.

Areas under the ROC curve, one row for each score, one column for each way of training, and the accuracy beside them.
Nothing here is ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

__all__ = ["ACCURACIES", "METHODS", "TABLES", "published"]

_Rows: TypeAlias = Mapping[str, tuple[float | None, ...]]

METHODS: Mapping[str, str] = MappingProxyType({"reg": "Reg", "distance": "Dist", "adversarial": "AT", "mcd": "MCD"})
ACCURACIES: Mapping[str, float] = MappingProxyType({"cifar100": 0.600, "stl10": 0.705, "svhn": 0.935})

_ERRORS: Mapping[str, _Rows] = {
    "cifar100": {
        "margin": (0.828, 0.834, 0.844, 0.836),
        "entropy": (0.833, 0.837, 0.851, 0.833),
        "distance": (0.789, 0.853, 0.843, 0.726),
    },
    "stl10": {
        "margin": (0.804, 0.775, 0.812, 0.804),
        "entropy": (0.806, 0.786, 0.816, 0.810),
        "distance": (0.798, 0.824, 0.863, 0.671),
    },
    "svhn": {
        "margin": (0.904, 0.896, 0.909, None),
        "entropy": (0.916, 0.907, 0.918, None),
        "distance": (0.916, 0.925, 0.925, None),
    },
}
_PAIRS: Mapping[str, _Rows] = {
    "cifar100": {
        "margin": (0.840, 0.846, 0.856),
        "entropy": (0.844, 0.839, 0.857),
        "own": (0.775, 0.863, 0.862),
        "hybrid": (0.876, 0.872, 0.879),
    },
    "stl10": {
        "margin": (0.802, 0.792, 0.814),
        "entropy": (0.807, 0.798, 0.816),
        "own": (0.815, 0.834, 0.866),
        "hybrid": (0.833, 0.832, 0.859),
    },
    "svhn": {
        "margin": (0.909, 0.901, 0.911),
        "entropy": (0.918, 0.912, 0.920),
        "own": (0.916, 0.924, 0.926),
        "hybrid": (0.918, 0.929, 0.927),
    },
}
_NOVELTIES: Mapping[str, _Rows] = {
    "stl10, novel svhn": {
        "margin": (0.808, 0.849, 0.860),
        "entropy": (0.810, 0.857, 0.870),
        "distance": (0.798, 0.870, 0.901),
    },
    "svhn, novel stl10": {
        "margin": (0.912, 0.922, 0.985),
        "entropy": (0.917, 0.933, 0.992),
        "distance": (0.904, 0.934, 0.996),
    },
}
TABLES: Mapping[str, Mapping[str, _Rows]] = MappingProxyType(
    {"table1": _ERRORS, "table2": _PAIRS, "table3": _NOVELTIES}
)


def published(table: str, data: str | None, score: str, method: str) -> float | None:
    """The paper's number, or None where it has none.

    Args:
        table: ``table1``, ``table2`` or ``table3``.
        data: the paper's data set; for ``table3`` what is known and what is novel; None for one that it does not have.
        score: ``margin``, ``entropy``, ``distance``; of two networks ``own`` (Distance 1) and ``hybrid`` (Distance 2).
        method: a key of ``METHODS``.

    Example:
        >>> published("table1", "cifar100", "distance", "distance")
        0.853
        >>> published("table1", "svhn", "margin", "mcd") is None
        True
    """
    row = TABLES[table].get(data or "", {}).get(score, ())
    place = list(METHODS).index(method)
    return row[place] if place < len(row) else None
