"""Scores of other packages, each with its own defaults, on the same embeddings.

Their cost grows with the square of the bank, so they see at most 10,000 of its points, drawn at random; the one-class
support vector machine half as many. A package that is not installed leaves its row out.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import numpy as np

from vicinal.bank import Bank
from vicinal.checks import Floats, Vectors
from vicinal.novelty import one_class_svm

__all__ = ["PEERS", "missing_peers", "peer_scores"]

MOST = 10_000


def _cleanlab(known: Vectors, asked: Vectors) -> Floats:
    """Cleanlab's out-of-distribution score: how near the ten nearest neighbours are, whatever their class."""
    from cleanlab.outlier import OutOfDistribution

    model = OutOfDistribution()
    model.fit(features=known, verbose=False)
    return np.asarray(model.score(features=asked), np.float64)


def _local_outlier_factor(known: Vectors, asked: Vectors) -> Floats:
    """Scikit-learn's local outlier factor."""
    from sklearn.neighbors import LocalOutlierFactor

    model = LocalOutlierFactor(novelty=True).fit(known)
    return np.asarray(model.decision_function(asked), np.float64)


def _one_class_svm(known: Vectors, asked: Vectors) -> Floats:
    return one_class_svm(Bank(known, np.zeros(len(known), np.int64)), asked, most=MOST // 2).log_odds


PEERS: dict[str, tuple[str, Callable[[Vectors, Vectors], Floats]]] = {
    "cleanlab": ("cleanlab", _cleanlab),
    "local_outlier_factor": ("sklearn", _local_outlier_factor),
    "one_class_svm": ("sklearn", _one_class_svm),
}


def peer_scores(bank: Bank, asked: Vectors) -> dict[str, Floats]:
    """The score of every peer that is installed, by name; larger is more trustworthy.

    Example:
        >>> random = np.random.default_rng(0)
        >>> bank = Bank(random.normal(size=(200, 3)), np.zeros(200, int))
        >>> near, far = peer_scores(bank, np.array([[0, 0, 0], [9, 9, 9]], np.float32))["local_outlier_factor"]
        >>> bool(near > far)
        True
    """
    rows = np.random.default_rng(0).permutation(len(bank))[:MOST]
    known = bank.vectors[np.sort(rows)]
    return {name: run(known, asked) for name, (package, run) in PEERS.items() if _installed(package)}


def missing_peers() -> tuple[str, ...]:
    """The packages that would bring another row."""
    return tuple(sorted({package for package, _ in PEERS.values() if not _installed(package)}))


def _installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None
