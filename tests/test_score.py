"""Every score against a second source, and all of them held to one direction."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import oracle
import vicinal
from vicinal import Bank, score
from vicinal.errors import InputError


@st.composite
def worlds(draw):
    """A bank of at least two classes with duplicates and ties, at distances from tiny to hundreds."""
    n, d = draw(st.integers(4, 30)), draw(st.integers(1, 4))
    points = draw(arrays.arrays(np.float32, (n, d), elements=st.integers(-3, 3).map(float)))
    queries = draw(arrays.arrays(np.float32, (3, d), elements=st.floats(-3, 3, width=32)))
    scale = np.float32(draw(st.sampled_from([1e-20, 1e-3, 1.0, 300.0, 1e5])))
    labels = draw(arrays.arrays(np.int64, n, elements=st.sampled_from([-1, 0, 5])))
    labels[:2] = [0, 5]
    predicted = labels[draw(arrays.arrays(np.int64, 3, elements=st.integers(0, n - 1)))]
    return points * scale, labels, queries * scale, predicted


@given(worlds(), st.integers(1, 30), st.sampled_from(["exp", "count", "inverse"]))
@settings(max_examples=200, deadline=None)
def test_distance_is_eq_1_of_a_float64_loop(world, k, kernel):
    points, labels, queries, predicted = world
    k = min(k, len(points))
    bank = Bank(points, labels)
    trust = vicinal.distance(bank, queries, predicted, k=k, kernel=kernel)
    for i, query in enumerate(queries):
        order = oracle.nearest(points, query, k + 1)
        if len(order) > k and order[k][0] - order[k - 1][0] <= 1e-13 * order[k][0]:
            continue  # which of two all but equal points is the k-th depends on the last bit
        share, log_odds = oracle.share_and_log_odds(points, labels, query, predicted[i], k, kernel)
        assert trust.confidence[i] == pytest.approx(share, rel=1e-9, abs=1e-300)
        assert trust.log_odds[i] == pytest.approx(log_odds, rel=1e-9, abs=1e-9)


@given(worlds(), st.sampled_from(["exp", "inverse"]))
@settings(max_examples=100, deadline=None)
def test_every_point_of_the_bank_is_weighed_where_k_is_all(world, kernel):
    points, labels, queries, predicted = world
    trust = vicinal.distance(Bank(points, labels), queries, predicted, k="all", kernel=kernel)
    for i, query in enumerate(queries):
        share, log_odds = oracle.share_and_log_odds(points, labels, query, predicted[i], len(points), kernel)
        assert trust.log_odds[i] == pytest.approx(log_odds, rel=1e-5, abs=1e-4)
        assert trust.confidence[i] == pytest.approx(share, rel=1e-4, abs=1e-4)


WEIGHTS = st.sampled_from([1.0, 3.0, 0.25, 1e-9, 1e9])


@given(worlds(), st.integers(1, 31), st.sampled_from(["exp", "count", "inverse"]), st.data())
@settings(max_examples=200, deadline=None)
def test_a_point_that_stands_for_many_counts_as_many(world, k, kernel, data):
    points, labels, queries, predicted = world
    weights = data.draw(arrays.arrays(np.float64, len(points), elements=WEIGHTS))
    k = min(k, len(points))
    bank = Bank(points, labels, weights=weights)
    trust = vicinal.distance(bank, queries, predicted, k=k, kernel=kernel)
    for i, query in enumerate(queries):
        order = oracle.nearest(points, query, k + 1)
        if len(order) > k and order[k][0] - order[k - 1][0] <= 1e-13 * order[k][0]:
            continue
        share, log_odds = oracle.share_and_log_odds(points, labels, query, predicted[i], k, kernel, weights=weights)
        assert trust.confidence[i] == pytest.approx(share, rel=1e-9, abs=1e-300)
        assert trust.log_odds[i] == pytest.approx(log_odds, rel=1e-9, abs=1e-9)
    if kernel != "count":
        whole = vicinal.distance(bank, queries, predicted, k=len(points), kernel=kernel)
        found = vicinal.distance(bank, queries, predicted, k="all", kernel=kernel)
        np.testing.assert_allclose(found.log_odds, whole.log_odds, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("m", [3, 200])
@pytest.mark.parametrize("kernel", ["exp", "inverse"])
def test_a_weight_of_three_is_the_point_three_times(m, kernel):
    rng = np.random.default_rng(2)
    labels, weights = rng.integers(0, 5, 3000), rng.integers(1, 4, 3000)
    points = (rng.standard_normal((5, 12))[labels] + rng.standard_normal((3000, 12))).astype(np.float32)
    points[77] *= 1e4  # an outlier, which is measured apart
    labels[77], weights[77] = 9, 3
    queries, predicted = rng.standard_normal((m, 12)), rng.integers(0, 5, m)
    predicted[1] = 9
    queries[0] *= 1e30  # far beyond where products in float32 will do
    heavy = vicinal.distance(Bank(points, labels, weights=weights), queries, predicted, k="all", kernel=kernel)
    rows = np.repeat(np.arange(3000), weights)
    repeated = vicinal.distance(Bank(points[rows], labels[rows]), queries, predicted, k="all", kernel=kernel)
    np.testing.assert_allclose(heavy.log_odds, repeated.log_odds, atol=1e-5)
    np.testing.assert_allclose(heavy.rival.log_odds, repeated.rival.log_odds, atol=1e-5)
    assert (heavy.rival.labels == repeated.rival.labels).all()


@pytest.mark.parametrize("k", [7, "all"])
def test_weights_of_one_change_no_bit(k):
    rng = np.random.default_rng(3)
    points, labels = rng.standard_normal((2000, 9)), rng.integers(0, 4, 2000)
    queries, predicted = rng.standard_normal((150, 9)), rng.integers(0, 5, 150)
    plain = vicinal.distance(Bank(points, labels), queries, predicted, k=k)
    ones = vicinal.distance(Bank(points, labels, weights=np.ones(2000)), queries, predicted, k=k)
    assert (ones.log_odds == plain.log_odds).all()
    assert (ones.confidence == plain.confidence).all()
    assert (ones.rival.log_odds == plain.rival.log_odds).all()


def test_the_nearest_of_an_empty_side_counts_as_many_too():
    bank = Bank([[0.0], [1.0], [5.0]], [0, 0, 1], weights=[1, 2, 4])
    trust = vicinal.distance(bank, [[0.0], [0.0]], [0, 7], k=1)
    np.testing.assert_allclose(trust.log_odds[0], 0 - (np.log(4) - 5))
    far = bank.farthest(np.zeros((1, 1), np.float32))[0]
    np.testing.assert_allclose(trust.log_odds[1], -far - 0)  # a class the bank never saw is as one point


@pytest.mark.parametrize("m", [3, 200])
def test_all_agrees_with_a_float64_sum_on_a_larger_bank(m):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 7, 5000)
    points = (rng.standard_normal((7, 20))[labels] + 0.5 * rng.standard_normal((5000, 20))).astype(np.float32)
    queries = points[:m] + np.float32(0.01)
    predicted = rng.integers(0, 7, m)
    trust = vicinal.distance(Bank(points, labels), queries, predicted, k="all", exclude_self=np.arange(m))
    squares = ((queries[:, None].astype(float) - points[None]) ** 2).sum(axis=2)
    squares[np.arange(m), np.arange(m)] = np.inf
    by_class = np.stack(
        [scipy.special.logsumexp(np.where(labels == c, -np.sqrt(squares), -np.inf), axis=1) for c in range(7)], axis=1
    )
    same = by_class[np.arange(m), predicted]
    by_class[np.arange(m), predicted] = -np.inf
    np.testing.assert_allclose(trust.log_odds, same - scipy.special.logsumexp(by_class, axis=1), atol=1e-5)
    assert (trust.rival.labels == by_class.argmax(axis=1)).all()


@pytest.mark.parametrize("kernel", ["exp", "inverse"])
@pytest.mark.parametrize("scale", [1e-25, 1e-6, 1.0, 1e6, 1e19, 1e30])
@pytest.mark.parametrize("away", [0.0, 1e2, 1e5, 1e8])
def test_all_is_every_neighbour_however_far_and_however_large(scale, away, kernel):
    if scale * away > 1e37:
        pytest.skip("beyond float32")
    rng = np.random.default_rng(10)
    labels = np.r_[np.zeros(1500, int), np.arange(1500) % 3]  # the first class comes first, and is removed again
    points = rng.standard_normal((3000, 20)) * scale
    points[700] *= 1e3
    points[2800] *= 1e3
    bank = Bank(points, labels).remove(np.arange(1400))
    queries = rng.standard_normal((150, 20)) * scale + away * scale / math.sqrt(20)
    predicted = rng.integers(0, 4, 150)  # there is no class 3
    whole = vicinal.distance(bank, queries, predicted, k=1600, kernel=kernel)
    found = vicinal.distance(bank, queries, predicted, k="all", kernel=kernel)
    np.testing.assert_allclose(found.log_odds, whole.log_odds, rtol=1e-6, atol=1e-4)
    np.testing.assert_allclose(found.confidence, whole.confidence, atol=1e-4)
    np.testing.assert_allclose(found.rival.log_odds, whole.rival.log_odds, rtol=1e-6, atol=1e-4)


def test_distance_says_which_class_is_the_rival_and_how_strong():
    bank = Bank([[0.0], [1.0], [2.0], [3.0], [9.0]], labels=[0, 1, 1, 2, 3])
    rival = vicinal.distance(bank, [[0.5]], [0], k=4).rival
    weights = np.exp(-np.array([0.5, 0.5, 1.5, 2.5]))
    assert rival.labels.tolist() == [1]
    expected = math.log(weights[1] + weights[2]) - math.log(weights[0] + weights[3])
    assert rival.log_odds[0] == pytest.approx(expected)
    agreed = vicinal.distance(bank, [[0.1]], [0], k=1).rival
    assert agreed.labels.tolist() == [1]
    assert agreed.log_odds[0] == pytest.approx(0.1 - 0.9)


def test_saturation_hides_what_the_log_odds_still_rank():
    """DESIGN's SVHN effect, small: every neighbour agrees everywhere, so D is 1 for all; errors lie near a border."""
    rng = np.random.default_rng(1)
    points = np.concatenate([rng.normal(-2, 0.3, (500, 2)), rng.normal(2, 0.3, (500, 2))])
    bank = Bank(points, np.repeat([0, 1], 500))
    sure, unsure = np.full((20, 2), -2.0), np.full((20, 2), -0.2)
    trust = vicinal.distance(bank, np.concatenate([sure, unsure]), np.zeros(40, int), k=10)
    assert (trust.confidence == 1.0).all()
    assert trust.log_odds[:20].min() > trust.log_odds[20:].max() + 3


def test_log_odds_do_not_underflow_at_distances_of_thousands():
    bank = Bank([[0.0], [5000.0]], labels=[0, 1])
    trust = vicinal.distance(bank, [[100.0]], [1], k=2)
    assert trust.confidence[0] == 0.0
    assert trust.log_odds[0] == pytest.approx(100 - 4900)


@pytest.mark.parametrize("k", [2, "all"])
@pytest.mark.parametrize("kernel", ["exp", "count", "inverse"])
def test_a_class_that_the_bank_never_saw_gets_no_confidence_and_a_note(k, kernel):
    if (k, kernel) == ("all", "count"):
        pytest.skip("refused: see the test of bad input")
    bank = Bank([[0.0], [1.0], [2.0]], labels=[0, 0, 1])
    trust = vicinal.distance(bank, [[0.5], [0.5]], [9, 0], k=k, kernel=kernel)
    assert trust.confidence[0] == 0.0
    assert np.isfinite(trust.log_odds).all()
    assert trust.log_odds[0] < trust.log_odds[1]
    assert "1 predictions name a class that the bank does not have (9)" in trust.notes[0]


@pytest.mark.parametrize("k", [2, "all"])
def test_a_bank_of_one_class_is_all_trust_and_finite(k):
    trust = vicinal.distance(Bank([[0.0], [1.0], [2.0]], labels=[3, 3, 3]), [[0.5]], [3], k=k)
    assert trust.confidence[0] == 1.0
    assert np.isfinite(trust.log_odds).all()
    assert trust.rival.labels.tolist() == [3]


def test_identical_points_are_at_distance_zero_and_finite_under_every_kernel():
    points = np.full((6, 30), 0.1, np.float32)
    for kernel in ("exp", "count", "inverse"):
        trust = vicinal.distance(Bank(points, [0, 0, 0, 1, 1, 1]), points[:2], [0, 1], k=6, kernel=kernel)
        assert (trust.neighbors.distances == 0).all()
        np.testing.assert_allclose(trust.confidence, 0.5)
        np.testing.assert_allclose(trust.log_odds, 0, atol=1e-12)


# -- one direction ---------------------------------------------------------------------------------------------------


def _two_inputs():
    """The first input is one to trust; the second is not, by whatever a score looks at."""
    rng = np.random.default_rng(2)
    points = np.concatenate([rng.normal(-3, 1, (60, 4)), rng.normal(3, 1, (60, 4))]).astype(np.float32)
    bank = Bank(points, np.repeat([0, 1], 60))
    queries = np.array([[-3.0] * 4, [-0.1, 5.0, -5.0, 9.0]])
    logits = np.array([[6.0, 0.0, -1.0], [0.4, 0.3, 0.2]])
    return bank, queries, np.array([0, 0]), logits


SCORES = {
    "distance": lambda b, q, p, z: score.distance(b, q, p, k=20),
    "distance count": lambda b, q, p, z: score.distance(b, q, p, k=100, kernel="count"),
    "distance inverse": lambda b, q, p, z: score.distance(b, q, p, k=20, kernel="inverse"),
    "distance all": lambda b, q, p, z: score.distance(b, q, p, k="all"),
    "kth_distance": lambda b, q, p, z: score.kth_distance(b, q, k=5),
    "kth_distance unit": lambda b, q, p, z: score.kth_distance(b, q, k=5, unit=True),
    "trust_ratio": lambda b, q, p, z: score.trust_ratio(b, q, p),
    "mahalanobis": lambda b, q, p, z: score.mahalanobis(b, q),
    "mahalanobis predicted": lambda b, q, p, z: score.mahalanobis(b, q, p),
    "margin": lambda b, q, p, z: score.margin(z),
    "entropy": lambda b, q, p, z: score.entropy(z),
    "top_two_gap": lambda b, q, p, z: score.top_two_gap(z),
    "max_logit": lambda b, q, p, z: score.max_logit(z),
    "energy": lambda b, q, p, z: score.energy(z),
}


@pytest.mark.parametrize("name", SCORES)
def test_larger_is_more_trustworthy(name):
    trust = SCORES[name](*_two_inputs())
    assert trust.log_odds[0] > trust.log_odds[1]
    assert trust.confidence[0] >= trust.confidence[1]
    assert np.isfinite(trust.log_odds).all()
    assert trust.name == name.split()[0]


def test_every_public_score_is_held_to_the_direction():
    assert {name.split()[0] for name in SCORES} == set(score.__all__)


# -- the softmax scores ----------------------------------------------------------------------------------------------

LOGITS = arrays.arrays(np.float64, (4, 5), elements=st.floats(-30, 30))


@given(LOGITS, st.sampled_from([0.5, 1.0, 3.0]))
@settings(deadline=None)
def test_softmax_scores_are_their_formulas(logits, temperature):
    p = scipy.special.softmax(logits / temperature, axis=1)
    ordered = np.sort(p, axis=1)
    np.testing.assert_allclose(score.margin(logits, temperature=temperature).confidence, p.max(axis=1))
    found = score.entropy(logits, temperature=temperature).confidence
    np.testing.assert_allclose(found, -scipy.stats.entropy(p, axis=1), atol=1e-12)
    gap = score.top_two_gap(logits, temperature=temperature).confidence
    np.testing.assert_allclose(gap, ordered[:, -1] - ordered[:, -2], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        score.energy(logits, temperature=temperature).confidence,
        temperature * scipy.special.logsumexp(logits / temperature, axis=1),
        atol=1e-12,
    )
    assert (score.max_logit(logits).confidence == logits.max(axis=1)).all()


@given(LOGITS)
@settings(deadline=None)
def test_log_odds_rank_as_the_confidence_does(logits):
    for function in (score.margin, score.entropy, score.top_two_gap):
        trust = function(logits)
        order = np.argsort(trust.log_odds)
        assert (np.diff(trust.confidence[order]) >= -1e-12).all()
        if trust.probability:
            inside = (trust.confidence > 1e-6) & (trust.confidence < 1 - 1e-6)
            expected = scipy.special.logit(trust.confidence[inside])
            np.testing.assert_allclose(trust.log_odds[inside], expected, rtol=1e-6, atol=1e-6)


def test_log_odds_still_tell_logits_apart_whose_softmax_is_1():
    logits = np.array([[400.0, 0.0, 0.0], [500.0, 0.0, 0.0], [800.0, 0.0, 0.0]])
    for function in (score.margin, score.entropy, score.top_two_gap):
        trust = function(logits)
        np.testing.assert_allclose(trust.confidence, trust.confidence[0], atol=1e-100)
        assert (np.diff(trust.log_odds) > 50).all()


def test_probabilities_give_what_their_logits_give():
    logits = np.random.default_rng(3).normal(0, 2, (50, 6))
    p = scipy.special.softmax(logits, axis=1)
    for function in (score.margin, score.entropy, score.top_two_gap):
        np.testing.assert_allclose(function(probabilities=p).log_odds, function(logits).log_odds, rtol=1e-9)
    sure = score.margin(probabilities=[[1.0, 0.0], [0.5, 0.5]])
    assert sure.confidence.tolist() == [1.0, 0.5]
    assert np.isfinite(sure.log_odds).all()


@pytest.mark.parametrize("function", [score.margin, score.entropy, score.top_two_gap, score.max_logit, score.energy])
def test_extreme_logits_stay_finite(function):
    trust = function([[1e308, -1e308], [0.0, 0.0], [-1e308, -1e308]])
    assert np.isfinite(trust.log_odds).all()
    assert np.isfinite(trust.confidence).all()


# -- the neighbours' rivals ------------------------------------------------------------------------------------------


def test_kth_distance_is_scikit_learns():
    from sklearn.neighbors import NearestNeighbors

    rng = np.random.default_rng(4)
    points, queries = rng.standard_normal((300, 6)), rng.standard_normal((40, 6))
    bank = Bank(points, np.zeros(300)).remove([0])
    found = score.kth_distance(bank, queries, k=7)
    expected, _ = NearestNeighbors(n_neighbors=7, algorithm="brute").fit(points[1:]).kneighbors(queries)
    np.testing.assert_allclose(-found.confidence, expected[:, -1], rtol=1e-5)
    unit = score.kth_distance(bank, queries, k=7, unit=True)
    cosine = NearestNeighbors(n_neighbors=7, metric="cosine").fit(points[1:])
    expected, rows = cosine.kneighbors(queries)
    np.testing.assert_allclose(-unit.confidence, np.sqrt(2 * expected[:, -1]), rtol=1e-4)
    assert (unit.neighbors.indices == rows + 1).all()


def test_trust_ratio_is_the_quotient_of_two_nearest():
    bank = Bank([[0.0], [1.0], [4.0]], labels=[0, 0, 1])
    trust = score.trust_ratio(bank, [[1.5], [4.0], [0.0], [1.5]], [0, 0, 0, 7])
    np.testing.assert_allclose(trust.confidence[:2], [2.5 / 0.5, 0.0], atol=1e-290)
    assert trust.log_odds[2] == pytest.approx(math.log(4.0) - math.log(1e-300))
    assert trust.log_odds[3] < 0
    assert "class that the bank does not have (7)" in trust.notes[0]


def test_mahalanobis_is_scipys_with_the_shared_covariance():
    from scipy.spatial.distance import cdist

    rng = np.random.default_rng(5)
    labels = rng.integers(0, 3, 400)
    turn = rng.standard_normal((5, 5))
    points = ((rng.standard_normal((3, 5)) * 3)[labels] + rng.standard_normal((400, 5))) @ turn
    queries = rng.standard_normal((30, 5)) @ turn
    means = np.stack([points[labels == c].mean(axis=0) for c in range(3)])
    within = np.cov((points - means[labels]).T, bias=True)
    expected = cdist(queries, means, "mahalanobis", VI=np.linalg.inv(within)) ** 2
    bank = Bank(points, labels * 10)
    np.testing.assert_allclose(-score.mahalanobis(bank, queries).confidence, expected.min(axis=1), rtol=1e-4)
    chosen = score.mahalanobis(bank, queries, np.full(30, 20))
    np.testing.assert_allclose(-chosen.confidence, expected[:, 2], rtol=1e-4)
    whole = np.linalg.inv(np.cov(points.T, bias=True))
    background = cdist(queries, points.mean(axis=0)[None], "mahalanobis", VI=whole)[:, 0] ** 2
    relative = score.mahalanobis(bank, queries, relative=True)
    np.testing.assert_allclose(relative.confidence, background - expected.min(axis=1), rtol=1e-3, atol=1e-3)


def test_mahalanobis_sees_what_happens_in_narrow_directions():
    """Half of the directions are a thousand times narrower than the others, and only there do the classes differ."""
    rng = np.random.default_rng(8)
    labels, turn = rng.integers(0, 2, 3000), scipy.stats.ortho_group.rvs(40, random_state=9)
    widths = np.where(np.arange(40) < 20, 1.0, 1e-3)
    points = ((rng.standard_normal((3000, 40)) + 3 * labels[:, None] * (np.arange(40) == 39)) * widths) @ turn
    bank = Bank(points[:2000], labels[:2000])
    trust = score.mahalanobis(bank, points[2000:], labels[2000:])
    wrong = score.mahalanobis(bank, points[2000:], 1 - labels[2000:])
    assert (trust.confidence > wrong.confidence).mean() > 0.9
    stretched = Bank(points[:2000] * np.geomspace(1e-6, 1e6, 40), labels[:2000])
    again = score.mahalanobis(stretched, points[2000:] * np.geomspace(1e-6, 1e6, 40), labels[2000:])
    np.testing.assert_allclose(again.confidence, trust.confidence, rtol=0.01)


def test_mahalanobis_leaves_out_directions_in_which_nothing_varies():
    rng = np.random.default_rng(6)
    points = np.column_stack([rng.standard_normal(100), np.full(100, 2.0)])
    trust = score.mahalanobis(Bank(points, np.zeros(100)), [[0.0, 2.0], [3.0, 2.0]], [0, 4])
    assert -0.1 < trust.confidence[0] <= 0
    assert trust.confidence[1] < -9
    assert "(4)" in trust.notes[0]


# -- bad input -------------------------------------------------------------------------------------------------------

BANK = Bank([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]], labels=[0, 0, 1])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: score.distance(BANK, [[0.0, 0.0]], [0], k=4), r"k: expected a whole number from 1 to 3, the size of"),
        (lambda: score.distance(BANK, [[0.0, 0.0]], [0], k=0), "k: expected a whole number from 1 to 3"),
        (lambda: score.distance(BANK, [[0.0, 0.0]], [0], k="every"), "k: expected a whole number"),
        (lambda: score.distance(BANK, [[0.0, 0.0]], [0, 1], k=1), "predicted: expected 1, one for each query, got 2"),
        (lambda: score.distance(BANK, [[0.0]], [0], k=1), "queries: expected 2 columns, as in the bank, got 1"),
        (lambda: score.distance(BANK, [[0.0, 0.0]], [0], kernel="expo"), "kernel: .* did you mean 'exp'"),
        (lambda: score.distance(BANK, [[0.0, 0.0]], [0], k="all", kernel="count"), "kernel: expected 'exp' or"),
        (lambda: score.distance(BANK, [[0.0, 0.0]], [0.5], k=1), "predicted: expected whole numbers, got 0.5"),
        (lambda: score.distance([[0.0, 0.0]], [[0.0, 0.0]], [0]), "bank: expected a Bank, got list"),
        (lambda: score.mahalanobis(None, [[0.0, 0.0]]), "bank: expected a Bank, got NoneType"),
        (lambda: score.margin(), "logits, probabilities: expected one of the two, got neither"),
        (lambda: score.margin([[0.5, 0.5]], probabilities=[[0.5, 0.5]]), "got both"),
        (lambda: score.margin(probabilities=[[2.0, -1.0]]), "if these are logits, pass them as logits"),
        (lambda: score.margin(probabilities=[[0.7, 0.7]]), "row 0 sums to 1.4"),
        (lambda: score.margin([[1.0, 2.0]], temperature=0.0), r"temperature: expected a number in \[1e-100"),
        (lambda: score.margin([[1.0, 2.0]], temperature=True), "temperature: expected a number in"),
        (lambda: score.trust_ratio(BANK, [[0.0, 0.0]], None), "predicted: expected"),
        (lambda: score.distance(BANK, [[0.0, 0.0]], [0], k=np.array([1, 2])), "k: expected a whole number"),
        (lambda: score.distance(BANK, [[0.0, 0.0]], [0], k=1, exclude_self=[0, 1]), "exclude_self: expected 1"),
        (lambda: score.distance(BANK, [[0.0, 0.0]], [0], k=1, exclude_self=None), "exclude_self: expected True, False"),
        (
            lambda: score.distance(BANK, [[0.0, 0.0]], [0], k=1, exclude_self="self"),
            "exclude_self: expected True, False",
        ),
        (lambda: score.margin([[1.0]]), "logits: expected shape"),
        (lambda: score.kth_distance(BANK, [[1.0, 0.0]], k=1, unit=True), "bank: expected vectors with a direction"),
    ],
)
def test_bad_input_is_refused_in_words(call, said):
    with pytest.raises(InputError, match=said):
        call()


def test_nothing_is_left_of_a_bank_of_one_point_without_it():
    for k in (1, "all"):
        with pytest.raises(InputError, match="exclude_self: expected a bank of at least two points"):
            score.distance(Bank([[0.0]], [0]), [[0.0]], [0], k=k, exclude_self=True)


def test_numbers_of_numpy_are_numbers():
    rng = np.random.default_rng(9)
    bank, queries = Bank(rng.standard_normal((90, 2)), np.arange(90) % 3), rng.standard_normal((4, 2))
    assert score.distance(bank, queries, [0, 1, 2, 0], k=np.int64(50)).neighbors.k == 50
    cold = score.margin([[1.0, 2.0]], temperature=np.float32(2))
    assert cold.confidence == score.margin([[1.0, 2.0]], temperature=2).confidence


def test_many_neighbours_are_summed_in_batches_and_the_nearest_kept(monkeypatch):
    rng = np.random.default_rng(7)
    points, queries = rng.standard_normal((200, 3)), rng.standard_normal((30, 3))
    bank, predicted = Bank(points, rng.integers(0, 4, 200)), rng.integers(0, 5, 30)
    rows = rng.permutation(200)[:30]
    whole = vicinal.distance(bank, queries, predicted, k=150, exclude_self=rows)
    monkeypatch.setattr(score, "_KEPT", 1000)
    monkeypatch.setattr(score, "_BATCH", 150 * 7)
    parts = vicinal.distance(bank, queries, predicted, k=150, exclude_self=rows)
    for name in ("confidence", "log_odds"):
        assert (getattr(parts, name) == getattr(whole, name)).all()
    assert (parts.rival.labels == whole.rival.labels).all()
    assert (parts.neighbors.indices == whole.neighbors.indices[:, :10]).all()
    assert (parts.neighbors.other.indices == whole.neighbors.other.indices).all()
