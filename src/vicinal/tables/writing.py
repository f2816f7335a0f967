"""Results as rows: CSV, Parquet or JSON lines by the ending of the file, written whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np

from vicinal import checks, store
from vicinal.errors import FileError, InputError, ShapeError, require
from vicinal.progress import track

__all__ = ["ENDINGS", "check_target", "plain", "write"]

_ROWS = 20_000  # turned into text in one go
ENDINGS = (".csv", ".parquet", ".jsonl")


def check_target(path: str | Path, endings: tuple[str, ...] = ENDINGS) -> Path:
    """Refuse, before any work is done, a place where no result can be written."""
    target = checks.path(path)
    if target.suffix not in endings:
        raise InputError(
            f"{target}: expected a file that ends in {', '.join(endings)}, got {target.suffix or 'none'!r}"
        )
    if os.path.isdir(target):
        raise FileError(f"{target}: expected a file to write, got a folder")
    if not os.path.isdir(target.parent):
        raise FileError(f"{target}: expected an existing folder {target.parent}; create it first")
    if target.suffix == ".parquet":
        require("pyarrow.parquet", "parquet", f"{target}: a Parquet file")
    return target


def write(path: str | Path, columns: Mapping[str, Any]) -> None:
    """Write columns of one length as a table, in place of what is there.

    An infinite number, or None, is an empty cell in CSV and ``null`` in JSON, which have no infinity.

    Args:
        path: the file; its ending, ``.csv``, ``.parquet`` or ``.jsonl``, says its kind.
        columns: arrays (n,) or lists, by name.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "trust.csv"
        >>> write(file, {"row": [0, 1], "confidence": np.array([0.25, 1.0])})
        >>> print(file.read_text())
        row,confidence
        0,0.25
        1,1.0
        <BLANKLINE>
    """
    target = check_target(path)
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ShapeError(f"columns: expected equal lengths, got {lengths}")
    writers = {".csv": _write_csv, ".jsonl": _write_lines, ".parquet": _write_parquet}
    with store.replacing(target) as file:
        writers[target.suffix](file, columns)


def plain(value: Any) -> Any:
    """A value as JSON has it: numbers of Python, None for what is not finite."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _write_csv(file: IO[bytes], columns: Mapping[str, Any]) -> None:
    for rows in chain([[tuple(columns)]], _pieces(columns)):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        file.write(text.getvalue().encode())


def _write_lines(file: IO[bytes], columns: Mapping[str, Any]) -> None:
    names = tuple(columns)
    for rows in _pieces(columns):
        lines = (json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) for row in rows)
        file.write("".join(f"{line}\n" for line in lines).encode())


def _write_parquet(file: IO[bytes], columns: Mapping[str, Any]) -> None:
    parquet = require("pyarrow.parquet", "parquet", "a Parquet file")
    arrow = require("pyarrow", "parquet", "a Parquet file")
    parquet.write_table(arrow.table({name: arrow.array(column) for name, column in columns.items()}), file)


def _pieces(columns: Mapping[str, Any]) -> Iterator[Iterator[tuple[Any, ...]]]:
    """The rows, some thousands at a time, as values that text can hold."""
    length = len(next(iter(columns.values()), ()))
    starts = range(0, length, _ROWS)
    for start in track(starts, "writing", len(starts)):
        yield zip(*(plain(column[start : start + _ROWS]) for column in columns.values()), strict=True)
