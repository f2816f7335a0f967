"""Building an approximate search: axes, cells and efforts for the recall that is asked for."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np

from vicinal.errors import FileError, InputError
from vicinal.search import index_file
from vicinal.search.approximate import ApproximateSearch
from vicinal.search.cells import Axes, build
from vicinal.search.points import Points
from vicinal.search.probe import Contents
from vicinal.search.protocol import Search
from vicinal.search.tuning import Shortfall, efforts, enough_axes, hold_out

__all__ = ["approximate", "save", "saved"]

_log = logging.getLogger(__name__)

_FEW = 10_000  # points below which nothing is faster than looking at all
_STALE = 8  # built anew when one point in so many has come or gone
_CELLS = 2.0  # times the root of the number of points


def approximate(points: Points, recall: float, before: Search | None = None) -> ApproximateSearch:
    """A search of some points that finds a share of the true neighbours.

    Args:
        points: what to look through.
        recall: the share, as measured on held-out queries.
        before: a search of the points that these were made of by adding or removing some; if it is an approximate one,
            its index goes on until one point in eight has come or gone.

    Raises:
        InputError: where the share is not reached at half the work of looking at all points.
    """
    if isinstance(before, ApproximateSearch) and before.contents is not None:
        moved = before.moved_to(points)
        if moved.moved * _STALE <= moved.built:
            return moved
    n = int(points.living.sum())
    if n < _FEW:
        return ApproximateSearch(points, None)
    held, axes, best = hold_out(points), Axes.of(points), 0.0
    for count in enough_axes(points, axes, held, recall)[::2]:
        contents = Contents(points, build(points, axes.first(count), _cells(n)))
        try:
            return ApproximateSearch(points, contents, efforts(contents, held, recall), built=n)
        except Shortfall as shortfall:
            best = max(best, shortfall.best)
    raise InputError(
        f"recall: expected at most {best:.3f}, the best that approximate search finds in this bank at half the work of "
        f"looking at all points, got {recall:g}; ask for less, or use search='exact'"
    )


def _cells(n: int) -> int:
    """How many cells n points are sorted into."""
    return int(2 ** np.round(np.log2(_CELLS * np.sqrt(n))))


def save(path: str | Path, search: Search) -> None:
    """Write the index of a search, if it has one, beside the file of its bank."""
    if isinstance(search, ApproximateSearch) and search.contents is not None:
        index_file.write(index_file.beside(path), search)


def saved(path: str | Path, points: Points, recall: float) -> ApproximateSearch | None:
    """The search that was saved with the bank in a file; None, with a warning, where it cannot be used."""
    place = index_file.beside(path)
    if not place.exists():
        return None
    try:
        search = index_file.read(place, points)
    except FileError as error:
        _log.warning("%s; the index is built again", error)
        return None
    reached = search.efforts[0].measured.recall if search.efforts else 0.0
    return search if reached >= recall else None
