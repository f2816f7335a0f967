"""The frame of ``benchmarks/scale.py``: parts, their sections in the result file, their tables in the pages."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def scale(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The benchmark, with a part that measures nothing, and with files of its own."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    module = importlib.import_module("scale")
    part = ModuleType("scale_weather")
    part.measure = lambda given: {"bars": [importlib.import_module("scaling").Bar("rain", 3, 2).to_json()]}
    part.tables = lambda section: {"weather": f"| {section['bars'][0]['measured']} |"}
    monkeypatch.setitem(__import__("sys").modules, "scale_weather", part)
    monkeypatch.setattr(module, "RESULTS", tmp_path / "scale.json")
    monkeypatch.setattr(module, "PARTS", ("weather",))
    monkeypatch.setattr(module, "PAGES", (tmp_path / "page.md",))
    (tmp_path / "page.md").write_text(
        "before <!-- weather: this table is written by benchmarks/scale.py -->old<!-- weather ends --> after"
    )
    return module


def test_a_part_replaces_its_own_section_and_its_table(scale, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["scale.py", "--embeddings", "/secret/place"])
    monkeypatch.setattr(scale, "tables", lambda results: scale.part("weather").tables(results["weather"]))
    scale.RESULTS.write_text(json.dumps({"weather": {"old": 1}, "another": {"kept": 2}}))
    scale.main()
    found = json.loads(scale.RESULTS.read_text())
    assert found["another"] == {"kept": 2}
    assert found["weather"]["bars"] == [{"of": "rain", "measured": 3, "limit": 2, "least": False, "met": False}]
    assert found["weather"]["not given"] == ["--networks"]
    assert found["weather"]["environment"]["command"].endswith("--only weather --embeddings FOLDER")
    assert "secret" not in scale.RESULTS.read_text()
    assert (tmp_path / "page.md").read_text() == (
        "before <!-- weather: this table is written by benchmarks/scale.py -->\n\n| 3 |\n\n<!-- weather ends --> after"
    )
    out = capsys.readouterr().out
    assert "weather: rain: 3, at most 2: MISSED" in out
    assert "--networks was not given" in out


def test_a_part_that_is_not_asked_for_is_not_measured(scale, monkeypatch):
    monkeypatch.setattr("sys.argv", ["scale.py", "--only", "rain"])
    with pytest.raises(SystemExit):
        scale.main()
    assert not scale.RESULTS.exists()


def test_given_folders_become_worlds_of_float32_points_and_their_predictions(scale, tmp_path):
    rng = np.random.default_rng(0)
    parts = {"train_vectors": rng.random((9, 4)), "test_vectors": rng.random((5, 4)), "test_logits": np.eye(5)}
    labels = {"train_labels": np.arange(9), "test_labels": np.arange(5)}
    np.savez(tmp_path / "net.npz", **{name: part.astype(np.float16) for name, part in parts.items()}, **labels)
    (world,) = importlib.import_module("scaling").Given(embeddings=tmp_path).worlds()
    assert (world.name, world.vectors.dtype, len(world.first(2).asked)) == ("net, 9 x 4", np.float32, 2)
    assert world.predicted.tolist() == [0, 1, 2, 3, 4]
