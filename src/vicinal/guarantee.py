"""Promises that hold for finitely many rows, whatever the distribution: bounds on rates, thresholds, p-values.

All of them assume one thing: that the rows at hand and those to come are drawn alike, independently. Scores are (n,),
larger is more trustworthy. Nothing here is specific to a job; ``vicinal.selective`` and ``vicinal.novelty`` share it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from vicinal.checks import Flags, Floats, Integers

__all__ = [
    "Cut",
    "Ranks",
    "bounds",
    "cut_for_coverage",
    "cut_for_fpr",
    "cut_for_risk",
    "p_values",
    "rank_for_rate",
    "upper_bound",
]

# Where sequences of tests begin, as shares of the rows, and how delta is shared among them. Measured, not derived: most
# cuts that users want lie between a quarter and all of the rows (docs/errors.md).
_STARTS = {1 / 16: 1 / 16, 1 / 8: 2 / 16, 1 / 4: 12 / 16, 1 / 2: 1 / 16}


@dataclass(frozen=True)
class Cut:
    """Where to cut a score, and what is promised of it.

    Attributes:
        value: accept scores of at least this; infinite where nothing may be accepted.
        promised: the rate that is promised with probability 1 - delta: the target where it can be met, otherwise the
            smallest risk (or rate of accepted errors) that any threshold can promise.
        met: whether the target is met.
    """

    value: float
    promised: float
    met: bool


def bounds(successes: Any, trials: Any, level: float = 0.95) -> tuple[Floats, Floats]:
    """The interval of a rate (Clopper and Pearson 1934): it holds the true rate with at least this probability.

    Example:
        >>> low, high = bounds([0, 5], [10, 10])
        >>> low.round(3), high.round(3)
        (array([0.   , 0.187]), array([0.308, 0.813]))
    """
    half = (1 - level) / 2
    k, n = np.asarray(successes, np.float64), np.asarray(trials, np.float64)
    return 1 - upper_bound(n - k, n, half), upper_bound(k, n, half)


def upper_bound(errors: Any, trials: Any, delta: float | Floats) -> Floats:
    """The largest rate at which so few errors in so many trials still have probability ``delta`` (Clopper-Pearson).

    Example:
        >>> upper_bound(0, 59, 0.05).round(3)
        np.float64(0.05)
    """
    from scipy.special import betaincinv

    k, n = np.asarray(errors, np.float64), np.asarray(trials, np.float64)
    inside = betaincinv(k + 1, np.maximum(n - k, 1.0), 1 - delta)
    found: Floats = np.where(k >= n, 1.0, inside)
    return found


@dataclass(frozen=True, eq=False)
class Ranks:
    """The places at which scores can be cut, ties staying together, the highest score first.

    Attributes:
        scores: (n,), descending.
        counts: (g,), how many rows each cut accepts, ascending, the last one all.
        errors: (g,), how many of these are wrong.
    """

    scores: Floats
    counts: Integers
    errors: Integers

    @classmethod
    def of(cls, scores: Floats, correct: Flags) -> Ranks:
        """Sort the rows."""
        order = np.argsort(-scores, kind="stable")
        ordered = scores[order]
        ends = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1, len(ordered))
        return cls(ordered, ends, np.cumsum(~correct[order])[ends - 1])

    def above(self, count: int) -> float:
        """The smallest value that accepts no more than the first ``count`` rows: just above the next score."""
        return -np.inf if count >= len(self.scores) else float(np.nextafter(self.scores[count], np.inf))


def rank_for_rate(n: int, rate: float, delta: float) -> int:
    """How many of n scores may lie beyond a cut, so that new ones lie there at most at this rate.

    With probability at least 1 - delta over the n scores: the share beyond the r-th most extreme one has the
    Beta(r, n - r + 1) distribution, and is smaller if there are ties. 0 where not even one may.
    """
    from scipy.special import bdtr

    return int(np.searchsorted(bdtr(np.arange(n), n, rate), delta, side="right"))  # P(Beta <= f) = 1 - bdtr(r-1, n, f)


def p_values(reference: Floats, values: Floats, generator: np.random.Generator | None = None) -> Floats:
    """(m,), how often a draw from where the reference came from is as low: (1 + number of its scores ≤ v) / (n + 1).

    For a value drawn as the reference was, P(p ≤ α) ≤ α for every α (Vovk et al. 2005).

    Args:
        reference: (n,), ascending.
        values: (m,).
        generator: given, p-values are drawn between those of the neighbouring ranks, ties included: P(p ≤ α) = α.

    Example:
        >>> p_values(np.arange(9.0), np.array([-1.0, 3.5, 20.0]))
        array([0.1, 0.5, 1. ])
    """
    n = len(reference)
    up_to = np.searchsorted(reference, values, side="right")
    if generator is None:
        return (1 + up_to) / (n + 1)
    below = np.searchsorted(reference, values, side="left")
    return (below + generator.random(len(values)) * (up_to - below + 1)) / (n + 1)


def cut_for_risk(scores: Floats, correct: Flags, risk: float, delta: float) -> Cut:
    """The lowest cut of which one can promise: at most this share of errors among the accepted.

    With probability at least 1 - delta over the rows, the true share of errors among all that score at least the cut is
    at most ``risk``. Going down from high scores, each cut in turn is put to an exact binomial test, as long as the
    tests are passed; the last one passed is returned (a fixed sequence, as in Learn then Test; Angelopoulos et al.
    2022). No correction for many tests is needed, as the sequence stops at its first failure.

    A sequence that begins among few rows can fail at its first errors. So several begin, at 1/16, 1/8, 1/4 and 1/2 of
    the rows where a test could be passed there at all; each has its part of delta (1, 2, 12 and 1 sixteenths), and
    those that are still passing hand theirs on to the next (the fallback procedure of Wiens 2003).

    The cuts are ranks, not values fixed in advance. That is no gap: given the score at a rank, the rows above it are
    again independent draws; and where the true risk is continuous in the cut it equals the target where it crosses it,
    so that the errors above the crossing are binomial whatever the ranks are. The promise is exact for scores without
    ties whose true risk crosses the target once; for several crossings it rests on the simulations in the tests;
    tied scores are accepted or refused together.
    """
    from scipy.special import bdtr

    ranks = Ranks.of(scores, correct)
    starts, parts = _starts(ranks.counts, risk, delta)
    tails = bdtr(ranks.errors, ranks.counts, risk)
    kept, level = 0, 0.0
    for begin, end, part in zip(starts, [*starts[1:], len(ranks.counts)], parts, strict=True):
        level += part
        failed = np.flatnonzero(tails[begin:end] > level)
        passed = end - begin if not len(failed) else int(failed[0])
        if passed:
            kept = int(ranks.counts[begin + passed - 1])
        if len(failed):
            level = 0.0
    if kept:
        return Cut(ranks.above(kept), risk, True)
    return Cut(np.inf, _least(ranks, delta), False)


def _starts(counts: Integers, risk: float, delta: float) -> tuple[list[int], Floats]:
    """Places among the cuts where sequences begin, and the part of delta that each has."""
    n = int(counts[-1])
    able = {share * n: part for share, part in _STARTS.items() if share * n >= _fewest(risk, delta * part)}
    if not able:
        able = {max(n / 2, _fewest(risk, delta)): 1.0}
    parts = np.array(list(able.values()))
    return _places(counts, able), delta * parts / parts.sum()


def _places(counts: Integers, wanted: Iterable[float]) -> list[int]:
    """The first cuts that accept at least so many rows."""
    return [min(int(np.searchsorted(counts, count)), len(counts) - 1) for count in wanted]


def _least(ranks: Ranks, delta: float) -> float:
    """The smallest risk that can be promised: the least upper bound at the places where sequences can begin."""
    places = _places(ranks.counts, [share * ranks.counts[-1] for share in _STARTS])
    parts = delta * np.array(list(_STARTS.values()))
    return float(upper_bound(ranks.errors[places], ranks.counts[places], parts).min())


def _fewest(risk: float, delta: float) -> float:
    """How many rows without an error pass a test."""
    return float(np.log(delta) / np.log1p(-risk))


def cut_for_coverage(scores: Floats, coverage: float, delta: float) -> Cut:
    """The highest cut of which one can promise that it accepts at least this share.

    The share at or above the j-th highest of n scores has the Beta(j, n - j + 1) distribution, and is larger if there
    are ties: take the least j that keeps the promise with probability 1 - delta.
    """
    from scipy.special import bdtr

    n = len(scores)
    kept = (
        int(np.searchsorted(bdtr(np.arange(n), n, coverage), 1 - delta)) + 1
    )  # P(Beta(j, n-j+1) > c) = bdtr(j-1, n, c)
    if kept > n:
        return Cut(-np.inf, coverage, True)
    return Cut(float(np.sort(scores)[n - kept]), coverage, True)


def cut_for_fpr(scores: Floats, correct: Flags, fpr: float, delta: float) -> Cut:
    """The lowest cut of which one can promise that it accepts at most this share of the wrong predictions.

    The share of wrong predictions above the j-th highest of m wrong ones has the Beta(j, m - j + 1) distribution, and
    is smaller if there are ties: take the largest j that keeps the promise with probability 1 - delta.
    """
    wrong = np.sort(scores[~correct])[::-1]
    m = len(wrong)
    if m == 0:
        return Cut(np.inf, 1.0, False)
    j = rank_for_rate(m, fpr, delta)
    if j == 0:
        return Cut(np.inf, float(1 - delta ** (1 / m)), False)
    return Cut(float(np.nextafter(wrong[j - 1], np.inf)), fpr, True)
