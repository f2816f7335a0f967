"""Several networks at a time: the same networks as one by one, and failures that stay where they are."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from learn_runs import CASES, pixels
from vicinal.errors import InputError
from vicinal.learn import many
from vicinal.learn.many import Job, Outcome, train_many
from vicinal.learn.network import Network, is_finished
from vicinal.learn.recipe import Recipe
from vicinal.learn.train import train_dataset

SHORT = CASES["distance"].change(steps=20)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("data") / "stripes"
    place.mkdir()
    for part, seed in (("train", 0), ("test", 1)):
        images, labels = pixels(seed=seed)
        np.save(place / f"{part}_images.npy", images)
        np.save(place / f"{part}_labels.npy", labels)
    return place


@pytest.fixture
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_networks_side_by_side_are_those_of_one_by_one_and_failures_stay_alone(
    folder: Path, tmp_path: Path, one_thread: None, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = [Job("nowhere", tmp_path / "b", SHORT), Job(str(folder), tmp_path / "a", SHORT, "reg", seed=1)]
    outcomes = train_many(jobs, processes=2)
    assert [outcome.job for outcome in outcomes] == jobs
    failed, done = outcomes
    assert done.error is None
    assert failed.error is not None
    assert failed.error.startswith("nowhere: expected one of")
    assert caplog.record_tuples == [("vicinal.learn.many", logging.ERROR, f"{tmp_path / 'b'}: {failed.error}")]
    assert not is_finished(tmp_path / "b")
    alone = train_dataset(str(folder), SHORT, "reg", out=tmp_path / "alone", seed=1)
    assert Network.load(tmp_path / "a").fingerprint == alone.network.fingerprint


def stand_in(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Run something else than a training in the processes."""
    popen = subprocess.Popen

    def replaced(command: list[str], **options: Any) -> Any:
        return popen([sys.executable, "-c", code, command[-1]], **options)

    monkeypatch.setattr(many.subprocess, "Popen", replaced)


def outcomes_of(monkeypatch: pytest.MonkeyPatch, code: str, **options: Any) -> tuple[Outcome, ...]:
    stand_in(monkeypatch, code)
    return train_many([Job("d", "a"), Job("d", "b"), Job("d", "c")], **options)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("import sys; sys.stderr.write('first\\nlast line\\n\\n'); sys.exit(2)", "last line"),
        ("raise KeyError('x')", "KeyError: 'x' (exit 1)"),
        ("import os; os.kill(os.getpid(), 9)", "killed by signal 9; it said nothing"),
        ("import sys; sys.exit(3)", "it said nothing (exit 3)"),
    ],
)
def test_how_a_process_failed_is_told(monkeypatch: pytest.MonkeyPatch, code: str, error: str) -> None:
    assert [outcome.error for outcome in outcomes_of(monkeypatch, code)] == [error] * 3


def test_every_process_is_held_to_its_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import os, sys; sys.stderr.write(os.environ['OMP_NUM_THREADS'] + os.environ['MKL_NUM_THREADS']); sys.exit(2)"
    )
    assert [outcome.error for outcome in outcomes_of(monkeypatch, code, threads=3, processes=1)] == ["33"] * 3


def test_as_many_as_asked_for_run_at_a_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each waits until a second one is there; with one at a time this could not end well."""
    code = (
        f"import os, sys, time, pathlib\nhere = pathlib.Path({str(tmp_path)!r})\n"
        "(here / str(os.getpid())).touch()\nend = time.monotonic() + 60\n"
        "while len(list(here.iterdir())) < 2 and time.monotonic() < end: pass\n"
        "sys.exit(0 if len(list(here.iterdir())) >= 2 else 5)"
    )
    assert [outcome.error for outcome in outcomes_of(monkeypatch, code, processes=2)] == [None] * 3


def test_an_interruption_stops_the_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> Iterator[Any]:
        while len(crew) < 2:
            pass
        raise KeyboardInterrupt
        yield

    crew: list[subprocess.Popen[str]] = []
    popen = subprocess.Popen

    def counted(command: list[str], **options: Any) -> Any:
        process = popen([sys.executable, "-c", "import signal; signal.pause()"], **options)
        crew.append(process)
        return process

    monkeypatch.setattr(many.subprocess, "Popen", counted)
    monkeypatch.setattr(many.progress, "track", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train_many([Job("d", "a"), Job("d", "b"), Job("d", "c")], processes=2)
    assert [process.returncode for process in crew] == [-15, -15]


def test_jobs_travel_as_json() -> None:
    job = Job("cifar100", Path("runs/x"), SHORT, "reg", 4, resume=True, retries=2, validation=0.2, root=Path("data"))
    again = Job.from_json(json.loads(json.dumps(job.to_json())))
    assert isinstance(again.recipe, Recipe)
    assert again.recipe == SHORT
    assert Job.from_json(json.loads(json.dumps(Job("svhn", "x").to_json()))) == Job("svhn", "x")
    assert (again.out, again.root, again.validation) == ("runs/x", "data", 0.2)


def test_one_process_a_core_or_one_for_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many.os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    jobs = [Job("d", str(n)) for n in range(4)]
    assert many._cores(jobs) == 4
    assert many._cores(jobs * 2) == 6
    assert many._cores([*jobs, Job("d", "g", device="cuda")]) == 1
    monkeypatch.delattr(many.os, "sched_getaffinity")
    monkeypatch.setattr(many.os, "cpu_count", lambda: None)
    assert many._cores(jobs) == 1


@pytest.mark.parametrize(
    ("jobs", "options", "message"),
    [
        ([], {}, "jobs: expected at least one, got none"),
        ([Job("d", "a"), Job("d", "./a")], {}, "jobs: expected a folder for each, got .*a twice"),
        ([Job("d", "a")], {"processes": 0}, "processes: expected a whole number"),
        ([Job("d", "a")], {"threads": 0}, "threads: expected a whole number"),
    ],
)
def test_jobs_that_make_no_sense_are_refused(jobs: list[Job], options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        train_many(jobs, **options)


def test_the_process_itself(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the module does when it is run, here in this process."""
    before = torch.get_num_threads()
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(Job(str(folder), str(tmp_path / "run"), SHORT).to_json()))
    bad.write_text(json.dumps(Job("nowhere", str(tmp_path / "none"), SHORT).to_json()))
    try:
        assert many._work([str(good)]) == 0
        assert many._work([str(bad)]) == 2
    finally:
        torch.set_num_threads(before)
    assert is_finished(tmp_path / "run")
    said = capsys.readouterr().err
    assert said.startswith("nowhere: expected one of")
    assert said.count("\n") == 1
