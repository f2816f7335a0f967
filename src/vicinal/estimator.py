"""The scikit-learn face: a nearest-neighbour classifier that knows how far to trust itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from vicinal.bank import Bank
from vicinal.checks import Floats, one_of, vectors, whole
from vicinal.mass import KERNELS, Kernel, log_weights, sum_neighbors

__all__ = ["NeighborConfidence"]


class NeighborConfidence(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The classes around a point, weighed as in Eq. 1, as a scikit-learn classifier.

    ``predict_proba`` is D for every class: its share of the weight exp(-distance) of the k nearest training points.
    ``decision_function`` are their log-odds, which do not saturate; ``score_samples`` those of the prediction.
    Put it at the end of a pipeline whose earlier steps embed, or after any transformer.

    Args:
        k: how many neighbours; at most as many as there are training points are used.
        kernel: the weight of a neighbour: ``"exp"``, ``"count"`` or ``"inverse"``.

    Attributes:
        classes_: the labels, sorted.
        bank_: the training points, labelled by their places in ``classes_``.
        n_features_in_: d.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> model = NeighborConfidence(k=10).fit(X, y)
        >>> model.score(X, y) > 0.95
        True
    """

    def __init__(self, *, k: int = 50, kernel: Kernel = "exp") -> None:
        self.k = k
        self.kernel = kernel

    def fit(self, X: Any, y: Any) -> NeighborConfidence:
        """Take the training points.

        Args:
            X: (n, d).
            y: (n,), labels of any kind that scikit-learn takes.
        """
        whole(self.k, "k", low=1)
        one_of(self.kernel, "kernel", KERNELS)
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, places = np.unique(y, return_inverse=True)
        self.bank_ = Bank(X, places)
        return self

    def predict(self, X: Any) -> Any:
        """The class with the largest share at each point; ties go to the first in ``classes_``."""
        sums = self._sums(self._queries(X))
        return self.classes_[sums.argmax(axis=1)]

    def predict_proba(self, X: Any) -> Floats:
        """(m, c): D of every class, its share of the weight of the k neighbours; rows sum to 1."""
        sums = self._sums(self._queries(X))
        weights = np.exp(sums - sums.max(axis=1, keepdims=True))
        shares: Floats = weights / weights.sum(axis=1, keepdims=True)
        return shares

    def decision_function(self, X: Any) -> Floats:
        """The log-odds of every class, (m, c), without saturation; for two classes those of the second, (m,).

        A class with no point among the k neighbours is weighed by its nearest point, wherever it lies.
        """
        odds = self._log_odds(self._queries(X))
        return odds[:, 1] if odds.shape[1] == 2 else odds

    def score_samples(self, X: Any) -> Floats:
        """(m,), the log-odds of the prediction at each point: larger is more trustworthy."""
        best: Floats = self._log_odds(self._queries(X)).max(axis=1)
        return best

    def _queries(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, dtype=np.float64, reset=False)

    def _sums(self, queries: Any) -> Floats:
        """(m, c), the weight of each class among the k neighbours, as a logarithm; minus infinity where it has none."""
        near = self.bank_.nearest(queries, min(self.k, len(self.bank_)))
        logs, codes = log_weights(near.distances, self.kernel), near.labels.astype(np.int32)
        m, c = len(codes), len(self.classes_)
        return np.stack(
            [sum_neighbors(logs, codes, np.full(m, code, np.int32), c).masses.same for code in range(c)], axis=1
        )

    def _alone(self, queries: Any) -> Floats:
        """(m, c), the weight of each class's nearest point, as a logarithm."""
        labels = self.bank_.labels
        banks = [self.bank_.take(np.flatnonzero(labels == code)) for code in range(len(self.classes_))]
        nearest = np.concatenate([bank.nearest(queries, 1).distances for bank in banks], axis=1)
        return log_weights(nearest, self.kernel)

    def _log_odds(self, queries: Any) -> Floats:
        sums = self._sums(queries)
        if sums.shape[1] == 1:
            return sums - log_weights(self.bank_.farthest(vectors(queries, "X")), self.kernel)[:, None]
        alone, top = self._alone(queries), sums.max(axis=1, keepdims=True)
        weights = np.exp(sums - top)
        rest = weights.sum(axis=1, keepdims=True) - weights  # a difference: alike for classes of equal weight
        with np.errstate(divide="ignore"):
            log_rest = np.log(rest) + top
        # the class that has more than half leaves a small difference, summed from its parts instead
        heavy = weights > rest
        rows = heavy.any(axis=1)
        others, nearest = (np.where(heavy, -np.inf, parts)[rows] for parts in (sums, alone))
        summed = np.logaddexp.reduce(others, axis=1)
        log_rest[heavy] = np.where(np.isneginf(summed), nearest.max(axis=1), summed)
        odds: Floats = np.where(np.isneginf(sums), alone, sums) - log_rest
        return odds
