"""All scores of a network from one search: each is what its own function gives."""

from __future__ import annotations

import numpy as np
import pytest

from vicinal import Bank, Embeddings, score
from vicinal.paper import peers
from vicinal.paper.chosen import best_k, choose, fit_temperature
from vicinal.paper.scores import as_published, of_neighbors, of_outputs, usable
from vicinal.values import LOG_PROBABILITIES, Neighbors

RANDOM = np.random.default_rng(0)
LABELS = np.arange(90) % 3
BANK = Bank((RANDOM.normal(size=(90, 5)) + LABELS[:, None]).astype(np.float32), LABELS)
TRUTH = RANDOM.integers(0, 3, 40)
SEEN = Embeddings(
    (RANDOM.normal(size=(40, 5)) + TRUTH[:, None]).astype(np.float32),
    (np.eye(3)[TRUTH] + RANDOM.normal(size=(40, 3))).astype(np.float32),
    TRUTH,
)


@pytest.fixture(scope="module")
def found():
    return of_neighbors(BANK, SEEN, (5, 20, 200))


def test_numbers_of_neighbours_that_the_bank_has(found):
    assert usable((5, 20, 200), BANK) == [5, 20]
    assert usable((200,), BANK) == [90]
    assert {name for name in found if name.startswith("distance ")} == {"distance 5", "distance 20"}


def test_each_is_what_its_function_gives(found):
    given = BANK, SEEN.vectors, SEEN.predicted
    for k in (5, 20):
        trust = score.distance(*given, k=k)
        np.testing.assert_array_equal(found[f"distance {k}"], trust.log_odds)
        np.testing.assert_array_equal(found[f"share {k}"], trust.confidence)
        np.testing.assert_array_equal(found[f"kth_distance {k}"], score.kth_distance(*given[:2], k=k).log_odds)
    np.testing.assert_array_equal(found["trust_ratio"], score.trust_ratio(*given).log_odds)
    np.testing.assert_array_equal(found["mahalanobis"], score.mahalanobis(*given).log_odds)
    for kernel in ("exp", "count", "inverse"):
        np.testing.assert_array_equal(found[kernel], score.distance(*given, k=20, kernel=kernel).log_odds)


def test_batches_change_nothing(found, monkeypatch):
    monkeypatch.setattr("vicinal.paper.scores._BATCH", 7)
    again = of_neighbors(BANK, SEEN, (5, 20, 200))
    for name in set(found) - {"scaled"}:  # which divides by the mean of its batch
        np.testing.assert_allclose(again[name], found[name], rtol=1e-9)


def test_as_published_is_eq_1_in_float32_and_saturates():
    near = Neighbors(np.array([[1.0, 2.0, 40.0]]), np.zeros((1, 3)), np.array([[0, 0, 1]]))
    assert as_published(near, np.array([0])).tolist() == [1.0]
    weights = np.exp(-np.array([1.0, 2.0], np.float32))
    mixed = Neighbors(np.array([[1.0, 2.0]]), np.zeros((1, 2)), np.array([[0, 1]]))
    assert as_published(mixed, np.array([0])) == pytest.approx(weights[0] / weights.sum())


def test_averaged_probabilities_have_no_size_of_logits():
    averaged = Embeddings(SEEN.vectors, SEEN.logits, TRUTH, facts=dict([LOG_PROBABILITIES]))
    assert set(of_outputs(SEEN)) - set(of_outputs(averaged)) == {"max_logit", "energy"}


def test_the_temperature_is_the_likeliest():
    losses = {}
    for temperature in (0.5 * fit_temperature(SEEN), fit_temperature(SEEN), 2 * fit_temperature(SEEN)):
        scaled = np.asarray(SEEN.logits, np.float64) / temperature
        logs = scaled - np.log(np.exp(scaled).sum(axis=1, keepdims=True))
        losses[temperature] = -logs[np.arange(40), TRUTH].mean()
    assert min(losses, key=losses.get) == fit_temperature(SEEN)


def test_k_is_chosen_by_auroc(found):
    scores = {**found, **of_outputs(SEEN)}
    chosen = choose(scores, SEEN)
    by_k = {k: scores[f"distance {k}"] for k in (5, 20)}
    assert chosen.ks["distance"] == best_k(by_k, SEEN.correct)
    assert best_k({5: np.arange(40.0), 90: np.arange(40.0)}, np.ones(40, bool)) == 50
    np.testing.assert_allclose(chosen.fused(scores).shape, (40,))


def test_peers_that_are_not_installed_are_named(monkeypatch):
    monkeypatch.setattr(peers, "_installed", lambda package: package != "cleanlab")
    assert peers.missing_peers() == ("cleanlab",)
    assert set(peers.peer_scores(BANK, SEEN.vectors)) == {"local_outlier_factor", "one_class_svm"}


def test_peers_trust_what_is_near_more_than_what_is_far():
    asked = np.stack([BANK.vectors.mean(axis=0), BANK.vectors.mean(axis=0) + 50])
    for name, found in peers.peer_scores(BANK, asked).items():
        assert found[0] > found[1], name


def test_peers_see_a_share_of_a_large_bank(monkeypatch):
    monkeypatch.setattr(peers, "MOST", 30)
    monkeypatch.setitem(peers.PEERS, "local_outlier_factor", ("sklearn", lambda known, asked: np.full(1, len(known))))
    assert peers.peer_scores(BANK, SEEN.vectors[:1])["local_outlier_factor"] == [30]
