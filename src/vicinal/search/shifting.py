"""Queries made ready for products in float32, and how far those products may be off; ``brute`` derives the bound."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from vicinal.checks import Floats, Vectors
from vicinal.search.points import Points

__all__ = ["UNIT", "Shifted", "scale_of", "shift"]

UNIT = 2.0**-24  # the unit roundoff of float32
_TINY = 1.2e-38  # the least normal float32: what flushing to zero may cost


@dataclass(frozen=True, eq=False)
class Shifted:
    """Queries seen from the centre of some points.

    Attributes:
        vectors: (m, d), q̂ = σ² (q - c); zeros where it leaves float32's range.
        level: (m, 2): v of a point at squared distance s is ``level[:, 0] - level[:, 1] * s``.
        slack: (m,), twice what v may be off.
        rounding: (m,), what a squared distance from v may be off.
        undecided: (m,), whether values leave float32's range, so that only direct measurement tells.
    """

    vectors: Vectors
    level: Floats
    slack: Vectors
    rounding: Floats
    undecided: npt.NDArray[np.bool_]

    @cached_property
    def heavy(self) -> npt.NDArray[np.bool_]:
        """(m,), whether squares leave float32's range where v does not."""
        return (self.level[:, 0] > 1e30) | ~((self.level[:, 1] > 0.5e-24) & (self.level[:, 1] < 0.5e24))


def scale_of(points: Points) -> float:
    """σ², a power of two that brings the longest centred point to about length 1."""
    longest = points.reach**2
    return 1.0 if longest == 0 else float(2.0 ** -np.round(np.log2(longest)))


def shift(queries: Vectors, points: Points, scale: float, *, unit: float = UNIT) -> Shifted:
    """Queries seen from the centre of some points.

    Args:
        queries: (m, d).
        points: what they are compared with.
        scale: σ².
        unit: how far each factor of a product may be off, as a share of it; sums are taken to be in float32.
    """
    shifted = queries.astype(np.float64) - points.centre
    lengths = np.einsum("ij,ij->i", shifted, shifted)
    origin = float(np.sqrt(points.centre @ points.centre))
    reach = points.reach + origin  # no point that is sifted is longer
    longest = points.radius + origin  # no point at all is
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = (shifted * scale).astype(np.float32)
    size, d, half = reach * np.sqrt(lengths) * scale, points.dimension, points.reach**2 * scale
    coarse = 2.01 * max(0.0, unit - UNIT)
    error = size * ((d + 3) * UNIT + coarse) + 1.5 * UNIT * half + _TINY * d * (1 + reach)
    fits = (longest * np.sqrt(lengths) * scale < 1e36) & (error < 1e38)
    undecided = ~(fits & np.isfinite(scaled).all(axis=1))
    scaled[undecided] = 0
    slack = np.where(undecided, 0, 2.02 * error).astype(np.float32)
    level = np.column_stack([scale * (lengths / 2 + shifted @ points.centre), np.full(len(queries), scale / 2)])
    rounding = (4 * UNIT + 2 * coarse) * (size + half) / scale
    return Shifted(scaled, level, slack, rounding, undecided)
