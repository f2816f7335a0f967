"""Calibration: against scikit-learn, against the truth, and what it does where there is little to go by."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from scipy.stats import binom, binomtest
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from vicinal import metrics
from vicinal.errors import InputError
from vicinal.held_out import Caution
from vicinal.selective import METHODS, calibrate, conformal, reliability
from vicinal.selective.logistic import fit_logistic
from vicinal.values import Trust


def world(n=3000, seed=0, slope=0.5, offset=0.7):
    """Log-odds that are twice too sure, and shifted."""
    generator = np.random.default_rng(seed)
    scores = generator.normal(1.5, 3.0, n)
    return scores, generator.random(n) < expit(slope * scores + offset)


@pytest.mark.parametrize("method", METHODS)
def test_probabilities_are_close_to_the_truth(method):
    scores, correct = world(20_000)
    found = calibrate(scores, correct, method)
    fresh, truth = world(20_000, seed=1)
    assert np.abs(found(fresh) - expit(0.5 * fresh + 0.7)).mean() < 0.012
    assert metrics.ece(found(fresh), truth) < 0.02 < metrics.ece(expit(fresh), truth)


def test_isotonic_is_scikit_learns_kept_from_0_and_1():
    scores, correct = world(500)
    found = calibrate(scores, correct)
    model = IsotonicRegression(out_of_bounds="clip").fit(scores, correct)
    points = np.linspace(-15, 15, 300)
    np.testing.assert_allclose(found(points), np.clip(model.predict(points), 1 / 502, 501 / 502), atol=1e-12)


def test_platt_is_the_logistic_fit_to_his_targets():
    scores, correct = world(400)
    right = correct.sum()
    high, low = (right + 1) / (right + 2), 1 / (400 - right + 2)
    # scikit-learn takes no soft targets: each row twice, weighted by its two parts
    soft = np.where(correct, high, low)
    model = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000)
    model.fit(np.tile(scores, 2)[:, None], np.repeat([1, 0], 400), sample_weight=np.append(soft, 1 - soft))
    points = np.linspace(-9, 12, 50)
    np.testing.assert_allclose(
        calibrate(scores, correct, "platt")(points), model.predict_proba(points[:, None])[:, 1], atol=1e-5
    )


def test_beta_is_a_logistic_fit_of_two_logarithms():
    scores, correct = world(400, slope=0.8)
    p = expit(scores)
    soft = np.where(correct, (correct.sum() + 1) / (correct.sum() + 2), 1 / ((~correct).sum() + 2))
    terms = np.stack([np.log(p), -np.log(1 - p)], axis=1)
    model = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000)
    model.fit(np.tile(terms, (2, 1)), np.repeat([1, 0], 400), sample_weight=np.append(soft, 1 - soft))
    assert (model.coef_ > 0).all()  # so that the bounds do not matter
    np.testing.assert_allclose(calibrate(scores, correct, "beta")(scores), model.predict_proba(terms)[:, 1], atol=1e-4)


def test_logistic_weights_are_scikit_learns_or_zero():
    generator = np.random.default_rng(0)
    terms = generator.normal(size=(500, 3))
    targets = (generator.random(500) < expit(terms @ [1.0, 0.3, -0.8] + 0.5)).astype(float)
    intercept, weights = fit_logistic(terms, targets, ridge=2.0)
    model = LogisticRegression(C=0.5, tol=1e-12).fit(terms[:, :2], targets)  # a penalty of 2 is C = 1 / 2
    np.testing.assert_allclose(weights, [*model.coef_[0], 0.0], atol=1e-5)
    assert intercept == pytest.approx(model.intercept_[0], abs=1e-5)


@settings(deadline=None, max_examples=60)
@given(
    data=st.lists(st.tuples(st.floats(allow_nan=False, allow_infinity=False), st.booleans()), min_size=30, max_size=60),
    method=st.sampled_from(METHODS),
)
def test_a_calibration_never_falls_and_never_says_0_or_1(data, method):
    scores, correct = np.array([s for s, _ in data]), np.array([c for _, c in data])
    if correct.all() or not correct.any():
        correct[0] = not correct[0]
    found = calibrate(scores, correct, method)
    points = np.sort(np.concatenate([scores, [-1e308, -1.0, 0.0, 1.0, 1e308]]))
    values = found(points)
    assert np.isfinite(values).all()
    assert (np.diff(values) >= -1e-12).all()
    assert values.min() >= 0
    assert values.max() <= 1


@pytest.mark.parametrize("method", METHODS)
def test_a_score_far_from_many_alike_gives_probabilities(method):
    scores = np.append(np.arange(40) * 1e-66, [-1e299, 1e299])
    values = calibrate(scores, np.arange(42) % 3 > 0, method)(np.sort(scores))
    assert (np.diff(values) >= -1e-12).all()
    assert 0 < values[0] <= values[-1] < 1


def test_a_score_that_points_the_wrong_way_gives_the_share_of_right_ones():
    scores, correct = world(2000)
    for method in ("platt", "beta"):
        values = calibrate(-scores, correct, method)(-scores)
        assert np.ptp(values) < 1e-6
        assert values[0] == pytest.approx(correct.mean(), abs=0.002)


def test_the_curve_is_that_of_rows_not_fitted_on():
    # a score that tells nothing: on its own rows, isotonic looks informative; on others, it does not
    generator = np.random.default_rng(0)
    scores, correct = generator.normal(size=300), generator.random(300) < 0.5
    found = calibrate(scores, correct)
    own = reliability(found(scores), correct)
    assert np.abs(own.observed - own.probability).max() < 0.05
    assert np.abs(found.curve.observed - found.curve.probability).max() > 0.1
    assert found.curve.counts.sum() == 300


def test_reliability_against_a_loop():
    generator = np.random.default_rng(1)
    probability, correct = np.round(generator.random(203), 2), generator.random(203) < 0.6
    found = reliability(probability, correct, bins=7, level=0.9)
    assert found.counts.sum() == 203
    edges = np.cumsum(found.counts)[:-1]
    order = np.argsort(probability, kind="stable")
    for b, rows in enumerate(np.split(order, edges)):
        hits = int(correct[rows].sum())
        exact = binomtest(hits, len(rows)).proportion_ci(0.9, method="exact")
        assert found.probability[b] == pytest.approx(probability[rows].mean())
        assert (found.observed[b], found.low[b], found.high[b]) == pytest.approx(
            (hits / len(rows), exact.low, exact.high)
        )
    ordered = probability[order]
    assert (ordered[edges] > ordered[edges - 1]).all()  # equal probabilities stay in one bin
    assert found.records()[0]["counts"] == found.counts[0]


def test_intervals_of_the_curve_hold_the_truth():
    held = 0
    for seed in range(200):
        generator = np.random.default_rng(seed)
        probability = generator.random(300)
        found = reliability(probability, generator.random(300) < probability, bins=5)
        held += ((found.low <= found.probability) & (found.probability <= found.high)).sum()
    assert held > 0.94 * 1000


@pytest.mark.parametrize(
    ("correct", "words", "share"),
    [
        (np.ones(50, bool), "all 50 rows are right", 51 / 52),
        (np.zeros(50, bool), "all 50 rows are wrong", 1 / 52),
        (np.arange(20) > 4, "20 rows are fewer than 30", 16 / 22),
    ],
)
def test_where_rows_tell_too_little_all_predictions_get_one_probability(correct, words, share):
    with pytest.warns(Caution, match=words):
        found = calibrate(np.arange(float(len(correct))), correct)
    assert found.method == "constant"
    assert found.curve is None
    assert words in found.notes[0]
    np.testing.assert_allclose(found([-5.0, 99.0]), share)


def test_a_calibration_is_for_its_own_score():
    scores, correct = world(100)
    found = calibrate(Trust("energy", scores, scores), correct, "platt")
    with pytest.raises(InputError, match="expected the score 'energy', which was calibrated, got 'margin'"):
        found(Trust("margin", scores, scores))
    with pytest.raises(InputError, match="seed: expected a whole number of at least 0, got -1"):
        calibrate(scores, correct, seed=-1)
    with pytest.raises(InputError, match="did you mean 'isotonic'"):
        calibrate(scores, correct, "isotonc")


def test_a_constant_score_is_no_obstacle():
    correct = np.arange(60) % 4 > 0
    for method in METHODS:
        np.testing.assert_allclose(calibrate(np.full(60, 3.0), correct, method)([3.0]), 0.75, atol=0.01)


def test_saturated_log_odds_keep_their_place():
    scores, correct = world(600)
    scores[:5] = 1e308
    correct[:5] = True
    for method in METHODS:
        values = calibrate(scores, correct, method)(scores)
        assert np.isfinite(values).all()
        assert values[0] == values.max()
    assert logit(calibrate(scores, correct, "isotonic")([1e308]))[0] < 8


def test_conformal_p_values_refuse_no_more_than_they_say():
    generator = np.random.default_rng(0)
    refused = {0.05: 0, 0.1: 0, 0.5: 0}
    for _ in range(2000):
        held_out, fresh = np.round(generator.standard_cauchy((2, 39)), 1)  # 39 rows, with ties
        p = conformal(held_out, fresh[:1])
        for alpha in refused:
            refused[alpha] += int(p[0] <= alpha)
    for alpha, times in refused.items():
        assert times <= binom.ppf(0.999, 2000, alpha)
        assert times >= binom.ppf(0.0001, 2000, alpha - 1 / 40)  # and hardly fewer, but for ties and whole ranks


def test_conformal_p_values_against_a_loop():
    generator = np.random.default_rng(1)
    held_out, asked = generator.integers(0, 9, 50).astype(float), generator.integers(-2, 11, 30).astype(float)
    expected = [(1 + sum(h <= a for h in held_out)) / 51 for a in asked]
    np.testing.assert_allclose(conformal(held_out, asked), expected)
    trust = Trust("energy", asked, asked)
    assert conformal(Trust("energy", held_out, held_out), trust).tolist() == pytest.approx(expected)
    with pytest.raises(InputError, match="expected the score 'margin', as held out, got 'energy'"):
        conformal(Trust("margin", held_out, held_out), trust)
