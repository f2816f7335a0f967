"""Search by shadows: the bound it rests on, and brute force's answer to the last bit wherever shadows are used."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from vicinal import Bank, pages
from vicinal.search import BruteSearch, Points, dots, exact, worth
from vicinal.search.exact import ExactSearch
from vicinal.search.shadows import Shadows, axes_of, turned
from vicinal.search.sifting import needed


def structured(n, d, seed=0, classes=20):
    """Points near a few directions, in classes, and queries like them: most can be proved too far by a few axes."""
    rng = np.random.default_rng(seed)
    spread = 1 / np.arange(1, d + 1) ** 1.5
    centres = 3 * rng.standard_normal((classes, d)) * spread
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]

    def draw(rows):
        labels = rng.integers(0, classes, rows)
        return ((centres[labels] + rng.standard_normal((rows, d)) * spread) @ turn).astype(np.float32), labels

    return *draw(n), *draw(300)


def same(left, right):
    """Whether two answers are the same to the last bit."""
    names = ("distances", "places", "near_distances", "near_places")
    return all(np.array_equal(getattr(left, name), getattr(right, name)) for name in names)


@st.composite
def worlds(draw):
    """A small bank with ties and outliers, at a scale and far from the origin or not, and queries."""
    n, d, m = draw(st.integers(2, 60)), draw(st.integers(1, 9)), draw(st.integers(1, 6))
    entries = draw(st.sampled_from([st.integers(-3, 3).map(float), st.floats(-2, 2, width=32)]))
    points = draw(arrays.arrays(np.float32, (n, d), elements=entries))
    queries = draw(arrays.arrays(np.float32, (m, d), elements=entries))
    queries[0] = points[0]
    if draw(st.booleans()):
        points[-1] *= 1000
    scale, shift = (np.float32(draw(st.sampled_from(some))) for some in ([1e-5, 1.0, 1e5, 1e25], [0.0, 1.0, 300.0]))
    return (points + shift) * scale, (queries + shift) * scale


@given(world=worlds(), data=st.data())
@settings(max_examples=200, deadline=None)
def test_any_number_of_axes_gives_brute_forces_answer_to_the_last_bit(world, data):
    vectors, queries = world
    n, m = len(vectors), len(queries)
    labels = data.draw(arrays.arrays(np.int64, n, elements=st.integers(0, 3)))
    predicted = data.draw(arrays.arrays(np.int32, m, elements=st.integers(-1, 3)))
    points = Points.of(vectors, labels)
    if n > 4 and data.draw(st.booleans()):
        points = points.remove(np.array([1, 2])).add(vectors[:3], labels[:3])
    skip = data.draw(st.sampled_from([None, np.full(m, 0), np.full(m, n - 1)]))
    k = data.draw(st.integers(1, max(1, int(points.living.sum()) - 1)))
    width = data.draw(st.integers(1, vectors.shape[1]))
    found = ExactSearch(points, width).nearest(queries, k, exclude=skip, predicted=predicted)
    assert same(found, BruteSearch(points).nearest(queries, k, exclude=skip, predicted=predicted))


@given(world=worlds(), data=st.data())
@settings(max_examples=200, deadline=None)
def test_a_point_within_the_bar_is_never_sifted_out_rounding_included(world, data):
    vectors, queries = world
    points = Points.of(vectors, np.zeros(len(vectors), int))
    if not 1e-12 < points.reach < 1e12:
        return
    shadows = Shadows.of(points, turned(axes_of(points)[:, : data.draw(st.integers(1, vectors.shape[1]))]))
    asked, (tiles,) = shadows.ask(queries, points), shadows.tiles
    found = np.empty((dots.GROUP, dots.TILE), np.int32)
    for i in np.flatnonzero(asked.decided):
        group = i // dots.GROUP * dots.GROUP
        dots.dots(found, tiles.numbers, 0, asked.numbers, group, tiles.begins)
        left = found[i - group].astype(np.float32) - tiles.halves[0] * np.float32(asked.facts[i, 3])
        for j in np.setdiff1d(np.arange(min(9, len(vectors))), points.outliers):
            gaps = [Fraction(float(a)) - Fraction(float(b)) for a, b in zip(vectors[j], queries[i], strict=True)]
            distance = float(sum(gap * gap for gap in gaps)) ** 0.5
            assert left[j] >= needed(tiles.facts[0], asked.facts[i], -distance)


def test_most_points_beyond_the_bar_are_sifted_out():
    vectors, labels, queries, _ = structured(4000, 40)
    points = Points.of(vectors, labels)
    shadows = Shadows.of(points, turned(axes_of(points)))
    asked, (tiles,) = shadows.ask(queries, points), shadows.tiles
    found = np.empty((dots.GROUP, dots.TILE), np.int32)
    dots.dots(found, tiles.numbers, 0, asked.numbers, 0, tiles.begins)
    distances = np.linalg.norm(queries[:4, None].astype(float) - vectors[: dots.TILE], axis=2)
    for i in range(4):
        bar = np.sort(distances[i])[20]
        left = found[i] - tiles.halves[0] * asked.facts[i, 3] >= needed(tiles.facts[0], asked.facts[i], -bar)
        assert left[distances[i] <= bar].all()
        assert not left[distances[i] > 1.2 * bar].any()


@given(data=st.data(), steps=st.integers(1, 20), seed=st.integers(0, 99))
@settings(max_examples=30)
def test_both_loops_multiply_exactly(data, steps, seed):
    rng = np.random.default_rng(seed)
    most = data.draw(st.sampled_from([1, 127]))
    numbers = rng.integers(-most, most + 1, (3, dots.STEP * steps, dots.TILE)).astype(np.int8)
    queries = rng.integers(-127, 128, (2 * dots.GROUP, numbers.shape[1]))
    begins = (-128 * numbers.sum(axis=1, dtype=np.int32)).astype(np.int32)
    for multiply, instructed in ((dots.dots, dots.INSTRUCTED), (dots.plain, False)):
        found = np.zeros((dots.GROUP, dots.TILE), np.int32)
        multiply(found, dots.laid(numbers, instructed=instructed), 1, (queries + 128).astype(np.uint8), 4, begins)
        np.testing.assert_array_equal(found, queries[4:] @ numbers[1].astype(int))


def test_the_largest_products_are_exact_in_float32():
    numbers = np.full((1, dots.COLUMNS, dots.TILE), 127, np.int8)
    numbers[0, 0, 0] = 126
    queries = np.full((dots.GROUP, dots.COLUMNS), 127 + 128, np.uint8)
    found = np.zeros((dots.GROUP, dots.TILE), np.int32)
    dots.plain(found, dots.laid(numbers, instructed=False), 0, queries, 0, np.zeros((1, dots.TILE), np.int32))
    assert found[0, 1] == 127 * 127 * dots.COLUMNS < 2**24
    assert found[0, 0] == found[0, 1] - 127


@pytest.mark.slow
def test_a_processor_without_the_instruction_finds_the_same(tmp_path):
    script = """
import numpy as np
from vicinal import Bank
from vicinal.search import dots
rng = np.random.default_rng(0)
spread = 1 / np.arange(1, 41) ** 1.5
vectors = (rng.standard_normal((12_000, 40)) * spread).astype(np.float32)
labels, queries = rng.integers(0, 5, 12_000), vectors[:200] + np.float32(0.01)
found = [Bank(vectors, labels, search=name).nearest(queries, 9) for name in ("brute", "exact")]
near = Bank(vectors, labels, search="approximate", recall=0.95).nearest(queries, 9)
same = all(np.array_equal(*(getattr(one, name) for one in found)) for name in ("distances", "indices"))
print(dots.INSTRUCTED, same, (near.distances <= found[0].distances[:, -1:]).mean() > 0.94)
"""
    env = {**os.environ, "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(tmp_path)}
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=env).stdout
    assert said.split() == ["False", "True", "True"]


def test_turned_axes_lengthen_nothing():
    vectors, labels, _, _ = structured(3000, 40)
    for width in (7, 40):
        axes = turned(axes_of(Points.of(vectors, labels))[:, :width])
        assert np.linalg.norm(axes, 2) < 1
        assert np.linalg.norm(axes, 2) > 1 - 1e-9


@pytest.mark.parametrize("k", [1, 50, 200])
def test_points_with_structure_are_searched_by_shadows(k, monkeypatch):
    vectors, labels, queries, truth = structured(20_000, 60)
    points = Points.of(vectors, labels)
    predicted, skip = truth.astype(np.int32), np.arange(300)
    queries[:100] = vectors[:100]
    expected = BruteSearch(points).nearest(queries, k, predicted=predicted, exclude=skip)
    monkeypatch.setattr(BruteSearch, "nearest", lambda *_, **__: pytest.fail("brute force was asked"))
    assert same(ExactSearch(points).nearest(queries, k, predicted=predicted, exclude=skip), expected)


@pytest.mark.parametrize("m", [1, 6, 300])
@pytest.mark.parametrize("order", ["drawn", "by class", "far to near"])
def test_neither_the_order_of_the_bank_nor_the_number_of_queries_matters(order, m):
    vectors, labels, queries, truth = structured(9000, 30)
    lengths = np.linalg.norm(vectors, axis=1)
    places = {"drawn": np.arange(9000), "by class": np.argsort(labels), "far to near": np.argsort(-lengths)}[order]
    points, predicted = Points.of(vectors[places], labels[places]), truth[:m].astype(np.int32)
    found = ExactSearch(points, 7).nearest(queries[:m], 30, predicted=predicted)
    assert same(found, BruteSearch(points).nearest(queries[:m], 30, predicted=predicted))


def test_a_bank_in_a_file_is_searched_through_its_window(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "WINDOW", 4 * 30 * 1000)
    vectors, labels, queries, truth = structured(9000, 30)
    Bank(vectors, labels).save(tmp_path / "bank.safetensors")
    mapped = Bank.load(tmp_path / "bank.safetensors", search="exact").nearest(queries, 9, predicted=truth)
    expected = Bank(vectors, labels).nearest(queries, 9, predicted=truth)
    for found, wanted in ((mapped, expected), (mapped.same, expected.same), (mapped.other, expected.other)):
        assert (found.indices == wanted.indices).all()
        assert (found.distances == wanted.distances).all()


def test_several_threads_share_one_search():
    vectors, labels, queries, _ = structured(9000, 30)
    search = ExactSearch(Points.of(vectors, labels))
    start = threading.Barrier(4)

    def ask(_):
        start.wait()
        return search.nearest(queries, 9)

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(ask, range(4)))
    expected = BruteSearch(search.points).nearest(queries, 9)
    assert all((answer.places == expected.places).all() for answer in answers)


def test_points_of_which_none_is_much_nearer_than_the_others_are_left_to_brute_force():
    vectors = np.eye(64, dtype=np.float32)[np.arange(5000) % 64]
    vectors += 1e-3 * np.random.default_rng(0).standard_normal(vectors.shape, dtype=np.float32)
    search = ExactSearch(Points.of(vectors, np.zeros(5000, int)))
    assert search.shadows.axes.shape == (64, 0)
    assert same(search.nearest(vectors[:9], 100), BruteSearch(search.points).nearest(vectors[:9], 100))


def test_points_without_structure_are_sifted_along_all_axes(monkeypatch):
    rng = np.random.default_rng(0)
    points = Points.of(rng.standard_normal((10_000, 100), dtype=np.float32), np.zeros(10_000, int))
    queries = rng.standard_normal((30, 100), dtype=np.float32)
    expected = BruteSearch(points).nearest(queries, 50)
    search = ExactSearch(points, 100)
    monkeypatch.setattr(BruteSearch, "nearest", lambda *_, **__: pytest.fail("brute force was asked"))
    assert same(search.nearest(queries, 50), expected)


def test_as_many_axes_are_taken_as_it_takes():
    vectors, labels, _, _ = structured(10_000, 100)
    noise = np.random.default_rng(1).standard_normal(vectors.shape, dtype=np.float32)
    banks = [Points.of(vectors + np.float32(share) * noise, labels) for share in (0, 0.05)]
    widths = [worth.best_width(points, axes_of(points)) for points in banks]
    assert 0 < widths[0] < widths[1] <= 100


def test_what_was_known_of_a_bank_is_used_when_it_grows():
    vectors, labels, queries, _ = structured(9000, 40)
    bank = Bank(vectors[:8000], labels[:8000], search="exact")
    bank.nearest(queries, 5)
    grown = bank.add(vectors[8000:], labels[8000:]).remove([3, 4, 8500])
    before, after = bank._search.shadows, grown._search.shadows
    assert after.axes is before.axes
    assert after.tiles[0] is before.tiles[0]
    expected = Bank(np.delete(vectors, [3, 4, 8500], 0), np.delete(labels, [3, 4, 8500])).nearest(queries, 5)
    assert (grown.nearest(queries, 5).distances == expected.distances).all()


@pytest.mark.parametrize("times", [1, 1e25])
def test_a_bank_grows_where_no_shadows_are_worth_it_or_hold_any_more(times):
    rng = np.random.default_rng(4)
    vectors, labels, queries, _ = structured(9000, 40)
    if times == 1:
        vectors = rng.standard_normal((9000, 40), dtype=np.float32)
    more = (vectors[5000:] * np.float32(times)).astype(np.float32)
    bank = Bank(vectors[:5000], labels[:5000], search="exact")
    bank.nearest(queries, 5)
    grown = bank.add(more, labels[5000:]).nearest(queries, 5)
    expected = Bank(np.concatenate([vectors[:5000], more]), labels).nearest(queries, 5)
    assert (grown.indices == expected.indices).all()


def test_axes_are_chosen_anew_when_a_bank_has_doubled():
    vectors, labels, queries, _ = structured(9000, 40)
    bank = Bank(vectors[:4100], labels[:4100], search="exact")
    bank.nearest(queries, 5)
    grown = bank.add(vectors[4100:], labels[4100:])
    assert grown._search.shadows.axes is not bank._search.shadows.axes


def test_a_guess_that_proves_too_near_is_found_out(monkeypatch):
    vectors, labels, queries, truth = structured(9000, 30)
    points, predicted = Points.of(vectors, labels), truth.astype(np.int32)

    def far_too_near(lot):
        lot.bars[:] = -1e-3

    monkeypatch.setattr(exact._Lot, "_guess", far_too_near)
    found = ExactSearch(points, 7).nearest(queries, 20, predicted=predicted)
    assert (found.distances == BruteSearch(points).nearest(queries, 20).distances).all()


def test_a_query_that_would_have_to_measure_too_many_points_goes_to_brute_force(monkeypatch):
    rng = np.random.default_rng(3)
    points = Points.of(rng.standard_normal((30_000, 20), dtype=np.float32), rng.integers(0, 5, 30_000))
    asked = []
    whole = BruteSearch.nearest
    monkeypatch.setattr(
        BruteSearch, "nearest", lambda self, q, k, **more: asked.append(len(q)) or whole(self, q, k, **more)
    )
    queries = rng.standard_normal((50, 20), dtype=np.float32)
    found = ExactSearch(points, 3).nearest(queries, 20)
    assert sum(asked) == 50  # in as many pieces as there are cores
    assert (found.places == whole(BruteSearch(points), queries, 20).places).all()
