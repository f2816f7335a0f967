"""Results as pictures: dots with their intervals beside the paper's numbers, and Figure 1's lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vicinal import plots
from vicinal.errors import InputError
from vicinal.paper.results import Cell, Column, Result, Table, Verdict
from vicinal.paper.words import MARKS, MOST_ROWS, number
from vicinal.plots.canvas import FAINT, grid, name_axes, spaced, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D

__all__ = ["draw"]

_COLOURS: dict[Verdict, str] = {"better": plots.AGREES, "equal": plots.SOFT, "worse": plots.CONTRADICTS}
_LINES = (plots.AGREES, "#009E73", plots.CONTRADICTS, plots.INK)  # colours that the colour-blind tell apart
_DASHES: tuple[object, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (5, 1.5, 1.5, 1.5)))
_LEAST, _LEFT, _PANEL, _WIDEST = 9.0, 2.0, 2.3, 3.6  # inches: of the figure, its left margin, its panels
_ROW, _HEAD, _FOOT = 0.25, 0.85, 0.6  # inches
_BELOW = 0.15  # AUROC below the median that is shown; what is less is an arrow at the edge
_NUMBERS = 0.55  # share of a panel that is kept for the numbers


def draw(result: Result) -> Figure:
    """The figure of a result."""
    return _curves(result) if result.name == "figure1" else _dots(result)


def _dots(result: Result) -> Figure:
    """Each group of columns of each table as a row of panels."""
    blocks = [
        (table, columns, rows)
        for table in result.tables
        for columns in table.groups().values()
        if (rows := _rows(table, columns)) and len(rows) <= MOST_ROWS
    ]
    if not blocks:
        raise InputError(f"{result.name}: expected something to draw, got no cells")
    heights = [_HEAD + _ROW * len(rows) + _FOOT for *_, rows in blocks]
    width = max(_LEAST, _LEFT + _PANEL * max(len(columns) for _, columns, _ in blocks) + 0.2)
    whole = plots.figure(width, sum(heights))
    parts = whole.subfigures(len(blocks), 1, squeeze=False, height_ratios=heights, hspace=0)[:, 0]
    for part, (table, columns, rows) in zip(parts, blocks, strict=True):
        _draw_group(part, table, columns, rows)
    return whole


def _rows(table: Table, columns: Sequence[Column]) -> list[str]:
    return [row for row in table.rows if any(table.cell(row, column) for column in columns)]


def _draw_group(into: SubFigure, table: Table, columns: Sequence[Column], rows: Sequence[str]) -> None:
    width, height = plots.inches(into)
    panel = min(_WIDEST, (width - _LEFT - 0.15) / len(columns))
    right = width - _LEFT - panel * len(columns)
    panels = grid(into, 1, len(columns), left=_LEFT, right=right, bottom=_FOOT, top=_HEAD, gap=0.2)
    cells = [cell for row in rows for column in columns if (cell := table.cell(row, column)) is not None]
    low = _limits(panels[0], table, cells)
    for place, (axes, column) in enumerate(zip(panels, columns, strict=True)):
        for y, row in enumerate(rows):
            cell = table.cell(row, column)
            if cell is not None:
                _draw_cell(axes, y, cell, low)
        style(axes, bottom=True, left=place == 0)
        axes.set_title(_heading(column), loc="left", fontsize=9.5, color=plots.INK, pad=5)
    panels[0].set_ylim(len(rows) - 0.4, -0.6)
    panels[0].set_yticks(range(len(rows)), [spaced(row) for row in rows], fontsize=9, color=plots.INK)
    heading = table.title if columns[0].group == table.figure else f"{columns[0].group}: {table.title}"
    into.text(0.1 / width, 1 - 0.24 / height, heading, fontsize=11, weight="bold")
    into.text(0.1 / width, 1 - 0.46 / height, _told(table, cells), fontsize=8.5, color=plots.SOFT)
    name_axes(into, table.figure)


def _told(table: Table, cells: Sequence[Cell]) -> str:
    counted = all(cell.value.low == cell.value.high for cell in cells)
    measured = "dots are medians, bars quartiles" if table.over == "rounds" else "dots are means, bars their intervals"
    told = ["counted, not measured" if counted else measured]
    if any(cell.gain is not None for cell in cells):
        told.append(f"+ better, = equal, - worse than {table.rival}, by test")
    if any(cell.published is not None for cell in cells):
        told.append("diamonds are the paper's")
    return "; ".join(told)


def _heading(column: Column) -> str:
    accuracy = "" if column.accuracy is None else f"  accuracy {number(column.accuracy.mean)}"
    return f"{column.name}{accuracy}"


def _limits(axes: Axes, table: Table, cells: Sequence[Cell]) -> float:
    """Set the horizontal limits with room for numbers at the right; the least value that is shown."""
    values = [
        number for cell in cells for number in (cell.value.low, cell.value.high, cell.published or cell.value.low)
    ]
    if _is_wide(table):
        low, high = min(value for value in values if value > 0), max(values)
        axes.set_xscale("log")
        span = max(1.0, np.log10(high / low))
        axes.set_xlim(low / 10 ** (0.08 * span), high * 10 ** (_NUMBERS * span))
        return low
    middle = float(np.median([cell.value.mean for cell in cells]))
    low, high = max(min(values), middle - _BELOW), max(values)
    span = max(high - low, 0.01)
    axes.set_xlim(low - 0.06 * span, high + _NUMBERS * span)
    axes.set_xticks(_ticks(low, high))
    return low


def _ticks(low: float, high: float) -> list[float]:
    """A few round numbers between two others."""
    from matplotlib.ticker import MaxNLocator

    return [tick for tick in MaxNLocator(3, steps=[1, 2, 5, 10]).tick_values(low, high) if low <= tick <= high]


def _is_wide(table: Table) -> bool:
    """Whether its figures span orders of magnitude."""
    return table.figure in ("µs", "MFLOP")


def _draw_cell(axes: Axes, y: int, cell: Cell, low: float) -> None:
    colour = plots.INK if cell.gain is None else _COLOURS[cell.gain.verdict]
    mark = "" if cell.gain is None else f" {MARKS[cell.gain.verdict]}"
    value = cell.value
    if cell.published is not None and cell.published >= low:
        axes.plot([cell.published], [y], "D", markersize=5, color="none", markeredgecolor=plots.SOFT, gid="paper")
    if value.mean < low:
        axes.plot([low], [y], "<", color=colour, markersize=5, markeredgewidth=0, gid=f"dot:{cell.row}")
    else:
        ends = [max(value.low, low), max(value.high, low)]
        axes.plot(ends, [y, y], color=colour, linewidth=1.8, alpha=0.7, solid_capstyle="round")
        axes.plot([value.mean], [y], "o", color=colour, markersize=5, markeredgewidth=0, gid=f"dot:{cell.row}")
    edge = max(low, value.high, cell.published or low)
    axes.annotate(
        f"{number(value.mean)}{mark}",
        (edge, y),
        (7, 0),
        textcoords="offset points",
        fontsize=8,
        color=plots.INK,
        va="center_baseline",
    )


def _curves(result: Result) -> Figure:
    """Figure 1: a panel for each data set, its lines over the number of networks, with their intervals."""
    tables = [table for table in result.tables if table.title.startswith("Figure 1") and table.cells]
    if not tables:
        raise InputError(f"{result.name}: expected something to draw, got no lines")
    names = list(dict.fromkeys(row for table in tables for row in table.rows))
    width, height = max(7.0, 0.2 + 4.2 * len(tables)), 4.9
    whole = plots.figure(width, height)
    upper, lower = whole.subfigures(2, 1, squeeze=False, height_ratios=[3.7, 1.2], hspace=0)[:, 0]
    parts = upper.subfigures(1, len(tables), squeeze=False, wspace=0)[0]
    for part, table in zip(parts, tables, strict=True):
        _draw_lines(part, table)
    for place, name in enumerate(names):
        y = 0.9 - 0.2 * place
        handle = _line(place)
        lower.add_artist(_sample(handle, 0.2 / width, 0.75 / width, y))
        lower.text(0.9 / width, y, _described(result, name), fontsize=8.5, color=plots.INK, va="center")
    return whole


def _draw_lines(into: SubFigure, table: Table) -> None:
    axes = grid(into, 1, 1, left=0.75, right=0.25, bottom=0.55, top=0.4, gap=0)[0]
    columns = sorted(table.columns, key=lambda column: int(column.name))
    for place, row in enumerate(table.rows):
        found = [(int(column.name), cell.value) for column in columns if (cell := table.cell(row, column)) is not None]
        xs = [size + 0.06 * (place - 1.5) for size, _ in found]  # side by side, so that no bar hides another
        axes.vlines(
            xs, [one.low for _, one in found], [one.high for _, one in found], color=_LINES[place % 4], alpha=0.35
        )
        axes.plot(xs, [one.mean for _, one in found], marker="o", markersize=4, gid=f"line:{row}", **_line(place))
    style(axes, bottom=True, left=True)
    axes.set_xticks([int(column.name) for column in columns])
    axes.set_title(columns[0].group, loc="left", fontsize=11, color=plots.INK, weight="bold", pad=6)
    axes.spines["bottom"].set_color(FAINT)
    name_axes(into, "number of networks", "accuracy")


def _line(place: int) -> dict[str, Any]:
    return {"color": _LINES[place % 4], "linestyle": _DASHES[place % 4], "linewidth": 1.8}


def _sample(look: dict[str, Any], start: float, end: float, y: float) -> Line2D:
    from matplotlib.lines import Line2D

    return Line2D([start, end], [y, y], **look)


def _described(result: Result, name: str) -> str:
    """A line's name, and what it stands for on each data set, as the notes have it."""
    told = [note.partition(f": {name} is ") for note in result.notes]
    return f"{name}: " + "; ".join(f"{what.partition(';')[0]} ({data})" for data, found, what in told if found)
