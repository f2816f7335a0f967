"""Table 1: will a prediction be wrong? Every score of one network."""

from __future__ import annotations

from collections.abc import Iterator

from vicinal.checks import Floats
from vicinal.paper.cells import Panel, goal
from vicinal.paper.editions import METHODS, Source
from vicinal.paper.goals import wanted
from vicinal.paper.published import ACCURACIES, published
from vicinal.paper.published import METHODS as TITLES
from vicinal.paper.results import Finding, Result, Table
from vicinal.paper.views import Judged, Views

__all__ = ["ROWS", "as_paper", "columns", "ranks", "table1"]

ROWS = (
    "margin",
    "entropy",
    "as_published",
    "distance",
    "fused",
    "top_two_gap",
    "max_logit",
    "energy",
    "temperature",
    "trust_ratio",
    "kth_distance",
    "mahalanobis",
    "cleanlab",
    "local_outlier_factor",
    "one_class_svm",
)


def table1(views: Views) -> Result:
    """AUROC of errors for every data set, way of training and score."""
    panels = []
    for source, method, judged in columns(views):
        name, numbers = TITLES[method], ACCURACIES.get(source.paper)
        panel = Panel.of(source.title, name, [*map(ranks, judged)], [one.right for one in judged], published=numbers)
        panels += [(source, method, panel)] if len(panel) else []
    cells = [
        panel.cell(row, published("table1", source.paper, as_paper(row), method))
        for source, method, panel in panels
        for row in ROWS
    ]
    table = Table(
        title="Table 1: will a prediction be wrong?",
        figure="AUROC",
        rows=ROWS,
        columns=tuple(panel.column for *_, panel in panels),
        cells=tuple(cell for cell in cells if cell is not None),
        rival="the better of margin and entropy",
    )
    findings = [finding for panel in panels for finding in _findings(views, *panel)]
    return Result("table1", views.edition.name, (table,), tuple(findings))


def columns(views: Views) -> Iterator[tuple[Source, str, list[Judged]]]:
    """Every data set and way of training that has networks: their predictions of the test points, scored."""
    for source in views.edition.sources:
        for method in (*METHODS, "mcd") if source.dropout else METHODS:
            dropout = method == "mcd"
            entries = views.networks.ready(source, "reg" if dropout else method, source.networks)
            if dropout and views.networks.lacking(source.data):
                continue
            judged = [views.judged(entry, dropout=dropout) for entry in entries]
            if judged:
                yield source, method, judged


def ranks(judged: Judged) -> dict[str, Floats]:
    """What every row ranks by."""
    found = {row: judged.rank(row) for row in ROWS}
    return {row: values for row, values in found.items() if values is not None}


def as_paper(row: str) -> str:
    """The paper's name of a row: its distance score stands beside ours, saturated or not."""
    return "distance" if row == "as_published" else row


def _findings(views: Views, source: Source, method: str, panel: Panel) -> Iterator[Finding]:
    where, edition = panel.column.key, views.edition.name
    for row in ("distance", "fused"):
        aim = wanted(edition, row, source.data, method)
        yield from goal(f"{row} over the better of margin and entropy", where, panel.gain(row), aim)
    yield from goal("fused is not below the better of margin and entropy", where, panel.gain("fused"), 0.0)
