"""Fusion: what it weighs, what it must not lose, and how little it takes to fit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from vicinal import metrics, score
from vicinal.bank import Bank
from vicinal.density import density
from vicinal.errors import InputError, ShapeError
from vicinal.held_out import Caution
from vicinal.selective import Fusion, parts
from vicinal.values import Embeddings, Trust


def trusts(**scores):
    return {name: Trust(name, expit(s), s) for name, s in scores.items()}


def views(n, seed, noise=(1.0, 1.0)):
    """Right predictions, and scores that see why, each through noise of its own."""
    generator = np.random.default_rng(seed)
    truth = generator.normal(size=n)
    correct = generator.random(n) < expit(1.0 + 2.0 * truth)
    return truth, correct, [truth + s * generator.normal(size=n) for s in noise]


def test_two_views_beat_each_and_come_close_to_the_optimum():
    _, correct, (one, two) = views(1000, 0)
    fusion = Fusion.fit(trusts(one=one, two=two), correct)
    _, fresh, (a, b) = views(20_000, 1)
    found = fusion(trusts(one=a, two=b))
    best = metrics.auroc(a + b, fresh)  # equal noise: the sum is the optimal combination
    assert metrics.auroc(found.log_odds, fresh) > best - 0.002
    assert metrics.auroc(found.log_odds, fresh) > max(metrics.auroc(s, fresh) for s in (a, b)) + 0.02
    assert metrics.ece(found.confidence, fresh) < 0.03
    np.testing.assert_allclose(found.confidence, expit(found.log_odds))
    assert (found.name, found.probability) == ("fused", True)


def test_weights_are_those_of_a_penalised_logistic_fit():
    _, correct, (one, two) = views(400, 0)
    fusion = Fusion.fit(trusts(one=one, two=two), correct, penalty=4.0)
    quartiles = np.quantile([one, two], [0.25, 0.5, 0.75], axis=1)
    terms = 2 * np.arcsinh((np.array([one, two]).T - quartiles[1]) / (2 * (quartiles[2] - quartiles[0]) / 1.349))
    # 4 (2 w + w^2 / 2): a penalty of 1 / C = 8 + 4, two thirds of it on the absolute weights
    model = LogisticRegression(C=1 / 12, l1_ratio=2 / 3, solver="saga", tol=1e-10, max_iter=10_000)
    model.fit(terms, correct)
    np.testing.assert_allclose(fusion.weights, model.coef_[0], atol=1e-4)
    assert fusion.intercept == pytest.approx(model.intercept_[0], abs=1e-4)
    assert str(fusion).startswith(f"fused of one {fusion.weights[0]:.3g}, two")


@pytest.mark.parametrize("n", [100, 300, 1000])
def test_never_much_worse_than_the_best_part(n):
    generator = np.random.default_rng(n)
    lost = []
    for seed in range(40):
        _, correct, (good,) = views(n + 4000, seed, (0.5,))
        bad = {f"noise {i}": generator.normal(size=n + 4000) for i in range(3)}
        wild = {"tails": generator.standard_cauchy(n + 4000) * 1e6, "against": -good + generator.normal(size=n + 4000)}
        every = trusts(good=good, **bad, **wild)
        fusion = Fusion.fit(_rows(every, slice(n)), correct[:n])
        found = fusion(_rows(every, slice(n, None))).log_odds
        lost.append(metrics.auroc(good[n:], correct[n:]) - metrics.auroc(found, correct[n:]))
    assert np.mean(lost) < {100: 0.009, 300: 0.002, 1000: 0.001}[n]
    assert max(lost) < {100: 0.06, 300: 0.01, 1000: 0.008}[n]


def test_a_part_that_the_fit_spoils_is_kept_alone(monkeypatch):
    # folds whose fits disagree with each other: the fit ranks unseen rows worse than the good part does
    from vicinal.selective import fusion as module

    _, correct, (good, other) = views(400, 0, (0.5, 1.0))
    assert (Fusion.fit(trusts(good=good, other=other), correct).weights > 0).all()
    real = module.fit_logistic
    signs = iter([1, -1, 1, -1, 1, 1])
    monkeypatch.setattr(
        module, "fit_logistic", lambda *a, **k: (lambda i, w, s: (s * i, s * w))(*real(*a, **k), next(signs))
    )
    fusion = Fusion.fit(trusts(good=good, other=other), correct)
    assert fusion.weights[0] > 0
    assert fusion.weights[1] == 0


def _rows(every, rows):
    return {name: Trust(name, t.confidence[rows], t.log_odds[rows]) for name, t in every.items()}


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 1000), up=st.floats(0.001, 1e6))
def test_more_trust_by_a_part_is_never_less_in_the_whole(seed, up):
    _, correct, (one, two) = views(200, seed)
    fusion = Fusion.fit(trusts(one=one, two=two), correct)
    assert (fusion.weights >= 0).all()
    before = fusion(trusts(one=one, two=two)).log_odds
    assert (fusion(trusts(one=one + up, two=two)).log_odds >= before - 1e-12).all()


def test_units_do_not_matter():
    _, correct, (one, two) = views(500, 3)
    first = Fusion.fit(trusts(one=one, two=two), correct)
    second = Fusion.fit(trusts(one=1e6 * one - 5, two=two), correct)
    np.testing.assert_allclose(
        first(trusts(one=one, two=two)).log_odds, second(trusts(one=1e6 * one - 5, two=two)).log_odds, atol=1e-6
    )


def test_infinite_looking_log_odds_do_not_decide():
    _, correct, (one, two) = views(500, 4)
    one[:3], one[3:6] = 1.7e308, -1.7e308
    found = Fusion.fit(trusts(one=one, two=two), correct)(trusts(one=one, two=two))
    assert np.isfinite(found.log_odds).all()
    assert metrics.auroc(found.log_odds, correct) > metrics.auroc(two, correct) + 0.01


def test_a_part_that_does_not_vary_has_no_say():
    _, correct, (one,) = views(300, 5, (0.5,))
    fusion = Fusion.fit(trusts(one=one, flat=np.full(300, 2.0)), correct)
    assert fusion.weights[0] > 0
    moved = fusion(trusts(one=one, flat=np.full(300, 2.0)))
    assert metrics.auroc(moved.log_odds, correct) == metrics.auroc(one, correct)


@pytest.mark.parametrize("right", [np.ones(200, bool), np.arange(200) > 2, np.arange(20) > 6])
def test_too_little_to_tell_the_parts_apart_gives_equal_weights(right):
    n = len(right)
    generator = np.random.default_rng(0)
    every = trusts(one=generator.normal(size=n), two=5 * generator.normal(size=n))
    with pytest.warns(Caution, match=f"{n} rows with {(~right).sum()} errors do not tell the scores apart"):
        fusion = Fusion.fit(every, right)
    assert fusion.weights.tolist() == [0.5, 0.5]
    assert "equal weights" in fusion.notes[0]
    assert fusion(every).confidence.mean() == pytest.approx((right.sum() + 1) / (n + 2), abs=0.06)


def network(n=400, seed=0):
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 3, n + 600)
    vectors = generator.normal(size=(n + 600, 4))
    vectors[:, :3] += 1.3 * np.eye(3)[labels]
    held_out = Embeddings(vectors[:n], vectors[:n, :3] * 2 + generator.normal(size=(n, 3)), labels[:n])
    return Bank(vectors[n:], labels[n:]), held_out


def test_the_usual_parts_come_from_one_search():
    bank, held_out = network()
    found = parts(bank, held_out, k=20)
    np.testing.assert_array_equal(
        found["distance"].log_odds, score.distance(bank, held_out.vectors, held_out.predicted, k=20).log_odds
    )
    np.testing.assert_array_equal(found["margin"].log_odds, score.margin(held_out.logits).log_odds)
    np.testing.assert_array_equal(found["density"].log_odds, density(bank, held_out.vectors, k=20).log_odds)
    fused = Fusion.fit(found, held_out.correct)(found)
    assert fused.rival is found["distance"].rival
    assert fused.neighbors is found["distance"].neighbors
    np.testing.assert_array_equal(fused.predicted, held_out.predicted)
    assert metrics.auroc(fused.log_odds, held_out.correct) > max(
        metrics.auroc(found[name].log_odds, held_out.correct) for name in ("distance", "margin")
    )


def test_the_density_is_of_all_neighbours_even_where_too_many_are_found_to_be_kept(monkeypatch):
    bank, held_out = network()
    monkeypatch.setattr(score, "_KEPT", 1000)
    found = parts(bank, held_out, k=20)
    assert found["distance"].neighbors.k == 10
    np.testing.assert_array_equal(found["density"].log_odds, density(bank, held_out.vectors, k=20).log_odds)


def test_bad_input_is_refused():
    bank, held_out = network()
    found = parts(bank, held_out, k=20)
    fusion = Fusion.fit(found, held_out.correct)
    with pytest.raises(InputError, match="'margin' is missing"):
        fusion({"distance": found["distance"], "density": found["density"]})
    with pytest.raises(InputError, match="penalty: expected a finite number of at least 0, got -1"):
        Fusion.fit(found, held_out.correct, penalty=-1)
    with pytest.raises(InputError, match="seed: expected a whole number of at least 0, got -1"):
        Fusion.fit(found, held_out.correct, seed=-1)
    with pytest.raises(InputError, match="expected at least one score, got none"):
        Fusion.fit({}, held_out.correct)
    with pytest.raises(ShapeError, match="trust: expected 399"):
        Fusion.fit(found, held_out.correct[1:])
    with pytest.raises(ShapeError, match="trust: expected 400"):
        fusion({**found, "margin": score.margin(held_out.logits[1:])})
    other = (held_out.predicted + 1) % 3
    both = {"distance": found["distance"], "again": Trust("again", other * 0.1, other * 1.0, other)}
    fusion = Fusion.fit(both, held_out.correct)
    with pytest.raises(InputError, match="'distance' and 'again' differ"):
        fusion(both)
    with pytest.raises(InputError, match="expected logits, for the margin, got none"):
        parts(bank, Embeddings(held_out.vectors, predicted=held_out.predicted))


def test_notes_of_the_parts_are_kept():
    _, correct, (one,) = views(100, 0, (0.5,))
    noted = {"one": Trust("one", expit(one), one, notes=("look here",))}
    assert Fusion.fit(noted, correct)(noted).notes == ("look here",)
