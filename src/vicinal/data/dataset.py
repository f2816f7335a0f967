"""What a data set is once it is in memory: images and labels, for training and for testing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vicinal import checks
from vicinal.checks import Integers, Pixels
from vicinal.errors import InputError, ShapeError

__all__ = ["DataSet", "Images"]


@dataclass(frozen=True, eq=False)
class Images:
    """Images and what they show.

    Args:
        images: (n, h, w, 3) or, grey, (n, h, w, 1); uint8, from 0 to 255, channels last.
        labels: (n,), int64, the class of each, counted from 0.

    Example:
        >>> two = Images(np.zeros((2, 8, 8, 3), np.uint8), [1, 0])
        >>> two
        Images(2 of 8 x 8 x 3)
        >>> two.take([0]).labels
        array([1])
    """

    images: Pixels
    labels: Integers

    def __post_init__(self) -> None:
        object.__setattr__(self, "images", checks.images(self.images, "images"))
        found = checks.labels(self.labels, "labels", rows=len(self.images), of="image")
        object.__setattr__(self, "labels", found)
        if found.min() < 0:
            raise InputError(f"labels: expected classes counted from 0, got {found.min()} at row {found.argmin()}")

    def __len__(self) -> int:
        return len(self.images)

    def __repr__(self) -> str:
        return f"Images({len(self)} of {' x '.join(map(str, self.shape))})"

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels of every image."""
        height, width, channels = self.images.shape[1:]
        return int(height), int(width), int(channels)

    def take(self, rows: Any) -> Images:
        """The chosen rows (indices into this one), in the order given."""
        chosen = checks.labels(rows, "rows")
        if len(chosen) == 0:
            raise ShapeError("rows: expected at least one, got none")
        if chosen.min() < 0 or chosen.max() >= len(self):
            raise InputError(f"rows: expected indices from 0 to {len(self) - 1}, got {chosen.min()} to {chosen.max()}")
        return Images(self.images[chosen], self.labels[chosen])


@dataclass(frozen=True, eq=False)
class DataSet:
    """A data set, whole: what to train on, what to test on, and where it comes from.

    Nothing is ever chosen on ``test``: cut a validation part from ``train`` with :func:`vicinal.data.split`.

    Args:
        name: what it is called, such as ``"cifar100"``.
        train: the images to train on.
        test: the images to test on, of the same shape.
        class_names: (c,), the name of class 0, of class 1 and so on.
        facts: as words to words: ``title``, ``source``, ``address``, ``sha256``, ``licence``, and ``notes`` on what
            whoever prints a result must know.

    Example:
        >>> blank = Images(np.zeros((2, 8, 8, 1), np.uint8), [0, 1])
        >>> DataSet("blank", train=blank, test=blank, class_names=("none", "nothing"))
        DataSet(blank: 2 to train on, 2 to test on, 8 x 8 x 1, 2 classes)
    """

    name: str
    train: Images
    test: Images
    class_names: tuple[str, ...]
    facts: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "class_names", tuple(self.class_names))
        object.__setattr__(self, "facts", dict(self.facts))
        if self.train.shape != self.test.shape:
            raise ShapeError(f"{self.name}: expected images of one shape, got {self.train.shape} and {self.test.shape}")
        for part, found in (("train", self.train), ("test", self.test)):
            if found.labels.max() >= len(self.class_names):
                row = int(np.argmax(found.labels >= len(self.class_names)))
                raise InputError(
                    f"{self.name}: expected {part} labels from 0 to {len(self.class_names) - 1}, one for each class "
                    f"name, got {found.labels[row]} at row {row}"
                )

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.train.shape))
        counts = f"{len(self.train)} to train on, {len(self.test)} to test on"
        return f"DataSet({self.name}: {counts}, {shape}, {len(self.class_names)} classes)"
