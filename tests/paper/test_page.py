"""docs/reproduction.md prints what the committed results say, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from vicinal.errors import FileError
from vicinal.paper.page import block, main, render
from vicinal.paper.results import Cell, Column, Difference, Estimate, Finding, Result, Table

ROOT = Path(__file__).parent.parent.parent
PAGE, RESULTS = ROOT / "docs" / "reproduction.md", ROOT / "results"
MADE = {
    "command": "vicinal reproduce table1 --edition quick",
    "commit": "0123456789abcdef with changes",
    "date": "2026-01-01 00:00 UTC",
    "machine": {"cores": 2, "cpu": "a CPU"},
    "versions": {"python": "3.11", "numpy": "2", "torch": "2"},
}


@pytest.fixture
def results(tmp_path):
    """A folder with one result."""
    column = Column("digits", "Reg")
    cells = (Cell("margin", column.key, Estimate(0.8125, 0.01, 0.79, 0.835, (0.8, 0.825))),)
    finding = Finding("so", "digits", "confirmed", Difference(0.0123, 0.01, 0.02, 0.01, 2), "above 0")
    table = Table("Errors", "AUROC", ("margin",), (column,), cells)
    place = tmp_path / "results" / "quick"
    place.mkdir(parents=True)
    Result("table1", "quick", (table,), (finding,), {"a": "b"}, {}, MADE, ("a note",)).save(place / "table1.json")
    return tmp_path / "results"


def test_what_stands_between_the_marks_is_written_again(results):
    text = "before\n<!-- results: quick table1 -->\nold\n<!-- results end -->\nafter\n"
    new = render(text, results, "../results")
    assert new.startswith(
        "before\n<!-- results: quick table1 -->\n\n![table1, edition quick](../results/quick/table1.svg)"
    )
    assert new.endswith("\n\n<!-- results end -->\nafter\n")
    assert "old" not in new
    assert render(new, results, "../results") == new


def test_a_block_holds_figures_findings_notes_and_where_it_was_made(results):
    text = block(Result.load(results / "quick" / "table1.json"), "../results/quick/table1")
    assert "| margin | 0.812 ± 0.022 (0.010) |" in text
    assert "| confirmed | +0.0123 [+0.0100, +0.0200] | above 0 | digits | so |" in text
    assert "- a note" in text
    assert (
        "`results/quick/table1.json`: `vicinal reproduce table1 --edition quick`, commit 0123456 with changes" in text
    )


def test_a_page_is_written_in_place(results, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("<!-- results: quick table1 -->\n<!-- results end -->\n")
    main(["page.md", "results"])
    assert "| margin | 0.812" in page.read_text()
    with pytest.raises(FileError, match="expected a page"):
        main([])


def test_the_page_is_what_the_committed_results_make_of_it():
    text = PAGE.read_text(encoding="utf-8")
    assert render(text, RESULTS, "../results") == text


def test_every_number_in_the_prose_is_in_a_result_too():
    """Numbers with a point, outside of what is generated."""
    text = PAGE.read_text(encoding="utf-8")
    blocks = "".join(re.findall(r"<!-- results: .*?<!-- results end -->", text, re.DOTALL))
    prose = re.sub(r"<!-- results: .*?<!-- results end -->", "", text, flags=re.DOTALL)
    assert blocks
    for number in re.findall(r"(?<![\w.])[+-]?\d*\.\d+", prose):
        assert number in blocks, number


def test_every_committed_result_can_be_read():
    found = sorted(RESULTS.glob("*/*.json"))
    assert found
    for path in found:
        result = Result.load(path)
        assert (result.edition, result.name) == (path.parent.name, path.stem)
        assert {"command", "commit", "code", "machine", "versions"} <= set(result.made)
        assert result.networks
