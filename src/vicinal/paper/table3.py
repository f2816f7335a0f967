"""Table 3: is an input of a known class at all?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vicinal.checks import Flags, Floats
from vicinal.paper import goals
from vicinal.paper.cells import Panel, goal
from vicinal.paper.editions import METHODS, Source
from vicinal.paper.networks import Entry
from vicinal.paper.published import METHODS as TITLES
from vicinal.paper.published import published
from vicinal.paper.results import Finding, Outcome, Result, Table
from vicinal.paper.table1 import ROWS as ERROR_ROWS
from vicinal.paper.table1 import as_paper
from vicinal.paper.views import Views

__all__ = ["table3"]

_MADE_FOR_IT = ("density", "class_density", "class_kth_distance", "mahalanobis (novelty)", "relative_mahalanobis")
ROWS = (*ERROR_ROWS, *_MADE_FOR_IT)


def table3(views: Views) -> Result:
    """AUROC of known against novel inputs, for every pair of data sets, way of training and score."""
    panels = list(_panels(views))
    cells = [
        panel.cell(row, published("table3", _paper(source, novel), as_paper(row), method), beside=False)
        for source, novel, method, panel in panels
        for row in ROWS
    ]
    table = Table(
        title="Table 3: is an input of a known class?",
        figure="AUROC",
        rows=ROWS,
        columns=tuple(panel.column for *_, panel in panels),
        cells=tuple(cell for cell in cells if cell is not None),
        rival="the better of margin and entropy",
    )
    findings = [finding for one in panels for finding in _findings(views, *one)]
    notes = [f"{novel}: {why}" for _, novel in views.edition.novelties if (why := views.networks.lacking(novel))]
    return Result("table3", views.edition.name, (table,), tuple(findings), notes=tuple(dict.fromkeys(notes)))


def _panels(views: Views) -> Iterator[tuple[Source, str, str, Panel]]:
    for known, novel in views.edition.novelties:
        source = views.edition.source(known)
        if source is None or views.networks.lacking(novel):
            continue
        for method in METHODS:
            entries = views.networks.ready(source, method, source.networks)
            found = [_ranks(views, entry, f"novel-{novel}") for entry in entries]
            group = f"{source.title} known, {_title(views, novel)} novel"
            ranks, rights = [one[0] for one in found], [one[1] for one in found]
            panel = Panel.of(group, TITLES[method], ranks, rights, accuracy=False)
            if len(panel):
                yield source, novel, method, panel


def _ranks(views: Views, entry: Entry, view: str) -> tuple[dict[str, Floats], Flags]:
    """Every score of known and novel inputs, one after the other, and which of them are known."""
    known, novel = views.judged(entry), views.look(entry, view)
    extra = [views.for_novelty(entry, one) for one in ("test", view)]
    found = {}
    for row in ROWS:
        parts = [more.get(row, one.rank(row)) for one, more in zip((known, novel), extra, strict=True)]
        if all(part is not None for part in parts):
            found[row] = np.concatenate([part for part in parts if part is not None])
    return found, np.arange(len(known.seen) + len(novel.seen)) < len(known.seen)


def _title(views: Views, name: str) -> str:
    source = views.edition.source(name)
    return {"digits-8-9": "8 and 9"}.get(name, name) if source is None else source.title


def _paper(source: Source, novel: str) -> str:
    """The paper's name of a pair."""
    return f"{source.paper}, novel {novel.partition('-')[0]}"


def _findings(views: Views, source: Source, novel: str, method: str, panel: Panel) -> Iterator[Finding]:
    where = panel.column.key
    yield from goal("distance over the better of margin and entropy", where, panel.gain("distance"))
    samples = {row: panel.samples(row) for row in ROWS}
    means = {row: sum(one.value for one in found) / len(found) for row, found in samples.items() if found}
    best = max(means, key=lambda row: means[row])
    cell = panel.cell(best, beside=False)
    if cell is not None and (views.edition.name, source.data, method) == ("compact", "svhn", "adversarial"):
        gap = cell.value.less(goals.NOVELTY)
        reached: Outcome = "confirmed" if gap.mean >= 0 else "not confirmed"
        yield Finding(f"AUROC of {best}, the best score here, less {goals.NOVELTY}", where, reached, gap, "at least 0")
