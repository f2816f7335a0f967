"""Our reader of MATLAB files against SciPy's writer and reader; and damage, which SciPy's reader does not survive."""

from __future__ import annotations

import contextlib
import io
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.io import loadmat, savemat

from vicinal.data.matlab import read_matrices
from vicinal.errors import FileError

DTYPES = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"]


def written(content, compressed) -> bytes:
    file = io.BytesIO()
    savemat(file, content, do_compression=compressed)
    return file.getvalue()


def read(raw: bytes, names=("X", "y")):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "some.mat"
        path.write_bytes(raw)
        return read_matrices(path, names)


@given(
    st.sampled_from(DTYPES).flatmap(
        lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=2, max_dims=4, max_side=5))
    ),
    st.booleans(),
)
def test_arrays_are_read_as_scipy_reads_them(array, compressed):
    raw = written({"before": np.arange(3), "X": array, "after": np.ones((1, 1))}, compressed)
    ours, theirs = read(raw), loadmat(io.BytesIO(raw))
    assert set(ours) == {"X"}
    np.testing.assert_array_equal(ours["X"], theirs["X"])
    assert ours["X"].dtype == theirs["X"].dtype


@pytest.mark.parametrize("compressed", [False, True])
def test_what_is_no_array_of_numbers_is_left_out(compressed):
    content = {"y": "words", "X": {"a": 1}, "z": np.array([[1 + 2j]]), "w": np.array([[1, "a"]], dtype=object)}
    assert read(written(content, compressed), ("X", "y", "z", "w")) == {}


def test_numbers_packed_more_tightly_than_their_class_are_widened():
    """MATLAB writes doubles that are small whole numbers as bytes; SVHN's labels are such."""
    raw = bytearray(written({"y": np.array([[1.0, 2.0]])}, compressed=False))
    numbers = raw.index((9).to_bytes(4, "little") + (16).to_bytes(4, "little"))
    packed = (2).to_bytes(2, "little") + (2).to_bytes(2, "little") + bytes((7, 10, 0, 0))
    raw[numbers:] = packed
    raw[132:136] = (len(raw) - 136).to_bytes(4, "little")
    np.testing.assert_array_equal(loadmat(io.BytesIO(bytes(raw)))["y"], [[7.0, 10.0]])
    found = read(bytes(raw))["y"]
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, [[7.0, 10.0]])


def test_a_big_endian_file_is_read():
    def element(kind, data):
        return kind.to_bytes(4, "big") + len(data).to_bytes(4, "big") + data + bytes(-len(data) % 8)

    axes = np.array([2, 3], ">i4").tobytes()
    numbers = np.arange(6, dtype=">f8").tobytes()
    matrix = element(6, (6).to_bytes(4, "big") + bytes(4)) + element(5, axes) + element(1, b"X") + element(9, numbers)
    raw = b"MATLAB 5.0".ljust(124) + b"\x01\x00MI" + element(14, matrix)
    np.testing.assert_array_equal(loadmat(io.BytesIO(raw))["X"], [[0, 2, 4], [1, 3, 5]])
    np.testing.assert_array_equal(read(raw)["X"], [[0, 2, 4], [1, 3, 5]])


WHOLE = {
    compressed: written({"X": np.arange(60, dtype=np.uint8).reshape(3, 4, 5), "y": np.ones((5, 1))}, compressed)
    for compressed in (False, True)
}


@given(st.booleans(), st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4))
@example(False, [(136 + 8, 0)])
def test_changed_bytes_are_read_or_refused_and_never_worse(compressed, changes):
    raw = bytearray(WHOLE[compressed])
    for at, value in changes:
        raw[at % len(raw)] = value
    with contextlib.suppress(FileError):
        assert set(read(bytes(raw))) <= {"X", "y"}


@given(st.booleans(), st.integers(0, 10_000))
def test_a_file_cut_short_loses_its_last_array_or_is_refused(compressed, keep):
    raw = WHOLE[compressed][: keep % len(WHOLE[compressed])]
    with contextlib.suppress(FileError):
        assert set(read(raw)) < {"X", "y"}


@pytest.mark.parametrize("raw", [b"", b"MATLAB 7.3 file, an HDF5 one".ljust(126) + b"??", b"\x89HDF" * 40])
def test_another_kind_of_file_is_refused(raw):
    with pytest.raises(FileError, match="expected a MATLAB file of level 5"):
        read(raw)


def patched(at: int, value: bytes) -> bytes:
    raw = bytearray(WHOLE[False])
    raw[at : at + len(value)] = value
    return bytes(raw)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (WHOLE[False] + b"1234", "it ends within a tag"),
        (WHOLE[True][:-9], "an element of [0-9,]+ bytes where [0-9,]+ are left"),
        (WHOLE[True][:136] + b"????" + WHOLE[True][140:], "incorrect header check"),
        (WHOLE[False][:128] + b"\x0e" + bytes(7), "a matrix without flags"),
        (patched(152, b"\x99"), "numbers of the unknown type"),
        (patched(140, b"\x07"), "7 bytes of numbers of 4 bytes each"),
        (patched(160, b"\x08"), "60 numbers for the shape"),
        (patched(160, b"\xfd\xff\xff\xff\xfc\xff\xff\xff"), "60 numbers for the shape"),
    ],
)
def test_damage_is_named(raw, says):
    with pytest.raises(FileError, match=rf"some\.mat: expected a whole MATLAB file, .*{says}.* fetch it again"):
        read(raw)
