"""Figures over networks with intervals, and paired tests that see both chances: of training, and of the test points.

Several networks of one recipe judge the same test points. Write θ_i for the figure of network i, such as an AUROC, and
φ_ij for the influence of test point j on it, so that θ_i is off by about the mean of φ_ij over the points. The mean of
θ_i over n networks has

    variance of the points:     Σ_j (mean_i φ_ij)² / N²      (as in DeLong's test, of all networks together)
    variance of the networks:   s² / n                       (s the spread of θ_i)

and the interval rests on their sum, with Satterthwaite's degrees of freedom: it speaks of a new network of this recipe
on new points. This is what radiology does with several readers of the same cases (Obuchowski and Rockette 1995). What
a point does to one network alone is in both parts, which makes the interval a little wide. One network has the first
part only. A difference of two scores is tested on the same networks and points: the differences of θ and φ are taken
before the means. Everything is at the 95 % level, and not corrected for how many tests there are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vicinal.checks import Flags, Floats
from vicinal.metrics.delong import placements
from vicinal.paper.results import Difference, Estimate

__all__ = ["Sample", "difference", "estimate", "of_accuracy", "of_auroc", "of_mean"]

LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class Sample:
    """A figure of one network.

    Attributes:
        value: the figure.
        influence: (n,), of each test point on it; zero on average.
    """

    value: float
    influence: Floats

    def __sub__(self, other: Sample) -> Sample:
        return Sample(self.value - other.value, self.influence - other.influence)


def of_auroc(scores: Floats, right: Flags) -> Sample | None:
    """The AUROC of a score, larger for right; None where fewer than two are right, or wrong.

    Example:
        >>> of_auroc(np.array([3.0, 2.0, 1.0, 0.0]), np.array([True, False, True, False])).value
        0.75
    """
    counts = int(right.sum()), int((~right).sum())
    if min(counts) < 2:
        return None
    below, above = placements(scores, right)
    value = float(below.mean())
    influence = np.empty(len(right))
    for rows, placed, count in ((right, below, counts[0]), (~right, above, counts[1])):
        # the second factor makes Σ φ² / N² the unbiased variance that DeLong's test has
        influence[rows] = (placed - value) * len(right) / count * math.sqrt(count / (count - 1))
    return Sample(value, influence)


def of_accuracy(right: Flags) -> Sample:
    """The share of right predictions."""
    return of_mean(right.astype(np.float64))


def of_mean(values: Floats) -> Sample:
    """The mean of one number for each test point."""
    n, mean = len(values), float(values.mean())
    return Sample(mean, (values - mean) * math.sqrt(n / max(1, n - 1)))


def estimate(samples: Sequence[Sample]) -> Estimate:
    """The mean over networks that judge the same test points.

    Example:
        >>> estimate([of_accuracy(np.arange(100) < 90), of_accuracy(np.arange(100) < 94)]).values
        (0.9, 0.94)
    """
    values = [sample.value for sample in samples]
    mean, half, _ = _interval(samples)
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Estimate(mean, spread, mean - half, mean + half, tuple(values))


def difference(first: Sequence[Sample], second: Sequence[Sample]) -> Difference:
    """How much larger the figure is for a first score than for a second, on the same networks and points.

    Example:
        >>> right = np.arange(40) % 4 > 0
        >>> good, bad = (of_auroc(right + noise * np.sin(np.arange(40.0)), right) for noise in (0.1, 9.0))
        >>> difference([good], [bad]).verdict
        'better'
    """
    mean, half, p = _interval([one - other for one, other in zip(first, second, strict=True)])
    return Difference(mean, mean - half, mean + half, p, len(first))


def _interval(samples: Sequence[Sample]) -> tuple[float, float, float]:
    """The mean, half the width of its interval, and the p-value of the two-sided test that it is 0."""
    from scipy.stats import t

    n, points = len(samples), len(samples[0].influence)
    values = np.array([sample.value for sample in samples])
    shared: Floats = np.mean([sample.influence for sample in samples], axis=0)
    of_points = float(shared @ shared) / points**2
    of_networks = float(values.var(ddof=1)) / n if n > 1 else 0.0
    mean, error = float(values.mean()), math.sqrt(of_points + of_networks)
    if error == 0:
        return mean, 0.0, float(mean == 0)
    freedom = (n - 1) * ((of_points + of_networks) / of_networks) ** 2 if of_networks else math.inf
    return mean, error * float(t.ppf((1 + LEVEL) / 2, freedom)), 2 * float(t.sf(abs(mean) / error, freedom))
