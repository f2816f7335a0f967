"""The inner loops of approximate search, compiled by Numba: what is found in the cells that are looked into.

As in ``brute``, v = x·q - h falls as the distance grows, here from shadows: x and q along a few axes only. With r for
what x is off the centre c of its cell, x·q = c·q + r·q; the last product is one of whole numbers of 8 bits and scales.
The points of a cell lie side by side, in blocks.
"""

from __future__ import annotations

import numpy as np

from vicinal.compiled import compiled
from vicinal.search.dots import BLOCK, GROUP, dots_of_block
from vicinal.search.kernels import FAST, LOWEST, shrink
from vicinal.search.picking import pick

ANY, SAME, OTHER = -1, 0, 1  # which points count: all, those of the predicted class, those of any other
MIXED, EMPTY = -2, -3  # in place of the only class of a cell


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
    blocks, begins, scales, half, places, codes, starts, centres, who_starts, who, shadows, numbers, parts, skip,
    wanted, side, keep, bars, counts, values, found,
):  # fmt: skip
    """Look through the cells for the ``keep`` points with the largest v of each query.

    Args:
        blocks: what points are off the centre of their cell, see ``cells.Blocks``; a cell's from ``starts[cell]`` to
            ``starts[cell + 1]``, and
        begins: what it says of them,
        scales: (blocks, BLOCK),
        half: (blocks, BLOCK), h, infinite where there is no point,
        places: (blocks, BLOCK),
        codes: (blocks, BLOCK).
        starts: see there.
        centres: (cells, p), of the cells.
        who_starts: see ``group``, and
        who: who looks into each cell.
        shadows: (m, p), of the queries,
        numbers: uint8 (m, columns), the same in whole numbers, with 128 added.
        parts: (m,), their scales.
        skip: (m,), places that do not count.
        wanted: (m,), classes.
        side: which points count.
        keep: how many to keep.
        bars: (m,), the v that a newcomer must exceed.
        counts: (m,), how many candidates there are; in the end there may be more than ``keep``, in any order,
        values: (m, room), their v,
        found: (m, room), their places.
    """
    products, group = np.empty((GROUP, BLOCK), np.int32), np.empty((GROUP, numbers.shape[1]), np.uint8)
    buffer, base = np.empty(BLOCK, np.float32), np.zeros(GROUP, np.float32)
    which = np.empty(2 * BLOCK, np.int32)
    for cell in range(starts.shape[0] - 1):
        if starts[cell] == starts[cell + 1]:
            continue
        for first in range(who_starts[cell], who_starts[cell + 1], GROUP):
            size = min(GROUP, who_starts[cell + 1] - first)
            for g in range(size):
                i = who[first + g]
                for t in range(numbers.shape[1]):
                    group[g, t] = numbers[i, t]
                base[g] = np.float32(0)
                for t in range(shadows.shape[1]):
                    base[g] += shadows[i, t] * centres[cell, t]
            for block in range(starts[cell], starts[cell + 1]):
                dots_of_block(products, blocks, block, group, 0, begins)
                for g in range(size):
                    i = who[first + g]
                    largest, start, part, same = LOWEST, base[g], parts[i], side == SAME
                    for j in range(BLOCK):
                        value = start + np.float32(products[g, j]) * (part * scales[block, j]) - half[block, j]
                        buffer[j] = value
                        largest = max(largest, value)
                    if largest <= bars[i]:
                        continue
                    if side != ANY:
                        for j in range(BLOCK):
                            fits = (codes[block, j] == wanted[i]) == same
                            buffer[j] = buffer[j] if fits else LOWEST
                    n = counts[i]
                    if n + BLOCK > values.shape[1]:
                        _, bars[i] = shrink(values[i], found[i], n, keep, np.float32(0))
                        n = keep  # of those that are equal to the last, any will do
                    hits = pick(buffer, bars[i], values, i * values.shape[1] + n, which)
                    own = -1
                    for c in range(hits):
                        place = places[block, which[c]]
                        found[i, n + c] = place
                        if place == skip[i]:
                            own = n + c
                    n += hits
                    if own >= 0:
                        n -= 1
                        values[i, own], found[i, own] = values[i, n], found[i, n]
                    counts[i] = n


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
def fill_up(counts, values):
    """The lowest value there is beyond the candidates of each query, so that rows can be sorted."""
    for i in range(counts.shape[0]):
        for c in range(counts[i], values.shape[1]):
            values[i, c] = LOWEST


@compiled()
def trim(counts, values, places, keep, bars):
    """Of the candidates of each query leave those above its bar, and of those just there as many as ``keep`` allows."""
    for i in range(counts.shape[0]):
        if counts[i] <= keep:
            continue
        bar, better = bars[i], 0
        for c in range(counts[i]):
            better += values[i, c] > bar
        ties, n = keep - better, 0
        for c in range(counts[i]):
            value, place = values[i, c], places[i, c]
            tie = value == bar and ties > 0
            ties -= tie
            values[i, n], places[i, n] = value, place
            n += tie or value > bar
        counts[i] = n


__all__ = ["ANY", "EMPTY", "LOWEST", "MIXED", "OTHER", "SAME", "fill_up", "group", "scan", "settle_sides", "trim"]
