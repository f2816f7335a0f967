"""Every metric against a second source: scikit-learn, torchmetrics, recorded runs of others, or a slow loop."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score, roc_curve
from torchmetrics.functional.classification import binary_calibration_error

from vicinal import checks, metrics
from vicinal.errors import InputError, ShapeError
from vicinal.metrics import METRICS, Points
from vicinal.metrics.bootstrap import Judge, Samples, _sizes, _weights, bootstrap

ORDER: dict[str, Callable[[Any, Any], float]] = {
    "auroc": metrics.auroc,
    "aupr_success": metrics.aupr_success,
    "aupr_error": metrics.aupr_error,
    "fpr_at_95_tpr": metrics.fpr_at_95_tpr,
    "aurc": metrics.aurc,
    "e_aurc": metrics.e_aurc,
    "augrc": metrics.augrc,
    "risk_at_coverage": lambda scores, correct: metrics.risk_at_coverage(scores, correct, 0.8),
    "coverage_at_risk": lambda scores, correct: metrics.coverage_at_risk(scores, correct, 0.05),
}
CALIBRATION: dict[str, Callable[[Any, Any], float]] = {"ece": metrics.ece, "brier": metrics.brier}

# Twelve predictions without ties, and what others said of them (see test_recorded_...).
SCORES = np.array([0.91, 0.13, 0.58, 0.77, 0.42, 0.99, 0.05, 0.66, 0.31, 0.84, 0.23, 0.72])
CORRECT = np.array([1, 0, 1, 0, 1, 1, 0, 1, 0, 1, 1, 1], bool)

Judged = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


@st.composite
def judged(draw: st.DrawFn, *, both: bool = False) -> Judged:
    """Scores with many ties, and which predictions are right."""
    n = draw(st.integers(2 if both else 1, 40))
    scores = draw(st.lists(st.integers(-4, 4) | st.floats(-1e6, 1e6), min_size=n, max_size=n))
    correct = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    assume(not both or len(set(correct)) == 2)
    return np.array(scores, float), np.array(correct)


def world(seed: int, rights: int, wrongs: int, separation: float = 1.0) -> Judged:
    """Two normals: AUROC is Φ(separation / √2)."""
    generator = np.random.default_rng(seed)
    scores = np.r_[generator.normal(separation, 1, rights), generator.normal(0, 1, wrongs)]
    return scores, np.arange(rights + wrongs) < rights


def curve(scores: Any, correct: Any) -> list[tuple[int, int]]:
    """(accepted, wrong among them) for every threshold, by counting."""
    found = []
    for threshold in sorted(set(scores), reverse=True):
        inside = [right for score, right in zip(scores, correct, strict=True) if score >= threshold]
        found.append((len(inside), sum(not right for right in inside)))
    return found


def loop_aurc(scores: Any, correct: Any) -> float:
    n, area = len(scores), 0.0
    before, risk = 0, None
    for accepted, wrong in curve(scores, correct):
        now = wrong / accepted
        area += (accepted - before) / n * (now + (now if risk is None else risk)) / 2
        before, risk = accepted, now
    return area


def loop_augrc(scores: Any, correct: Any) -> float:
    n, area = len(scores), 0.0
    points = [(0, 0), *curve(scores, correct)]
    for (before, few), (accepted, wrong) in pairwise(points):
        area += (accepted - before) / n * (few + wrong) / 2 / n
    return area


class TestOrder:
    @given(judged(both=True))
    @settings(deadline=None)
    def test_auroc_and_aupr_are_those_of_scikit_learn(self, case: Judged) -> None:
        scores, correct = case
        assert metrics.auroc(scores, correct) == pytest.approx(roc_auc_score(correct, scores), abs=1e-12)
        assert metrics.aupr_success(scores, correct) == pytest.approx(average_precision_score(correct, scores))
        assert metrics.aupr_error(scores, correct) == pytest.approx(average_precision_score(~correct, -scores))

    @given(judged(both=True))
    @settings(deadline=None)
    def test_fpr_is_the_first_of_the_roc_curve_with_enough_true_positives(self, case: Judged) -> None:
        scores, correct = case
        fpr, tpr, _ = roc_curve(correct, scores, drop_intermediate=False)
        assert metrics.fpr_at_95_tpr(scores, correct) == pytest.approx(fpr[tpr >= 0.95][0])

    def test_fpr_takes_exactly_95_percent_as_enough(self) -> None:
        scores, correct = np.arange(40)[::-1], np.r_[np.ones(19), np.zeros(10), 1, np.zeros(10)]
        assert metrics.fpr_at_95_tpr(scores, correct) == 0.0

    @given(judged())
    @settings(deadline=None)
    def test_areas_are_those_of_a_slow_loop(self, case: Judged) -> None:
        scores, correct = case
        assert metrics.aurc(scores, correct) == pytest.approx(loop_aurc(scores, correct), abs=1e-12)
        assert metrics.augrc(scores, correct) == pytest.approx(loop_augrc(scores, correct), abs=1e-12)
        error = 1 - correct.mean()
        best = error + ((1 - error) * math.log(1 - error) if error < 1 else 0)
        assert metrics.e_aurc(scores, correct) == pytest.approx(loop_aurc(scores, correct) - best, abs=1e-12)

    @given(judged(both=True))
    @settings(deadline=None)
    def test_augrc_follows_from_auroc_and_accuracy(self, case: Judged) -> None:
        scores, correct = case
        accuracy = correct.mean()
        expected = (1 - roc_auc_score(correct, scores)) * accuracy * (1 - accuracy) + (1 - accuracy) ** 2 / 2
        assert metrics.augrc(scores, correct) == pytest.approx(expected, abs=1e-12)

    def test_augrc_of_ties_is_the_mean_over_all_ways_to_break_them(self) -> None:
        correct = np.array([1, 0, 0, 1, 1, 0])
        broken = [metrics.augrc([9, *order, 0], correct) for order in permutations([1, 2, 3, 4])]
        assert metrics.augrc([9, 5, 5, 5, 5, 0], correct) == pytest.approx(np.mean(broken))

    def test_recorded_areas_of_fd_shifts(self) -> None:
        """Of its commit 8ac4f6d, times 1,000 as it shows them."""
        assert 1000 * metrics.aurc(SCORES, CORRECT) == pytest.approx(145.51166426166427)
        assert 1000 * metrics.augrc(SCORES, CORRECT) == pytest.approx(97.22222222222223)

    def test_recorded_results_of_torch_uncertainty(self) -> None:
        """Of its version 0.13.0, in float32; its areas leave out the piece up to 1/n and divide by 1 - 1/n."""
        n, first_risk = len(SCORES), 0.0
        theirs = {"aurc": 0.15873999363181632, "augrc": 0.10606060394711592}
        for name, theirs_of in theirs.items():
            whole = theirs_of * (1 - 1 / n) + first_risk / n
            assert ORDER[name](SCORES, CORRECT) == pytest.approx(whole, abs=1e-7)
        assert metrics.coverage_at_risk(SCORES, CORRECT, 0.2) == pytest.approx(0.8333333134651184)
        assert metrics.risk_at_coverage(SCORES, CORRECT, 0.6) == pytest.approx(0.125)

    @given(judged(), st.integers(1, 100), st.integers(0, 100))
    @settings(deadline=None)
    def test_risk_and_coverage_are_those_of_the_thresholds(self, case: Judged, percent: int, risk: int) -> None:
        scores, correct = case
        points = curve(scores, correct)
        enough = [wrong / accepted for accepted, wrong in points if 100 * accepted >= percent * len(scores)]
        assert metrics.risk_at_coverage(scores, correct, percent / 100) == pytest.approx(enough[0])
        safe = [accepted / len(scores) for accepted, wrong in points if 100 * wrong <= risk * accepted]
        assert metrics.coverage_at_risk(scores, correct, risk / 100) == pytest.approx(max(safe, default=0))

    def test_every_percentage_of_a_hundred_accepts_that_many(self) -> None:
        scores, correct = np.arange(100)[::-1], np.arange(100) % 3 > 0
        for percent in range(1, 101):
            expected = (~correct[:percent]).mean()
            assert metrics.risk_at_coverage(scores, correct, percent / 100) == expected

    @given(judged())
    @settings(deadline=None)
    def test_the_curve_is_the_one_whose_area_is_aurc(self, case: Judged) -> None:
        scores, correct = case
        found = metrics.risk_coverage(scores, correct)
        expected = curve(scores, correct)
        assert found.coverage == pytest.approx([accepted / len(scores) for accepted, _ in expected])
        assert found.risk == pytest.approx([wrong / accepted for accepted, wrong in expected])
        assert found.thresholds.tolist() == sorted(set(scores), reverse=True)

    @pytest.mark.parametrize("name", ORDER)
    @given(case=judged(both=True), seed=st.integers(0, 99))
    @settings(max_examples=30, deadline=None)
    def test_only_the_order_counts(self, name: str, case: Judged, seed: int) -> None:
        scores, correct = case
        value = ORDER[name](scores, correct)
        rows = np.random.default_rng(seed).permutation(len(scores))
        assert ORDER[name](scores[rows], correct[rows]) == value
        _, ranks = np.unique(scores, return_inverse=True)
        assert ORDER[name](np.exp(ranks / 9), correct) == value
        assert ORDER[name](ranks.astype(np.float16) - 7, correct.astype(int)) == value

    @given(judged(both=True))
    @settings(deadline=None)
    def test_larger_is_more_trustworthy(self, case: Judged) -> None:
        """A perfect order is at least as good as any other, by each metric in its own direction."""
        correct = case[1]
        scores = case[0].argsort().argsort()  # without ties: few distinct scores flatter AURC
        best = correct - np.arange(len(scores)) / 100
        for name, metric in METRICS.items():
            if metric.scale == "order":
                perfect, found = ORDER[name](best, correct), ORDER[name](scores, correct)
                assert (perfect - found if metric.larger else found - perfect) >= -1e-12, name

    def test_few_distinct_scores_flatter_aurc(self) -> None:
        """A property of its definition, told in its docstring: a straight line cuts the corner of the curve."""
        correct = np.arange(1000) < 500
        ordered, coarse = metrics.aurc(-np.arange(1000), correct), metrics.aurc(correct, correct)
        assert ordered == pytest.approx(0.5 + 0.5 * math.log(0.5), abs=1e-3)
        assert coarse == 0.125
        assert metrics.augrc(-np.arange(1000), correct) == metrics.augrc(correct, correct) == 0.125

    def test_a_perfect_score(self) -> None:
        correct = np.r_[np.ones(900), np.zeros(100)]
        found = {name: measure(correct - np.arange(1000) / 1e4, correct) for name, measure in ORDER.items()}
        assert found["auroc"] == found["aupr_success"] == found["aupr_error"] == 1
        assert found["fpr_at_95_tpr"] == found["risk_at_coverage"] == 0
        assert abs(found["e_aurc"]) <= 1 / 1000
        assert found["augrc"] == pytest.approx(0.1**2 / 2)
        assert found["coverage_at_risk"] == pytest.approx(math.floor(900 / 0.95) / 1000)

    @pytest.mark.parametrize(("right", "aurc", "augrc", "coverage"), [(1, 0.0, 0.0, 1.0), (0, 1.0, 0.5, 0.0)])
    def test_all_right_and_all_wrong(self, right: int, aurc: float, augrc: float, coverage: float) -> None:
        scores, correct = np.arange(8.0), np.full(8, right)
        assert metrics.aurc(scores, correct) == aurc
        assert metrics.augrc(scores, correct) == augrc
        assert metrics.e_aurc(scores, correct) == 0.0
        assert metrics.risk_at_coverage(scores, correct, 0.3) == 1 - right
        assert metrics.coverage_at_risk(scores, correct, 0.3) == coverage
        for name in ("auroc", "fpr_at_95_tpr", "aupr_error" if right else "aupr_success"):
            with pytest.raises(InputError, match=rf"{name}: expected at least one .* got {8 * right} right"):
                ORDER[name](scores, correct)
        defined = metrics.aupr_success if right else metrics.aupr_error
        assert defined(scores, correct) == 1.0

    def test_one_prediction(self) -> None:
        assert metrics.aurc([3.0], [False]) == 1.0
        assert metrics.augrc([3.0], [False]) == 0.5


class TestCalibration:
    @given(st.lists(st.tuples(st.floats(0, 0.999), st.booleans()), min_size=1, max_size=60), st.integers(1, 20))
    @settings(deadline=None)
    def test_ece_is_that_of_torchmetrics(self, case: list[tuple[float, bool]], bins: int) -> None:
        confidence, correct = np.array([c for c, _ in case]), np.array([right for _, right in case])
        edges = np.abs(confidence[:, None] * bins - np.arange(bins + 1)).min(axis=1)
        assume((edges > 1e-6).all())  # there the rounding of the edges decides, and ours is tested below
        theirs = binary_calibration_error(torch.tensor(confidence), torch.tensor(correct.astype(int)), n_bins=bins)
        assert metrics.ece(confidence, correct, bins) == pytest.approx(float(theirs), abs=1e-9)

    @given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60))
    @settings(deadline=None)
    def test_brier_is_that_of_scikit_learn(self, case: list[tuple[float, bool]]) -> None:
        confidence, correct = np.array([c for c, _ in case]), np.array([right for _, right in case])
        theirs = brier_score_loss(correct, confidence, labels=[False, True])
        assert metrics.brier(confidence, correct) == pytest.approx(theirs, abs=1e-12)

    @pytest.mark.parametrize("bins", [1, 2, 15, 100])
    def test_all_sure_and_all_wrong_gives_one(self, bins: int) -> None:
        assert metrics.ece(np.ones(7), np.zeros(7), bins) == 1.0
        assert metrics.ece(np.zeros(7), np.ones(7), bins) == 1.0

    def test_sure_ones_share_the_last_bin_with_nearly_sure_ones(self) -> None:
        assert metrics.ece([1.0, 0.9], [0, 1], bins=2) == pytest.approx(0.45)  # apart they would give 0.55

    @pytest.mark.parametrize(("edge", "bins"), [(0.3, 10), (0.29, 100), (0.7, 10), (0.6, 5), (1 / 3, 3)])
    def test_a_confidence_on_an_edge_belongs_to_the_upper_bin(self, edge: float, bins: int) -> None:
        below, above = edge - 0.2 / bins, edge + 0.2 / bins
        apart = metrics.ece([edge, below], [1, 0], bins)
        assert apart == pytest.approx((1 - edge + below) / 2)
        together = metrics.ece([edge, above], [1, 0], bins)
        assert together == pytest.approx(abs(1 - edge - above) / 2)

    @pytest.mark.parametrize("measure", CALIBRATION.values(), ids=CALIBRATION)
    @pytest.mark.parametrize("wrong", [-0.01, 1.01, np.nan, np.inf])
    def test_what_is_no_probability_is_refused(self, measure: Callable[..., float], wrong: float) -> None:
        with pytest.raises(InputError, match=r"confidence: expected .* in row 1 \(1 such rows\)"):
            measure([0.5, wrong], [True, False])


class TestInput:
    @pytest.mark.parametrize("measure", [*ORDER.values(), metrics.risk_coverage], ids=[*ORDER, "risk_coverage"])
    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    def test_scores_that_are_not_finite_are_refused(self, measure: Callable[..., float], bad: float) -> None:
        with pytest.raises(InputError, match=rf"scores: expected finite numbers, got {bad} in row 2 \(2 such rows\)"):
            measure([0.1, 0.2, bad, bad], [True, False, True, False])

    @pytest.mark.parametrize(
        ("scores", "correct", "message"),
        [
            ([], [], "scores: expected shape .* got \\(0,\\)"),
            ([[1.0, 2.0]], [True], "scores: expected shape .* got \\(1, 2\\)"),
            ([1.0, 2.0], [True], "correct: expected 2, one for each prediction, got 1"),
            ([1.0, 2.0], [0, 2], "correct: expected booleans, or 0 and 1, got 2 in row 1"),
            ([1.0, 2.0], [0.0, np.nan], "correct: expected booleans, or 0 and 1, got nan in row 1"),
            (["a", "b"], [True, False], "scores: expected an array of numbers"),
        ],
    )
    def test_what_is_no_score_or_no_flag_is_refused(self, scores: Any, correct: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            metrics.auroc(scores, correct)

    def test_lengths_are_a_matter_of_shape(self) -> None:
        with pytest.raises(ShapeError):
            checks.numbers([1.0], "scores", rows=2)

    def test_tensors_and_integers_will_do(self) -> None:
        scores = torch.tensor([3.0, 2.0, 1.0], requires_grad=True)
        assert metrics.auroc(scores, torch.tensor([True, True, False])) == 1.0
        assert metrics.auroc([3, 2, 1], [1, 1, 0]) == 1.0

    @pytest.mark.parametrize("coverage", [0.0, -0.1, 1.1, "0.5", True])
    def test_coverage_is_a_share_above_0(self, coverage: Any) -> None:
        with pytest.raises(InputError, match=r"coverage: expected a number in \(0, 1\]"):
            metrics.risk_at_coverage([1.0, 2.0], [True, False], coverage)

    @pytest.mark.parametrize("risk", [-0.1, 1.1, None])
    def test_risk_is_a_share(self, risk: Any) -> None:
        with pytest.raises(InputError, match=r"risk: expected a number in \[0, 1\]"):
            metrics.coverage_at_risk([1.0, 2.0], [True, False], risk)

    @pytest.mark.parametrize("bins", [0, -1, 1.5])
    def test_bins_are_whole(self, bins: Any) -> None:
        with pytest.raises(InputError, match="bins: expected a whole number from 1 to"):
            metrics.ece([0.5], [True], bins)

    def test_a_misspelt_metric_is_named(self) -> None:
        with pytest.raises(InputError, match="did you mean 'auroc'"):
            metrics.interval("aurok", [1.0, 2.0], [True, False])

    @pytest.mark.parametrize("bad", [{"samples": 0}, {"seed": -1}, {"level": 0.0}, {"level": 95}])
    def test_the_bootstrap_checks_its_settings(self, bad: dict[str, Any]) -> None:
        with pytest.raises(InputError, match=f"{next(iter(bad))}: expected"):
            metrics.interval("auroc", [1.0, 2.0], [True, False], **bad)
        with pytest.raises(InputError, match=f"{next(iter(bad))}: expected"):
            metrics.compare("auroc", [1.0, 2.0], [2.0, 1.0], [True, False], **bad)

    def test_an_interval_of_what_is_undefined_is_refused(self) -> None:
        with pytest.raises(InputError, match="auroc: expected at least one right and one wrong prediction"):
            metrics.interval("auroc", [1.0, 2.0], [True, True])
        with pytest.raises(InputError, match="second: expected 2, one for each prediction, got 3"):
            metrics.compare("aurc", [1.0, 2.0], [1.0, 2.0, 3.0], [True, False])


class TestBootstrap:
    @given(case=judged(both=True), seed=st.integers(0, 999))
    @settings(max_examples=40, deadline=None)
    def test_a_weighting_is_an_explicit_resampling(self, case: Judged, seed: int) -> None:
        scores, correct = case
        confidence = 1 / (1 + np.exp(-np.clip(scores, -9, 9)))
        weights = _weights(correct, 3, np.random.default_rng(seed))
        found = Judge.of(scores, correct, confidence).measure(list(METRICS), Points(), weights)
        for sample, counts in enumerate(weights):
            rows = np.repeat(np.arange(len(scores)), counts)
            s, c = scores[rows], correct[rows]
            values = dict(zip(METRICS, found[:, sample], strict=True))
            assert values["auroc"] == pytest.approx(roc_auc_score(c, s), abs=1e-12)
            assert values["aupr_success"] == pytest.approx(average_precision_score(c, s))
            assert values["aupr_error"] == pytest.approx(average_precision_score(~c, -s))
            assert values["aurc"] == pytest.approx(loop_aurc(s, c), abs=1e-12)
            for name, measure in ORDER.items():
                assert values[name] == pytest.approx(measure(s, c), abs=1e-12), name
            for name, measure in CALIBRATION.items():
                assert values[name] == pytest.approx(measure(confidence[rows], c), abs=1e-12), name

    def test_samples_are_drawn_from_the_right_and_the_wrong_apart(self) -> None:
        correct = np.arange(50) % 5 > 0
        weights = _weights(correct, 4000, np.random.default_rng(0))
        assert set(weights[:, correct].sum(axis=1)) == {40}
        assert set(weights[:, ~correct].sum(axis=1)) == {10}
        for stratum in (correct, ~correct):
            m = stratum.sum()
            assert np.abs(weights[:, stratum].mean(axis=0) - 1).max() < 5 * math.sqrt(1 / 4000)
            assert weights[:, stratum].var() == pytest.approx(1 - 1 / m, rel=0.03)

    @pytest.mark.parametrize(("n", "samples"), [(10, 7), (40_000, 5), (65_536, 3), (100_000, 2)])
    def test_the_blocks_add_up(self, n: int, samples: int) -> None:
        assert sum(_sizes(n, samples)) == samples
        assert min(_sizes(n, samples)) >= 1

    def test_blocks_are_put_together_in_order(self) -> None:
        """Two blocks of samples are those that the generator draws one after the other."""
        scores, correct = world(0, 25_000, 5_000)
        sizes = _sizes(30_000, 5)
        assert sizes == [2, 2, 1]
        found = bootstrap([Judge.of(scores, correct)], correct, ["auroc"], samples=5, seed=3)
        generator = np.random.default_rng(3)
        weights = np.concatenate([_weights(correct, size, generator) for size in sizes])
        expected = [roc_auc_score(correct, scores, sample_weight=row) for row in weights]
        assert found.replicates[0, 0] == pytest.approx(expected)

    def test_the_interval_is_that_of_the_percentiles(self) -> None:
        scores, correct = world(1, 60, 30)
        generator = np.random.default_rng(7)
        drawn = [roc_auc_score(correct, scores, sample_weight=row) for row in _weights(correct, 500, generator)]
        found = metrics.interval("auroc", scores, correct, samples=500, seed=7, level=0.8)
        assert found.value == metrics.auroc(scores, correct)
        assert (found.low, found.high) == pytest.approx(tuple(np.quantile(drawn, [0.1, 0.9])))

    def test_the_interval_of_the_ece_is_reflected_and_stays_in_bounds(self) -> None:
        confidence, correct = np.linspace(0.2, 0.95, 80), world(2, 50, 30)[1]
        generator = np.random.default_rng(7)
        rows = [np.repeat(np.arange(80), counts) for counts in _weights(correct, 500, generator)]
        drawn = [metrics.ece(confidence[chosen], correct[chosen]) for chosen in rows]
        value = metrics.ece(confidence, correct)
        low, high = np.quantile(drawn, [0.025, 0.975])
        found = metrics.interval("ece", confidence, correct, samples=500, seed=7)
        assert (found.low, found.high) == pytest.approx((2 * value - high, 2 * value - low))
        values, replicates = np.array([[0.9], [0.1]]), np.array([[[1.2, 0.8]], [[-0.3, 0.2]]])
        fixed = Samples(("ece",), values, replicates)
        assert fixed.interval(0, 0, 0.999).high == 1.0
        assert fixed.interval(1, 0, 0.999).low == 0.0

    def test_the_seed_decides(self) -> None:
        scores, correct = world(3, 60, 30)
        first, again, other = (metrics.interval("aurc", scores, correct, samples=50, seed=s) for s in (1, 1, 2))
        assert first == again
        assert first.value == other.value
        assert (first.low, first.high) != (other.low, other.high)

    def test_settings_reach_their_metrics(self) -> None:
        scores, correct = world(4, 60, 30)
        sure = 1 / (1 + np.exp(-scores))
        found = metrics.interval("risk_at_coverage", scores, correct, samples=5, coverage=0.3).value
        assert found == metrics.risk_at_coverage(scores, correct, 0.3)
        found = metrics.interval("coverage_at_risk", scores, correct, samples=5, risk=0.2).value
        assert found == metrics.coverage_at_risk(scores, correct, 0.2)
        assert metrics.interval("ece", sure, correct, samples=5, bins=3).value == metrics.ece(sure, correct, 3)

    def test_both_scores_see_the_same_samples(self) -> None:
        """Two scores with the same order never differ, however much each varies."""
        scores, correct = world(5, 60, 30)
        found = metrics.compare("auroc", scores, np.exp(scores), correct, samples=200)
        assert (found.difference, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)

    def test_the_difference_is_that_of_explicit_samples(self) -> None:
        first, correct = world(6, 60, 30, 1.5)
        second, _ = world(7, 60, 30, 0.8)
        weights = _weights(correct, 300, np.random.default_rng(5))
        drawn = np.array(
            [
                roc_auc_score(correct, first, sample_weight=row) - roc_auc_score(correct, second, sample_weight=row)
                for row in weights
            ]
        )
        found = metrics.compare("auroc", first, second, correct, samples=300, seed=5, level=0.9)
        assert found.difference == pytest.approx(roc_auc_score(correct, first) - roc_auc_score(correct, second))
        assert (found.low, found.high) == pytest.approx(tuple(np.quantile(drawn, [0.05, 0.95])))
        assert found.p == pytest.approx(2 * (min((drawn <= 0).sum(), (drawn >= 0).sum()) + 1) / 301)
        swapped = metrics.compare("auroc", second, first, correct, samples=300, seed=5, level=0.9)
        assert (swapped.difference, swapped.low, swapped.high, swapped.p) == pytest.approx(
            (-found.difference, -found.high, -found.low, found.p)
        )
        assert (-found).difference == -found.difference
        assert ((-found).low, (-found).high, (-found).p) == (-found.high, -found.low, found.p)

    def test_the_smallest_p_is_what_the_samples_can_tell(self) -> None:
        correct = np.arange(100) < 60
        found = metrics.compare("auroc", correct, ~correct, correct, samples=99)
        assert found.p == pytest.approx(0.02)
        assert (found.low, found.high) == (1.0, 1.0)

    def test_without_a_right_or_a_wrong_prediction_the_rest_is_measured(self) -> None:
        for right in (True, False):
            correct = np.full(20, right)
            judge = Judge.of(np.arange(20.0), correct, np.linspace(0, 1, 20))
            found = bootstrap([judge], correct, list(METRICS), samples=9)
            undefined = np.isnan(found.values[0])
            assert np.array_equal(undefined, np.isnan(found.replicates[0]).all(axis=1))
            names = {name for name, missing in zip(METRICS, undefined, strict=True) if missing}
            assert names == {"auroc", "fpr_at_95_tpr", "aupr_error" if right else "aupr_success"}
            assert math.isnan(found.compare(0, 0, 0, 0.95).p)


class TestDeLong:
    @given(case=judged(both=True), seed=st.integers(0, 99))
    @settings(max_examples=40, deadline=None)
    def test_it_is_that_of_all_pairs(self, case: Judged, seed: int) -> None:
        first, correct = case
        assume(min(correct.sum(), (~correct).sum()) >= 2)
        second = np.round(np.random.default_rng(seed).normal(size=len(first)), 1)
        wins = [np.array([[(r > w) + (r == w) / 2 for w in s[~correct]] for r in s[correct]]) for s in (first, second)]
        gap = wins[0] - wins[1]
        variance = gap.mean(axis=1).var(ddof=1) / len(gap) + gap.mean(axis=0).var(ddof=1) / gap.shape[1]
        assume(variance > 1e-12)
        found = metrics.delong(first, second, correct, level=0.9)
        assert found.difference == pytest.approx(gap.mean(), abs=1e-12)
        assert found.p == pytest.approx(2 * norm.sf(abs(gap.mean()) / math.sqrt(variance)))
        assert found.high - found.difference == pytest.approx(norm.ppf(0.95) * math.sqrt(variance))
        assert found.difference - found.low == pytest.approx(norm.ppf(0.95) * math.sqrt(variance))

    def test_it_agrees_with_the_bootstrap(self) -> None:
        first, correct = world(8, 900, 300, 1.0)
        second = first + np.random.default_rng(9).normal(0, 0.6, 1200)
        closed = metrics.delong(first, second, correct)
        drawn = metrics.compare("auroc", first, second, correct)
        assert drawn.difference == pytest.approx(closed.difference)
        assert drawn.high - drawn.low == pytest.approx(closed.high - closed.low, rel=0.1)

    def test_scores_that_never_differ_and_always_differ(self) -> None:
        correct = np.arange(9) < 5
        assert metrics.delong(correct, 2 * correct, correct) == metrics.Comparison(0.0, 0.0, 0.0, 1.0)
        assert metrics.delong(correct, ~correct, correct) == metrics.Comparison(1.0, 1.0, 1.0, 0.0)

    def test_too_few_are_refused(self) -> None:
        with pytest.raises(InputError, match="at least two right and two wrong predictions, got 2 and 1"):
            metrics.delong([1, 2, 3], [1, 2, 3], [1, 1, 0])


def true_values(separation: float, error: float) -> dict[str, float]:
    """The metrics of infinitely many predictions from ``world``, by integration."""

    def risk(threshold: float) -> float:
        wrong = error * norm.sf(threshold)
        return float(wrong / (wrong + (1 - error) * norm.sf(threshold - separation)))

    def density(x: float) -> float:
        return float(error * norm.pdf(x) + (1 - error) * norm.pdf(x - separation))

    auroc = float(norm.cdf(separation / math.sqrt(2)))
    return {
        "auroc": auroc,
        "fpr_at_95_tpr": float(norm.sf(separation + norm.ppf(0.05))),
        "aurc": quad(lambda x: risk(x) * density(x), -9, 9)[0],
        "augrc": (1 - auroc) * error * (1 - error) + error**2 / 2,
        "aupr_error": quad(
            lambda x: (
                error * norm.cdf(x) / (error * norm.cdf(x) + (1 - error) * norm.cdf(x - separation)) * norm.pdf(x)
            ),
            -8,
            9,
        )[0],
    }


@pytest.mark.slow
def test_intervals_contain_the_true_value_as_often_as_they_say() -> None:
    """In a world with known values, 90 to 98 of 100 intervals of 95 %; percentile intervals are a little short."""
    truth = true_values(1.5, 0.25)
    trials, hits = 600, dict.fromkeys(truth, 0)
    for seed in range(trials):
        scores, correct = world(seed, 600, 200, 1.5)
        found = bootstrap([Judge.of(scores, correct)], correct, list(truth), samples=500, seed=seed)
        for column, (name, value) in enumerate(truth.items()):
            interval = found.interval(0, column, 0.95)
            hits[name] += interval.low <= value <= interval.high
    assert all(0.90 <= count / trials <= 0.98 for count in hits.values()), hits


@pytest.mark.slow
def test_equal_scores_seldom_differ() -> None:
    """Two scores of equal quality: the paired test says otherwise in at most about 5 of 100 cases."""
    names = ["auroc", "aurc", "augrc", "aupr_error"]
    trials, found_different, closed = 600, np.zeros(len(names)), 0
    for seed in range(trials):
        shared, correct = world(seed, 400, 150)
        generator = np.random.default_rng(seed + 10**6)
        first, second = (shared + generator.normal(0, 0.7, 550) for _ in range(2))
        judges = [Judge.of(first, correct), Judge.of(second, correct)]
        found = bootstrap(judges, correct, names, samples=400, seed=seed)
        found_different += [found.compare(0, 1, column, 0.95).p < 0.05 for column in range(len(names))]
        closed += metrics.delong(first, second, correct).p < 0.05
    assert (found_different / trials <= 0.08).all(), found_different / trials
    assert (found_different / trials >= 0.02).all(), found_different / trials
    assert 0.02 <= closed / trials <= 0.08
