"""Batches in which a share of the points has a partner of its own class, for the distance loss (Eq. 2)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from vicinal import checks
from vicinal.checks import Integers
from vicinal.errors import InputError

__all__ = ["PairBatches", "pairs_needed"]


class PairBatches:
    """Batches of a training set, shuffled anew each epoch, with a least share of every batch in same-class pairs.

    No point comes twice in an epoch. Same-class pairs are drawn at random over the whole training set, as many as the
    share takes are dealt to every batch, and the rest of each batch is drawn at random from all points left. Where the
    number of points is no multiple of the size, other points are left out in each epoch. With a share of 0 these are
    plain shuffled batches.

    Works as the ``batch_sampler`` of a ``torch.utils.data.DataLoader``: each time it is gone through is an epoch.

    Args:
        labels: (n,), the classes of the training points.
        size: points in a batch, at least 2.
        share: of the points of every batch that stand in same-class pairs, from 0 to 1; the paper's is 0.2.
        seed: decides every epoch.

    Example:
        >>> batches = PairBatches([0, 0, 1, 1, 2, 2, 3, 3], size=4, share=0.5)
        >>> len(batches), sorted(int(row) for batch in batches for row in batch)
        (2, [0, 1, 2, 3, 4, 5, 6, 7])
    """

    def __init__(self, labels: Any, size: int, *, share: float = 0.2, seed: int = 0) -> None:
        self.labels = checks.labels(labels, "labels")
        self.size = checks.whole(size, "size", low=2)
        self.share = share
        self.seed = checks.whole(seed, "seed", low=0)
        self.pairs = pairs_needed(size, share)
        self._next = 0
        if size > len(self.labels):
            raise InputError(
                f"size: expected a batch of at most {len(self.labels)}, all the points there are, got {size}"
            )
        if self.pairs:
            self._refuse_too_few_pairs()

    def __len__(self) -> int:
        return len(self.labels) // self.size

    def __iter__(self) -> Iterator[list[int]]:
        self._next += 1
        return iter(self.epoch(self._next - 1).tolist())

    def epoch(self, number: int) -> Integers:
        """The batches of one epoch, the same whenever it is asked for.

        Args:
            number: of the epoch, counted from 0.

        Returns:
            (batches, size), rows of the training set.
        """
        random = np.random.default_rng([self.seed, checks.whole(number, "epoch", low=0)])
        order, second = self._within_classes(random)
        dealt = random.permutation(second)[: len(self) * self.pairs]
        paired = np.stack((order[dealt - 1], order[dealt]), axis=1).reshape(len(self), 2 * self.pairs)
        free = np.ones(len(order), dtype=bool)
        free[dealt] = free[dealt - 1] = False
        rest = random.permutation(order[free])[: len(self) * (self.size - 2 * self.pairs)].reshape(len(self), -1)
        return random.permuted(np.concatenate((paired, rest), axis=1), axis=1)

    def _within_classes(self, random: np.random.Generator) -> tuple[Integers, npt.NDArray[np.intp]]:
        """The points by class, in random order within, and the places that make a pair with the place before them."""
        order = random.permutation(len(self.labels))
        order = order[np.argsort(self.labels[order], kind="stable")]
        classes = self.labels[order]
        rank = np.arange(len(order)) - np.searchsorted(classes, classes)
        return order, np.flatnonzero(rank % 2)

    def _refuse_too_few_pairs(self) -> None:
        classes, counts = np.unique(self.labels, return_counts=True)
        if (counts == 1).any():
            raise InputError(
                f"labels: expected at least two points of every class, so that each has a same-class pair, got one of "
                f"class {classes[counts == 1][0]} ({(counts == 1).sum()} such classes); add points, or leave it out"
            )
        possible = int((counts // 2).sum())
        if possible < len(self) * self.pairs:
            most = 2 * (possible // len(self)) / self.size
            raise InputError(
                f"share: expected at most {most:g}, got {self.share:g}: {len(self)} batches of {self.size} would take "
                f"{len(self) * self.pairs} same-class pairs, and {possible} are possible without repeating a point"
            )


def pairs_needed(points: int, share: float) -> int:
    """How many pairs hold at least a share of the points of a batch.

    Example:
        >>> pairs_needed(100, 0.2), pairs_needed(15, 0.2), pairs_needed(16, 0.2)
        (10, 2, 2)
    """
    needed = math.ceil(checks.fraction(share, "share") * points / 2 - 1e-9)
    if needed > points // 2:
        raise InputError(
            f"share: expected less than {share:g} for an odd number of points, {points}: one has no partner"
        )
    return needed
