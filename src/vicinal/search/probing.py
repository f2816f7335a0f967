"""The inner loops of approximate search, compiled by Numba: what is found in the cells that are looked into.

As in ``brute``, v = x·q - h falls as the distance grows, here from shadows: x and q along a few axes only. A cell is a
run of points, from ``starts[cell]`` to ``starts[cell + 1]``, that lie side by side.
"""

from __future__ import annotations

import numpy as np

from vicinal.compiled import compiled
from vicinal.search.kernels import FAST, LOWEST, shrink

ANY, SAME, OTHER = -1, 0, 1  # which points count: all, those of the predicted class, those of any other
MIXED, EMPTY = -2, -3  # in place of the only class of a cell
_STRIP = 512  # points whose values are computed together
_FOUR = 4  # points that are multiplied together, so that a query's entry is loaded once for all of them


@compiled()
def group(chosen, cells):
    """Who looks into each cell: queries, those of cell c from ``starts[c]`` to ``starts[c + 1]``."""
    starts = np.zeros(cells + 1, np.int64)
    for cell in chosen.ravel():
        if cell >= 0:
            starts[cell + 1] += 1
    for cell in range(cells):
        starts[cell + 1] += starts[cell]
    queries, filled = np.empty(starts[cells], np.int64), starts[:-1].copy()
    for i in range(chosen.shape[0]):
        for cell in chosen[i]:
            if cell >= 0:
                queries[filled[cell]] = i
                filled[cell] += 1
    return starts, queries


@compiled(fastmath=FAST)
def scan(
    shadows,
    half,
    places,
    codes,
    starts,
    who_starts,
    who,
    queries,
    skip,
    wanted,
    side,
    keep,
    bars,
    counts,
    values,
    found,
):
    """Look through the cells for the ``keep`` points with the largest v of each query.

    ``counts``, ``values`` and ``found`` hold the candidates of each query, their v and places; there may be more than
    ``keep`` of them in the end, in any order.
    """
    buffer, hit = np.empty(_STRIP, np.float32), np.empty(_STRIP, np.int64)
    for cell in range(starts.shape[0] - 1):
        for start in range(starts[cell], starts[cell + 1], _STRIP):
            stop = min(start + _STRIP, starts[cell + 1])
            for at in range(who_starts[cell], who_starts[cell + 1]):
                i = who[at]
                n, bar = counts[i], bars[i]
                if _values(shadows, half, start, stop, queries, i, buffer) <= bar:
                    continue
                hits = 0
                for t in range(stop - start):
                    hit[hits] = t
                    hits += buffer[t] > bar
                for t in hit[:hits]:
                    value, j = buffer[t], start + t
                    if not value > bar or places[j] == skip[i]:
                        continue
                    if side != ANY and (codes[j] == wanted[i]) != (side == SAME):
                        continue
                    if n == values.shape[1]:
                        _, bar = shrink(values[i], found[i], n, keep, np.float32(0))
                        n = keep  # of those that are equal to the last, any will do
                        if not value > bar:
                            continue
                    values[i, n], found[i, n] = value, places[j]
                    n += 1
                counts[i], bars[i] = n, bar


@compiled(fastmath=FAST)
def _values(shadows, half, start, stop, queries, i, out):
    """The v of the points from ``start`` to ``stop`` for one query; returns the largest."""
    even = start + (stop - start) // _FOUR * _FOUR
    for j in range(start, even, _FOUR):
        a = b = c = d = np.float32(0)
        for t in range(queries.shape[1]):
            a += queries[i, t] * shadows[j, t]
            b += queries[i, t] * shadows[j + 1, t]
            c += queries[i, t] * shadows[j + 2, t]
            d += queries[i, t] * shadows[j + 3, t]
        out[j - start], out[j + 1 - start] = a - half[j], b - half[j + 1]
        out[j + 2 - start], out[j + 3 - start] = c - half[j + 2], d - half[j + 3]
    for j in range(even, stop):
        total = np.float32(0)
        for t in range(queries.shape[1]):
            total += queries[i, t] * shadows[j, t]
        out[j - start] = total - half[j]
    largest = LOWEST
    for j in range(stop - start):
        largest = max(largest, out[j])
    return largest


@compiled()
def settle_sides(counts, places, measured, codes, wanted, near, near_places):
    """The nearest of either side among a query's measured candidates, if nearer than what it has; ties by the place."""
    for i in range(counts.shape[0]):
        for c in range(counts[i]):
            place, distance = places[i, c], measured[i, c]
            side = SAME if codes[place] == wanted[i] else OTHER
            if distance < near[i, side] or (distance == near[i, side] and place < near_places[i, side]):
                near[i, side], near_places[i, side] = distance, place


@compiled()
def trim(counts, values, places, keep, bars):
    """Leave only the ``keep`` candidates with the largest v of each query, and let no worse one in any more."""
    for i in range(counts.shape[0]):
        if counts[i] >= keep:
            _, bars[i] = shrink(values[i], places[i], counts[i], keep, np.float32(0))
            counts[i] = keep


__all__ = ["ANY", "EMPTY", "LOWEST", "MIXED", "OTHER", "SAME", "group", "scan", "settle_sides", "trim"]
