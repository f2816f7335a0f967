"""Densities against loops in float64, and against the true density."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from vicinal import score
from vicinal.bank import Bank
from vicinal.density import class_density, class_kth_distance, density, density_of


def world(seed=0):
    generator = np.random.default_rng(seed)
    vectors, labels = generator.normal(size=(120, 4)) * 3, generator.choice([-1, 0, 5], 120)
    return vectors, labels, generator.normal(size=(30, 4)) * 4, generator.choice([-1, 0, 5], 30)


def distances(vectors, query):
    return np.sort([np.sqrt(((v - query) ** 2).sum()) for v in np.float32(vectors).astype(float)])


def test_density_is_the_denominator_of_the_distance_score():
    vectors, labels, queries, predicted = world()
    bank = Bank(vectors, labels)
    found = density(bank, queries, k=7)
    expected = [logsumexp(-distances(vectors, q)[:7]) for q in np.float32(queries).astype(float)]
    np.testing.assert_allclose(found.log_odds, expected, rtol=1e-12)
    near = score.distance(bank, queries, predicted, k=7).neighbors
    np.testing.assert_array_equal(density_of(near).confidence, found.confidence)


def test_a_point_that_stands_for_three_is_three_times_as_dense():
    vectors, labels, queries, predicted = world()
    weights = np.full(120, 3.0)
    for score_of, options in ((density, ()), (class_density, (predicted,))):
        plain, heavy = (score_of(Bank(vectors, labels, weights=w), queries, *options, k=7) for w in (None, weights))
        np.testing.assert_allclose(heavy.log_odds, plain.log_odds + np.log(3))


def test_class_densities_look_at_one_class_only():
    vectors, labels, queries, predicted = world()
    bank = Bank(vectors, labels).remove([3, 17])
    keep = np.setdiff1d(np.arange(120), [3, 17])
    vectors, labels = vectors[keep], labels[keep]
    near = [
        distances(vectors[labels == c], q)[:50]
        for q, c in zip(np.float32(queries).astype(float), predicted, strict=True)
    ]
    assert min(map(len, near)) < 50  # a class with fewer points than neighbours asked for
    found = class_density(bank, queries, predicted, k=50)
    np.testing.assert_allclose(found.log_odds, [logsumexp(-d) for d in near], rtol=1e-12)
    kth = class_kth_distance(bank, queries, predicted, k=50)
    np.testing.assert_allclose(kth.confidence, [-d[-1] for d in near], rtol=1e-12)
    np.testing.assert_allclose(kth.log_odds, [-np.log(d[-1]) for d in near], rtol=1e-12)


def test_a_class_that_the_bank_does_not_have_is_farther_than_any():
    vectors, labels, queries, predicted = world()
    predicted[4] = 9
    for found in (
        class_density(Bank(vectors, labels), queries, predicted, k=1),
        class_kth_distance(Bank(vectors, labels), queries, predicted, k=1),
    ):
        assert np.isfinite(found.log_odds).all()
        assert found.confidence[4] <= -distances(vectors, queries[4])[-1]
        assert found.notes == ("1 predictions name a class that the bank does not have",)


def test_log_density_does_not_underflow():
    found = density(Bank([[0.0], [1.0]], [0, 1]), [[5000.0]], k=2)
    assert found.log_odds[0] == pytest.approx(-4999 + np.log1p(np.exp(-1)))
