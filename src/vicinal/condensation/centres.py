"""k-centre greedy: points such that no other of their class is far from all of them."""

from __future__ import annotations

import numpy as np

from vicinal.checks import Integers, Vectors
from vicinal.condensation.task import Kept, Task, by_class

__all__ = ["farthest_first", "k_centres"]


def k_centres(task: Task) -> Kept:
    """Within each class, from a point drawn at random on, always the point farthest from all that are kept.

    The largest distance from a point to the nearest that is kept is then at most twice the least possible
    (Gonzalez 1985); as core sets, Sener and Savarese (2018).
    """

    def choose(members: Integers, keep: int, generator: np.random.Generator) -> Kept:
        first = int(generator.integers(len(members)))
        return Kept(np.sort(members[farthest_first(task.vectors[members], keep, first)]))

    return by_class(task, choose, "choosing")


def farthest_first(vectors: Vectors, keep: int, first: int) -> Integers:
    """Rows (keep,) in the order in which they are taken, each once, ties by the lowest.

    Example:
        >>> farthest_first(np.float32([[0], [1], [5], [9]]), 3, first=1)
        array([1, 3, 2])
    """
    taken = np.empty(keep, np.int64)
    gaps = np.full(len(vectors), np.inf)
    for place in range(keep):
        taken[place] = row = gaps.argmax() if place else first
        steps = vectors - vectors[row]
        np.minimum(gaps, np.einsum("ij,ij->i", steps, steps), out=gaps)
        gaps[row] = -1.0  # below that of a duplicate, which is 0
    return taken
