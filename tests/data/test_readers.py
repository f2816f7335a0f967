"""Each reader against images whose bytes the test wrote one by one; each kind of damage is named."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import loadmat, savemat

import layouts
from vicinal.data import readers
from vicinal.errors import FileError

KINDS = {
    "cifar100": (layouts.cifar100, readers.read_cifar100, 32, 3, 100),
    "svhn": (layouts.svhn, readers.read_svhn, 32, 3, 10),
    "stl10": (layouts.stl10, readers.read_stl10, 96, 3, 10),
    "mnist": (layouts.mnist, readers.read_idx, 28, 1, 10),
}


@pytest.mark.parametrize("kind", KINDS)
def test_images_and_labels_are_the_ones_written(kind, tmp_path):
    write, read, size, channels, classes = KINDS[kind]
    train, test = read(write(tmp_path))
    for part, seed in ((train, 1), (test, 2)):
        assert part.images.dtype == np.uint8
        assert part.labels.dtype == np.int64
        np.testing.assert_array_equal(part.images, layouts.pixels(len(part), size, channels, seed))
        np.testing.assert_array_equal(part.labels, layouts.labels(len(part), classes))


def test_cifar10_joins_its_five_files_in_order(tmp_path):
    train, test = readers.read_cifar10(layouts.cifar10(tmp_path))
    np.testing.assert_array_equal(train.images, np.concatenate([layouts.pixels(3, 32, 3, seed) for seed in range(5)]))
    np.testing.assert_array_equal(train.labels, np.tile(layouts.labels(3, 10), 5))
    np.testing.assert_array_equal(test.images, layouts.pixels(3, 32, 3, 5))


def test_unpacked_idx_files_read_like_packed_ones(tmp_path):
    packed = readers.read_idx(layouts.mnist(tmp_path, "packed"))
    plain = readers.read_idx(layouts.mnist(tmp_path, "plain", packed=False))
    for one, other in zip(packed, plain, strict=True):
        np.testing.assert_array_equal(one.images, other.images)
        np.testing.assert_array_equal(one.labels, other.labels)


def test_stl10_reduced_is_the_mean_of_every_nine_pixels(tmp_path):
    train, _ = readers.read_stl10(layouts.stl10(tmp_path), reduced=True)
    full = layouts.pixels(11, 96, 3, 1)
    assert train.images.shape == (11, 32, 32, 3)
    for row, column in ((0, 0), (31, 31), (5, 20)):
        nine = full[:, 3 * row : 3 * row + 3, 3 * column : 3 * column + 3].astype(float)
        np.testing.assert_array_equal(train.images[:, row, column], np.rint(nine.mean(axis=(1, 2))))


@given(st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_shrinking_rounds_each_mean_to_the_nearest(by, seed):
    images = np.random.default_rng(seed).integers(0, 256, (2, 3 * by, 2 * by, 3), np.uint8)
    smaller = readers.shrink(images, by)
    for n, row, column, channel in np.ndindex(smaller.shape):
        mean = images[n, row * by : (row + 1) * by, column * by : (column + 1) * by, channel].astype(float).mean()
        assert smaller[n, row, column, channel] == int(np.floor(mean + 0.5))


@pytest.mark.parametrize("end", [1, 3073, 3075])
def test_a_cifar_file_of_the_wrong_size_is_refused(end, tmp_path):
    folder = layouts.cifar100(tmp_path)
    (folder / "test.bin").write_bytes((folder / "test.bin").read_bytes()[:end])
    with pytest.raises(FileError, match=rf"test\.bin: expected a multiple of 3,074 bytes.* got {end:,}"):
        readers.read_cifar100(folder)


def test_an_empty_file_is_refused(tmp_path):
    folder = layouts.cifar10(tmp_path)
    (folder / "data_batch_3.bin").write_bytes(b"")
    with pytest.raises(FileError, match=r"data_batch_3\.bin: expected a multiple of 3,073 bytes.* got 0"):
        readers.read_cifar10(folder)


@pytest.mark.parametrize(("byte", "value", "high"), [(0, 20, 19), (1, 100, 99)])
def test_a_cifar_label_beyond_the_classes_is_refused(byte, value, high, tmp_path):
    folder = layouts.cifar100(tmp_path)
    raw = bytearray((folder / "train.bin").read_bytes())
    raw[2 * 3074 + byte] = value
    (folder / "train.bin").write_bytes(raw)
    with pytest.raises(FileError, match=rf"train\.bin: expected labels from 0 to {high}, got {value} at row 2"):
        readers.read_cifar100(folder)


@pytest.mark.parametrize("label", [0, 11])
def test_stl10_labels_run_from_1_to_10(label, tmp_path):
    folder = layouts.stl10(tmp_path)
    (folder / "test_y.bin").write_bytes(bytes([1] * 10 + [label]))
    with pytest.raises(FileError, match=rf"test_y\.bin: expected labels from 1 to 10, got {label} at row 10"):
        readers.read_stl10(folder)


def test_stl10_needs_a_label_for_each_image(tmp_path):
    folder = layouts.stl10(tmp_path)
    (folder / "train_y.bin").write_bytes(bytes([1] * 10))
    with pytest.raises(FileError, match=r"train_y\.bin: expected 11 bytes, one for each image, got 10"):
        readers.read_stl10(folder)


def svhn_file(folder: Path, **content) -> None:
    savemat(folder / "test_32x32.mat", content)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"X": np.zeros((32, 32, 3, 2), np.uint8)}, "expected X and y in it, got X"),
        ({"y": np.ones((2, 1))}, "expected X and y in it, got y"),
        ({"X": np.zeros((32, 32, 3, 2)), "y": np.ones((2, 1))}, "as uint8, got .* as float64"),
        ({"X": np.zeros((32, 3, 32, 2), np.uint8), "y": np.ones((2, 1))}, r"shape \(32, 32, 3, n\)"),
        ({"X": np.zeros((32, 32, 3, 2), np.uint8), "y": np.ones((3, 1))}, "y: expected 2, one for each image, got 3"),
        ({"X": np.zeros((32, 32, 3, 2), np.uint8), "y": np.array([[1], [1.5]])}, "y: expected whole numbers, got 1.5"),
        ({"X": np.zeros((32, 32, 3, 2), np.uint8), "y": np.array([[1], [11]])}, "from 1 to 10, got 11 at row 1"),
        ({"X": np.zeros((32, 32, 3, 2), np.uint8), "y": np.array([[0], [1]])}, "from 1 to 10, got 0 at row 0"),
        ({"X": np.zeros((32, 32, 3, 2), np.uint8), "y": np.array(["a", "b"])}, "expected X and y in it, got X"),
    ],
)
def test_an_svhn_file_with_other_content_is_refused(content, says, tmp_path):
    svhn_file(layouts.svhn(tmp_path), **content)
    with pytest.raises(FileError, match=rf"test_32x32\.mat: .*{says}"):
        readers.read_svhn(tmp_path)


@pytest.mark.parametrize("keep", [0, 60, 200, 0.5, 0.98])
def test_an_svhn_file_cut_short_is_refused(keep, tmp_path):
    path = layouts.svhn(tmp_path) / "train_32x32.mat"
    whole = path.read_bytes()
    path.write_bytes(whole[: keep if keep > 1 else int(keep * len(whole))])
    with pytest.raises(FileError, match=r"train_32x32\.mat: expected"):
        readers.read_svhn(tmp_path)


def test_the_svhn_reader_agrees_with_matlab_about_one_pixel(tmp_path):
    train, _ = readers.read_svhn(layouts.svhn(tmp_path))
    content = loadmat(tmp_path / "train_32x32.mat")
    assert train.images[7, 3, 20, 1] == content["X"][3, 20, 1, 7]
    assert set(train.labels[content["y"].ravel() == 10]) == {0}


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("train-images-idx3-ubyte", b"", "expected an idx file of bytes with 3 axes"),
        ("train-images-idx3-ubyte", layouts.idx(np.zeros((10, 28))), "expected an idx file of bytes with 3 axes"),
        ("train-images-idx3-ubyte", b"\x00\x00\x0d\x03" + bytes(12), "begins '00000d03'"),
        ("train-images-idx3-ubyte", layouts.idx(np.zeros((10, 28, 28)))[:-1], "expected 7,856 bytes for the shape"),
        ("train-images-idx3-ubyte", layouts.idx(np.zeros((10, 28, 28))) + b"x", "got 7,857"),
        ("train-labels-idx1-ubyte", layouts.idx(np.zeros(9)), "expected 10 labels, one for each image, got 9"),
        ("t10k-labels-idx1-ubyte", layouts.idx(np.full(10, 10)), "expected labels from 0 to 9, got 10 at row 0"),
    ],
)
def test_a_damaged_idx_file_is_refused(name, content, says, tmp_path):
    folder = layouts.mnist(tmp_path, packed=False)
    (folder / name).write_bytes(content)
    with pytest.raises(FileError, match=rf"{name}: .*{says}"):
        readers.read_idx(folder)


@pytest.mark.parametrize(
    "spoil", [lambda raw: raw[:-9], lambda raw: b"no gzip", lambda raw: raw[:40] + b"??" + raw[42:]]
)
def test_a_damaged_gzip_file_is_refused(spoil, tmp_path):
    path = layouts.mnist(tmp_path) / "t10k-images-idx3-ubyte.gz"
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(FileError, match=r"t10k-images-idx3-ubyte\.gz: expected a file packed with gzip"):
        readers.read_idx(path.parent)


def test_an_idx_shape_too_large_to_be_true_is_refused_before_any_memory_is_taken(tmp_path):
    path = layouts.mnist(tmp_path) / "train-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(b"\x00\x00\x08\x03" + b"\xff" * 12))
    with pytest.raises(FileError, match="expected 79,228,162,458,924,105,385,300,197,391 bytes"):
        readers.read_idx(path.parent)
