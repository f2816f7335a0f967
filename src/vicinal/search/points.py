"""What a search looks through: the points of a bank, in the order of their places."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from vicinal import pages
from vicinal.checks import Floats, Integers, Vectors
from vicinal.search import kernels

__all__ = ["Gathered", "Points", "frozen"]

_FAR = 4.0  # times as far from the centre as nearly all others: an outlier
_RARE = 64  # at most one point in so many may be one
_ROWS = 65_536  # points that are looked at together


@dataclass(frozen=True, eq=False)
class Points:
    """Points in one or more segments, with what every exact search needs to know of them beforehand.

    A point's place is its row in the segments laid end to end. A removed point keeps its place, and has an infinite
    squared length, so that no search ever finds it.

    Attributes:
        segments: arrays (n_s, d), float32, in memory or mapped from a file.
        labels: (n,), the classes.
        centre: (d,), float64, the mean of the first segment; lengths are measured from it, because float32 loses the
            difference between points that lie far from the origin and near each other.
        squares: (n,), float64, |x - centre|², infinite for removed points.
        weights: (n,), float64, how many points each stands for; None where each stands for itself.
    """

    segments: tuple[Vectors, ...]
    labels: Integers
    centre: Floats
    squares: Floats
    weights: Floats | None = None

    @classmethod
    def of(cls, vectors: Vectors, labels: Integers, weights: Floats | None = None) -> Points:
        """Points in one segment, around their mean, or that of nearly all of them where a few lie far out."""
        centre = _mean(vectors)
        points = cls((vectors,), labels, centre, _squared_lengths(vectors, centre), weights)
        if not len(points.outliers):
            return points
        centre = _mean(vectors, points.outliers)
        return replace(points, centre=centre, squares=_squared_lengths(vectors, centre))

    def add(self, vectors: Vectors, labels: Integers, weights: Floats | None = None) -> Points:
        """These points and more, which take the next places."""
        if weights is not None or self.weights is not None:
            each = ((self.weights, len(self)), (weights, len(vectors)))
            weights = np.concatenate([np.ones(n) if part is None else part for part, n in each])
        return Points(
            _merged((*self.segments, vectors)),
            np.concatenate([self.labels, labels]),
            self.centre,
            np.concatenate([self.squares, _squared_lengths(vectors, self.centre)]),
            weights,
        )

    def remove(self, places: Integers) -> Points:
        """All but the points at some places; the others keep theirs."""
        squares = self.squares.copy()
        squares[places] = np.inf
        return replace(self, squares=squares)

    def take(self, places: Integers) -> Points:
        """Only the points at some places, copied, in the order given."""
        weights = None if self.weights is None else self.weights[places]
        return Points((self.gather(places),), self.labels[places], self.centre, self.squares[places], weights)

    def __len__(self) -> int:
        return len(self.squares)

    @property
    def dimension(self) -> int:
        """d, the number of columns."""
        return int(self.segments[0].shape[1])

    @property
    def mapped(self) -> bool:
        """Whether some of the vectors lie in a file, so that they may be more than the memory holds."""
        return any(map(pages.is_mapped, self.segments))

    @cached_property
    def living(self) -> npt.NDArray[np.bool_]:
        """(n,), False for removed points."""
        alive: npt.NDArray[np.bool_] = np.isfinite(self.squares)
        return alive

    @cached_property
    def classes(self) -> Integers:
        """The labels of the living points, sorted, each once."""
        labels = self.labels[self.living]
        low, high = int(labels.min()), int(labels.max())
        if high - low > 4 * len(self):
            return np.unique(labels)
        seen = np.zeros(high - low + 1, np.bool_)  # many times faster than sorting millions
        seen[labels - low] = True
        return np.flatnonzero(seen) + low

    @cached_property
    def codes(self) -> npt.NDArray[np.int32]:
        """(n,), each point's class as its place in ``classes``; removed points have any code."""
        return self.code(self.labels, removed=0)

    def code(self, labels: Integers, *, removed: int = -1) -> npt.NDArray[np.int32]:
        """Labels as places in ``classes``; labels of no living point become ``removed``."""
        if self._table is None:
            places = np.searchsorted(self.classes, labels)
            places[places == len(self.classes)] = 0
            known = self.classes[places] == labels
        else:  # many times faster, where the labels leave no large gaps
            known = (labels >= self.classes[0]) & (labels <= self.classes[-1])
            places = self._table[np.where(known, labels, self.classes[0]) - self.classes[0]]
            known &= places >= 0
        found: npt.NDArray[np.int32] = np.where(known, places, removed).astype(np.int32, copy=False)
        return found

    @cached_property
    def _table(self) -> npt.NDArray[np.int32] | None:
        """From a label, less the lowest, to its place in ``classes``, -1 for gaps; None where most would be gaps."""
        low, high = int(self.classes[0]), int(self.classes[-1])
        if high - low > 4 * len(self):
            return None
        table = np.full(high - low + 1, -1, np.int32)
        table[self.classes - low] = np.arange(len(self.classes))
        return table

    @cached_property
    def radius(self) -> float:
        """The largest distance of a living point from the centre."""
        return float(np.sqrt(self.squares[self.living].max()))

    @cached_property
    def outliers(self) -> Integers:
        """Places of the few points that lie many times farther out than nearly all others.

        The error of a product in float32 is bounded by the longest vector, so one such point would spoil the bound for
        all; searches measure these directly instead.
        """
        lengths = self.squares[self.living]
        usual = np.partition(lengths, -(len(lengths) // _RARE) - 1)[-(len(lengths) // _RARE) - 1]
        return np.flatnonzero(self.living & (self.squares > _FAR**2 * usual))

    @cached_property
    def reach(self) -> float:
        """The largest distance from the centre of a living point that is no outlier."""
        usual = self.living.copy()
        usual[self.outliers] = False
        return float(np.sqrt(self.squares[usual].max()))

    def gather(self, places: Integers) -> Vectors:
        """The vectors at some places, as a new array."""
        out = np.empty((len(places), self.dimension), np.float32)
        for first, block in self.blocks(len(self), only=places):
            here = (places >= first) & (places < first + len(block))
            out[here] = block[places[here] - first]
        return out

    def among(self, counts: Integers, places: Integers) -> Integers:
        """Of candidates, so many in each row of ``places``: each place once, ascending."""
        there = np.zeros(len(self), np.bool_)  # many times faster than sorting
        there[places[np.arange(places.shape[1]) < counts[:, None]]] = True
        return np.flatnonzero(there)

    def blocks(self, width: int, *, only: Integers | None = None) -> Iterator[tuple[int, Vectors]]:
        """The points in blocks of at most ``width``, read-only, each with the place of its first.

        Points in a file come in blocks that are small beside the memory, and each block is given back when the next is
        asked for. Where only a few points will be looked at, ``only`` names them; blocks without any may be left out.
        """
        first = 0
        for segment in map(frozen, self.segments):
            inside = None if only is None else only[(only >= first) & (only < first + len(segment))] - first
            for start, block in pages.walk(segment, width, only=inside):
                yield first + start, block
            first += len(segment)


def _mean(vectors: Vectors, without: Integers | None = None) -> Floats:
    """The mean of all vectors but those of some rows, summed row by row in float64."""
    total, n = np.zeros(vectors.shape[1]), len(vectors)
    for first, block in pages.walk(frozen(vectors), _ROWS):
        if without is not None:
            block = np.delete(block, without[(without >= first) & (without < first + len(block))] - first, axis=0)
        kernels.add_up(frozen(block), total)
    mean: Floats = total / (n if without is None else n - len(without))
    return mean


def _squared_lengths(vectors: Vectors, centre: Floats) -> Floats:
    squares = np.empty(len(vectors))
    for first, block in pages.walk(frozen(vectors), _ROWS):
        kernels.squared_lengths(block, centre, squares[first : first + len(block)])
    return squares


def _merged(segments: tuple[Vectors, ...]) -> tuple[Vectors, ...]:
    """Join the last segments while the earlier of two is not twice as long: many small additions stay few segments."""
    while len(segments) > 2 and len(segments[-2]) < 2 * len(segments[-1]):
        segments = (*segments[:-2], np.concatenate(segments[-2:]))
    return segments


def frozen(vectors: Vectors) -> Vectors:
    """The same array, read-only: compiled loops are compiled once for these, and not again for those of a file."""
    view = vectors.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, eq=False)
class Gathered:
    """The vectors at some places, copied as they are asked for: an array (see :class:`vicinal.store.Rows`)."""

    points: Points
    places: Integers

    @property
    def dtype(self) -> np.dtype[np.float32]:
        """The type of the vectors."""
        return np.dtype(np.float32)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, d)."""
        return len(self.places), self.points.dimension

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, rows: slice | Integers, /) -> Vectors:
        return self.points.gather(self.places[rows])
