"""Density Preserving Sampling (Budka and Gabrys 2013): halves that resemble each other, again and again."""

from __future__ import annotations

import numpy as np

from vicinal.checks import Integers, Vectors
from vicinal.compiled import compiled
from vicinal.condensation.task import Kept, Task, by_class

__all__ = ["density_preserving", "halve"]

_MOST = 8192  # points that are paired at once: all their distances are kept, 256 MiB


def density_preserving(task: Task) -> Kept:
    """Halve each class until once more would leave too few, then drop what the last halves tell twice.

    Two sets are alike by correntropy where their points lie near each other in pairs: so a split parts the two nearest
    points, and goes on with the rest (:func:`halve`). Which of two halves is kept is drawn. The paper stops at powers
    of two; for any other number, one point of each of the nearest pairs of the last split is dropped.
    """

    def choose(members: Integers, keep: int, generator: np.random.Generator) -> Kept:
        vectors, left = task.vectors[members], np.arange(len(members))
        while len(left) > keep:
            left = _fewer(left, keep, vectors, int(generator.integers(2)))
        return Kept(members[left])

    return by_class(task, choose, "halving")


def halve(vectors: Vectors) -> Integers:
    """Pairs (⌊n/2⌋, 2) of rows, the nearest first: each column is a half. Of an odd number one stays without a partner.

    Always the two nearest points that are left are parted, so that the halves resemble each other as much as so greedy
    a choice can make them. Of the two ways to part them it takes the one in which the mean squared distances between
    each and the points of its half so far are larger together: so both halves cover as much as they can.

    Example:
        >>> halve(np.float32([[0.0], [1.0], [5.0], [5.5], [9.0]]))
        array([[2, 3],
               [1, 0]])
    """
    moved = vectors - vectors.mean(axis=0)
    squares = np.einsum("ij,ij->i", moved, moved)
    gaps = moved @ moved.T
    gaps *= -2
    gaps += squares
    gaps += squares[:, None]
    pairs: Integers = _pairs(gaps)
    return pairs


def _fewer(members: Integers, keep: int, vectors: Vectors, side: int) -> Integers:
    """One half of some places, ascending; where that would be too few, all but one of each of the nearest pairs."""
    pairs = np.concatenate([part[halve(vectors[part])] for part in _parts(members, vectors)])
    if len(members) - len(pairs) >= keep:
        dropped = pairs[:, 1 - side]
    else:
        gaps = np.linalg.norm(vectors[pairs[:, 0]].astype(np.float64) - vectors[pairs[:, 1]], axis=1)
        dropped = pairs[np.argsort(gaps, kind="stable")[: len(members) - keep], 1 - side]
    return np.setdiff1d(members, dropped)


def _parts(members: Integers, vectors: Vectors) -> list[Integers]:
    """Places in parts small enough to be paired, cut across the column in which they differ most."""
    if len(members) <= _MOST:
        return [members]
    own = vectors[members]
    order = members[np.argsort(own[:, own.var(axis=0).argmax()], kind="stable")]
    middle = len(order) // 2
    return [part for half in (order[:middle], order[middle:]) for part in _parts(np.sort(half), vectors)]


@compiled()
def _pairs(gaps):  # type: ignore[no-untyped-def]
    """The pairs of ``halve``, of squared distances (n, n)."""
    n = len(gaps)
    alone = np.ones(n, np.bool_)
    partner, least = np.empty(n, np.int64), np.empty(n, gaps.dtype)
    to_first, to_second = np.zeros(n), np.zeros(n)  # the sums of squared distances to the halves so far
    pairs = np.empty((n // 2, 2), np.int64)
    for i in range(n):
        gaps[i, i] = np.inf
        partner[i] = gaps[i].argmin()
        least[i] = gaps[i, partner[i]]
    for count in range(n // 2):
        one = least.argmin()
        other = partner[one]
        if to_first[one] + to_second[other] < to_second[one] + to_first[other]:
            one, other = other, one
        pairs[count, 0], pairs[count, 1] = one, other
        alone[one] = alone[other] = False
        least[one] = least[other] = np.inf
        for i in range(n):
            if alone[i]:
                to_first[i] += gaps[one, i]
                to_second[i] += gaps[other, i]
                if partner[i] == one or partner[i] == other:
                    partner[i], least[i] = _nearest(gaps[i], alone, i)
    return pairs


@compiled()
def _nearest(gaps, alone, own):  # type: ignore[no-untyped-def]
    """The nearest that has no partner yet, the lowest of equals, and how near it is."""
    found, least = own, np.inf
    for j in range(len(gaps)):
        if alone[j] and j != own and gaps[j] < least:
            found, least = j, gaps[j]
    return found, least
