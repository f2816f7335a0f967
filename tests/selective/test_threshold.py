"""Thresholds as users meet them: what they promise, what they report, and what is refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from mapie.risk_control import BinaryClassificationController
from scipy.stats import binom, norm
from sklearn.datasets import load_digits

from vicinal import metrics
from vicinal.bank import Bank
from vicinal.errors import InputError
from vicinal.held_out import Caution
from vicinal.selective import Fusion, parts, threshold_at
from vicinal.values import Embeddings, Trust


def calibration(n=2000, seed=0):
    """Scores and right predictions of a network with an accuracy of about 0.93."""
    generator = np.random.default_rng(seed)
    z = generator.normal(size=n)
    return z, generator.random(n) < norm.cdf(2.2 + 1.2 * z)


def test_what_is_reported_is_so():
    scores, correct = calibration()
    found = threshold_at(Trust("distance", scores, scores), correct, risk=0.05)
    accepted = scores >= found.value
    assert found.accept(Trust("distance", scores, scores)).tolist() == accepted.tolist()
    assert found.coverage == accepted.mean()
    assert found.risk == (~correct[accepted]).mean()
    assert found.fpr == (accepted & ~correct).sum() / (~correct).sum()
    assert (found.n, found.errors, found.score, found.goal) == (2000, (~correct).sum(), "distance", "risk")
    assert found.hindsight == metrics.coverage_at_risk(scores, correct, 0.05)
    rights = correct.sum()
    assert found.oracle == min(1.0, max(m for m in range(2001) if max(0, m - rights) <= 0.05 * m) / 2000)
    assert found.coverage <= found.hindsight <= found.oracle
    assert found.met
    assert found.promised == 0.05
    assert str(found).startswith("distance of at least")
    assert f"it accepts {found.coverage:.1%}" in str(found)


@pytest.mark.parametrize(("goal", "target"), [("coverage", 0.8), ("fpr", 0.2)])
def test_hindsight_and_oracle_of_the_other_goals(goal, target):
    scores, correct = calibration(400)
    found = threshold_at(scores, correct, **{goal: target})
    assert found.accept(scores).mean() == found.coverage
    order = np.argsort(-scores)
    for known, ranked in ((found.hindsight, correct[order]), (found.oracle, np.sort(correct)[::-1])):
        share = [m / 400 for m in range(401)]
        if goal == "coverage":
            assert known == min(s for s in share if s >= target)
        else:
            wrong = (~correct).sum()
            assert known == max(m / 400 for m in range(401) if (~ranked[:m]).sum() <= target * wrong)
    assert (found.coverage >= target) if goal == "coverage" else (found.fpr <= target)


def test_the_promise_holds_on_new_rows():
    failed = 0
    for seed in range(500):
        threshold = threshold_at(*calibration(400, seed), risk=0.05, delta=0.1)
        failed += true_risk(threshold.value) > 0.05
    assert failed <= binom.ppf(0.999, 500, 0.1)


def test_where_no_threshold_can_promise_it_says_what_can_be():
    generator = np.random.default_rng(0)
    scores, correct = generator.normal(size=500), generator.random(500) < 0.6
    with pytest.warns(Caution, match="no threshold of 'score' can promise a risk of at most 0.05: nothing is accepted"):
        found = threshold_at(scores, correct, risk=0.05)
    assert not found.met
    assert found.value == np.inf
    assert (found.coverage, found.risk, found.fpr) == (0, 0, 0)
    assert not found.accept(scores).any()
    assert 0.4 < found.promised < 0.6
    assert "no threshold can promise a risk of at most 0.05 with 95% confidence" in str(found)
    assert f"the smallest is {found.promised:.4g}" in str(found)
    assert threshold_at(scores, correct, risk=found.promised + 0.02).met


@pytest.mark.parametrize("n", [40, 400, 4000])
def test_what_can_be_promised_does_not_hang_on_what_was_asked_for(n):
    scores, correct = calibration(n)
    with pytest.warns(Caution, match="no threshold"):
        found = [threshold_at(scores, correct, risk=risk) for risk in (1e-9, 1e-4)]
    assert found[0].promised == found[1].promised < {40: 0.5, 400: 0.08, 4000: 0.01}[n]
    assert threshold_at(scores, correct, risk=1.0001 * found[0].promised).met


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda s, c: threshold_at(s, c), "exactly one of the three, got none"),
        (lambda s, c: threshold_at(s, c, risk=0.1, fpr=0.1), "exactly one of the three, got risk, fpr"),
        (lambda s, c: threshold_at(s, c, risk=0.0), "risk: expected a number in (0, 1), got 0.0"),
        (lambda s, c: threshold_at(s, c, coverage=1.0), "coverage: expected a number in (0, 1), got 1.0"),
        (lambda s, c: threshold_at(s, c, risk=5), "risk: expected a number in (0, 1), got 5"),
        (lambda s, c: threshold_at(s, c, risk=0.1, delta=0.0), "delta: expected a number in (0, 1)"),
        (lambda s, c: threshold_at(s, c[1:], risk=0.1), "trust: expected 2999, one for each prediction, got 3000"),
        (lambda s, c: threshold_at(s, np.full(3000, 0.5), risk=0.1), "correct: expected booleans, or 0 and 1, got 0.5"),
        (lambda s, c: threshold_at(np.append(s[1:], np.nan), c, risk=0.1), "finite numbers, got nan in row 2999"),
    ],
)
def test_bad_input_is_refused(make, words):
    scores, correct = calibration(3000)
    with pytest.raises(InputError) as caught:
        make(scores, correct)
    assert words in str(caught.value)


def test_a_threshold_is_for_its_own_score():
    scores, correct = calibration(1000)
    found = threshold_at(Trust("margin", scores, scores), correct, risk=0.1)
    with pytest.raises(InputError, match="expected the score 'margin', for which the threshold is, got 'energy'"):
        found.accept(Trust("energy", scores, scores))


def test_few_rows_no_errors_and_only_errors():
    few = "20 calibration rows are fewer than 30: the promise holds, but says little"
    one_sided = "all {} calibration rows are {}: they do not show whether 'score' ranks errors last"
    none = "no calibration row is wrong: nothing can be promised of wrong predictions; nothing is accepted"
    scores = np.arange(400.0)

    def cautious(n, correct, **goal):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = threshold_at(scores[:n], correct[:n], **goal)
        assert {one.category for one in caught} == {Caution}
        assert tuple(str(one.message) for one in caught) == found.notes
        return found

    mixed, right, wrong = np.arange(400) > 0, np.ones(400, bool), np.zeros(400, bool)
    assert cautious(20, mixed, coverage=0.5).notes == (few,)
    found = cautious(20, right, risk=0.2)
    assert (found.met, found.notes) == (True, (few, one_sided.format(20, "right")))
    found = cautious(400, right, risk=0.05)  # 400 rows without an error promise 5 %
    assert (found.coverage, found.met, found.value) == (1.0, True, -np.inf)
    assert found.notes == (one_sided.format(400, "right"),)
    found = cautious(400, right, fpr=0.1)
    assert (found.met, found.value, found.notes[1:]) == (False, np.inf, (none,))
    found = cautious(400, wrong, risk=0.05)
    assert (found.promised, found.value) == (1.0, np.inf)
    assert "the smallest that can be promised from these rows is 1" in found.notes[1]
    assert cautious(400, wrong, coverage=0.5).notes == (one_sided.format(400, "wrong"),)
    assert cautious(400, wrong, fpr=0.5).fpr <= 0.5


def test_the_order_of_rows_does_not_matter():
    scores, correct = calibration(1500)
    scores = np.round(scores, 1)  # with ties
    order = np.random.default_rng(1).permutation(1500)
    for goal in ("risk", "coverage", "fpr"):
        first = threshold_at(scores, correct, **{goal: 0.3})
        assert threshold_at(scores[order], correct[order], **{goal: 0.3}) == first


@pytest.mark.filterwarnings("ignore:Fixed sequence testing requires a monotonic risk")
@pytest.mark.parametrize("method", ["bonferroni_holm", "fixed_sequence"])
def test_mapies_risk_control_on_the_same_rows_is_as_safe_and_keeps_no_more(method):
    ours_kept, ours_failed, theirs_kept, theirs_failed = [], 0, [], 0
    for seed in range(40):
        scores, correct = calibration(1000, seed)
        controller = BinaryClassificationController(
            lambda x: np.stack([1 - x, x], axis=1),  # MAPIE wants probabilities: any increasing map to (0, 1)
            "precision",
            target_level=0.95,
            confidence_level=0.9,
            best_predict_param_choice="recall",
            list_predict_params=np.linspace(0.9, 0, 91),  # begins where a tenth of the rows is accepted
            fwer_method=method,
        )
        controller.calibrate(norm.cdf(scores), correct.astype(int))
        found = controller.best_predict_param
        theirs = np.inf if found is None else norm.ppf(found)
        ours = threshold_at(scores, correct, risk=0.05, delta=0.1).value
        for value, kept in ((ours, ours_kept), (theirs, theirs_kept)):
            kept.append(norm.sf(value))
        ours_failed += true_risk(ours) > 0.05
        theirs_failed += true_risk(theirs) > 0.05
    assert ours_failed <= binom.ppf(0.999, 40, 0.1)
    assert theirs_failed <= binom.ppf(0.999, 40, 0.1)
    assert 0.5 < np.mean(theirs_kept) <= np.mean(ours_kept)


def true_risk(value):
    """Of the world of ``calibration``, above a threshold."""
    z = np.linspace(max(value, -8), 8, 4000)
    mass = norm.pdf(z)
    return 0.0 if value == np.inf else float(((1 - norm.cdf(2.2 + 1.2 * z)) * mass).sum() / mass.sum())


def digits(seed):
    """A crude classifier of digits: what it trusts, fused, and what is right, on validation and on test."""
    data = load_digits()
    vectors, labels = data.data / 16, data.target
    train, fit, validation, test = np.split(np.random.default_rng(seed).permutation(len(labels)), [600, 800, 1300])
    centres = np.stack([vectors[train][labels[train] == digit].mean(axis=0) for digit in range(10)])
    bank = Bank(vectors[train], labels[train])

    def said(rows):
        logits = -((vectors[rows, None] - centres) ** 2).sum(axis=2)
        return Embeddings(vectors[rows], logits, labels[rows])

    fusion = Fusion.fit(parts(bank, said(fit), k=10), said(fit).correct)
    return [(fusion(parts(bank, said(rows), k=10)), said(rows).correct) for rows in (validation, test)]


def test_on_digits_thresholds_from_validation_hold_on_test():
    target, delta, kept, failed, risks = 0.02, 0.1, [], 0, []
    for seed in range(20):
        (trust, right), (fresh, truth) = digits(seed)
        threshold = threshold_at(trust, right, risk=target, delta=delta)
        accepted = threshold.accept(fresh)
        kept.append(accepted.mean() / metrics.coverage_at_risk(fresh.log_odds, truth, target))
        wrong = int((accepted & ~truth).sum())
        risks.append(wrong / max(1, accepted.sum()))
        # the true risk is not known, but bounded from below: it is above the target where that many are too many
        failed += binom.sf(wrong - 1, int(accepted.sum()), target) < 0.05
    assert failed <= binom.ppf(0.999, 20, delta)
    assert np.mean(risks) < target
    assert np.mean(kept) > 0.9  # of what the best threshold known in hindsight keeps
