"""Results as data: verdicts and outcomes by their rules, and files that say the same again."""

from __future__ import annotations

import json

import pytest

from vicinal import store
from vicinal.errors import FileError
from vicinal.paper.results import (
    Cell,
    Column,
    Difference,
    Estimate,
    Finding,
    Result,
    Table,
    outcome_above,
    outcome_within,
)

COLUMN = Column("digits", "Reg", Estimate(0.9, 0.01, 0.88, 0.92, (0.89, 0.91)), 0.6)
GAIN = Difference(0.02, 0.01, 0.03, 0.001, 2)
CELL = Cell("distance", COLUMN.key, Estimate(0.8, 0.02, 0.75, 0.85, (0.78, 0.82)), GAIN, 0.7, {"aurc": 0.1})
ALONE = Cell("margin", COLUMN.key, Estimate(0.78, None, 0.7, 0.86, (0.78,)))
TABLE = Table("Errors", "AUROC", ("margin", "distance"), (COLUMN,), (ALONE, CELL), "margin", "networks")
FINDINGS = (Finding("so", "digits", "confirmed", GAIN, "above 0", "why"), Finding("not", "digits", "not measured"))
RESULT = Result("table1", "quick", (TABLE,), FINDINGS, {"a": "b"}, {"a": {"k": 1}}, {"commit": "c"}, ("note",))


@pytest.mark.parametrize(
    ("low", "high", "verdict"), [(0.01, 0.2, "better"), (-0.2, -0.01, "worse"), (-0.1, 0.1, "equal"), (0, 0.2, "equal")]
)
def test_a_difference_is_one_where_its_interval_leaves_out_0(low, high, verdict):
    assert Difference((low + high) / 2, low, high, None, 1).verdict == verdict


def test_a_cell_stands_against_the_papers_number():
    assert CELL.beside_paper == "better"
    assert ALONE.beside_paper is None
    assert CELL.value.less(0.7).mean == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("mean", "low", "wanted", "outcome"),
    [
        (0.02, 0.01, 0.02, "confirmed"),
        (0.019, 0.01, 0.02, "not confirmed"),
        (0.02, -0.01, 0.02, "not settled"),
        (0.02, 0.0, 0.0, "not settled"),
    ],
)
def test_as_large_as_wanted_and_surely_above_0(mean, low, wanted, outcome):
    assert outcome_above(Difference(mean, low, 0.05, None, 2), wanted) == outcome


@pytest.mark.parametrize(
    ("ends", "outcome"),
    [
        ([(-0.01, 0.01), (0.0, 0.02)], "confirmed"),
        ([(-0.01, 0.01), (0.0, 0.021)], "not settled"),
        ([(-0.01, 0.01), (0.021, 0.03)], "not confirmed"),
        ([(-0.03, -0.021)], "not confirmed"),
    ],
)
def test_surely_within_a_margin(ends, outcome):
    assert outcome_within([Difference(0, low, high, None, 2) for low, high in ends], 0.02) == outcome


def test_a_file_says_the_same_again(tmp_path):
    RESULT.save(tmp_path / "one.json")
    assert Result.load(tmp_path / "one.json") == RESULT


def test_numbers_have_six_digits(tmp_path):
    short = Estimate(1 / 3, None, 0, 1, (2 / 3,))
    table = Table("a", "b", ("r",), (COLUMN,), (Cell("r", COLUMN.key, short),))
    said = json.dumps(Result("a", "b", (table,)).to_json())
    assert "0.333333," in said
    assert "0.666667]" in said


def test_cells_by_place():
    assert TABLE.cell("distance", COLUMN) is CELL
    assert TABLE.cell("entropy", COLUMN) is None
    assert TABLE.groups() == {"digits": [COLUMN]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "other"}, "expected a vicinal.reproduction file"),
        ({"version": 2}, "expected version 1 or older, got 2"),
        ({"version": "1"}, "expected version 1 or older"),
        ({"tables": [{"title": "a"}]}, "expected a whole"),
        ({"tables": 3}, "expected a whole"),
    ],
)
def test_other_files_are_refused(tmp_path, change, said):
    store.write_json(tmp_path / "one.json", {**RESULT.to_json(), **change})
    with pytest.raises(FileError, match=said):
        Result.load(tmp_path / "one.json")


def test_a_list_is_refused(tmp_path):
    store.write_json(tmp_path / "one.json", [])
    with pytest.raises(FileError, match="expected a vicinal"):
        Result.load(tmp_path / "one.json")
