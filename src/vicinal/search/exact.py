"""Exact search that need not look at every point whole: by short shadows, most are proved too far.

    Points ─▶ shadows: some principal axes and the length of the rest, in 8 bits, chosen once for a bank
                 │
    queries ─▶ a first bar from a sample ─▶ sift all shadows ─▶ measure what is left ─▶ Found

``shadows`` proves how near a point may be whose shadow lies so far from a query's, rounding included. One that cannot
reach the bar is not among the k nearest, if the bar is no nearer than the k-th of them. The
bar is guessed from a sample of the bank, raised as candidates come in, and checked in the end: a query whose guess was
too near is searched again, by brute force. What is left is measured directly, in float64, as brute force measures.
So the answer is brute force's own, to the last bit.

How many axes to take is settled by what they cost and by how many points they leave, on some of the bank's own points
(``worth``). Where none are worth it, everything is left to brute force.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from vicinal import pages
from vicinal.checks import Floats, Integers, Vectors
from vicinal.progress import track
from vicinal.search import kernels, sifting
from vicinal.search.brute import BruteSearch
from vicinal.search.dots import TILE
from vicinal.search.points import Points, frozen
from vicinal.search.protocol import Codes, Found, Masses
from vicinal.search.shadows import Shadows, Tiles, axes_of, drawn, tiled, turned
from vicinal.search.threads import Halt, cores, rounds, spread
from vicinal.search.worth import best_width

__all__ = ["ExactSearch"]

_QUERIES = 512  # queries that one thread carries through the bank together
_MOST = 32  # for more than one point in so many, brute force is as good
_SHARE = 8  # one point in so many is in the sample that sets the first bars
_SAMPLE = 8192  # ... but no more than this
_SURE = 2.5  # standard deviations by which more of the sample are taken than should be wanted
_SPARE = 64  # candidates for which there is room beside the k best
_MANY = 8  # a query for which more than one point in so many would be measured is left to brute force
_ROWS = 64 * TILE  # points between two looks at whether to come to an end


@dataclass(frozen=True, eq=False)
class ExactSearch:
    """Exact search that proves most points too far by their shadows.

    Args:
        points: what to look through.
        width: how many axes shadows have; left out, as many as cost least; 0 for none, which leaves all to brute force.
        known: the shadows of the points, where there are any from before.
    """

    points: Points
    width: int | None = None
    known: Shadows | None = field(default=None, repr=False)

    def after(self, points: Points) -> ExactSearch:
        """The same search of points that these became by adding or removing some."""
        shadows: Shadows | None = self.__dict__.get("shadows", self.known)
        if shadows is None or len(points) > 2 * shadows.fitted:
            return ExactSearch(points, self.width)
        if shadows.tiles:
            shadows = shadows.extended(self.points.segments, points)
        return ExactSearch(points, self.width, shadows)

    @cached_property
    def brute(self) -> BruteSearch:
        """The search for whatever shadows cannot decide."""
        return BruteSearch(self.points)

    @cached_property
    def shadows(self) -> Shadows:
        """The shadows of all points; of no axes, and no tiles, where these are not worth it."""
        if self.known is not None:
            return self.known
        axes = axes_of(self.points) if 1e-12 < self.points.reach < 1e12 else np.empty((self.points.dimension, 0))
        width = min(axes.shape[1], best_width(self.points, axes) if self.width is None else self.width)
        if not width:
            return Shadows(axes[:, :0], 0.0, (), len(self.points))
        return Shadows.of(self.points, turned(axes[:, :width]))

    @cached_property
    def halves(self) -> tuple[Vectors, ...]:
        """For each segment, the half squares of its tiles; infinite for removed points, too."""
        living = tiled(self.points, self.points.living, False)
        return tuple(
            np.where(here, tiles.halves, np.float32(np.inf))
            for here, tiles in zip(living, self.shadows.tiles, strict=True)
        )

    @cached_property
    def apart(self) -> tuple[Vectors, Integers, Codes]:
        """Vectors, places and classes of the living points without a shadow, which are measured for every query."""
        ends = [len(segment) for segment in self.points.segments]
        halves = [tiles.halves.ravel()[:end] for tiles, end in zip(self.shadows.tiles, ends, strict=True)]
        places = np.flatnonzero(np.isinf(np.concatenate(halves)) & self.points.living)
        return frozen(self.points.gather(places)), places, self.points.codes[places]

    @cached_property
    def codes(self) -> tuple[Codes, ...]:
        """For each segment, the classes of its tiles."""
        return tiled(self.points, self.points.codes, -1)

    @cached_property
    def sample(self) -> tuple[Sample, ...]:
        """One sample of the bank, which is fixed; none of a small bank."""
        size = min(_SAMPLE, len(self.points) // _SHARE)
        if size < 4 * TILE:
            return ()
        return (Sample.of(self.points, self.shadows, drawn(self.points, size)),)

    def nearest(
        self, queries: Vectors, k: int, *, exclude: Integers | None = None, predicted: Codes | None = None
    ) -> Found:
        """The k nearest points of each query; see :class:`vicinal.search.protocol.Search`."""
        if not self.shadows.tiles or (self.width is None and k * _MOST > len(self.points)):
            return self.brute.nearest(queries, k, exclude=exclude, predicted=predicted)
        m = len(queries)
        skip = np.full(m, -1, np.int64) if exclude is None else exclude
        sides = () if predicted is None else (np.full((m, 2), np.inf), np.full((m, 2), -1, np.int64))
        found = Found(np.empty((m, k)), np.empty((m, k), np.int64), *sides)

        def work(rows: slice, halt: Halt) -> None:
            part = _Pass(self, queries[rows], k, skip[rows], None if predicted is None else predicted[rows], halt)
            part.run()
            _put(found, rows, part.found)
            rest = rows.start + np.flatnonzero(part.undecided)
            if len(rest) and not halt.is_set():  # here, where the matrix library keeps to the thread it is called from
                asked = None if predicted is None else predicted[rest]
                _put(found, rest, self.brute.nearest(queries[rest], k, exclude=skip[rest], predicted=asked))

        self._each(m, work)
        return found

    def masses(
        self, queries: Vectors, k: int, predicted: Codes, *, inverse: bool = False, exclude: Integers | None = None
    ) -> tuple[Found, Masses]:
        """The k nearest, and the summed weights of every point, which is brute force's work: every point counts."""
        return self.brute.masses(queries, k, predicted, inverse=inverse, exclude=exclude)

    def _each(self, m: int, work: Any) -> None:
        _ = self.halves, self.codes, self.apart, self.sample  # made once, before the threads begin
        for batch in track(rounds(m, _QUERIES, cores()), "searching"):
            spread(work, batch)


@dataclass(frozen=True, eq=False)
class Sample:
    """Some points of a bank, and their shadows.

    Attributes:
        places: (s,), in the bank, ascending.
        vectors: (s, d).
        tiles: their shadows, as those of a segment.
        codes: (s,), their classes.
    """

    places: Integers
    vectors: Vectors
    tiles: Tiles
    codes: Codes

    @classmethod
    def of(cls, points: Points, shadows: Shadows, places: Integers) -> Sample:
        """The points at some places."""
        alone = points.take(places)
        tiles, codes = shadows.extended(points.segments, alone).tiles, tiled(alone, points.codes[places], -1)
        return cls(places, frozen(alone.segments[0]), tiles[0], codes[0])

    def skip(self, places: Integers) -> Integers:
        """Places of the bank as places of the sample; -1 for those that are not in it."""
        at = np.minimum(np.searchsorted(self.places, places), len(self.places) - 1)
        return np.where(self.places[at] == places, at, -1)


class _Pass:
    """One chunk of queries on its way through the whole bank."""

    def __init__(
        self, search: ExactSearch, queries: Vectors, k: int, skip: Integers, predicted: Codes | None, halt: Halt
    ) -> None:
        self.search, self.points, self.k, self.halt = search, search.points, k, halt
        self.queries, self.skip, self.predicted = frozen(queries), skip, predicted
        m = len(queries)
        sides = () if predicted is None else (np.full((m, 2), np.inf), np.full((m, 2), -1, np.int64))
        self.found = Found(np.empty((m, k)), np.empty((m, k), np.int64), *sides)
        self.undecided = np.zeros(m, np.bool_)

    def run(self) -> None:
        """Find the k nearest, then the nearest of both sides where these are not among them."""
        lot = _Lot(self, np.arange(len(self.queries)), self.k, sifting.ANY)
        counts = lot.run()
        self.undecided = counts < self.k
        lot.rank(counts, self.found.distances, self.found.places)
        if self.predicted is not None:
            self._sides(self.predicted)

    def _sides(self, predicted: Codes) -> None:
        """The nearest of the predicted class and of any other: among the k nearest, or in a search of their own."""
        near, near_places = self.found.near_distances, self.found.near_places
        assert near is not None
        assert near_places is not None
        decided = np.flatnonzero(~self.undecided)
        same = self.points.codes[self.found.places[decided]] == predicted[decided, None]
        for side, here in enumerate((same, ~same)):
            column = here.argmax(axis=1)
            there = here[np.arange(len(here)), column]
            rows, column = decided[there], column[there]
            near[rows, side] = self.found.distances[rows, column]
            near_places[rows, side] = self.found.places[rows, column]
            rest = decided[~there]
            if len(rest):
                near[rest, side], near_places[rest, side] = self._nearest_of(rest, (sifting.SAME, sifting.OTHER)[side])

    def _nearest_of(self, rows: Integers, side: int) -> tuple[Floats, Integers]:
        """Distance and place of the nearest point of a side, for some queries; infinite and -1 where there is none."""
        lot = _Lot(self, rows, 1, side)
        counts = lot.run()
        self.undecided[rows] |= counts < 0
        distances, places = np.full((len(rows), 1), np.inf), np.full((len(rows), 1), -1, np.int64)
        lot.rank(np.maximum(counts, 0), distances, places)
        return distances[:, 0], places[:, 0]


class _Lot:
    """Some queries of a pass, and their candidates among the points of one side.

    ``bars`` say what minus the distance of a candidate must reach. All arrays have a few rows more than there are
    queries, which are never decided.
    """

    def __init__(self, over: _Pass, rows: Integers, k: int, side: int) -> None:
        self.search, self.points, self.halt, self.k, self.side = over.search, over.points, over.halt, k, side
        self.asked, self.m = self.search.shadows.ask(over.queries[rows], self.points), len(rows)
        size, capacity = len(self.asked.numbers), min(len(self.points), k + max(k, _SPARE)) + 1
        self.skip, self.wanted = np.full(size, -1, np.int64), np.full(size, -1, np.int32)
        self.skip[: self.m] = over.skip[rows]
        if over.predicted is not None:
            self.wanted[: self.m] = over.predicted[rows]
        self.bars = np.full(size, -np.inf)
        self.counts = np.where(self.asked.decided, 0, -1)
        self.room = np.full(size, max(_SPARE * 16, len(self.points) // _MANY))
        self.values, self.places = np.empty((size, capacity)), np.empty((size, capacity), np.int64)

    def run(self) -> Integers:
        """How many candidates each query has in the end; -1 where only brute force can tell."""
        self._guess()
        guessed = self.bars.copy()
        if not self._sift():
            return np.full(self.m, -1)
        vectors, places, codes = self.search.apart
        sifting.meet(
            vectors, places, codes, self.asked.vectors, self.skip, self.wanted, self.side, self.k, self.bars,
            self.counts, self.values, self.places,
        )  # fmt: skip
        self.counts[self.room < 0] = -1
        if self.side == sifting.ANY:
            kernels.thin(self.k, np.zeros(len(guessed)), guessed, self.counts, self.values, self.places)
        return self.counts[: self.m]

    def rank(self, counts: Integers, distances: Floats, places: Integers) -> None:
        """The nearest candidates, in order, into ``distances`` and ``places``."""
        widest = max(distances.shape[1], int(counts.max(initial=0)))
        measured = np.full((self.m, widest), np.inf)
        there = np.arange(min(widest, self.values.shape[1])) < counts[:, None]
        measured[:, : there.shape[1]][there] = -self.values[: self.m, : there.shape[1]][there]
        order = np.argsort(measured, axis=1)
        kernels.rank(distances.shape[1], counts, self.places[: self.m], measured, order, distances, places)

    def _guess(self) -> None:
        """Set bars that a few more points reach than are wanted, going by the sample."""
        for sample in self.search.sample:
            expected = self.k * len(sample.places) / len(self.points)
            k = 1 if self.k == 1 else int(np.ceil(expected + _SURE * np.sqrt(expected) + 1))
            most = k + k // 2 + 4
            if most > TILE:
                return
            values = np.empty((len(self.bars), TILE), np.float32)
            places = np.empty(values.shape, np.int32)
            tiles, asked = sample.tiles, self.asked
            sifting.fold(
                tiles.numbers, tiles.begins, tiles.halves, tiles.facts, sample.codes, asked.numbers, asked.facts,
                self.wanted, self.side, values, places,
            )  # fmt: skip
            best = np.argpartition(values, -most, axis=1)[:, -most:]
            places = np.take_along_axis(places, best, axis=1)
            lost = np.take_along_axis(values, best, axis=1) == kernels.LOWEST
            places[lost | (places == sample.skip(self.skip)[:, None])] = -1
            sifting.guess(sample.vectors, asked.vectors, places, k, self.bars)

    def _sift(self) -> bool:
        """Go through the bank once; False where ``halt`` put an early end to it."""
        first, search, asked = 0, self.search, self.asked
        for segment, tiles, halves, codes in zip(
            self.points.segments, search.shadows.tiles, search.halves, search.codes, strict=True
        ):
            for start, block in pages.walk(frozen(segment), _ROWS):
                if self.halt.is_set():
                    return False
                sifting.sift(
                    tiles.numbers, tiles.begins, halves, tiles.facts, codes, block, start, first + start,
                    asked.numbers, asked.vectors, asked.facts, self.skip, self.wanted, self.side, self.k, self.room,
                    self.bars, self.counts, self.values, self.places,
                )  # fmt: skip
            first += len(segment)
        return True


def _put(into: Found, rows: Any, part: Found) -> None:
    """Part of an answer into the whole."""
    into.distances[rows], into.places[rows] = part.distances, part.places
    for side, found in ((into.near_distances, part.near_distances), (into.near_places, part.near_places)):
        if side is not None and found is not None:
            side[rows] = found
