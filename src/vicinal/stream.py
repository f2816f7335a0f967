"""A bank's file built from a stream of vectors that need never be in memory together.

The vectors come first in the file (``bank_file``), so they are written as they come, into ``PATH.growing``, their
labels beside them into ``PATH.growing.labels``; ``PATH.growing.json`` is the journal: how many rows of both are safely
on disk. At the end the lengths are measured, what remains of the file is added, and it takes the place of ``PATH`` in
one step. Whoever is interrupted and called again goes on after the last row of the journal.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from vicinal import bank_file, checks, store
from vicinal.bank_file import Stored
from vicinal.checks import Integers, Vectors
from vicinal.errors import FileError, InputError, WriteError
from vicinal.progress import track
from vicinal.search import Points

if sys.platform != "win32":
    import fcntl

__all__ = ["Chunks", "build"]

Chunk: TypeAlias = tuple[Any, Any]
Chunks: TypeAlias = Iterable[Chunk] | Callable[[int], Iterable[Chunk]]
FORMAT = "vicinal.growing"
VERSION = 1
_SAFE = 64 * 2**20  # bytes after which what was written is made safe


@dataclass
class _Journal:
    """How far the building is.

    Attributes:
        columns: of the vectors.
        facts: where they come from.
        rows: how many are written.
        sums: checksums of their vectors and labels, so that another stream is not taken for the same.
    """

    columns: int
    facts: dict[str, str]
    rows: int = 0
    sums: tuple[int, int] = (0, 0)

    @property
    def room(self) -> int:
        """Where the vectors begin in the file."""
        return bank_file.room(self.columns, False, self.facts)

    @property
    def sizes(self) -> tuple[int, int]:
        """Bytes that the files of vectors and of labels have."""
        return self.room + 4 * self.rows * self.columns, 8 * self.rows


def build(path: str | Path, chunks: Chunks, facts: Mapping[str, str]) -> None:
    """Write the file of a bank from chunks of vectors and labels, or go on where that was interrupted."""
    with _Growing(path, checks.facts(facts)) as growing:
        following = _from(chunks, growing)
        for vectors, labels in track(following, "writing", note=lambda: f"{growing.rows:,} rows"):
            growing.add(vectors, labels)
        growing.finish()


def _from(chunks: Chunks, growing: _Growing) -> Iterator[Chunk]:
    """The chunks of a stream: from the first row that is missing where it can begin there, else all."""
    if callable(chunks):
        growing.passed = growing.rows
        chunks = chunks(growing.rows)
    for chunk in chunks:
        if not isinstance(chunk, (tuple, list)) or len(chunk) != 2:
            raise InputError(f"chunks: expected pairs of vectors and labels, got {type(chunk).__name__}")
        yield chunk[0], chunk[1]


class _Growing:
    """The files of a bank that is being built, open and locked."""

    def __init__(self, path: str | Path, facts: dict[str, str]) -> None:
        self.path, self.facts, self.target = path, facts, store.check_target(path)
        names = (f"{self.target.name}.growing{end}" for end in ("", ".labels", ".json"))
        self.vectors, self.labels, self.notes = (self.target.with_name(name) for name in names)
        self.passed, self.check, self.unsafe = 0, (0, 0), 0  # rows of the stream, their sums; bytes not yet safe

    def __enter__(self) -> _Growing:
        with self._writing():
            self.files = [open(name, "a+b") for name in (self.vectors, self.labels)]  # noqa: SIM115
        try:
            self._lock()
            self.journal = self._resumed()
            self.before, self.known = self.rows, self.journal.sums if self.journal else (0, 0)
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and self.rows:
            with suppress(OSError, WriteError):
                self._make_safe()
        self._close()
        if not self.rows:
            self._remove()

    @property
    def rows(self) -> int:
        """How many are written."""
        return self.journal.rows if self.journal else 0

    def add(self, vectors: Any, labels: Any) -> None:
        """Write a chunk, but for what an earlier call has written of it."""
        found = checks.vectors(vectors, "vectors", columns=self.journal.columns if self.journal else None)
        classes = checks.labels(labels, "labels", rows=len(found))
        if self.journal is None:
            self.journal = _Journal(found.shape[1], self.facts)
            with self._writing():
                self.files[0].truncate(self.journal.room)
        known = min(len(found), max(0, self.before - self.passed))
        if known:
            self._pass_over(found[:known], classes[:known])
        if known < len(found):
            self._append(found[known:], classes[known:])

    def finish(self) -> None:
        """Measure the lengths, complete the file, and have it take its place."""
        if self.journal is None or self.passed < self.before:
            least = f"the {self.before} that are written already" if self.before else "at least one"
            raise InputError(f"chunks: expected rows, {least}, got {self.passed}")
        self._make_safe()
        n, d = self.rows, self.journal.columns
        vectors = np.asarray(np.memmap(self.vectors, "<f4", "r", self.journal.room, (n, d)))
        labels = np.fromfile(self.labels, "<i8").astype(np.int64, copy=False)
        stored = Stored(Points.of(vectors, labels), np.arange(n), n, self.facts)
        with self._writing():
            self._complete(stored)
            store.put(self.vectors, self.target)
        self._remove()

    def _complete(self, stored: Stored) -> None:
        """Write what stands before the vectors and after them."""
        points = stored.points
        with open(self.vectors, "r+b") as file:
            file.write(bank_file.begin(len(points), points.dimension, False, stored.facts, stored.next_row))
            file.seek(0, os.SEEK_END)
            for part in bank_file.rest(stored).values():
                store.write_rows(file, part)
            if self.target.exists():
                os.chmod(self.vectors, self.target.stat().st_mode & 0o777)
            file.flush()
            os.fsync(file.fileno())

    def _lock(self) -> None:
        """Refuse to work on what another process is working on, or has just completed."""
        if sys.platform == "win32":
            return
        try:
            fcntl.flock(self.files[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
            ours = self.vectors.exists() and os.path.samestat(os.fstat(self.files[0].fileno()), self.vectors.stat())
        except BlockingIOError:
            ours = False
        if not ours:
            raise WriteError(
                f"{self.path}: expected to build it alone, but another process is building it; wait for it"
            )

    def _resumed(self) -> _Journal | None:
        """The journal of what is there, and both files cut to it; None where there is nothing to go on with."""
        sizes = tuple(os.fstat(file.fileno()).st_size for file in self.files)
        journal = self._read() if self.notes.exists() and sizes[0] else None
        wanted = journal.sizes if journal else (0, 0)
        if sizes[0] < wanted[0] or sizes[1] < wanted[1]:
            raise FileError(
                f"{self.vectors}: expected {wanted} bytes of vectors and labels, got {sizes}; {self._advice}"
            )
        with self._writing():
            for file, size in zip(self.files, wanted, strict=True):
                file.truncate(size)
        return journal

    def _read(self) -> _Journal:
        said = store.read_json(self.notes)
        try:
            if (said.pop("format"), said.pop("version")) != (FORMAT, VERSION):
                raise ValueError("another format")
            journal = _Journal(**{**said, "sums": tuple(said["sums"])})
            _ = journal.sizes
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise FileError(f"{self.notes}: expected how far a bank is built, got {error!r}; {self._advice}") from error
        if journal.facts != self.facts:
            raise InputError(
                f"facts: expected {journal.facts}, as when the building of {self.path} began, got {self.facts}; or "
                f"{self._advice}"
            )
        return journal

    @property
    def _advice(self) -> str:
        return f"remove {self.notes.name} to begin anew"

    def _pass_over(self, vectors: Vectors, labels: Integers) -> None:
        """Rows that are written already; once all of them have come, they must be the same."""
        self.passed, self.check = self.passed + len(vectors), _added(self.check, vectors, labels)
        if self.passed == self.before and self.check != self.known:
            raise InputError(
                f"chunks: expected the {self.before} rows that were written before {self.path} was interrupted, got "
                f"others; give the same stream, or {self._advice}"
            )

    def _append(self, vectors: Vectors, labels: Integers) -> None:
        assert self.journal is not None
        with self._writing():
            store.write_rows(self.files[0], vectors)
            store.write_rows(self.files[1], labels)
        self.journal.sums = _added(self.journal.sums, vectors, labels)
        self.journal.rows += len(vectors)
        self.passed += len(vectors)
        self.unsafe += vectors.nbytes
        if self.unsafe >= _SAFE:
            self._make_safe()

    def _make_safe(self) -> None:
        """Have all rows on disk, and then the journal say so."""
        assert self.journal is not None
        with self._writing():
            for file in self.files:
                file.flush()
                os.fsync(file.fileno())
            store.write_json(self.notes, {"format": FORMAT, "version": VERSION, **asdict(self.journal)})
        self.unsafe = 0

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Say in words what keeps the disk from taking more."""
        try:
            yield
        except OSError as error:
            cause = error.__cause__ if isinstance(error, WriteError) else error
            why = getattr(cause, "strerror", None) or str(error)
            raise WriteError(
                f"{self.path}: expected to write it, got: {why}; what was there before is whole, and building it again "
                f"from the same stream goes on after row {self.rows}"
            ) from error

    def _close(self) -> None:
        for file in self.files:
            with suppress(OSError):  # what is in its buffer finds no room either, and is not in the journal
                file.close()

    def _remove(self) -> None:
        for name in (self.notes, self.vectors, self.labels):
            name.unlink(missing_ok=True)


def _added(sums: tuple[int, int], vectors: Vectors, labels: Integers) -> tuple[int, int]:
    """Checksums with some more rows."""
    first, second = (np.ascontiguousarray(part, kind) for part, kind in ((vectors, "<f4"), (labels, "<i8")))
    return zlib.crc32(first.data, sums[0]), zlib.crc32(second.data, sums[1])
