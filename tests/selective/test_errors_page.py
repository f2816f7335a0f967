"""The figures on the page about refusing predictions are those of the committed runs, and hold what the page says."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")


def results(name):
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["fusion", "selective"])
def test_the_tables_are_those_of_the_committed_run(name, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    spec = importlib.util.spec_from_file_location(f"benchmark_of_{name}", ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for other in ("environment", "published"):
        sys.modules.pop(other, None)
    for table in module.tables(results(name)).values():
        assert table in PAGE


def test_the_sentence_about_smaller_banks_has_the_figures_of_the_run():
    found = results("fusion")
    thin, full = found["smaller_bank"]["mean"], found["networks"]["cifar100_resnet20"]["halves"]["mean"]
    said = " ".join(PAGE.split())
    assert f"gives {thin['distance']:.3f} for distance in place of {full['distance']:.3f}" in said
    assert f"and {thin['fused']:.3f} fused in place of {full['fused']:.3f}" in said
    leads = found["networks"]["cifar100_densenet_4bit"]["leads"]
    assert f"{leads['margin']} for margin, {leads['entropy']} for entropy and {leads['fused']} fused" in said


def test_the_promise_failed_no_more_often_than_promised_in_the_committed_run():
    found = results("selective")
    for scores in found["ours"].values():
        for one in scores.values():
            assert one["failed"] <= one["delta"]
    for peers in found["mapie"].values():
        kept = {name: one["kept"] for name, one in peers.items()}
        assert kept["vicinal"] == max(kept.values())
