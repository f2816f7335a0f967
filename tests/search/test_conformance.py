"""What every search must answer, whatever way it takes: brute force's own answer, ties included."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import oracle
from vicinal import Bank
from vicinal.search import brute

SEARCHES = [
    "brute",
    "exact",
    pytest.param("torch", marks=pytest.mark.skipif(not find_spec("torch"), reason="no torch")),
]
each_search = pytest.mark.parametrize("search", SEARCHES)


@st.composite
def worlds(draw):
    """A bank with duplicates and ties, at any scale and far from the origin, and queries, some of them bank points."""
    n, d, m = draw(st.integers(2, 40)), draw(st.integers(1, 6)), draw(st.integers(1, 5))
    whole = st.integers(-3, 3).map(float)
    real = st.floats(-2, 2, width=32)
    entries = draw(st.sampled_from([whole, real]))
    points = draw(arrays.arrays(np.float32, (n, d), elements=entries))
    queries = draw(arrays.arrays(np.float32, (m, d), elements=entries))
    queries[0] = points[draw(st.integers(0, n - 1))]
    scale = np.float32(draw(st.sampled_from([1e-30, 1e-18, 1e-3, 1.0, 1e4, 1e18, 1e20, 1e30])))
    shift = np.float32(draw(st.sampled_from([0.0, 1.0, 1000.0])))
    labels = draw(arrays.arrays(np.int64, n, elements=st.sampled_from([-4, 0, 1, 7])))
    return (points + shift) * scale, labels, (queries + shift) * scale


@each_search
@given(world=worlds(), data=st.data())
@settings(max_examples=150, deadline=None)
def test_agrees_with_a_float64_loop(search, world, data):
    points, labels, queries = world
    k = data.draw(st.integers(1, len(points)))
    predicted = data.draw(arrays.arrays(np.int64, len(queries), elements=st.sampled_from([-4, 0, 1, 7])))
    near = Bank(points, labels, search=search).nearest(queries, k, predicted=predicted)
    for i, query in enumerate(queries):
        expected = oracle.nearest(points, query, k)
        np.testing.assert_allclose(near.distances[i], [d for d, _ in expected], rtol=1e-14)
        _assert_same_order(near.indices[i], near.distances[i], expected)
        assert (near.labels[i] == labels[near.indices[i]]).all()
        ranked = oracle.nearest(points, query, len(points))
        for side, wanted in ((near.same, True), (near.other, False)):
            match = [(d, j) for d, j in ranked if (labels[j] == predicted[i]) == wanted]
            if match:
                assert side.distances[i] == pytest.approx(match[0][0], rel=1e-14)
                assert labels[side.indices[i]] == side.labels[i]
                assert (side.labels[i] == predicted[i]) == wanted
            else:
                assert (side.distances[i], side.indices[i]) == (np.inf, -1)


def _assert_same_order(indices, distances, expected):
    """Equal rows, except among distances that differ by rounding only; and exact ties by the lowest row."""
    for c, (d, j) in enumerate(expected):
        if indices[c] != j:
            assert abs(distances[c] - d) <= 1e-14 * d
    tied = np.flatnonzero(distances[1:] == distances[:-1])
    assert (indices[tied] < indices[tied + 1]).all()
    assert len(set(indices.tolist())) == len(indices)


@each_search
@pytest.mark.parametrize("m", [1, 5, 140, 700])
@pytest.mark.parametrize("k", [1, 7, 300, 3000])
def test_every_path_through_the_blocks_agrees_with_sorting(m, k, search):
    rng = np.random.default_rng(3)
    points = rng.standard_normal((3000, 5)).astype(np.float32)
    labels = rng.integers(0, 3, 3000)
    queries = rng.standard_normal((m, 5)).astype(np.float32)
    near = Bank(points, labels, search=search).nearest(queries, k, predicted=np.zeros(m, int))
    squares = ((queries[:, None].astype(float) - points[None]) ** 2).sum(axis=2)
    order = np.argsort(squares, axis=1, kind="stable")[:, :k]
    assert (near.indices == order).all()
    np.testing.assert_allclose(near.distances, np.sqrt(np.take_along_axis(squares, order, 1)), rtol=1e-13)
    zero = labels == 0
    np.testing.assert_allclose(near.same.distances, np.sqrt(squares[:, zero].min(axis=1)), rtol=1e-13)
    np.testing.assert_allclose(near.other.distances, np.sqrt(squares[:, ~zero].min(axis=1)), rtol=1e-13)


@each_search
@pytest.mark.parametrize("order", ["random", "by class", "far to near", "near to far"])
def test_sampled_bars_do_not_depend_on_the_order_of_the_bank(order, search):
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 20, 20_000)
    points = (rng.standard_normal((20, 8))[labels] * 3 + rng.standard_normal((20_000, 8))).astype(np.float32)
    rows = {
        "random": np.arange(20_000),
        "by class": np.argsort(labels),
        "far to near": np.argsort(-np.linalg.norm(points, axis=1)),
        "near to far": np.argsort(np.linalg.norm(points, axis=1)),
    }[order]
    queries = points[:200] + np.float32(0.1)
    near = Bank(points[rows], labels[rows], search=search).nearest(queries, 40, predicted=labels[:200])
    squares = ((queries[:, None].astype(float) - points[rows][None]) ** 2).sum(axis=2)
    assert (near.indices == np.argsort(squares, axis=1, kind="stable")[:, :40]).all()


@each_search
def test_more_ties_than_there_is_room_for(search):
    points = np.zeros((5000, 3), np.float32)
    points[2500:] = 1
    near = Bank(points, np.arange(5000) % 2, search=search).nearest(
        np.zeros((200, 3)), 10, predicted=np.zeros(200, int)
    )
    assert (near.indices == np.arange(10)).all()
    assert (near.distances == 0).all()
    assert (near.same.indices == 0).all()
    assert (near.other.indices == 1).all()


@each_search
def test_squares_that_differ_in_the_last_bit_only_are_ties_if_their_roots_are_equal(search):
    points = np.array([[3, 2, 1, 2, 1, 4], [2, 3, -1, 4, 0, 3]], np.float32) * np.float32(1e18)
    query = np.array([[-1, 0, -1, 1, 0, 3]], np.float32) * np.float32(1e18)
    for order in ([0, 1], [1, 0]):
        near = Bank(points[order], [5, 5], search=search).nearest(query, 2, predicted=[5])
        assert near.distances[0, 0] == near.distances[0, 1]
        assert near.indices.tolist() == [[0, 1]]
        assert near.same.indices.tolist() == [0]


def test_a_guess_that_proves_too_high_is_found_out(monkeypatch):
    rng = np.random.default_rng(5)
    points, queries = rng.standard_normal((9000, 4)).astype(np.float32), rng.standard_normal((150, 4))
    expected = Bank(points, np.zeros(9000)).nearest(queries, 20)
    monkeypatch.setattr(brute._Pass, "_first_bars", lambda self: np.full(len(self.queries), 3e38, np.float32))
    found = Bank(points, np.zeros(9000)).nearest(queries, 20)
    assert (found.indices == expected.indices).all()


@each_search
def test_points_far_from_the_origin_and_near_each_other(search):
    rng = np.random.default_rng(6)
    points = (1e4 + rng.standard_normal((4000, 16))).astype(np.float32)
    queries = (1e4 + rng.standard_normal((150, 16))).astype(np.float32)
    near = Bank(points, np.zeros(4000), search=search).nearest(queries, 5)
    squares = ((queries[:, None].astype(float) - points[None]) ** 2).sum(axis=2)
    assert (near.indices == np.argsort(squares, axis=1, kind="stable")[:, :5]).all()


@each_search
def test_one_point_a_billion_times_farther_than_the_rest_hides_nothing(search):
    rng = np.random.default_rng(7)
    points = rng.standard_normal((3000, 4)).astype(np.float32)
    points[1234] = 1e20
    queries = np.concatenate([rng.standard_normal((150, 4)), [[1e20] * 4], [[3e38] * 4]]).astype(np.float32)
    near = Bank(points, np.zeros(3000), search=search).nearest(queries, 3)
    squares = ((queries[:, None].astype(float) - points[None]) ** 2).sum(axis=2)
    assert (near.indices[:151] == np.argsort(squares, axis=1, kind="stable")[:151, :3]).all()
    assert np.isfinite(near.distances).all()


@pytest.mark.parametrize("times", [5, 100, 1e5, 1e12])
def test_a_few_outliers_cost_nothing_and_hide_nothing(times, monkeypatch):
    def refuse(self, i):
        raise AssertionError("a query had to be measured against every point")

    monkeypatch.setattr(brute._Pass, "_measure_all", refuse)
    rng = np.random.default_rng(11)
    points = rng.standard_normal((4000, 30)).astype(np.float32)
    far = np.array([3, 1000, 3999])
    points[far] *= np.float32(times)
    labels = rng.integers(0, 3, 4000)
    labels[far] = 9  # the nearest of their class are outliers
    queries = rng.standard_normal((200, 30)).astype(np.float32)
    queries[:3] = points[far]
    predicted, own = rng.choice([0, 9], 200), np.full(200, 17)
    own[:3] = far
    near = Bank(points, labels).nearest(queries, 20, predicted=predicted, exclude_self=own)
    distances = np.sqrt(((queries[:, None].astype(float) - points[None]) ** 2).sum(axis=2))
    distances[np.arange(200), own] = np.inf
    assert (near.indices == np.argsort(distances, axis=1, kind="stable")[:, :20]).all()
    same = labels == predicted[:, None]
    assert (near.same.indices == np.where(same, distances, np.inf).argmin(axis=1)).all()
    assert (near.other.indices == np.where(same, np.inf, distances).argmin(axis=1)).all()


@each_search
def test_as_many_neighbours_as_there_are_points_include_the_outliers(search):
    rng = np.random.default_rng(12)
    points = rng.standard_normal((300, 3)).astype(np.float32)
    points[7] *= 1e6
    near = Bank(points, np.zeros(300), search=search).nearest(points[:100], 300)
    assert (np.sort(near.indices, axis=1) == np.arange(300)).all()
    assert (near.indices[np.arange(100) != 7, -1] == 7).all()


@each_search
@pytest.mark.parametrize("m", [40, 1500])
def test_leaving_oneself_out_is_by_row_so_that_a_duplicate_still_counts(m, search):
    points = np.repeat(np.arange(m / 2, dtype=np.float32), 2)[:, None]
    labels = np.arange(m) % 2
    near = Bank(points, labels, search=search).nearest(points, 1, exclude_self=True, predicted=labels)
    assert (near.indices[:, 0] == np.arange(m) + 1 - 2 * (np.arange(m) % 2)).all()
    assert (near.distances == 0).all()
    assert (near.other.distances == 0).all()
    assert (near.same.distances == 1).all()


@each_search
def test_permutation_rotation_and_batches_change_nothing(search):
    rng = np.random.default_rng(8)
    points, queries = rng.standard_normal((2000, 12)), rng.standard_normal((300, 12))
    labels = rng.integers(0, 5, 2000)
    near = Bank(points, labels, search=search).nearest(queries, 25)
    shuffle = rng.permutation(2000)
    shuffled = Bank(points[shuffle], labels[shuffle], search=search).nearest(queries, 25)
    assert (shuffle[shuffled.indices] == near.indices).all()
    assert (shuffled.distances == near.distances).all()
    turn, _ = np.linalg.qr(rng.standard_normal((12, 12)))
    turned = Bank(points @ turn, labels, search=search).nearest(queries @ turn, 25)
    np.testing.assert_allclose(turned.distances, near.distances, rtol=1e-5)
    one_by_one = [
        Bank(points, labels, search=search).nearest(queries[i : i + 1], 25).indices[0] for i in range(0, 300, 50)
    ]
    assert (np.array(one_by_one) == near.indices[::50]).all()


@each_search
@pytest.mark.parametrize("peer", ["scikit-learn", "faiss", "torch"])
def test_other_libraries_find_the_same_points(peer, search):
    rng = np.random.default_rng(10)
    points = rng.standard_normal((5000, 20), dtype=np.float32)
    queries = rng.standard_normal((300, 20), dtype=np.float32)
    near = Bank(points, np.zeros(5000), search=search).nearest(queries, 30)
    distances, indices = _asked(peer, points, queries, 30)
    np.testing.assert_allclose(near.distances, distances, rtol=1e-4)
    apart = np.diff(near.distances, axis=1).min(axis=1) > 1e-4  # float32 cannot mistake the order of these
    assert apart.sum() > 50
    assert (near.indices[apart] == indices[apart]).all()


def _asked(peer, points, queries, k):
    if peer == "scikit-learn":
        from sklearn.neighbors import NearestNeighbors

        return NearestNeighbors(n_neighbors=k, algorithm="brute").fit(points).kneighbors(queries)
    if peer == "faiss":
        faiss = pytest.importorskip("faiss")
        index = faiss.IndexFlatL2(points.shape[1])
        index.add(points)
        squares, indices = index.search(queries, k)
        return np.sqrt(squares), indices
    torch = pytest.importorskip("torch")
    found = torch.cdist(torch.from_numpy(queries), torch.from_numpy(points)).topk(k, largest=False)
    return found.values.numpy(), found.indices.numpy()


@each_search
def test_many_threads_at_once_get_the_same_answer_and_leave_the_matrix_library_as_it_was(search):
    from threadpoolctl import threadpool_info

    def threads():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    rng = np.random.default_rng(9)
    bank = Bank(rng.standard_normal((4000, 8)), np.zeros(4000), search=search)
    queries = rng.standard_normal((400, 8))
    expected, before = bank.nearest(queries, 9).indices, threads()
    start = threading.Barrier(4)

    def ask(_):
        start.wait()
        return bank.nearest(queries, 9).indices

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(ask, range(4)))
    assert all((answer == expected).all() for answer in answers)
    assert threads() == before


def test_memory_stays_bounded_whatever_the_number_of_queries():
    """Peak memory of a search in a process of its own, less the bank, the queries and the answer."""
    import subprocess
    import sys

    script = """
import numpy as np, resource, vicinal
rng = np.random.default_rng(0)
bank = vicinal.Bank(rng.standard_normal((20_000, 64), dtype=np.float32), rng.integers(0, 9, 20_000))
queries = rng.standard_normal((30_000, 64), dtype=np.float32)
bank.nearest(queries[:600], 20)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
near = bank.nearest(queries, 20)
answer = near.distances.nbytes + near.indices.nbytes + near.labels.nbytes
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before / 1024 - answer / 2**20)
"""
    grown = float(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)
    assert grown < 256
