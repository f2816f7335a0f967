"""Exact search on any device of torch: products and running best in float32 there, the winners measured here.

The bound is that of ``brute``: no decision rests on a product alone. What lies within its error of the k-th best is
measured directly, in float64, from the original entries, by the same loop; a query with more ties than there is room,
or values beyond float32's range, goes to brute force. So the answer is brute force's, to the last bit.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from vicinal.checks import Floats, Integers, Vectors
from vicinal.errors import InputError
from vicinal.progress import track
from vicinal.search import kernels, weighing
from vicinal.search.brute import BruteSearch, masses_of
from vicinal.search.points import Points, frozen
from vicinal.search.protocol import Codes, Found, Masses
from vicinal.search.shifting import Shifted, shift
from vicinal.search.tensors import (
    GROUP,
    LEAST_ROOM,
    free_memory,
    is_host,
    joined,
    needed_memory,
    said,
    top,
    torch,
    unit,
)

__all__ = ["DeviceSearch"]

_SIDE = 4  # points of each side that are measured
_HOST_ROOM = 48 * 2**20  # bytes of products at a time on the CPU
_DEVICE_ROOM = 2**30  # ... and elsewhere
_QUERIES = 4096  # queries that go through the points together


@dataclass(frozen=True, eq=False)
class DeviceSearch:
    """Exact search on a device of torch, which holds all points.

    Args:
        points: what to look through.
        device: as torch calls it: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ...
        room: bytes of products at a time; left out, what suits the device.
    """

    points: Points
    device: str = "cpu"
    room: int | None = None

    def __post_init__(self) -> None:
        free = free_memory(self.device)
        needed = needed_memory(self.points, self.device)
        if free is not None and needed > free:
            raise InputError(
                f"device: expected {said(needed)} of free memory on {self.device} for {len(self.points)} x "
                f"{self.points.dimension} points and their products, got {said(free)}; free some, condense the bank, "
                "or use search='auto'"
            )
        _ = self._held

    @cached_property
    def brute(self) -> BruteSearch:
        """The search for the few queries that a device cannot decide."""
        return BruteSearch(self.points)

    def nearest(
        self, queries: Vectors, k: int, *, exclude: Integers | None = None, predicted: Codes | None = None
    ) -> Found:
        """The k nearest points of each query; see :class:`vicinal.search.protocol.Search`."""
        m = len(queries)
        skip = np.full(m, -1, np.int64) if exclude is None else exclude
        sides = predicted is not None
        found = Found(np.empty((m, k)), np.empty((m, k), np.int64), *_no_sides(m) if sides else (None, None))
        undecided = np.zeros(m, np.bool_)
        for rows in track(self._chunks(m), "searching"):
            part = _Pass(self, queries[rows], k, skip[rows], None if predicted is None else predicted[rows])
            part.run()
            _fill(found, rows, part.found)
            undecided[rows] = part.undecided
        rest = np.flatnonzero(undecided)
        if len(rest):
            asked = None if predicted is None else predicted[rest]
            _fill(found, rest, self.brute.nearest(queries[rest], k, exclude=skip[rest], predicted=asked))
        return found

    def masses(
        self, queries: Vectors, k: int, predicted: Codes, *, inverse: bool = False, exclude: Integers | None = None
    ) -> tuple[Found, Masses]:
        """The k nearest, and the summed weights of every point; see :class:`vicinal.search.protocol.Search`."""
        found = self.nearest(queries, k, exclude=exclude, predicted=predicted)
        m = len(queries)
        skip = np.full(m, -1, np.int64) if exclude is None else exclude
        assert found.near_distances is not None
        reference = np.zeros((m, 2)) if inverse else found.near_distances
        totals, undecided = np.zeros((m, len(self.points.classes))), np.zeros(m, np.bool_)
        for rows in track(self._chunks(m), "weighing"):
            part = _Weighing(self, queries[rows], skip[rows], predicted[rows], reference[rows], inverse)
            totals[rows], undecided[rows] = part.run(), part.undecided
        masses = masses_of(totals, predicted, reference)
        rest = np.flatnonzero(undecided)
        if len(rest):
            left = self.brute.masses(queries[rest], k, predicted[rest], inverse=inverse, exclude=skip[rest])[1]
            for name in ("same", "rival", "rest", "rival_codes"):
                getattr(masses, name)[rest] = getattr(left, name)
        return found, masses

    @cached_property
    def _held(self) -> list[tuple[int, Any, Any, Any]]:
        """For each segment, the place of its first point, its vectors, h, and class codes, on the device."""
        held, first = [], 0
        for segment in self.points.segments:
            parts = (segment, *(part[first : first + len(segment)] for part in (self.brute.half, self.points.codes)))
            with warnings.catch_warnings():  # torch warns of arrays that are read-only; nothing here writes to them
                warnings.simplefilter("ignore")
                held.append((first, *(torch().from_numpy(part).to(self.device) for part in parts)))
            first += len(segment)
        return held

    @property
    def _room(self) -> int:
        if self.room is not None:
            return self.room
        if is_host(self.device):
            return _HOST_ROOM
        return max(LEAST_ROOM // 2, min(_DEVICE_ROOM, (free_memory(self.device) or _DEVICE_ROOM) // 4))

    def _chunks(self, m: int) -> list[slice]:
        size = max(1, min(m, _QUERIES, self._room // (4 * 4 * 1024)))
        return [slice(start, min(m, start + size)) for start in range(0, m, size)]

    def _blocks(self, m: int) -> Iterator[tuple[int, Any, Any, Any]]:
        """The points in blocks whose products with m queries fit the room."""
        width = max(GROUP, self._room // (4 * 4 * m) // GROUP * GROUP)
        for first, vectors, half, codes in self._held:
            for start in range(0, len(vectors), width):
                block = slice(start, start + width)
                yield first + start, vectors[block], half[block], codes[block]


class _Asked:
    """One chunk of queries, on the device."""

    def __init__(self, search: DeviceSearch, queries: Vectors, skip: Integers, predicted: Codes | None) -> None:
        self.search, self.points, self.queries, self.skip = search, search.points, queries, skip
        self.predicted = predicted
        self.asked: Shifted = shift(queries, search.points, search.brute.scale, unit=unit())
        self.undecided = self.asked.undecided.copy()
        self.vectors = self.there(self.asked.vectors)
        self.classes = None if predicted is None else self.there(predicted)[:, None]

    def there(self, array: npt.NDArray[Any]) -> Any:
        """An array on the device."""
        return torch().from_numpy(np.ascontiguousarray(array)).to(self.search.device)

    def values(self, first: int, vectors: Any, half: Any) -> Any:
        """How near every point of a block lies, as v; minus infinity for those left out."""
        found = torch().addmm(-half, self.vectors, vectors.T)
        here = np.flatnonzero((self.skip >= first) & (self.skip < first + len(vectors)))
        if len(here):
            found[self.there(here), self.there(self.skip[here] - first)] = -np.inf
        return found


class _Pass(_Asked):
    """One chunk of queries on its way through all points."""

    def __init__(self, search: DeviceSearch, queries: Vectors, k: int, skip: Integers, predicted: Codes | None) -> None:
        super().__init__(search, queries, skip, predicted)
        points, m = self.points, len(queries)
        self.k, far = k, len(points.outliers)
        self.usual = min(k, int(points.living.sum()) - far)
        self.count = min(len(points), k + max(16, k // 8))
        sides = (None, None) if predicted is None else _no_sides(m)
        self.found = Found(np.full((m, k), np.inf), np.zeros((m, k), np.int64), *sides)

    def run(self) -> None:
        """Find the best on the device, and measure them."""
        with torch().inference_mode():
            best = self._best()
        values, places, bars = _kept(best[0], len(self.points), len(self.points.outliers))
        counts = np.isfinite(values).sum(axis=1)
        kernels.thin(self.usual, self.asked.slack, bars, counts, values, places)
        kernels.append(counts, places, self.skip, self.points.outliers)
        measured = self._measured(counts, places, max(self.k, int(counts.max(initial=0))))
        order = np.argsort(measured, axis=1)
        kernels.rank(self.k, counts, places, measured, order, self.found.distances, self.found.places)
        self.undecided |= counts < self.k
        if self.predicted is not None:
            self._settle_sides(best[1:])

    def _best(self) -> list[tuple[Any, Any]]:
        """The best v and their places: of all points, and with a prediction of its class and of all others."""
        best: list[Any] = [None] * (1 if self.classes is None else 3)
        for first, vectors, half, codes in self.search._blocks(len(self.queries)):
            values = self.values(first, vectors, half)
            sifted = [(values, self.count)]
            if self.classes is not None:
                same = codes == self.classes
                sifted += [(values.masked_fill(~same, -np.inf), _SIDE), (values.masked_fill(same, -np.inf), _SIDE)]
            for i, (part, count) in enumerate(sifted):
                found, places = top(part, count)
                best[i] = joined(best[i], (found, places + first), count)
        return best

    def _measured(self, counts: Integers, places: Integers, width: int) -> Floats:
        """The distances of so many candidates of each query, infinite beyond them."""
        measured = np.full((len(counts), width), np.inf)
        exact = self.queries.astype(np.float64)
        for first, segment in self.points.blocks(len(self.points)):
            kernels.settle(segment, first, exact, counts, places, measured)
        return measured

    def _settle_sides(self, best: list[tuple[Any, Any]]) -> None:
        """The nearest of either side among the best of it and the outliers."""
        points, m = self.points, len(self.queries)
        assert self.found.near_distances is not None
        assert self.found.near_places is not None
        candidates = []
        for found in best:
            values, places, bars = _kept(found, len(points), 0)
            leading = values[:, 0]
            self.undecided |= np.isfinite(leading) & (bars > leading - self.asked.slack)
            candidates.append(np.where(np.isfinite(values), places, -1))
        far = np.where(points.outliers == self.skip[:, None], -1, points.outliers)
        pool = np.concatenate([*candidates, np.broadcast_to(far, (m, len(points.outliers)))], axis=1)
        asked = np.where(pool < 0, 0, pool)
        distances = self._measured(np.full(m, pool.shape[1]), asked, pool.shape[1])
        same = points.codes[asked] == np.asarray(self.predicted)[:, None]
        for side, here in enumerate((same, ~same)):
            fitting = np.where(here & (pool >= 0), distances, np.inf)
            least = fitting.min(axis=1)
            place = np.where(fitting == least[:, None], pool, len(points)).min(axis=1)
            self.found.near_distances[:, side] = least
            self.found.near_places[:, side] = np.where(np.isfinite(least), place, -1)


class _Weighing(_Asked):
    """One chunk of queries, and the weight of every point around them, summed by class."""

    def __init__(
        self, search: DeviceSearch, queries: Vectors, skip: Integers, predicted: Codes, reference: Floats, inverse: bool
    ) -> None:
        super().__init__(search, queries, skip, predicted)
        self.undecided |= self.asked.heavy
        self.reference, self.inverse = reference, inverse
        doubt = self.asked.rounding * 1e5
        self.doubt = np.sqrt(doubt) if inverse else doubt
        one = np.where(np.isfinite(reference), reference, 0)
        level, usual = self.asked.level, ~self.undecided
        with np.errstate(over="ignore", invalid="ignore"):
            zero = np.where(np.isfinite(reference), level[:, :1] - level[:, 1:] * one**2, 0)
            parts = [one, zero, level, self.doubt[:, None], one.min(axis=1, keepdims=True)]
            columns = np.where(usual[:, None], np.concatenate(parts, axis=1), 0)
            self.columns = self.there(columns.astype(np.float32))

    def run(self) -> Floats:
        """(m, classes), the sums."""
        kind = torch().float32 if self.search.device.startswith("mps") else torch().float64  # the only one it has
        totals = torch().zeros((len(self.queries), len(self.points.classes)), dtype=kind, device=self.search.device)
        with torch().inference_mode():
            for first, vectors, half, codes in self.search._blocks(2 * len(self.queries)):
                weights = self._weights(first, self.values(first, vectors, half), codes, kind)
                if self.points.weights is not None:
                    weights *= self.there(self.points.weights[first : first + len(codes)]).to(kind)
                totals.index_add_(1, codes.long(), weights)
        found: Floats = totals.cpu().numpy().astype(np.float64)
        self._add_outliers(found)
        return found

    def _weights(self, first: int, values: Any, codes: Any, kind: Any) -> Any:
        """exp(reference - distance), or 1 / distance, of a block; as ``weighing.weigh`` computes it."""
        reference, zero, (top, slope, close, nearest) = (
            self.columns[:, :2],
            self.columns[:, 2:4],
            self.columns[:, 4:, None].unbind(1),
        )
        distances = ((top - values).clamp_(min=0) / slope).sqrt_()
        if self.inverse:
            weights = distances.reciprocal()
        else:
            same = codes == self.classes
            from_, level = (torch().where(same, part[:, :1], part[:, 1:]) for part in (reference, zero))
            weights = ((values - level) / (slope * (distances + from_) + 1e-30)).exp_()
        weights = weights.masked_fill_(values == -np.inf, 0).to(kind)
        felt = (distances <= close) & (distances <= nearest + 25 + close) & (values > -np.inf)
        self._measure(first, felt.nonzero(), weights)
        return weights

    def _measure(self, first: int, felt: Any, weights: Any) -> None:
        """Weigh again, directly, the pairs of which rounding would be felt."""
        if not len(felt):
            return
        pairs = felt.cpu().numpy()
        pairs = pairs[~self.undecided[pairs[:, 0]]]
        for start in range(0, len(pairs), 2**16):
            rows, places = pairs[start : start + 2**16].T
            gaps = self.points.gather(places + first).astype(np.float64) - self.queries[rows]
            distances = np.sqrt(np.einsum("ij,ij->i", gaps, gaps))
            if self.inverse:
                exact = 1 / np.maximum(distances, weighing.LEAST)
            else:
                side = np.where(self.points.codes[places + first] == np.asarray(self.predicted)[rows], 0, 1)
                exact = np.exp(self.reference[rows, side] - distances)
            weights[self.there(rows), self.there(places)] = self.there(exact).to(weights.dtype)

    def _add_outliers(self, totals: Floats) -> None:
        vectors, places, codes = self.search.brute.outliers
        counts = self.search.brute.counts
        weighing.weigh_few(
            vectors, places, codes, self.skip, frozen(self.queries), self.predicted,
            counts[places] if len(counts) else counts, self.inverse, self.reference.copy(), self.reference, totals,
        )  # fmt: skip


def _kept(best: tuple[Any, Any], n: int, further: int) -> tuple[Vectors, Integers, Vectors]:
    """Values, largest first; places, with room for further ones; and what was dropped is below these."""
    values, places = (part.cpu().numpy() for part in best)
    room = np.zeros((len(places), places.shape[1] + further), np.int64)
    room[:, : places.shape[1]] = places
    last = values[:, -1]
    whole = (last == -np.inf) | (values.shape[1] == n)
    return values, room, np.where(whole, kernels.LOWEST, np.nextafter(last, np.float32(np.inf))).astype(np.float32)


def _no_sides(m: int) -> tuple[Floats, Integers]:
    return np.full((m, 2), np.inf), np.full((m, 2), -1, np.int64)


def _fill(found: Found, rows: Any, part: Found) -> None:
    """The answers to some queries into those to all."""
    found.distances[rows], found.places[rows] = part.distances, part.places
    if found.near_distances is not None and part.near_distances is not None:
        found.near_distances[rows] = part.near_distances
    if found.near_places is not None and part.near_places is not None:
        found.near_places[rows] = part.near_places
