"""A bank that searches once for some queries, so that all scores of them share that search."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from vicinal.bank import Bank
from vicinal.checks import Integers, Vectors
from vicinal.values import Nearest, Neighbors

__all__ = ["Remembering"]


class Remembering(Bank):
    """A bank that answers from one search at the largest k that will be asked for; anything else it searches.

    Args:
        bank: to search.
        k: the largest number of neighbours.

    Example:
        >>> from vicinal import score
        >>> bank = Remembering(Bank([[0.0], [1.0], [4.0]], [0, 0, 1]), k=3)
        >>> queries = np.array([[0.5]], np.float32)
        >>> [float(score.distance(bank, queries, [0], k=k).confidence[0].round(3)) for k in (2, 3)]
        [1.0, 0.976]
        >>> bank.searches
        1
    """

    def __init__(self, bank: Bank, k: int) -> None:
        vars(self).update(vars(bank))
        self.k, self.searches = min(k, len(bank)), 0
        self._last: tuple[Vectors, Integers] | None = None
        self._found: Neighbors | None = None

    def nearest(
        self, queries: Any, k: int = 50, *, predicted: Any = None, exclude_self: bool | Any = False
    ) -> Neighbors:
        """As :meth:`Bank.nearest`; from memory, where the last queries and predictions come again."""
        if predicted is not None and exclude_self is False and k <= self.k:
            if self._found is None or not self._knows(queries, predicted):
                self._found = super().nearest(queries, self.k, predicted=predicted)
                self._last, self.searches = (np.array(queries), np.array(predicted)), self.searches + 1
            return self._found.first(k)
        if exclude_self is False and k <= self.k and self._found is not None and self._knows(queries, None):
            return replace(self._found.first(k), same=None, other=None)
        return super().nearest(queries, k, predicted=predicted, exclude_self=exclude_self)

    def scaled(self, factor: float) -> Remembering:
        """The same answers with every distance multiplied: as if all vectors had been."""
        found = Remembering(self, self.k)
        near = self._found
        if near is not None:
            near = replace(
                near,
                distances=near.distances * factor,
                same=_times(near.same, factor),
                other=_times(near.other, factor),
            )
        found._last, found._found = self._last, near
        return found

    def _knows(self, queries: Any, predicted: Any) -> bool:
        assert self._last is not None
        known, labels = self._last
        return np.array_equal(known, queries) and (predicted is None or np.array_equal(labels, predicted))


def _times(near: Nearest | None, factor: float) -> Nearest | None:
    return None if near is None else replace(near, distances=near.distances * factor)
