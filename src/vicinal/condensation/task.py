"""What a method is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from vicinal.checks import Floats, Integers, Vectors
from vicinal.progress import track
from vicinal.search.points import Gathered
from vicinal.search.protocol import Codes

__all__ = ["Kept", "Method", "Task", "by_class", "share_out"]


@dataclass(frozen=True, eq=False)
class Task:
    """The points of a bank, and how many to keep of each class. Places are rows of ``vectors``.

    Attributes:
        vectors: (n, d); those of a bank in a file are copied a few at a time, as they are asked for.
        codes: (n,), the class of each, from 0 on.
        masses: (n,), how many points each stands for already.
        keep: (c,), how many to keep of each class: at least one, at most all.
        seed: of whatever is drawn.
        weighted: whether the weights that a method answers will be used.
    """

    vectors: Vectors | Gathered
    codes: Codes
    masses: Floats
    keep: Integers
    seed: int
    weighted: bool = True

    @property
    def whole(self) -> Vectors:
        """All vectors at once, in memory."""
        return self.vectors if isinstance(self.vectors, np.ndarray) else self.vectors[:]

    def members(self, code: int) -> Integers:
        """The places of one class, ascending."""
        return np.flatnonzero(self.codes == code)

    def generator(self, code: int) -> np.random.Generator:
        """Chance for one class, whatever the others draw."""
        return np.random.default_rng([self.seed, code])


@dataclass(frozen=True, eq=False)
class Kept:
    """What a method keeps.

    Attributes:
        places: (m,), ascending, each once: the points kept, or those whose rows new points take over.
        vectors: (m, d), where the points lie; None where each lies at its place.
        weights: (m,), how many points each stands for; None to have them counted.
    """

    places: Integers
    vectors: Vectors | None = None
    weights: Floats | None = None


Method: TypeAlias = Callable[[Task], Kept]


def by_class(task: Task, choose: Callable[[Integers, int, np.random.Generator], Kept], what: str) -> Kept:
    """What ``choose`` keeps of each class in turn, from its places, how many to keep, and chance."""
    parts = [
        choose(task.members(code), int(keep), task.generator(code)) for code, keep in enumerate(track(task.keep, what))
    ]
    places = np.concatenate([part.places for part in parts])
    order = np.argsort(places)
    own = [part.vectors for part in parts if part.vectors is not None]
    counted = [part.weights for part in parts if part.weights is not None]
    return Kept(
        places[order],
        np.concatenate(own)[order] if own else None,
        np.concatenate(counted)[order] if counted else None,
    )


def share_out(counts: Integers, share: float) -> Integers:
    """How many points to keep of each class: the same share of each, rounded so that all add up, and at least one.

    Example:
        >>> share_out(np.array([55, 70, 30, 3]), 0.05)
        array([3, 3, 1, 1])
    """
    exact = counts * share
    keep = np.maximum(np.floor(exact + 1e-9).astype(np.int64), 1)
    missing = int(np.floor(counts.sum() * share + 0.5)) - int(keep.sum())
    if missing > 0:  # to those who lost most by rounding
        keep[np.argsort(keep - exact, kind="stable")[:missing]] += 1
    capped: Integers = np.minimum(keep, counts)
    return capped
