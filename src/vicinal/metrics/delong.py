"""DeLong's test: the AUROCs of two scores on the same predictions, without resampling."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from vicinal import checks
from vicinal.checks import Flags, Floats
from vicinal.errors import InputError
from vicinal.metrics.bootstrap import Comparison

__all__ = ["delong", "placements"]


def delong(first: Any, second: Any, correct: Any, *, level: float = 0.95) -> Comparison:
    """Compare two AUROCs on the same predictions in closed form (DeLong, DeLong and Clarke-Pearson 1988).

    The difference over its standard error is taken as normal; the error comes from the share of wrong predictions that
    each right one beats and the share of right ones that beat each wrong one, ties counting half. A check on
    ``compare("auroc", ...)``, in milliseconds, and with p-values below what the bootstrap can resolve.

    Args:
        first: (n,), scores, larger is more trustworthy.
        second: (n,), other scores of the same predictions.
        correct: (n,), whether each prediction is right; at least two right and two wrong ones.
        level: of the interval of the difference.

    Example:
        >>> delong([6, 5, 4, 3, 2, 1, 0], [0, 5, 4, 3, 2, 1, 6], [1, 1, 0, 1, 0, 1, 0]).difference
        0.5
    """
    from scipy.special import ndtri

    right = checks.flags(correct, "correct")
    counts = int(right.sum()), int((~right).sum())
    if min(counts) < 2:
        raise InputError(
            f"delong: expected at least two right and two wrong predictions, got {counts[0]} and {counts[1]}"
        )
    level = checks.fraction(level, "level", open_low=True, open_high=True)
    wins = [
        placements(checks.numbers(s, name, rows=len(right)), right)
        for s, name in ((first, "first"), (second, "second"))
    ]
    of_right, of_wrong = wins[0][0] - wins[1][0], wins[0][1] - wins[1][1]
    difference = float(of_right.mean())
    error = math.sqrt(of_right.var(ddof=1) / counts[0] + of_wrong.var(ddof=1) / counts[1])
    if error == 0:
        return Comparison(difference, difference, difference, 1.0 if difference == 0 else 0.0)
    half = float(ndtri((1 + level) / 2)) * error
    return Comparison(
        difference, difference - half, difference + half, math.erfc(abs(difference) / error / math.sqrt(2))
    )


def placements(scores: Floats, right: Flags) -> tuple[Floats, Floats]:
    """For each right prediction the share of wrong ones below it, for each wrong one the share of right ones above.

    Example:
        >>> placements(np.array([3.0, 1.0, 2.0]), np.array([True, True, False]))
        (array([1., 0.]), array([0.5]))
    """
    rights, wrongs = np.sort(scores[right]), np.sort(scores[~right])
    below = (np.searchsorted(wrongs, scores[right], "left") + np.searchsorted(wrongs, scores[right], "right")) / 2
    above = (np.searchsorted(rights, scores[~right], "left") + np.searchsorted(rights, scores[~right], "right")) / 2
    return below / len(wrongs), 1.0 - above / len(rights)
