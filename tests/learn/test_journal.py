"""The log of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vicinal.errors import FileError, WriteError
from vicinal.learn.journal import Journal, read_journal


def test_lines_are_appended_whole(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    journal = Journal(path)
    journal.write(step=1, loss=0.5)
    assert path.read_text() == '{"step": 1, "loss": 0.5}\n'
    journal.write(step=2, validation={"accuracy": 1.0})
    assert read_journal(path) == [{"step": 1, "loss": 0.5}, {"step": 2, "validation": {"accuracy": 1.0}}]


def test_a_resumed_run_drops_what_it_will_do_again_and_half_a_line(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    for step in range(1, 5):
        Journal(path, step=step).write(step=step)
    with path.open("a") as file:
        file.write('{"step": 5, "lo')
    journal = Journal(path, step=3)
    journal.write(step=4, again=True)
    assert [line["step"] for line in read_journal(path)] == [1, 2, 3, 4]
    assert read_journal(path)[-1] == {"step": 4, "again": True}


def test_a_fresh_run_starts_a_fresh_log(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    Journal(path).write(step=1)
    Journal(path)
    assert read_journal(path) == []


def test_no_path_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Journal(None).write(step=1)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_log_is_told(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("not json\n")
    with pytest.raises(FileError, match="expected one JSON object a line"):
        read_journal(path)


def test_no_room_names_the_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path / "log.jsonl")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(WriteError, match=r"stopped at step 7: cannot write .*: No space left on device; make room"):
        journal.write(step=7)
