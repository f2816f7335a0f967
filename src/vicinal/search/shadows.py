"""Shadows: a few coordinates of each point, from which its distance is bounded from below.

Write c for the centre, z = x - c for a point and w = q - c for a query, and let V (d, p) be any matrix that lengthens
nothing: |Vᵀz| <= |z| for every z. Its shadow is Vᵀz and one coordinate more, the length of what V leaves out:

    e(z) = (Vᵀz, ρ(z))    with    ρ(z)² = |z|² - |Vᵀz|²    so that    |e(z)| = |z|.

As I - VVᵀ has no negative eigenvalue, ρ is the length of some linear image of z, and such lengths obey the triangle
inequality: ρ(w - z)² >= (ρ(w) - ρ(z))². Hence, with nothing asked of V but that,

    |q - x|² = |Vᵀ(w - z)|² + ρ(w - z)² >= |Vᵀw - Vᵀz|² + (ρ(w) - ρ(z))² = |e(w) - e(z)|² = |w|² - 2 v,
    v = e(z)·e(w) - |z|²/2.

So a point whose v is below (|w|² - s)/2 lies farther away than √s. V holds principal axes, which are orthogonal but for
rounding; dividing them by more than their greatest stretch, bounded by the Frobenius norm of VᵀV - I, makes the premise
true of the very numbers that are stored.

Rounding. Let R be the longest |z| of points that are sifted, u and ε the unit roundoffs of float32 and float64. Vᵀz is
computed in float64, each of its p entries off by at most (d + 2) ε |z|, all together by √p (d + 2) ε |z|; so ρ² is off
by at most (2 √p + 2) (d + 3) ε |z|², ρ by at most the root of that; and what is stored is rounded to float32. So a
stored shadow is off by at most η |z|, of a point as of a query, with

    η = u + √p (d + 3) ε + √((2 √p + 3) (d + 3) ε).

The product of two stored shadows less the stored h = |z|²/2 is a sum of p + 2 terms, summed in float32 in any order.
All told v is off by at most

    (2.01 η + (p + 5) u) R |w|  +  (p + 6) u R²/2

and what may be flushed to zero, which is ``error`` below, with a hundredth more for all that is of second order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from vicinal import pages
from vicinal.checks import Floats, Integers, Vectors
from vicinal.search.points import Points, frozen
from vicinal.search.shifting import UNIT
from vicinal.search.sifting import GROUP, TILE

__all__ = ["Asked", "Shadows", "axes_of"]

_FINE = 2.0**-53  # the unit roundoff of float64
_TINY = 1.2e-38  # the least normal float32
_ROWS = 32 * TILE  # points whose shadows are computed together
_SAMPLE = 16_384  # points at most that the principal axes are computed from
_HUGE = 1e30  # squared lengths beyond which no shadow is kept


@dataclass(frozen=True, eq=False)
class Asked:
    """Queries, ready to be sifted.

    Attributes:
        vectors: (m', d), themselves; m' is m, and what is lacking to a multiple of GROUP.
        shadows: (m', columns), their shadows; those beyond m are zero.
        levels: (m', 2): a point as near as √s has v of at least ``levels[:, 0] - levels[:, 1] * s``.
        decided: (m',), False where values leave the range in which all this holds, and for those beyond m.
    """

    vectors: Vectors
    shadows: Vectors
    levels: Floats
    decided: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Shadows:
    """The shadows of all points of a bank.

    Attributes:
        axes: (d, p), V, in float64.
        tiles: for each segment (t, columns, TILE): p coordinates, the length of the rest, and zeros up to a multiple
            of GROUP columns.
        fitted: how many points there were when the axes were chosen.
    """

    axes: Floats
    tiles: tuple[Vectors, ...]
    fitted: int

    @classmethod
    def of(cls, points: Points, axes: Floats) -> Shadows:
        """Shadows along some axes."""
        empty = cls(axes, (), len(points))
        return empty.extended((), points)

    def extended(self, before: tuple[Vectors, ...], points: Points) -> Shadows:
        """Shadows of other points along the same axes; segments that were there before keep theirs."""
        known = {id(segment): tile for segment, tile in zip(before, self.tiles, strict=True)}
        tiles, first = [], 0
        for segment in points.segments:
            here = known.get(id(segment))
            tiles.append(self._cast(segment, points, first) if here is None else here)
            first += len(segment)
        return replace(self, tiles=tuple(tiles))

    @cached_property
    def columns(self) -> int:
        """Columns of a tile."""
        return -(-int(self.axes.shape[1] + 1) // int(GROUP)) * int(GROUP)

    def _cast(self, segment: Vectors, points: Points, first: int) -> Vectors:
        tiles = np.zeros((-(-len(segment) // TILE), self.columns, TILE), np.float32)
        for start, block in pages.walk(frozen(segment), _ROWS):
            shadows = self.cast(block, points.centre)
            for row in range(0, len(block), TILE):  # blocks of a file may begin anywhere
                self._lay(tiles, start + row, shadows[row : row + TILE])
        return tiles

    def _lay(self, tiles: Vectors, start: int, shadows: Vectors) -> None:
        while len(shadows):
            tile, column = divmod(start, TILE)
            fit = shadows[: TILE - column]
            tiles[tile, :, column : column + len(fit)] = fit.T
            start, shadows = start + len(fit), shadows[len(fit) :]

    def cast(self, vectors: Vectors, centre: Floats) -> Vectors:
        """The shadows (n, columns) of some vectors; zeros for those too long to be sifted."""
        seen = vectors.astype(np.float64) - centre
        along = seen @ self.axes
        squares = np.einsum("ij,ij->i", seen, seen)
        rest = np.sqrt(np.maximum(0, squares - np.einsum("ij,ij->i", along, along)))
        shadows = np.zeros((len(vectors), self.columns), np.float32)
        short = squares < _HUGE
        shadows[short, : along.shape[1]] = along[short]
        shadows[short, along.shape[1]] = rest[short]
        return shadows

    def ask(self, queries: Vectors, points: Points) -> Asked:
        """Queries, ready to be sifted; the module's docstring derives the bound."""
        m, (d, p) = len(queries), self.axes.shape
        padded = np.zeros((-(-m // GROUP) * GROUP, d), np.float32)
        padded[:m] = queries
        seen = padded.astype(np.float64) - points.centre
        squares = np.einsum("ij,ij->i", seen, seen)
        lengths, reach = np.sqrt(squares), points.reach
        root = np.sqrt(p)
        eta = UNIT + root * (d + 3) * _FINE + np.sqrt((2 * root + 3) * (d + 3) * _FINE)
        error = (2.01 * eta + (p + 5) * UNIT) * reach * lengths + (p + 6) * UNIT * reach**2 / 2 + _TINY * (d + p)
        error = 1.01 * error + 2 * UNIT * (lengths + reach) ** 2  # the bar is rounded to float32, too
        decided = (1e-12 < reach < 1e12) & (lengths < 1e12)
        decided[m:] = False
        shadows = self.cast(padded, points.centre)
        shadows[~decided] = 0
        levels = np.column_stack([squares / 2 - error, np.full(len(padded), 0.5 + d * _FINE)])
        return Asked(frozen(padded), shadows, levels, decided)


def tiled(points: Points, each: npt.NDArray[Any], beyond: float) -> tuple[npt.NDArray[Any], ...]:
    """What there is for each point (n,), for each segment in tiles (t, TILE), with something for padding."""
    tiles, first = [], 0
    for segment in points.segments:
        here = np.full(-(-len(segment) // TILE) * TILE, beyond, each.dtype)
        here[: len(segment)] = each[first : first + len(segment)]
        tiles.append(here.reshape(-1, TILE))
        first += len(segment)
    return tuple(tiles)


def halves_of(points: Points) -> tuple[Vectors, ...]:
    """For each segment (t, TILE), half the squared lengths; infinite for removed points, outliers and padding."""
    squares = points.squares.copy()
    squares[points.outliers] = np.inf
    with np.errstate(over="ignore"):  # where any are too long for float32, nothing is decided by shadows
        return tiled(points, (squares / 2).astype(np.float32), np.inf)


def axes_of(points: Points) -> Floats:
    """(d, d), the principal axes of points around their centre, those of the largest spread first.

    Shortened a little, so that they lengthen nothing.
    """
    places = drawn(points, _SAMPLE)
    seen = points.gather(places).astype(np.float64) - points.centre
    _, axes = np.linalg.eigh(seen.T @ seen)
    axes = np.ascontiguousarray(axes[:, ::-1])
    excess = float(np.linalg.norm(axes.T @ axes - np.eye(len(axes))))
    shortened: Floats = axes / np.sqrt(1 + 2 * excess + 4 * len(axes) ** 2 * _FINE)
    return shortened


def drawn(points: Points, most: int) -> Integers:
    """The places of living points that are no outliers, ascending; of at most so many, drawn at random."""
    usual = points.living.copy()
    usual[points.outliers] = False
    places = np.flatnonzero(usual)
    if len(places) > most:
        places = np.sort(np.random.default_rng(0).choice(places, most, replace=False))
    return places
