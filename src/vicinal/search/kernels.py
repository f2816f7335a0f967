"""The inner loops of exact search, compiled by Numba: everything that touches each pair of a query and a point.

One block of products is looked at while it is still in the cache. Write q̂ for the scaled, centred query, x for a point,
h for half its scaled squared length, and v = x·q̂ - h. Then v falls exactly as the distance grows, up to an error of
at most ``error`` in float32 (``brute.py`` derives it). So a point whose v lies more than two errors below the k-th best
is proved not to be among the k nearest, and whatever is left is measured again, directly and in float64.
"""

from __future__ import annotations

import numpy as np

from vicinal.compiled import compiled

LANES = 128  # vector registers hold their maxima while a strip is folded
STRIP = 1024  # points that are folded together: a lane that reaches the bar stands for STRIP / LANES of them
ALONE = np.zeros(1, np.int64)  # the lane of points that were not folded
_ROWS = 256  # rows of the bank that are measured together
LOWEST = np.float32(-3.4e38)  # below every value of a point that is sifted, above that of any other, which is -inf

# Without "ninf": removed points carry infinities. Reassociation lets sums run in vector registers.
FAST = {"nnan", "nsz", "reassoc", "contract", "arcp"}


@compiled(fastmath=FAST)
def squared_distance(x, q):
    """|x - q|², from the differences, in float64."""
    total = 0.0
    for t in range(x.shape[0]):
        gap = np.float64(x[t]) - np.float64(q[t])
        total += gap * gap
    return total


@compiled(fastmath=FAST)
def distances_to(points, q, out):
    """|x - q| of every point, into ``out``."""
    for j in range(points.shape[0]):
        out[j] = np.sqrt(squared_distance(points[j], q))


@compiled(fastmath=FAST)
def squared_lengths(points, centre, out):
    """|x - centre|² of every point, into ``out``; the centre is float64."""
    for j in range(points.shape[0]):
        out[j] = squared_distance(points[j], centre)


@compiled()
def add_up(points, total):
    """Add every point to ``total`` (d,), in float64, one after the other."""
    for j in range(points.shape[0]):
        for t in range(points.shape[1]):
            total[t] += np.float64(points[j, t])


@compiled(fastmath=FAST)
def shrink(values, places, n, k, slack):
    """Keep the k largest of ``values[:n]``, and all within ``slack`` of the k-th, in front.

    Returns how many were kept, and the value that a newcomer must reach.
    """
    low, high, target = 0, n - 1, k - 1
    while low < high:
        pivot = values[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                places[i], places[j] = places[j], places[i]
                i += 1
                j -= 1
        if target <= j:
            high = j
        elif target >= i:
            low = i
        else:
            break
    bar = values[target] - slack
    kept = k
    for i in range(k, n):
        if values[i] >= bar:
            values[i], values[kept] = values[kept], values[i]
            places[i], places[kept] = places[kept], places[i]
            kept += 1
    return kept, bar


@compiled(fastmath=FAST)
def _collect(row, half, lanes, start, stop, step, first, skip, k, slack, bar, n, values, places):
    """Add the points that reach the bar to a query's candidates: of each lane, start + lane, and every step on from it.

    Returns how many there are and the bar; -1 for how many: more ties than there is room.
    """
    room = values.shape[0]
    for lane in lanes:
        for j in range(start + lane, stop, step):
            v = row[j] - half[j]
            if v >= bar and first + j != skip:
                if n == room:
                    n, raised = shrink(values, places, n, k, slack)
                    bar = raised if raised > bar else bar
                    if v < bar:
                        continue
                    if n == room:
                        return -1, bar
                values[n] = v
                places[n] = first + j
                n += 1
    return n, bar


@compiled(fastmath=FAST)
def scan(products, half, first, skip, k, slack, bars, counts, values, places):
    """Look through one block of products (queries, points) for candidates among the k nearest.

    A strip of points is folded into lanes, whose maxima are taken in vector registers; only a lane that reaches the bar
    is looked at point by point.
    """
    width = products.shape[1]
    lanes, hit = np.empty(LANES, np.float32), np.empty(LANES, np.int64)
    for i in range(products.shape[0]):
        n, bar, row = counts[i], bars[i], products[i]
        skip_i, slack_i, values_i, places_i = skip[i], slack[i], values[i], places[i]
        for start in range(0, width, STRIP):
            stop = start + min(STRIP, width - start) // LANES * LANES
            lanes[:] = LOWEST
            for fold in range(start, stop, LANES):
                part, part_half = row[fold : fold + LANES], half[fold : fold + LANES]
                for t in range(LANES):
                    v = part[t] - part_half[t]
                    lanes[t] = v if v > lanes[t] else lanes[t]
            hits = 0
            for t in range(LANES):
                hit[hits] = t
                hits += lanes[t] >= bar
            if hits and n >= 0:
                n, bar = _collect(
                    row, half, hit[:hits], start, stop, LANES, first, skip_i, k, slack_i, bar, n, values_i, places_i
                )
            end = min(start + STRIP, width)
            if stop < end and n >= 0:
                n, bar = _collect(row, half, ALONE, stop, end, 1, first, skip_i, k, slack_i, bar, n, values_i, places_i)
        counts[i], bars[i] = n, bar


@compiled(fastmath=FAST)
def scan_classes(
    products, half, first, skip, k, slack, bars, counts, values, places,
    points, queries, codes, predicted, level, near, near_places, near_bars,
):  # fmt: skip
    """As ``scan``, and on the way the nearest point of the predicted class (0) and of any other class (1).

    ``near`` holds their distances, measured directly; ``near_bars`` what v must reach to beat them, or tie.
    ``level`` turns squared distances into v.
    """
    width = products.shape[1]
    same_lanes, other_lanes = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    hit = np.empty(LANES, np.int64)
    for i in range(products.shape[0]):
        n, bar, row, wanted = counts[i], bars[i], products[i], predicted[i]
        skip_i, slack_i, values_i, places_i = skip[i], slack[i], values[i], places[i]
        query, level_i, near_i, near_places_i, near_bars_i = queries[i], level[i], near[i], near_places[i], near_bars[i]
        for start in range(0, width, STRIP):
            stop = start + min(STRIP, width - start) // LANES * LANES
            same_lanes[:] = LOWEST
            other_lanes[:] = LOWEST
            for fold in range(start, stop, LANES):
                part, part_half = row[fold : fold + LANES], half[fold : fold + LANES]
                part_codes = codes[fold : fold + LANES]
                for t in range(LANES):
                    v = part[t] - part_half[t]
                    same = part_codes[t] == wanted
                    v_same = v if same else LOWEST
                    v_other = LOWEST if same else v
                    same_lanes[t] = v_same if v_same > same_lanes[t] else same_lanes[t]
                    other_lanes[t] = v_other if v_other > other_lanes[t] else other_lanes[t]
            hits = 0
            for t in range(LANES):
                hit[hits] = t
                hits += max(same_lanes[t], other_lanes[t]) >= bar
            if hits and n >= 0:
                n, bar = _collect(
                    row, half, hit[:hits], start, stop, LANES, first, skip_i, k, slack_i, bar, n, values_i, places_i
                )
            hits = 0
            for t in range(LANES):
                hit[hits] = t
                hits += (same_lanes[t] >= near_bars_i[0]) | (other_lanes[t] >= near_bars_i[1])
            if hits:
                _approach(
                    row, half, hit[:hits], start, stop, LANES, first, skip_i, points, codes, wanted, query,
                    level_i, slack_i, near_i, near_places_i, near_bars_i,
                )  # fmt: skip
            end = min(start + STRIP, width)
            if stop < end:
                if n >= 0:
                    n, bar = _collect(
                        row, half, ALONE, stop, end, 1, first, skip_i, k, slack_i, bar, n, values_i, places_i
                    )
                _approach(
                    row, half, ALONE, stop, end, 1, first, skip_i, points, codes, wanted, query,
                    level_i, slack_i, near_i, near_places_i, near_bars_i,
                )  # fmt: skip
        counts[i], bars[i] = n, bar


@compiled(fastmath=FAST)
def _approach(
    row, half, lanes, start, stop, step, first, skip, points, codes, wanted, query,
    level, slack, near, near_places, near_bars,
):  # fmt: skip
    """Measure the points that may be the nearest of their side, and take those that are; ties by the lowest place."""
    for lane in lanes:
        for j in range(start + lane, stop, step):
            side = 0 if codes[j] == wanted else 1
            if row[j] - half[j] >= near_bars[side] and first + j != skip:
                found = np.sqrt(squared_distance(points[j], query))
                if found < near[side] or (found == near[side] and first + j < near_places[side]):
                    near[side] = found
                    near_places[side] = first + j
                    near_bars[side] = np.float32(level[0] - level[1] * found * found) - slack


@compiled(fastmath=FAST)
def settle(points, first, queries, counts, places, found):
    """Measure the candidates that lie in one segment of the bank, each directly, into ``found``.

    They are taken in the order of the bank, a strip of rows at a time, so that a row read from memory for one query is
    still in the cache for the next.
    """
    strips = points.shape[0] // _ROWS + 1
    starts = np.zeros(strips + 1, np.int64)
    for i in range(counts.shape[0]):
        for c in range(counts[i]):
            row = places[i, c] - first
            if 0 <= row < points.shape[0]:
                starts[row // _ROWS + 1] += 1
    for strip in range(strips):
        starts[strip + 1] += starts[strip]
    whose = np.empty(starts[strips], np.int32)
    which = np.empty(starts[strips], np.int32)
    rows = np.empty(starts[strips], np.int64)
    for i in range(counts.shape[0]):
        for c in range(counts[i]):
            row = places[i, c] - first
            if 0 <= row < points.shape[0]:
                at = starts[row // _ROWS]
                whose[at], which[at], rows[at] = i, c, row
                starts[row // _ROWS] = at + 1
    for at in range(whose.shape[0]):
        i = whose[at]
        found[i, which[at]] = np.sqrt(squared_distance(points[rows[at]], queries[i]))


@compiled()
def thin(k, slack, bars, counts, values, places):
    """Drop the candidates that cannot be among the k nearest; a count of -1 marks a query that must be done again."""
    for i in range(counts.shape[0]):
        if counts[i] < k:
            counts[i] = -1
            continue
        n, bar = shrink(values[i], places[i], counts[i], k, slack[i])
        counts[i] = n if bar >= bars[i] else -1


@compiled()
def rank(k, counts, places, found, order, distances, indices):
    """The k nearest of each query's measured candidates, nearest first, ties by the lowest place.

    ``order`` sorts ``found`` along each row, ties in any order.
    """
    for i in range(counts.shape[0]):
        n, start = counts[i], 0
        while start < min(n, k):
            stop = start + 1
            while stop < n and found[i, order[i, stop]] == found[i, order[i, start]]:
                stop += 1
            if stop - start > 1:
                order[i, start:stop] = order[i, start:stop][np.argsort(places[i][order[i, start:stop]])]
            start = stop
        for c in range(min(n, k)):
            distances[i, c] = found[i, order[i, c]]
            indices[i, c] = places[i, order[i, c]]


@compiled(fastmath=FAST)
def meet(points, places, codes, skip, queries, predicted, level, slack, near, near_places, near_bars):
    """Measure a few points for every query, as candidates for the nearest of their side."""
    for i in range(queries.shape[0]):
        for j in range(points.shape[0]):
            if places[j] == skip[i]:
                continue
            side = 0 if codes[j] == predicted[i] else 1
            found = np.sqrt(squared_distance(points[j], queries[i]))
            if found < near[i, side] or (found == near[i, side] and places[j] < near_places[i, side]):
                near[i, side] = found
                near_places[i, side] = places[j]
                near_bars[i, side] = np.float32(level[i, 0] - level[i, 1] * found * found) - slack[i]


@compiled()
def append(counts, places, skip, further):
    """Add a few places to the candidates of every query that has any."""
    for i in range(counts.shape[0]):
        if counts[i] >= 0:
            for place in further:
                if place != skip[i]:
                    places[i, counts[i]] = place
                    counts[i] += 1
