"""Exact search by looking at every point: a matrix product in blocks, sifted while each block is in the cache.

Write c for the centre, σ for a power of two, q̂ = σ² (q - c) and h = σ² |x - c|² / 2. Then

    σ² |x - q|² = σ² |q - c|² + 2 c·q̂ - 2 v    with    v = x·q̂ - h,

so the nearest points have the largest v. In float32, with unit roundoff u and d products summed in any order, v is off
by at most

    |x| |q̂| (d + 3) u  +  3 u h                (the product; q̂, h and the difference rounded)

plus what may be flushed to zero. That is ``error`` below, with the largest |x| and h of the points that are sifted: all
but a few outliers, whose length would spoil it for all, and which are measured for every query instead. No decision
rests on v alone: every point whose v lies within two errors of the k-th best is measured directly, in float64, from its
float32 entries. A query that cannot be decided so (more ties than there is room, values beyond float32's range) is
measured against every point directly. The answer is thus brute force's own: in the order of the distances as they are
given, in float64, and equal ones in the order of their places.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from vicinal.checks import Floats, Integers, Vectors
from vicinal.progress import track
from vicinal.search import kernels, weighing
from vicinal.search.points import Points, frozen
from vicinal.search.protocol import Codes, Found, Masses
from vicinal.search.shifting import scale_of, shift
from vicinal.search.threads import Halt, cores, rounds, spread

__all__ = ["BruteSearch", "masses_of"]

_WIDTH = 1024  # points in a block: with 500 queries a block of products is 2 MB, in the second-level cache of a core
_QUERIES = 512  # queries that one thread carries through the bank together
_FEW = 128  # below so many queries the matrix library's own threads are faster than ours
_ROOM = 48 * 2**20  # bytes for the candidates of all threads
_SAMPLE = 4096  # points at most in the sample that sets the first bar


@dataclass(frozen=True, eq=False)
class BruteSearch:
    """Exact search through all points, on all cores.

    Args:
        points: what to look through.
    """

    points: Points

    def nearest(
        self, queries: Vectors, k: int, *, exclude: Integers | None = None, predicted: Codes | None = None
    ) -> Found:
        """The k nearest points of each query; see :class:`vicinal.search.protocol.Search`."""
        return self._gather(queries, k, exclude, predicted, None)[0]

    def masses(
        self, queries: Vectors, k: int, predicted: Codes, *, inverse: bool = False, exclude: Integers | None = None
    ) -> tuple[Found, Masses]:
        """The k nearest, and the summed weights of every point; see :class:`vicinal.search.protocol.Search`.

        Weights are added up from float32 distances, save where rounding would be felt: there they are measured.
        """
        found, masses = self._gather(queries, k, exclude, predicted, inverse)
        assert masses is not None
        return found, masses

    def _gather(
        self, queries: Vectors, k: int, exclude: Integers | None, predicted: Codes | None, inverse: bool | None
    ) -> tuple[Found, Masses | None]:
        m = len(queries)
        skip = np.full(m, -1, np.int64) if exclude is None else exclude
        distances, places = np.empty((m, k)), np.empty((m, k), np.int64)
        near, near_places = np.full((m, 2), np.inf), np.full((m, 2), -1, np.int64)
        masses = Masses(np.empty(m), np.empty(m), np.empty(m), np.empty(m, np.int32)) if inverse is not None else None

        def work(rows: slice, halt: Halt) -> None:
            part = _Pass(self, queries[rows], k, skip[rows], None if predicted is None else predicted[rows], inverse)
            part.run(halt)
            distances[rows], places[rows] = part.distances, part.places
            near[rows], near_places[rows] = part.near, part.near_places
            if masses is not None:
                part.fill(masses, rows)

        self._each(m, k, work, classes=0 if inverse is None else len(self.points.classes))
        if predicted is None:
            return Found(distances, places), None
        return Found(distances, places, near, near_places), masses

    def _each(self, m: int, k: int, work: Callable[[slice, Halt], None], classes: int) -> None:
        """Run ``work`` on all queries, a chunk at a time, as many chunks at once as there are cores."""
        each = 12 * (_capacity(k, len(self.points)) + len(self.points.outliers)) + 8 * classes
        room = _ROOM // cores() // each
        many = m >= _FEW and room >= _FEW // 2
        most, together = (_QUERIES, cores()) if many else (_FEW, 1)
        for batch in track(rounds(m, max(1, min(room, most)), together), "searching"):
            spread(work, batch)

    @cached_property
    def scale(self) -> float:
        """σ², a power of two that brings the longest centred point to about length 1."""
        return scale_of(self.points)

    @cached_property
    def half(self) -> npt.NDArray[np.float32]:
        """(n,), h; infinite for removed points, and for outliers, which are measured for every query."""
        squares = self.points.squares.copy()
        squares[self.points.outliers] = np.inf
        return (squares * (self.scale / 2)).astype(np.float32)

    @cached_property
    def counts(self) -> Floats:
        """(n,), how many points each stands for; empty where each stands for itself."""
        return np.empty(0) if self.points.weights is None else self.points.weights

    @cached_property
    def outliers(self) -> tuple[Vectors, Integers, Codes]:
        """Vectors, places and classes of the outliers."""
        places = self.points.outliers
        return frozen(self.points.gather(places)), places, self.points.codes[places]

    @cached_property
    def sample(self) -> tuple[Vectors, npt.NDArray[np.float32]] | None:
        """Points drawn at random, fixed for the bank, and their h: enough to guess how near the k-th neighbour is."""
        living = np.flatnonzero(self.points.living)
        size = min(_SAMPLE, len(living) // 24)
        if size < 256:
            return None
        places = np.sort(np.random.default_rng(0).choice(living, size, replace=False))
        return self.points.gather(places), self.half[places]


class _Pass:
    """One chunk of queries on its way through the whole bank."""

    def __init__(
        self,
        search: BruteSearch,
        queries: Vectors,
        k: int,
        skip: Integers,
        predicted: Codes | None,
        inverse: bool | None,
    ) -> None:
        points, scale = search.points, search.scale
        self.search, self.points, self.queries, self.k, self.skip = search, points, frozen(queries), k, skip
        self.predicted, self.inverse = predicted, inverse
        m, far = len(queries), len(points.outliers)
        self.usual = min(k, int(points.living.sum()) - far)  # neighbours to look for among the points that are sifted
        capacity = _capacity(k, len(points)) + far
        asked = shift(queries, points, scale)
        self.scaled, self.level, self.slack = asked.vectors, asked.level, asked.slack
        self.undecided = asked.undecided.copy()
        self.bars = self._first_bars()
        self.counts = np.zeros(m, np.int64)
        self.values = np.empty((m, capacity), np.float32)
        self.candidates = np.empty((m, capacity), np.int64)
        self.near = np.full((m, 2), np.inf)
        self.near_places = np.full((m, 2), -1, np.int64)
        self.near_bars = np.full((m, 2), kernels.LOWEST)
        self.distances, self.places = np.empty((m, k)), np.empty((m, k), np.int64)
        if inverse is not None:
            # distances whose rounding error, that of their squares / distance, may exceed 1e-5
            self.doubt = np.sqrt(asked.rounding * 1e5) if inverse else asked.rounding * 1e5
            self.undecided |= asked.heavy
            self.reference = np.full((m, 2), np.inf)
            self.totals = np.zeros((m, len(points.classes)))

    def run(self, halt: Halt) -> None:
        """Go through the bank once, then settle every query; come to an early end where ``halt`` is set."""
        if not self.undecided.all():
            self._sift(halt)
            self._settle()
        else:
            self.counts[:] = -1
        for i in np.flatnonzero((self.counts < 0) | self.undecided):
            if not halt.is_set():
                self._measure_all(int(i))

    def fill(self, masses: Masses, rows: slice) -> None:
        """The masses of this chunk into those of all queries."""
        assert self.predicted is not None
        reference = np.zeros((len(self.totals), 2)) if self.inverse else self.reference
        found = masses_of(self.totals, self.predicted, reference)
        masses.same[rows], masses.rival[rows], masses.rest[rows] = found.same, found.rival, found.rest
        masses.rival_codes[rows] = found.rival_codes

    def _first_bars(self) -> npt.NDArray[np.float32]:
        """Bars that about twice k points reach, guessed from the sample; a guess that proves too high is found out."""
        m, sample = len(self.queries), self.search.sample if len(self.queries) >= _FEW // 2 else None
        if sample is None:
            return np.full(m, kernels.LOWEST)
        vectors, half = sample
        expected = self.usual * len(vectors) / len(self.points)
        wanted = int(np.ceil(expected + 4 * np.sqrt(expected) + 2))
        if wanted >= len(vectors):
            return np.full(m, kernels.LOWEST)
        values = self.scaled @ vectors.T
        values -= half
        return np.partition(values, len(vectors) - wanted, axis=1)[:, len(vectors) - wanted]

    def _sift(self, halt: Halt) -> None:
        m, half, (vectors, places, classes) = len(self.queries), self.search.half, self.search.outliers
        if self.predicted is not None:
            kernels.meet(
                vectors, places, classes, self.skip, self.queries, self.predicted, self.level, self.slack,
                self.near, self.near_places, self.near_bars,
            )  # fmt: skip
        width = _WIDTH if m >= _FEW // 2 else max(_WIDTH, 2**20 // m // _WIDTH * _WIDTH)
        buffer = np.empty((m, min(width, len(self.points))), np.float32)
        common = (self.skip, self.usual, self.slack, self.bars, self.counts, self.values, self.candidates)
        for first, block in self.points.blocks(width):
            if halt.is_set():
                return
            size = len(block)
            products = buffer if size == buffer.shape[1] else np.empty((m, size), np.float32)
            np.matmul(self.scaled, block.T, out=products)
            here = half[first : first + size]
            if self.predicted is None:
                kernels.scan(products, here, first, *common)
                continue
            codes = self.points.codes[first : first + size]
            sides = (codes, self.predicted, self.level)
            kernels.scan_classes(
                products, here, first, *common, block, self.queries, *sides, self.near, self.near_places, self.near_bars
            )
            if self.inverse is not None:
                weighing.weigh(
                    products, here, first, self.skip, block, self.queries, *sides,
                    self.search.counts[first : first + size], self.doubt, self.inverse, self.reference, self.near,
                    self.totals,
                )  # fmt: skip
        if self.predicted is not None and self.inverse is not None:
            counts = self.search.counts
            weighing.weigh_few(
                vectors, places, classes, self.skip, self.queries, self.predicted,
                counts[places] if len(counts) else counts, self.inverse, self.reference, self.near, self.totals,
            )  # fmt: skip

    def _settle(self) -> None:
        kernels.thin(self.usual, self.slack, self.bars, self.counts, self.values, self.candidates)
        kernels.append(self.counts, self.candidates, self.skip, self.points.outliers)
        measured = np.full((len(self.counts), max(self.k, int(self.counts.max()))), np.inf)
        exact = self.queries.astype(np.float64)
        wanted = self.points.among(self.counts, self.candidates) if self.points.mapped else None
        for first, segment in self.points.blocks(len(self.points), only=wanted):
            kernels.settle(segment, first, exact, self.counts, self.candidates, measured)
        order = np.argsort(measured, axis=1)  # NumPy sorts in vector registers
        kernels.rank(self.k, self.counts, self.candidates, measured, order, self.distances, self.places)

    def _measure_all(self, i: int) -> None:
        """Answer one query by measuring every point, directly."""
        found = np.empty(len(self.points))
        for first, segment in self.points.blocks(len(self.points)):
            kernels.distances_to(segment, self.queries[i], found[first : first + len(segment)])
        found[~self.points.living] = np.inf
        if self.skip[i] >= 0:
            found[self.skip[i]] = np.inf
        bar = np.partition(found, self.k - 1)[self.k - 1]
        nearest = np.flatnonzero(found <= bar)
        order = nearest[np.argsort(found[nearest], kind="stable")][: self.k]
        self.distances[i], self.places[i] = found[order], order
        if self.predicted is None:
            return
        same = self.points.codes == self.predicted[i]
        for side, here in enumerate((same, ~same)):
            place = int(np.where(here, found, np.inf).argmin())
            there = bool(here[place]) and np.isfinite(found[place])
            self.near[i, side] = found[place] if there else np.inf
            self.near_places[i, side] = place if there else -1
        if self.inverse is not None:
            self._weigh_all(i, found, same)

    def _weigh_all(self, i: int, distances: Floats, same: npt.NDArray[np.bool_]) -> None:
        alive = np.isfinite(distances)
        self.reference[i] = self.near[i]
        if self.inverse:
            weights = 1 / np.maximum(distances[alive], weighing.LEAST)
        else:
            reference: Any = np.where(same, *self.reference[i])
            weights = np.exp((reference - distances)[alive])
        if self.points.weights is not None:
            weights *= self.points.weights[alive]
        self.totals[i] = np.bincount(self.points.codes[alive], weights, minlength=self.totals.shape[1])


def masses_of(totals: Floats, predicted: Codes, reference: Floats) -> Masses:
    """The masses of the predicted class, its rival and the rest, from totals by class, which are used up.

    ``reference`` (m, 2) holds the distance that has weight 1 for the predicted class and for all others, where there is
    any.
    """
    each, known = np.arange(len(totals)), predicted >= 0
    same = np.zeros(len(totals))
    same[known] = totals[each[known], predicted[known]]
    totals[each[known], predicted[known]] = -1
    rival = totals.argmax(axis=1)
    largest = np.maximum(totals[each, rival], 0)
    totals[each, rival] = 0
    rest = np.maximum(totals, 0).sum(axis=1)
    one = np.where(np.isfinite(reference), reference, 0)
    with np.errstate(divide="ignore"):
        logs = np.log(same) - one[:, 0], np.log(largest) - one[:, 1], np.log(rest) - one[:, 1]
    return Masses(*logs, np.where(largest > 0, rival, -1).astype(np.int32))


def _capacity(k: int, n: int) -> int:
    """How many candidates a query may have at a time."""
    return min(n, max(2 * k, k + 256) + 64)
