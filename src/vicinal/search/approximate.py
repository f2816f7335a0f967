"""Approximate search: looking only where neighbours mostly are, and saying how many of them that finds.

Points lie sorted in cells (``cells``). A query is compared with the centres of the cells, then with the shadows of the
points in the nearest few, and only the best of those are measured, directly and in float64, as every search does. So
distances and their order are exact, ties by the lowest place; what may be missing is a neighbour. How many cells and
how many points it takes is found out on held-out queries when the index is built (``tuning``), by the share of the true
neighbours that is asked for; the share that was measured comes with every answer.

The nearest point of the predicted class and of any other are taken from among the k where these have the side; where
not, they are looked for in the nearest cells that have a point of it. How many cells that takes is found out in the
same way. Whatever cannot be decided so is left to brute force.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from vicinal.checks import Floats, Integers, Vectors
from vicinal.progress import track
from vicinal.search import kernels, probing
from vicinal.search.brute import BruteSearch
from vicinal.search.points import Points
from vicinal.search.probe import Contents, Probe
from vicinal.search.protocol import Codes, Found, Masses, Measured
from vicinal.search.threads import Halt, cores, rounds, spread

__all__ = ["ApproximateSearch", "Effort"]

_QUERIES = 4_096  # queries that one thread takes through the cells together: the more, the more share a cell
_ROOM = 32 * 2**20  # bytes for the candidates of a thread
_WIDE = 4  # times the cells that are wanted of a side: so many are looked at for it


@dataclass(frozen=True)
class Effort:
    """How hard to look, up to some number of neighbours.

    Attributes:
        k: the number.
        probes: cells that are looked into.
        keep: points whose distances are measured.
        sides: cells that are looked into for a side that the others do not have.
        measured: what that finds.
    """

    k: int
    probes: int
    keep: int
    sides: int
    measured: Measured


@dataclass(frozen=True, eq=False)
class ApproximateSearch:
    """Search of the cells that lie nearest.

    Args:
        points: what to look through.
        contents: the points in cells; None where there are so few that brute force is as fast.
        efforts: how hard to look, by rising k; beyond the last, all points are looked at.
        built: how many points the index was built on, and the efforts found for.
        moved: how many came or went since then.
    """

    points: Points
    contents: Contents | None
    efforts: tuple[Effort, ...] = ()
    built: int = 0
    moved: int = 0

    @cached_property
    def brute(self) -> BruteSearch:
        """The search for what is left."""
        return BruteSearch(self.points)

    def effort(self, k: int) -> Effort | None:
        """How hard to look for k neighbours; None where all points have to be looked at."""
        return next((effort for effort in self.efforts if k <= effort.k), None)

    def measured(self, k: int) -> Measured | None:
        """What this finds of k neighbours, and what that costs; None where all points are looked at for so many."""
        effort = self.effort(k)
        return None if effort is None else effort.measured

    def nearest(
        self, queries: Vectors, k: int, *, exclude: Integers | None = None, predicted: Codes | None = None
    ) -> Found:
        """About the k nearest points of each query; see :class:`vicinal.search.protocol.Search`."""
        effort = self.effort(k)
        if self.contents is None or effort is None:
            return self.brute.nearest(queries, k, exclude=exclude, predicted=predicted)
        m = len(queries)
        skip = np.full(m, -1, np.int64) if exclude is None else exclude
        near = None if predicted is None else np.full((m, 2), np.inf)
        near_places = None if predicted is None else np.full((m, 2), -1, np.int64)
        found = Found(np.empty((m, k)), np.empty((m, k), np.int64), near, near_places, effort.measured.recall)

        def work(rows: slice, halt: Halt) -> None:
            if not halt.is_set():
                wanted = None if predicted is None else predicted[rows]
                rest = _Pass(self, effort, queries[rows], skip[rows], wanted).run(found, rows)
                self._leave(found, rows.start + np.flatnonzero(rest), queries, skip, predicted)

        self._each(m, effort, work)
        return found

    def masses(
        self, queries: Vectors, k: int, predicted: Codes, *, inverse: bool = False, exclude: Integers | None = None
    ) -> tuple[Found, Masses]:
        """The weights of *every* point: brute force's own answer, as nothing less looks at all of them."""
        return self.brute.masses(queries, k, predicted, inverse=inverse, exclude=exclude)

    def moved_to(self, points: Points) -> ApproximateSearch:
        """The same for points that these became by adding and removing some."""
        if self.contents is None:
            return replace(self, points=points)
        gone = int(self.points.living.sum()) - int(points.living[: len(self.points)].sum())
        moved = self.moved + gone + len(points) - len(self.points)
        return replace(self, points=points, contents=Contents(points, self.contents.index.add(points)), moved=moved)

    def _each(self, m: int, effort: Effort, work: Any) -> None:
        """Run ``work`` on all queries, a chunk on each core at a time."""
        each = 12 * Probe.room(effort.keep) + 8 * effort.keep
        for batch in track(rounds(m, max(1, min(_QUERIES, _ROOM // each)), cores()), "searching"):
            spread(work, batch)

    def _leave(self, found: Found, rest: Integers, queries: Vectors, skip: Integers, predicted: Codes | None) -> None:
        """Have brute force answer the rest."""
        if len(rest):
            k = found.places.shape[1]
            asked = None if predicted is None else predicted[rest]
            left = self.brute.nearest(queries[rest], k, exclude=skip[rest], predicted=asked)
            for name in ("distances", "places", *(() if asked is None else ("near_distances", "near_places"))):
                getattr(found, name)[rest] = getattr(left, name)


class _Pass(Probe):
    """One chunk of queries, from cells to neighbours."""

    def __init__(
        self,
        search: ApproximateSearch,
        effort: Effort,
        queries: Vectors,
        skip: Integers,
        predicted: Codes | None,
    ) -> None:
        assert search.contents is not None
        super().__init__(search.contents, queries, skip, predicted)
        self.effort, self.with_sides = effort, predicted is not None

    def run(self, found: Found, rows: slice) -> npt.NDArray[np.bool_]:
        """Answer the queries, into some rows of ``found``; returns which of them could not be decided."""
        everyone = slice(0, len(self.queries))
        k = found.places.shape[1]
        probes = self.effort.probes
        near = self.cells(everyone, max(probes, _WIDE * self.effort.sides) if self.with_sides else probes)
        counts, _, places = self.candidates(everyone, near[:, :probes], self.effort.keep)
        measured = self.measure(everyone, counts, places, k)
        order = np.argsort(measured, axis=1)
        kernels.rank(k, counts, places, measured, order, found.distances[rows], found.places[rows])
        self.undecided |= counts < k
        if self.with_sides:
            trusted = order[:, min(self.effort.k, order.shape[1]) - 1]  # farther out, some of the near ones are missing
            bar = measured[np.arange(len(order)), trusted]
            self._settle_sides(counts, places, measured, found, rows, near, bar)
        return self.undecided

    def _settle_sides(
        self,
        counts: Integers,
        places: Integers,
        measured: Floats,
        found: Found,
        rows: slice,
        cells: Integers,
        bar: Floats,
    ) -> None:
        assert found.near_distances is not None
        assert found.near_places is not None
        near, near_places = found.near_distances[rows], found.near_places[rows]
        probing.settle_sides(counts, places, measured, self.points.codes, self.predicted, near, near_places)
        self.look_for_sides(near, near_places, self.effort.sides, cells, bar)
        known = self.predicted >= 0
        there = np.stack([known, len(self.points.classes) > known], axis=1)
        self.undecided |= (there & (near_places < 0)).any(axis=1)
