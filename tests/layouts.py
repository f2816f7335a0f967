"""Tiny data sets in the layouts of the official files, written by hand from what the sites say of them."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
from scipy.io import savemat


def pixels(n: int, size: int, channels: int, seed: int) -> np.ndarray:
    """Images (n, size, size, channels) that no reordering of their axes leaves alone."""
    return np.random.default_rng(seed).integers(0, 256, (n, size, size, channels), np.uint8)


def labels(n: int, classes: int) -> np.ndarray:
    """Labels that go round the classes, the last one first."""
    return (classes - 1 - np.arange(n)) % classes


def cifar_record(image: np.ndarray, *label_bytes: int) -> bytes:
    """One record of the binary version: labels, then the red plane row by row, then green, then blue."""
    record = bytes(label_bytes)
    for plane in range(3):
        for row in range(32):
            record += bytes(int(image[row, column, plane]) for column in range(32))
    return record


def cifar100(root: Path, n: int = 6) -> Path:
    folder = root / "cifar-100-binary"
    folder.mkdir(parents=True)
    for part, seed in (("train", 1), ("test", 2)):
        images = zip(pixels(n, 32, 3, seed), labels(n, 100), strict=True)
        (folder / f"{part}.bin").write_bytes(b"".join(cifar_record(x, y // 5, y) for x, y in images))
    return folder


def cifar10(root: Path, n: int = 3) -> Path:
    folder = root / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    for seed, name in enumerate([*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]):
        images = zip(pixels(n, 32, 3, seed), labels(n, 10), strict=True)
        (folder / f"{name}.bin").write_bytes(b"".join(cifar_record(x, y) for x, y in images))
    return folder


def svhn(root: Path, n: int = 12) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    for part, seed in (("train", 1), ("test", 2)):
        digits = labels(n, 10)
        ten_for_zero = np.where(digits == 0, 10, digits).astype(np.uint8)[:, None]
        images = pixels(n, 32, 3, seed).transpose(1, 2, 3, 0)
        savemat(root / f"{part}_32x32.mat", {"X": images, "y": ten_for_zero}, do_compression=True)
    return root


def stl10(root: Path, n: int = 11) -> Path:
    folder = root / "stl10_binary"
    folder.mkdir(parents=True)
    for part, seed in (("train", 1), ("test", 2)):
        images = pixels(n, 96, 3, seed)
        by_columns = [image[:, :, plane].T.tobytes() for image in images for plane in range(3)]
        (folder / f"{part}_X.bin").write_bytes(b"".join(by_columns))
        (folder / f"{part}_y.bin").write_bytes(bytes(int(y) + 1 for y in labels(n, 10)))
    return folder


def idx(array: np.ndarray) -> bytes:
    head = bytes((0, 0, 8, array.ndim)) + b"".join(length.to_bytes(4, "big") for length in array.shape)
    return head + array.astype(np.uint8).tobytes()


def mnist(root: Path, place: str = "mnist", *, packed: bool = True, n: int = 10) -> Path:
    folder = root / place
    folder.mkdir(parents=True)
    for part, seed in (("train", 1), ("t10k", 2)):
        files = {
            f"{part}-images-idx3-ubyte": idx(pixels(n, 28, 1, seed)[..., 0]),
            f"{part}-labels-idx1-ubyte": idx(labels(n, 10)),
        }
        for name, content in files.items():
            (folder / f"{name}{'.gz' if packed else ''}").write_bytes(gzip.compress(content) if packed else content)
    return folder


def arrays(root: Path, name: str = "mine", *, n: int = 6, classes: int = 3) -> Path:
    folder = root / name
    folder.mkdir(parents=True)
    for part, seed in (("train", 1), ("test", 2)):
        np.save(folder / f"{part}_images.npy", pixels(n, 8, 3, seed))
        np.save(folder / f"{part}_labels.npy", labels(n, classes))
    return folder
