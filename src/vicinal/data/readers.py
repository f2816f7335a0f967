"""Readers of the files that the data sets' own sites distribute. None runs code from a file, none guesses.

Each takes the folder that holds the files and gives the images to train on and those to test on. Sizes and labels are
checked; checksums are not, because anybody may write files of an official layout (``vicinal data fetch`` checks them).
"""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path

import numpy as np

from vicinal import checks
from vicinal.checks import Integers, Pixels
from vicinal.data.dataset import Images
from vicinal.data.matlab import read_matrices
from vicinal.errors import FileError, InputError

__all__ = [
    "Pair",
    "held",
    "labels_within",
    "read_cifar10",
    "read_cifar100",
    "read_idx",
    "read_stl10",
    "read_svhn",
    "shrink",
]

Pair = tuple[Images, Images]

_BLOCK = 1000  # images handled in one go where a reader needs room for more than the result


def held(folder: Path, file: str) -> Path | None:
    """Where a file stands in a folder, as it is named or unpacked from its ``.gz``; None where it does not."""
    for name in (file, file.removesuffix(".gz")):
        if os.path.isfile(folder / name):
            return folder / name
    return None


def labels_within(labels: Integers, path: Path, *, low: int, high: int) -> Integers:
    """The labels, unless one lies outside ``low`` to ``high``, both included."""
    wrong = np.flatnonzero((labels < low) | (labels > high))
    if wrong.size:
        raise FileError(
            f"{path}: expected labels from {low} to {high}, got {labels[wrong[0]]} at row {wrong[0]} "
            f"({wrong.size} such rows); the file is damaged, or of another data set"
        )
    return labels


def read_cifar10(folder: Path) -> Pair:
    """CIFAR-10, binary version: records of 1 label byte and 3,072 pixels, red plane first; five train files."""
    parts = [_cifar(folder / f"data_batch_{n}.bin", classes=(10,)) for n in range(1, 6)]
    train = Images(np.concatenate([part.images for part in parts]), np.concatenate([part.labels for part in parts]))
    return train, _cifar(folder / "test_batch.bin", classes=(10,))


def read_cifar100(folder: Path) -> Pair:
    """CIFAR-100, binary version: records of 1 coarse and 1 fine label byte and 3,072 pixels, red plane first."""
    return _cifar(folder / "train.bin", classes=(20, 100)), _cifar(folder / "test.bin", classes=(20, 100))


def _cifar(path: Path, *, classes: tuple[int, ...]) -> Images:
    """One file of records; ``classes`` is the number of classes of each label byte, and the last is the label."""
    record = len(classes) + 32 * 32 * 3
    rows = _bytes(path, record).reshape(-1, record)
    for byte, count in enumerate(classes):
        labels = labels_within(rows[:, byte].astype(np.int64), path, low=0, high=count - 1)
    planes = rows[:, len(classes) :].reshape(-1, 3, 32, 32)
    return Images(np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), labels)


def read_svhn(folder: Path) -> Pair:
    """SVHN, cropped digits, MATLAB 5 files: X (32, 32, 3, n) and y (n, 1), in which 10 stands for the digit 0."""
    return _svhn(folder / "train_32x32.mat"), _svhn(folder / "test_32x32.mat")


def _svhn(path: Path) -> Images:
    content = read_matrices(path, ("X", "y"))
    images, labels = content.get("X"), content.get("y")
    if images is None or labels is None:
        raise FileError(f"{path}: expected X and y in it, got {', '.join(content) or 'neither'}")
    if images.ndim != 4 or images.shape[:3] != (32, 32, 3) or 0 in images.shape or images.dtype != np.uint8:
        raise FileError(f"{path}: expected X of shape (32, 32, 3, n) as uint8, got {images.shape} as {images.dtype}")
    try:
        numbers = checks.labels(labels.ravel(), "y", rows=images.shape[3], of="image")
    except InputError as error:
        raise FileError(f"{path}: {error}") from error
    digits = labels_within(numbers, path, low=1, high=10) % 10
    return Images(np.ascontiguousarray(images.transpose(3, 0, 1, 2)), digits)


def read_stl10(folder: Path, *, reduced: bool = False) -> Pair:
    """STL-10, binary version: 96 x 96 x 3 in planes, column by column, and labels from 1 to 10 in files of their own.

    Args:
        folder: where the files are.
        reduced: replace each 3 x 3 pixels by their mean, rounded to the nearest: 32 x 32 x 3.
    """
    train, test = (_stl10(folder / f"{part}_X.bin", folder / f"{part}_y.bin", reduced) for part in ("train", "test"))
    return train, test


def _stl10(images: Path, labels: Path, reduced: bool) -> Images:
    columns = _bytes(images, 96 * 96 * 3).reshape(-1, 3, 96, 96)
    found = _bytes(labels, 1).astype(np.int64)
    if len(found) != len(columns):
        raise FileError(f"{labels}: expected {len(columns)} bytes, one for each image, got {len(found)}")
    classes = labels_within(found, labels, low=1, high=10) - 1
    upright = columns.transpose(0, 3, 2, 1)
    return Images(shrink(upright, 3) if reduced else np.ascontiguousarray(upright), classes)


def shrink(images: Pixels, by: int) -> Pixels:
    """Images (n, h, w, c) of a smaller size: the mean of each ``by`` x ``by`` pixels, halves rounded up.

    Example:
        >>> shrink(np.array([0, 0, 0, 0, 0, 0, 0, 0, 5], np.uint8).reshape(1, 3, 3, 1), 3).item()
        1
    """
    n, height, width, channels = images.shape
    smaller = np.empty((n, height // by, width // by, channels), np.uint8)
    for start in range(0, n, _BLOCK):
        block = images[start : start + _BLOCK]
        tiles = block.reshape(len(block), height // by, by, width // by, by, channels)
        sums = tiles.sum(axis=(2, 4), dtype=np.int64)
        smaller[start : start + _BLOCK] = (2 * sums + by * by) // (2 * by * by)
    return smaller


def read_idx(folder: Path) -> Pair:
    """MNIST and its likes: four idx files, packed with gzip or not."""
    train, test = (
        _idx_pair(folder, f"{part}-images-idx3-ubyte.gz", f"{part}-labels-idx1-ubyte.gz") for part in ("train", "t10k")
    )
    return train, test


def _idx_pair(folder: Path, images: str, labels: str) -> Images:
    pixels_path, labels_path = held(folder, images) or folder / images, held(folder, labels) or folder / labels
    pixels, found = _idx(pixels_path, axes=3), _idx(labels_path, axes=1)
    if len(found) != len(pixels):
        raise FileError(f"{labels_path}: expected {len(pixels)} labels, one for each image, got {len(found)}")
    return Images(pixels[..., None], labels_within(found.astype(np.int64), labels_path, low=0, high=9))


def _idx(path: Path, *, axes: int) -> Pixels:
    """An idx file of bytes: 0, 0, 8, the number of axes; the length of each, big-endian; the bytes."""
    raw = _unpacked(path)
    start = 4 + 4 * axes
    if len(raw) < start or raw[:4] != bytes((0, 0, 8, axes)):
        raise FileError(
            f"{path}: expected an idx file of bytes with {axes} axes, got one that begins {raw[:4].hex()!r}"
        )
    shape = tuple(int.from_bytes(raw[at : at + 4], "big") for at in range(4, start, 4))
    wanted = start + int(np.prod(shape, dtype=object))
    if len(raw) != wanted or 0 in shape:
        raise FileError(f"{path}: expected {wanted:,} bytes for the shape {shape}, got {len(raw):,}; fetch it again")
    return np.frombuffer(raw, np.uint8, offset=start).reshape(shape).copy()


def _unpacked(path: Path) -> bytes:
    if path.suffix != ".gz":
        return path.read_bytes()
    try:
        with gzip.open(path) as file:
            return file.read()
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise FileError(
            f"{path}: expected a file packed with gzip, got a damaged one ({error}); fetch it again"
        ) from error


def _bytes(path: Path, record: int) -> Pixels:
    """The bytes of a file that is made of records."""
    size = path.stat().st_size
    if size == 0 or size % record:
        raise FileError(
            f"{path}: expected a multiple of {record:,} bytes, one record for each image, got {size:,}; "
            "the file is cut short, or of another data set"
        )
    return np.fromfile(path, np.uint8)
