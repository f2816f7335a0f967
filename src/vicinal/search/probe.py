"""Queries on their way through the cells of an index: which cells are near, which points in them, how far these are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from vicinal.checks import Floats, Integers, Vectors
from vicinal.search import kernels, probing
from vicinal.search.cells import Index, whole
from vicinal.search.dots import STEP
from vicinal.search.points import Points, frozen
from vicinal.search.protocol import Codes

__all__ = ["NEAR", "Contents", "Probe"]

NEAR = 32  # points of a side that are measured
_TOGETHER = 256  # queries whose nearest cells are found together
_STEPS, _FARTHER = 3, 4  # so often the best are picked out; times as many cells are gone through before the next time


@dataclass(frozen=True, eq=False)
class Contents:
    """What lies in the cells of an index now.

    Args:
        points: all of them, in the order of their places.
        index: the same points in cells.
    """

    points: Points
    index: Index

    @cached_property
    def lying(self) -> list[tuple[Vectors, Codes]]:
        """For each layer, in its order: h of each point and its class.

        h is infinite for points that were removed, and for those so far out that products would leave float32's range:
        these are nobody's neighbours, and a side that has no others is left to brute force.
        """
        half = self.points.squares * (self.index.axes.scale**2 / 2)
        half[self.index.axes.far(self.points.squares)] = np.inf
        rounded = half.astype(np.float32)
        return [(rounded[layer.places], self.points.codes[layer.places]) for layer in self.index.layers]

    @cached_property
    def blocks(self) -> list[tuple[Any, ...]]:
        """For each layer what ``probing.scan`` looks through."""
        found = []
        for layer, (half, codes) in zip(self.index.layers, self.lying, strict=True):
            blocks = layer.blocks
            each = ((layer.scales, 0.0), (half, np.inf), (layer.places, -1), (codes, -1))
            spread = [blocks.spread(part, beyond) for part, beyond in each]
            found.append((blocks.numbers, blocks.begins, *spread, blocks.starts))
        return found

    @cached_property
    def classes(self) -> tuple[Codes, Integers, Integers]:
        """Of each cell its only class, or that it has several or none; and the cells of each class, see ``probing``."""
        cells, classes = len(self.index.centres), len(self.points.classes)
        pairs = [
            np.unique(layer.owners[np.isfinite(half)] * classes + codes[np.isfinite(half)])
            for layer, (half, codes) in zip(self.index.layers, self.lying, strict=True)
        ]
        owners, codes = np.divmod(np.unique(np.concatenate(pairs)), classes)
        counts = np.bincount(owners, minlength=cells)
        only = np.where(counts > 1, probing.MIXED, probing.EMPTY).astype(np.int32)
        alone = counts[owners] == 1
        only[owners[alone]] = codes[alone]
        order = np.argsort(codes, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=classes))])
        return only, starts, owners[order]

    def shut(self, gaps: Vectors, wanted: Codes, side: int) -> None:
        """Put the cells that have no point of a side infinitely far from each query."""
        only, starts, cells = self.classes
        if side == probing.OTHER:
            gaps[(only == probing.EMPTY) | (only == wanted[:, None])] = np.inf
            return
        for row, code in zip(gaps, wanted, strict=True):
            there = cells[starts[code] : starts[code + 1]] if code >= 0 else cells[:0]
            near = row[there]
            row[:] = np.inf
            row[there] = near


class Probe:
    """Some queries that look into cells, once or more.

    Args:
        contents: what lies in the cells.
        queries: (m, d).
        skip: (m,), for each query a place that does not count; -1 for none.
        predicted: (m,), class codes, or None.
    """

    def __init__(self, contents: Contents, queries: Vectors, skip: Integers, predicted: Codes | None) -> None:
        self.contents, self.index, self.points = contents, contents.index, contents.points
        self.queries, self.skip = frozen(queries), skip
        self.predicted = np.full(len(queries), -1, np.int32) if predicted is None else predicted
        self.shadows = self.index.axes.shadows(queries)
        self.undecided = self.index.axes.lost(queries)
        self.shadows[self.undecided] = 0
        numbers, self.scales = whole(self.shadows)
        self.numbers = np.full((len(queries), -(-numbers.shape[1] // STEP) * STEP), 128, np.uint8)
        self.numbers[:, : numbers.shape[1]] += numbers.view(np.uint8)  # 128 more, in whole numbers modulo 256

    @staticmethod
    def room(keep: int) -> int:
        """How many candidates a query may have at a time."""
        return 3 * keep + 64

    def cells(self, rows: Integers | slice, probes: int, side: int = probing.ANY) -> Integers:
        """(m, probes): the nearest cells of some of the queries, nearest first; -1 where there are no more."""
        shadows, wanted = self.shadows[rows], self.predicted[rows]
        probes = min(probes, len(self.index.centres))
        chosen = np.empty((len(shadows), probes), np.int64)
        for start in range(0, len(shadows), _TOGETHER):
            part = slice(start, start + _TOGETHER)
            gaps = self.index.half - shadows[part] @ self.index.centres.T
            if side != probing.ANY:
                self.contents.shut(gaps, wanted[part], side)
            best = _smallest(gaps, probes)
            best[np.isinf(np.take_along_axis(gaps, best, axis=1))] = -1
            chosen[part] = best
        return chosen

    def candidates(
        self, rows: Integers | slice, chosen: Integers, keep: int, side: int = probing.ANY
    ) -> tuple[Integers, Vectors, Integers]:
        """Of the points in the chosen cells the ``keep`` best of each query: how many, their v, their places.

        The nearest cells are gone through first, so that few points of the others have to be taken in.
        """
        shadows, numbers, scales = self.shadows[rows], self.numbers[rows], self.scales[rows]
        skip, wanted = self.skip[rows], self.predicted[rows]
        m, room, cells = len(numbers), self.room(keep), len(self.index.centres)
        counts, bars = np.zeros(m, np.int64), np.full(m, probing.LOWEST, np.float32)
        values, places = np.empty((m, room), np.float32), np.empty((m, room), np.int64)
        first = -(-2 * keep * cells // self.index.size)
        ends = [min(first * _FARTHER**step, chosen.shape[1]) for step in range(_STEPS)] + [chosen.shape[1]]
        for start, end in zip([0, *ends], ends, strict=False):
            if start == end:
                continue
            who_starts, who = probing.group(chosen[:, start:end], cells)
            for blocks in self.contents.blocks:
                probing.scan(
                    *blocks, self.index.centres, who_starts, who, shadows, numbers, scales, skip, wanted, side, keep,
                    bars, counts, values, places,
                )  # fmt: skip
            most = int(counts.max(initial=0))
            if most > keep:
                probing.fill_up(counts, values)
                best = np.sort(values[:, :most], axis=1)[:, most - keep]  # NumPy sorts in vector registers
                np.maximum(bars, best, out=bars)
        probing.trim(counts, values, places, keep, bars)
        return counts, values, places

    def measure(self, rows: Integers | slice, counts: Integers, places: Integers, least: int = 1) -> Floats:
        """The distances of the candidates, infinite beyond their number."""
        queries = self.queries[rows].astype(np.float64)
        measured = np.full((len(queries), max(least, int(counts.max(initial=0)))), np.inf)
        wanted = self.points.among(counts, places) if self.points.mapped else None
        for first, segment in self.points.blocks(len(self.points), only=wanted):
            kernels.settle(segment, first, queries, counts, places, measured)
        return measured

    def look_for_sides(self, near: Floats, near_places: Integers, sides: int, known: Integers, bar: Floats) -> None:
        """Look for the sides that are missing within ``bar`` (m,), in the nearest cells that have a point of them.

        ``known`` (m, ...) are cells near each query, nearest first: if enough of them have the side, these will do.
        """
        for side in (probing.SAME, probing.OTHER):
            rows = np.flatnonzero((near[:, side] > bar) & ~self.undecided)
            if not len(rows):
                continue
            counts, _, places = self.candidates(rows, self._cells_of_side(rows, sides, side, known), NEAR, side)
            found, found_places = near[rows], near_places[rows]
            measured = self.measure(rows, counts, places)
            probing.settle_sides(counts, places, measured, self.points.codes, self.predicted[rows], found, found_places)
            near[rows], near_places[rows] = found, found_places

    def _cells_of_side(self, rows: Integers, sides: int, side: int, known: Integers) -> Integers:
        """The nearest cells that have a point of a side; -1 stands for none."""
        if side == probing.SAME:
            return self.cells(rows, sides, side)
        near = known[rows]
        only = self.contents.classes[0][near]
        rank = np.cumsum((only != self.predicted[rows, None]) & (only != probing.EMPTY), axis=1)
        chosen = np.where((np.diff(rank, axis=1, prepend=0) > 0) & (rank <= sides), near, -1)
        few = np.flatnonzero(rank[:, -1] < sides)
        chosen[few] = -1
        if len(few):
            found = self.cells(rows[few], min(sides, chosen.shape[1]), side)
            chosen[few, : found.shape[1]] = found
        return chosen


def _smallest(values: Vectors, count: int) -> Integers:
    """(m, count), where about the smallest of each row stand, in order: of values nearly equal, the first come first.

    NumPy sorts whole numbers in vector registers, but not yet their places: so the places take the last bits of them.
    """
    mask = np.int32((1 << (values.shape[1] - 1).bit_length()) - 1)
    bits = values.view(np.int32)
    keys = (bits ^ ((bits >> 31) & np.int32(0x7FFFFFFF))) & ~mask | np.arange(values.shape[1], dtype=np.int32)
    best = np.sort(np.partition(keys, count - 1, axis=1)[:, :count], axis=1)
    return (best & mask).astype(np.int64)
