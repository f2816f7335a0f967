"""``vicinal reproduce`` through the real command line: what it prints, asks and refuses; killed, it goes on."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer

from vicinal import store
from vicinal.paper import reproduction
from vicinal.paper.editions import EDITIONS
from vicinal.paper.networks import Networks


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder of networks: one of each kind, in an epoch each."""
    from vicinal.learn.train import train_dataset

    root, edition = tmp_path_factory.mktemp("runs"), small()
    networks = Networks(root, edition)
    for entry in networks.wanted():
        given = {"out": networks.folder / entry.name, "seed": entry.seed, "validation": edition.validation}
        train_dataset(entry.source.data, networks.recipe(entry), root=networks.data_root, **given)
    return root


def small():
    from dataclasses import replace

    quick = EDITIONS["quick"]
    source = replace(quick.sources[0], networks=1, figure=1)
    return replace(quick, sources=(source,), changes={"epochs": 3}, variants={}, passes=2, ks=(5, 20))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, runs):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(runs, tmp_path / "runs")
    monkeypatch.setattr(reproduction, "EDITIONS", {**EDITIONS, "quick": small()})
    return tmp_path


def test_it_prints_the_plan_the_tables_and_where_they_are(done, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    out = done("reproduce table1 table3")
    lines = out.splitlines()
    assert lines[0] == "quick: 3 networks there, nothing to train"
    assert lines[-1] == "written: results/quick/ table1, table3, each as .json, .svg and .png"
    said = store.read_json("results/quick/table1.json")
    cells = {(cell["row"], cell["column"]): cell["value"]["mean"] for cell in said["tables"][0]["cells"]}
    (line,) = [line for line in lines[: lines.index("table3, edition quick")] if line.startswith("margin ")]
    assert line.split()[1] == f"{cells['margin', 'digits, Reg']:.3f}"
    assert Path("results/quick/table3.svg").stat().st_size > 0


def test_json_is_all_that_is_printed(done):
    (found,) = json.loads(done("reproduce table3 --json --out elsewhere"))
    assert found == store.read_json("elsewhere/quick/table3.json")


def test_results_of_other_code_need_a_yes(run, done):
    done("reproduce table3")
    path = Path("results/quick/table3.json")
    said = store.read_json(path)
    said["made"]["code"] = "another"
    store.write_json(path, said)
    code, _, err = run("reproduce table3")
    assert code == 2
    assert "results/quick/table3.json: made by another version of the code; replace it? say --yes to do so" in err
    assert store.read_json(path)["made"]["code"] == "another"
    done("reproduce table3 --yes")
    assert store.read_json(path)["made"]["code"] != "another"


@pytest.mark.parametrize("agrees", [True, False])
def test_a_person_is_asked(run, done, monkeypatch, agrees):
    done("reproduce table3")
    store.write_json("results/quick/table3.json", {})
    asked = []

    def confirm(words, abort):
        asked.append(words)
        if not agrees and abort:
            raise typer.Abort

    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("typer.confirm", confirm)
    assert run("reproduce table3")[0] == (0 if agrees else 130)
    assert (store.read_json("results/quick/table3.json") == {}) is not agrees
    assert asked == ["results/quick/table3.json: made by another version of the code; replace it?"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("reproduce", "Missing argument"),
        ("reproduce table9", "name: expected one of 'table1', 'table2'"),
        ("reproduce all --edition tiny", "edition: expected one of 'quick', 'compact'"),
        ("reproduce table1 --edition compact --data nowhere", "vicinal data fetch cifar100"),
        ("reproduce table1 --networks elsewhere --no-train", "expected at least one network"),
    ],
)
def test_what_is_refused(run, words, said):
    code, _, err = run(words)
    assert code == 2
    assert said in err
    assert err.count("\n") == 1
    assert not Path("results").exists()


def test_a_gpu_edition_without_a_gpu_is_not_begun(run, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr(Networks, "lacking", lambda self, name: "")
    code, out, err = run("reproduce table1 --edition full")
    assert code == 2
    assert "45 to train: about" in out
    assert "full: made for a GPU, and there is none; begin what takes about" in err
    assert "days? say --yes" in err


KILLED = """
import os
import signal
import sys
from dataclasses import replace

from vicinal.cli import main
from vicinal.learn.many import _Crew
from vicinal.paper import reproduction
from vicinal.paper.editions import EDITIONS

quick = EDITIONS["quick"]
source = replace(quick.sources[0], networks=1, figure=1)
small = replace(quick, sources=(source,), changes={"epochs": 3}, variants={}, passes=2, ks=(5, 20))
reproduction.EDITIONS = {"quick": small}
train = _Crew.run

def train_and_die(crew, job):
    train(crew, job)
    os.killpg(0, signal.SIGKILL)

if sys.argv[1:] == ["die"]:
    _Crew.run = train_and_die
raise SystemExit(main(["reproduce", "table1", "--networks", "killed"]))
"""


@pytest.mark.slow
def test_killed_it_goes_on_with_the_same_command(folder):
    """All of its processes at once, as when a machine goes down, as soon as the first network is there."""
    command = [sys.executable, "-c", KILLED]
    place = folder / "killed" / "quick"
    died = subprocess.run([*command, "die"], start_new_session=True, stdout=subprocess.DEVNULL, check=False)
    assert died.returncode == -signal.SIGKILL
    assert list((folder / "results").rglob("*.*")) == []
    first = {
        path: path.stat().st_mtime_ns
        for path in place.glob("*/network.json")
        if (path.parent / "bank.safetensors").exists()
    }
    assert 0 < len(first) < 3
    assert subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == 0
    assert {path: path.stat().st_mtime_ns for path in first} == first
    found = store.read_json("results/quick/table1.json")["networks"]
    whole = {
        path.parent.name: store.read_json(path)["fingerprint"]
        for path in (folder / "runs").glob("quick/*/network.json")
    }
    assert found == whole  # to the bit those of a run that nobody killed
