"""How the runs on real data become the table of docs/training.md."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture
def compact(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The benchmark as a module."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    spec = importlib.util.spec_from_file_location("benchmark_compact", ROOT / "benchmarks" / "compact.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules.pop("environment", None)
    return module


def test_the_summary_is_the_mean_and_the_range_over_the_seeds(compact: ModuleType) -> None:
    runs = {
        f"svhn-reg-{seed}": {"seed": seed, "test": dict.fromkeys(compact.SHOWN, value)}
        for seed, value in enumerate((0.5, 0.8, 0.2))
    }
    said = compact.summary(runs)["svhn-reg"]
    assert said["seeds"] == [0, 1, 2]
    assert all(said[key] == {"mean": 0.5, "least": 0.2, "most": 0.8} for key in compact.SHOWN)


def test_a_rendered_page_keeps_what_stands_around_the_table(
    compact: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, results = tmp_path / "page.md", tmp_path / "compact.json"
    page.write_text(f"before\n{compact.BEGIN}\nold\n{compact.END}\nafter\n")
    runs = {"svhn-reg-0": {"seed": 0, "test": dict.fromkeys(compact.SHOWN, 0.5)}}
    found = {"runs": runs, "over seeds": compact.summary(runs)}
    results.write_text(json.dumps(found))
    monkeypatch.setattr(compact, "PAGE", page)
    monkeypatch.setattr(compact, "RESULTS", results)
    compact.render()
    assert page.read_text() == f"before\n{compact.BEGIN}\n\n{compact.table(found)}\n\n{compact.END}\nafter\n"
