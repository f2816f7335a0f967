"""What holds for every method of condensation."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from scenarios import clustered
from vicinal import Bank, condense, distance
from vicinal.condensation import METHODS, halving
from vicinal.errors import InputError


@pytest.fixture(params=METHODS)
def method(request):
    return request.param


def test_every_class_keeps_its_share_and_its_mass(method):
    bank = clustered()
    small = condense(bank, method, share=0.1)
    sizes = np.bincount(bank.labels)
    assert (np.abs(np.bincount(small.bank.labels) - sizes * 0.1) <= 1).all()
    assert len(small) == 40
    assert_mass(small.bank, sizes, method)


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


CENTRES = ("distilled", "k-means")


def test_a_bank_in_a_file_condenses_to_the_same(method, tmp_path):
    bank = clustered().remove(np.arange(0, 400, 3))
    bank.save(tmp_path / "bank")
    small, wanted = (condense(one, method, share=0.2) for one in (Bank.load(tmp_path / "bank"), bank))
    np.testing.assert_array_equal(small.indices, wanted.indices)
    np.testing.assert_array_equal(small.bank.vectors, wanted.bank.vectors)
    np.testing.assert_array_equal(small.bank.weights, wanted.bank.weights)
    assert small.k == wanted.k


def test_of_a_bank_in_a_file_no_more_than_a_class_is_in_memory(tmp_path):
    """Pages of a file that are mapped count as resident, so those that were looked at must have been given back."""
    generator = np.random.default_rng(0)
    labels = np.arange(200_000) % 50
    vectors = generator.standard_normal((200_000, 256), dtype=np.float32)  # 195 MiB; a class is 4
    Bank(vectors, labels).save(tmp_path / "bank")
    script = f"""
import numpy as np, resource
from vicinal import Bank, condense
small = Bank.load({str(tmp_path / "bank")!r})
condense(small.take(np.arange(2000)), "k-means", 0.05)  # compiles
bank = Bank.load({str(tmp_path / "bank")!r})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
condense(bank, "k-means", 0.0005)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""
    grown = float(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)
    assert grown < 150


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
    assert_mass(small.bank, np.bincount(bank.labels, weights), method)


def assert_mass(small, masses, method, first=0):
    """Each class keeps its mass; those of distilled prototypes keep it together."""
    found = np.bincount(small.labels - first, small.weights, len(masses))
    if method == "distilled":
        found, masses = found.sum(), masses.sum()
    np.testing.assert_allclose(found, masses, rtol=1e-6)


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
        assert 1 <= own.sum() <= counts[label]
    assert_mass(small.bank, np.array([(labels == label).sum() for label in range(-1, 3)]), method, first=-1)
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


class TestRecommendedK:
    """The k of a condensed bank ranks the bank's own points as the whole bank does."""

    def slow(self, bank, small):
        """The k, by scipy, of every point outside the condensed bank."""
        outside = [row for row in bank.rows if row not in small.rows]
        whole = distance(bank, bank.vectors[outside], bank.labels[outside], k=50, exclude_self=outside)
        wanted = [*whole.log_odds, *whole.rival.log_odds]
        best = {}
        for k in (1, 2, 3, 5, 10, 20, len(small)):
            own = distance(small, bank.vectors[outside], bank.labels[outside], k=k).log_odds
            rival = distance(small, bank.vectors[outside], whole.rival.labels, k=k).log_odds
            best[k] = stats.spearmanr(wanted, [*own, *rival])[0]
        return max(best, key=best.get)

    def test_it_is_the_one_with_the_largest_rank_correlation(self, method):
        bank = clustered(300)
        found = condense(bank, method, share=0.1)
        assert found.k == self.slow(bank, found.bank)

    def test_it_does_not_exceed_the_bank_and_is_told_in_its_file(self, method, tmp_path):
        found = condense(clustered(40, classes=2), method, share=0.1)
        assert 1 <= found.k <= len(found) == 4
        found.bank.save(tmp_path / "small.safetensors")
        facts = Bank.load(tmp_path / "small.safetensors").facts
        assert facts == {"condensed by": method, "condensed from": "40 points", "recommended k": str(found.k)}

    def test_with_nothing_left_to_look_at_it_is_fifty_or_all(self):
        assert condense(clustered(60), "random", share=1.0).k == 50
        assert condense(clustered(30), "random", share=1.0).k == 30
        assert condense(Bank(np.eye(9), np.zeros(9)), "random", share=0.5).k == 5


def test_k_centres_are_the_farthest_from_all_before():
    bank = clustered(200)
    small = condense(bank, "k-centres", share=0.1, seed=5)
    for label in bank.classes:
        members, kept = np.flatnonzero(bank.labels == label), small.indices[small.bank.labels == label]
        gaps = np.linalg.norm(bank.vectors[members, None] - bank.vectors[kept], axis=2)
        between = np.linalg.norm(bank.vectors[kept, None] - bank.vectors[kept], axis=2)
        # no point is farther from the kept than any two of the kept are from each other (Gonzalez)
        assert gaps.min(axis=1).max() <= between[~np.eye(len(kept), dtype=bool)].min() + 1e-5


class TestDensityPreserving:
    """Budka and Gabrys: the nearest points that are left are parted, again and again."""

    def slow(self, vectors):
        """The loop of the paper, by the means themselves."""
        gaps = ((vectors[:, None].astype(float) - vectors) ** 2).sum(axis=2)
        left, first, second = gaps + np.diag(np.full(len(gaps), np.inf)), [], []
        for _ in range(len(vectors) // 2):
            one, other = np.unravel_index(left.argmin(), left.shape)
            straight, crossed = ((first, second), (second, first))
            apart = [gaps[one, a].mean() + gaps[other, b].mean() if a else 0.0 for a, b in (straight, crossed)]
            if apart[0] < apart[1]:
                one, other = other, one
            first.append(one)
            second.append(other)
            left[[one, other]] = left[:, [one, other]] = np.inf
        return np.stack([first, second], axis=1)

    @pytest.mark.parametrize("n", [2, 3, 10, 33, 64])
    def test_pairs_are_those_of_the_slow_loop(self, n):
        vectors = np.random.default_rng(n).normal(size=(n, 3)).astype(np.float32)
        np.testing.assert_array_equal(halving.halve(vectors), self.slow(vectors))

    @settings(max_examples=50)
    @given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
    def test_halves_share_no_point_and_leave_none_out_but_an_odd_one(self, points):
        pairs = halving.halve(np.array(points, np.float32))
        assert len(np.unique(pairs)) == pairs.size == len(points) // 2 * 2

    def test_a_half_resembles_the_whole_more_than_chance_does(self):
        """By correntropy: the mean of a Gaussian of the gap from each point to the nearest that is kept."""
        bank = clustered(400, d=3, classes=1)
        likeness = {name: [] for name in ("density", "random")}
        for name, found in likeness.items():
            for seed in range(8):
                kept = condense(bank, name, share=0.25, seed=seed).bank.vectors
                gaps = np.linalg.norm(bank.vectors[:, None] - kept, axis=2).min(axis=1)
                found.append(np.exp(-(gaps**2) / 2).mean())
        assert min(likeness["density"]) > max(likeness["random"])

    def test_between_powers_of_two_one_of_each_of_the_nearest_pairs_goes(self):
        points = [[0.0], [0.1], [5.0], [5.2], [9.0], [9.9]]
        assert len(set(condense(Bank(points, [0] * 6), "density", share=5 / 6).indices) & {0, 1}) == 1

    def test_large_classes_are_paired_in_parts(self, monkeypatch):
        monkeypatch.setattr(halving, "_MOST", 50)
        bank = clustered(400, classes=2)
        small = condense(bank, "density", share=0.1)
        assert len(small) == 40
        assert len(np.unique(small.indices)) == 40
