"""What holds for every method of condensation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vicinal import Bank, condense, distance
from vicinal.condensation import METHODS
from vicinal.errors import InputError


def clustered(n=400, d=8, classes=5, seed=0):
    """A bank of classes that overlap somewhat, each in three clusters."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, classes, n)
    centres = generator.normal(size=(classes, 3, d)) * 2
    return Bank(centres[labels, generator.integers(0, 3, n)] + generator.normal(size=(n, d)), labels)


@pytest.fixture(params=METHODS)
def method(request):
    return request.param


def test_every_class_keeps_its_share_and_its_mass(method):
    bank = clustered()
    small = condense(bank, method, share=0.1)
    sizes = np.bincount(bank.labels)
    assert (np.abs(np.bincount(small.bank.labels) - sizes * 0.1) <= 1).all()
    assert len(small) == 40
    np.testing.assert_allclose(np.bincount(small.bank.labels, small.bank.weights), sizes, rtol=1e-9)


def test_indices_are_rows_of_the_whole_bank_with_the_labels_of_the_small_one(method):
    bank = clustered().remove(np.arange(0, 400, 3))
    small = condense(bank, method, share=0.2)
    np.testing.assert_array_equal(small.indices, small.bank.rows)
    assert (np.diff(small.indices) > 0).all()
    places = np.searchsorted(bank.rows, small.indices)
    np.testing.assert_array_equal(bank.rows[places], small.indices)
    np.testing.assert_array_equal(bank.labels[places], small.bank.labels)
    if method not in CENTRES:
        np.testing.assert_array_equal(bank.vectors[places], small.bank.vectors)


CENTRES = ("k-means",)


def test_the_same_seed_gives_the_same_bank_and_another_another(method):
    bank = clustered()
    first, again, other = (condense(bank, method, share=0.1, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.bank.vectors, again.bank.vectors)
    np.testing.assert_array_equal(first.bank.weights, again.bank.weights)
    assert first.bank.vectors.tolist() != other.bank.vectors.tolist()


def test_the_whole_share_is_the_whole_bank(method):
    bank = clustered(60)
    small = condense(bank, method, share=1.0)
    np.testing.assert_array_equal(small.indices, bank.rows)
    np.testing.assert_array_equal(small.bank.vectors, bank.vectors)
    np.testing.assert_array_equal(small.bank.weights, np.ones(60))


def test_without_weights_each_point_counts_once(method):
    assert condense(clustered(), method, weighted=False).bank.weights is None


def test_a_bank_that_stands_for_others_already_keeps_their_mass(method):
    bank = clustered()
    weights = np.random.default_rng(1).uniform(0.5, 4, len(bank))
    heavy = Bank(bank.vectors, bank.labels, weights=weights)
    small = condense(heavy, method, share=0.1)
    np.testing.assert_allclose(
        np.bincount(small.bank.labels, small.bank.weights), np.bincount(bank.labels, weights), rtol=1e-9
    )


@settings(max_examples=25)
@given(
    points=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(-1, 2)), min_size=1, max_size=40),
    share=st.floats(0.01, 1.0),
    seed=st.integers(0, 5),
)
@pytest.mark.parametrize("method", METHODS)
def test_duplicates_and_classes_of_one_point_are_kept_in_good_order(method, points, share, seed):
    vectors, labels = np.array([p[:2] for p in points], float), np.array([p[2] for p in points])
    bank = Bank(vectors, labels)
    small = condense(bank, method, share=share, seed=seed)
    np.testing.assert_array_equal(small.bank.classes, bank.classes)
    assert set(small.indices) <= set(range(len(bank)))
    np.testing.assert_array_equal(labels[small.indices], small.bank.labels)
    counts = {label: int((labels == label).sum()) for label in bank.classes}
    for label in bank.classes:
        own = small.bank.labels == label
        np.testing.assert_allclose(small.bank.weights[own].sum(), counts[label])
        assert 1 <= own.sum() <= counts[label]
    assert np.isfinite(distance(small.bank, vectors, labels, k=len(small)).log_odds).all()


@pytest.mark.parametrize("share", [0, -0.1, 1.01, float("nan"), True, "half"])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(InputError, match=r"share: expected a number in \(0, 1\], got"):
        condense(clustered(20), "random", share=share)


def test_what_is_no_bank_or_no_method_is_refused():
    with pytest.raises(InputError, match="bank: expected a Bank, got list"):
        condense([[1.0]], "random")
    with pytest.raises(InputError, match="did you mean 'k-means'"):
        condense(clustered(20), "kmeans")
    with pytest.raises(InputError, match="seed: expected a whole number"):
        condense(clustered(20), "random", seed=-1)
