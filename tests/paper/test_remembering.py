"""A bank that searches once answers as one that searches each time."""

from __future__ import annotations

import numpy as np
import pytest

from vicinal import Bank, score
from vicinal.paper.remembering import Remembering

RANDOM = np.random.default_rng(0)
BANK = Bank(RANDOM.normal(size=(60, 4)).astype(np.float32), np.arange(60) % 3)
QUERIES = RANDOM.normal(size=(20, 4)).astype(np.float32)
PREDICTED = np.arange(20) % 3


@pytest.fixture
def shared():
    return Remembering(BANK, 30)


@pytest.mark.parametrize("k", [1, 7, 30])
@pytest.mark.parametrize("kernel", ["exp", "count", "inverse"])
def test_scores_are_the_same(shared, k, kernel):
    for _ in range(2):
        found = score.distance(shared, QUERIES, PREDICTED, k=k, kernel=kernel)
        expected = score.distance(BANK, QUERIES, PREDICTED, k=k, kernel=kernel)
        np.testing.assert_allclose(found.log_odds, expected.log_odds, rtol=1e-12)
    assert shared.searches == 1


def test_other_queries_or_predictions_are_another_search(shared):
    score.distance(shared, QUERIES, PREDICTED, k=5)
    found = score.distance(shared, QUERIES + 1, PREDICTED, k=5)
    np.testing.assert_array_equal(found.log_odds, score.distance(BANK, QUERIES + 1, PREDICTED, k=5).log_odds)
    turned = score.distance(shared, QUERIES + 1, 2 - PREDICTED, k=5)
    np.testing.assert_array_equal(turned.log_odds, score.distance(BANK, QUERIES + 1, 2 - PREDICTED, k=5).log_odds)
    assert shared.searches == 3


def test_scores_that_predict_nothing_share_the_search(shared):
    score.distance(shared, QUERIES, PREDICTED, k=5)
    found = score.kth_distance(shared, QUERIES, k=9)
    np.testing.assert_array_equal(found.log_odds, score.kth_distance(BANK, QUERIES, k=9).log_odds)


def test_leaving_oneself_out_is_never_from_memory(shared):
    own = BANK.vectors
    score.distance(shared, own, BANK.labels, k=5)
    found = shared.nearest(own, 3, exclude_self=True)
    np.testing.assert_array_equal(found.indices, BANK.nearest(own, 3, exclude_self=True).indices)


def test_scaled_distances_are_those_of_scaled_vectors(shared):
    score.distance(shared, QUERIES, PREDICTED, k=5)
    found = score.distance(shared.scaled(0.5), QUERIES, PREDICTED, k=5)
    halved = Bank(BANK.vectors / 2, BANK.labels)
    expected = score.distance(halved, QUERIES / 2, PREDICTED, k=5)
    np.testing.assert_allclose(found.confidence, expected.confidence, rtol=1e-6)
    np.testing.assert_allclose(found.log_odds, expected.log_odds, rtol=1e-5)
