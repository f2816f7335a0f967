"""Files of named arrays, opened by their ending; an array is read when it is asked for."""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from vicinal import bank, bank_file, checks, store, values
from vicinal.errors import FileError, InputError, VicinalError, require

__all__ = ["Source", "nearest_word", "open_source"]

Arrays: TypeAlias = Mapping[str, Callable[[], npt.NDArray[Any]]]
# what NumPy, zipfile, safetensors and pyarrow are known to raise on damaged files
_UNREADABLE = (
    *(ValueError, KeyError, TypeError, EOFError, RuntimeError, OverflowError, MemoryError, SyntaxError),
    *(struct.error, zipfile.BadZipFile, zlib.error),
)
_LISTED = 12  # names of arrays in a message


@dataclass(frozen=True, eq=False)
class Source:
    """A file of named arrays.

    Attributes:
        path: where it is.
        arrays: what reads each array, by its name there.
        facts: what the file itself says of its origin, or its name.
        own: whether it is a vicinal file of embeddings, whose names are vicinal's own.
    """

    path: Path
    arrays: Arrays
    facts: Mapping[str, str] = field(default_factory=dict)
    own: bool = False

    def array(self, name: str) -> npt.NDArray[Any]:
        """The array of that name; or its columns, where the name is a list (``x,y``) or a pattern (``x_*``) of several.

        A name that ends in ``.npy`` is a file of its own, wherever the other arrays come from.
        """
        if name in self.arrays:
            with reading(self.path):
                return self.arrays[name]()
        if name.endswith(".npy"):
            return open_source(name).array("vectors")
        if "," in name or "*" in name:
            return self._columns(name)
        raise InputError(
            f"{self.path}: expected an array {name!r}, got {self.listed()}{nearest_word(name, self.arrays)}"
        )

    def listed(self) -> str:
        """The names that are there, for a message."""
        names = list(self.arrays)
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        return (", ".join(names[:_LISTED]) or "none") + more

    def _columns(self, name: str) -> npt.NDArray[Any]:
        wanted: list[str] = []
        for part in name.split(","):
            matching = [there for there in self.arrays if fnmatchcase(there, part.strip())]
            if not matching:
                raise InputError(f"{self.path}: expected a column {part.strip()!r}, got {self.listed()}")
            wanted += matching
        columns = [self.array(one) for one in wanted]
        for one, column in zip(wanted, columns, strict=True):
            if column.ndim != 1 or len(column) != len(columns[0]):
                raise InputError(
                    f"{self.path}: expected {one!r} to be a column of {len(columns[0])} numbers, to stand beside "
                    f"{wanted[0]!r}, got shape {column.shape}"
                )
        return np.stack(columns, axis=1)


def open_source(path: str | Path) -> Source:
    """Open a file, or a folder of ``.npy`` files, by its ending."""
    found = checks.path(path)
    if os.path.isdir(found):
        return _open_folder(found)
    readers = {".safetensors": _open_safetensors, ".npz": _open_npz, ".npy": _open_npy, ".parquet": _open_parquet}
    if found.suffix not in readers:
        raise InputError(
            f"{found}: expected a file that ends in {', '.join(readers)}, or a folder of .npy files, "
            f"got {found.suffix or 'no ending'!r}"
        )
    if not os.path.isfile(found):
        near = [one.name for one in found.parent.glob(f"*{found.suffix}")] if found.parent.is_dir() else []
        raise FileError(f"{found}: expected a file, got nothing there{nearest_word(found.name, near)}")
    with reading(found):
        return readers[found.suffix](found)


def nearest_word(word: str, words: Any) -> str:
    """The end of a message: the closest of some words, if one is close."""
    near = get_close_matches(word, list(words), n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else ""


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Whatever a file's library says of a file that it cannot read, as a ``FileError`` that names the file."""
    try:
        yield
    except (VicinalError, OSError):
        raise
    except (*_UNREADABLE, _safetensors_error()) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise FileError(
            f"{path}: expected a {path.suffix} file of plain arrays, got one that is cut short, damaged or of another "
            f"kind ({reason})"
        ) from error


def _open_folder(path: Path) -> Source:
    files = sorted(path.glob("*.npy"))
    if not files:
        raise FileError(f"{path}: expected a folder of .npy files, such as vectors.npy and labels.npy, got none there")
    return Source(path, {file.stem: partial(_load_npy, file) for file in files}, {"file": path.name})


def _open_npy(path: Path) -> Source:
    return Source(path, {"vectors": partial(_load_npy, path)}, {"file": path.name})


def _load_npy(path: Path) -> npt.NDArray[Any]:
    with reading(path):
        loaded: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        return loaded


def _open_npz(path: Path) -> Source:
    if not zipfile.is_zipfile(path):
        raise FileError(f"{path}: expected a .npz file, got one that is cut short, or of another kind")
    with _archive(path) as archive:
        names = archive.files
    return Source(path, {name: partial(_load_member, path, name) for name in names}, {"file": path.name})


def _load_member(path: Path, name: str) -> npt.NDArray[Any]:
    with _archive(path) as archive:
        loaded: npt.NDArray[Any] = archive[name]
        return loaded


@contextmanager
def _archive(path: Path) -> Iterator[Any]:
    """Opened here, not by NumPy, which leaves a damaged file open."""
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        yield archive


def _open_safetensors(path: Path) -> Source:
    from safetensors import safe_open

    with safe_open(path, framework="np") as file:
        form = (file.metadata() or {}).get("format")
        codes = {name: file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118  not a dict
    if form == values.EMBEDDINGS_FORMAT:
        arrays, facts = store.read_arrays(path, form=form, version=values.EMBEDDINGS_VERSION, may=None)
        return Source(path, {name: partial(np.asarray, part) for name, part in arrays.items()}, facts, own=True)
    if form == bank_file.BANK_FORMAT:
        points = bank.Bank.load(path)
        return Source(path, {"vectors": lambda: points.vectors, "labels": lambda: points.labels}, points.facts)
    arrays_of = {name: partial(_load_tensor, path, name, code) for name, code in codes.items()}
    return Source(path, arrays_of, {"file": path.name})


def _load_tensor(path: Path, name: str, code: str) -> npt.NDArray[Any]:
    import safetensors

    if code == "BF16":  # which NumPy does not have: the upper half of a float32
        tensor = dict(safetensors.deserialize(path.read_bytes()))[name]  # type: ignore[no-untyped-call]
        bits = np.frombuffer(tensor["data"], "<u2").astype(np.uint32) << 16
        return bits.view(np.float32).reshape(tensor["shape"])
    if code.startswith("F8"):
        raise FileError(f"{path}: expected {name!r} in float16 or wider, got {code}; convert it first")
    with safetensors.safe_open(path, framework="np") as file:
        loaded: npt.NDArray[Any] = file.get_tensor(name)
        return loaded


def _open_parquet(path: Path) -> Source:
    parquet = require("pyarrow.parquet", "parquet", f"{path}: a Parquet file")
    file = parquet.ParquetFile(path, memory_map=True)
    names = file.schema_arrow.names
    return Source(path, {name: partial(_load_column, path, file, name) for name in names}, {"file": path.name})


def _load_column(path: Path, file: Any, name: str) -> npt.NDArray[Any]:
    column = file.read(columns=[name]).column(name)
    rows = len(column)
    if column.null_count:
        first = column.is_null().index(True).as_py()
        raise FileError(
            f"{path}: expected no gaps in the column {name!r}, got {column.null_count} (the first in row {first}); "
            "remove or repair these rows"
        )
    if not hasattr(column.type, "value_type"):
        return _plain(path, name, column)
    flat, width = column.combine_chunks().flatten(), 0
    if rows:
        lengths = np.asarray(_pyarrow("compute").list_value_length(column))
        width = int(lengths[0])
        wrong = np.flatnonzero(lengths != width)
        if wrong.size:
            raise FileError(
                f"{path}: expected {width} numbers in every row of the column {name!r}, as in row 0, "
                f"got {lengths[wrong[0]]} in row {wrong[0]} ({wrong.size} such rows)"
            )
    if flat.null_count:
        raise FileError(f"{path}: expected no gaps within the rows of the column {name!r}, got {flat.null_count}")
    return _plain(path, name, flat).reshape(rows, width)


def _plain(path: Path, name: str, column: Any) -> npt.NDArray[Any]:
    types = _pyarrow("types")
    kind = column.type
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
        raise FileError(f"{path}: expected numbers, or lists of numbers, in the column {name!r}, got {kind}")
    return np.asarray(column)


def _pyarrow(module: str) -> Any:
    return require(f"pyarrow.{module}", "parquet", "a Parquet file")


def _safetensors_error() -> type[Exception]:
    from safetensors import SafetensorError

    found: type[Exception] = SafetensorError
    return found
