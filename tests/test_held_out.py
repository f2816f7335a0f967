"""Held-out rows: what is refused, what is left out, and that a caution points at the user's line."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from vicinal import score
from vicinal.bank import Bank
from vicinal.errors import InputError, ShapeError
from vicinal.held_out import Caution, HeldOut, caution, in_bank, scores_of
from vicinal.selective import threshold_at
from vicinal.values import Trust


def scored(overlap, n=200):
    """Trust in n predictions, the first ``overlap`` of which are bank points."""
    generator = np.random.default_rng(0)
    vectors, labels = generator.normal(size=(300, 3)), generator.integers(0, 2, 300)
    queries = generator.normal(size=(n, 3))
    queries[:overlap] = vectors[:overlap]
    return score.distance(Bank(vectors, labels), queries, np.zeros(n, int), k=5)


def test_rows_in_the_bank_are_left_out_with_a_caution():
    trust, correct = scored(20), np.arange(200) % 3 > 0
    assert in_bank(trust, 200).sum() == 20
    with pytest.warns(Caution, match="20 of 200 held-out rows lie at distance 0 of a bank point"):
        rows = HeldOut.of([trust], correct)
    assert rows.kept.tolist() == [False] * 20 + [True] * 180
    np.testing.assert_array_equal(rows.scores[0], trust.log_odds[20:])
    np.testing.assert_array_equal(rows.correct, correct[20:])
    assert rows.notes[0].startswith("20 of 200")


def test_a_stray_duplicate_is_kept():
    rows = HeldOut.of([scored(2)], np.arange(200) % 3 > 0)
    assert rows.kept.all()
    assert rows.notes == ()


def test_all_rows_in_the_bank_are_refused():
    with pytest.raises(InputError, match="200 that all lie at distance 0"):
        HeldOut.of([scored(200)], np.arange(200) % 3 > 0)


def test_one_overlapping_score_of_several_is_enough():
    trust = scored(20)
    plain = Trust("margin", np.arange(200.0), np.arange(200.0))
    with pytest.warns(Caution):
        rows = HeldOut.of([plain, trust], np.arange(200) % 3 > 0)
    assert [len(s) for s in rows.scores] == [180, 180]


def test_sides():
    assert HeldOut.of([[1.0, 2.0]], [True, True]).one_sided == "right"
    assert HeldOut.of([[1.0, 2.0]], [False, False]).one_sided == "wrong"
    assert HeldOut.of([[1.0, 2.0]], [False, True]).one_sided is None


def test_scores_are_log_odds_or_numbers():
    assert scores_of(Trust("s", np.array([0.5]), np.array([7.0]))).tolist() == [7.0]
    assert scores_of([1, 2]).tolist() == [1.0, 2.0]
    with pytest.raises(InputError, match="trust: expected finite numbers, got nan in row 1"):
        scores_of([0.0, np.nan])
    with pytest.raises(ShapeError, match="trust: expected 3"):
        HeldOut.of([[1.0, 2.0]], [True, False, True])


def test_a_caution_points_at_the_line_of_the_caller():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        threshold_at(np.arange(40.0), np.zeros(40, bool), risk=0.1)
        assert caution("said") == "said"
    assert {warning.filename for warning in caught} == {__file__}
