"""The index of approximate search: points sorted into cells, each seen only by its shadow along a few axes.

    Axes      the directions along which the points spread most, and shadows along them
    Layer     the shadows of some points in 8 bits, those of a cell side by side
    Blocks    the same, as the loops read them
    Index     the centres of the cells, and layers: points that are added come in layers of their own

A shadow and the length of the whole vector tell how near two points lie, but for the product of what lies off the axes:
|x - q|² = |x|² + |q|² - 2 (shadows' product) - 2 (the rest's product), and the rest is short and points anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from vicinal.checks import Bytes, Floats, Integers, Vectors
from vicinal.progress import track
from vicinal.search.dots import BLOCK, STEP, laid
from vicinal.search.points import Points
from vicinal.search.threads import Halt, spread

__all__ = ["Axes", "Blocks", "Index", "Layer", "build", "whole"]

_SEEN = 16_384  # points that the axes are found from
_EACH = 32  # points of each cell, on average, that centres are found from
_ROUNDS = 8  # of Lloyd's algorithm
_BLOCK = 2_048  # points whose nearest centres are found together
_ROWS = 16_384  # points whose shadows are cast together
_LOST = 1e4  # times the usual length: queries beyond it are left to brute force
_REACH = 1e12  # times the usual length: beyond it, products leave float32's range


@dataclass(frozen=True, eq=False)
class Axes:
    """Directions, and from where to look along them.

    Attributes:
        centre: (d,), float32.
        scale: a power of two that brings vectors to about length 1.
        directions: (d, p), float32, each of length 1, at right angles, those along which the points spread most first.
    """

    centre: Vectors
    scale: float
    directions: Vectors

    @classmethod
    def of(cls, points: Points) -> Axes:
        """All d principal axes of a sample of some points."""
        usual = points.living.copy()
        usual[points.outliers] = False
        sample = _sample(np.flatnonzero(usual), _SEEN, 1)
        reach = points.reach
        scale = 1.0 if reach == 0 else float(2.0 ** -np.round(np.log2(reach)))
        centred = (points.gather(sample).astype(np.float64) - points.centre) * scale
        directions = np.linalg.eigh(centred.T @ centred)[1][:, ::-1]
        return cls(points.centre.astype(np.float32), scale, np.ascontiguousarray(directions, dtype=np.float32))

    def first(self, count: int) -> Axes:
        """Only the first of them, turned among themselves at random: no coordinate is then much larger than others."""
        turn, _ = np.linalg.qr(np.random.default_rng(5).standard_normal((count, count)))
        return replace(self, directions=(self.directions[:, :count] @ turn).astype(np.float32))

    def shadows(self, vectors: Vectors) -> Vectors:
        """(m, p), float32; of what leaves float32's range, whatever comes out."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._seen(vectors) @ self.directions

    def lost(self, queries: Vectors) -> npt.NDArray[np.bool_]:
        """Whether queries lie so far out that float32 products with them tell points apart no more."""
        with np.errstate(over="ignore", invalid="ignore"):
            inside: npt.NDArray[np.bool_] = np.abs(self._seen(queries)).max(axis=1) < _LOST
        return ~inside

    def _seen(self, vectors: Vectors) -> Vectors:
        seen: Vectors = (vectors - self.centre) * np.float32(self.scale)
        return seen

    def far(self, squares: Floats) -> npt.NDArray[np.bool_]:
        """Whether points of some squared lengths lie so far out that they have no use for shadows."""
        found: npt.NDArray[np.bool_] = squares > (_REACH / self.scale) ** 2
        return found


@dataclass(frozen=True, eq=False)
class Blocks:
    """The points of a layer, BLOCK by BLOCK: each cell begins with a block of its own.

    Attributes:
        numbers: int8 (blocks, columns / STEP, ., .), as ``dots`` reads them.
        begins: int32 (blocks, BLOCK), -128 times the sum of each point's numbers.
        starts: (cells + 1,), the block with which each cell begins.
        slots: (n,), where each point lies: its block times BLOCK, and its place therein.
    """

    numbers: Bytes
    begins: npt.NDArray[np.int32]
    starts: Integers
    slots: Integers

    @classmethod
    def of(cls, numbers: Bytes, starts: Integers) -> Blocks:
        """Of the numbers (n, p) of points in the order of their cells."""
        sizes = np.diff(starts)
        begun = np.concatenate([[0], np.cumsum(-(-sizes // BLOCK))])
        slots = np.repeat(begun[:-1] * BLOCK - starts[:-1], sizes) + np.arange(len(numbers))
        rows = np.zeros((begun[-1] * BLOCK, -(-numbers.shape[1] // STEP) * STEP), np.int8)
        rows[slots, : numbers.shape[1]] = numbers
        begins = -128 * rows.sum(axis=1, dtype=np.int32).reshape(-1, BLOCK)
        return cls(laid(rows.reshape(len(begins), BLOCK, -1).swapaxes(1, 2)), begins, begun, slots)

    def spread(self, each: npt.NDArray[Any], beyond: float) -> npt.NDArray[Any]:
        """What there is for each point (n,), where it lies (blocks, BLOCK), with something else between."""
        found = np.full(self.begins.size, beyond, each.dtype)
        found[self.slots] = each
        return found.reshape(self.begins.shape)


@dataclass(frozen=True, eq=False)
class Layer:
    """Some points in the order of their cells.

    Attributes:
        numbers: (n, p), int8: their shadows, from the centre of the cell on, over their scales.
        scales: (n,), float32.
        places: (n,), ascending within a cell.
        starts: (cells + 1,), where each cell begins.
    """

    numbers: Bytes
    scales: Vectors
    places: Integers
    starts: Integers

    @classmethod
    def of(cls, numbers: Bytes, scales: Vectors, places: Integers, owners: Integers, cells: int) -> Layer:
        """Points sorted into cells; ``owners`` (n,) says into which."""
        order = np.argsort(owners, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=cells))])
        return cls(numbers[order], scales[order], places[order], starts)

    @cached_property
    def blocks(self) -> Blocks:
        """The same, as it is searched."""
        return Blocks.of(self.numbers, self.starts)

    @property
    def owners(self) -> Integers:
        """(n,), the cell of each point."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def join(self, other: Layer) -> Layer:
        """The points of both."""
        numbers, scales, places, owners = (
            np.concatenate([getattr(one, name) for one in (self, other)])
            for name in ("numbers", "scales", "places", "owners")
        )
        return Layer.of(numbers, scales, places, owners, len(self.starts) - 1)


@dataclass(frozen=True, eq=False)
class Index:
    """Points in cells.

    Attributes:
        axes: along which shadows are cast.
        centres: (cells, p), float32, the centres of the cells, as shadows.
        layers: the points, each in one of them.
    """

    axes: Axes
    centres: Vectors
    layers: tuple[Layer, ...]

    @cached_property
    def half(self) -> Vectors:
        """(cells,), half the squared length of each centre."""
        squares: Floats = np.einsum("ij,ij->i", self.centres, self.centres)
        return (squares / 2).astype(np.float32)

    @property
    def size(self) -> int:
        """How many points there are, the removed ones too."""
        return sum(len(layer.places) for layer in self.layers)

    def add(self, points: Points) -> Index:
        """The same with all points that it does not have yet, which have the last places."""
        first = self.size
        if first == len(points):
            return self
        places = np.arange(first, len(points))
        shadows = cast(self.axes, points, places)
        owners = nearest(shadows, self.centres)
        layers = (*self.layers, Layer.of(*off(shadows, self.centres, owners), places, owners, len(self.centres)))
        while len(layers) > 1 and len(layers[-2].places) < 2 * len(layers[-1].places):
            layers = (*layers[:-2], layers[-2].join(layers[-1]))
        return replace(self, layers=layers)


def build(points: Points, axes: Axes, cells: int) -> Index:
    """An index of some points, with cells around the centres that k-means finds; removed points are in it too."""
    shadows = cast(axes, points, np.arange(len(points)))
    near = points.living & ~axes.far(points.squares)
    centres = _centres(shadows[_sample(np.flatnonzero(near), _EACH * cells, 2)], cells)
    owners = nearest(shadows, centres)
    layer = Layer.of(*off(shadows, centres, owners), np.arange(len(points)), owners, cells)
    return Index(axes, centres, (layer,))


def cast(axes: Axes, points: Points, places: Integers) -> Vectors:
    """(m, p), the shadows of the points at some places, ascending and without gaps."""
    shadows = np.empty((len(places), axes.directions.shape[1]), np.float32)
    for first, block in points.blocks(_ROWS, only=None if len(places) == len(points) else places):
        start, stop = max(first, int(places[0])), min(first + len(block), int(places[-1]) + 1)
        if start < stop:
            shadows[start - places[0] : stop - places[0]] = axes.shadows(block[start - first : stop - first])
    return np.nan_to_num(shadows, copy=False, nan=0.0, posinf=0.0, neginf=0.0)


def off(shadows: Vectors, centres: Vectors, owners: Integers) -> tuple[Bytes, Vectors]:
    """What shadows (n, p) are off the centres of their cells, as a layer has it: numbers and scales."""
    numbers = np.empty(shadows.shape, np.int8)
    scales = np.empty(len(shadows), np.float32)
    for start in range(0, len(shadows), _ROWS):
        part = slice(start, start + _ROWS)
        numbers[part], scales[part] = whole(shadows[part] - centres[owners[part]])
    return numbers, scales


def whole(shadows: Vectors) -> tuple[Bytes, Vectors]:
    """Shadows (n, p) in whole numbers from -127 to 127, and their scales (n,), float32."""
    scales = np.maximum(np.abs(shadows).max(axis=1), np.float32(1e-30)) / np.float32(127)
    return np.rint(shadows / scales[:, None]).clip(-127, 127).astype(np.int8), scales


def nearest(shadows: Vectors, centres: Vectors) -> Integers:
    """(n,), the nearest centre of each."""
    half = np.einsum("ij,ij->i", centres, centres) / 2
    owners = np.empty(len(shadows), np.int64)

    def work(start: int, halt: Halt) -> None:
        if not halt.is_set():
            part = slice(start, start + _BLOCK)
            owners[part] = np.subtract(shadows[part] @ centres.T, half, dtype=np.float32).argmax(axis=1)

    rounds = list(range(0, len(shadows), _BLOCK))
    for start in track(range(0, len(rounds), 64), "sorting into cells"):
        spread(work, rounds[start : start + 64])
    return owners


def _centres(sample: Vectors, cells: int) -> Vectors:
    """(cells, p): k-means; a centre that loses all its points begins again at one of the sample."""
    generator = np.random.default_rng(3)
    centres = sample[generator.choice(len(sample), cells, replace=False)]
    for _ in range(_ROUNDS):
        owners = nearest(sample, centres)
        order, counts = np.argsort(owners, kind="stable"), np.bincount(owners, minlength=cells)
        used = np.flatnonzero(counts)
        starts = np.concatenate([[0], np.cumsum(counts[used])[:-1]])
        centres = sample[generator.choice(len(sample), cells)]
        centres[used] = np.add.reduceat(sample[order], starts, axis=0) / counts[used, None]
    return centres


def _sample(places: Integers, size: int, seed: int) -> Integers:
    """At most so many of some places, ascending."""
    if len(places) <= size:
        return places
    found: Integers = np.sort(np.random.default_rng(seed).choice(places, size, replace=False))
    return found
