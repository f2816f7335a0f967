"""Promises for finitely many rows: against SciPy's exact tests, and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binom, binomtest, norm

from vicinal.guarantee import (
    Ranks,
    bounds,
    cut_for_coverage,
    cut_for_fpr,
    cut_for_risk,
    rank_for_rate,
    upper_bound,
)

TRIALS = 2000


def most_failures(delta):
    """Failures that a procedure with failure probability delta exceeds once in a thousand times."""
    return binom.ppf(0.999, TRIALS, delta)


@given(n=st.integers(1, 400), share=st.floats(0, 1), level=st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_bounds_are_those_of_clopper_and_pearson(n, share, level):
    k = round(share * n)
    low, high = bounds(k, n, level)
    exact = binomtest(k, n).proportion_ci(level, method="exact")
    assert (low, high) == pytest.approx((exact.low, exact.high), abs=1e-9)
    assert upper_bound(k, n, (1 - level) / 2) == pytest.approx(exact.high, abs=1e-9)


@given(data=st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=30))
def test_ranks_are_the_cuts_between_different_scores(data):
    scores, correct = np.array([s for s, _ in data], float), np.array([c for _, c in data])
    ranks = Ranks.of(scores, correct)
    values = sorted(set(scores), reverse=True)
    assert ranks.counts.tolist() == [int((scores >= v).sum()) for v in values]
    assert ranks.errors.tolist() == [int((~correct[scores >= v]).sum()) for v in values]
    for count in ranks.counts:
        assert (scores >= ranks.above(count)).sum() == count


def slow_cut(scores, correct, risk, delta):
    """The fallback procedure of the docstring, one test at a time."""
    n = len(scores)
    values = sorted(set(scores.tolist()), reverse=True)
    counts = [int((scores >= v).sum()) for v in values]
    shares = [(1 / 16, 1 / 16), (1 / 8, 2 / 16), (1 / 4, 12 / 16), (1 / 2, 1 / 16)]
    pending = [(f * n, part) for f, part in shares if (1 - risk) ** (f * n) <= delta * part]
    if not pending:
        pending = [(max(n / 2, np.log(delta) / np.log(1 - risk)), 1.0)]
    whole = sum(part for _, part in pending)
    kept, level = 0, 0.0
    for i, count in enumerate(counts):
        while pending and (count >= pending[0][0] or i == len(counts) - 1):
            level += delta * pending.pop(0)[1] / whole
        errors = int((~correct[scores >= values[i]]).sum())
        if level and binomtest(errors, count, risk, alternative="less").pvalue <= level:
            kept = count
        else:
            level = 0.0
    return kept


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 300),
    risk=st.sampled_from([0.02, 0.1, 0.3]),
    delta=st.sampled_from([0.05, 0.2]),
    ties=st.booleans(),
)
def test_the_sequence_of_tests_against_one_test_at_a_time(seed, n, risk, delta, ties):
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=n)
    correct = generator.random(n) < norm.cdf(1.0 + scores)
    scores = np.round(scores) if ties else scores
    cut = cut_for_risk(scores, correct, risk, delta)
    kept = slow_cut(scores, correct, risk, delta)
    assert (scores >= cut.value).sum() == kept
    assert cut.met == (kept > 0)


WORLDS = {
    "ordinary": lambda z: norm.cdf(1.3 + 1.3 * z),
    "accurate": lambda z: norm.cdf(2.2 + 1.2 * z),
    "hopeless": lambda z: np.full_like(z, 0.949),
    "wrong at the top": lambda z: np.where(z > 2.0, 0.6, norm.cdf(1.3 + 1.3 * z)),
    "crossing many times": lambda z: 0.95 + 0.045 * np.sin(9 * z),
}


def simulate(world, n, risk, delta, seed, ties=None):
    """How often the true risk of a cut is above the target, and how often there is a cut."""
    generator = np.random.default_rng(seed)
    grid = norm.ppf((np.arange(400_000) + 0.5) / 400_000)[::-1]  # the population, the highest score first
    chance = WORLDS[world](grid)
    values = grid if ties is None else np.round(grid * ties) / ties
    true_risk = np.cumsum(1 - chance) / np.arange(1, len(grid) + 1)
    failed = met = 0
    for _ in range(TRIALS):
        z = generator.normal(size=n)
        correct = generator.random(n) < WORLDS[world](z)
        cut = cut_for_risk(z if ties is None else np.round(z * ties) / ties, correct, risk, delta)
        if cut.met:
            met += 1
            accepted = np.searchsorted(-values, -cut.value, side="right")
            failed += true_risk[max(accepted, 1) - 1] > risk + 1e-5
    return failed, met


@pytest.mark.parametrize("world", WORLDS)
def test_the_true_risk_exceeds_the_target_no_more_often_than_delta(world):
    failed, met = simulate(world, n=600, risk=0.05, delta=0.1, seed=1)
    assert failed <= most_failures(0.1)
    if world in ("ordinary", "accurate"):
        assert met > 0.5 * TRIALS


def test_the_true_risk_with_ties_exceeds_the_target_no_more_often_than_delta():
    failed, met = simulate("ordinary", n=600, risk=0.05, delta=0.1, seed=2, ties=2)
    assert failed <= most_failures(0.1)
    assert met > 0.5 * TRIALS


def test_a_procedure_that_takes_the_best_cut_in_hindsight_would_be_caught():
    # the check can fail: without tests, the true risk exceeds the target about every other time
    generator = np.random.default_rng(3)
    failed = 0
    for _ in range(TRIALS):
        z = generator.normal(size=600)
        correct = generator.random(600) < WORLDS["ordinary"](z)
        order = np.argsort(-z)
        risks = np.cumsum(~correct[order]) / np.arange(1, 601)
        kept = np.flatnonzero(risks <= 0.05)
        if len(kept):
            above = np.linspace(z[order][kept[-1]], 8, 2000)
            mass = norm.pdf(above)
            failed += ((1 - WORLDS["ordinary"](above)) * mass).sum() / mass.sum() > 0.05
    assert failed > most_failures(0.1)


def test_the_smallest_risk_that_can_be_promised_holds_too():
    generator = np.random.default_rng(4)
    failed = unmet = 0
    for _ in range(TRIALS):
        correct = generator.random(200) < 0.7  # the score tells nothing: the true risk is 0.3 at every cut
        cut = cut_for_risk(generator.normal(size=200), correct, 0.05, 0.1)
        if not cut.met:
            unmet += 1
            assert cut.value == np.inf
            failed += cut.promised < 0.3
    assert unmet > 0.9 * TRIALS
    assert failed <= most_failures(0.1)


def test_at_5000_rows_the_cut_is_within_three_points_of_hindsight():
    # the best threshold for the population is known in closed form; an accurate network, as in production
    generator = np.random.default_rng(5)
    grid = norm.ppf((np.arange(400_000) + 0.5) / 400_000)[::-1]
    risks = np.cumsum(1 - WORLDS["accurate"](grid)) / np.arange(1, len(grid) + 1)
    best = np.flatnonzero(risks <= 0.05)[-1] / len(grid)
    lost = []
    for _ in range(100):
        z = generator.normal(size=5000)
        cut = cut_for_risk(z, generator.random(5000) < WORLDS["accurate"](z), 0.05, 0.05)
        lost.append(best - norm.sf(cut.value))
    assert 0.7 < best < 0.95
    assert np.mean(lost) < 0.03


@pytest.mark.parametrize(("n", "coverage", "delta"), [(100, 0.8, 0.05), (37, 0.95, 0.1), (2000, 0.5, 0.05)])
def test_coverage_is_promised_by_the_beta_distribution(n, coverage, delta):
    scores = np.random.default_rng(0).permutation(n).astype(float)
    cut = cut_for_coverage(scores, coverage, delta)
    kept = int((scores >= cut.value).sum())
    if cut.value == -np.inf:
        assert beta.sf(coverage, n, 1) < 1 - delta
        return
    assert beta.sf(coverage, kept, n - kept + 1) >= 1 - delta
    assert beta.sf(coverage, kept - 1, n - kept + 2) < 1 - delta


@pytest.mark.parametrize(("wrong", "fpr", "delta"), [(100, 0.2, 0.05), (40, 0.1, 0.1), (14, 0.2, 0.05)])
def test_accepted_errors_are_promised_by_the_beta_distribution(wrong, fpr, delta):
    scores = np.random.default_rng(0).permutation(wrong + 50).astype(float)
    correct = np.arange(wrong + 50) < 50
    cut = cut_for_fpr(scores, correct, fpr, delta)
    kept = int((scores[~correct] >= cut.value).sum())
    assert cut.met == (kept >= 0 and cut.value < np.inf)
    assert beta.cdf(fpr, kept + 1, wrong - kept) >= 1 - delta
    assert beta.cdf(fpr, kept + 2, wrong - kept - 1) < 1 - delta


def test_coverage_and_accepted_errors_fail_no_more_often_than_delta():
    generator = np.random.default_rng(6)
    coverage_failed = fpr_failed = alarms_failed = 0
    for _ in range(TRIALS):
        z = generator.normal(size=150)
        coverage_failed += norm.sf(cut_for_coverage(z, 0.8, 0.1).value) < 0.8
        fpr_failed += norm.sf(cut_for_fpr(z, np.arange(150) < 50, 0.2, 0.1).value) > 0.2
        alarms_failed += norm.cdf(np.sort(z)[rank_for_rate(150, 0.1, 0.1) - 1]) > 0.1
    for failed in (coverage_failed, fpr_failed, alarms_failed):
        assert failed <= most_failures(0.1)
        assert failed > 0.02 * TRIALS  # and it is tight


def test_too_few_errors_promise_nothing():
    assert cut_for_fpr(np.arange(10.0), np.ones(10, bool), 0.5, 0.05) == cut_for_fpr(
        np.arange(3.0), np.ones(3, bool), 0.1, 0.2
    )
    cut = cut_for_fpr(np.arange(10.0), np.arange(10) >= 5, 0.1, 0.05)
    assert not cut.met
    assert cut.promised == pytest.approx(1 - 0.05 ** (1 / 5))
