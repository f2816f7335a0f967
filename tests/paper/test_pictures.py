"""Pictures of results: every dot at its figure, every word legible."""

from __future__ import annotations

import pytest

from legible import assert_legible
from vicinal.errors import InputError
from vicinal.paper.claims import claims
from vicinal.paper.figure1 import LINES, figure1
from vicinal.paper.pictures import draw
from vicinal.paper.results import Cell, Column, Difference, Estimate, Result, Table
from vicinal.paper.table1 import table1
from vicinal.paper.table2 import table2
from vicinal.paper.table3 import table3


def lines_of(figure, kind):
    return [
        line
        for axes in figure.findobj(lambda one: hasattr(one, "lines") and hasattr(one, "get_xlim"))
        for line in axes.lines
        if (line.get_gid() or "").startswith(kind)
    ]


@pytest.mark.parametrize("make", [table1, table2, table3, figure1, claims])
def test_every_word_is_legible(views, make):
    assert_legible(draw(make(views)))


def test_every_cell_is_a_dot(views):
    result = table2(views)
    dots = lines_of(draw(result), "dot:")
    cells = [cell for table in result.tables for cell in table.cells]
    assert len(dots) == len(cells)
    shown = {(dot.get_gid(), round(float(dot.get_xdata()[0]), 9)) for dot in dots if dot.get_marker() == "o"}
    for one in cells:
        assert (f"dot:{one.row}", round(one.value.mean, 9)) in shown or one.value.mean < 0.8


def test_the_papers_numbers_are_diamonds_and_what_is_far_below_an_arrow():
    column = Column("digits", "Reg")
    gain = Difference(-0.5, -0.6, -0.4, 0.0, 2)
    cells = [
        Cell(row, column.key, Estimate(mean, 0.01, mean - 0.02, mean + 0.02, (mean, mean)), found, published)
        for row, mean, found, published in (
            ("a", 0.9, None, 0.91),
            ("b", 0.92, None, None),
            ("c", 0.93, None, None),
            ("far", 0.3, gain, None),
        )
    ]
    table = Table("Errors", "AUROC", ("a", "b", "c", "far"), (column,), tuple(cells), "a")
    figure = draw(Result("table1", "quick", (table,)))
    assert_legible(figure)
    (diamond,) = lines_of(figure, "paper")
    assert diamond.get_xdata()[0] == 0.91
    assert [dot.get_marker() for dot in lines_of(figure, "dot:")] == ["o", "o", "o", "<"]
    words = [text.get_text() for text in figure.findobj(lambda one: hasattr(one, "get_text"))]
    assert "0.300 -" in words


def test_the_lines_of_figure_1_are_those_of_its_table(views):
    result = figure1(views)
    table, lines = result.tables[0], lines_of(draw(result), "line:")
    assert [line.get_gid() for line in lines] == [f"line:{name}" for name in LINES]
    for line, name in zip(lines, LINES, strict=True):
        expected = [table.cell(name, column).value.mean for column in table.columns if table.cell(name, column)]
        assert sorted(line.get_ydata()) == pytest.approx(sorted(expected))


@pytest.mark.parametrize("name", ["table1", "figure1"])
def test_nothing_cannot_be_drawn(name):
    with pytest.raises(InputError, match="something to draw"):
        draw(Result(name, "quick", ()))
