"""The shared checks: what passes and how it is converted, and for each of them inputs at which it fails."""

from __future__ import annotations

import ast
import io
import re
import struct
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse

from vicinal import checks
from vicinal.errors import InputError, ShapeError

TWO = [[1.0, -2.5], [0.0, 3.0]]
PLAIN = np.array(TWO, np.float32)


def refuses(call, said, kind=InputError):
    with pytest.raises(kind, match=said):
        call()


# -- what passes -----------------------------------------------------------------------------------------------------

KINDS = {
    "list": TWO,
    "tuples": tuple(map(tuple, TWO)),
    "list of arrays": [np.array(row) for row in TWO],
    "list of tensors": [torch.tensor(row) for row in TWO],
    "float64": np.array(TWO),
    "float16": np.array(TWO, np.float16),
    "longdouble": np.array(TWO, np.longdouble),
    "big-endian": np.array(TWO, ">f4"),
    "Fortran order": np.asfortranarray(TWO, np.float32),
    "every second column": np.array([[1.0, 9, -2.5, 9], [0, 9, 3, 9]], np.float32)[:, ::2],
    "backwards": np.array(TWO[::-1], np.float32)[::-1],
    "unaligned": np.frombuffer(b"\0" + PLAIN.tobytes(), np.float32, offset=1).reshape(2, 2),
    "matrix": np.array(TWO).view(np.matrix),
    "torch": torch.tensor(TWO),
    "torch float64": torch.tensor(TWO, dtype=torch.float64),
    "torch float16": torch.tensor(TWO, dtype=torch.float16),
    "torch bfloat16": torch.tensor(TWO, dtype=torch.bfloat16),
    "torch with gradient": torch.tensor(TWO, requires_grad=True) * 1,
    "torch bfloat16 with gradient": torch.tensor(TWO, dtype=torch.bfloat16, requires_grad=True),
    "torch transposed": torch.tensor(TWO).T.contiguous().T,
    "pandas": pd.DataFrame(TWO),
    "polars": pl.DataFrame(TWO, orient="row"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_of_any_framework_become_c_ordered_float32(kind):
    found = checks.vectors(KINDS[kind], "vectors")
    assert type(found) is np.ndarray
    assert found.dtype == np.float32
    assert found.dtype.isnative
    assert found.flags.c_contiguous
    assert found.tolist() == TWO


def test_columns_of_pandas_own_types_or_of_several_are_numbers():
    frame = pd.DataFrame({"a": pd.array([1.5, 2.5], "Float32"), "b": [True, False], "c": pd.array([3, 4], "Int64")})
    np.testing.assert_array_equal(checks.vectors(frame, "x"), [[1.5, 1, 3], [2.5, 0, 4]])
    frame.loc[1, "a"] = pd.NA
    with pytest.raises(InputError, match="x: expected finite numbers, got NaN in row 1, column 0"):
        checks.vectors(frame, "x")
    with pytest.raises(InputError, match="x: expected an array of numbers, got dtype object"):
        checks.vectors(pd.DataFrame({"a": [1.0, 2.0], "b": ["u", "v"]}), "x")


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64", "bool"])
def test_whole_numbers_are_vectors_too(dtype):
    found = checks.vectors(np.array([[0, 1], [1, 1]], dtype), "vectors")
    assert found.dtype == np.float32
    assert found.tolist() == [[0, 1], [1, 1]]


def test_a_jax_array_passes():
    jnp = pytest.importorskip("jax.numpy")
    assert checks.vectors(jnp.array(TWO), "vectors").tolist() == TWO
    assert checks.vectors(jnp.array(TWO, jnp.bfloat16), "vectors").tolist() == TWO


def test_the_bfloat16_that_jax_gives_to_numpy_passes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert checks.vectors(np.array(TWO, ml_dtypes.bfloat16), "vectors").tolist() == TWO
    assert checks.logits(np.array(TWO, ml_dtypes.bfloat16), "logits").tolist() == TWO


@given(arrays.arrays(np.float64, (3, 2), elements=st.floats(-3e38, 3e38)))
@settings(deadline=None)
def test_float64_is_rounded_to_the_nearest_float32(value):
    expected = [[struct.unpack("f", struct.pack("f", x))[0] for x in row] for row in value.tolist()]
    assert checks.vectors(value, "vectors").tolist() == expected


@given(arrays.arrays(np.uint16, (4, 3)))
@settings(deadline=None)
def test_half_and_bfloat16_are_exact(bits):
    half = bits.view(np.float16)
    half = np.where(np.isfinite(half), half, np.float16(1))
    assert (checks.vectors(half, "vectors") == half.astype(np.float64)).all()
    brain = (bits.astype(np.uint32) << 16).view(np.float32)
    brain = np.where(np.isfinite(brain), brain, np.float32(1))
    assert (checks.vectors(torch.from_numpy(brain).bfloat16(), "vectors") == brain).all()


def test_a_float32_array_is_not_copied():
    value = np.ones((3, 2), np.float32)
    assert checks.vectors(value, "vectors") is value
    assert np.shares_memory(checks.vectors(torch.from_numpy(value), "vectors"), value)


def test_a_read_only_array_and_one_on_disk_are_not_copied(tmp_path):
    np.save(tmp_path / "v.npy", PLAIN)
    mapped = np.load(tmp_path / "v.npy", mmap_mode="r")
    assert np.shares_memory(checks.vectors(mapped, "vectors"), mapped)
    fixed = PLAIN.copy()
    fixed.flags.writeable = False
    assert checks.vectors(fixed, "vectors") is fixed


@pytest.mark.parametrize("large", [1e20, 3e38, -3.4e38, np.finfo(np.float32).max, 1e-45])
def test_huge_and_tiny_values_pass(large):
    assert checks.vectors([[large, 0.0]], "vectors")[0, 0] == np.float32(large)


def test_many_values_near_the_largest_have_an_infinite_sum_and_still_pass():
    logits = np.full((300, 3), 1e308)
    assert checks.logits(logits, "logits") is logits


def test_values_too_small_for_float32_become_0_whatever_numpy_is_told_to_raise():
    with np.errstate(all="raise"):
        assert checks.vectors([[1e-300, 1.0]], "vectors").tolist() == [[0.0, 1.0]]


# -- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([["a", "b"]], "dtype <U1"),
        ([["1", "2"]], "dtype <U1"),
        ([[1, 2], [3]], "got list .*inhomogeneous"),
        (np.array([[1.0, 2.0]], object), "dtype object"),
        ([[1.0, None]], "dtype object"),
        (None, "dtype object"),
        (object(), "dtype object"),
        (({"a": 1}), "dtype object"),
        ((row for row in TWO), "dtype object"),
        ([[2**70, 1]], "dtype object"),
        ([[1j, 0]], "dtype complex128"),
        (np.array([["2026-01-01"]], "M8[D]"), r"dtype datetime64\[D\]"),
        (np.zeros((2, 2), [("x", "f4")]), r"dtype \["),
        (sparse.csr_matrix(np.eye(2)), "dtype object"),
        (pd.DataFrame({"a": [1.0], "b": ["x"]}), "dtype object"),
        (pl.DataFrame({"a": ["x"]}), "dtype object"),
        (np.ma.masked_array(TWO, mask=[[0, 1], [0, 0]]), "without a mask, got a masked one; fill it or drop"),
        (np.ma.masked_array(TWO), "without a mask"),
        ([torch.ones(2, requires_grad=True)], "requires grad"),
        (torch.eye(2).to_sparse(), "Sparse layout"),
        (torch.ones(2, 2, device="meta"), "meta tensor"),
        (torch.ones(2, 2, dtype=torch.complex64).conj(), "conjugate"),
        (torch.ones(2, 2).to(torch.float8_e4m3fn), "Float8"),
        (io.TextIOWrapper(io.BytesIO()), "got TextIOWrapper"),
    ],
)
def test_what_is_no_array_of_numbers_is_refused_by_name(value, said):
    for check in (checks.vectors, checks.logits, checks.labels, checks.numbers, checks.flags, checks.rows):
        refuses(lambda check=check: check(value, "my name"), f"^my name: expected an array .*{said}")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([1.0, 2.0], r"got \(2,\); reshape one vector to \(1, d\)"),
        (3.0, r"got \(\)$"),
        (np.ones((2, 2, 2)), r"got \(2, 2, 2\)$"),
        ([], r"got \(0,\)"),
        ([[]], r"at least one row and one column, got \(1, 0\)"),
        (np.ones((0, 4)), r"got \(0, 4\)"),
    ],
)
def test_vectors_of_another_shape_are_refused(value, said):
    refuses(lambda: checks.vectors(value, "vectors"), f"^vectors: expected .*{said}", ShapeError)


def test_vectors_of_another_width_are_refused_with_advice():
    said = "^queries: expected 3 columns, as in the bank, got 2; vectors must come from the same layer"
    refuses(lambda: checks.vectors(TWO, "queries", columns=3), said, ShapeError)


@pytest.mark.parametrize("check", [checks.vectors, checks.logits])
@pytest.mark.parametrize(
    ("bad", "said"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "-inf")]
)  # fmt: skip
def test_the_first_row_that_is_not_finite_is_named_and_all_are_counted(check, bad, said):
    value = np.zeros((70_000, 3))
    value[[66_000, 66_001, 69_999], [1, 2, 0]] = bad
    expected = f"^x: expected finite numbers, got {said} in row 66000, column 1 (3 such rows); remove or repair"
    refuses(lambda: check(value, "x"), re.escape(expected).replace(r"\^", "^"))
    refuses(lambda: check(torch.tensor(value[66_000:66_001]), "x"), r"in row 0, column 1 \(1 such row\)")


def test_infinities_of_both_signs_and_nan_in_one_block_do_not_cancel():
    refuses(lambda: checks.vectors([[np.inf, 0], [-np.inf, 0], [np.nan, 0]], "x"), r"row 0, column 0 \(3 such rows\)")


@pytest.mark.parametrize("large", [1e39, -1e300, np.longdouble("1e4000")])
def test_what_float32_cannot_hold_is_refused_as_too_large(large):
    said = r"got -?(1e\+39|1e\+300|1e\+4000|inf), too large for float32 in row 1, column 0 \(1 such row\)"
    refuses(lambda: checks.vectors(np.array([[1, 1], [large, 1]]), "vectors"), said)


def test_logits_wider_than_float64_are_refused_as_too_large():
    wide = np.array([[1, np.longdouble("1e4000")]])
    if not np.isfinite(wide).all():
        pytest.skip("long double is no wider than float64 here")
    refuses(lambda: checks.logits(wide, "logits"), "too large for float64 in row 0, column 1")
    refuses(lambda: checks.numbers(wide[0], "scores"), "scores: expected finite numbers, got .* in row 1")


@pytest.mark.parametrize("value", [[1.0, 2.0], [[1.0]], np.ones((0, 3)), np.ones((2, 2, 2))])
def test_logits_of_another_shape_are_refused(value):
    refuses(lambda: checks.logits(value, "logits"), r"^logits: expected shape \(n, c\)", ShapeError)


def test_logits_of_another_length_are_refused():
    refuses(lambda: checks.logits(TWO, "logits", rows=3), "expected 3 rows, one for each vector, got 2", ShapeError)
    assert checks.logits(TWO, "logits", rows=2).dtype == np.float64


# -- labels and rows -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([0, 0], [0, 0]),
        ([-7, 0, 1000], [-7, 0, 1000]),
        ([1.0, -2.0, 2.0**60], [1, -2, 2**60]),
        ([-(2.0**63)], [-(2**63)]),
        (np.array([2**63 - 1], np.uint64), [2**63 - 1]),
        (np.array([255], np.uint8), [255]),
        ([True, False], [1, 0]),
        (np.array([3, 4], ">i2"), [3, 4]),
        (torch.tensor([2, 1]), [2, 1]),
        (torch.tensor([2.0, 1.0], dtype=torch.bfloat16), [2, 1]),
        (pd.Series([5, 6]), [5, 6]),
        (pd.Series([5, 6], dtype="Int64"), [5, 6]),
        (pl.Series([5, 6]), [5, 6]),
        (np.arange(6)[::2], [0, 2, 4]),
    ],
)
def test_whole_numbers_of_any_type_are_labels(value, expected):
    found = checks.labels(value, "labels")
    assert found.dtype == np.int64
    assert found.flags.c_contiguous
    assert found.tolist() == expected


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([1.0, 0.5, 2.5], r"whole numbers, got 0.5 at row 1 \(2 such rows\)"),
        ([1.0, np.nan], "whole numbers, got nan at row 1"),
        ([-np.inf, 1], "whole numbers, got -inf at row 0"),
        (pd.Series([5, None], dtype="Int64"), "whole numbers, got nan at row 1"),
        (pl.Series([5, None]), "whole numbers, got nan at row 1"),
        (np.array([1, 2**63], np.uint64), "below 2^63, got 9223372036854775808 at row 1"),
        ([1e300, 1.0], r"below 2^63, got 1e+300 at row 0"),
        ([-1e300], r"below 2^63, got -1e+300 at row 0"),
        ([-1, 2**63], "below 2^63, got 9.2"),
        (np.array([np.finfo(np.float16).max, np.inf], np.float16), "got inf at row 1"),
    ],
)
def test_labels_that_are_no_whole_numbers_are_refused(value, said):
    refuses(lambda: checks.labels(value, "labels"), re.escape(said) if "^" in said else said)


@pytest.mark.parametrize("value", [3, [[1], [2]], np.ones((2, 2, 1))])
def test_labels_of_another_shape_are_refused(value):
    refuses(lambda: checks.labels(value, "labels"), r"^labels: expected shape \(n,\)", ShapeError)


def test_labels_of_another_length_are_refused():
    refuses(lambda: checks.labels([1, 2], "predicted", rows=3, of="query"), "expected 3, one for each query, got 2")


def test_a_mask_is_not_taken_for_row_numbers():
    refuses(lambda: checks.rows(np.array([True, False]), "indices"), "^indices: .* got booleans; pass np.flatnonzero")
    assert checks.rows([3, 1], "indices").tolist() == [3, 1]
    refuses(lambda: checks.rows([0.5], "indices"), "whole numbers")
    refuses(lambda: checks.rows([1], "indices", rows=2), "expected 2, one for each row")


# -- probabilities, numbers, flags -----------------------------------------------------------------------------------


@given(arrays.arrays(np.float64, (5, 4), elements=st.floats(-5, 5)), st.sampled_from([np.float16, np.float32, float]))
@settings(deadline=None)
def test_a_softmax_of_any_precision_is_probabilities(logits, dtype):
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert (checks.probabilities(p.astype(dtype), "p") == p.astype(dtype)).all()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([[0.5, 0.5], [2.0, -1.0]], r"from 0 to 1, but row 1 has 2.0 \(1 such rows\); if these are logits, pass them"),
        ([[0.5, 0.6], [0.5, 0.5], [0.2, 0.2]], r"sum to 1, but row 0 sums to 1.1 \(2 such rows\); if these are"),
        ([[0.0, 0.0]], "row 0 sums to 0"),
    ],
)
def test_what_is_no_probability_is_refused(value, said):
    refuses(lambda: checks.probabilities(value, "p"), f"^p: expected .*{said}")


def test_numbers_are_finite_and_within_their_bounds():
    assert checks.numbers([1, 2], "risk", low=1, high=2).tolist() == [1.0, 2.0]
    refuses(lambda: checks.numbers([0.5, np.nan, np.inf], "risk"), r"got nan in row 1 \(2 such rows\); remove or")
    refuses(lambda: checks.numbers([0.5, 3], "risk", low=0, high=1), r"numbers from 0 to 1, got 3.0 in row 1 \(1 such")
    refuses(lambda: checks.numbers([0.5], "risk", rows=2), "expected 2, one for each prediction, got 1", ShapeError)
    refuses(lambda: checks.numbers([], "risk"), r"at least one prediction, got \(0,\)", ShapeError)
    refuses(lambda: checks.numbers([[1.0]], "risk"), r"got \(1, 1\)", ShapeError)


def test_flags_are_yes_or_no():
    assert checks.flags([True, False], "correct").tolist() == [True, False]
    assert checks.flags([1.0, 0.0], "correct").dtype == bool
    refuses(lambda: checks.flags([0, 2, 3], "correct"), r"booleans, or 0 and 1, got 2 in row 1 \(2 such rows\)")
    refuses(lambda: checks.flags([np.nan], "correct"), "got nan in row 0")
    refuses(lambda: checks.flags([], "correct"), "at least one", ShapeError)


def test_unit_vectors_have_length_one_even_where_the_square_is_below_float32():
    found = checks.unit_vectors(np.array([[3e-30, 4e-30], [3e30, 4e30], [1e-45, 0]], np.float32), "queries")
    np.testing.assert_allclose(found, [[0.6, 0.8], [0.6, 0.8], [1, 0]], rtol=1e-6)
    zeros = np.array([[1, 1], [0, 0], [0, 0]], np.float32)
    refuses(lambda: checks.unit_vectors(zeros, "queries"), r"^queries: .* zeros in row 1 \(2 such rows\)")


# -- images ----------------------------------------------------------------------------------------------------------


def test_images_are_uint8_with_channels_last():
    grey, colour = np.zeros((2, 5, 4), np.uint8), np.zeros((2, 5, 4, 3), np.uint8)
    assert checks.images(grey, "images").shape == (2, 5, 4, 1)
    assert checks.images(colour, "images", shape=(5, 4, 3)).shape == (2, 5, 4, 3)
    assert checks.images(np.asfortranarray(colour), "images").flags.c_contiguous


@pytest.mark.parametrize(
    ("value", "shape", "said"),
    [
        (np.zeros((2, 5, 4)), None, "pixels as uint8, from 0 to 255, got float64; convert"),
        (np.zeros((5, 4), np.uint8), None, r"got \(5, 4\); for one image, pass images\[None\]"),
        (np.zeros((2, 5, 4), np.uint8), (5, 4, 3), r"expected shape \(n, 5, 4, 3\), got \(2, 5, 4\); for one image"),
        (np.zeros((2, 3, 5, 4), np.uint8), None, "channels come last"),
        (np.zeros((2, 5, 4, 2), np.uint8), None, r"expected shape \(n, h, w, 1 or 3\), got \(2, 5, 4, 2\)$"),
        (np.zeros((2, 5, 4, 3), np.uint8), (4, 5, 3), r"expected shape \(n, 4, 5, 3\)"),
        (np.zeros((0, 5, 4, 3), np.uint8), None, "at least one image"),
        (np.zeros(3, np.uint8), None, r"got \(3,\)$"),
    ],
)
def test_what_is_no_image_is_refused(value, shape, said):
    refuses(lambda: checks.images(value, "images", shape=shape), said)


# -- single values ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, 6, -1, 2.0, True, np.True_, "3", None, [3], np.array(3), float("nan")])
def test_what_is_no_whole_number_in_range_is_refused(value):
    said = "^k: expected a whole number from 1 to 5, the size of the bank, got "
    refuses(lambda: checks.whole(value, "k", low=1, high=5, why=", the size of the bank"), said)


def test_whole_numbers_in_range_pass():
    assert [checks.whole(k, "k", low=1, high=5) for k in (1, 5, np.int8(3))] == [1, 5, 3]
    assert checks.whole(10**12, "k", low=1) == 10**12
    refuses(lambda: checks.whole(0, "k", low=1), "^k: expected a whole number of at least 1, got 0$")


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), True, "0.5", None, [0.5]])
def test_what_is_no_fraction_is_refused(value):
    refuses(lambda: checks.fraction(value, "risk"), r"^risk: expected a number in \[0, 1\], got ")


def test_fractions_pass_with_their_bounds():
    assert [checks.fraction(x, "risk") for x in (0, 1, np.float32(0.5))] == [0.0, 1.0, 0.5]
    refuses(lambda: checks.fraction(0.0, "risk", open_low=True), r"^risk: expected a number in \(0, 1\], got 0.0")
    assert checks.fraction(1e-9, "risk", open_low=True) == 1e-9


def test_one_of_names_the_nearest_word():
    assert checks.one_of("exp", "kernel", ("exp", "count")) == "exp"
    refuses(lambda: checks.one_of("cuont", "kernel", ("exp", "count")), "'cuont'; did you mean 'count'[?]$")
    refuses(lambda: checks.one_of("zzz", "kernel", ("exp", "count")), "one of 'exp', 'count', got 'zzz'$")
    for odd in (None, 3, np.array(["exp", "exp"]), ["exp"]):
        refuses(lambda odd=odd: checks.one_of(odd, "kernel", ("exp", "count")), "^kernel: expected one of")


@pytest.mark.parametrize("value", [None, 3, b"bytes", ["a"], "with a NUL \0", "", "\ud800"])
def test_what_is_no_path_is_refused(value):
    refuses(
        lambda: checks.path(value, "folder"),
        "^folder: expected a path.*, got (None|3|b'bytes'|\\['a'\\]|'with a NUL|''|'.ud800')",
    )


def test_paths_come_as_text_or_as_paths(tmp_path):
    assert checks.path(str(tmp_path)) == checks.path(tmp_path) == tmp_path


def test_lengths_that_differ_are_refused():
    checks.same_length([1, 2], [3, 4], "scores and correct")
    refuses(
        lambda: checks.same_length([1], [3, 4], "a and b"), "^a and b: expected equal lengths, got 1 and 2", ShapeError
    )


def test_facts_are_words_to_words():
    said = {"network": "resnet"}
    found = checks.facts(said)
    assert found == said
    assert found is not said
    refuses(lambda: checks.facts({"epochs": 3}), "^facts: expected words to words, got 'epochs': 3; turn them into")
    refuses(lambda: checks.facts({1: "x"}), "got 1: 'x'")
    refuses(lambda: checks.facts(["network"]), "as a dict, got list")


def test_every_check_is_seen_to_fail():
    """Every public check is called inside ``refuses`` somewhere above."""
    refused = set()
    for node in ast.walk(ast.parse(Path(__file__).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "refuses":
            inside = [part for part in ast.walk(node) if isinstance(part, ast.Attribute)]
            refused |= {part.attr for part in inside if isinstance(part.value, ast.Name) and part.value.id == "checks"}
    functions = {name for name in checks.__all__ if name.islower()}
    assert functions - refused == {"array"}  # which all the others call
