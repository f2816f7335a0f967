"""The digits of scikit-learn, which ship with it: which are learnt, which are judged, and which are never seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vicinal.checks import Integers, Pixels

__all__ = ["KNOWN", "NOVEL", "PER_CLASS", "Digits", "load_digits"]

KNOWN = tuple(range(8))
NOVEL = (8, 9)  # the last two; a handwritten 9 often looks like a 4 or a 7, an 8 like a 3, so they are not easy
PER_CLASS = 15  # training images of each digit: few, so that there are errors to predict


@dataclass(frozen=True, eq=False)
class Digits:
    """Images (n, 8, 8, 1), uint8, and their labels (n,), in three parts.

    Attributes:
        train: to train on, and to be the bank.
        train_labels: from 0 to 7.
        test: all other images of the same digits, to judge.
        test_labels: from 0 to 7.
        novel: images of digits that are never trained on.
        novel_labels: 8 and 9.
    """

    train: Pixels
    train_labels: Integers
    test: Pixels
    test_labels: Integers
    novel: Pixels
    novel_labels: Integers


def load_digits(seed: int) -> Digits:
    """The 1,797 images as 8-bit grey, the training images of each class drawn at random.

    Example:
        >>> digits = load_digits(0)
        >>> len(digits.train), len(digits.test), len(digits.novel)
        (120, 1323, 354)
    """
    from sklearn import datasets

    raw = datasets.load_digits()
    images = np.rint(raw.images * (255 / 16)).astype(np.uint8)[..., None]
    labels = np.asarray(raw.target, np.int64)
    order = np.random.default_rng(seed).permutation(len(labels))
    train = np.sort(np.concatenate([order[labels[order] == digit][:PER_CLASS] for digit in KNOWN]))
    novel = np.flatnonzero(np.isin(labels, NOVEL))
    test = np.setdiff1d(np.arange(len(labels)), np.concatenate([train, novel]))
    return Digits(images[train], labels[train], images[test], labels[test], images[novel], labels[novel])
