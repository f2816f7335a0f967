"""What every ranking metric is made of: how many right and wrong predictions are accepted as the threshold falls.

A threshold accepts every prediction whose score reaches it, so predictions with equal scores are accepted together and
no metric depends on the order of the rows. Each formula stands here once, for many weightings of the predictions at a
time: one of all ones is the measurement, the others are bootstrap samples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from vicinal.checks import Flags, Floats, Integers

__all__ = ["Curve", "Ranking"]


@dataclass(frozen=True, eq=False)
class Ranking:
    """One score's order of n predictions, the most trusted first.

    Attributes:
        scores: (n,), in this order.
        order: (n,), the rows of the predictions in this order.
        starts: (g,), where in the order each of the g distinct scores begins.
        correct: (n,), 1 for right and 0 for wrong, in this order.
    """

    scores: Floats
    order: Integers
    starts: Integers
    correct: Integers

    @classmethod
    def of(cls, scores: Floats, correct: Flags) -> Ranking:
        """Sort once; every curve of these scores uses it."""
        order = np.argsort(-scores, kind="stable")
        ranked = scores[order]
        starts = np.flatnonzero(np.diff(ranked, prepend=math.inf))
        return cls(ranked, order, starts, correct[order].astype(np.int64))

    def curve(self, weights: Integers | None = None) -> Curve:
        """The curve of each weighting (b, n) of the predictions, in the user's rows; without any, that of all ones."""
        taken = np.ones((1, len(self.order)), np.int64) if weights is None else np.take(weights, self.order, axis=1)
        right = taken * self.correct
        wrong = taken - right
        if len(self.starts) < len(self.order):
            right = np.add.reduceat(right, self.starts, axis=1)
            wrong = np.add.reduceat(wrong, self.starts, axis=1)
        return Curve.of(right, wrong)


@dataclass(frozen=True, eq=False)
class Curve:
    """Predictions accepted at each of g distinct scores, highest first, for b weightings with the same totals.

    The methods give one number for each weighting, (b,); ``vicinal.metrics`` explains them. Those that divide by the
    number of right or wrong predictions need at least one.

    Attributes:
        new_right: (b, g), right predictions with exactly this score; whole numbers, as the next three.
        new_wrong: (b, g), wrong ones.
        right: (b, g), right predictions accepted so far.
        wrong: (b, g), wrong ones.
    """

    new_right: Floats
    new_wrong: Floats
    right: Floats
    wrong: Floats

    @classmethod
    def of(cls, new_right: Integers, new_wrong: Integers) -> Curve:
        """Add up as integers, which is ten times faster, and go on as floating point numbers, for the same reason."""
        parts = (new_right, new_wrong, np.cumsum(new_right, axis=1), np.cumsum(new_wrong, axis=1))
        return cls(*(part.astype(np.float64) for part in parts))

    @cached_property
    def covered(self) -> Floats:
        """(b, g), predictions accepted so far."""
        return self.right + self.wrong

    @cached_property
    def risk(self) -> Floats:
        """(b, g), share of wrong ones among the accepted; 0 where nothing is accepted."""
        return self.wrong / np.maximum(self.covered, 1.0)

    @property
    def rights(self) -> float:
        """All right predictions."""
        return float(self.right[0, -1])

    @property
    def wrongs(self) -> float:
        """All wrong predictions."""
        return float(self.wrong[0, -1])

    @property
    def n(self) -> float:
        """All predictions."""
        return float(self.covered[0, -1])

    def auroc(self) -> Floats:
        """Pairs of a right and a wrong prediction in which the right one has the higher score; ties count half."""
        below = _dot(self.new_wrong, self.right) - _dot(self.new_wrong, self.new_right) / 2
        return below / (self.rights * self.wrongs)

    def aupr_success(self) -> Floats:
        """Precision for right predictions, at the score of each right one, averaged."""
        return 1.0 - _dot(self.new_right, self.risk) / self.rights

    def aupr_error(self) -> Floats:
        """Precision for wrong predictions, at the score of each wrong one, averaged: rejected from the bottom up."""
        wrong = self.wrongs - self.wrong + self.new_wrong
        rejected = self.n - self.covered + self.new_right + self.new_wrong
        wrong /= np.maximum(rejected, 1.0)
        return _dot(self.new_wrong, wrong) / self.wrongs

    def fpr(self, tpr: float) -> Floats:
        """Share of the wrong predictions accepted by the highest threshold that accepts this share of the right."""
        first = np.argmax(self.right >= _least(tpr, self.rights), axis=1)
        return _at(self.wrong, first) / self.wrongs

    @cached_property
    def aurc(self) -> Floats:
        """Trapezoids under the risk over the coverage; up to the first accepted prediction the risk stays level."""
        covered, risk = self.covered, self.risk
        first = _at(self.wrong, np.argmax(covered > 0, axis=1)) / 2
        new = self.new_right + self.new_wrong
        return (_dot(new, risk) / 2 + _dot(new[:, 1:], risk[:, :-1]) / 2 + first) / self.n

    def e_aurc(self) -> Floats:
        """AURC less that of a perfect order of infinitely many predictions with as many errors."""
        error = self.wrongs / self.n
        best = error + (1.0 - error) * math.log1p(-error) if error < 1 else 1.0
        return self.aurc - best

    def augrc(self) -> Floats:
        """Trapezoids under the share of all predictions that are both accepted and wrong, over the coverage."""
        middle = self.wrong - self.new_wrong / 2
        return (_dot(self.new_right, middle) + _dot(self.new_wrong, middle)) / self.n**2

    def risk_at(self, coverage: float) -> Floats:
        """Risk of the highest threshold that accepts at least this share of all predictions."""
        first = np.argmax(self.covered >= _least(coverage, self.n), axis=1)
        return _at(self.risk, first)

    def coverage_at(self, risk: float) -> Floats:
        """Largest coverage of a threshold whose risk is at most this; 0 where there is none."""
        found: Floats = (self.covered * (self.risk <= risk)).max(axis=1) / self.n
        return found


def _dot(first: Floats, second: Floats) -> Floats:
    """Row by row; einsum and not matmul, so that no BLAS threads compete with ours."""
    found: Floats = np.einsum("bg,bg->b", first, second)
    return found


def _at(values: Floats, column: npt.NDArray[Any]) -> Floats:
    found: Floats = np.take_along_axis(values, column[:, None], axis=1)[:, 0]
    return found


def _least(share: float, total: float) -> float:
    """The smallest whole number of at least 1 that is this share of all: 7 % of 100 is 7 although 0.07 * 100 > 7."""
    number = max(1, math.ceil(share * total) - 1)
    while number / total < share:
        number += 1
    return float(number)
