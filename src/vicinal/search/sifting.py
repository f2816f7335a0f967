"""The inner loops of exact search by shadows, compiled by Numba; ``shadows`` proves the bound they rest on.

Shadows of points come in tiles of TILE. What of a tile may be near enough is measured at once, while the tile is in the
cache, directly and in float64, as every search measures. Distances are kept as their negatives, so that the largest are
the best, as everywhere in ``kernels``.
"""

from __future__ import annotations

import numpy as np

from vicinal.compiled import compiled
from vicinal.search.dots import GROUP, TILE, dots
from vicinal.search.kernels import FAST, LOWEST, shrink, squared_distance

_PAIRS = 4096  # pairs of a query and a point that are measured together
_ROUNDING = 1e-6  # more than 8 unit roundoffs of float32
ANY, SAME, OTHER = 0, 1, 2  # sides: all points count, those of a query's class, those of all other classes


@compiled()
def needed(tile, query, bar):
    """What the product less the half square over the scale must reach, for minus the distance that must be reached.

    Never so little that points without a shadow reach it.

    Args:
        tile: scale, η and longest of a tile's points.
        query: scale, length, η and one over the scale of a query.
        bar: minus the distance.
    """
    scale, off, longest = tile[0], tile[1], tile[2]
    own, length = query[0], query[1]
    far = -bar * (1 + 1e-9) + query[2] + off
    least = (own * length * own * length - far * far) / (2 * own * scale)
    rounding = _ROUNDING * (length * longest + scale * longest * longest / (2 * own) + abs(least))
    return max(LOWEST, np.float32(least - rounding))


@compiled(fastmath=FAST)
def _list(found, halves, queries, group, bars, codes, wanted, side, hit, words, who, which, n):
    """Add the points of a tile that reach the bars of four queries, and are of the right side, to a list of pairs.

    Returns how long it is now. One call for four: a call costs as much as a look at a hundred points.
    """
    for g in range(GROUP):
        bar, code, same, part = bars[group + g], wanted[group + g], side == SAME, np.float32(queries[group + g, 3])
        if side == ANY:
            for j in range(TILE):
                hit[j] = np.uint8(np.float32(found[g, j]) - halves[j] * part >= bar)
        else:
            for j in range(TILE):
                reached = np.float32(found[g, j]) - halves[j] * part >= bar
                hit[j] = np.uint8(reached & ((codes[j] == code) == same))
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
    tiles, begins, halves, facts, codes, points, start, first, numbers, queries, asked, skip, wanted, side, k, room,
    bars, counts, values, places,
):  # fmt: skip
    """Look through some points of a segment for candidates among the k nearest.

    Args:
        tiles: the numbers of the segment's shadows, and
        begins: what ``shadows.Tiles`` says of them,
        halves: with infinity for points that do not count,
        facts: of each tile.
        codes: (t, TILE), their classes.
        points: (rows, d), the points themselves, from row ``start`` of the segment on.
        start: see there.
        first: the place of ``points[0]``.
        numbers: (m, columns), of the shadows of the queries; m is a multiple of GROUP.
        queries: (m, d).
        asked: (m, 4), facts of the queries, see ``shadows.Asked``.
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
    found = np.empty((GROUP, TILE), np.int32)
    hit = np.empty(TILE, np.uint8)
    words = hit.view(np.uint64)
    who, which = np.empty(_PAIRS + GROUP * TILE, np.int32), np.empty(_PAIRS + GROUP * TILE, np.int32)
    m, rows, capacity = numbers.shape[0], points.shape[0], values.shape[1]
    measured = np.empty(who.shape)
    reach = np.empty(m, np.float32)
    for tile in range(start // TILE, (start + rows - 1) // TILE + 1):
        base, n = tile * TILE - start, 0
        for i in range(m):
            reach[i] = needed(facts[tile], asked[i], bars[i]) if counts[i] >= 0 and room[i] >= 0 else np.inf
        for group in range(0, m, GROUP):
            dots(found, tiles, tile, numbers, group, begins)
            n = _list(
                found, halves[tile], asked, group, reach, codes[tile], wanted, side, hit, words, who, which, n
            )  # fmt: skip
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
                    reach[i] = needed(facts[tile], asked[i], bars[i]) if counts[i] >= 0 else np.inf
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
def fold(tiles, begins, halves, facts, codes, numbers, asked, wanted, side, values, places):
    """For each query and each column of a tile the nearest shadow, and its point's place; no bound is needed here.

    Args:
        tiles: as for ``sift``.
        begins: see there.
        halves: see there.
        facts: see there.
        codes: see there.
        numbers: see there.
        asked: see there.
        wanted: see there.
        side: see there.
        values: (m, TILE), how near: the larger the nearer, LOWEST where there is none.
        places: (m, TILE).
    """
    found = np.empty((GROUP, TILE), np.int32)
    for group in range(0, numbers.shape[0], GROUP):
        for g in range(GROUP):
            for j in range(TILE):
                values[group + g, j] = LOWEST
                places[group + g, j] = 0
        for tile in range(tiles.shape[0]):
            dots(found, tiles, tile, numbers, group, begins)
            scale = np.float32(facts[tile, 0])
            for g in range(GROUP):
                i, same, part = group + g, side == SAME, np.float32(asked[group + g, 3])
                for j in range(TILE):
                    counts = (side == ANY) | ((codes[tile, j] == wanted[i]) == same)
                    value = scale * (np.float32(found[g, j]) - halves[tile, j] * part)
                    better = (value > values[i, j]) & counts
                    values[i, j] = value if better else values[i, j]
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
