"""How hard approximate search has to look, found out on held-out queries.

The queries are points of the bank, each left out of its own answer, and brute force finds their true neighbours. One
half of them tells how many cells to look into, and how many points to measure; the other half tells what that finds,
and if it is too little, more is looked at until it is enough.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from vicinal.checks import Floats, Integers, Vectors
from vicinal.search import probing
from vicinal.search.approximate import ApproximateSearch, Effort
from vicinal.search.brute import BruteSearch
from vicinal.search.cells import Axes
from vicinal.search.points import Points
from vicinal.search.probe import NEAR, Contents, Probe
from vicinal.search.protocol import Codes, Found, Measured

__all__ = ["HeldOut", "Shortfall", "efforts", "enough_axes", "hold_out"]

_QUERIES = 256  # in each half
_RUNGS = (50, 200, 1_000)  # numbers of neighbours that efforts are found for
_SHARE = 20  # the k of an effort is at most one point in so many
_KEEP = (1.2, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)  # times k: points that are measured
_SIDES = (4, 8, 16, 32, 64, 128, 256)
_MISSED = 0.8  # of the neighbours that may be missed, those in cells that are not looked into
_SPARE = 0.3  # of what may be missed, so that other queries find enough too
_HARDER = 1.1  # times the cells, where it was too little
_WORTH = 0.5  # of brute force's work: more is not worth it
_CHECKED = 64  # queries that the number of axes is found on
_AXES = (32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096)


class Shortfall(Exception):
    """The recall that was asked for is not reached; ``best`` is the best that was."""

    def __init__(self, best: float) -> None:
        super().__init__(best)
        self.best = best


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Queries, and the truth about them.

    Attributes:
        queries: (m, d).
        places: (m,), where each stands in the bank: left out of its own answer.
        predicted: (m,), its class.
        truth: its nearest points, as brute force finds them.
    """

    queries: Vectors
    places: Integers
    predicted: Codes
    truth: Found

    def half(self, second: bool) -> HeldOut:
        """Every other query, from the first or the second on."""
        part, truth = slice(int(second), None, 2), self.truth
        assert truth.near_distances is not None
        assert truth.near_places is not None
        true = (truth.distances[part], truth.places[part], truth.near_distances[part], truth.near_places[part])
        return HeldOut(self.queries[part], self.places[part], self.predicted[part], Found(*true))

    def recall(self, distances: Floats, k: int) -> float:
        """The share of the true k nearest among what was found, by distance, so that ties count."""
        bar = self.truth.distances[:, k - 1, None]
        return float((distances[:, :k] <= bar).mean())

    def sides(self, near_distances: Floats) -> float:
        """The share of the nearest of either side that was found, where there is one."""
        assert self.truth.near_distances is not None
        there = np.isfinite(self.truth.near_distances)
        return float((near_distances <= self.truth.near_distances)[there].mean()) if there.any() else 1.0


def rungs(n: int) -> tuple[int, ...]:
    """The numbers of neighbours that efforts are found for, in a bank of n points."""
    return tuple(k for k in _RUNGS if k * _SHARE <= n) or (max(1, n // _SHARE),)


def hold_out(points: Points) -> HeldOut:
    """Held-out queries from some points."""
    living = np.flatnonzero(points.living)
    places = np.sort(np.random.default_rng(4).choice(living, min(2 * _QUERIES, len(living)), replace=False))
    queries, predicted = points.gather(places), points.codes[places]
    steps = rungs(len(living))
    k = min(max(steps[-1], 4 * steps[0]), len(living) - 1)
    return HeldOut(
        queries, places, predicted, BruteSearch(points).nearest(queries, k, exclude=places, predicted=predicted)
    )


def enough_axes(points: Points, axes: Axes, held: HeldOut, recall: float) -> list[int]:
    """Numbers of axes to try; the first is the least whose shadows tell the nearest of some from other points near."""
    d, k = points.dimension, rungs(int(points.living.sum()))[0]
    steps = [count for count in _AXES if count < d] + [d]
    places, asked = held.truth.places[:_CHECKED, : 4 * k], axes.shadows(held.queries[:_CHECKED])
    known, rows = np.unique(places, return_inverse=True)
    shadows = axes.shadows(points.gather(known))
    half = points.squares[known] * (axes.scale**2 / 2)
    rows = rows.reshape(places.shape)
    for number, count in enumerate(steps[:-1]):
        value = (asked[:, :count] @ shadows[:, :count].T).astype(np.float64) - half
        value = np.take_along_axis(value, rows, axis=1)
        bar = -np.partition(-value, 2 * k - 1, axis=1)[:, 2 * k - 1, None]
        if (value[:, :k] >= bar).mean() >= 1 - (1 - recall) / 4:
            return steps[number:]
    return steps[-1:]


def efforts(contents: Contents, held: HeldOut, recall: float) -> tuple[Effort, ...]:
    """How hard to look into some cells; fewer where larger numbers of neighbours are out of reach.

    Raises:
        Shortfall: where the smallest is out of reach.
    """
    first, second = held.half(False), held.half(True)
    found: list[Effort] = []
    for k in rungs(int(contents.points.living.sum())):
        try:
            found.append(_until_enough(contents, _first_guess(contents, first, k, recall), second, recall))
        except Shortfall:
            if not found:
                raise
            break
    return tuple(found)


def _first_guess(contents: Contents, held: HeldOut, k: int, recall: float) -> Effort:
    """What the truth about some queries says is enough for them."""
    probe = Probe(contents, held.queries, held.places, held.predicted)
    ranks = _ranks_of_cells(contents, probe)
    cells = _owners(contents)[held.truth.places[:, :k]]
    needed = np.take_along_axis(ranks, cells, axis=1)
    probes = int(np.quantile(needed, 1 - _MISSED * (1 - _aim(recall)), method="higher")) + 1
    size, count = contents.index.size, len(contents.index.centres)
    probes = min(count, max(probes, -(-2 * k * count // size)))  # with fewer than k points, all would be looked at
    everyone = slice(0, len(held.queries))
    chosen = probe.cells(everyone, probes)
    if _is_too_much(contents, probes * size / count):
        raise Shortfall(_best(needed, contents))
    counts, values, places = probe.candidates(everyone, chosen, int(_KEEP[-1] * k))
    measured = probe.measure(everyone, counts, places, k)
    values[np.arange(values.shape[1]) >= counts[:, None]] = -np.inf
    order = np.argsort(-values[:, : measured.shape[1]], axis=1)
    near = np.take_along_axis(measured, order, axis=1) <= held.truth.distances[:, k - 1, None]
    shares = np.minimum(np.cumsum(near, axis=1), k).mean(axis=0) / k
    keep = next((int(t * k) for t in _KEEP if shares[min(int(t * k), len(shares)) - 1] >= _aim(recall)), 0)
    sides = _enough_cells(probe, counts, places, measured, held, k, recall)
    return Effort(k, probes, keep or int(_KEEP[-1] * k), sides, Measured(0.0, 0.0, 0.0, 0))


def _best(needed: Integers, contents: Contents) -> float:
    """The share of neighbours in as many cells as are half the work; ``needed`` says how many cells each needs."""
    cells = _WORTH * len(contents.index.centres)
    return float((needed < cells).mean())


def _enough_cells(
    probe: Probe, counts: Integers, places: Integers, measured: Floats, held: HeldOut, k: int, recall: float
) -> int:
    """How many cells find the nearest point of a side that is not among the candidates."""
    for sides in _SIDES:
        near, near_places = np.full((len(places), 2), np.inf), np.full((len(places), 2), -1, np.int64)
        probing.settle_sides(counts, places, measured, probe.points.codes, probe.predicted, near, near_places)
        cells = probe.cells(slice(0, len(places)), _SIDES[-1])
        probe.look_for_sides(near, near_places, sides, cells, held.truth.distances[:, k - 1])
        if held.sides(near) >= recall:
            break
    return sides


def _until_enough(contents: Contents, effort: Effort, held: HeldOut, recall: float) -> Effort:
    """The same effort, or a greater, that finds enough for queries it was not chosen on, and a little more."""
    best, aim = 0.0, _aim(recall)
    while True:
        measured = _measured(contents, effort, held)
        best = max(best, measured.recall)
        if measured.recall >= aim and (measured.sides >= recall or effort.sides >= _SIDES[-1]):
            return replace(effort, measured=measured)
        if _is_too_much(contents, measured.flop / (2 * contents.points.dimension)):
            if measured.recall >= recall:
                return replace(effort, measured=measured)
            raise Shortfall(best)
        if measured.recall >= aim:
            effort = replace(effort, sides=2 * effort.sides)
        else:
            probes, keep = (int(np.ceil(_HARDER * n)) for n in (effort.probes, effort.keep))
            effort = replace(effort, probes=probes, keep=keep)


def _aim(recall: float) -> float:
    """What to reach on points of the bank, so that other queries, which lie less near to it, find ``recall``."""
    return recall + _SPARE * (1 - recall)


def _is_too_much(contents: Contents, distances: float) -> bool:
    """Whether so many distances of a query are no less work than all of them."""
    return bool(distances > _WORTH * contents.points.living.sum())


def _measured(contents: Contents, effort: Effort, held: HeldOut) -> Measured:
    trial = ApproximateSearch(contents.points, contents, (effort,))
    found = trial.nearest(held.queries, effort.k, exclude=held.places, predicted=held.predicted)
    assert found.near_distances is not None
    recall, sides = held.recall(found.distances, effort.k), held.sides(found.near_distances)
    return Measured(recall, sides, _flop(contents, effort, held), len(held.queries))


def _flop(contents: Contents, effort: Effort, held: HeldOut) -> float:
    """Operations of a query in the mean, both sides included, from the lengths of the cells it looks into."""
    d, (cells, p) = contents.points.dimension, contents.index.centres.shape
    probe = Probe(contents, held.queries, held.places, held.predicted)
    everyone = slice(0, len(held.queries))
    work = 2 * p * (d + cells + _lengths(contents, probe.cells(everyone, effort.probes)))
    work += 2 * d * effort.keep
    assert held.truth.near_distances is not None
    for side in (probing.SAME, probing.OTHER):
        lacking = np.flatnonzero(held.truth.near_distances[:, side] > held.truth.distances[:, effort.k - 1])
        if len(lacking):
            more = 2 * p * _lengths(contents, probe.cells(lacking, effort.sides, side)) + 2 * d * NEAR
            work += more * len(lacking) / len(held.queries)
    return float(work)


def _lengths(contents: Contents, chosen: Integers) -> float:
    """How many points the chosen cells of a query hold, in the mean."""
    sizes = np.append(sum(np.diff(layer.starts) for layer in contents.index.layers), 0)
    return float(sizes[chosen].sum(axis=1).mean())


def _ranks_of_cells(contents: Contents, probe: Probe) -> Integers:
    """(m, cells), how many cells lie nearer to a query than each."""
    order = np.argsort(contents.index.half - probe.shadows @ contents.index.centres.T, axis=1)
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(order.shape[1])[None], axis=1)
    return ranks


def _owners(contents: Contents) -> npt.NDArray[np.int64]:
    """(n,), the cell of each point."""
    owners = np.empty(contents.index.size, np.int64)
    for layer in contents.index.layers:
        owners[layer.places] = layer.owners
    return owners
