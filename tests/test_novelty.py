"""Novelty: scores against loops, p-values and decisions by simulation, and what bad input gets."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import OneClassSVM

import oracle
from vicinal import score
from vicinal.bank import Bank
from vicinal.errors import InputError, ShapeError
from vicinal.held_out import Caution
from vicinal.novelty import ACCEPT, NOVEL, SCORES, UNSURE, Detector, Triage, Triaged, one_class_svm, scores
from vicinal.values import LOG_PROBABILITIES, Embeddings, Trust

ON_BANK = (
    *("distance", "density", "kth_distance", "class_density"),
    *("class_kth_distance", "mahalanobis", "relative_mahalanobis"),
)


def world(n=200, m=60, seed=0):
    """A bank of two classes of unlike shape, and inputs among them."""
    generator = np.random.default_rng(seed)

    def draw(size):
        labels = generator.choice([3, 7], size)
        spread = np.where(labels == 3, 1.0, 0.4)[:, None] * [1.0, 2.0, 0.5]
        return (np.where(labels == 3, 0.0, 4.0)[:, None] + spread * generator.normal(size=(size, 3))), labels

    vectors, labels = draw(n)
    queries, predicted = draw(m)
    return (
        Bank(vectors, labels),
        np.float32(vectors).astype(float),
        labels,
        np.float32(queries).astype(float),
        predicted,
    )


def plain(values, name="density", predicted=None):
    values = np.asarray(values, float)
    return Trust(name, values, values, predicted)


# The scores.


def test_scores_on_neighbours_against_loops():
    bank, vectors, labels, queries, predicted = world()
    found = scores(bank, Embeddings(queries, predicted=predicted), k=9)
    for i, (query, label) in enumerate(zip(queries, predicted, strict=True)):
        near = [d for d, _ in oracle.nearest(vectors, query, 9)]
        own = [d for d, _ in oracle.nearest(vectors[labels == label], query, 9)]
        expected = {
            "distance": oracle.share_and_log_odds(vectors, labels, query, label, 9)[1],
            "density": oracle.log_sum([-d for d in near]),
            "kth_distance": -np.log(near[-1]),
            "class_density": oracle.log_sum([-d for d in own]),
            "class_kth_distance": -np.log(own[-1]),
        }
        assert {name: found[name].log_odds[i] for name in expected} == pytest.approx(expected, rel=1e-9)


def test_mahalanobis_against_a_plain_inverse():
    bank, vectors, labels, queries, predicted = world()
    found = scores(bank, Embeddings(queries, predicted=predicted), k=9)
    means = {c: vectors[labels == c].mean(axis=0) for c in (3, 7)}
    within = sum(np.outer(v - means[c], v - means[c]) for v, c in zip(vectors, labels, strict=True)) / len(vectors)
    gaps = np.array([min((q - m) @ np.linalg.inv(within) @ (q - m) for m in means.values()) for q in queries])
    whole = vectors - vectors.mean(axis=0)
    shape = np.linalg.inv(whole.T @ whole / len(vectors))
    all_gaps = np.array([(q - vectors.mean(axis=0)) @ shape @ (q - vectors.mean(axis=0)) for q in queries])
    np.testing.assert_allclose(found["mahalanobis"].log_odds, -gaps, rtol=1e-6)
    np.testing.assert_allclose(found["relative_mahalanobis"].log_odds, all_gaps - gaps, rtol=1e-6, atol=1e-9)


def test_the_energy_of_probabilities_is_none():
    shares = Embeddings(world()[3], np.zeros((60, 2)), facts=dict([LOG_PROBABILITIES]))
    assert "energy" not in scores(world()[0], shares, k=9)
    with pytest.raises(InputError, match="energy: expected embeddings with logits, got probabilities"):
        scores(world()[0], shares, names=["energy"], k=9)


def test_every_score_carries_its_own_name_and_logits_bring_three_more():
    bank, _, _, queries, predicted = world()
    logits = np.random.default_rng(0).normal(size=(len(queries), 2))
    found = scores(bank, Embeddings(queries, logits, classes=[3, 7]), k=9)
    assert tuple(found) == SCORES == (*ON_BANK, "margin", "entropy", "energy")
    assert {name: trust.name for name, trust in found.items()} == {name: name for name in found}
    np.testing.assert_array_equal(found["energy"].log_odds, score.energy(logits).log_odds)
    assert tuple(scores(bank, Embeddings(queries, predicted=predicted), k=9)) == ON_BANK
    alone = scores(bank, Embeddings(queries), k=9)
    assert tuple(alone) == ("density", "kth_distance", "mahalanobis", "relative_mahalanobis")
    assert list(scores(bank, Embeddings(queries, logits), names=["energy", "density"], k=9)) == ["energy", "density"]


@pytest.mark.parametrize("name", [*ON_BANK[1:], "one_class_svm"])
def test_an_input_far_from_everything_is_less_likely_known(name):
    bank, _, _, queries, predicted = world()
    far = queries[:20] + np.array([0.0, 40.0, 0.0])
    both = Embeddings(np.concatenate([queries, far]), predicted=np.concatenate([predicted, predicted[:20]]))
    trust = one_class_svm(bank, both.vectors) if name == "one_class_svm" else scores(bank, both, k=9)[name]
    if name == "relative_mahalanobis":  # relative to all points, which do not spread along the second axis either
        assert np.isfinite(trust.log_odds).all()
        return
    assert trust.log_odds[60:].max() < trust.log_odds[:60].min()


def test_one_class_svm_is_that_of_scikit_learn():
    bank, vectors, _, queries, _ = world()
    model = OneClassSVM(nu=0.2, tol=1e-9).fit(vectors)
    found = one_class_svm(bank, queries, nu=0.2).log_odds
    np.testing.assert_allclose(found, model.decision_function(queries), atol=0.02 * np.ptp(found))
    few = one_class_svm(bank, queries, most=50, seed=3)
    rows = np.random.default_rng(3).permutation(200)[:50]
    np.testing.assert_allclose(few.log_odds, OneClassSVM(nu=0.1).fit(vectors[rows]).decision_function(queries))


# P-values.


@settings(deadline=None, max_examples=100)
@given(
    known=st.lists(st.integers(-3, 3), min_size=1, max_size=40),
    asked=st.lists(st.integers(-4, 4), min_size=1, max_size=10),
    by_class=st.booleans(),
    data=st.data(),
)
def test_a_p_value_counts_the_known_inputs_that_are_as_unusual(known, asked, by_class, data):
    classes = data.draw(st.lists(st.sampled_from([-1, 0, 4]), min_size=len(known), max_size=len(known)))
    wanted = data.draw(st.lists(st.sampled_from([-1, 0, 4, 9]), min_size=len(asked), max_size=len(asked)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Caution)
        detector = Detector.fit(plain(known, predicted=np.array(classes)), by_class=by_class)
    found = detector.p_value(plain(asked, predicted=np.array(wanted)))
    for value, label, p in zip(asked, wanted, found, strict=True):
        group = [s for s, c in zip(known, classes, strict=True) if not by_class or c == label]
        assert p == pytest.approx((1 + sum(s <= value for s in group)) / (len(group) + 1))
    drawn = detector.p_value(plain(asked, predicted=np.array(wanted)), seed=1)
    assert (drawn <= found).all()
    assert (drawn >= 0).all()


def alarms(trials, n, m, draw, level, *, seed=None):
    """How often p ≤ level among m new inputs that are known, over sets of n: (trials,)."""
    generator = np.random.default_rng(7)
    found = []
    for trial in range(trials):
        detector = Detector.fit(plain(draw(generator, n)))
        p = detector.p_value(plain(draw(generator, m)), seed=None if seed is None else seed + trial)
        found.append((p <= level).mean())
    return np.array(found)


def within(rates, expected, sigmas=4.0):
    """Whether the mean of independent rates is as expected, as far as their spread tells."""
    return abs(rates.mean() - expected) <= sigmas * rates.std(ddof=1) / np.sqrt(len(rates))


def smooth(generator, n):
    return generator.normal(size=n)


def tied(generator, n):
    return generator.integers(0, 6, n)


@pytest.mark.parametrize(("n", "level"), [(30, 0.05), (99, 0.1), (250, 0.01)])
def test_the_rate_of_false_alarms_is_exact(n, level):
    rates = alarms(1500, n, 50, smooth, level)
    assert within(rates, np.floor(level * (n + 1) + 1e-9) / (n + 1))
    assert not within(rates, level * 1.3)  # the simulation can tell


def test_ties_raise_no_more_alarms_and_drawn_p_values_none_fewer():
    assert alarms(2000, 60, 50, tied, 0.2).mean() <= 0.2
    assert within(alarms(2000, 60, 50, tied, 0.2, seed=0), 0.2)


def test_alarms_are_as_rare_in_each_class():
    generator = np.random.default_rng(0)
    rates = []
    for _ in range(600):
        classes = generator.choice([0, 1], (2, 400), p=[0.8, 0.2])
        values = generator.normal(size=(2, 400)) - 3 * classes  # class 1 is unusual as a whole
        known, new = (plain(v, predicted=c) for v, c in zip(values, classes, strict=True))
        novel = Detector.fit(known, by_class=True).novel(new, 0.1)
        rates.append([novel[classes[1] == c].mean() for c in (0, 1)])
        together = Detector.fit(known).novel(new, 0.1)
    assert (np.mean(rates, axis=0) <= 0.1 + 0.005).all()
    assert (np.mean(rates, axis=0) >= 0.08).all()
    assert together[classes[1] == 1].mean() > 0.3  # what comparing by class prevents


def test_a_class_without_known_inputs_raises_no_alarm():
    detector = Detector.fit(plain(np.arange(50.0), predicted=np.zeros(50, int)), by_class=True)
    assert detector.p_value(plain([-9.0, -9.0], predicted=np.array([0, 5]))).tolist() == [1 / 51, 1.0]


def test_known_inputs_that_are_in_the_bank_are_left_out():
    bank, vectors, _, queries, _ = world()
    from vicinal.density import density

    both = density(bank, np.concatenate([vectors[:10], queries]), k=5)
    with pytest.warns(Caution, match="10 of 70 held-out rows lie at distance 0"):
        detector = Detector.fit(both)
    np.testing.assert_array_equal(detector.known[None], np.sort(both.log_odds[10:]))


# Accept, unsure or novel.


class Uniform:
    """Novelty u and trust s, both uniform on (0, 1); wrong with probability (1 - s)² (1 - u / 2)."""

    def draw(self, generator, n):
        u, s = generator.random((2, n))
        return plain(u), plain(s, "distance"), generator.random(n) >= (1 - s) ** 2 * (1 - u / 2)

    def alarms(self, v):
        return np.clip(v, 0, 1)

    def risk(self, v, t):
        v = np.clip(v, 0, 1)
        return 0.0 if t >= 1 else (1 - max(t, 0)) ** 2 / 3 * (1 - (1 + v) / 4)


class Steps:
    """The same, with u rounded down to quarters: at every threshold there are ties."""

    def draw(self, generator, n):
        u, s = np.floor(4 * generator.random(n)) / 4, generator.random(n)
        return plain(u), plain(s, "distance"), generator.random(n) >= (1 - s) ** 2 * (1 - u / 2)

    def alarms(self, v):
        return np.clip(np.ceil(4 * v) / 4, 0, 1)  # strictly below v

    def risk(self, v, t):
        above = [u for u in (0.0, 0.25, 0.5, 0.75) if u > v]
        return 0.0 if t >= 1 else (1 - max(t, 0)) ** 2 / 3 * np.mean([1 - u / 2 for u in above])


@pytest.mark.parametrize("truth", [Uniform(), Steps()], ids=["smooth", "tied"])
@pytest.mark.parametrize("delta", [0.1, 0.3])
@pytest.mark.parametrize("trials", [400, pytest.param(2000, marks=pytest.mark.slow)])
def test_both_error_rates_hold_together_with_the_promised_probability(truth, delta, trials):
    generator, broken, accepted = np.random.default_rng(5), 0, 0
    warnings.simplefilter("ignore", Caution)  # in a few of the trials nothing can be promised
    for _ in range(trials):
        triage = Triage.fit(*truth.draw(generator, 1000), false_alarms=0.1, risk=0.08, delta=delta)
        broken += truth.alarms(triage.novel_at) > 0.1 or truth.risk(triage.novel_at, triage.accept_at) > 0.08
        accepted += np.isfinite(triage.accept_at)
    assert broken <= delta * trials + 3 * np.sqrt(trials * delta * (1 - delta))
    assert accepted > 0.9 * trials  # the promise is not kept by doing nothing


def test_decisions_follow_the_two_thresholds():
    triage = Triage.fit(*Uniform().draw(np.random.default_rng(1), 2000), false_alarms=0.1, risk=0.05)
    v, t = triage.novel_at, triage.accept_at
    around = [-1.0, 0.0, 1.0]
    u = np.array([v + 1e-9 * step for step in around for _ in around])
    s = np.array([t + 1e-9 * step for _ in around for step in around])
    found = triage(plain(u), plain(s, "distance"))
    expected = [NOVEL] * 3 + [UNSURE] * 3 + [UNSURE, ACCEPT, ACCEPT]  # exactly at the threshold of novelty: unsure
    assert found.decision.tolist() == expected
    assert found.shares() == pytest.approx({ACCEPT: 2 / 9, UNSURE: 4 / 9, NOVEL: 3 / 9})
    np.testing.assert_array_equal(found.p_value, triage.detector.p_value(plain(u)))
    assert len(found) == 9


def test_shares_are_those_of_the_calibration_rows():
    novelty, trust, correct = Uniform().draw(np.random.default_rng(2), 3000)
    triage = Triage.fit(novelty, trust, correct, false_alarms=0.1, risk=0.05)
    found = triage(novelty, trust)
    wrong = (~correct)[found.decision == ACCEPT].mean()
    assert triage.shares == pytest.approx({**found.shares(), "risk": wrong})
    assert 0.06 < triage.shares[NOVEL] < 0.1
    assert triage.promised == (0.1, 0.05)


def test_what_cannot_be_promised_is_said_and_not_done():
    novelty, trust, correct = Uniform().draw(np.random.default_rng(3), 60)
    with pytest.warns(Caution) as said:
        triage = Triage.fit(novelty, trust, correct, false_alarms=0.01, risk=0.001)
    assert [str(one.message)[:40] for one in said] == [
        "Triage.fit: nothing is called novel, as ",
        "Triage.fit: nothing is accepted, as no t",
    ]
    assert triage.notes == tuple(str(one.message) for one in said)
    assert triage(novelty, trust).shares() == {ACCEPT: 0.0, UNSURE: 1.0, NOVEL: 0.0}
    assert triage.promised[0] == pytest.approx(1 - 0.025 ** (1 / 60))
    assert 0.001 < triage.promised[1] < 0.5


@pytest.mark.parametrize("right", [True, False])
def test_rows_that_are_all_right_or_all_wrong_get_the_cautious_answer(right):
    novelty, trust, _ = Uniform().draw(np.random.default_rng(4), 500)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        triage = Triage.fit(novelty, trust, np.full(500, right))
    assert bool(said) is not right
    assert (triage.shares[ACCEPT] > 0.9) is right
    assert triage.shares[ACCEPT] == 0 or right


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (
            lambda: _scores("distance"),
            InputError,
            "distance: expected embeddings with logits or predicted, got neither",
        ),
        (lambda: _scores("energy"), InputError, "energy: expected embeddings with logits, got none"),
        (lambda: _scores("densty"), InputError, "score: expected one of.*did you mean 'density'"),
        (lambda: scores(world()[0], Embeddings([[0.0]], predicted=[3])), ShapeError, "expected 3 columns"),
        (lambda: one_class_svm(world()[0], world()[3], nu=0.0), InputError, r"nu: expected a number in \(0, 1\]"),
        (lambda: one_class_svm(world()[0], world()[3], most=0), InputError, "most: expected a whole number of at"),
        (lambda: Detector.fit(plain([])), ShapeError, r"expected shape \(n,\)"),
        (lambda: Detector.fit(plain([np.nan] * 40)), InputError, "expected finite numbers, got nan in row 0"),
        (lambda: Detector.fit(plain(range(40)), by_class=True), InputError, "expected predictions, to compare by"),
        (lambda: _detector().p_value(plain([1.0], "energy")), InputError, "the score 'density'.*got 'energy'"),
        (lambda: _detector(by_class=True).p_value(plain([1.0])), InputError, "trust: expected predictions"),
        (lambda: _detector().novel(plain([1.0]), 0.0), InputError, r"false_alarms: expected a number in \(0, 1\]"),
        (lambda: _triage(risk=0.0), InputError, r"risk: expected a number in \(0, 1\)"),
        (lambda: _triage(false_alarms=1.0), InputError, "false_alarms: expected a number in"),
        (lambda: _triage(delta=2.0), InputError, "delta: expected a number in"),
        (lambda: _triage(correct=[True]), ShapeError, "trust: expected 1, one for each prediction, got 400"),
        (lambda: Triage.fit(plain([1.0] * 400), plain(range(400)), [1] * 400), InputError, "'density' with a single"),
        (lambda: _triage()(plain([1.0]), plain([1.0])), InputError, "the score 'distance', as in the fit"),
        (lambda: _triage()(plain([1.0], "energy"), plain([1.0], "distance")), InputError, "the score 'density'"),
        (lambda: _triage()(plain([1.0]), plain([1.0] * 2, "distance")), ShapeError, "novelty and trust"),
    ],
)
def test_bad_input_is_refused_by_name(make, error, words):
    with pytest.raises(error, match=words):
        make()


def _scores(name):
    return scores(world()[0], Embeddings(world()[3]), names=[name])


def _detector(by_class=False):
    return Detector.fit(plain(np.arange(40.0), predicted=np.zeros(40, int)), by_class=by_class)


def _triage(correct=None, **targets):
    novelty, trust, right = Uniform().draw(np.random.default_rng(0), 400)
    return Triage.fit(novelty, trust, right if correct is None else correct, **{"risk": 0.1, **targets})


@pytest.mark.parametrize("by_class", [False, True])
def test_few_known_inputs_get_a_caution(by_class):
    few = plain(np.arange(50.0), predicted=np.repeat([0, 8], [45, 5])) if by_class else plain(np.arange(19.0))
    with pytest.warns(Caution) as said:
        detector = Detector.fit(few, by_class=by_class)
    least = "5 known inputs of class 8" if by_class else "19 known inputs"
    assert str(said[0].message).startswith(f"Detector.fit: {least} are fewer than 30: no p-value")
    assert detector.notes == (str(said[0].message),)


def test_shares_of_nothing_but_decisions():
    found = Triaged(np.array([NOVEL, ACCEPT, ACCEPT, UNSURE]), np.zeros(4))
    assert found.shares() == {ACCEPT: 0.5, UNSURE: 0.25, NOVEL: 0.25}
