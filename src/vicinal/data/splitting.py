"""A validation part, cut from the images to train on, so that nothing is ever chosen on test."""

from __future__ import annotations

from typing import Any

import numpy as np

from vicinal import checks
from vicinal.checks import Integers
from vicinal.errors import InputError, ShapeError

__all__ = ["split"]


def split(labels: Any, share: float, seed: int) -> tuple[Integers, Integers]:
    """Cut a validation part from the rows to train on: the same share of every class, drawn at random.

    Every class gives its share, rounded down or up so that the sum comes to ``round(share * n)`` of n rows (largest
    remainders up). No class gives its last row: a class of one stays with the rows to train on, and lowers the sum.

    Args:
        labels: (n,), the class of each row.
        share: how much to cut off, above 0 and below 1.
        seed: the same seed cuts the same rows.

    Returns:
        The rows to train on and the rows to validate on, both sorted: indices into ``labels``.

    Example:
        >>> train, validation = split([0, 0, 0, 0, 1, 1, 1, 1], 0.25, seed=0)
        >>> len(train), len(validation)
        (6, 2)
    """
    found = checks.labels(labels, "labels")
    part = checks.fraction(share, "share", open_low=True)
    if part == 1:
        raise InputError("share: expected a number above 0 and below 1, got 1, which leaves nothing to train on")
    if len(found) < 2:
        raise ShapeError(f"labels: expected at least two rows to split, got {len(found)}")
    draw = np.random.default_rng(checks.whole(seed, "seed", low=0))
    _, members, sizes = np.unique(found, return_inverse=True, return_counts=True)
    chosen = np.zeros(len(found), dtype=bool)
    by_class = np.split(np.argsort(members, kind="stable"), np.cumsum(sizes)[:-1])
    for rows, count in zip(by_class, _shares(sizes, part), strict=True):
        chosen[draw.permutation(rows)[:count]] = True
    if not chosen.any():
        raise InputError(
            f"share: expected enough to validate on, got {part:g} of {len(found)} rows in {len(sizes)} classes, which "
            "is none; raise the share or bring more images"
        )
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


def _shares(sizes: Integers, part: float) -> Integers:
    """How many rows each class gives."""
    exact = part * sizes
    counts: Integers = np.minimum(np.floor(exact).astype(np.int64), sizes - 1)
    able = np.flatnonzero(counts < sizes - 1)
    lacking = max(0, round(part * int(sizes.sum())) - int(counts.sum()))
    largest_first = able[np.argsort(-(exact - counts)[able], kind="stable")]
    counts[largest_first[:lacking]] += 1
    return counts
