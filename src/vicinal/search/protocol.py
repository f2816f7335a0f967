"""What every way to search offers, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from vicinal.checks import Floats, Integers, Vectors

__all__ = ["Approximate", "Codes", "Found", "Masses", "Measured", "Search"]

Codes = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Found:
    """The k nearest points of each of m queries, by place.

    Attributes:
        distances: (m, k), float64, ascending, measured directly.
        places: (m, k); ties stand in the order of their places.
        near_distances: (m, 2), to the nearest point of the predicted class (column 0) and of any other (column 1),
            infinite where there is none; None where no prediction was given.
        near_places: (m, 2), -1 where there is none.
        recall: the share of the true neighbours that the search finds, as it was measured; 1 for exact ones.
    """

    distances: Floats
    places: Integers
    near_distances: Floats | None = None
    near_places: Integers | None = None
    recall: float = 1.0


@dataclass(frozen=True)
class Measured:
    """What approximate search finds and what it costs, measured on points of the bank, each left out.

    Attributes:
        recall: the share of the true k nearest that are found; a point as near as the k-th counts.
        sides: the share of the nearest points of the predicted class, and of any other, that are found.
        flop: floating-point operations of a query, in the mean: 2d for each distance in d columns.
        queries: how many queries it was measured on.
    """

    recall: float
    sides: float
    flop: float
    queries: int


@dataclass(frozen=True, eq=False)
class Masses:
    """The summed weights around each of m queries, as logarithms; minus infinity where nothing is summed.

    Attributes:
        same: (m,), of the predicted class.
        rival: (m,), of the other class with the largest mass.
        rest: (m,), of all further classes.
        rival_codes: (m,), the rival as a place in the sorted classes of the bank; -1 where there is no other class.
    """

    same: Floats
    rival: Floats
    rest: Floats
    rival_codes: Codes


class Search(Protocol):
    """A way to find the nearest of some points. Exact ones agree with brute force to the last bit, ties included."""

    def nearest(
        self, queries: Vectors, k: int, *, exclude: Integers | None = None, predicted: Codes | None = None
    ) -> Found:
        """The k nearest points of each query.

        Args:
            queries: (m, d).
            k: from 1 to the number of living points, less one where a place is excluded.
            exclude: (m,), for each query a place that does not count; -1 for none.
            predicted: (m,), class codes; with them, the nearest point of that class and of any other are found as well.
        """
        ...

    def masses(
        self, queries: Vectors, k: int, predicted: Codes, *, inverse: bool = False, exclude: Integers | None = None
    ) -> tuple[Found, Masses]:
        """The k nearest as above, and the weight of *every* point, exp(-distance) or 1 / distance, summed by class."""
        ...


@runtime_checkable
class Approximate(Search, Protocol):
    """A search that may miss some of the nearest, and has measured how many."""

    def measured(self, k: int) -> Measured | None:
        """What it finds of k neighbours, and what that costs; None where all points are looked at for so many."""
        ...
