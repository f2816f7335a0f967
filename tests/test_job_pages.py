"""The figures on the pages of the jobs, of training and of speed are those of the committed runs."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = ("novelty", "ensembles", "production", "training", "speed", "search", "condensing")


@pytest.mark.parametrize("benchmark", ["novelty", "together", "pairs", "ensemble", "guard", "train", "scale"])
def test_the_tables_of_the_pages_are_those_of_the_committed_run(benchmark, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    spec = importlib.util.spec_from_file_location(f"benchmark_of_{benchmark}", ROOT / "benchmarks" / f"{benchmark}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for other in ("environment", "published"):
        sys.modules.pop(other, None)
    pages = "".join((ROOT / "docs" / f"{page}.md").read_text() for page in PAGES)
    for table in module.tables(json.loads(module.RESULTS.read_text())).values():
        assert table in pages


def test_the_bounds_that_were_promised_were_met():
    for name in ("ensemble", "guard"):
        assert json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())["met"] is True
