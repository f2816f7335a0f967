"""The diagnosis: its numbers against loops and other functions, what is planted is found, and what it then says."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import skew

from vicinal import metrics, score
from vicinal.bank import Bank
from vicinal.density import density
from vicinal.errors import InputError
from vicinal.selective import Fusion, diagnose
from vicinal.selective.fusion import cross_fitted
from vicinal.tables import plain
from vicinal.values import Embeddings, Trust

CENTRES = 2.0 * np.eye(3, 4)


def world(n=500, m=400, seed=0, spread=1.0):
    """Three classes around their centres, and a network whose logits see them through noise."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 3, n + m)
    vectors = CENTRES[labels] + spread * generator.normal(size=(n + m, 4))
    logits = 2 * vectors[n:, :3] + generator.normal(size=(m, 3))
    return Bank(vectors[:n], labels[:n]), Embeddings(vectors[n:], logits, labels[n:])


def test_the_numbers_of_the_bank_against_loops():
    bank, held_out = world(60, 40)
    found = diagnose(held_out, bank, k=7)
    gaps = np.linalg.norm(bank.vectors[:, None] - bank.vectors, axis=2)
    np.fill_diagonal(gaps, np.inf)
    near = np.argsort(gaps, axis=1, kind="stable")[:, :7]
    for label in range(3):
        own = bank.labels == label
        assert found.purity[label] == pytest.approx((bank.labels[near[own]] == label).mean())
    assert found.hubness == pytest.approx(skew(np.bincount(near.ravel(), minlength=60)))
    weights = np.exp(-np.sort(np.linalg.norm(held_out.vectors[:, None] - bank.vectors, axis=2), axis=1)[:, :7])
    assert found.effective == pytest.approx(np.median(weights.sum(1) ** 2 / (weights**2).sum(1)), rel=1e-5)
    assert (found.inputs, found.errors, found.bank, found.checked) == (40, (~held_out.correct).sum(), 60, 60)
    assert found.smallest == np.bincount(bank.labels).min()
    own = score.distance(bank, bank.vectors, bank.labels, k=7, exclude_self=True)
    doubted = np.flatnonzero((own.log_odds <= -np.log(9)) & (own.rival.log_odds >= np.log(9)))
    assert 0 < len(doubted) < (own.log_odds < 0).sum()
    assert found.suspects.tolist() == doubted[np.argsort(own.log_odds[doubted])].tolist()


def test_the_numbers_of_held_out_inputs_are_those_of_the_scores():
    bank, held_out = world(seed=1)
    found = diagnose(held_out, bank, k=30, samples=200)
    right = held_out.correct
    trust = score.distance(bank, held_out.vectors, held_out.predicted, k=30)
    for k, value in found.by_k.items():
        one = score.distance(bank, held_out.vectors, held_out.predicted, k=k)
        assert value == metrics.auroc(one.log_odds, right)
    assert list(found.by_k) == [10, 20, 30, 50, 100, 200]
    assert found.saturated == np.isin(trust.confidence, (0, 1)).mean() > 0
    assert found.saturated_float32 == np.isin(trust.confidence.astype(np.float32), (0, 1)).mean()
    margin = score.margin(held_out.logits).log_odds
    assert found.lead == metrics.delong(trust.log_odds, margin, right)
    for name, scores in (("distance", trust.log_odds), ("margin", margin)):
        assert found.auroc[name] == metrics.interval("auroc", scores, right, samples=200, seed=0)
    parts = {"distance": trust.log_odds, "margin": margin, "density": density(bank, held_out.vectors, k=30).log_odds}
    fused = cross_fitted(parts, right)
    assert found.auroc["fused"].value == metrics.auroc(fused, right)
    better = "distance" if found.lead.difference > 0 else "margin"
    assert found.fused_lead == metrics.delong(fused, parts[better], right)


def test_a_cross_fitted_fusion_has_not_seen_the_rows_it_judges():
    generator = np.random.default_rng(0)
    correct = np.arange(120) % 3 > 0
    noise = {str(i): generator.normal(size=120) for i in range(8)}
    own = Fusion.fit({name: Trust(name, s, s) for name, s in noise.items()}, correct, penalty=1e-3)
    seen = own({name: Trust(name, s, s) for name, s in noise.items()})
    assert metrics.auroc(seen.log_odds, correct) > 0.6
    assert metrics.auroc(cross_fitted(noise, correct), correct) < 0.55


def test_planted_label_errors_are_found():
    bank, held_out = world(spread=0.3)
    labels = bank.labels.copy()
    flipped = np.array([3, 77, 401])
    labels[flipped] = (labels[flipped] + 1) % 3
    found = diagnose(held_out, Bank(bank.vectors, labels))
    assert sorted(found.suspects) == flipped.tolist()
    np.testing.assert_array_equal(found.suspected, bank.labels[found.suspects])
    assert f"first row {found.suspects[0]}, whose neighbours are of class {found.suspected[0]}" in str(found).replace(
        "\n    ", " "
    )
    assert len(diagnose(held_out, Bank(bank.vectors, bank.labels)).suspects) == 0


def test_rows_of_a_bank_are_called_as_the_user_calls_them():
    bank, held_out = world(spread=0.3)
    labels = bank.labels.copy()
    labels[200] = (labels[200] + 1) % 3
    kept = Bank(bank.vectors, labels).remove(np.arange(100))
    assert diagnose(held_out, kept).suspects.tolist() == [200]


def test_held_out_inputs_on_bank_points_are_found_and_left_out():
    bank, held_out = world()
    vectors = held_out.vectors.copy()
    vectors[[5, 17, 300]] = bank.vectors[[0, 1, 2]]
    found = diagnose(Embeddings(vectors, held_out.logits, held_out.labels), bank)
    assert found.duplicates.tolist() == [5, 17, 300]
    rest = np.delete(np.arange(400), [5, 17, 300])
    assert found.by_k == diagnose(held_out.take(rest), bank).by_k
    assert "Look at the 3 held-out inputs that lie exactly on bank points" in str(found)
    vectors[:100] = bank.vectors[:100]
    assert "25.2% of the held-out inputs lie exactly on bank points: the splits overlap" in str(
        diagnose(Embeddings(vectors, held_out.logits, held_out.labels), bank)
    )


def test_another_k_is_recommended_where_it_is_shown_to_be_better():
    # classes alternate in clumps of 20 points: 10 neighbours see one clump, 50 see several
    generator = np.random.default_rng(0)
    clumps = np.arange(40)
    where = np.repeat(clumps, 20)
    points = 2.0 * where[:, None] + 0.05 * generator.normal(size=(800, 1))
    at = generator.integers(0, 40, 600)
    vectors = 2.0 * at[:, None] + 0.05 * generator.normal(size=(600, 1))
    truth = at % 2
    predicted = np.where(generator.random(600) < 0.2, 1 - truth, truth)
    bank = Bank(0.1 * points, where % 2)
    found = diagnose(Embeddings(0.1 * vectors, labels=truth, predicted=predicted), bank)
    assert found.by_k[10] > found.by_k[50] + 0.02
    assert found.recommended_k in (10, 20)
    assert f"Take k = {found.recommended_k}: AUROC 1.000" in str(found)
    assert diagnose(*reversed(world())).recommended_k == 50


@pytest.mark.parametrize("missing", ["labels", "logits", "errors"])
def test_where_the_lead_cannot_be_known_it_says_so(missing):
    bank, held_out = world()
    given = {
        "labels": Embeddings(held_out.vectors, held_out.logits),
        "logits": Embeddings(held_out.vectors, labels=held_out.labels, predicted=held_out.predicted),
        "errors": held_out.take(
            np.concatenate([np.flatnonzero(held_out.correct), np.flatnonzero(~held_out.correct)[:9]])
        ),
    }
    found = diagnose(given[missing], bank)
    assert found.lead is None
    assert found.fused_lead is None
    assert list(found.auroc) == (["distance"] if missing == "logits" else [])
    assert found.advice[0].startswith("Whether distance beats softmax cannot be told")
    assert ("AUROC" in str(found)) == (missing == "logits")


def test_a_fusion_is_not_judged_on_few_inputs():
    bank, held_out = world(spread=2.0)
    found = diagnose(held_out.take(np.arange(59)), bank, k=10)
    assert found.lead is not None
    assert found.fused_lead is None
    assert found.advice[1] == "Whether a fusion of both is better still cannot be told from so few inputs."
    assert "fused" in diagnose(held_out.take(np.arange(60)), bank, k=10).auroc


@pytest.mark.parametrize(
    ("quality", "said"),
    [
        ((2.0, 0.3), "Distance ranks better than the softmax's margin here, by"),
        ((0.3, 2.0), "Distance alone ranks worse than the softmax's margin here, by"),
        ((1.0, 1.0), "Distance and the softmax's margin rank equally well here"),
    ],
)
def test_what_is_said_of_the_lead(quality, said):
    generator = np.random.default_rng(1)
    right = np.arange(600) % 3 > 0
    distance, margin = (q * right + generator.normal(size=600) for q in quality)
    labels = np.repeat([0, 1], 30)
    bank = Bank(9.0 * labels[:, None] + generator.normal(size=(60, 2)), labels)
    vectors = 4.5 - 0.4 * distance[:, None] + np.zeros((600, 2))  # the more trusted, the nearer to class 0
    logits = np.stack([30 + margin, np.zeros(600)], axis=1)
    found = diagnose(Embeddings(vectors, logits, np.where(right, 0, 1)), bank, k=10)
    assert found.advice[0].startswith(said)
    better = max(found.auroc["distance"].value, found.auroc["margin"].value)
    assert found.fused_lead.difference == pytest.approx(found.auroc["fused"].value - better)
    assert found.advice[1].startswith("Rank by the fusion of both") == (found.fused_lead.low > 0)


def test_a_memorised_bank_hubs_and_mixed_classes_are_named():
    generator = np.random.default_rng(0)
    labels = np.arange(300) % 3
    vectors = 50.0 * np.eye(3, 4)[labels] + generator.normal(size=(300, 4))
    held_out = Embeddings(vectors[:200] + 0.1, 9 * vectors[:200, :3], labels[:200])
    said = " ".join(diagnose(held_out, Bank(vectors, labels), k=20).advice)
    assert "100% of the predictions D is exactly 0 or 1" in said
    mixed = np.where(np.arange(300) % 30 == 0, 7, labels)
    found = diagnose(held_out, Bank(vectors, mixed), k=20)
    assert "Points of class 7 lie mostly among others" in " ".join(found.advice)
    ring = np.append(
        np.zeros((1, 40)), 10 * np.eye(40).repeat(6, axis=0) + 0.2 * generator.normal(size=(240, 40)), axis=0
    )
    found = diagnose(Embeddings(ring[1:] + 0.01, predicted=np.zeros(240, int)), Bank(ring, np.arange(241) % 2), k=6)
    assert found.hubness > 5
    assert "hubs" in " ".join(found.advice)


def test_a_large_bank_and_many_inputs_are_sampled_alike_each_time():
    bank, held_out = world(300, 300)
    first, again = (diagnose(held_out, bank, k=10, most=50, samples=20) for _ in range(2))
    assert str(first) == str(again)
    assert first.checked == 50
    assert "300 points, 50 of them looked at" in str(first)
    assert diagnose(held_out, bank, k=10, most=50, seed=1, samples=20).purity != first.purity


def test_more_inputs_than_are_held_together_are_drawn(monkeypatch):
    from vicinal.selective import diagnosis

    bank, held_out = world(120, 300)
    monkeypatch.setattr(diagnosis, "_HELD", 100 * 60)
    vectors = held_out.vectors.copy()
    vectors[:] = bank.vectors[0]  # all lie on one bank point: the rows named tell which were drawn
    found = diagnose(Embeddings(vectors, held_out.logits, held_out.labels), bank, samples=20)
    assert found.inputs == 60
    assert len(np.unique(found.duplicates)) == 60
    assert found.duplicates.max() > 100


def test_a_class_smaller_than_k_is_judged_by_its_own_size():
    generator = np.random.default_rng(0)
    labels = np.array([0] * 100 + [1] * 6 + [2])
    vectors = 30.0 * np.eye(3, 4)[labels] + generator.normal(size=(107, 4))
    found = diagnose(Embeddings(vectors[:80] + 0.01, predicted=np.zeros(80, int)), Bank(vectors, labels), k=50)
    assert found.purity == {0: 1.0, 1: 1.0}  # its 5 others are nearest; the class of one point has no neighbour
    assert "The smallest class has 1 points" in " ".join(found.advice)


def test_all_of_it_is_json_and_readable():
    found = diagnose(*reversed(world()), samples=50)
    content = json.loads(json.dumps(plain(found.to_json())))
    assert content["recommended_k"] == 50
    assert content["lead"]["difference"] == found.lead.difference
    assert content["auroc"]["fused"]["low"] == found.auroc["fused"].low
    assert content["advice"] == list(found.advice)
    assert max(map(len, str(found).split("\n"))) <= 120


@settings(deadline=None, max_examples=40)
@given(
    n=st.integers(3, 40),
    m=st.integers(1, 30),
    classes=st.integers(1, 4),
    k=st.integers(1, 60),
    seed=st.integers(0, 1000),
    repeats=st.booleans(),
)
def test_any_bank_and_inputs_are_diagnosed(n, m, classes, k, seed, repeats):
    generator = np.random.default_rng(seed)
    draw = (
        (lambda rows: generator.integers(0, 2, (rows, 2)).astype(float))
        if repeats
        else (lambda rows: generator.normal(size=(rows, 2)))
    )
    bank = Bank(draw(n), generator.integers(0, classes, n) * 3 - 1)
    inputs = Embeddings(draw(m), generator.normal(size=(m, 5)), generator.integers(0, 5, m))
    found = diagnose(inputs, bank, k=k, samples=20)
    shares = [found.saturated, found.saturated_float32, *found.purity.values(), *found.by_k.values()]
    assert all(0 <= share <= 1 for share in shares)
    assert 1 - 1e-9 <= found.effective <= found.k + 1e-9
    assert np.isfinite(found.hubness)
    assert set(found.suspects) <= set(bank.rows)
    assert str(found).count("\n") >= 7


def test_bad_input_is_refused():
    bank, held_out = world()
    with pytest.raises(InputError, match="embeddings: expected logits or predicted, got neither"):
        diagnose(Embeddings(held_out.vectors), bank)
    with pytest.raises(InputError, match="bank: expected at least three points, got 2"):
        diagnose(held_out, Bank([[0.0] * 4, [1.0] * 4], [0, 1]))
    with pytest.raises(InputError, match="k: expected"):
        diagnose(held_out, bank, k=0)
    with pytest.raises(InputError, match="most: expected"):
        diagnose(held_out, bank, most=0)
    with pytest.raises(InputError, match="seed: expected"):
        diagnose(held_out, bank, seed=-1)
