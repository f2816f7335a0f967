"""Banks that grow, shrink, and live on disk, against a plain dictionary of rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import oracle
from vicinal import Bank, Embeddings
from vicinal.errors import FileError, InputError, ShapeError

POINT = st.tuples(st.integers(-2, 2), st.integers(-2, 2), st.sampled_from([-3, 0, 4]))  # duplicates and ties abound
POINTS = st.lists(POINT, min_size=1, max_size=7)
WEIGHTS = st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=7, max_size=7)


class Changes(RuleBasedStateMachine):
    """Any sequence of add, remove, take, save and load answers as the rows that are left do, by their first numbers."""

    @initialize(points=POINTS)
    def begin(self, points):
        self.rows = dict(enumerate(points))
        self.next_row = len(points)
        self.weights = None
        self.bank = Bank(*_split(points), facts={"layer": "last"})

    @rule(points=POINTS, weights=st.none() | WEIGHTS)
    def add(self, points, weights):
        weights = weights and weights[: len(points)]
        self.bank = self.bank.add(*_split(points), weights)
        new = range(self.next_row, self.next_row + len(points))
        if weights and self.weights is None:
            self.weights = dict.fromkeys(self.rows, 1.0)
        if self.weights is not None:
            self.weights |= dict(zip(new, weights or [1.0] * len(points), strict=True))
        self.rows.update(zip(new, points, strict=True))
        self.next_row += len(points)

    @precondition(lambda self: len(self.rows) > 1)
    @rule(data=st.data())
    def remove(self, data):
        gone = data.draw(st.lists(st.sampled_from(sorted(self.rows)), max_size=len(self.rows) - 1))
        self.bank = self.bank.remove(np.array(gone, int))
        self.rows = {row: point for row, point in self.rows.items() if row not in gone}

    @rule(data=st.data())
    def take(self, data):
        kept = data.draw(st.lists(st.sampled_from(sorted(self.rows)), min_size=1))
        self.bank = self.bank.take(kept)
        self.rows = {row: point for row, point in self.rows.items() if row in kept}

    @rule(data=st.data())
    def save_and_load(self, data):
        import tempfile
        from pathlib import Path

        with tempfile.TemporaryDirectory() as folder:
            self.bank.save(Path(folder) / "bank.safetensors")
            self.bank = Bank.load(Path(folder) / "bank.safetensors")

    @invariant()
    def it_is_what_the_rows_say(self):
        if not hasattr(self, "bank"):
            return
        order = sorted(self.rows)
        points, labels = _split([self.rows[row] for row in order])
        assert self.bank.rows.tolist() == order
        assert self.bank.labels.tolist() == labels
        weights = None if self.weights is None else [self.weights[row] for row in order]
        assert (None if self.bank.weights is None else self.bank.weights.tolist()) == weights
        assert self.bank.vectors.tolist() == np.array(points, float).tolist()
        assert self.bank.classes.tolist() == sorted(set(labels))
        assert (len(self.bank), self.bank.dimension, self.bank.facts) == (len(order), 2, {"layer": "last"})
        query = [0.4, -1.0]
        near = self.bank.nearest([query], len(order), predicted=[0])
        expected = oracle.nearest(points, query, len(order))
        assert near.indices[0].tolist() == [order[place] for _, place in expected]
        np.testing.assert_allclose(near.distances[0], [d for d, _ in expected])
        assert (near.weights is None) == (weights is None)
        if weights is not None:
            assert near.weights[0].tolist() == [weights[place] for _, place in expected]
        own = self.bank.nearest(points, len(order), exclude_self=False).indices
        if len(order) > 1:
            without = self.bank.nearest(points, len(order) - 1, exclude_self=True).indices
            for row, all_of_them, others in zip(order, own, without, strict=True):
                assert [other for other in all_of_them if other != row] == others.tolist()


def _split(points):
    return [list(map(float, point[:2])) for point in points], [point[2] for point in points]


Changes.TestCase.settings = settings(max_examples=40, stateful_step_count=8, deadline=None)
TestChanges = Changes.TestCase


def test_the_bank_it_came_from_is_unchanged():
    bank = Bank([[0.0], [1.0], [2.0]], [0, 1, 2])
    bank.add([[0.1]], [5])
    bank.remove([0])
    bank.take([2])
    assert bank.rows.tolist() == [0, 1, 2]
    assert bank.nearest([[0.1]], k=1).indices.tolist() == [[0]]


def test_labels_are_copied_and_float32_vectors_are_not():
    vectors, labels = np.zeros((2, 2), np.float32), np.array([0, 1])
    bank = Bank(vectors, labels)
    labels[:] = 9
    assert bank.labels.tolist() == [0, 1]
    assert np.shares_memory(bank.vectors, vectors)
    assert np.shares_memory(bank.remove([0]).add([[1.0, 1.0]], [4])._points.segments[0], vectors)


def test_many_small_additions_leave_few_segments():
    bank = Bank(np.zeros((100, 1)), np.zeros(100))
    for step in range(200):
        bank = bank.add([[float(step)]], [1])
    assert len(bank) == 300
    assert len(bank._points.segments) <= 10
    assert bank.nearest([[150.2]], k=2).indices.tolist() == [[250, 251]]


def test_a_class_whose_points_are_all_gone_is_no_class():
    bank = Bank([[0.0], [1.0], [2.0]], [7, 8, 8]).remove([0])
    assert bank.classes.tolist() == [8]
    assert bank.codes(np.array([7, 8, 9])).tolist() == [-1, 0, -1]


@pytest.mark.parametrize("labels", [[-5, 0, 3], [-(2**63), 0, 2**63 - 1], [10**15, 10**15 + 1, 10**15 + 9]])
def test_codes_are_places_among_the_classes_however_far_apart(labels):
    bank = Bank(np.eye(3), labels)
    asked = np.array([labels[2], labels[0], 1, labels[1], labels[0] + 2])
    assert bank.codes(asked).tolist() == [2, 0, -1, 1, -1]


def test_the_row_to_leave_out_can_be_named_for_each_query():
    bank = Bank([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).remove([1])
    near = bank.nearest([[0.0], [0.0]], k=1, exclude_self=[0, 3])
    assert near.indices.tolist() == [[2], [0]]


def test_on_the_unit_sphere_rows_keep_their_numbers_and_weights():
    bank = Bank([[0.0, 0.0], [2.0, 0.0], [0.0, 5.0]], [0, 1, 2], weights=[1, 2, 3]).remove([0]).unit()
    assert bank.weights.tolist() == [2, 3]
    assert bank.vectors.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert bank.rows.tolist() == [1, 2]
    assert bank.add([[1.0, 1.0]], [3]).rows.tolist() == [1, 2, 3]


def test_no_point_lies_beyond_farthest():
    rng = np.random.default_rng(0)
    bank = Bank(rng.standard_normal((200, 5)) + 3, np.zeros(200))
    queries = rng.standard_normal((50, 5)).astype(np.float32) * 10
    assert (bank.nearest(queries, 200).distances[:, -1] <= bank.farthest(queries)).all()


def test_from_embeddings_takes_the_true_labels():
    bank = Bank.from_embeddings(Embeddings([[0.0], [1.0]], [[2, 1], [2, 1]], labels=[1, 1], facts={"network": "n"}))
    assert (bank.labels.tolist(), bank.facts) == ([1, 1], {"network": "n"})
    with pytest.raises(InputError, match="embeddings: expected Embeddings, got ndarray"):
        Bank.from_embeddings(np.zeros((2, 2)))
    with pytest.raises(InputError, match="embeddings: expected labels"):
        Bank.from_embeddings(Embeddings([[0.0]], [[2, 1]]))


def test_it_says_what_it_holds():
    assert repr(Bank(np.zeros((3, 2)), [4, 4, 5])) == "Bank(3 x 2, 2 classes)"


def test_a_loaded_bank_stays_on_disk_and_may_be_saved_onto_its_own_file(tmp_path):
    path = tmp_path / "bank.safetensors"
    Bank(np.arange(8.0).reshape(4, 2), [0, 1, 2, 3]).remove([1]).save(path)
    bank = Bank.load(path)
    assert isinstance(bank.vectors.base, np.memmap)
    bank.save(path)
    again = Bank.load(path).add([[9.0, 9.0]], [4])
    assert again.rows.tolist() == [0, 2, 3, 4]


def test_weights_survive_the_file_whose_version_says_so(tmp_path):
    path, plain = tmp_path / "bank.safetensors", tmp_path / "plain.safetensors"
    bank = Bank(np.eye(3), [0, 1, 2], weights=[1, 2.5, 4]).remove([0])
    bank.save(path)
    assert Bank.load(path).weights.tolist() == [2.5, 4.0]
    assert b'"version":"2"' in path.read_bytes()[:200]
    Bank(np.eye(3), [0, 1, 2]).save(plain)
    assert Bank.load(plain).weights is None
    assert b'"version":"1"' in plain.read_bytes()[:200]


def _with(path, **parts):
    """The bank file, some of its arrays exchanged."""
    from vicinal import store

    arrays, facts = store.read_arrays(path, form="vicinal.bank", version=2, may=None)
    arrays = {name: np.array(part) for name, part in arrays.items()}
    facts = {**facts, **parts.pop("facts", {})}
    store.write_arrays(path, {**arrays, **parts}, form="vicinal.bank", version=1, facts=facts)


@pytest.mark.parametrize(
    "wrong",
    [
        {"labels": np.array([0, 1])},
        {"labels": np.array([0.0, 1.0, 2.0])},
        {"rows": np.array([0, 2, 1])},
        {"rows": np.array([-1, 0, 1])},
        {"rows": np.array([0, 1, 3])},
        {"centre": np.zeros(3)},
        {"centre": np.array([0.0, np.nan])},
        {"squares": np.array([0.0, np.inf, 1.0])},
        {"squares": np.array([0.0, -1.0, 1.0])},
        {"vectors": np.zeros((3, 2))},
        {"weights": np.ones(2)},
        {"weights": np.ones(3, np.float32)},
        {"weights": np.array([1.0, np.nan, 1.0])},
        {"weights": np.array([1.0, 0.0, 1.0])},
        {"facts": {"next_row": True}},
        {"facts": {"next_row": 2}},
        {"facts": {"facts": []}},
    ],
    ids=str,
)
def test_a_file_whose_parts_disagree_is_refused(tmp_path, wrong):
    path = tmp_path / "bank.safetensors"
    Bank(np.arange(6.0).reshape(3, 2), [0, 1, 2]).save(path)
    _with(path, **wrong)
    with pytest.raises(FileError, match=r"bank\.safetensors: expected .* the file is damaged"):
        Bank.load(path)


BANK = Bank([[0.0], [1.0], [2.0]], [0, 0, 1])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: Bank([[0.0], [1.0]], [0]), "labels: expected 2, one for each vector, got 1"),
        (lambda: Bank(np.zeros((0, 3)), []), "vectors: expected at least one row"),
        (lambda: Bank([[0.0], [1.0]], [0, 1], weights=[1]), "weights: expected 2, one for each vector, got 1"),
        (lambda: Bank([[0.0]], [0], weights=[0]), "weights: expected numbers from 1e-09 to 1e\\+09, got 0 in row 0"),
        (lambda: BANK.add([[0.0]], [0], [np.inf]), "weights: expected finite numbers, got inf in row 0"),
        (lambda: Bank([[0.0]], [0], facts={"epochs": 3}), "facts: expected words to words"),
        (lambda: BANK.add([[0.0, 1.0]], [0]), "vectors: expected 1 columns, as in the bank, got 2"),
        (lambda: BANK.add([[np.nan]], [0]), "vectors: expected finite numbers, got NaN in row 0"),
        (lambda: BANK.remove([3]), "indices: expected rows of the bank, got 3, which it does not have"),
        (lambda: BANK.remove([-1]), "indices: expected rows of the bank, got -1"),
        (lambda: BANK.remove([0]).remove([0]), "indices: expected rows of the bank, got 0"),
        (lambda: BANK.remove([0, 1, 2]), "indices: expected to leave at least one point"),
        (lambda: BANK.remove(np.array([True, False, True])), "indices: expected row numbers, got booleans"),
        (lambda: BANK.take([]), "indices: expected at least one row, got none"),
        (lambda: BANK.nearest([[0.0]], k=4), "k: expected a whole number from 1 to 3, the size of the bank, got 4"),
        (lambda: BANK.nearest(BANK.vectors, 3, exclude_self=True), "the size of the bank without the query itself"),
        (lambda: BANK.nearest([[0.0]], k=0), "k: expected a whole number from 1"),
        (lambda: BANK.nearest([[0.0]], k=1.5), "k: expected a whole number"),
        (lambda: BANK.nearest([[0.0]], 1, exclude_self=True), "expected the bank's own 3 rows, in order"),
        (lambda: BANK.nearest([[0.0]], 1, exclude_self=[7]), "exclude_self: expected rows of the bank, got 7"),
        (lambda: BANK.nearest([[0.0]], 1, exclude_self=[0, 1]), "exclude_self: expected 1, one for each query"),
        (lambda: BANK.nearest([[0.0]], 1, predicted=[0, 1]), "predicted: expected 1, one for each query"),
        (lambda: Bank([[0.0, 0.0]], [0]).unit(), "bank: expected vectors with a direction, got zeros in row 0"),
    ],
)
def test_bad_input_is_refused_in_words(call, said):
    with pytest.raises((InputError, ShapeError), match=said):
        call()


def test_points_that_stand_for_a_bank_take_over_numbers_and_labels():
    bank = Bank([[0.0], [1.0], [5.0], [6.0]], [3, 3, 8, 8]).remove([0])
    small = bank.represented_by([1, 3], vectors=[[0.5], [5.5]], weights=[2, 2])
    near = small.nearest([[5.0]], k=1)
    assert (near.indices[0, 0], near.labels[0, 0], near.distances[0, 0], near.weights[0, 0]) == (3, 8, 0.5, 2)
    np.testing.assert_array_equal(bank.represented_by([3]).vectors, [[6.0]])
    assert small.add([[9.0]], [8]).rows.tolist() == [1, 3, 4]
    for rows in ([3, 1], [1, 1], []):
        with pytest.raises(InputError, match="indices: expected at least one row, ascending, each once"):
            bank.represented_by(rows)
    with pytest.raises(ShapeError, match="vectors and indices: expected equal lengths, got 1 and 2"):
        bank.represented_by([1, 3], vectors=[[0.5]])
