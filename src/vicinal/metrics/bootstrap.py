"""Intervals and paired tests by the stratified bootstrap.

Each bootstrap sample draws as many right predictions from the right ones, and as many wrong ones from the wrong ones,
as there are, with replacement (Efron and Tibshirani 1993). The accuracy is thus held fixed: an interval speaks of the
score on predictions with this accuracy, not of the accuracy. Every score sees the same samples, so that the difference
of two scores is measured on the same predictions each time: the paired test.

An interval is that of the percentiles of the samples. Resampling inflates the ECE, which takes noise for gaps, so its
samples are reflected at its value (the "basic" bootstrap). The p-value of a difference is the smallest two-sided level
at which its interval leaves out 0, and at least 2 / (samples + 1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vicinal import checks
from vicinal.checks import Flags, Floats, Integers
from vicinal.metrics.catalogue import METRICS, ON_CURVE, ON_GAPS, Points, refuse_undefined
from vicinal.metrics.curve import Ranking
from vicinal.metrics.gaps import Bins
from vicinal.progress import track

__all__ = ["MOST_SAMPLES", "Comparison", "Interval", "Judge", "Samples", "bootstrap", "compare", "interval"]

MOST_SAMPLES = 1_000_000
_BLOCK = 65_536  # predictions x samples worked on at a time: what stays in the cache of a core
_FREED = 30 * 2**20  # bytes, see _keep_freed_memory


@dataclass(frozen=True)
class Interval:
    """A value and the interval around it; NaN where the metric is undefined."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Comparison:
    """How much larger a metric is for a first score than for a second, on the same predictions.

    Attributes:
        difference: first less second; NaN, as all the others, where the metric is undefined.
        low: of the interval of the difference.
        high: of the interval of the difference.
        p: of the two-sided test that there is no difference.
    """

    difference: float
    low: float
    high: float
    p: float

    def __neg__(self) -> Comparison:
        """The second against the first."""
        return Comparison(-self.difference, -self.high, -self.low, self.p)


@dataclass(frozen=True, eq=False)
class Judge:
    """One score, sorted once, ready to be measured under any weighting of the predictions.

    Attributes:
        ranking: its order.
        bins: its confidences as probabilities; None if they are not.
    """

    ranking: Ranking
    bins: Bins | None = None

    @classmethod
    def of(cls, scores: Floats, correct: Flags, confidence: Floats | None = None, *, bins: int = 15) -> Judge:
        """Rank by ``scores``; calibrate ``confidence``, where it is a probability."""
        return cls(Ranking.of(scores, correct), None if confidence is None else Bins.of(confidence, correct, bins))

    def measure(self, metrics: Sequence[str], points: Points, weights: Integers | None = None) -> Floats:
        """The metrics (m, b) under each weighting (b, n); NaN for those of probability, without probabilities."""
        curve = self.ranking.curve(weights) if any(name in ON_CURVE for name in metrics) else None
        gaps = self.bins.weighted(weights) if self.bins and any(name in ON_GAPS for name in metrics) else None
        found = np.full((len(metrics), 1 if weights is None else len(weights)), np.nan)
        for row, name in enumerate(metrics):
            if curve and name in ON_CURVE:
                found[row] = ON_CURVE[name](curve, points)
            elif gaps and name in ON_GAPS:
                found[row] = ON_GAPS[name](gaps)
        return found


@dataclass(frozen=True, eq=False)
class Samples:
    """Metrics of scores, as measured and in every bootstrap sample.

    Attributes:
        metrics: m names.
        values: (s, m), for s scores.
        replicates: (s, m, samples), reflected where the metric asks for it.
    """

    metrics: tuple[str, ...]
    values: Floats
    replicates: npt.NDArray[np.float64]

    def interval(self, score: int, metric: int, level: float) -> Interval:
        """The interval of one metric of one score, no wider than the metric can be."""
        value = float(self.values[score, metric])
        low, high = _quantiles(self.replicates[score, metric], level)
        if METRICS[self.metrics[metric]].reflected:
            low, high = max(low, 0.0), min(high, 1.0)
        return Interval(value, low, high)

    def compare(self, first: int, second: int, metric: int, level: float) -> Comparison:
        """The paired test of one metric between two scores."""
        differences = self.replicates[first, metric] - self.replicates[second, metric]
        low, high = _quantiles(differences, level)
        difference = float(self.values[first, metric] - self.values[second, metric])
        return Comparison(difference, low, high, _p(differences))


def bootstrap(
    judges: Sequence[Judge],
    correct: Flags,
    metrics: Sequence[str],
    *,
    points: Points = Points(),  # noqa: B008 (it is frozen)
    samples: int = 2000,
    seed: int = 0,
) -> Samples:
    """Measure every metric of every score on the predictions and on the same bootstrap samples of them.

    Metrics that are undefined for these predictions are NaN throughout. One thread does it all: NumPy lets others run
    during too few of these operations for them to gain more than a tenth.
    """
    rights = int(correct.sum())
    wanted = [name for name in metrics if METRICS[name].defined(rights, len(correct) - rights)]
    rows = [list(metrics).index(name) for name in wanted]
    values = np.full((len(judges), len(metrics)), np.nan)
    replicates = np.full((len(judges), len(metrics), samples), np.nan)
    values[:, rows] = [judge.measure(wanted, points)[:, 0] for judge in judges]
    done = 0
    generator = np.random.default_rng(seed)
    _keep_freed_memory()
    for size in track(_sizes(len(correct), samples), "bootstrap"):
        weights = _weights(correct, size, generator)
        replicates[:, rows, done : done + size] = [judge.measure(wanted, points, weights) for judge in judges]
        done += size
    for row, name in enumerate(metrics):
        if METRICS[name].reflected:
            replicates[:, row] = 2 * values[:, row, None] - replicates[:, row]
    return Samples(tuple(metrics), values, replicates)


def interval(
    metric: str,
    scores: Any,
    correct: Any,
    *,
    samples: int = 2000,
    seed: int = 0,
    level: float = 0.95,
    coverage: float = 0.8,
    risk: float = 0.05,
    bins: int = 15,
) -> Interval:
    """One metric of one score, with its interval.

    Args:
        metric: a name, such as ``"auroc"``.
        scores: (n,), larger is more trustworthy; for ``ece`` and ``brier``, the confidences in [0, 1].
        correct: (n,), whether each prediction is right.
        samples: how many bootstrap samples.
        seed: of the samples.
        level: of the interval.
        coverage: of ``risk_at_coverage``.
        risk: of ``coverage_at_risk``.
        bins: of ``ece``.

    Example:
        >>> round(interval("auroc", [5, 4, 3, 2, 1, 0], [1, 1, 0, 1, 0, 0]).value, 4)
        0.8889
    """
    points = Points(coverage, risk, bins)
    found = _bootstrapped(metric, {"scores": scores}, correct, points, samples, seed)
    return found.interval(0, 0, checks.fraction(level, "level", open_low=True, open_high=True))


def compare(
    metric: str,
    first: Any,
    second: Any,
    correct: Any,
    *,
    samples: int = 2000,
    seed: int = 0,
    level: float = 0.95,
    coverage: float = 0.8,
    risk: float = 0.05,
    bins: int = 15,
) -> Comparison:
    """The paired test of one metric between two scores of the same predictions; arguments as in ``interval``.

    Example:
        >>> compare("auroc", [5, 4, 3, 2, 1, 0], [4, 5, 3, 2, 1, 0], [1, 1, 0, 1, 0, 0]).difference
        0.0
    """
    points = Points(coverage, risk, bins)
    found = _bootstrapped(metric, {"first": first, "second": second}, correct, points, samples, seed)
    return found.compare(0, 1, 0, checks.fraction(level, "level", open_low=True, open_high=True))


def _bootstrapped(
    metric: str, scores: Mapping[str, Any], correct: Any, points: Points, samples: int, seed: int
) -> Samples:
    name = checks.one_of(metric, "metric", tuple(METRICS))
    right = checks.flags(correct, "correct")
    rights = int(right.sum())
    refuse_undefined(METRICS[name], rights, len(right) - rights)
    judges = []
    for said, given in scores.items():
        probability = METRICS[name].scale == "probability"
        limits = (0.0, 1.0) if probability else (-np.inf, np.inf)
        found = checks.numbers(given, said, rows=len(right), low=limits[0], high=limits[1])
        judges.append(Judge.of(found, right, found if probability else None, bins=points.bins))
    samples = checks.whole(samples, "samples", low=1, high=MOST_SAMPLES)
    return bootstrap(judges, right, [name], points=points, samples=samples, seed=checks.whole(seed, "seed", low=0))


def _quantiles(replicates: Floats, level: float) -> tuple[float, float]:
    low, high = np.quantile(replicates, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _p(differences: Floats) -> float:
    if np.isnan(differences).any():
        return float("nan")
    fewer = 1 + min(int((differences <= 0).sum()), int((differences >= 0).sum()))
    return min(1.0, 2 * fewer / (len(differences) + 1))


def _sizes(n: int, samples: int) -> list[int]:
    """How many samples to draw at a time."""
    size = max(1, _BLOCK // n)
    return [min(size, samples - start) for start in range(0, samples, size)]


def _weights(correct: Flags, samples: int, generator: np.random.Generator) -> Integers:
    """How often each prediction (samples, n) is drawn, the right and the wrong ones apart."""
    weights = np.zeros((samples, len(correct)), np.int64)
    for stratum in (np.flatnonzero(correct), np.flatnonzero(~correct)):
        size = len(stratum)
        if size:
            drawn = generator.integers(size, size=(samples, size)) + size * np.arange(samples)[:, None]
            weights[:, stratum] = np.bincount(drawn.ravel(), minlength=samples * size).reshape(samples, size)
    return weights


def _keep_freed_memory() -> None:
    """Ask glibc, in the only way there is from here, to keep the memory of our temporaries for the next ones.

    By default it gives arrays of this size back to the kernel when they are freed, and fetching them again took 60 %
    of the time of a bootstrap. Freeing one larger array raises the size from which it does so. Elsewhere this does
    nothing.
    """
    np.empty(_FREED, np.uint8)
