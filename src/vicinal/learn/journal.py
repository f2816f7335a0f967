"""The log of a training run: one JSON object a line, each appended whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from vicinal import store
from vicinal.errors import FileError, WriteError

__all__ = ["Journal", "read_journal"]


class Journal:
    """A log that a run appends to, and that a resumed run continues.

    Args:
        path: the file. None: nothing is written.
        step: where the run starts; lines of later steps, left by a run that was killed, are dropped.
    """

    def __init__(self, path: str | Path | None, *, step: int = 0) -> None:
        self.path = None if path is None else Path(path)
        self.rewind(step)

    def write(self, **line: Any) -> None:
        """Append a line; ``step`` is one of its fields."""
        if self.path is None:
            return
        try:
            with self.path.open("ab") as file:
                file.write((json.dumps(line) + "\n").encode())
        except OSError as error:
            raise WriteError(
                f"stopped at step {line['step']}: cannot write {self.path}: {error.strerror}; make room and resume"
            ) from error

    def rewind(self, step: int) -> None:
        """Drop the lines of steps after this one."""
        if self.path is None or not self.path.exists():
            return
        kept = [line for line in read_journal(self.path) if line["step"] <= step]
        with store.replacing(self.path) as file:
            file.write("".join(json.dumps(line) + "\n" for line in kept).encode())


def read_journal(path: str | Path) -> list[dict[str, Any]]:
    """The lines of a log; a last line that a kill cut short is left out.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "log.jsonl"
        >>> Journal(path).write(step=1, loss=0.5)
        >>> read_journal(path)
        [{'step': 1, 'loss': 0.5}]
    """
    text = Path(path).read_text(encoding="utf-8")
    lines = text.split("\n")[:-1]  # what follows the last line end is empty, or was cut short
    try:
        return [json.loads(line) for line in lines]
    except json.JSONDecodeError as error:
        raise FileError(f"{path}: expected one JSON object a line, got {error}") from error
