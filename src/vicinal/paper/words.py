"""Results in words: tables of cells for a terminal or a page, and findings."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Sequence

from vicinal.paper.results import Cell, Column, Difference, Finding, Result, Table, Verdict

__all__ = ["MARKS", "MOST_ROWS", "findings", "legend", "number", "rows", "text"]

MARKS: dict[Verdict, str] = {"better": "+", "equal": "=", "worse": "-"}
MOST_ROWS = 30  # of a table that is shown; longer ones are in the file
_WIDTH = 120  # of lines where no terminal says how wide it is
_OVER = {
    "networks": "Each figure is a mean over networks ± half of its 95 % interval, with the spread in brackets.",
    "groups": "Each figure is a mean over groups of networks ± half of its 95 % interval, with the spread in brackets.",
    "rounds": "Each figure is a median over rounds ± half of the gap of the quartiles, with the spread in brackets.",
}
_GAINS = "+ better, = equal, - worse than the rival, by a paired test on the same networks and points."
_PAPER = "After the paper's number: ours is + better, = equal, - worse, by our interval."
_Rows = list[list[str]]


def text(result: Result) -> str:
    """A result for a terminal, as wide as it is."""
    width = shutil.get_terminal_size((_WIDTH, 0)).columns
    parts = [f"{result.name}, edition {result.edition}", *_tables(result, width)]
    if result.findings:
        parts.append(_aligned(findings(result)))
    notes = [textwrap.fill(f"note: {note}", width, subsequent_indent="  ") for note in result.notes]
    return "\n\n".join([*parts, "\n".join([*legend(result), *notes])])


def rows(table: Table, columns: Sequence[Column]) -> _Rows:
    """The cells of some columns of one group, as words: a head, the accuracies if there are any, and a row each.

    Example:
        >>> from vicinal.paper.results import Estimate
        >>> cell = Cell("margin", "digits, Reg", Estimate(0.9, 0.01, 0.85, 0.95, (0.89, 0.91)), published=0.8)
        >>> column = Column("digits", "Reg")
        >>> rows(Table("Errors", "AUROC", ("margin",), (column,), (cell,)), [column])
        [['digits', 'Reg (2 networks)'], ['margin', '0.900 ± 0.050 (0.010), paper 0.800 +']]
    """
    head = [columns[0].group, *(_head(table, column) for column in columns)]
    accuracies = ["accuracy", *map(_accuracy, columns)]
    body = [[row.replace("_", " "), *(_cell(table.cell(row, column)) for column in columns)] for row in table.rows]
    shown = [line for line in body if any(line[1:])]
    return [head, *([accuracies] if any(accuracies[1:]) else []), *shown]


def findings(result: Result) -> _Rows:
    """The findings of a result, as words: a head, and a row each."""
    head = ["outcome", "found", "wanted", "where", "what"]
    return [head, *map(_finding, result.findings)] if result.findings else []


def legend(result: Result) -> list[str]:
    """What the figures of a result are, and its marks."""
    cells = [cell for table in result.tables for cell in table.cells]
    told = [_OVER[over] for over in dict.fromkeys(table.over for table in result.tables if table.cells)]
    told += [_GAINS] if any(cell.gain is not None for cell in cells) else []
    return [*told, _PAPER] if any(cell.published is not None for cell in cells) else told


def _tables(result: Result, width: int) -> Iterator[str]:
    for table in result.tables:
        if len(table.rows) > MOST_ROWS:
            yield f"{table.title}: {len(table.rows)} rows, in {result.name}.json"
            continue
        rival = f"; against {table.rival}" if table.rival else ""
        yield textwrap.fill(f"{table.title} ({table.figure}{rival})", width)
        for columns in table.groups().values():
            shown = [column for column in columns if any(table.cell(row, column) for row in table.rows)]
            yield from _blocks(rows(table, shown), width)


def _blocks(lines: _Rows, width: int) -> Iterator[str]:
    """Lines as columns side by side, as many at once as a width takes; the first stands before each block."""
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
    start = 1
    while start < len(widths):
        end = start + 1
        while end < len(widths) and widths[0] + sum(2 + wide for wide in widths[start : end + 1]) <= width:
            end += 1
        yield _aligned([[line[0], *line[start:end]] for line in lines])
        start = end


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = ("  ".join(cell.ljust(wide) for cell, wide in zip(line, widths, strict=True)) for line in lines)
    return "\n".join(line.rstrip() for line in padded)


def _head(table: Table, column: Column) -> str:
    numbers = {cell.value.n for row in table.rows if (cell := table.cell(row, column)) is not None}
    over = table.over.removesuffix("s") if numbers == {1} else table.over
    return f"{column.name} ({'/'.join(map(str, sorted(numbers)))} {over})"


def _accuracy(column: Column) -> str:
    if column.accuracy is None:
        return ""
    cell = Cell("accuracy", column.key, column.accuracy, published=column.published)
    return _cell(cell)


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return ""
    value = cell.value
    spread = "" if value.spread is None else f" ({number(value.spread)})"
    shown = f"{number(value.mean)} ± {number((value.high - value.low) / 2)}{spread}"
    gain = "" if cell.gain is None else f" {MARKS[cell.gain.verdict]}"
    return f"{shown}{gain}{_paper(cell)}"


def _paper(cell: Cell) -> str:
    if cell.published is None or cell.beside_paper is None:
        return ""
    return f", paper {number(cell.published)} {MARKS[cell.beside_paper]}"


def _finding(one: Finding) -> list[str]:
    return [one.outcome, _found(one.found), one.wanted, one.where, one.what]


def _found(gap: Difference | None) -> str:
    if gap is None:
        return ""
    return f"{_signed(gap.mean)} [{_signed(gap.low)}, {_signed(gap.high)}]"


def number(value: float) -> str:
    """Three digits after the point; fewer where there are many before it."""
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}" if abs(value) < 1000 else f"{value:,.0f}"


def _signed(value: float) -> str:
    return f"{value:+.4f}" if abs(value) < 1 else f"{value:+.1f}"
