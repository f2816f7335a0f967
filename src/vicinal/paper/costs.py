"""Where the time goes: each score's cost for one prediction beside the network's forward pass; what training costs.

All contenders have one core, and take turns, round after round, so that a busy moment of the machine meets all of them.
A figure is the median over rounds, and its interval the quartiles.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from vicinal import score
from vicinal.bank import Bank
from vicinal.checks import Floats, Integers, Pixels
from vicinal.density import density
from vicinal.paper.banks import SHARE, approximately, condensed
from vicinal.paper.editions import METHODS, Source
from vicinal.paper.networks import Entry
from vicinal.paper.published import METHODS as TITLES
from vicinal.paper.results import Cell, Column, Estimate, Finding, Outcome, Result, Table
from vicinal.paper.scores import K
from vicinal.paper.views import Views
from vicinal.progress import track
from vicinal.values import Embeddings

__all__ = ["FORWARD", "costs", "held"]

FORWARD, DROPOUT = "forward pass of the network", "MC dropout"
WHOLE, SMALL = "distance", f"distance, {SHARE:.0%} of the bank"
_ROUNDS = 9
_IMAGES = 256
_WITH_DROPOUT = 32  # images of MC dropout, which takes long
_MICRO, _MEGA = 1e6, 1e6
_PAPERS = (1_000_000, 1024)  # points and dimensions of the paper's example
_MOST = 5.0  # million operations a query, as the paper has it

_Runs = dict[str, tuple[Callable[[], Any], int]]  # what to run, and how many predictions or steps that is


@dataclass(frozen=True, eq=False)
class _Cost:
    """What one data set's network and scores cost.

    Attributes:
        title: of the data set.
        predicting: seconds a prediction, by what is done, for each round.
        training: seconds a step, by the way of training, for each round.
        operations: millions a prediction, by what is done.
    """

    title: str
    predicting: Mapping[str, Floats]
    training: Mapping[str, Floats]
    operations: Mapping[str, float]


def costs(views: Views) -> Result:
    """The time of each score, and of a step of training, on one core of this machine."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        found = [
            _measured(views, source, entries[0])
            for source in track(views.edition.sources, "timing")
            if not views.networks.lacking(source.data)
            and (entries := views.networks.ready(source, "reg", source.networks))
        ]
    tables = (
        _table("What a prediction costs on one core", "µs", {cost.title: _times(cost) for cost in found}),
        _table("What a step of training costs on one core", "times Reg", {cost.title: _steps(cost) for cost in found}),
        _table("Operations of a prediction", "MFLOP", {cost.title: _counts(cost) for cost in found}),
    )
    findings = [finding for cost in found for finding in _findings(views, cost)]
    return Result("costs", views.edition.name, tables, (*findings, _of_a_million()))


def held(what: str, where: str, found: Estimate, low: float, high: float, wanted: str, why: str = "") -> Finding:
    """A figure that ought to lie between two others: surely so, surely not so, or neither."""
    inside = low <= found.low and found.high <= high
    outside = found.high < low or found.low > high
    outcome: Outcome = "confirmed" if inside else "not confirmed" if outside else "not settled"
    return Finding(what, where, outcome, found.less(0.0), wanted, why)


def _measured(views: Views, source: Source, entry: Entry) -> _Cost:
    networks = views.networks
    known, seen, bank = networks.data(source.data), views.seen(entry, "test"), networks.bank(entry)
    some = seen.take(np.arange(min(_IMAGES, len(seen))))
    network = networks.network(entry)
    runs = {**_passes(network, known.test.images[: len(some)], views.edition.passes, source.dropout)}
    runs |= _scores(bank, some)
    steps = _training(views, source, network, known.train.images, known.train.labels)
    operations = {
        FORWARD: _operations(network, known.test.images[:1]),
        WHOLE: _of_search(len(bank), bank.dimension),
        SMALL: _of_search(len(condensed(bank)), bank.dimension),
    }
    return _Cost(source.title, _in_turns(runs), _in_turns(steps), operations)


def _passes(network: Any, images: Pixels, passes: int, dropout: bool) -> _Runs:
    """A forward pass, and MC dropout where the network has any."""
    import torch

    from vicinal.learn.as_found import device_of
    from vicinal.learn.dropout import mc_dropout

    inputs = torch.from_numpy(network.preprocessing.apply(images)).to(device_of(network.module))
    few = inputs[:_WITH_DROPOUT]

    def forward() -> None:
        with torch.inference_mode():
            network.module(inputs)[0].cpu()

    found: _Runs = {FORWARD: (forward, len(inputs))}
    if dropout:
        found[DROPOUT] = (lambda: mc_dropout(network.module, few, passes=passes), len(few))
    return found


def _scores(bank: Bank, seen: Embeddings) -> _Runs:
    """Every score that needs no fitting, on the same predictions."""
    small, n, predicted = condensed(bank), len(seen), seen.predicted
    runs: dict[str, Callable[[], Any]] = {
        measure.__name__: partial(measure, seen.logits)
        for measure in (score.margin, score.entropy, score.max_logit, score.energy)
    }
    runs[WHOLE] = lambda: score.distance(bank, seen.vectors, predicted, k=min(K, len(bank)))
    runs[SMALL] = lambda: score.distance(small, seen.vectors, predicted, k=min(K, len(small)))
    if importlib.util.find_spec("vicinal.search.approximate") is not None:
        fast = approximately(bank)
        runs["distance, approximately"] = lambda: score.distance(fast, seen.vectors, predicted, k=min(K, len(fast)))
    runs["density"] = lambda: density(bank, seen.vectors, k=min(K, len(bank)))
    runs["kth_distance"] = lambda: score.kth_distance(bank, seen.vectors, k=min(K, len(bank)))
    runs["trust_ratio"] = lambda: score.trust_ratio(bank, seen.vectors, predicted)
    return {name: (run, n) for name, run in runs.items()}


def _training(views: Views, source: Source, network: Any, images: Pixels, labels: Integers) -> _Runs:
    """One step of each way of training, forward and backward, on its own first batch."""
    import torch

    from vicinal.learn.as_found import device_of
    from vicinal.learn.feed import feed
    from vicinal.learn.network import module_for
    from vicinal.learn.steps import STEPS, Forward

    found: _Runs = {}
    device = device_of(network.module)
    for method in METHODS:
        recipe = views.networks.recipe(Entry(source, method, 0))
        batch = next(feed(labels, recipe, seed=0, start=0, total=1, device=device))
        rows = batch.rows.cpu().numpy()
        inputs = torch.from_numpy(network.preprocessing.apply(images[rows])).to(device)
        wanted = torch.from_numpy(labels[rows]).to(device)
        fresh = module_for(recipe, len(network.classes), network.preprocessing.shape)
        module = Forward(fresh.to(device), recipe.precision).train()
        step = partial(_step, STEPS[method], module, inputs, wanted, batch.pairs, recipe)
        found[method] = (step, 1)
    return found


def _step(step: Callable[..., Any], *given: Any) -> None:
    """A step late in a run, until its loss is there."""
    step(*given, 1.0)[0].item()


def _in_turns(runs: _Runs) -> dict[str, Floats]:
    """Seconds a prediction or step, for each round; each turn begins with a run that does not count."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(_ROUNDS):
        for name, (run, count) in runs.items():
            run()
            begun = time.perf_counter()
            run()
            times[name].append((time.perf_counter() - begun) / count)
    return {name: np.array(found) for name, found in times.items()}


def _operations(network: Any, images: Pixels) -> float:
    """Millions of floating-point operations of one forward pass, as torch counts them."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from vicinal.learn.as_found import device_of

    inputs = torch.from_numpy(network.preprocessing.apply(images)).to(device_of(network.module))
    counter = FlopCounterMode(display=False)
    with counter, torch.no_grad():
        network.module(inputs)
    return float(counter.get_total_flops()) / _MEGA


def _of_search(points: int, dimensions: int) -> float:
    """Millions of operations to look at every point: a multiplication and an addition for each coordinate.

    Example:
        >>> _of_search(1_000_000, 1024)
        2048.0
    """
    return 2 * points * dimensions / _MEGA


def _table(title: str, figure: str, found: Mapping[str, Mapping[str, Estimate]]) -> Table:
    rows = tuple(dict.fromkeys(row for rows in found.values() for row in rows))
    columns = {name: Column(figure, name) for name in found}
    cells = [Cell(row, columns[name].key, value) for name, rows_ in found.items() for row, value in rows_.items()]
    return Table(title, figure, rows, tuple(columns.values()), tuple(cells), over="rounds")


def _times(cost: _Cost) -> dict[str, Estimate]:
    return {name: _estimate(seconds * _MICRO) for name, seconds in cost.predicting.items()}


def _steps(cost: _Cost) -> dict[str, Estimate]:
    return {TITLES[method]: _estimate(times / cost.training["reg"]) for method, times in cost.training.items()}


def _counts(cost: _Cost) -> dict[str, Estimate]:
    return {name: Estimate(count, None, count, count, (count,)) for name, count in cost.operations.items()}


def _estimate(values: Floats) -> Estimate:
    low, middle, high = (float(value) for value in np.quantile(values, (0.25, 0.5, 0.75)))
    return Estimate(middle, float(values.std(ddof=1)), low, high, tuple(values.tolist()))


def _findings(views: Views, cost: _Cost) -> list[Finding]:
    forward, where = cost.predicting[FORWARD], cost.title
    found = [
        held(f"{name} costs less than the forward pass", where, _estimate(times / forward), 0, 1, "below 1 times")
        for name, times in cost.predicting.items()
        if name.startswith("distance")
    ]
    if DROPOUT in cost.predicting:
        times, passes = _estimate(cost.predicting[DROPOUT] / forward), views.edition.passes
        why = "what no dropout touches runs once here, so that it may cost less"
        what = f"MC dropout costs as much as {passes} forward passes"
        found.append(held(what, where, times, 0.8 * passes, 1.2 * passes, f"about {passes} times", why))
    steps = {method: _estimate(times / cost.training["reg"]) for method, times in cost.training.items()}
    found.append(
        held("distance loss costs no training time", where, steps["distance"], 0, 1.05, "at most 1.05 times Reg")
    )
    what = "adversarial training can double the training time"
    found.append(held(what, where, steps["adversarial"], 1.5, 2.5, "1.5 to 2.5 times Reg"))
    return [*found, *_of_operations(cost)]


def _of_operations(cost: _Cost) -> list[Finding]:
    counts = _counts(cost)
    what = f"a query of {SHARE:.0%} of the bank takes at most {_MOST:g} MFLOP"
    small = held(what, cost.title, counts[SMALL], 0, _MOST, f"at most {_MOST:g} MFLOP")
    forward = cost.operations[FORWARD]
    share = cost.operations[SMALL] / forward
    part = Estimate(share, None, share, share, (share,))
    what = f"a query of {SHARE:.0%} of the bank takes fewer operations than the forward pass"
    return [small, held(what, cost.title, part, 0, 1, f"below 1 times the {forward:.3g} MFLOP of the forward pass")]


def _of_a_million() -> Finding:
    """The paper's own example, by arithmetic."""
    points, dimensions = _PAPERS
    count = _of_search(round(points * SHARE), dimensions)
    found = Estimate(count, None, count, count, (count,))
    what = f"{points:,} points in {dimensions:,} dimensions: a query takes at most {_MOST:g} MFLOP"
    why = f"to look at each of {SHARE:.0%} of the points; a search that skips 19 of 20 of these would do"
    return held(what, "by arithmetic", found, 0, _MOST, f"at most {_MOST:g} MFLOP", why)
