"""Files: arrays as safetensors, facts as JSON in their header, written whole or not at all.

A vicinal array file is an ordinary safetensors file, so any safetensors reader opens it: 8 bytes with the length of the
header, the header as JSON, then the arrays. Its ``__metadata__`` holds ``format`` (such as ``vicinal.bank``), ``version``
(a number) and ``facts`` (JSON). Reading maps the arrays into memory instead of copying them, and never runs code.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from vicinal.errors import FileError

__all__ = ["read_arrays", "read_json", "replacing", "write_arrays", "write_json"]

_CODES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint8": "U8",
    "bool": "BOOL",
}
_DTYPES = {code: np.dtype(name) for name, code in _CODES.items()}
_PIECE = 16 * 2**20  # bytes written in one go, so that a memory-mapped array is never held whole
_LONGEST_HEADER = 100 * 2**20  # as in the safetensors library


@contextmanager
def replacing(path: str | Path) -> Iterator[IO[bytes]]:
    """A file to write that takes the place of ``path`` only when all of it is safely on disk.

    A process that is killed, or a disk that fills up, leaves what was at ``path`` as it was. The temporary file stands in
    the same folder, because a rename is atomic only within one file system; it is removed on any error.
    """
    target = Path(path)
    folder = target.parent
    if not folder.is_dir():
        raise FileError(f"{target}: expected an existing folder {folder}; create it first")
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, _mode(target))
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync_folder(folder)


def write_arrays(
    path: str | Path,
    arrays: Mapping[str, npt.NDArray[Any] | Iterable[npt.NDArray[Any]]],
    *,
    form: str,
    version: int,
    facts: Mapping[str, Any],
) -> None:
    """Write named arrays and facts as one safetensors file, in place of what is there.

    An array may also be given as a list of arrays that follow one another along their first axis.
    """
    parts = {name: [part] if isinstance(part, np.ndarray) else list(part) for name, part in arrays.items()}
    metadata = {"format": form, "version": str(version), "facts": json.dumps(facts, sort_keys=True)}
    header: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name in sorted(parts):
        pieces = parts[name]
        dtype, tail = pieces[0].dtype, pieces[0].shape[1:]
        shape = (sum(len(piece) for piece in pieces), *tail)
        start, end = end, end + dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        header[name] = {"dtype": _CODES[dtype.name], "shape": list(shape), "data_offsets": [start, end]}
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % 8)
    with replacing(path) as file:
        file.write(len(encoded).to_bytes(8, "little"))
        file.write(encoded)
        for name in sorted(parts):
            for piece in parts[name]:
                _write_piecewise(file, piece)


def read_arrays(
    path: str | Path, *, form: str, version: int, needs: Iterable[str] = (), may: Iterable[str] = ()
) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Map the arrays of a file into memory (read-only) and read its facts; refuse any other kind of file.

    Args:
        path: the file.
        form: the format it must have.
        version: the newest version this code reads.
        needs: names of arrays that must be there.
        may: names of arrays that may be there; others are refused.
    """
    header, data = _read_header(Path(path))
    metadata = header.pop("__metadata__", {})
    if metadata.get("format") != form:
        raise FileError(f"{path}: expected a {form} file, got {metadata.get('format', 'another safetensors')!r}")
    found = metadata.get("version", "")
    if not found.isdigit() or int(found) > version:
        raise FileError(f"{path}: expected {form} of version {version} or older, got {found!r}; update vicinal")
    needs = tuple(needs)
    for name in needs:
        if name not in header:
            raise FileError(f"{path}: expected an array {name!r}, got {', '.join(sorted(header)) or 'none'}")
    for name in header:
        if name not in (*needs, *may):
            raise FileError(f"{path}: expected only {', '.join((*needs, *may))}, got an array {name!r} too")
    try:
        facts = json.loads(metadata.get("facts", "{}"))
    except json.JSONDecodeError as error:
        raise FileError(f"{path}: expected facts as JSON, got {error}") from error
    return {name: _map(path, entry, data) for name, entry in header.items()}, facts


def write_json(path: str | Path, content: Any) -> None:
    """Write JSON a person can read, in place of what is there."""
    with replacing(path) as file:
        file.write((json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())


def read_json(path: str | Path) -> Any:
    """Read JSON, or say what is wrong with it."""
    try:
        return json.loads(_existing(Path(path)).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise FileError(f"{path}: expected JSON, got {error}") from error


def _read_header(path: Path) -> tuple[dict[str, Any], int]:
    """The header of a safetensors file, every entry checked against the size of the file, and where the data begins."""
    size = _existing(path).stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, _LONGEST_HEADER):
            raise FileError(f"{path}: expected a safetensors file, got {size} bytes that are not one, or are cut short")
        try:
            header = json.loads(file.read(length))
            end = max(
                (entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"),
                default=0,
            )
            fits = all(_fits(entry) for name, entry in header.items() if name != "__metadata__")
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
            raise FileError(f"{path}: expected a safetensors file, got a header that cannot be read") from error
    if not fits:
        raise FileError(f"{path}: expected a safetensors file, got arrays whose shapes and places disagree")
    if size != 8 + length + end:
        raise FileError(f"{path}: expected {8 + length + end} bytes, got {size}; the file is cut short or damaged")
    return header, 8 + length


def _fits(entry: dict[str, Any]) -> bool:
    start, end = entry["data_offsets"]
    shape = entry["shape"]
    whole = all(isinstance(n, int) and n >= 0 for n in (start, end, *shape))
    return whole and end - start == _DTYPES[entry["dtype"]].itemsize * int(np.prod(shape, dtype=object))


def _map(path: str | Path, entry: dict[str, Any], data: int) -> npt.NDArray[Any]:
    shape, dtype = tuple(entry["shape"]), _DTYPES[entry["dtype"]]
    if 0 in shape:
        return np.empty(shape, dtype)
    return np.asarray(np.memmap(path, dtype, mode="r", offset=data + entry["data_offsets"][0], shape=shape))


def _write_piecewise(file: IO[bytes], piece: npt.NDArray[Any]) -> None:
    rows = max(1, _PIECE // max(1, piece.dtype.itemsize * int(np.prod(piece.shape[1:], dtype=np.int64))))
    for start in range(0, len(piece), rows):
        file.write(np.ascontiguousarray(piece[start : start + rows]).tobytes())


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise FileError(f"{path}: expected a file, got {'a folder' if path.is_dir() else 'nothing there'}")
    return path


def _mode(target: Path) -> int:
    """The permissions of the file that is replaced, or those that a new file would get."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
