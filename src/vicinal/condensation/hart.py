"""Condensed nearest neighbour (Hart 1968): the points that the others need to be told right."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from vicinal.checks import Flags, Floats, Integers, Vectors
from vicinal.compiled import compiled
from vicinal.condensation.task import Kept, Task
from vicinal.progress import track
from vicinal.search import BruteSearch, Points
from vicinal.search.protocol import Codes

__all__ = ["hart", "store"]

_BLOCK = 512  # points that are looked at together


def hart(task: Task) -> Kept:
    """Of Hart's store, the first to come into it, as many of each class as are wanted.

    Where a class has fewer in the store, further points of it follow in the order in which they were looked at.
    """
    kept, order = store(task)
    ranked = np.concatenate([kept, order[~np.isin(order, kept)]])
    parts = [ranked[task.codes[ranked] == code][:keep] for code, keep in enumerate(task.keep)]
    return Kept(np.sort(np.concatenate(parts)))


def store(task: Task) -> tuple[Integers, Integers]:
    """The places of a store that is consistent, in the order in which they came into it; and the order of looking.

    Consistent: every point outside the store has the class of its nearest point in the store (ties by the lowest
    place). Hart's loop: look at every point in an order drawn once; whoever the store, so far, gives the wrong class
    joins it at once; again, until none joins. The distances are float32 products here, so at the end they are measured
    exactly, and whoever is still wrong joins too.
    """
    order = task.generator(0).permutation(len(task.codes))
    scan = _Scan.of(task, order)
    while True:
        while scan.once():
            pass
        wrong = _wrong(task, np.sort(scan.places))
        if not len(wrong):
            return scan.places, order
        scan.join(wrong)


@dataclass(eq=False)
class _Scan:
    """Hart's loop, a block of points at a time, each block remembering which of the store it has met."""

    vectors: Vectors  # in the order of looking, around their mean
    codes: Codes
    order: Integers
    best: Floats  # to the nearest in the store so far: half its squared length less the product with it
    guess: Codes  # its class
    inside: Flags
    met: Integers  # for each block
    store: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, task: Task, order: Integers) -> _Scan:
        vectors = task.vectors[order]
        vectors -= vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
        n = len(order)
        best, guess = np.full(n, np.inf), np.full(n, -1, np.int32)
        blocks = np.zeros(-(-n // _BLOCK), np.int64)
        return cls(vectors, task.codes[order], order, best, guess, np.zeros(n, bool), blocks)

    @property
    def places(self) -> Integers:
        return self.order[np.array(self.store, np.int64)]

    def once(self) -> bool:
        """Look at every point; whether any joined."""
        before = len(self.store)
        for block in track(range(len(self.met)), "condensing", note=lambda: f"{len(self.store):,} kept"):
            self._look(block)
        return len(self.store) > before

    def join(self, places: Integers) -> None:
        """Take points in, whoever is wrong about them."""
        rows = np.flatnonzero(np.isin(self.order, places))
        self.inside[rows] = True
        self.store.extend(rows.tolist())

    def _look(self, block: int) -> None:
        rows = slice(block * _BLOCK, min((block + 1) * _BLOCK, len(self.order)))
        new = np.array(self.store[self.met[block] :], np.int64)
        own, best, guess = self.vectors[rows], self.best[rows], self.guess[rows]
        if len(new):
            others = self.vectors[new]
            gaps = np.einsum("ij,ij->i", others, others) / 2 - own @ others.T
            nearest = gaps.argmin(axis=1)
            found = gaps[np.arange(len(own)), nearest]
            closer = found < best
            best[closer], guess[closer] = found[closer], self.codes[new[nearest[closer]]]
        gram = own @ own.T
        joined = _join(np.diag(gram) / 2 - gram, self.codes[rows], best, guess, self.inside[rows])
        self.store.extend((rows.start + joined).tolist())
        self.met[block] = len(self.store)


@compiled()
def _join(gaps, codes, best, guess, inside):  # type: ignore[no-untyped-def]
    """Rows of a block that join the store, one after the other; each is met by the whole block at once."""
    joined = np.empty(len(codes), np.int64)
    count = 0
    for i in range(len(codes)):
        if inside[i] or guess[i] == codes[i]:
            continue
        inside[i] = True
        joined[count] = i
        count += 1
        for j in range(len(codes)):
            if gaps[j, i] < best[j]:
                best[j], guess[j] = gaps[j, i], codes[i]
    return joined[:count]


def _wrong(task: Task, kept: Integers) -> Integers:
    """The places whose nearest point of a store is of another class; ``kept``, its places, ascending."""
    outside = np.setdiff1d(np.arange(len(task.codes)), kept)
    if not len(outside):
        return outside
    points = Points.of(task.vectors[kept], np.zeros(len(kept), np.int64))
    nearest = kept[BruteSearch(points).nearest(task.vectors[outside], 1).places[:, 0]]
    wrong: Integers = outside[task.codes[nearest] != task.codes[outside]]
    return wrong
