"""Approximate search: it finds the share that was asked for and says what it found; distances are measured exactly."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from vicinal import Bank, Neighbors, distance
from vicinal.errors import InputError
from vicinal.search import building, cells, dots, picking, probe, tuning
from vicinal.search.brute import BruteSearch


def world(n=6_000, d=24, classes=12, m=300, seed=0):
    """Classes around centres, all near a few directions, and queries from the same."""
    rng = np.random.default_rng(seed)
    spread = (1 / np.arange(1, d + 1)).astype(np.float32)
    centres = 3 * rng.standard_normal((classes, d), dtype=np.float32) * spread

    def draw(rows):
        labels = rng.integers(0, classes, rows)
        return centres[labels] + rng.standard_normal((rows, d), dtype=np.float32) * spread, labels

    return *draw(n), *draw(m)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Small banks have an index too."""
    monkeypatch.setattr(building, "_FEW", 500)
    monkeypatch.setattr(tuning, "_QUERIES", 64)


@pytest.fixture(scope="module")
def made():
    """A bank by approximate search and by brute force, queries and their classes, and points to add."""
    vectors, labels, asked, truth = world(6_500)
    more, vectors, labels = (vectors[6_000:], labels[6_000:]), vectors[:6_000], labels[:6_000]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "_FEW", 500)
        bank = Bank(vectors, labels, search="approximate", recall=0.95)
    return bank, Bank(vectors, labels), asked, truth, more


def found_share(near, true):
    return (near.distances <= true.distances[:, -1:]).mean()


def looks_into_cells(bank):
    return bool(bank.measured())


@pytest.mark.parametrize("k", [1, 50, 170])
def test_the_recall_asked_for_is_reached_on_queries_that_it_was_not_tuned_on(made, k):
    bank, full, asked, truth, _ = made
    near, true = (each.nearest(asked, k, predicted=truth) for each in (bank, full))
    assert looks_into_cells(bank)
    assert found_share(near, true) >= 0.9
    assert 0.95 <= near.recall == bank.measured(k).recall <= 1
    for side in ("same", "other"):
        distances, true_ones = (getattr(each, side).distances for each in (near, true))
        assert (distances >= true_ones).all()
        assert (distances == true_ones).mean() >= 0.9


def test_what_is_found_is_measured_as_brute_force_measures_it(made):
    bank, full, asked, truth, _ = made
    near, true = (each.nearest(asked, 50, predicted=truth) for each in (bank, full))
    for i in range(len(asked)):
        rows, mine, theirs = np.intersect1d(near.indices[i], true.indices[i], return_indices=True)
        assert (near.distances[i, mine] == true.distances[i, theirs]).all()
        assert len(rows) > 25
    assert (np.diff(near.distances, axis=1) >= 0).all()
    assert (near.labels == full.labels[near.indices]).all()


def test_less_work_than_brute_force_and_more_recall_is_more_work():
    vectors, labels, *_ = world()
    low, high = (Bank(vectors, labels, search="approximate", recall=recall).measured() for recall in (0.7, 0.99))
    assert low.flop < high.flop < 2 * 24 * len(vectors) / 2
    assert high.recall >= 0.99


def test_no_neighbour_is_missed_where_none_may_be():
    vectors, labels, asked, _ = world(d=6)
    bank = Bank(vectors, labels, search="approximate", recall=1.0)
    assert bank.measured().recall == 1
    assert found_share(bank.nearest(asked, 50), Bank(vectors, labels).nearest(asked, 50)) > 0.999


def test_a_recall_out_of_reach_is_an_error_with_the_best_that_was_found():
    rng = np.random.default_rng(0)
    vectors, labels = rng.standard_normal((3_000, 64), dtype=np.float32), rng.integers(0, 3, 3_000)
    said = r"recall: expected at most 0\.\d+, the best .* at half the work of looking at all points, got 0.999; ask for"
    with pytest.raises(InputError, match=said):
        Bank(vectors, labels, search="approximate", recall=0.999)


def test_auto_takes_another_search_where_the_recall_is_out_of_reach(monkeypatch):
    from vicinal.search import choice

    monkeypatch.setattr(choice, "_MANY", 1_000)
    rng = np.random.default_rng(0)
    vectors, labels = rng.standard_normal((3_000, 64), dtype=np.float32), rng.integers(0, 3, 3_000)
    assert Bank(vectors, labels, search="auto", recall=0.999).search in ("brute", "exact")
    vectors, labels, *_ = world(2_000)
    assert Bank(vectors, labels, search="auto", recall=0.9).search == "approximate"


@pytest.mark.parametrize("n", [1, 40, 499])
def test_a_few_points_are_all_looked_at(n):
    vectors, labels, asked, truth = world(n)
    bank, full = Bank(vectors, labels, search="approximate"), Bank(vectors, labels)
    near, true = (each.nearest(asked, min(n, 20), predicted=truth) for each in (bank, full))
    assert not looks_into_cells(bank)
    assert (near.indices == true.indices).all()
    assert near.recall == 1


def test_more_neighbours_than_efforts_are_known_for_are_found_by_looking_at_all(made):
    bank, full, asked, *_ = made
    near = bank.nearest(asked[:20], 3_000)
    assert (near.indices == full.nearest(asked[:20], 3_000).indices).all()
    assert near.recall == 1
    assert bank.measured(3_000) is None


def test_leaving_oneself_out_is_by_row_so_that_a_duplicate_still_counts():
    vectors, labels, *_ = world(3_000)
    vectors[1::2] = vectors[::2]
    bank = Bank(vectors, labels, search="approximate", recall=0.9)
    near = bank.nearest(vectors, 5, exclude_self=True)
    assert not (near.indices == np.arange(3_000)[:, None]).any()
    assert (near.indices[:, 0] == np.arange(3_000) ^ 1).mean() > 0.99
    assert (near.distances[:, 0] == 0).mean() > 0.99


def test_equal_distances_stand_in_the_order_of_their_rows():
    vectors, labels, asked, _ = world(3_000)
    vectors = np.repeat(vectors[::3], 3, axis=0)
    near = Bank(vectors, labels, search="approximate", recall=0.9).nearest(asked, 30)
    tied = near.distances[:, 1:] == near.distances[:, :-1]
    assert tied.mean() > 0.5
    assert (near.indices[:, :-1] < near.indices[:, 1:])[tied].all()


def test_more_ties_than_there_is_room_for_are_as_near_as_the_nearest():
    vectors, labels, *_ = world(3_000)
    vectors[:2_000] = vectors[0]
    near = Bank(vectors, labels, search="approximate", recall=0.5).nearest(vectors[:2], 50)
    assert (near.distances == 0).all()
    assert (np.diff(near.indices, axis=1) > 0).all()


def test_points_that_are_added_are_found_and_those_that_are_removed_are_not(made):
    bank, full, asked, truth, (more, labels) = made
    for grown in (bank.add(more[:300], labels[:300]).add(more[300:], labels[300:]), bank.add(more, labels)):
        assert grown._search.contents.index.axes is bank._search.contents.index.axes, "the index goes on"
        assert (grown.nearest(more, 1).indices[:, 0] == len(full) + np.arange(500)).all()
        gone = np.concatenate([np.arange(0, 600, 3), np.arange(len(full), len(full) + 50)])
        left, true = grown.remove(gone), full.add(more, labels).remove(gone)
        assert left._search.contents.index.axes is bank._search.contents.index.axes
        near, wanted = (each.nearest(asked, 50, predicted=truth) for each in (left, true))
        assert not np.isin(near.indices, gone).any()
        assert found_share(near, wanted) > 0.9
        assert (near.other.distances == wanted.other.distances).mean() > 0.9


def test_a_class_that_is_removed_or_added_counts_for_the_sides_at_once(made):
    bank, _, asked, *_ = made
    without = bank.remove(np.flatnonzero(bank.labels == 3))
    near = without.nearest(asked, 20, predicted=np.full(len(asked), 3))
    assert np.isinf(near.same.distances).all()
    assert (near.other.distances == near.distances[:, 0]).all()
    again = without.add(asked[:1], [3]).nearest(asked, 20, predicted=np.full(len(asked), 3))
    assert (again.same.indices == len(bank)).all()


@pytest.mark.parametrize("change", ["add", "remove"])
def test_an_index_of_which_much_has_come_or_gone_is_built_anew(change):
    vectors, labels, *_ = world(2_000)
    bank = Bank(vectors, labels, search="approximate", recall=0.9)
    old = bank._search.contents.index.axes
    for step in range(8):
        rows = np.arange(50 * step, 50 * step + 50)
        bank = bank.add(vectors[rows], labels[rows]) if change == "add" else bank.remove(rows)
        kept = bank._search.contents.index.axes is old
        assert kept == (step < 5), "250 of 2,000 are one in eight"


def test_a_bank_that_outgrows_brute_force_gets_an_index():
    vectors, labels, *_ = world(1_000)
    bank = Bank(vectors[:300], labels[:300], search="approximate", recall=0.9)
    assert not looks_into_cells(bank)
    assert looks_into_cells(bank.add(vectors[300:], labels[300:]))


def test_fewer_points_than_k_in_the_cells_that_are_near_are_no_error(monkeypatch):
    """Then all points are looked at."""
    monkeypatch.setattr(building, "_CELLS", 8.0)
    vectors, labels, asked, _ = world(3_000)
    search = Bank(vectors, labels, search="approximate", recall=0.5)._search
    one_cell = replace(search, efforts=(replace(search.efforts[0], probes=1),))
    near, true = (each.nearest(asked, 50) for each in (one_cell, search.brute))
    assert max(np.diff(layer.starts).max() for layer in search.contents.index.layers) < 50
    assert (near.places == true.places).all()


def test_a_first_guess_that_finds_too_little_is_raised_until_it_finds_enough():
    vectors, labels, *_ = world(3_000)
    search = Bank(vectors, labels, search="approximate", recall=0.98)._search
    held = tuning.hold_out(search.points)
    low = replace(search.efforts[0], probes=2, sides=1)
    found = tuning._until_enough(search.contents, low, held, 0.98)
    assert found.probes > 2
    assert found.measured.recall >= 0.985


def test_a_class_that_lies_beyond_all_products_is_found_all_the_same():
    vectors, labels, asked, _ = world(2_000)
    vectors[7], labels[7] = 1e25, 99
    near = Bank(vectors, labels, search="approximate", recall=0.9).nearest(asked, 5, predicted=np.full(len(asked), 99))
    assert (near.same.indices == 7).all()
    assert (near.other.distances == near.distances[:, 0]).all()


def test_removed_points_of_the_queries_own_class_leave_no_trace_in_its_cells():
    vectors, labels, asked, _ = world(3_000)
    bank = Bank(vectors, labels, search="approximate", recall=0.9)
    some = np.flatnonzero(labels == 0)[:-3]
    left, full = bank.remove(some), Bank(vectors, labels).remove(some)
    near, true = (each.nearest(asked, 20, predicted=np.zeros(len(asked), int)) for each in (left, full))
    assert (near.same.indices == true.same.indices).all()


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e20])
def test_any_scale_far_from_the_origin_and_points_beyond_float32s_products(scale):
    vectors, labels, asked, truth = world(2_000)
    vectors, asked = ((part + 50) * np.float32(scale) for part in (vectors, asked))
    vectors[7] *= np.float32(1e13)
    asked[:2] = vectors[7], vectors[7] * np.float32(0.5)
    bank, full = Bank(vectors, labels, search="approximate", recall=0.9), Bank(vectors, labels)
    assert looks_into_cells(bank)
    near, true = (each.nearest(asked, 10, predicted=truth) for each in (bank, full))
    assert found_share(near, true) > 0.85
    assert near.indices[0, 0] == 7
    assert near.distances[1, 0] == true.distances[1, 0]


def test_all_points_in_one_place_are_an_index_too():
    bank = Bank(np.ones((1_000, 3)), np.arange(1_000) % 2, search="approximate")
    near = bank.nearest(np.ones((2, 3)), 5, predicted=[0, 7])
    assert (near.distances == 0).all()
    assert np.isinf(near.same.distances[1])
    assert (near.other.distances == 0).all()


def test_several_threads_at_once_and_batches_change_nothing(made):
    bank, _, asked, truth, _ = made
    whole = bank.nearest(asked, 50, predicted=truth)
    with ThreadPoolExecutor(4) as pool:
        again = list(pool.map(lambda _: bank.nearest(asked, 50, predicted=truth), range(8)))
    alone = [bank.nearest(asked[i : i + 1], 50, predicted=truth[i : i + 1]) for i in range(0, 60, 7)]
    assert all((one.indices == whole.indices).all() for one in again)
    assert (np.concatenate([one.indices for one in alone]) == whole.indices[:60:7]).all()
    assert (np.concatenate([one.other.indices for one in alone]) == whole.other.indices[:60:7]).all()


def test_the_weights_of_all_points_are_brute_forces_own(made):
    bank, full, asked, truth, _ = made
    (near, masses), (_, true) = (each.masses(asked, truth, k=10) for each in (bank, full))
    assert (masses.same == true.same).all()
    assert (masses.rest == true.rest).all()
    assert near.recall == 1


def test_scores_carry_the_recall_through_batches(made):
    bank, full, asked, truth, _ = made
    trust, true = (distance(each, asked, truth) for each in (bank, full))
    assert trust.neighbors.recall == bank.measured().recall
    assert trust.neighbors.first(3).recall == trust.neighbors.recall
    both = Neighbors.join([trust.neighbors, true.neighbors])
    assert both.recall == trust.neighbors.recall < true.neighbors.recall
    assert np.corrcoef(trust.log_odds, true.log_odds)[0, 1] > 0.99


def test_cells_are_ordered_and_none_of_the_points_is_lost():
    vectors, labels, *_ = world(2_000)
    points = Bank(vectors, labels)._points
    index = cells.build(points, cells.Axes.of(points).first(5), 32)
    (layer,) = index.layers
    assert (np.sort(layer.places) == np.arange(2_000)).all()
    assert layer.starts[0] == 0
    assert layer.starts[-1] == 2_000
    shadows = index.axes.shadows(vectors)[layer.places]
    kept = index.centres[layer.owners] + layer.numbers * layer.scales[:, None]
    assert (np.abs(kept - shadows) <= 0.51 * layer.scales[:, None]).all()  # rounded to the nearest whole number
    assert (np.abs(layer.numbers).max(axis=1) == 127).all()
    gaps = ((shadows[:, None] - index.centres) ** 2).sum(axis=2)
    np.testing.assert_allclose(gaps[np.arange(2_000), layer.owners], gaps.min(axis=1), rtol=1e-3, atol=1e-5)


def test_each_cell_begins_with_a_block_of_its_own_and_every_point_lies_in_one():
    rng = np.random.default_rng(0)
    sizes = np.array([0, 1, dots.BLOCK, 70, 0, 5])
    numbers = rng.integers(-127, 128, (sizes.sum(), 6)).astype(np.int8)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    blocks = cells.Blocks.of(numbers, starts)
    assert blocks.starts.tolist() == [0, 0, 1, 2, 5, 5, 6]
    lying = blocks.spread(np.arange(len(numbers)), -1)
    for cell in range(6):
        own = lying[blocks.starts[cell] : blocks.starts[cell + 1]].ravel()
        assert own[own >= 0].tolist() == list(range(starts[cell], starts[cell + 1]))
    queries = rng.integers(-127, 128, (dots.GROUP, 8))
    found = np.empty((dots.GROUP, dots.BLOCK), np.int32)
    for block in range(6):
        dots.dots_of_block(found, blocks.numbers, block, (queries + 128).astype(np.uint8), 0, blocks.begins)
        there = lying[block] >= 0
        np.testing.assert_array_equal(found[:, there], queries[:, :6] @ numbers[lying[block][there]].T.astype(int))


@given(st.lists(st.floats(-2, 2, width=32), min_size=dots.BLOCK, max_size=dots.BLOCK), st.floats(-2, 2, width=32))
def test_what_is_above_a_bar_is_picked_out(values, bar):
    seen, into = np.array(values, np.float32), np.zeros((3, 2 * dots.BLOCK), np.float32)
    for pick in (picking.pick, picking.plain):
        which = np.zeros(2 * dots.BLOCK, np.int32)
        count = pick(seen, np.float32(bar), into, 2 * dots.BLOCK + 5, which)
        assert which[:count].tolist() == np.flatnonzero(seen > np.float32(bar)).tolist()
        np.testing.assert_array_equal(into[1, 5 : 5 + count], seen[which[:count]])
        assert not into[[0, 2]].any()
        assert not into[1, :5].any()


@given(arrays.arrays(np.float32, (3, 40), elements=st.floats(-(2.0**90), 2.0**90, width=32)), st.integers(1, 40))
def test_about_the_smallest_are_found_in_order(values, count):
    found = probe._smallest(values, count)
    assert all(len(set(row)) == count for row in found.tolist())
    best = np.take_along_axis(values, found, axis=1)
    np.testing.assert_allclose(best, np.sort(values, axis=1)[:, :count], rtol=2.0**-16, atol=1e-37)


def test_the_operations_that_are_said_are_those_of_the_lists_that_are_looked_into(made):
    bank, _, *_ = made
    contents, effort = bank._search.contents, bank._search.effort(50)
    (p, n), cells_ = (contents.index.centres.shape[1], len(bank)), len(contents.index.centres)
    least = 2 * p * (24 + cells_) + 2 * 24 * effort.keep
    assert least < effort.measured.flop < least + 2 * p * n
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BruteSearch, "nearest", None)  # it is not asked
        bank.nearest(made[2], 50)
