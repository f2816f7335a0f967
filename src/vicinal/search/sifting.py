"""The inner loops of exact search by shadows, compiled by Numba; ``shadows`` proves the bound they rest on.

Shadows of points come in tiles of TILE, coordinate by coordinate, so that a product of a tile with four queries is sums
in vector registers. What of a tile may be near enough is measured at once, while the tile is in the cache, directly and
in float64, as every search measures. Distances are kept as their negatives, so that the largest are the best, as
everywhere in ``kernels``.
"""

from __future__ import annotations

import numpy as np

from vicinal.compiled import compiled
from vicinal.search.kernels import FAST, LOWEST, shrink, squared_distance

TILE = 256  # points in a tile: with 32 columns 32 kB, in the first-level cache
GROUP = 4  # queries that are multiplied with a tile together; columns come in as many, too
_PAIRS = 4096  # pairs of a query and a point that are measured together
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


@compiled()
def shadow_bar(level, bar):
    """What v must reach, for minus the distance that must be reached; never so little that removed points reach it."""
    return max(LOWEST, np.float32(level[0] - level[1] * bar * bar))


@compiled(fastmath=FAST)
def _list(found, group, bars, codes, wanted, side, hit, words, who, which, n):
    """Add the points of a tile that reach the bars of four queries, and are of the right side, to a list of pairs.

    Returns how long it is now. One call for four: a call costs as much as a look at a hundred points.
    """
    for g in range(GROUP):
        bar, code, same = bars[group + g], wanted[group + g], side == SAME
        if side == ANY:
            for j in range(TILE):
                hit[j] = np.uint8(found[g, j] >= bar)
        else:
            for j in range(TILE):
                hit[j] = np.uint8((found[g, j] >= bar) & ((codes[j] == code) == same))
        for at in range(TILE // 8):
            word = words[at]
            if word:  # of its eight bytes, each is 1 for a hit
                for byte in range(8):
                    who[n] = group + g
                    which[n] = 8 * at + byte
                    n += np.int64((word >> np.uint64(8 * byte)) & np.uint64(1))
    return n


@compiled(fastmath=FAST)
def sift(
    tiles, halves, codes, points, start, first, shadows, queries, levels, skip, wanted, side, k, room,
    bars, counts, values, places,
):  # fmt: skip
    """Look through some points of a segment for candidates among the k nearest.

    Args:
        tiles: (t, columns, TILE), the shadows of the segment.
        halves: (t, TILE), half their squared lengths; infinite for points that do not count.
        codes: (t, TILE), their classes.
        points: (rows, d), the points themselves, from row ``start`` of the segment on.
        start: see there.
        first: the place of ``points[0]``.
        shadows: (m, columns), of the queries; m is a multiple of GROUP.
        queries: (m, d).
        levels: (m, 2), for ``shadow_bar``.
        skip: (m,), places that do not count.
        wanted: (m,), classes.
        side: which points count.
        k: how many to find.
        room: (m,), how many more points may be measured for each query; negative when it is given up.
        bars: (m,), what minus the distance must reach.
        counts: (m,), candidates so far; -1 after more ties than there is room.
        values: (m, capacity), minus their distances.
        places: (m, capacity), their places.
    """
    found = np.empty((GROUP, TILE), np.float32)
    hit = np.empty(TILE, np.uint8)
    words = hit.view(np.uint64)
    who, which = np.empty(_PAIRS + GROUP * TILE, np.int32), np.empty(_PAIRS + GROUP * TILE, np.int32)
    m, rows, capacity = shadows.shape[0], points.shape[0], values.shape[1]
    measured = np.empty(who.shape)
    reach = np.empty(m, np.float32)
    for i in range(m):
        reach[i] = shadow_bar(levels[i], bars[i]) if counts[i] >= 0 and room[i] >= 0 else np.inf
    for tile in range(start // TILE, (start + rows - 1) // TILE + 1):
        base, n = tile * TILE - start, 0
        for group in range(0, m, GROUP):
            _multiply(shadows[group : group + GROUP], tiles[tile], halves[tile], found)
            n = _list(found, group, reach, codes[tile], wanted, side, hit, words, who, which, n)
            if n <= _PAIRS and (group + GROUP < m or not n):
                continue
            _measure(points, base, queries, who, which, n, measured)
            for pair in range(n):
                i, row, value = who[pair], base + which[pair], measured[pair]
                room[i] -= 1
                if room[i] < 0:
                    reach[i] = np.inf
                if value < bars[i] or row < 0 or row >= rows or first + row == skip[i] or counts[i] < 0:
                    continue
                if counts[i] == capacity:
                    _shrink(i, k, bars, counts, values, places)
                    reach[i] = shadow_bar(levels[i], bars[i]) if counts[i] >= 0 else np.inf
                if value >= bars[i] and counts[i] >= 0:
                    values[i, counts[i]], places[i, counts[i]] = value, first + row
                    counts[i] += 1
            n = 0


@compiled(fastmath=FAST)
def _shrink(i, k, bars, counts, values, places):
    """Keep only the best candidates of a query, and raise its bar; where all of them tie, give it up."""
    kept, bar = shrink(values[i], places[i], counts[i], k, 0.0)
    bars[i] = max(bars[i], bar)
    counts[i] = kept if kept < values.shape[1] else -1


@compiled(fastmath=FAST)
def meet(points, places, codes, queries, skip, wanted, side, k, bars, counts, values, found):
    """Measure a few points for every query that has not been given up, and add them to its candidates ``found``."""
    for i in range(queries.shape[0]):
        for j in range(points.shape[0]):
            counted = side == ANY or (codes[j] == wanted[i]) == (side == SAME)
            if counted and counts[i] >= 0 and places[j] != skip[i]:
                value = -np.sqrt(squared_distance(points[j], queries[i]))
                if value >= bars[i] and counts[i] == values.shape[1]:
                    _shrink(i, k, bars, counts, values, found)
                if value >= bars[i] and counts[i] >= 0:
                    values[i, counts[i]], found[i, counts[i]] = value, places[j]
                    counts[i] += 1


@compiled(fastmath=FAST)
def _measure(points, base, queries, who, which, n, measured):
    """Minus the distances of pairs: nothing else is done here, so that memory is read well ahead."""
    last = points.shape[0] - 1
    for pair in range(n):
        row = min(max(base + which[pair], 0), last)
        measured[pair] = -np.sqrt(squared_distance(points[row], queries[who[pair]]))


@compiled(fastmath=FAST)
def fold(tiles, halves, codes, shadows, wanted, side, values, places):
    """For each query and each column of a tile the best v there is, and its point's place; no bound is needed here.

    Args:
        tiles: (t, columns, TILE), and so on as for ``sift``.
        halves: see there.
        codes: see there.
        shadows: see there.
        wanted: see there.
        side: see there.
        values: (m, TILE), LOWEST where there is none.
        places: (m, TILE).
    """
    found = np.empty((GROUP, TILE), np.float32)
    for group in range(0, shadows.shape[0], GROUP):
        for g in range(GROUP):
            for j in range(TILE):
                values[group + g, j] = LOWEST
                places[group + g, j] = 0
        for tile in range(tiles.shape[0]):
            _multiply(shadows[group : group + GROUP], tiles[tile], halves[tile], found)
            for g in range(GROUP):
                i, same = group + g, side == SAME
                for j in range(TILE):
                    counts = (side == ANY) | ((codes[tile, j] == wanted[i]) == same)
                    better = (found[g, j] > values[i, j]) & counts
                    values[i, j] = found[g, j] if better else values[i, j]
                    places[i, j] = tile * TILE + j if better else places[i, j]


@compiled(fastmath=FAST)
def guess(points, queries, places, k, bars):
    """The k-th best of some places (m, columns) of each query, as minus its distance; those below zero do not count."""
    found = np.empty(places.shape[1])
    for i in range(places.shape[0]):
        n = 0
        for c in range(places.shape[1]):
            if places[i, c] >= 0:
                found[n] = -np.sqrt(squared_distance(points[places[i, c]], queries[i]))
                n += 1
        if n >= k:
            bars[i] = np.sort(found[:n])[n - k]
