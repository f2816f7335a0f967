"""Results in words: every figure of a table with its interval, its spread and its marks."""

from __future__ import annotations

import pytest

from vicinal.paper import words
from vicinal.paper.results import Cell, Column, Difference, Estimate, Finding, Result, Table


def cell(row, column, mean, gain=None, published=None, n=2):
    found = None if gain is None else Difference(gain, gain - 0.01, gain + 0.01, 0.5, n)
    return Cell(row, column.key, Estimate(mean, 0.01, mean - 0.02, mean + 0.02, (mean,) * n), found, published)


REG, DIST = Column("digits", "Reg", Estimate(0.9, 0.02, 0.88, 0.92, (0.9, 0.9)), 0.6), Column("digits", "Dist")
CELLS = (
    cell("margin", REG, 0.8, published=0.83),
    cell("k_th", REG, 0.85, 0.05, 0.85),
    cell("k_th", DIST, 0.75, -0.05),
    cell("share", DIST, 0.76, 0.005),
)
TABLE = Table("Errors", "AUROC", ("margin", "k_th", "share", "none"), (REG, DIST), CELLS, "the margin")
FINDING = Finding("k_th is better", "digits, Reg", "confirmed", Difference(0.05, 0.04, 0.06, 0.001, 2), "above 0")
RESULT = Result("table1", "quick", (TABLE,), (FINDING,), notes=("mind this",))


def test_rows():
    assert words.rows(TABLE, [REG, DIST]) == [
        ["digits", "Reg (2 networks)", "Dist (2 networks)"],
        ["accuracy", "0.900 ± 0.020 (0.020), paper 0.600 +", ""],
        ["margin", "0.800 ± 0.020 (0.010), paper 0.830 -", ""],
        ["k th", "0.850 ± 0.020 (0.010) +, paper 0.850 =", "0.750 ± 0.020 (0.010) -"],
        ["share", "", "0.760 ± 0.020 (0.010) ="],
    ]


def test_findings():
    assert words.findings(RESULT)[1:] == [
        ["confirmed", "+0.0500 [+0.0400, +0.0600]", "above 0", "digits, Reg", "k_th is better"]
    ]
    assert words.findings(Result("table1", "quick", ())) == []
    unmeasured = Result("claims", "quick", (), (Finding("so", "there", "not measured"),))
    assert words.findings(unmeasured)[1] == ["not measured", "", "", "there", "so"]


def test_the_legend_says_what_there_is():
    assert [line.split(":")[0].split()[0] for line in words.legend(RESULT)] == ["Each", "+", "After"]
    timed = Table("Costs", "µs", ("a",), (DIST,), (cell("a", DIST, 3.0),), over="rounds")
    (line,) = words.legend(Result("costs", "quick", (timed,)))
    assert "median over rounds" in line


@pytest.mark.parametrize("width", [60, 80, 200])
def test_tables_fit_the_terminal(monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    text = words.text(RESULT)
    tables, _, _ = text.partition("\noutcome")
    assert max(map(len, tables.splitlines())) <= width
    assert text.count("0.850 ± 0.020 (0.010) +, paper 0.850 =") == text.count("0.750 ± 0.020 (0.010) -") == 1
    assert ("Reg (2 networks)" in text.split("Dist (2")[0].splitlines()[-1]) is (width >= 80)
    assert text.endswith("note: mind this")


def test_long_tables_stay_in_the_file():
    names = tuple(f"row {n}" for n in range(words.MOST_ROWS + 1))
    long = Table("All", "AUROC", names, (REG,), tuple(cell(name, REG, 0.5) for name in names))
    text = words.text(Result("figure1", "quick", (long,)))
    assert "All: 31 rows, in figure1.json" in text
    assert "row 3" not in text


@pytest.mark.parametrize(
    ("value", "shown"), [(0.12345, "0.123"), (9.9994, "9.999"), (12.345, "12.3"), (1234.5, "1,234"), (-0.5, "-0.500")]
)
def test_numbers(value, shown):
    assert words.number(value) == shown
