import contextlib
import csv
import json
import os
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from vicinal import Bank, Embeddings, tables
from vicinal.errors import FileError, InputError, MissingExtraError, ShapeError, VicinalError
from vicinal.tables import Names

N, D, C = 7, 3, 4
_RNG = np.random.default_rng(5)
ARRAYS = {
    "vectors": _RNG.normal(size=(N, D)).astype(np.float32),
    "logits": _RNG.normal(size=(N, C)),
    "labels": _RNG.integers(0, C, N),
    "predicted": np.array([3, 1, 0, 2, 2, 1, 0]),
}


def make_npz(folder):
    np.savez(folder / "x.npz", **ARRAYS)
    return folder / "x.npz"


def make_compressed_npz(folder):
    np.savez_compressed(folder / "x.npz", **ARRAYS)
    return folder / "x.npz"


def make_folder(folder):
    (folder / "x").mkdir()
    for name, array in ARRAYS.items():
        np.save(folder / "x" / f"{name}.npy", array)
    return folder / "x"


def make_safetensors(folder):
    save_file(ARRAYS, folder / "x.safetensors", metadata={"made": "by someone else"})
    return folder / "x.safetensors"


def make_embeddings(folder):
    Embeddings(**ARRAYS, facts={"network": "tiny"}).save(folder / "x.safetensors")
    return folder / "x.safetensors"


def _parquet(folder, vectors, logits):
    table = pa.table(
        {"vectors": vectors, "logits": logits, "labels": ARRAYS["labels"], "predicted": ARRAYS["predicted"]}
    )
    pq.write_table(table, folder / "x.parquet", row_group_size=3)
    return folder / "x.parquet"


def make_parquet_of_lists(folder):
    return _parquet(folder, ARRAYS["vectors"].tolist(), ARRAYS["logits"].tolist())


def make_parquet_of_fixed_lists(folder):
    fixed = (
        pa.FixedSizeListArray.from_arrays(pa.array(ARRAYS[name].ravel()), ARRAYS[name].shape[1])
        for name in ("vectors", "logits")
    )
    return _parquet(folder, *fixed)


MAKERS = [value for name, value in list(globals().items()) if name.startswith("make_")]


@pytest.mark.parametrize("make", MAKERS)
def test_every_kind_of_file_gives_the_same_embeddings(make, tmp_path):
    read = tables.read(make(tmp_path), needs=["labels", "logits", "predicted"])
    np.testing.assert_array_equal(read.vectors, ARRAYS["vectors"])
    np.testing.assert_array_equal(read.logits, ARRAYS["logits"])
    np.testing.assert_array_equal(read.labels, ARRAYS["labels"])
    np.testing.assert_array_equal(read.predicted, ARRAYS["predicted"])


@pytest.mark.parametrize("make", MAKERS)
def test_names_say_which_array_is_which(make, tmp_path):
    read = tables.read(
        make(tmp_path), Names(vectors="logits", labels="predicted", predicted="labels"), skips=["logits"]
    )
    np.testing.assert_array_equal(read.vectors, ARRAYS["logits"].astype(np.float32))
    np.testing.assert_array_equal(read.labels, ARRAYS["predicted"])
    np.testing.assert_array_equal(read.predicted, ARRAYS["labels"])
    assert read.logits is None


@pytest.mark.parametrize("make", MAKERS)
def test_a_wrong_name_is_refused_with_the_closest(make, tmp_path):
    path = make(tmp_path)
    with pytest.raises(InputError, match=r"expected an array 'label', got .*; did you mean 'labels'\?"):
        tables.read(path, Names(labels="label"))


@pytest.mark.parametrize("make", MAKERS)
def test_a_file_cut_anywhere_is_refused(make, tmp_path):
    path = make(tmp_path)
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    for file in files:
        whole = file.read_bytes()
        for end in range(0, len(whole), max(1, len(whole) // 40)):
            file.write_bytes(whole[:end])
            with pytest.raises((VicinalError, OSError)):
                tables.read(path, needs=["labels", "logits", "predicted"])
        file.write_bytes(whole)
    assert len(tables.read(path)) == N


@pytest.mark.parametrize("make", [make_npz, make_safetensors, make_embeddings])
@settings(max_examples=60, deadline=None)
@given(at=st.floats(0, 1, exclude_max=True), byte=st.integers(0, 255))
def test_a_damaged_byte_is_refused_or_harmless(make, at, byte, tmp_path_factory):
    path = make(tmp_path_factory.mktemp("damaged"))
    content = bytearray(path.read_bytes())
    content[int(at * len(content))] = byte
    path.write_bytes(content)
    with contextlib.suppress(VicinalError, OSError):
        assert tables.read(path).vectors.shape == (N, D)


def test_a_bank_is_read_as_the_points_it_has(tmp_path):
    Bank(ARRAYS["vectors"], ARRAYS["labels"], facts={"network": "tiny"}).remove([2]).save(tmp_path / "b.safetensors")
    read = tables.read(tmp_path / "b.safetensors")
    np.testing.assert_array_equal(read.vectors, np.delete(ARRAYS["vectors"], 2, axis=0))
    np.testing.assert_array_equal(read.labels, np.delete(ARRAYS["labels"], 2))
    assert read.facts == {"network": "tiny"}
    assert read.logits is None


def test_facts_come_from_vicinal_files_and_else_name_the_file(tmp_path):
    assert tables.read(make_embeddings(tmp_path)).facts == {"network": "tiny"}
    assert tables.read(make_npz(tmp_path)).facts == {"file": "x.npz"}


def test_npy_files_stand_for_arrays_of_any_name(tmp_path):
    for name, array in ARRAYS.items():
        np.save(tmp_path / f"my_{name}.npy", array)
    names = Names(labels=str(tmp_path / "my_labels.npy"), logits=str(tmp_path / "my_logits.npy"))
    read = tables.read(tmp_path / "my_vectors.npy", names)
    np.testing.assert_array_equal(read.vectors, ARRAYS["vectors"])
    np.testing.assert_array_equal(read.labels, ARRAYS["labels"])
    np.testing.assert_array_equal(read.predicted, ARRAYS["logits"].argmax(axis=1))
    beside = tables.read(make_npz(tmp_path), Names(labels=str(tmp_path / "my_predicted.npy")))
    np.testing.assert_array_equal(beside.labels, ARRAYS["predicted"])


def test_the_vectors_of_a_npy_file_have_no_other_name(tmp_path):
    np.save(tmp_path / "x.npy", ARRAYS["vectors"])
    with pytest.raises(InputError, match=r"the vectors, which are this file, got 'y\.npy'"):
        tables.read(tmp_path / "x.npy", Names(vectors="y.npy"))


def test_several_columns_are_vectors_in_the_order_named(tmp_path):
    columns = {f"x_{j}": ARRAYS["vectors"][:, j] for j in range(D)}
    pq.write_table(pa.table({**columns, "labels": ARRAYS["labels"]}), tmp_path / "x.parquet")
    whole = tables.read(tmp_path / "x.parquet", Names(vectors="x_*"))
    np.testing.assert_array_equal(whole.vectors, ARRAYS["vectors"])
    some = tables.read(tmp_path / "x.parquet", Names(vectors="x_2, x_0"))
    np.testing.assert_array_equal(some.vectors, ARRAYS["vectors"][:, [2, 0]])
    with pytest.raises(InputError, match=r"expected a column 'y_\*', got x_0, x_1, x_2, labels"):
        tables.read(tmp_path / "x.parquet", Names(vectors="x_0,y_*"))


def test_columns_of_different_lengths_are_refused(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.zeros(3), b=np.zeros(4))
    with pytest.raises(InputError, match=r"expected 'b' to be a column of 3 numbers, to stand beside 'a', got .*4"):
        tables.read(tmp_path / "x.npz", Names(vectors="a,b"))


@pytest.mark.parametrize("dtype", [np.float16, np.float64, ">f4", np.int8, np.uint64])
def test_other_types_of_number_are_read(dtype, tmp_path):
    vectors = np.asfortranarray((10 * np.abs(ARRAYS["vectors"])).astype(dtype))
    np.savez(tmp_path / "x.npz", vectors=vectors)
    np.testing.assert_array_equal(tables.read(tmp_path / "x.npz").vectors, vectors.astype(np.float32))


def test_bfloat16_is_read_exactly_and_float8_refused_only_where_asked_for(tmp_path):
    exact = (ARRAYS["vectors"].view(np.uint32) >> 16 << 16).view(np.float32)
    halves = (exact.view(np.uint32) >> 16).astype("<u2")
    content = {
        "vectors": {"dtype": "BF16", "shape": [N, D], "data_offsets": [0, 2 * N * D]},
        "tiny": {"dtype": "F8_E4M3", "shape": [N, D], "data_offsets": [2 * N * D, 3 * N * D]},
    }
    header = json.dumps(content).encode()
    parts = (len(header).to_bytes(8, "little"), header, halves.tobytes(), bytes(N * D))
    (tmp_path / "x.safetensors").write_bytes(b"".join(parts))
    np.testing.assert_array_equal(tables.read(tmp_path / "x.safetensors").vectors, exact)
    with pytest.raises(FileError, match="expected 'tiny' in float16 or wider, got F8"):
        tables.read(tmp_path / "x.safetensors", Names(vectors="tiny"))


def test_probabilities_become_logits_with_that_softmax(tmp_path):
    shares = np.array([[0.25, 0.75], [1.0, 0.0]])
    np.savez(tmp_path / "x.npz", vectors=np.eye(2), p=shares)
    read = tables.read(tmp_path / "x.npz", Names(probabilities="p"))
    np.testing.assert_allclose(np.exp(read.logits), shares, atol=1e-15)
    assert read.predicted.tolist() == [1, 0]
    np.savez(tmp_path / "x.npz", vectors=np.eye(2), p=2 * shares)
    with pytest.raises(InputError, match=r"x\.npz: p: expected values from 0 to 1"):
        tables.read(tmp_path / "x.npz", Names(probabilities="p"))
    with pytest.raises(InputError, match="expected one of the two to be named"):
        Names(logits="a", probabilities="b")


def test_classes_are_taken_where_named_or_from_vicinals_own_file(tmp_path):
    classes = np.array([10, 20, 30, 40])
    np.savez(tmp_path / "x.npz", **ARRAYS, classes=["a", "b", "c", "d"], codes=classes)
    assert tables.read(tmp_path / "x.npz").classes.tolist() == [0, 1, 2, 3]
    assert tables.read(tmp_path / "x.npz", Names(classes="codes")).classes.tolist() == [10, 20, 30, 40]
    Embeddings(ARRAYS["vectors"], logits=ARRAYS["logits"], classes=classes).save(tmp_path / "own.safetensors")
    assert tables.read(tmp_path / "own.safetensors").classes.tolist() == [10, 20, 30, 40]


def test_what_is_needed_but_not_there_is_said(tmp_path):
    np.savez(tmp_path / "x.npz", features=np.eye(2), target=[0, 1])
    with pytest.raises(
        InputError, match=r"array 'vectors', got features, target; .*say what it is called: --vectors NAME"
    ):
        tables.read(tmp_path / "x.npz")
    names = Names(vectors="features")
    with pytest.raises(InputError, match="array 'labels', got features, target; say"):
        tables.read(tmp_path / "x.npz", names, needs=["labels"])
    with pytest.raises(InputError, match="'predicted' or 'logits', to know the predictions"):
        tables.read(tmp_path / "x.npz", names, needs=["predicted"])
    np.savez(tmp_path / "y.npz", features=np.eye(2), logits=np.eye(2))
    assert tables.read(tmp_path / "y.npz", names, needs=["predicted"]).predicted.tolist() == [0, 1]


def test_many_names_are_not_all_listed(tmp_path):
    np.savez(tmp_path / "x.npz", **{f"a{i:02}": np.zeros(1) for i in range(20)})
    with pytest.raises(InputError, match="a11 and 8 more"):
        tables.read(tmp_path / "x.npz")


def test_bad_content_names_the_file_and_the_array(tmp_path):
    np.savez(tmp_path / "x.npz", vectors=[[1.0], [np.nan]], labels=["cat", "dog"])
    with pytest.raises(InputError, match=r"x\.npz: vectors: expected finite numbers, got NaN in row 1"):
        tables.read(tmp_path / "x.npz", skips=["labels"])
    np.savez(tmp_path / "x.npz", vectors=[[1.0], [2.0]], labels=["cat", "dog"])
    with pytest.raises(InputError, match=r"x\.npz: labels: expected an array of numbers, got dtype <U3"):
        tables.read(tmp_path / "x.npz")
    np.savez(tmp_path / "x.npz", vectors=[[1.0], [2.0]], labels=[1])
    with pytest.raises(ShapeError, match=r"x\.npz: labels: expected 2"):
        tables.read(tmp_path / "x.npz")


class _Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("name", ["x.npz", "x.npy"])
def test_no_code_in_a_file_is_run(name, tmp_path):
    bomb = np.array([_Bomb(tmp_path / "exploded")], dtype=object)
    np.savez(tmp_path / "x.npz", vectors=bomb)
    np.save(tmp_path / "x.npy", bomb)
    with pytest.raises(FileError, match=f"{name}: expected a .np. file of plain arrays"):
        tables.read(tmp_path / name)
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (pa.array([[1.0, 2.0], None, [3.0, 4.0]]), r"no gaps in the column 'vectors', got 1 \(the first in row 1\)"),
        (pa.array([[1.0, 2.0], [3.0], [3.0, 4.0]]), "expected 2 numbers in every row .* got 1 in row 1"),
        (pa.array([[1.0, 2.0], [3.0, None], [3.0, 4.0]]), "no gaps within the rows of the column 'vectors', got 1"),
        (pa.array(["a", "b", "c"]), "expected numbers, or lists of numbers, in the column 'vectors', got string"),
        (pa.array([["a"], ["b"], ["c"]]), "in the column 'vectors', got string"),
    ],
)
def test_parquet_columns_that_are_no_vectors_are_refused(column, said, tmp_path):
    pq.write_table(pa.table({"vectors": column}), tmp_path / "x.parquet")
    with pytest.raises(FileError, match=said):
        tables.read(tmp_path / "x.parquet")


def test_a_parquet_file_without_rows_is_refused(tmp_path):
    pq.write_table(pa.table({"vectors": pa.array([], pa.list_(pa.float32()))}), tmp_path / "x.parquet")
    with pytest.raises(ShapeError, match="at least one row"):
        tables.read(tmp_path / "x.parquet")


def test_a_dot_in_the_name_of_a_column(tmp_path):
    pq.write_table(pa.table({"a.b": [[1.0], [2.0]], "a": [[3.0], [4.0]]}), tmp_path / "x.parquet")
    assert tables.read(tmp_path / "x.parquet", Names(vectors="a.b")).vectors.tolist() == [[1], [2]]
    assert tables.read(tmp_path / "x.parquet", Names(vectors="a")).vectors.tolist() == [[3], [4]]


def test_without_pyarrow_the_message_says_what_to_install(tmp_path, monkeypatch):
    path = make_parquet_of_lists(tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'vicinal\[parquet\]'"):
        tables.read(path)
    with pytest.raises(MissingExtraError, match=r"pip install 'vicinal\[parquet\]'"):
        tables.check_target(tmp_path / "y.parquet")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.csv", b"a,b\n", "expected a file that ends in .safetensors, .npz, .npy, .parquet"),
        ("x", b"", "got 'no ending'"),
        ("x.npz", b"PK", "cut short, or of another kind"),
        ("x.npy", b"\x80\x04N.", "of another kind"),
        ("x.npy", b"", "of another kind"),
        ("x.safetensors", b"hello", "of another kind"),
        ("x.parquet", b"PAR1 and no more", "of another kind"),
    ],
)
def test_foreign_files_are_refused(name, content, said, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(VicinalError, match=said):
        tables.read(tmp_path / name)


def test_missing_files_are_refused_with_the_closest(tmp_path):
    make_npz(tmp_path).rename(tmp_path / "train.npz")
    with pytest.raises(FileError, match=r"got nothing there; did you mean 'train\.npz'\?"):
        tables.read(tmp_path / "trian.npz")
    with pytest.raises(FileError, match=r"got nothing there$"):
        tables.read(tmp_path / "no" / "trian.npz")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match=r"expected a folder of \.npy files"):
        tables.read(tmp_path / "empty")


def test_a_newer_vicinal_file_is_refused(tmp_path):
    metadata = {"format": "vicinal.embeddings", "version": "99", "facts": "{}"}
    save_file(ARRAYS, tmp_path / "x.safetensors", metadata=metadata)
    with pytest.raises(FileError, match="version 1 or older, got '99'; update vicinal"):
        tables.read(tmp_path / "x.safetensors")


# Results.

COLUMNS = {
    "row": np.arange(5),
    "score": np.array([0.1, 1e-300, -2.5e17, np.inf, np.nan]),
    "name": ["a", 'b "quoted", and more', "ä\nö", None, ""],
    "label": [1, None, 3, None, -5],
}


def test_csv_holds_every_digit(tmp_path, monkeypatch):
    monkeypatch.setattr(tables.writing, "_ROWS", 2)
    tables.write(tmp_path / "x.csv", COLUMNS)
    with open(tmp_path / "x.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["row"] for row in rows] == ["0", "1", "2", "3", "4"]
    assert [float(row["score"]) for row in rows[:3]] == [0.1, 1e-300, -2.5e17]
    assert [row["score"] for row in rows[3:]] == ["", ""]
    assert [row["name"] for row in rows] == ["a", 'b "quoted", and more', "ä\nö", "", ""]
    assert [row["label"] for row in rows] == ["1", "", "3", "", "-5"]


def test_json_lines_hold_one_value_each(tmp_path, monkeypatch):
    monkeypatch.setattr(tables.writing, "_ROWS", 2)
    tables.write(tmp_path / "x.jsonl", COLUMNS)
    lines = (tmp_path / "x.jsonl").read_text(encoding="utf-8").split("\n")
    assert lines.pop() == ""

    def refuse(word):
        raise AssertionError(f"{word} is no JSON")

    rows = [json.loads(line, parse_constant=refuse) for line in lines]
    assert [row["score"] for row in rows] == [0.1, 1e-300, -2.5e17, None, None]
    assert [row["name"] for row in rows] == COLUMNS["name"]
    assert list(rows[0]) == list(COLUMNS)


def test_parquet_keeps_types_and_infinity(tmp_path):
    tables.write(tmp_path / "x.parquet", COLUMNS)
    table = pq.read_table(tmp_path / "x.parquet")
    assert [str(kind) for kind in table.schema.types] == ["int64", "double", "string", "int64"]
    np.testing.assert_array_equal(np.asarray(table["score"]), COLUMNS["score"])
    assert table["label"].to_pylist() == COLUMNS["label"]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
@settings(max_examples=50, deadline=None)
def test_numbers_survive_csv_exactly(tmp_path_factory, numbers):
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    tables.write(path, {"x": np.array(numbers)})
    assert [float(line) for line in path.read_text().split()[1:]] == numbers


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_a_write_that_fails_leaves_what_was_there(ending, tmp_path, monkeypatch):
    path = tmp_path / f"x{ending}"
    tables.write(path, {"x": [1]})
    before = path.read_bytes()
    monkeypatch.setattr(tables.writing, "_ROWS", 1)
    with pytest.raises((TypeError, pa.ArrowInvalid, pa.ArrowTypeError)):
        tables.write(path, {"x": np.array([1.0, 2.0]), "y": [1, pytest] if ending != ".csv" else _Trap([1, 2])})
    assert path.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == [path]


class _Trap(list):
    def __getitem__(self, rows):
        if rows.start:
            raise TypeError("sprung")
        return super().__getitem__(rows)


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        ("x.txt", InputError, r"ends in \.csv, \.parquet, \.jsonl, got '\.txt'"),
        ("x", InputError, "got 'none'"),
        ("no/x.csv", FileError, "expected an existing folder"),
        ("folder.csv", FileError, "expected a file to write, got a folder"),
    ],
)
def test_places_where_nothing_can_be_written_are_refused_at_once(name, error, said, tmp_path):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(error, match=said):
        tables.check_target(tmp_path / name)


def test_columns_to_write_must_have_one_length(tmp_path):
    with pytest.raises(ShapeError, match=r"expected equal lengths, got \{'a': 1, 'b': 2\}"):
        tables.write(tmp_path / "x.csv", {"a": [1], "b": [1, 2]})
    assert not (tmp_path / "x.csv").exists()


def test_plain_values_are_json():
    value = {
        1: np.float32(0.5),
        "a": (np.int64(3), [np.inf, -np.inf, np.nan]),
        "b": np.array([[1.0, np.nan]]),
        "c": None,
    }
    assert tables.plain(value) == {"1": 0.5, "a": [3, [None, None, None]], "b": [[1.0, None]], "c": None}
