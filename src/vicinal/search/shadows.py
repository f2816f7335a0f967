"""Shadows: a few coordinates of each point, in whole numbers of 8 bits, from which its distance is bounded from below.

Write c for the centre, z = x - c for a point and w = q - c for a query, and let V (d, p) be any matrix that lengthens
nothing: |Vᵀz| <= |z| for every z. The shadow of z is Vᵀz and, where p < d, one coordinate more, the length of what V
leaves out:

    e(z) = (Vᵀz, ρ(z))    with    ρ(z)² = |z|² - |Vᵀz|².

As I - VVᵀ has no negative eigenvalue, ρ is the length of some linear image of z, and such lengths obey the triangle
inequality: ρ(w - z)² >= (ρ(w) - ρ(z))². Hence, with nothing asked of V but that,

    |q - x|² = |Vᵀ(w - z)|² + ρ(w - z)² >= |Vᵀw - Vᵀz|² + (ρ(w) - ρ(z))² = |e(w) - e(z)|².

V holds the principal axes, turned among themselves at random, so that no coordinate is much larger than the others, and
divided by more than their greatest stretch, bounded by the Frobenius norm of VᵀV - I: so the premise is true of the
very numbers that are stored. Nor does it matter to |e(w) - e(z)| that the same number is taken off all ρ, or that ρ is
dealt out to r equal coordinates ρ/√r, as is done to fill up the columns.

A shadow is kept as whole numbers n from -127 to 127, times a scale: s for a tile of points, t for a query. With
η(z) = |e(z) - s n(z)|, and η the largest in a tile, no point of the tile is as near as D unless

    |t n(w) - s n(z)| <= |e(w) - e(z)| + η(w) + η(z) <= D + η(w) + η =: F,    which is

    n(w)·n(z) - (s |n(z)|² / 2) / t >= (t² |n(w)|² - F²) / (2 s t).

The product is a whole number, and exact (``dots``); ``needed`` computes the right side.

Rounding. Let u and ε be the unit roundoffs of float32 and float64. Vᵀz is computed in float64, each of its p entries
off by at most (d + 2) ε |z|, all together by √p (d + 2) ε |z|; so ρ² is off by at most (2 √p + 2) (d + 3) ε |z|², ρ by
at most the root of that. This is added to η, with a little more for what is of second order. On the left side the half
square, 1/t, their product and the difference are rounded to float32, on the right side the whole: all in all less than
6 u (|n(w)| |n(z)| + s |n(z)|² / 2 t) + 2 u |right side|, which is taken off the right side. D is a distance as all are
measured, off by a share of (d + 3) ε at most.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from vicinal import pages
from vicinal.checks import Bytes, Flags, Floats, Integers, Vectors
from vicinal.search import dots
from vicinal.search.dots import GROUP, STEP, TILE
from vicinal.search.points import Points, frozen

__all__ = ["Asked", "Shadows", "Tiles", "axes_of", "drawn", "tiled", "turned"]

_FINE = 2.0**-53  # the unit roundoff of float64
_LARGEST = 127
_ROWS = 32 * TILE  # points whose shadows are computed together
_SAMPLE = 16_384  # points at most that the principal axes are computed from
_HUGE = 1e30  # squared lengths beyond which no shadow is kept
_NEAR = 1e-6  # a query nearer to the centre than this share of the longest point has its scale from there


@dataclass(frozen=True, eq=False)
class Asked:
    """Queries, ready to be sifted.

    Attributes:
        vectors: (m', d), themselves; m' is m, and what is lacking to a multiple of GROUP.
        numbers: (m', columns), uint8, the numbers of their shadows, each with 128 added.
        facts: (m', 4), of each the scale, the length of the numbers, η, and one over the scale.
        decided: (m',), False where values leave the range in which all this holds, and for those beyond m.
    """

    vectors: Vectors
    numbers: npt.NDArray[np.uint8]
    facts: Floats
    decided: Flags


@dataclass(frozen=True, eq=False)
class Tiles:
    """The shadows of a segment's points, TILE by TILE.

    Attributes:
        numbers: int8 (t, columns / STEP, ., .), as ``dots`` reads them.
        begins: int32 (t, TILE), -128 times the sum of each point's numbers.
        halves: float32 (t, TILE), s |n|² / 2; infinite for points that have no shadow, and for padding.
        facts: (t, 3), of each tile the scale s, η, and the length of the longest numbers.
    """

    numbers: Bytes
    begins: npt.NDArray[np.int32]
    halves: Vectors
    facts: Floats

    @classmethod
    def of(cls, shadows: Floats, errors: Floats, sifted: Flags) -> Tiles:
        """Of shadows (t TILE, columns), how far each may be off, and whether it is to be kept at all."""
        tiles, kept = shadows.reshape(-1, TILE, shadows.shape[1]), sifted.reshape(-1, TILE)
        tiles[~kept] = 0
        scales = np.maximum(np.abs(tiles).max(axis=(1, 2)) / _LARGEST, 1e-30)
        numbers, off = _whole(tiles, scales[:, None, None])
        off += errors.reshape(-1, TILE)
        squares = np.einsum("tji,tji->tj", numbers, numbers)
        facts = [scales, np.where(kept, off, 0).max(axis=1), np.sqrt(squares.max(axis=1))]
        return cls(
            dots.laid(numbers.transpose(0, 2, 1).astype(np.int8)),
            (-128 * numbers.sum(axis=2)).astype(np.int32),
            np.where(kept, scales[:, None] * squares / 2, np.inf).astype(np.float32),
            np.stack(facts, axis=1),
        )

    @classmethod
    def room_for(cls, count: int, part: Tiles) -> Tiles:
        """Room for so many tiles like those of a part."""
        arrays = (part.numbers, part.begins, part.halves, part.facts)
        return cls(*(np.empty((count, *array.shape[1:]), array.dtype) for array in arrays))

    def put(self, first: int, part: Tiles) -> None:
        """Part of the tiles, from one on."""
        for name in ("numbers", "begins", "halves", "facts"):
            own = getattr(part, name)
            getattr(self, name)[first : first + len(own)] = own


@dataclass(frozen=True, eq=False)
class Shadows:
    """The shadows of all points of a bank.

    Attributes:
        axes: (d, p), V, in float64.
        middle: what is taken off the length of the rest.
        tiles: of each segment.
        fitted: how many points there were when the axes were chosen.
    """

    axes: Floats
    middle: float
    tiles: tuple[Tiles, ...]
    fitted: int

    @classmethod
    def of(cls, points: Points, axes: Floats) -> Shadows:
        """Shadows along some axes."""
        empty = cls(axes, 0.0, (), len(points))
        some = points.gather(drawn(points, TILE))
        return replace(empty, middle=empty.rest_of(some, points.centre)).extended((), points)

    def extended(self, before: tuple[Vectors, ...], points: Points) -> Shadows:
        """Shadows of other points along the same axes; segments that were there before keep theirs."""
        known = {id(segment): tiles for segment, tiles in zip(before, self.tiles, strict=True)}
        tiles, first = [], 0
        for segment in points.segments:
            here = known.get(id(segment))
            tiles.append(self._cast(segment, points, first) if here is None else here)
            first += len(segment)
        return replace(self, tiles=tuple(tiles))

    @cached_property
    def columns(self) -> int:
        """Columns of a shadow: the coordinates, and the length of the rest if there is one, to a multiple of STEP."""
        d, p = self.axes.shape
        return int(-(-(p + (p < d)) // STEP) * STEP)

    def _cast(self, segment: Vectors, points: Points, first: int) -> Tiles:
        usual = points.living & (points.squares < _HUGE)
        usual[points.outliers] = False
        found, waiting, at = None, np.empty((0, self.columns)), 0
        for start, block in pages.walk(frozen(segment), _ROWS):
            ready = np.concatenate([waiting, self.cast(block, points.centre)])
            whole = len(ready) if start + len(block) == len(segment) else len(ready) // TILE * TILE
            waiting = ready[whole:]  # blocks of a file may end anywhere
            if whole:
                rows = slice(first + at, first + at + whole)
                part = self._tiles(ready[:whole], points.squares[rows], usual[rows])
                found = found or Tiles.room_for(-(-len(segment) // TILE), part)
                found.put(at // TILE, part)
                at += whole
        assert found is not None
        return found

    def _tiles(self, shadows: Floats, squares: Floats, usual: Flags) -> Tiles:
        lacking = -len(shadows) % TILE
        errors = self._rounding() * np.sqrt(np.where(usual, squares, 0))
        padded = np.concatenate([shadows, np.zeros((lacking, self.columns))])
        return Tiles.of(padded, np.append(errors, np.zeros(lacking)), np.append(usual, np.zeros(lacking, bool)))

    def cast(self, vectors: Vectors, centre: Floats) -> Floats:
        """The shadows (n, columns) of some vectors."""
        d, p = self.axes.shape
        seen = vectors.astype(np.float64) - centre
        shadows = np.zeros((len(vectors), self.columns))
        np.matmul(seen, self.axes, out=shadows[:, :p])
        if p < d:
            copies = self.columns - p
            shadows[:, p:] = ((_rest(seen, shadows[:, :p]) - self.middle) / np.sqrt(copies))[:, None]
        return shadows

    def rest_of(self, vectors: Vectors, centre: Floats) -> float:
        """The mean length of what the axes leave out."""
        seen = vectors.astype(np.float64) - centre
        return float(_rest(seen, seen @ self.axes).mean())

    def _rounding(self) -> float:
        """How far a shadow is off at most, as a share of the length of its vector, as computed in float64."""
        d, p = self.axes.shape
        along, rest = np.sqrt(p) * (d + 3) * _FINE, np.sqrt((2 * np.sqrt(p) + 3) * (d + 3) * _FINE)
        return float(1.01 * along + (1.01 * rest + 8 * _FINE if p < d else 0))

    def ask(self, queries: Vectors, points: Points) -> Asked:
        """Queries, ready to be sifted; the module's docstring derives the bound."""
        m, d = len(queries), points.dimension
        padded = np.zeros((-(-m // GROUP) * GROUP, d), np.float32)
        padded[:m] = queries
        seen = padded.astype(np.float64) - points.centre
        lengths, reach = np.sqrt(np.einsum("ij,ij->i", seen, seen)), points.reach
        decided = (1e-12 < reach < 1e12) & (lengths < 1e12)
        decided[m:] = False
        shadows = self.cast(padded, points.centre)
        shadows[~decided] = 0
        scales = np.maximum(np.abs(shadows).max(axis=1), _NEAR * reach) / _LARGEST
        numbers, off = _whole(shadows, scales[:, None])
        sizes = np.sqrt(np.einsum("ij,ij->i", numbers, numbers))
        off += self._rounding() * (lengths + abs(self.middle))
        facts = np.stack([scales, sizes, off, 1 / scales], axis=1)
        return Asked(frozen(padded), (numbers + 128).astype(np.uint8), facts, decided)


def _whole(shadows: Floats, scales: Floats) -> tuple[Floats, Floats]:
    """Shadows (..., columns) as whole numbers of their scales, still in float64; and how far these are off."""
    numbers = np.clip(np.rint(shadows / scales), -_LARGEST, _LARGEST)
    gaps = shadows - numbers * scales
    return numbers, np.sqrt(np.einsum("...i,...i->...", gaps, gaps)) * (1 + 1e-9)


def _rest(seen: Floats, along: Floats) -> Floats:
    """(n,), the length of what some coordinates leave out."""
    squares = np.einsum("ij,ij->i", seen, seen) - np.einsum("ij,ij->i", along, along)
    rest: Floats = np.sqrt(np.maximum(0, squares))
    return rest


def tiled(points: Points, each: npt.NDArray[Any], beyond: Any) -> tuple[npt.NDArray[Any], ...]:
    """What there is for each point (n,), for each segment in tiles (t, TILE), with something for padding."""
    tiles, first = [], 0
    for segment in points.segments:
        here = np.full(-(-len(segment) // TILE) * TILE, beyond, each.dtype)
        here[: len(segment)] = each[first : first + len(segment)]
        tiles.append(here.reshape(-1, TILE))
        first += len(segment)
    return tuple(tiles)


def axes_of(points: Points) -> Floats:
    """(d, d), the principal axes of points around their centre, those of the largest spread first."""
    places = drawn(points, _SAMPLE)
    seen = points.gather(places).astype(np.float64) - points.centre
    _, axes = np.linalg.eigh(seen.T @ seen)
    return np.ascontiguousarray(axes[:, ::-1])


def turned(axes: Floats) -> Floats:
    """Some axes, turned among themselves at random, and shortened a little, so that they lengthen nothing."""
    turn, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((axes.shape[1],) * 2))
    found = axes @ turn
    excess = float(np.linalg.norm(found.T @ found - np.eye(axes.shape[1])))
    shortened: Floats = found / np.sqrt(1 + 2 * excess + 4 * len(axes) ** 2 * _FINE)
    return shortened


def drawn(points: Points, most: int) -> Integers:
    """The places of living points that are no outliers, ascending; of at most so many, drawn at random."""
    usual = points.living.copy()
    usual[points.outliers] = False
    places = np.flatnonzero(usual)
    if len(places) > most:
        places = np.sort(np.random.default_rng(0).choice(places, most, replace=False))
    return places
