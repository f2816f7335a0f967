"""The inner loops of exact search, compiled by Numba: everything that touches each pair of a query and a point.

One block of products is looked at while it is still in the cache. Write q̂ for the scaled, centred query, x for a point,
h for half its scaled squared length, and v = x·q̂ - h. Then v falls exactly as the distance grows, up to an error of
at most ``error`` in float32 (``brute.py`` derives it). So a point whose v lies more than two errors below the k-th best
is proved not to be among the k nearest, and whatever is left is measured again, directly and in float64.
"""

from __future__ import annotations

import numpy as np
from numba import njit

TILE = 64  # columns that one comparison accepts or rejects together
LOWEST = np.float32(-3.4e38)  # below every value of a living point, above that of a removed one, which is -inf

# Without "ninf": removed points carry infinities. Reassociation lets sums run in vector registers.
_FAST = {"nnan", "nsz", "reassoc", "contract", "arcp"}


@njit(nogil=True, cache=True, fastmath=_FAST)
def squared_distance(x, q):
    """|x - q|², from the differences, in float64."""
    total = 0.0
    for t in range(x.shape[0]):
        gap = np.float64(x[t]) - np.float64(q[t])
        total += gap * gap
    return total


@njit(nogil=True, cache=True, fastmath=_FAST)
def squared_distances(points, q, out):
    """|x - q|² of every point, into ``out``."""
    for j in range(points.shape[0]):
        out[j] = squared_distance(points[j], q)


@njit(nogil=True, cache=True, fastmath=_FAST)
def squared_lengths(points, centre, out):
    """|x - centre|² of every point, into ``out``; the centre is float64."""
    for j in range(points.shape[0]):
        out[j] = squared_distance(points[j], centre)


@njit(nogil=True, cache=True, fastmath=_FAST)
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


@njit(nogil=True, cache=True, fastmath=_FAST)
def collect(row, half, start, stop, first, skip, k, slack, bar, n, values, places):
    """Add the points of one tile that reach the bar to a query's candidates; -1 for n: more ties than there is room."""
    room = values.shape[0]
    for j in range(start, stop):
        v = row[j] - half[j]
        if v >= bar and first + j != skip:
            if n == room:
                n, raised = shrink(values, places, n, k, slack)
                bar = max(bar, raised)
                if v < bar:
                    continue
                if n == room:
                    return -1, bar
            values[n] = v
            places[n] = first + j
            n += 1
    return n, bar


@njit(nogil=True, cache=True, fastmath=_FAST)
def scan(products, half, first, skip, k, slack, bars, counts, values, places):
    """Look through one block of products (queries, points) for candidates among the k nearest."""
    width = products.shape[1]
    for i in range(products.shape[0]):
        n, bar, row = counts[i], bars[i], products[i]
        for start in range(0, width, TILE):
            stop = min(start + TILE, width)
            best = np.float32(np.inf)
            if stop - start == TILE:
                best = LOWEST
                for t in range(TILE):
                    v = row[start + t] - half[start + t]
                    best = v if v > best else best
            if best >= bar and n >= 0:
                n, bar = collect(row, half, start, stop, first, skip[i], k, slack[i], bar, n, values[i], places[i])
        counts[i], bars[i] = n, bar


@njit(nogil=True, cache=True, fastmath=_FAST)
def scan_classes(
    products, half, first, skip, k, slack, bars, counts, values, places,
    points, queries, codes, predicted, level, near, near_places, near_bars,
):  # fmt: skip
    """As ``scan``, and on the way the nearest point of the predicted class (0) and of any other class (1).

    ``near`` holds their squared distances, measured directly; ``near_bars`` what v must reach to beat them, or tie.
    ``level`` is v of a point at distance 0.
    """
    width = products.shape[1]
    for i in range(products.shape[0]):
        n, bar, row, wanted = counts[i], bars[i], products[i], predicted[i]
        bar_same, bar_other = near_bars[i, 0], near_bars[i, 1]
        for start in range(0, width, TILE):
            stop = min(start + TILE, width)
            best_same, best_other = np.float32(np.inf), np.float32(np.inf)
            if stop - start == TILE:
                best_same, best_other = LOWEST, LOWEST
                for t in range(TILE):
                    v = row[start + t] - half[start + t]
                    same = codes[start + t] == wanted
                    v_same = v if same else LOWEST
                    v_other = LOWEST if same else v
                    best_same = v_same if v_same > best_same else best_same
                    best_other = v_other if v_other > best_other else best_other
            if (best_same >= bar or best_other >= bar) and n >= 0:
                n, bar = collect(row, half, start, stop, first, skip[i], k, slack[i], bar, n, values[i], places[i])
            if best_same >= bar_same or best_other >= bar_other:
                for j in range(start, stop):
                    side = 0 if codes[j] == wanted else 1
                    if row[j] - half[j] >= near_bars[i, side] and first + j != skip[i]:
                        _approach(points[j], queries[i], first + j, i, side, level, slack, near, near_places, near_bars)
                bar_same, bar_other = near_bars[i, 0], near_bars[i, 1]
        counts[i], bars[i] = n, bar


@njit(nogil=True, cache=True, fastmath=_FAST)
def _approach(point, query, place, i, side, level, slack, near, near_places, near_bars):
    """Measure one point, and take it as the nearest of its side if it is; the first in the bank wins a tie."""
    squared = squared_distance(point, query)
    if squared < near[i, side]:
        near[i, side] = squared
        near_places[i, side] = place
        near_bars[i, side] = np.float32(level[i, 0] - level[i, 1] * squared) - slack[i]


@njit(nogil=True, cache=True, fastmath=_FAST)
def settle(points, first, queries, counts, places, found):
    """Measure the candidates that lie in one segment of the bank, each directly, into ``found`` (squared distances)."""
    last = first + points.shape[0]
    for i in range(counts.shape[0]):
        for c in range(counts[i]):
            place = places[i, c]
            if first <= place < last:
                found[i, c] = squared_distance(points[place - first], queries[i])


@njit(nogil=True, cache=True)
def thin(k, slack, bars, counts, values, places):
    """Drop the candidates that cannot be among the k nearest; a count of -1 marks a query that must be done again."""
    for i in range(counts.shape[0]):
        if counts[i] < k:
            counts[i] = -1
            continue
        n, bar = shrink(values[i], places[i], counts[i], k, slack[i])
        counts[i] = n if bar >= bars[i] else -1


@njit(nogil=True, cache=True)
def rank(k, counts, places, found, distances, indices):
    """The k nearest of each query's measured candidates, nearest first, ties by the lowest place."""
    for i in range(counts.shape[0]):
        n = counts[i]
        if n < 0:
            continue
        order = np.argsort(found[i, :n])
        start = 0
        while start < n:  # order ties by place
            stop = start + 1
            while stop < n and found[i, order[stop]] == found[i, order[start]]:
                stop += 1
            if stop - start > 1:
                tied = order[start:stop].copy()
                order[start:stop] = tied[np.argsort(places[i, :n][tied])]
            start = stop
        for c in range(k):
            distances[i, c] = np.sqrt(found[i, order[c]])
            indices[i, c] = places[i, order[c]]


@njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def weigh(
    products, half, first, skip, points, queries, codes, predicted, level, doubt, inverse, reference, near, totals
):  # fmt: skip
    """Add the weight of every point of a block to the total of its class: exp(reference - distance), or 1 / distance.

    ``reference`` holds, for the predicted class (0) and for all others (1), the distance that has weight 1: the nearest
    known so far, so that the largest weight of either side never underflows; ``near`` are their newest squares, and
    ``totals`` (queries, classes) are brought down to them first. A point so near that rounding in float32 would be felt
    (closer than ``doubt`` allows) is measured again, directly.
    """
    width = products.shape[1]
    distances = np.empty(TILE, np.float32)
    exponents = np.empty(TILE, np.float32)
    weights = np.empty(TILE, np.float32)
    bits = weights.view(np.int32)
    for i in range(products.shape[0]):
        row, wanted, totals_i = products[i], predicted[i], totals[i]
        if not inverse:
            _lower_reference(i, wanted, near, reference, totals_i)
        same_reference, other_reference = np.float32(reference[i, 0]), np.float32(reference[i, 1])
        top, scale = np.float32(level[i, 0]), np.float32(1.0 / level[i, 1])
        nearest = min(same_reference, other_reference)
        close = np.float32(doubt[i])
        for start in range(0, width, TILE):
            size = min(TILE, width - start)
            least = np.float32(np.inf)
            for t in range(size):
                gap = (top - (row[start + t] - half[start + t])) * scale
                gap = gap if gap > np.float32(0) else np.float32(0)
                distance = np.sqrt(gap)
                distances[t] = distance
                least = distance if distance < least else least
            if inverse:
                for t in range(size):
                    weights[t] = np.float32(1) / distances[t]
            else:
                for t in range(size):
                    shift = same_reference if codes[start + t] == wanted else other_reference
                    exponents[t] = shift - distances[t]
                _exponentials(exponents, weights, bits, size)
            if least <= close or first + start <= skip[i] < first + start + size:
                for t in range(size):
                    j = start + t
                    if first + j == skip[i]:
                        weights[t] = 0
                    elif distances[t] <= close and distances[t] < nearest + np.float32(25) + close:
                        exact = np.sqrt(squared_distance(points[j], queries[i]))
                        side = 0 if codes[j] == wanted else 1
                        totals_i[codes[j]] += 1 / max(exact, 1e-300) if inverse else np.exp(reference[i, side] - exact)
                        weights[t] = 0
            for t in range(size):
                totals_i[codes[start + t]] += weights[t]


@njit(nogil=True, cache=True, fastmath=_FAST)
def _lower_reference(i, wanted, near, reference, totals):
    for side in range(2):
        newest = np.sqrt(near[i, side])
        if newest < reference[i, side]:
            factor = np.exp(newest - reference[i, side])
            if side == 0:
                if wanted >= 0:
                    totals[wanted] *= factor
            else:
                for c in range(totals.shape[0]):
                    if c != wanted:
                        totals[c] *= factor
            reference[i, side] = newest


@njit(nogil=True, cache=True, fastmath=_FAST)
def _exponentials(exponents, results, bits, size):
    """The exponential of ``exponents[:size]`` into ``results``, to 2e-7 of its value; below -86, about 1e-38.

    ``bits`` is ``results`` seen as int32. Cephes' polynomial on [-ln 2 / 2, ln 2 / 2], then the power of two goes to
    the exponent field: loops of this form run in vector registers, which calls of ``np.exp`` do not.
    """
    for t in range(size):
        x = exponents[t]
        x = x if x > np.float32(-86) else np.float32(-86)
        power = np.floor(x * np.float32(1.4426950408889634) + np.float32(0.5))
        r = (x - power * np.float32(0.693359375)) + power * np.float32(2.12194440e-4)
        p = np.float32(1.9875691500e-4)
        p = p * r + np.float32(1.3981999507e-3)
        p = p * r + np.float32(8.3334519073e-3)
        p = p * r + np.float32(4.1665795894e-2)
        p = p * r + np.float32(1.6666665459e-1)
        p = p * r + np.float32(5.0000001201e-1)
        results[t] = p * r * r + r + np.float32(1)
        exponents[t] = power
    for t in range(size):
        bits[t] += np.int32(exponents[t]) << 23
