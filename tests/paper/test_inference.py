"""Intervals over networks and points, against sums written out and against simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from vicinal.paper.inference import Sample, difference, estimate, of_accuracy, of_auroc


def judged(seed, n=60):
    random = np.random.default_rng(seed)
    right = random.random(n) < 0.8
    right[:2] = (True, False)
    right[2:4] = (True, False)
    return right * 1.0 + random.normal(size=n), right


def delong(scores, right):
    """AUROC and the variance of DeLong et al. (1988), by loops over all pairs."""
    good, bad = scores[right], scores[~right]
    wins = np.array([[1.0 if g > b else 0.5 if g == b else 0.0 for b in bad] for g in good])
    of_good, of_bad = wins.mean(axis=1), wins.mean(axis=0)
    return wins.mean(), of_good.var(ddof=1) / len(good) + of_bad.var(ddof=1) / len(bad)


@pytest.mark.parametrize("seed", [0, 1])
def test_one_network_has_delongs_interval(seed):
    scores, right = judged(seed)
    value, variance = delong(scores, right)
    found = estimate([of_auroc(scores, right)])
    half = stats.norm.ppf(0.975) * math.sqrt(variance)
    assert (found.mean, found.low, found.high) == pytest.approx((value, value - half, value + half))
    assert (found.n, found.spread) == (1, None)


def test_several_networks_add_their_spread():
    samples = [of_auroc(*judged(seed)) for seed in range(3)]
    found = estimate(samples)
    values = np.array([sample.value for sample in samples])
    shared = np.mean([sample.influence for sample in samples], axis=0)
    points, networks = (shared**2).sum() / len(shared) ** 2, values.var(ddof=1) / 3
    freedom = 2 * ((points + networks) / networks) ** 2
    half = stats.t.ppf(0.975, freedom) * math.sqrt(points + networks)
    assert found.mean == pytest.approx(values.mean())
    assert found.high - found.mean == pytest.approx(half)
    assert found.spread == pytest.approx(values.std(ddof=1))


def test_accuracy_has_the_interval_of_a_share():
    right = np.arange(200) < 150
    found = estimate([of_accuracy(right)])
    half = stats.norm.ppf(0.975) * math.sqrt(0.75 * 0.25 / 199)
    assert (found.mean, found.high - found.mean) == pytest.approx((0.75, half))


def test_a_difference_is_that_of_the_same_points():
    scores, right = judged(3)
    other = scores + np.random.default_rng(0).normal(size=len(scores))
    found = difference([of_auroc(scores, right)], [of_auroc(other, right)])
    assert found.mean == pytest.approx(delong(scores, right)[0] - delong(other, right)[0])
    itself = difference([of_auroc(scores, right)], [of_auroc(scores, right)])
    assert (itself.mean, itself.low, itself.high, itself.p, itself.verdict) == (0, 0, 0, 1, "equal")


def test_too_few_of_a_kind_have_no_auroc():
    assert of_auroc(np.arange(4.0), np.array([True, True, True, False])) is None


def test_intervals_hold_as_often_as_they_say():
    """Networks that differ by chance judge points that differ by chance; the truth is 0."""
    random, held = np.random.default_rng(0), 0
    for _ in range(400):
        points = random.normal(size=80)
        samples = []
        for network in random.normal(0, 0.1, size=4):
            values = points + random.normal(size=80) + network
            samples.append(Sample(values.mean(), (values - values.mean()) * math.sqrt(80 / 79)))
        found = estimate(samples)
        held += found.low <= 0 <= found.high
    assert 0.93 <= held / 400 <= 0.99
