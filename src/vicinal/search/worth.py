"""How many axes the shadows of a bank should have: enough that few points are left, and no more.

Each choice is weighed by what it costs for each pair of a query and a point, in units that only their ratios matter of:
so many for each column of the shadows, so many for each point that is left and must be measured, beside what brute
force takes for the whole product. How many points are left is counted on some of the bank's own points, each left out.
"""

from __future__ import annotations

import numpy as np

from vicinal.checks import Floats
from vicinal.search.dots import COLUMNS, INSTRUCTED
from vicinal.search.points import Points
from vicinal.search.shadows import Shadows, turned

__all__ = ["best_width", "left"]

_WIDTHS = (7, 15, 31, 63, 127, 255, 511, 1023)  # with the length of the rest, multiples of four; and all there are
_TRIALS = 64  # points of the bank that are asked about
_POINTS = 16_384  # points that they are compared with at most
_K = 100  # neighbours within the bars, of which 50 are wanted
_FEW = 4096  # below so many points nothing is gained
# Nanoseconds for a pair, measured on one core: only their ratios matter.
_SHADOW, _COLUMN = 0.15, 0.0025 if INSTRUCTED else 0.0115  # of a shadow, and of each of its columns
_LEFT, _LEFT_COLUMN = 20.0, 0.18  # of a point that is left, and each column of it, most of it waiting for memory
_BRUTE, _BRUTE_COLUMN = 0.35, 0.016  # of a point in brute force, and each column of it
_MARGIN = 0.85  # what shadows may cost, as a share of what brute force does


def best_width(points: Points, axes: Floats) -> int:
    """How many of some axes cost least; 0 where brute force does."""
    if len(points) < _FEW:
        return 0
    d = points.dimension
    widths = sorted({width for width in (*_WIDTHS, d) if width <= min(d, COLUMNS)})
    shares = left(points, axes, widths)
    costs = [
        _SHADOW + _COLUMN * (width + 1) + share * (_LEFT + _LEFT_COLUMN * d)
        for width, share in zip(widths, shares, strict=True)
    ]
    if min(costs) > _MARGIN * (_BRUTE + _BRUTE_COLUMN * d):
        return 0
    return widths[int(np.argmin(costs))]


def left(points: Points, axes: Floats, widths: list[int]) -> list[float]:
    """For each number of axes, the share of the bank whose shadows leave open whether they are among the k nearest.

    Counted on points of the bank, each left out, for as many neighbours as their share of the points compared with.
    """
    rng = np.random.default_rng(0)
    usual = points.living.copy()
    usual[points.outliers] = False
    places = np.flatnonzero(usual)
    chosen = points.take(np.sort(rng.choice(places, min(_POINTS, len(places)), replace=False)))
    asked = rng.choice(len(chosen), min(_TRIALS, len(chosen)), replace=False)
    k = max(1, min(len(chosen) - 1, round(_K * len(chosen) / len(places))))
    seen = (chosen.segments[0] - points.centre).astype(np.float32)
    distances = _gaps(seen[asked], seen)
    distances[np.arange(len(asked)), asked] = np.inf
    bars = np.sqrt(np.partition(distances, k - 1, axis=1)[:, k - 1 : k])
    return [_open(Shadows.of(chosen, turned(axes[:, :width])), chosen, asked, bars) for width in widths]


def _open(shadows: Shadows, points: Points, asked: np.ndarray, bars: Floats) -> float:
    """The share of points whose shadows lie within the bars, going by what the shadows of a tile are off at most."""
    cast = shadows.cast(points.segments[0], points.centre).astype(np.float32)
    off = float(np.median(shadows.tiles[0].facts[:, 1]))
    return float((np.sqrt(_gaps(cast[asked], cast)) <= bars + 2 * off).mean())


def _gaps(queries: np.ndarray, points: np.ndarray) -> Floats:
    """Squared distances in float32, never below zero."""
    squares = [np.einsum("ij,ij->i", part, part) for part in (queries, points)]
    found: Floats = np.maximum(squares[0][:, None] + squares[1] - 2 * (queries @ points.T), 0)
    return found
