"""Batches against what they promise, for any labels that hypothesis finds."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch.utils.data import DataLoader, TensorDataset

from vicinal.errors import InputError
from vicinal.learn.batches import PairBatches, pairs_needed

LABELS = st.lists(st.integers(-3, 6), min_size=2, max_size=60)
SIZES = st.integers(2, 30)
SHARES = st.floats(0, 1)


def made(labels: list[int], size: int, share: float, seed: int = 0) -> PairBatches:
    try:
        return PairBatches(labels, size, share=share, seed=seed)
    except InputError:
        assume(False)
        raise


def pairs_possible(labels: list[int]) -> int:
    """How many pairs of one class can be made without using a point twice."""
    return sum(labels.count(one) // 2 for one in set(labels))


@given(LABELS, SIZES, SHARES, st.integers(0, 1000), st.integers(0, 5))
def test_no_point_comes_twice_and_every_batch_holds_the_share_in_pairs(
    labels: list[int], size: int, share: float, seed: int, number: int
) -> None:
    batches = made(labels, size, share, seed)
    epoch = batches.epoch(number)
    assert epoch.shape == (len(labels) // size, size) == (len(batches), size)
    assert len(np.unique(epoch)) == epoch.size
    assert epoch.min() >= 0
    assert epoch.max() < len(labels)
    for batch in epoch:
        assert 2 * pairs_possible([labels[row] for row in batch]) >= share * size - 1e-6


@given(LABELS, SIZES)
def test_the_papers_share_is_refused_only_where_it_cannot_be(labels: list[int], size: int) -> None:
    """Twenty percent, checked against counting."""
    count, needed = len(labels) // size, math.ceil(size / 10 - 1e-9)
    lonely = any(labels.count(one) == 1 for one in set(labels))
    try:
        PairBatches(labels, size)
        refused = False
    except InputError:
        refused = True
    assert refused == (size > len(labels) or lonely or pairs_possible(labels) < count * needed)


@given(LABELS, SIZES, SHARES, st.integers(0, 100))
def test_an_epoch_is_the_same_whenever_it_is_asked_for(labels: list[int], size: int, share: float, seed: int) -> None:
    batches, again = made(labels, size, share, seed), made(labels, size, share, seed)
    second = batches.epoch(1)
    np.testing.assert_array_equal(again.epoch(1), second)
    np.testing.assert_array_equal(batches.epoch(1), second)
    assert [[*batch] for batch in again] == again.epoch(0).tolist()
    assert [[*batch] for batch in again] == second.tolist()


def test_every_point_of_every_class_is_reached_in_a_pair_and_out_of_one() -> None:
    """A class of two, one of three and a large one; 21 points in batches of 5."""
    labels = np.array([0] * 2 + [1] * 3 + [2] * 16)
    batches = PairBatches(labels, 5, seed=1)
    times = np.zeros(len(labels), dtype=int)
    paired = set()
    for number in range(300):
        for batch in batches.epoch(number):
            times[batch] += 1
            paired |= {int(row) for row in batch if (labels[batch] == labels[row]).sum() > 1}
    assert paired == set(range(21))
    assert times.min() > 260  # of 300 epochs, in each of which one of 21 points is left out
    assert times.max() <= 300


def test_pairs_are_drawn_from_classes_as_often_as_they_have_them() -> None:
    """Batches of two points, all of them one pair: the classes have 1, 2 and 3 pairs."""
    labels = np.repeat([0, 1, 2], [2, 4, 6])
    batches = PairBatches(np.append(labels, [9, 9, 9, 9, 9, 9, 9]), 2, share=1.0)
    assert len(batches) == 9
    counts = dict.fromkeys([0, 1, 2, 9], 0)
    every = np.append(labels, [9] * 7)
    for number in range(50):
        for first, second in batches.epoch(number):
            assert every[first] == every[second]
            counts[int(every[first])] += 1
    assert counts == {0: 50, 1: 100, 2: 150, 9: 150}


def test_any_two_points_of_a_class_can_be_partners() -> None:
    """Batches of one pair each: all 15 pairs of six points come, none much more often than another."""
    batches = PairBatches([0] * 6 + [1] * 6, 2, share=1.0)
    times: Counter[tuple[int, ...]] = Counter()
    for number in range(300):
        times.update(tuple(sorted(map(int, pair))) for pair in batches.epoch(number) if max(pair) < 6)
    assert len(times) == 15
    assert min(times.values()) > 30  # 60 expected
    assert max(times.values()) < 90


def test_places_within_a_batch_say_nothing() -> None:
    """The paired points do not always come first."""
    labels = np.repeat(np.arange(50), 2)
    batches = PairBatches(labels, 10)
    first = [
        any(labels[row] == labels[other] for other in batch if other != row)
        for number in range(200)
        for batch in batches.epoch(number)
        for row in batch[:1]
    ]
    assert 0.15 < np.mean(first) < 0.5  # about 0.2 + 0.8 * 0.08 are expected, 1 if pairs came first


def test_a_share_of_0_is_plain_shuffling_of_any_labels() -> None:
    epoch = PairBatches(np.arange(10), 3, share=0).epoch(0)
    assert epoch.shape == (3, 3)
    assert len(np.unique(epoch)) == 9


def test_seeds_and_epochs_differ() -> None:
    labels = np.arange(60) % 5
    epochs = [PairBatches(labels, 20, seed=seed).epoch(number).tolist() for seed in (0, 1) for number in (0, 1)]
    assert len({str(epoch) for epoch in epochs}) == 4


def test_it_is_a_batch_sampler_of_a_data_loader() -> None:
    labels = torch.arange(40) % 4
    data = TensorDataset(torch.arange(40), labels)
    loader = DataLoader(data, batch_sampler=PairBatches(labels, 8, seed=2))
    wanted = PairBatches(labels, 8, seed=2)
    assert len(loader) == 5
    for number in range(2):
        np.testing.assert_array_equal(torch.stack([rows for rows, _ in loader]), wanted.epoch(number))


@given(st.integers(2, 500), SHARES)
def test_as_many_pairs_as_the_share_takes_and_no_more(points: int, share: float) -> None:
    if math.ceil(share * points / 2 - 1e-9) > points // 2:
        with pytest.raises(InputError, match="for an odd number of points"):
            pairs_needed(points, share)
        return
    needed = pairs_needed(points, share)
    assert 2 * needed >= share * points - 1e-6
    assert needed == 0 or 2 * (needed - 1) < share * points


@pytest.mark.parametrize(
    ("labels", "options", "says"),
    [
        ([0, 0, 1, 1], {"size": 5}, "size: expected a batch of at most 4, all the points there are, got 5"),
        ([0, 0, 1, 1], {"size": 1}, "size: expected a whole number of at least 2, got 1"),
        ([0, 0, 1, 1], {"size": 2.0}, "size: expected a whole number"),
        ([0, 0, 1, 1], {"size": 2, "share": 1.5}, r"share: expected a number in \[0, 1\], got 1\.5"),
        ([0, 0, 1, 1], {"size": 2, "share": -0.1}, "share: expected"),
        ([0, 0, 1, 1], {"size": 2, "seed": -1}, "seed: expected a whole number of at least 0, got -1"),
        ([0, 0, 1, 7], {"size": 2}, r"at least two points of every class.* got one of class 1 \(2 such classes\)"),
        ([0.5, 1.0], {"size": 2}, "labels: expected whole numbers"),
        (
            [0, 0, 0, 1, 1, 1],
            {"size": 2, "share": 1},
            r"share: expected at most 0, got 1: 3 batches of 2 would take 3 same-class pairs, and 2 are possible",
        ),
    ],
)
def test_what_cannot_be_is_refused(labels: Any, options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        PairBatches(labels, **options)


def test_an_epoch_before_the_first_is_refused() -> None:
    with pytest.raises(InputError, match="epoch: expected a whole number of at least 0, got -1"):
        PairBatches([0, 0], 2).epoch(-1)
