"""How many points each kept point stands for."""

from __future__ import annotations

import numpy as np

from vicinal.checks import Floats, Integers, Vectors
from vicinal.condensation.task import Task
from vicinal.search import BruteSearch, Points

__all__ = ["count", "nearest_kept", "takers"]


def nearest_kept(vectors: Vectors, kept: Vectors) -> Integers:
    """(n,), the row of ``kept`` nearest to each vector, ties by the lowest."""
    points = Points.of(kept, np.zeros(len(kept), np.int64))
    return BruteSearch(points).nearest(vectors, 1).places[:, 0]


def count(task: Task, places: Integers) -> Floats:
    """(m,), each point of the bank counted at the kept point of its class that is nearest, ties by the lowest place.

    The counts of a class add up to its mass. A kept point to which none is nearest, as one of two in the same place,
    shares the mass with the point that is nearest to it.
    """
    own = task.vectors[places]
    weights = np.zeros(len(places))
    for code in range(len(task.keep)):
        kept, members = np.flatnonzero(task.codes[places] == code), task.members(code)
        owners = nearest_kept(task.vectors[members], own[kept])
        sums: Floats = np.bincount(owners, task.masses[members], len(kept)).astype(np.float64)
        weights[kept] = _shared(sums, nearest_kept(own[kept], own[kept]))
    return weights


def takers(vectors: Vectors, members: Vectors) -> Integers:
    """(m,), for each new point a row of ``members``: the nearest that is still free, the nearest pairs first."""
    owner = np.full(len(vectors), -1, np.int64)
    free = np.ones(len(members), bool)
    while (owner < 0).any():
        open_, rest = np.flatnonzero(owner < 0), np.flatnonzero(free)
        wanted = rest[nearest_kept(vectors[open_], members[rest])]
        gaps = np.linalg.norm(vectors[open_].astype(np.float64) - members[wanted], axis=1)
        order = np.lexsort((open_, gaps))
        _, first = np.unique(wanted[order], return_index=True)
        owner[open_[order[first]]] = wanted[order[first]]
        free[wanted] = False
    return owner


def _shared(sums: Floats, nearest: Integers) -> Floats:
    """Empty points get an equal part of the mass of the one they coincide with."""
    empty = sums == 0
    if not empty.any():
        return sums
    home = np.where(empty, nearest, np.arange(len(sums)))
    parts: Floats = (sums / np.bincount(home, minlength=len(sums)).clip(1))[home]
    return parts
