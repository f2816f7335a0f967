"""The inner loops of exact search by shadows, compiled by Numba; ``shadows`` proves the bound they rest on.

Shadows of points come in tiles of TILE, coordinate by coordinate, so that a product of a tile with four queries is sums
in vector registers. What of a tile may be near enough is measured at once, in float32, while the tile is in the cache.
Squared distances are kept as their negatives, so that the largest are the best, as everywhere in ``kernels``.
"""

from __future__ import annotations

import numpy as np

from vicinal.compiled import compiled
from vicinal.search.kernels import FAST, shrink

TILE = 256  # points in a tile: with 32 columns 32 kB, in the first-level cache
GROUP = 4  # queries that are multiplied with a tile together; columns come in as many, too
ANY, SAME, OTHER = 0, 1, 2  # sides: all points count, those of a query's class, those of all other classes


@compiled(fastmath=FAST)
def _multiply(shadows, tile, half, values):
    """What is to be sifted: v = x·q - h of a tile's points x for four queries q, into ``values`` (GROUP, TILE)."""
    a, b, c, d = values[0], values[1], values[2], values[3]
    for j in range(TILE):
        start = -half[j]
        a[j] = start
        b[j] = start
        c[j] = start
        d[j] = start
    for t in range(0, tile.shape[0], 4):
        x0, x1, x2, x3 = tile[t], tile[t + 1], tile[t + 2], tile[t + 3]
        a0, a1, a2, a3 = shadows[0, t], shadows[0, t + 1], shadows[0, t + 2], shadows[0, t + 3]
        b0, b1, b2, b3 = shadows[1, t], shadows[1, t + 1], shadows[1, t + 2], shadows[1, t + 3]
        c0, c1, c2, c3 = shadows[2, t], shadows[2, t + 1], shadows[2, t + 2], shadows[2, t + 3]
        d0, d1, d2, d3 = shadows[3, t], shadows[3, t + 1], shadows[3, t + 2], shadows[3, t + 3]
        for j in range(TILE):  # all is read before anything is written: so the compiler reads each x once
            u0, u1, u2, u3 = x0[j], x1[j], x2[j], x3[j]
            to_a = a[j] + (a0 * u0 + a1 * u1 + a2 * u2 + a3 * u3)
            to_b = b[j] + (b0 * u0 + b1 * u1 + b2 * u2 + b3 * u3)
            to_c = c[j] + (c0 * u0 + c1 * u1 + c2 * u2 + c3 * u3)
            to_d = d[j] + (d0 * u0 + d1 * u1 + d2 * u2 + d3 * u3)
            a[j] = to_a
            b[j] = to_b
            c[j] = to_c
            d[j] = to_d


@compiled(fastmath=FAST)
def _square(x, q):
    """|x - q|², from the differences, in float32."""
    total = np.float32(0)
    for t in range(x.shape[0]):
        gap = x[t] - q[t]
        total += gap * gap
    return total


@compiled()
def shadow_bar(level, bar):
    """What v must reach, for a bar that negative squares of distances must reach."""
    return np.float32(level[0] + level[1] * np.float64(bar))


@compiled(fastmath=FAST)
def sift(
    tiles, halves, points, start, first, codes, shadows, queries, levels, skip, wanted, side, k, slack, room,
    bars, counts, values, places, spent,
):  # fmt: skip
    """Look through some points of a segment for candidates among the k nearest.

    Args:
        tiles: (t, columns, TILE), the shadows of the segment.
        halves: (t, TILE), half their squared lengths; infinite for points that do not count.
        points: (rows, d), the points themselves, from row ``start`` of the segment on.
        start: see there.
        first: the place of ``points[0]``.
        codes: (rows,), their classes.
        shadows: (m, columns), of the queries; m is a multiple of GROUP.
        queries: (m, d).
        levels: (m, 2), for ``shadow_bar``.
        skip: (m,), places that do not count.
        wanted: (m,), classes.
        side: which points count.
        k: how many to find.
        slack: (m,), how far below the k-th a value may be and still be wanted.
        room: (m,), how many more points may be measured for each query; -1 when it is done.
        bars: (m,), what a value must reach.
        counts: (m,), candidates so far; -1 after more ties than there is room.
        values: (m, capacity), minus their squared distances in float32.
        places: (m, capacity), their places.
        spent: (1,), points measured, for all queries together.
    """
    found = np.empty((GROUP, TILE), np.float32)
    hit = np.empty(TILE, np.bool_)
    words = hit.view(np.uint64)
    rows = points.shape[0]
    for tile in range(start // TILE, (start + rows - 1) // TILE + 1):
        base = tile * TILE - start
        for group in range(0, shadows.shape[0], GROUP):
            _multiply(shadows[group : group + GROUP], tiles[tile], halves[tile], found)
            for g in range(GROUP):
                i = group + g
                if counts[i] < 0 or room[i] < 0:
                    continue
                bar, row = shadow_bar(levels[i], bars[i]), found[g]
                for j in range(TILE):
                    hit[j] = row[j] >= bar
                for word in range(TILE // 8):
                    if not words[word]:
                        continue
                    for j in range(8 * word, 8 * word + 8):
                        at = base + j
                        if not hit[j] or at < 0 or at >= rows or first + at == skip[i]:
                            continue
                        if side != ANY and (codes[at] == wanted[i]) != (side == SAME):
                            continue
                        room[i] -= 1
                        value = -_square(points[at], queries[i])
                        if value >= bars[i]:
                            _take(i, value, first + at, k, slack[i], bars, counts, values, places)


@compiled(fastmath=FAST)
def _take(i, value, place, k, slack, bars, counts, values, places):
    """Add a candidate to those of a query; where there is no room, keep the best, and raise the bar."""
    n = counts[i]
    if n < 0:
        return
    if n == values.shape[1]:
        n, raised = shrink(values[i], places[i], n, k, slack)
        if raised > bars[i]:
            bars[i] = raised
        if n == values.shape[1]:
            counts[i] = -1
            return
        if value < bars[i]:
            counts[i] = n
            return
    values[i, n] = value
    places[i, n] = place
    counts[i] = n + 1
