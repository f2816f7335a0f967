"""What every calibration metric is made of: how far each confidence is from what came true, for many weightings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vicinal.checks import Flags, Floats, Integers

__all__ = ["Bins", "Gaps"]


@dataclass(frozen=True, eq=False)
class Bins:
    """The confidences of n predictions, in bins of equal width.

    Attributes:
        order: (n,), the rows of the predictions, bin after bin.
        starts: (g,), where in the order each of the g bins that are not empty begins.
        gaps: (n,), the confidence less 1 for a right prediction and less 0 for a wrong one, in this order.
    """

    order: Integers
    starts: Integers
    gaps: Floats

    @classmethod
    def of(cls, confidence: Floats, correct: Flags, bins: int) -> Bins:
        """A confidence on the edge of two bins belongs to the upper one, and 1 to the last one."""
        edges = np.arange(1, bins) / bins
        found = np.searchsorted(edges, confidence, side="right")
        order = np.argsort(found, kind="stable")
        starts = np.flatnonzero(np.diff(found[order], prepend=-1))
        return cls(order, starts, (confidence - correct)[order])

    def weighted(self, weights: Integers | None = None) -> Gaps:
        """The gaps under each weighting (b, n) of the predictions, in the user's rows; without any, of all ones."""
        taken = np.ones((1, len(self.order)), np.int64) if weights is None else np.take(weights, self.order, axis=1)
        return Gaps(taken, self.gaps, self.starts)


@dataclass(frozen=True, eq=False)
class Gaps:
    """The gaps of n predictions, bin after bin, for b weightings whose total is n; each method gives (b,).

    Args:
        weights: (b, n).
        gaps: (n,), as in ``Bins``.
        starts: (g,), as in ``Bins``.
    """

    weights: Integers
    gaps: Floats
    starts: Integers

    def ece(self) -> Floats:
        """The mean gap of each bin without its sign, averaged with the shares of the predictions in the bins."""
        sums = np.add.reduceat(self.weights * self.gaps, self.starts, axis=1)
        found: Floats = np.abs(sums).sum(axis=1) / len(self.gaps)
        return found

    def brier(self) -> Floats:
        """The mean of the squared gaps."""
        found: Floats = (self.weights * self.gaps**2).sum(axis=1) / len(self.gaps)
        return found
