"""Data sets of your own: a folder of arrays, or a folder of images by class.

digits/train_images.npy  train_labels.npy  test_images.npy  test_labels.npy  [class_names.txt]
pets/train/cat/1.png ...  train/dog/1.png ...  test/cat/7.png ...  test/dog/8.png ...
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vicinal.checks import Pixels
from vicinal.data.catalog import CATALOG
from vicinal.data.dataset import DataSet, Images
from vicinal.data.readers import labels_within
from vicinal.errors import FileError, InputError, require
from vicinal.progress import track

__all__ = ["is_folder_of_arrays", "is_folder_of_classes", "read_arrays", "read_classes"]

_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp")
_GREY, _COLOUR = ("L", "1"), ("RGB", "CMYK", "YCbCr")
_PARTIAL = "stl10-partial"
_PARTIAL_NOTE = (
    "STL-10 partial: 3,996 of STL-10's 5,000 labelled train images, reduced to 32 x 32, in a split of their own; "
    "a result on it is not a result on STL-10"
)


def is_folder_of_arrays(folder: Path) -> bool:
    """Whether a folder looks like ``read_arrays`` could read it."""
    return any(folder.glob("*_images.npy"))


def is_folder_of_classes(folder: Path) -> bool:
    """Whether a folder looks like ``read_classes`` could read it."""
    return (folder / "train").is_dir() and any(part.is_dir() for part in (folder / "train").iterdir())


def read_arrays(folder: Path) -> DataSet:
    """Read ``train_images.npy``, ``train_labels.npy``, ``test_images.npy`` and ``test_labels.npy``.

    Images are uint8, (n, h, w, 3), (n, h, w, 1) or (n, h, w); labels count from 0. ``class_names.txt``, if it is there,
    names one class a line; otherwise the classes are numbered, from 0 to the largest label to train on. A folder called
    ``stl10-partial`` has the classes of STL-10, and ``facts`` says what it is.
    """
    train, test = (_pair(folder, part) for part in ("train", "test"))
    names = _class_names(folder, int(train.labels.max()) + 1)
    for part, found in (("train", train), ("test", test)):
        labels_within(found.labels, folder / f"{part}_labels.npy", low=0, high=len(names) - 1)
    facts = {"title": folder.name, "source": "a folder of arrays"}
    if folder.name == _PARTIAL:
        facts |= {"title": "STL-10 partial", "notes": _PARTIAL_NOTE}
    return _assembled(folder, train, test, names, facts)


def read_classes(folder: Path) -> DataSet:
    """Read ``train/<class>/*`` and ``test/<class>/*``; the classes are the folders of ``train``, in order of name.

    All images have one size. They are grey if every one is, and RGB otherwise. Files whose name begins with a dot, or
    does not end like an image's, are left out, and ``facts`` says how many.
    """
    names = sorted(part.name for part in (folder / "train").iterdir() if part.is_dir() and part.name[0] != ".")
    files = {part: _files(folder / part, names) for part in ("train", "test")}
    decoded = {part: _decoded([path for path, _ in found], folder / part) for part, (found, _) in files.items()}
    channels = max(image.shape[2] for images in decoded.values() for image in images)
    shape = (*decoded["train"][0].shape[:2], channels)
    pairs = {
        part: Images(_stacked(decoded[part], found, shape), np.array([label for _, label in found]))
        for part, (found, _) in files.items()
    }
    facts = {"title": folder.name, "source": "a folder of images by class"}
    left_out = sum(others for _, others in files.values())
    if left_out:
        facts["notes"] = f"{left_out} files that are not images were left out"
    return _assembled(folder, pairs["train"], pairs["test"], names, facts)


def _assembled(folder: Path, train: Images, test: Images, names: list[str], facts: dict[str, str]) -> DataSet:
    try:
        return DataSet(folder.name, train, test, tuple(names), facts)
    except InputError as error:
        raise FileError(f"{folder}: {error}") from error


def _pair(folder: Path, part: str) -> Images:
    images, labels = (_array(folder / f"{part}_{kind}.npy") for kind in ("images", "labels"))
    try:
        return Images(images, labels)
    except InputError as error:
        raise FileError(f"{folder}/{part}_images.npy and {part}_labels.npy: {error}") from error


def _array(path: Path) -> npt.NDArray[Any]:
    if not path.is_file():
        raise FileError(f"{path}: expected train_ and test_ images and labels in this folder, got nothing there")
    try:
        found: npt.NDArray[Any] = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise FileError(f"{path}: expected a .npy file of numbers, got one that cannot be read ({error})") from error
    return found


def _class_names(folder: Path, count: int) -> list[str]:
    path = folder / "class_names.txt"
    if not path.is_file():
        return list(CATALOG["stl10"].class_names) if folder.name == _PARTIAL else [str(n) for n in range(count)]
    try:
        names = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise FileError(f"{path}: expected the name of one class a line, in UTF-8, got {error}") from error
    if not names:
        raise FileError(f"{path}: expected the name of one class a line, got none")
    return names


def _files(part: Path, names: list[str]) -> tuple[list[tuple[Path, int]], int]:
    """The images of each class with the class's number, in order of name; and how many other files there are."""
    if not part.is_dir():
        raise FileError(f"{part}: expected a folder with a folder of images for each class, got nothing there")
    beyond = sorted(f.name for f in part.iterdir() if f.is_dir() and f.name[0] != "." and f.name not in names)
    if beyond:
        raise FileError(f"{part}: expected the classes of train, {', '.join(names)}, got {', '.join(beyond)} too")
    found: list[tuple[Path, int]] = []
    others = 0
    for label, name in enumerate(names):
        inside = sorted((part / name).iterdir()) if (part / name).is_dir() else []
        images = [f for f in inside if f.suffix.lower() in _SUFFIXES and f.name[0] != "." and f.is_file()]
        others += len(inside) - len(images)
        if not images and part.name == "train":
            raise FileError(f"{part / name}: expected at least one image ({', '.join(_SUFFIXES)}), got none")
        found += [(image, label) for image in images]
    if not found:
        raise FileError(f"{part}: expected at least one image, got none")
    return found, others


def _decoded(paths: list[Path], part: Path) -> list[Pixels]:
    image = require("PIL.Image", "images", "a folder of images")
    return [_image(image, path) for path in track(paths, f"reading {part.name} images")]


def _image(image: Any, path: Path) -> Pixels:
    """One image (h, w, 1 or 3); what RGB cannot hold without a decision, such as transparency, is refused."""
    try:
        with image.open(path) as opened:
            mode = opened.mode
            if mode == "P" and "transparency" not in opened.info:
                mode = "RGB"
            if mode not in (*_GREY, *_COLOUR):
                raise FileError(f"{path}: expected 8 bits of grey or RGB, got mode {opened.mode}; convert it first")
            pixels = np.asarray(opened.convert("L" if mode in _GREY else "RGB"), np.uint8)
    except (OSError, SyntaxError, ValueError, image.DecompressionBombError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path}: expected an image, got a file that cannot be read as one ({error})") from error
    return pixels.reshape(*pixels.shape[:2], -1)


def _stacked(decoded: list[Pixels], files: list[tuple[Path, int]], shape: tuple[int, int, int]) -> Pixels:
    stack = np.empty((len(decoded), *shape), np.uint8)
    for row, (pixels, (path, _)) in enumerate(zip(decoded, files, strict=True)):
        if pixels.shape[:2] != shape[:2]:
            raise FileError(
                f"{path}: expected {shape[0]} x {shape[1]} pixels (height x width), like the first image to train on, "
                f"got {pixels.shape[0]} x {pixels.shape[1]}; resize them to one size first"
            )
        stack[row] = pixels
    return stack
