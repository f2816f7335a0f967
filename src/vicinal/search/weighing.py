"""Adding up the weight of every point around each query, by class: Eq. 1 without a selection, compiled by Numba.

Names are those of ``kernels``: v falls as the distance grows, ``half`` is infinite for points that are not sifted.
"""

from __future__ import annotations

import numpy as np

from vicinal.compiled import compiled
from vicinal.search.kernels import FAST, LANES, squared_distance

__all__ = ["LEAST", "weigh", "weigh_few"]

LEAST = 1e-280  # an inverse distance of 0 is taken as this: heavier than any other, and finite when many are added up


@compiled(fastmath=FAST, error_model="numpy")
def weigh(
    products, half, first, skip, points, queries, codes, predicted, level,
    counts, doubt, inverse, reference, near, totals,
):  # fmt: skip
    """Add the weight of every point of a block to the total of its class: exp(reference - distance), or 1 / distance.

    ``reference`` holds, for the predicted class (0) and for all others (1), the distance that has weight 1: the nearest
    known so far, so that the largest weight of either side never underflows; ``near`` are the newest of them, and
    ``totals`` (queries, classes) are brought down to them first. With r the reference and v_r what v is there,

        r - d = (r² - d²) / (r + d) = (v - v_r) / (level[1] (r + d)),

    which does not lose the difference of two large distances, as r - d would. A point so near that rounding in float32
    would be felt (closer than ``doubt`` allows) is measured again, directly. ``counts`` says how many points each
    stands for; where it is empty, each stands for itself.
    """
    width = products.shape[1]
    distances, exponents = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    weights = np.empty(LANES, np.float32)
    bits = weights.view(np.int32)
    for i in range(products.shape[0]):
        row, wanted, totals_i = products[i], predicted[i], totals[i]
        if not inverse:
            _lower_reference(wanted, near[i], reference[i], totals_i)
        same_reference, same_level = _at_reference(reference[i, 0], level[i])
        other_reference, other_level = _at_reference(reference[i, 1], level[i])
        top, scale = np.float32(level[i, 0]), np.float32(1.0 / np.sqrt(level[i, 1]))
        slope, close = np.float32(1.0 / level[i, 1]), np.float32(doubt[i])
        nearest = np.float32(min(reference[i, 0], reference[i, 1]))
        for start in range(0, width, LANES):
            size = min(LANES, width - start)
            part, part_half = row[start : start + size], half[start : start + size]
            part_codes = codes[start : start + size]
            for t in range(size):
                v = part[t] - part_half[t]
                v = v if v > np.float32(-1e30) else np.float32(-1e30)
                gap = top - v
                distances[t] = np.sqrt(gap if gap > np.float32(0) else np.float32(0)) * scale
                exponents[t] = v
            if inverse:
                for t in range(size):
                    weights[t] = np.float32(1) / distances[t]
            else:
                for t in range(size):
                    same = part_codes[t] == wanted
                    both = distances[t] + (same_reference if same else other_reference) + np.float32(1e-30)
                    exponents[t] = (exponents[t] - (same_level if same else other_level)) * slope / both
                _exponentials(exponents, weights, bits, size)
            for t in range(size):
                code, weight = part_codes[t], np.float64(weights[t])
                if first + start + t == skip[i] or part_half[t] == np.inf:
                    weight = 0.0
                elif distances[t] <= close and distances[t] <= nearest + np.float32(25) + close:
                    exact = np.sqrt(squared_distance(points[start + t], queries[i]))
                    weight = _exact_weight(exact, reference[i, 0 if code == wanted else 1], inverse)
                if counts.shape[0] > 0:
                    weight *= counts[start + t]
                totals_i[code] += weight


@compiled(fastmath=FAST)
def _at_reference(reference, level):
    """A reference and v there, in float32; zeros where no point of its side is known, so that all stays finite."""
    if reference == np.inf:
        return np.float32(0), np.float32(0)
    return np.float32(reference), np.float32(level[0] - level[1] * reference * reference)


@compiled(fastmath=FAST, error_model="numpy")
def _exact_weight(distance, reference, inverse):
    return 1 / max(distance, LEAST) if inverse else np.exp(reference - distance)


@compiled(fastmath=FAST)
def weigh_few(points, places, codes, skip, queries, predicted, counts, inverse, reference, near, totals):
    """Add the weights of a few points, each measured directly."""
    for i in range(queries.shape[0]):
        if not inverse:
            _lower_reference(predicted[i], near[i], reference[i], totals[i])
        for j in range(points.shape[0]):
            if places[j] != skip[i]:
                side = 0 if codes[j] == predicted[i] else 1
                found = np.sqrt(squared_distance(points[j], queries[i]))
                weight = _exact_weight(found, reference[i, side], inverse)
                if counts.shape[0] > 0:
                    weight *= counts[j]
                totals[i, codes[j]] += weight


@compiled(fastmath=FAST)
def _lower_reference(wanted, near, reference, totals):
    """Bring the totals down to the nearest distances known by now."""
    for side in range(2):
        newest = near[side]
        if newest < reference[side]:
            factor = np.exp(newest - reference[side])
            for c in range(totals.shape[0]):
                if (c == wanted) == (side == 0):
                    totals[c] *= factor
            reference[side] = newest


@compiled(fastmath=FAST)
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
