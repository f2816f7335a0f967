"""Metrics of a confidence as a probability: whether as many predictions are right as their confidences promise.

Every function takes ``confidence`` (n,), numbers in [0, 1] that claim to be the probability that the prediction is
right, and ``correct`` (n,), whether it is. For a score on any other scale these metrics mean nothing.
"""

from __future__ import annotations

from typing import Any

from vicinal import checks
from vicinal.metrics.catalogue import Points
from vicinal.metrics.gaps import Bins, Gaps

__all__ = ["brier", "ece"]


def ece(confidence: Any, correct: Any, bins: int = 15) -> float:
    """Expected calibration error: the gap between accuracy and mean confidence, averaged over bins of equal width.

    Σ_b (n_b / n) · |accuracy_b - confidence_b| (Naeini, Cooper and Hauskrecht 2015; 15 bins as in Guo et al. 2017).
    Bin b of B is [(b-1)/B, b/B), the last one [(B-1)/B, 1], as in FD-Shifts: all sure and all wrong gives 1.
    torchmetrics bins alike, except that it gives confidences of exactly 1 a bin of their own. In [0, 1]; smaller is
    better. Of n perfectly calibrated predictions it is not 0 but of the order of √(bins / n).

    Args:
        confidence: (n,), in [0, 1].
        correct: (n,), whether each prediction is right.
        bins: how many.

    Example:
        >>> ece([1.0, 1.0, 1.0], [False, False, False])
        1.0
        >>> ece([0.75, 0.75, 0.75, 0.75], [True, True, True, False])
        0.0
    """
    return float(_gaps(confidence, correct, Points(bins=bins)).ece()[0])


def brier(confidence: Any, correct: Any) -> float:
    """Brier score of the confidence: mean of (confidence - 1)² over right and confidence² over wrong predictions.

    Brier (1950), of the two outcomes right and wrong, not of all classes. In [0, 1]; smaller is better; 0.25 for a
    confidence of 0.5 throughout.

    Example:
        >>> brier([1.0, 0.5], [True, False])
        0.125
    """
    return float(_gaps(confidence, correct, Points()).brier()[0])


def _gaps(confidence: Any, correct: Any, points: Points) -> Gaps:
    found = checks.numbers(confidence, "confidence", low=0.0, high=1.0)
    return Bins.of(found, checks.flags(correct, "correct", rows=len(found)), points.bins).weighted()
