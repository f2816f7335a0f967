"""Exact search that need not look at every point whole: by short shadows, most are proved too far.

    Points ─▶ shadows: some principal axes and the length of the rest, chosen once for a bank
                 │
    queries ─▶ a first bar from a sample ─▶ sift all shadows ─▶ measure what is left ─▶ Found

``shadows`` proves that the squared distance of two shadows is never more than that of the points, rounding included. A
point whose shadow lies beyond the bar is not among the k nearest, if the bar is no nearer than the k-th of them. The
bar is guessed from a sample of the bank, raised as candidates come in, and checked in the end: a query whose guess was
too near is searched again, by brute force. What is left is measured in float32, and the winners once more, in float64,
by the loops of ``brute``. So the answer is brute force's own, to the last bit.

How many axes to take is settled by what they cost and by how many points they leave, on some of the bank's own points
(``worth``). Where none are worth it, as in data without structure, everything is left to brute force.
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
from vicinal.search.points import Points, frozen
from vicinal.search.protocol import Codes, Found, Masses
from vicinal.search.shadows import Shadows, axes_of, drawn, halves_of, slack_of
from vicinal.search.threads import Halt, cores, spread
from vicinal.search.worth import best_width

__all__ = ["ExactSearch"]

_QUERIES = 512  # queries that one thread carries through the bank together
_MOST = 32  # for more than one point in so many, brute force is as good
_SHARE = 8  # one point in so many is in the sample that sets the first bars
_SAMPLE = 8192  # ... but no more than this
_SURE = 2.5  # standard deviations by which more of the sample are taken than should be wanted
_ROWS = 64 * sifting.TILE  # points between two looks at whether to come to an end


@dataclass(frozen=True, eq=False)
class ExactSearch:
    """Exact search that proves most points too far by their shadows.

    Args:
        points: what to look through.
        width: how many axes shadows have; left out, as many as cost least; 0 for none, which leaves all to brute force.
        shadows: those of the points, where they are known.
    """

    points: Points
    width: int | None = None
    known: Shadows | None = field(default=None, repr=False)

    def after(self, points: Points) -> ExactSearch:
        """The same search of points that these became by adding or removing some."""
        shadows: Shadows | None = self.__dict__.get("shadows", self.known)
        if shadows is None or len(points) > 2 * shadows.fitted:
            return ExactSearch(points, self.width)
        return ExactSearch(points, self.width, shadows.extended(self.points.segments, points))

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
        return Shadows.of(self.points, axes[:, :width]) if width else Shadows(axes[:, :0], (), len(self.points))

    @cached_property
    def halves(self) -> tuple[Vectors, ...]:
        """For each segment, half the squared lengths of its tiles."""
        return halves_of(self.points)

    @cached_property
    def sample(self) -> tuple[Sample, ...]:
        """One sample of the bank, which is fixed; none of a small bank."""
        size = min(_SAMPLE, len(self.points) // _SHARE)
        if size < 4 * sifting.TILE:
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
        undecided = np.zeros(m, np.bool_)

        def work(rows: slice, halt: Halt) -> None:
            part = _Pass(self, queries[rows], k, skip[rows], None if predicted is None else predicted[rows], halt)
            part.run()
            _put(found, rows, part.found)
            undecided[rows] = part.undecided

        self._each(m, work)
        rest = np.flatnonzero(undecided)
        if len(rest):
            asked = None if predicted is None else predicted[rest]
            _put(found, rest, self.brute.nearest(queries[rest], k, exclude=skip[rest], predicted=asked))
        return found

    def masses(
        self, queries: Vectors, k: int, predicted: Codes, *, inverse: bool = False, exclude: Integers | None = None
    ) -> tuple[Found, Masses]:
        """The k nearest, and the summed weights of every point, which is brute force's work: every point counts."""
        return self.brute.masses(queries, k, predicted, inverse=inverse, exclude=exclude)

    def _each(self, m: int, work: Any) -> None:
        _ = self.halves, self.sample  # made once, before the threads begin
        size = max(1, min(_QUERIES, -(-m // cores())))
        chunks = [slice(start, min(m, start + size)) for start in range(0, m, size)]
        rounds = [chunks[start : start + cores()] for start in range(0, len(chunks), cores())]
        for batch in track(rounds, "searching"):
            spread(work, batch)


@dataclass(frozen=True, eq=False)
class Sample:
    """Some points of a bank, and their shadows.

    Attributes:
        places: (s,), in the bank, ascending.
        vectors: (s, d).
        tiles: their shadows, as those of a segment.
        halves: half their squared lengths.
        codes: (s,), their classes.
    """

    places: Integers
    vectors: Vectors
    tiles: Vectors
    halves: Vectors
    codes: Codes

    @classmethod
    def of(cls, points: Points, shadows: Shadows, places: Integers) -> Sample:
        """The points at some places."""
        alone = Points((points.gather(places),), points.labels[places], points.centre, points.squares[places])
        tiles = Shadows.of(alone, shadows.axes).tiles[0]
        halves = np.full(len(tiles) * sifting.TILE, np.inf, np.float32)
        halves[: len(places)] = alone.squares / 2
        return cls(places, frozen(alone.segments[0]), tiles, halves.reshape(-1, sifting.TILE), points.codes[places])

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
        m, self.usual = len(queries), min(k, int(self.points.living.sum()) - len(self.points.outliers))
        sides = () if predicted is None else (np.full((m, 2), np.inf), np.full((m, 2), -1, np.int64))
        self.found = Found(np.empty((m, k)), np.empty((m, k), np.int64), *sides)
        self.undecided = np.zeros(m, np.bool_)

    def run(self) -> None:
        """Find the k nearest, then the nearest of both sides where these are not among them."""
        rows = np.arange(len(self.queries))
        lot = _Lot(self, rows, self.usual, sifting.ANY)
        lot.guess()
        lot.sift()
        counts = lot.checked()[: len(rows)]
        kernels.append(counts, lot.places, self.skip, self.points.outliers)
        self.undecided = counts < self.k
        self._settle(rows, counts, lot.places, self.found.distances, self.found.places)
        if self.predicted is not None:
            self._sides(self.predicted)

    def _settle(self, rows: Integers, counts: Integers, places: Integers, out: Floats, out_places: Integers) -> None:
        """Measure candidates directly, and put the nearest into ``out``, in order."""
        k = out.shape[1]
        measured = np.full((len(counts), max(k, int(counts.max(initial=0)))), np.inf)
        exact = self.queries[rows].astype(np.float64)
        wanted = np.unique(places[np.arange(places.shape[1]) < counts[:, None]]) if self.points.mapped else None
        for first, segment in self.points.blocks(len(self.points), only=wanted):
            kernels.settle(segment, first, exact, counts, places, measured)
        kernels.rank(k, counts, places, measured, np.argsort(measured, axis=1), out, out_places)

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
        lot.guess()
        lot.sift()
        counts = lot.counts[: len(rows)]
        lost = (counts < 0) | (lot.room[: len(rows)] < 0) | ~lot.asked.decided[: len(rows)]
        self.undecided[rows] |= lost
        counts[lost] = 0
        distances, places = np.full((len(rows), 1), np.inf), np.full((len(rows), 1), -1, np.int64)
        self._settle(rows, counts, lot.places, distances, places)
        return self._with_outliers(rows, side, distances[:, 0], places[:, 0])

    def _with_outliers(self, rows: Integers, side: int, near: Floats, places: Integers) -> tuple[Floats, Integers]:
        assert self.predicted is not None
        vectors, outliers, codes = self.search.brute.outliers
        found, found_places = np.full((len(rows), 2), np.inf), np.full((len(rows), 2), -1, np.int64)
        found[:, side - 1], found_places[:, side - 1] = near, places
        kernels.meet(
            vectors, outliers, codes, self.skip[rows], frozen(self.queries[rows]), self.predicted[rows],
            np.zeros((len(rows), 2)), np.zeros(len(rows), np.float32), found, found_places,
            np.zeros((len(rows), 2), np.float32),
        )  # fmt: skip
        return found[:, side - 1], found_places[:, side - 1]


class _Lot:
    """Some queries of a pass, and their candidates among the points of one side."""

    def __init__(self, over: _Pass, rows: Integers, k: int, side: int) -> None:
        self.search, self.points, self.halt, self.k, self.side = over.search, over.points, over.halt, k, side
        self.asked = self.search.shadows.ask(over.queries[rows], self.points)
        size = len(self.asked.vectors)
        self.skip, self.wanted = np.full(size, -1, np.int64), np.full(size, -1, np.int32)
        self.skip[: len(rows)] = over.skip[rows]
        if over.predicted is not None:
            self.wanted[: len(rows)] = over.predicted[rows]
        self.bars = np.full(size, kernels.LOWEST)
        self._begin(k)
        d = self.points.dimension
        self.slack = 2.1 * slack_of(d) * self.asked.farthest + d * 1e-37

    def _begin(self, k: int) -> None:
        size = len(self.asked.vectors)
        capacity = min(len(self.points), 2 * k + 64)
        self.counts = np.where(self.asked.decided, 0, -1)
        self.room = np.full(size, max(2048, len(self.points) // 8))
        self.values = np.empty((size, capacity), np.float32)
        self.places = np.empty((size, capacity + len(self.points.outliers)), np.int64)
        self.spent = np.zeros(1, np.int64)

    def guess(self) -> None:
        """Set bars that a few more points reach than are wanted, going by the sample."""
        for sample in self.search.sample:
            expected = self.k * len(sample.places) / len(self.points)
            k = 1 if self.k == 1 else int(np.ceil(expected + _SURE * np.sqrt(expected) + 1))
            if k >= len(sample.places):
                return
            self._begin(k)
            skip, slack = sample.skip(self.skip), np.zeros(len(self.bars))
            self._sift(sample.tiles, sample.halves, sample.vectors, 0, 0, sample.codes, skip, k, slack)
            counts = self.counts.copy()
            kernels.thin(k, slack.astype(np.float32), np.full(len(self.bars), kernels.LOWEST), counts, *self._held())
            found = counts >= k
            self.bars = np.where(found, self.values[:, :k].min(axis=1), kernels.LOWEST).astype(np.float32)
            d = self.points.dimension
            least = np.where(found, -self.bars.astype(np.float64), np.inf)
            self.slack = 2.1 * slack_of(d) * np.minimum(least, self.asked.farthest) + d * 1e-37
            self._begin(self.k)

    def _held(self) -> tuple[Vectors, Integers]:
        return self.values, self.places

    def sift(self) -> None:
        """Go through the bank once; come to an early end where ``halt`` is set."""
        first = 0
        if self.k == 1:
            self.bars = (self.bars - self.slack).astype(np.float32)
        self.guessed = self.bars.copy()
        for segment, tiles, halves in zip(
            self.points.segments, self.search.shadows.tiles, self.search.halves, strict=True
        ):
            for start, block in pages.walk(frozen(segment), _ROWS):
                if self.halt.is_set():
                    return
                codes = self.points.codes[first + start : first + start + len(block)]
                self._sift(tiles, halves, block, start, first + start, codes, self.skip, self.k, self.slack)
            first += len(segment)

    def _sift(
        self, tiles: Any, halves: Any, block: Vectors, start: int, first: int, codes: Codes,
        skip: Integers, k: int, slack: Floats,
    ) -> None:  # fmt: skip
        asked = self.asked
        sifting.sift(
            tiles, halves, block, start, first, codes, asked.shadows, asked.vectors, asked.levels, skip, self.wanted,
            self.side, k, slack.astype(np.float32), self.room, self.bars, self.counts, self.values, self.places,
            self.spent,
        )  # fmt: skip

    def checked(self) -> Integers:
        """How many candidates each query has, -1 where the bar proves to have been too near, or nothing is sure."""
        self.counts[self.room < 0] = -1
        kernels.thin(self.k, self.slack.astype(np.float32), self.guessed, self.counts, self.values, self.places)
        return self.counts


def _put(into: Found, rows: Any, part: Found) -> None:
    """Part of an answer into the whole."""
    into.distances[rows], into.places[rows] = part.distances, part.places
    for side, found in ((into.near_distances, part.near_distances), (into.near_places, part.near_places)):
        if side is not None and found is not None:
            side[rows] = found
