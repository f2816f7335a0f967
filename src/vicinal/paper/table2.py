"""Table 2: will a prediction be wrong, if two networks are asked?"""

from __future__ import annotations

from collections.abc import Iterator

from vicinal.paper import goals
from vicinal.paper.cells import Panel, goal
from vicinal.paper.editions import METHODS, Source
from vicinal.paper.inference import difference
from vicinal.paper.pairs import HOW, partners, scores_of_one, scores_of_two
from vicinal.paper.published import METHODS as TITLES
from vicinal.paper.published import published
from vicinal.paper.results import Cell, Column, Finding, Result, Table
from vicinal.paper.views import Views
from vicinal.progress import track

__all__ = ["table2"]

_BOTH = ("margin", "entropy", "own", "hybrid", "summed")


def table2(views: Views) -> Result:
    """AUROC of errors of pairs: as the paper has them, and every prediction in every embedding."""
    asked = [
        (source, predicts, embeds) for source in views.edition.sources for predicts in METHODS for embeds in METHODS
    ]
    found = [(*one, _ordered(views, *one)) for one in track(asked, "pairs of networks")]
    ordered = [(source, predicts, embeds, panel) for source, predicts, embeds, panel in found if len(panel)]
    findings = [finding for source in views.edition.sources for finding in _findings(views, source, ordered)]
    tables = (_as_published(views, ordered), _ordered_table(ordered))
    return Result("table2", views.edition.name, tables, tuple(findings))


_Ordered = list[tuple[Source, str, str, Panel]]


def _ordered(views: Views, source: Source, predicts: str, embeds: str) -> Panel:
    """The predictions of one kind of network in the embedding of another."""
    pairs = partners(*(views.networks.ready(source, method, source.networks) for method in (predicts, embeds)))
    ranks = [scores_of_one(views, first, second) for first, second in pairs]
    rights = [views.seen(first, "test").correct for first, _ in pairs]
    return Panel.of(source.title, _name(predicts, embeds), ranks, rights, rivals=("softmax",))


def _name(predicts: str, embeds: str) -> str:
    return f"{TITLES[predicts]} in {TITLES[embeds]}"


def _ordered_table(ordered: _Ordered) -> Table:
    """One row for each prediction and embedding, one column for each way to judge."""
    rows = tuple(dict.fromkeys(panel.column.name for *_, panel in ordered))
    titles = dict.fromkeys(panel.column.group for *_, panel in ordered)
    cells = []
    for *_, panel in ordered:
        for how in HOW:
            cell = panel.cell(how)
            if cell is not None:
                cells.append(_placed(cell, panel.column, how))
    columns = tuple(Column(title, how) for title in titles for how in HOW)
    return Table(
        title="The prediction of one network, judged in the embedding of another",
        figure="AUROC",
        rows=rows,
        columns=columns,
        cells=tuple(cells),
        rival="the averaged softmax",
    )


def _placed(cell: Cell, column: Column, how: str) -> Cell:
    """A cell of a panel, where rows and columns change places."""
    assert column.accuracy is not None
    beside = {**cell.beside, "accuracy": column.accuracy.mean}
    return Cell(column.name, Column(column.group, how).key, cell.value, cell.gain, None, beside)


def _as_published(views: Views, ordered: _Ordered) -> Table:
    """The paper's Table 2: two networks of a kind, and the hybrid with a Dist network; summed log-odds beside them."""
    columns, cells = [], []
    hybrids = {(source.data, predicts): panel for source, predicts, embeds, panel in ordered if embeds == "distance"}
    for source in views.edition.sources:
        for method in METHODS:
            panel = _of_a_kind(views, source, method)
            if not len(panel):
                continue
            columns.append(panel.column)
            cells += [panel.cell(row, published("table2", source.paper, row, method)) for row in _BOTH]
            hybrid = hybrids.get((source.data, method))
            cell = (
                None if hybrid is None else hybrid.cell("hybrid", published("table2", source.paper, "hybrid", method))
            )
            if cell is not None and hybrid is not None:
                gain = difference(hybrid.samples("hybrid"), hybrid.samples("margin"))
                cells.append(Cell("hybrid", panel.column.key, cell.value, gain, cell.published, cell.beside))
    return Table(
        title="Table 2: will a prediction be wrong, if two networks are asked?",
        figure="AUROC",
        rows=_BOTH,
        columns=tuple(columns),
        cells=tuple(cell for cell in cells if cell is not None),
        rival="the better of margin and entropy of both networks; of the hybrid, the margin of the predicting one",
    )


def _of_a_kind(views: Views, source: Source, method: str) -> Panel:
    """What two networks of a kind predict together."""
    entries = views.networks.ready(source, method, source.networks)
    found = [scores_of_two(views, *pair) for pair in partners(entries, entries)]
    ranks = [{row: values for row, values in one.items() if row != "right"} for one in found]
    return Panel.of(source.title, TITLES[method], ranks, [one["right"] == 1 for one in found])


def _findings(views: Views, source: Source, ordered: _Ordered) -> Iterator[Finding]:
    aimed = views.edition.name == "compact" and source.data == "cifar100"
    mine = [(predicts, embeds, panel) for at, predicts, embeds, panel in ordered if at.data == source.data]
    if not mine:
        return
    *_, best = max(mine, key=lambda one: sum(sample.value for sample in one[2].samples("hybrid")) / len(one[2]))
    what = "the best hybrid over the margin of the predicting network (the best by these very points)"
    yield from goal(what, best.column.key, best.gain("hybrid", "margin"), goals.HYBRID if aimed else None)
    for predicts, embeds, panel in mine:
        what = "summed log-odds over the averaged softmax"
        aim = goals.SUMMED if aimed and predicts != embeds else None
        yield from goal(what, panel.column.key, panel.gain("summed"), aim)
