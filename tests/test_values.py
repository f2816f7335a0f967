"""The values that travel: complete when they exist, refused when they cannot be, the same after a file."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from vicinal import Bank, Embeddings, Neighbors, Trust, margin, store
from vicinal.errors import FileError, InputError, ShapeError

VECTORS = [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
LOGITS = [[4.0, 1.0], [0.5, 2.5], [1.0, 1.0]]


# -- Embeddings ------------------------------------------------------------------------------------------------------


def test_predictions_are_the_class_of_the_largest_logit_the_first_where_tied():
    assert Embeddings(VECTORS, LOGITS).predicted.tolist() == [0, 1, 0]
    assert Embeddings(VECTORS, LOGITS, classes=[7, -3]).predicted.tolist() == [7, -3, 7]
    assert Embeddings(VECTORS, LOGITS).classes.tolist() == [0, 1]


def test_predictions_that_are_given_are_kept():
    found = Embeddings(VECTORS, LOGITS, labels=[1, 1, 1], predicted=[1, 0, 9])
    assert found.predicted.tolist() == [1, 0, 9]
    assert found.correct.tolist() == [True, False, False]


def test_vectors_alone_will_do():
    found = Embeddings(VECTORS)
    assert (found.logits, found.labels, found.predicted, found.classes) == (None, None, None, None)
    assert len(found) == 3
    assert repr(found) == "Embeddings(3 x 2; vectors only)"


def test_it_says_what_it_holds():
    assert repr(Embeddings(VECTORS, LOGITS, labels=[0, 1, 0])) == "Embeddings(3 x 2; logits, labels, predicted)"


def test_arrays_of_any_framework_become_plain_ones():
    found = Embeddings(
        torch.tensor(VECTORS, requires_grad=True),
        logits=torch.tensor(LOGITS, dtype=torch.bfloat16),
        labels=pd.Series([0, 1, 2]),
        predicted=(2, 1, 0),
    )
    kinds = [(type(x), x.dtype) for x in (found.vectors, found.logits, found.labels, found.predicted)]
    assert kinds == [(np.ndarray, np.float32), (np.ndarray, float), (np.ndarray, np.int64), (np.ndarray, np.int64)]
    assert found.logits.tolist() == LOGITS


def test_float32_vectors_are_not_copied():
    vectors = np.array(VECTORS, np.float32)
    assert Embeddings(vectors).vectors is vectors


@pytest.mark.parametrize(
    ("given_", "said", "kind"),
    [
        ({"vectors": [1.0]}, r"^vectors: expected shape \(n, d\), got \(1,\); reshape", ShapeError),
        ({"vectors": []}, "^vectors: expected", ShapeError),
        ({"vectors": [[1.0], [np.nan]]}, "^vectors: expected finite numbers, got NaN in row 1", InputError),
        ({"logits": LOGITS[:2]}, "^logits: expected 3 rows, one for each vector, got 2", ShapeError),
        ({"logits": [[1.0]] * 3}, "^logits: expected .* two classes", ShapeError),
        ({"logits": [[1.0, np.inf]] * 3}, r"^logits: .* inf in row 0, column 1 \(3 such rows\)", InputError),
        ({"labels": [0, 1]}, "^labels: expected 3, one for each vector, got 2", ShapeError),
        ({"labels": [0, 1, 0.5]}, "^labels: expected whole numbers, got 0.5 at row 2", InputError),
        ({"predicted": [0]}, "^predicted: expected 3, one for each vector, got 1", ShapeError),
        ({"logits": LOGITS, "classes": [1]}, "^classes: expected 2, one for each column of the logits", ShapeError),
        ({"logits": LOGITS, "classes": [1, 1]}, "^classes: expected a different label for every column", InputError),
        ({"classes": [0.5]}, "^classes: expected whole numbers", InputError),
        ({"facts": {"epochs": 3}}, "^facts: expected words to words, got 'epochs': 3", InputError),
        ({"facts": "resnet"}, "^facts: expected words to words, as a dict, got str", InputError),
    ],
)
def test_what_does_not_fit_together_is_refused(given_, said, kind):
    with pytest.raises(kind, match=said):
        Embeddings(**{"vectors": VECTORS, **given_})


def test_right_and_wrong_need_labels_and_predictions():
    with pytest.raises(InputError, match="expected labels, to tell right predictions from wrong ones; pass them in"):
        _ = Embeddings(VECTORS, LOGITS).correct
    with pytest.raises(InputError, match="expected logits or predicted, to tell"):
        _ = Embeddings(VECTORS, labels=[0, 0, 0]).correct


def test_nothing_can_be_reassigned():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Embeddings(VECTORS).labels = np.zeros(3)


def test_facts_are_ones_own():
    facts = {"network": "resnet"}
    found = Embeddings(VECTORS, facts=facts)
    facts["network"] = "another"
    assert found.facts == {"network": "resnet"}


def test_take_gives_rows_in_the_order_asked_for():
    found = Embeddings(VECTORS, LOGITS, labels=[5, 6, 7], classes=[3, 4], facts={"a": "b"}).take([2, 0, 2])
    assert found.vectors.tolist() == [VECTORS[2], VECTORS[0], VECTORS[2]]
    assert found.logits.tolist() == [LOGITS[2], LOGITS[0], LOGITS[2]]
    assert (found.labels.tolist(), found.predicted.tolist(), found.classes.tolist()) == ([7, 5, 7], [3, 3, 3], [3, 4])
    assert found.facts == {"a": "b"}
    assert Embeddings(VECTORS).take([1]).labels is None


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "at least one, got none"),
        ([3], "indices from 0 to 2, got 3 to 3"),
        ([-1, 1], "indices from 0 to 2, got -1 to 1"),
        ([0.5], "whole numbers, got 0.5"),
        ([True, False, True], "row numbers, got booleans; pass np.flatnonzero of the mask"),
        ([[0]], r"shape \(n,\)"),
    ],
)
def test_rows_that_are_not_there_are_refused(rows, said):
    with pytest.raises(InputError, match=f"^rows: expected {said}"):
        Embeddings(VECTORS).take(rows)


@st.composite
def embeddings(draw):
    n, d, c = draw(st.integers(1, 5)), draw(st.integers(1, 4)), draw(st.integers(2, 4))
    whole = arrays.arrays(np.int64, n, elements=st.integers(-(2**63), 2**63 - 1))
    logits = draw(
        st.none() | arrays.arrays(np.float64, (n, c), elements=st.floats(allow_nan=False, allow_infinity=False))
    )
    classes = st.none() | st.lists(st.integers(-(2**63), 2**63 - 1), min_size=c, max_size=c, unique=True)
    finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
    return Embeddings(
        draw(arrays.arrays(np.float32, (n, d), elements=finite)),
        logits=logits,
        labels=draw(st.none() | whole),
        predicted=draw(st.none() | whole),
        classes=draw(classes) if logits is not None else None,
        facts=draw(st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3)),
    )


@given(embeddings())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_file_gives_back_what_went_in(tmp_path, value):
    value.save(tmp_path / "e.safetensors")
    found = Embeddings.load(tmp_path / "e.safetensors")
    assert found.facts == value.facts
    for name in ("vectors", "logits", "labels", "predicted", "classes"):
        before, after = getattr(value, name), getattr(found, name)
        assert (before is None) == (after is None)
        if before is not None:
            assert (before.dtype, before.tobytes()) == (after.dtype, after.tobytes())


def test_a_loaded_one_is_mapped_and_may_be_saved_onto_its_own_file(tmp_path):
    path = tmp_path / "e.safetensors"
    Embeddings(VECTORS, LOGITS).save(path)
    found = Embeddings.load(path)
    assert not found.vectors.flags.owndata
    assert not found.logits.flags.writeable
    found.take([2, 1]).save(path)
    assert found.vectors.tolist() == VECTORS
    assert Embeddings.load(path).vectors.tolist() == [VECTORS[2], VECTORS[1]]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"vectors": np.ones(3, np.float32)}, r"vectors: expected shape \(n, d\)"),
        ({"vectors": np.full((1, 1), np.nan, np.float32)}, "vectors: expected finite numbers, got NaN in row 0"),
        ({"vectors": np.ones((2, 1), np.float32), "labels": np.zeros(3, np.int64)}, "labels: expected 2, one for each"),
        ({"vectors": np.ones((0, 3), np.float32)}, "vectors: expected at least one row"),
    ],
)
def test_a_file_of_arrays_that_do_not_fit_together_is_refused_with_its_name(tmp_path, content, said):
    path = tmp_path / "e.safetensors"
    store.write_arrays(path, content, form="vicinal.embeddings", version=1, facts={})
    with pytest.raises(
        FileError, match=f"e.safetensors: {said}.*; the file is damaged, or was written by something else"
    ):
        Embeddings.load(path)


def test_a_file_with_facts_that_are_no_words_is_refused(tmp_path):
    path = tmp_path / "e.safetensors"
    content = {"vectors": np.ones((1, 1), np.float32)}
    store.write_arrays(path, content, form="vicinal.embeddings", version=1, facts={"epochs": 3})
    with pytest.raises(FileError, match=r"e\.safetensors: facts: expected words to words, got 'epochs': 3"):
        Embeddings.load(path)


# -- answers ---------------------------------------------------------------------------------------------------------


def test_neighbors_know_how_many_they_are():
    near = Bank(VECTORS, [0, 1, 1]).nearest(VECTORS[:2], 3)
    assert isinstance(near, Neighbors)
    assert (len(near), near.k) == (2, 3)
    assert near.same is near.other is None


def test_trust_says_its_range_and_its_notes():
    trust = margin([[1.0, 0.0], [5.0, 0.0]])
    assert (len(trust), repr(trust)) == (2, "Trust(margin, 2 predictions, log-odds 1 to 5)")
    noted = dataclasses.replace(trust, notes=("one", "two"))
    assert repr(noted) == "Trust(margin, 2 predictions, log-odds 1 to 5; note: one; note: two)"
    with pytest.raises(dataclasses.FrozenInstanceError):
        trust.name = "other"
    assert isinstance(trust, Trust)
