"""How many axes the shadows of a bank should have: enough that few points are left, and no more.

Each choice is weighed by what it costs for each pair of a query and a point, in units that only their ratios matter of:
so many for each column of the shadows, so many for each point that is left and must be measured, beside what brute
force takes for the whole product. How many points are left is counted on some of the bank's own points, each left out.
"""

from __future__ import annotations

import numpy as np

from vicinal.checks import Floats
from vicinal.search.points import Points

__all__ = ["best_width", "left"]

_WIDTHS = (7, 11, 15, 23, 31, 47, 63, 95, 127, 191, 255)  # with the length of the rest, multiples of four
_WIDEST = 0.75  # of the columns: beyond that, little is saved even where nothing is left
_TRIALS = 64  # points of the bank that are asked about
_POINTS = 32_768  # points that they are compared with at most
_K = 100  # neighbours within the bars, of which 50 are wanted
_FEW = 4096  # below so many points nothing is gained
# Nanoseconds for a pair, measured on one core: only their ratios matter.
_SHADOW, _COLUMN = 0.15, 0.0145  # of a shadow, and each of its columns, with what the sample costs
_LEFT, _LEFT_COLUMN = 20.0, 0.18  # of a point that is left, and each column of it, most of it waiting for memory
_BRUTE, _BRUTE_COLUMN = 0.35, 0.016  # of a point in brute force, and each column of it
_MARGIN = 0.85  # what shadows may cost, as a share of what brute force does


def best_width(points: Points, axes: Floats) -> int:
    """How many of some axes cost least; 0 where brute force does."""
    if len(points) < _FEW:
        return 0
    d = points.dimension
    widths = [width for width in _WIDTHS if width <= _WIDEST * d]
    shares = left(points, axes, widths)
    costs = [
        _SHADOW + _COLUMN * (width + 1) + share * (_LEFT + _LEFT_COLUMN * d)
        for width, share in zip(widths, shares, strict=True)
    ]
    if not costs or min(costs) > _MARGIN * (_BRUTE + _BRUTE_COLUMN * d):
        return 0
    return widths[int(np.argmin(costs))]


def left(points: Points, axes: Floats, widths: list[int]) -> list[float]:
    """For each number of axes, the share of the bank whose shadows lie no farther than the k-th neighbour does.

    Counted on points of the bank, each left out, for as many neighbours as their share of the points compared with.
    """
    rng = np.random.default_rng(0)
    usual = points.living.copy()
    usual[points.outliers] = False
    places = np.flatnonzero(usual)
    chosen = np.sort(rng.choice(places, min(_POINTS, len(places)), replace=False))
    seen = (points.gather(chosen) - points.centre).astype(np.float32)
    turned = seen @ axes.astype(np.float32)
    asked = rng.choice(len(chosen), min(_TRIALS, len(chosen)), replace=False)
    k = max(1, min(len(chosen) - 1, round(_K * len(chosen) / len(places))))
    squares = np.einsum("ij,ij->i", turned, turned)
    distances = squares[asked, None] + squares - 2 * (turned[asked] @ turned.T)
    distances[np.arange(len(asked)), asked] = np.inf
    bars = np.partition(distances, k - 1, axis=1)[:, k - 1 : k]
    shares = []
    for width in widths:
        along = turned[:, :width]
        lengths = np.einsum("ij,ij->i", along, along)
        rest = np.sqrt(np.maximum(0, squares - lengths))
        bounds = lengths[asked, None] + lengths - 2 * (along[asked] @ along.T) + (rest[asked, None] - rest) ** 2
        shares.append(float((bounds <= bars).mean()))
    return shares
