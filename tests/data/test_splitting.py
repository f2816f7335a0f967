from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.model_selection import train_test_split

from vicinal.data import split
from vicinal.errors import InputError

LABELS = st.lists(st.integers(-3, 6), min_size=2, max_size=80)
SHARES = st.floats(0.02, 0.98)


@given(LABELS, SHARES, st.integers(0, 1000))
def test_every_row_goes_to_one_side_and_every_class_gives_its_share(labels, share, seed):
    found = np.array(labels)
    try:
        train, validation = split(found, share, seed)
    except InputError:
        assume(False)
    assert sorted([*train, *validation]) == list(range(len(found)))
    assert (np.diff(train) > 0).all()
    assert (np.diff(validation) > 0).all()
    whole = True
    for label in np.unique(found):
        given_away = int((found[validation] == label).sum())
        size = int((found == label).sum())
        assert given_away < size, "a class never gives its last row"
        assert abs(given_away - share * size) < 1 + 1e-9 or given_away == size - 1
        whole &= share * size <= size - 1
    if whole:
        assert len(validation) == round(share * len(found))


@given(LABELS, SHARES, st.integers(0, 1000))
def test_the_same_seed_cuts_the_same_rows(labels, share, seed):
    try:
        first = split(labels, share, seed)
    except InputError:
        assume(False)
    second = split(labels, share, seed)
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


def test_another_seed_cuts_other_rows():
    labels = np.repeat(np.arange(10), 50)
    cuts = {tuple(split(labels, 0.1, seed)[1]) for seed in range(20)}
    assert len(cuts) == 20


def test_the_counts_are_those_of_scikit_learn():
    labels = np.repeat([0, 1, 2, 3], [40, 20, 30, 10])
    _, validation = split(labels, 0.2, 0)
    _, theirs = train_test_split(labels, test_size=0.2, stratify=labels, random_state=0)
    np.testing.assert_array_equal(np.bincount(labels[validation]), np.bincount(theirs))


def test_every_row_is_as_likely_as_another_of_its_class():
    labels = np.repeat([0, 1], [4, 8])
    times = np.zeros(12)
    for seed in range(600):
        times[split(labels, 0.5, seed)[1]] += 1
    assert times.min() > 245  # of 300 expected, standard deviation 12
    assert times.max() < 355


def test_a_class_of_one_stays_with_the_rows_to_train_on():
    train, validation = split([0] * 10 + [7], 0.9, 3)
    assert 10 in train
    assert len(validation) == 9


@pytest.mark.parametrize(
    ("labels", "share", "seed", "says"),
    [
        ([0, 1, 2], 0.5, 0, "share: expected enough to validate on, got 0.5 of 3 rows in 3 classes"),
        ([0, 0, 0], 0.1, 0, "share: expected enough to validate on"),
        ([0], 0.5, 0, "labels: expected at least two rows"),
        ([0, 0], 0.0, 0, r"share: expected a number in \(0, 1\]"),
        ([0, 0], 1, 0, "share: .* leaves nothing to train on"),
        ([0, 0], 0.5, -1, "seed: expected a whole number of at least 0"),
        ([0.5, 1], 0.5, 0, "labels: expected whole numbers"),
    ],
)
def test_what_cannot_be_split_is_refused(labels, share, seed, says):
    with pytest.raises(InputError, match=says):
        split(labels, share, seed)
