"""Files: arrays as safetensors, facts as JSON in their header, written whole or not at all.

A vicinal array file is an ordinary safetensors file, so any safetensors reader opens it: 8 bytes with the length of the
header, the header as JSON, the arrays. Its ``__metadata__`` holds ``format`` (such as ``vicinal.bank``), ``version``
(a number) and ``facts`` (JSON). Reading maps the arrays into memory and never runs code.
"""

from __future__ import annotations

import json
import math
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import numpy.typing as npt

from vicinal import checks, pages
from vicinal.errors import FileError, WriteError

__all__ = [
    "Rows",
    "begin",
    "check_target",
    "put",
    "read_arrays",
    "read_json",
    "replacing",
    "write_arrays",
    "write_json",
    "write_rows",
]

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
_DTYPES = {code: np.dtype(name).newbyteorder("<") for name, code in _CODES.items()}
_PIECE = 16 * 2**20  # bytes written in one go, so that a memory-mapped array is never held whole
_LONGEST_HEADER = 100 * 2**20  # as in the safetensors library


class Rows(Protocol):
    """An array, or what gives its rows a slice at a time, so that they need not be held all at once."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of an entry."""

    @property
    def shape(self) -> tuple[int, ...]:
        """How many rows, and the shape of each."""

    def __len__(self) -> int: ...
    def __getitem__(self, rows: slice, /) -> npt.NDArray[Any]: ...


@contextmanager
def replacing(path: str | Path) -> Iterator[IO[bytes]]:
    """A file to write that takes the place of ``path`` only when all of it is safely on disk.

    A process that is killed, or a disk that fills up, leaves what was at ``path`` as it was. The temporary file stands
    in the same folder, because a rename is atomic only within one file system; it is removed on any error. A link is
    followed, and the permissions of the file that is replaced are kept.

    Raises:
        FileError: where there is no such folder, or something that is not a file.
        WriteError: where writing fails.
    """
    target = check_target(path)
    name = target.parent / f".{target.name}.{secrets.token_hex(6)}.part"
    try:
        with open(name, "xb") as file:
            if os.path.exists(target):
                os.chmod(name, target.stat().st_mode & 0o777)
            yield file
            file.flush()
            os.fsync(file.fileno())
        put(name, target)
    except BaseException as error:
        with suppress(OSError):
            name.unlink()
        if isinstance(error, OSError) and error.errno and error.filename in (None, str(name), name):
            said = f"{path}: expected to write it, got: {error.strerror}; what was there before is whole"
            raise WriteError(said) from error
        raise


def check_target(path: str | Path) -> Path:
    """Where a file of that name really goes, if one can be written there: a link is followed."""
    target = Path(os.path.realpath(checks.path(path)))
    if not os.path.isdir(target.parent):
        raise FileError(f"{path}: expected an existing folder {target.parent}; create it first")
    if os.path.exists(target) and not os.path.isfile(target):
        raise FileError(f"{path}: expected a file to write, got {_kind(target)}")
    return target


def put(name: str | Path, target: Path) -> None:
    """Have a file that is whole and safely on disk take the place of another, in one step that lasts."""
    os.replace(name, target)
    _sync_folder(target.parent)


def write_arrays(
    path: str | Path,
    arrays: Mapping[str, npt.NDArray[Any] | Rows | Iterable[npt.NDArray[Any]]],
    *,
    form: str,
    version: int,
    facts: Mapping[str, Any],
) -> None:
    """Write named arrays of at least one dimension, and facts, as one safetensors file, in place of what is there.

    An array may also be given as a list of arrays that follow one another along their first axis, or as ``Rows``.
    """
    parts: dict[str, list[Any]] = {
        name: [part] if hasattr(part, "dtype") else list(part) for name, part in arrays.items()
    }
    shapes = {
        name: (parts[name][0].dtype.name, (sum(map(len, parts[name])), *parts[name][0].shape[1:]))
        for name in sorted(parts)
    }
    beginning = begin(shapes, form=form, version=version, facts=facts)
    with replacing(path) as file:
        file.write(beginning)
        for name in shapes:
            for piece in parts[name]:
                write_rows(file, piece)


def begin(
    shapes: Mapping[str, tuple[str, tuple[int, ...]]],
    *,
    form: str,
    version: int,
    facts: Mapping[str, Any],
    size: int = 0,
) -> bytes:
    """The beginning of a file of arrays, up to the first of them.

    Args:
        shapes: the type and the shape of each array, in the order in which they follow.
        form: the format.
        version: of the format.
        facts: whatever JSON can say.
        size: how many bytes to fill; by default, up to the next multiple of 8.
    """
    metadata = {"format": form, "version": str(version), "facts": json.dumps(facts, sort_keys=True)}
    header: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name, (dtype, shape) in shapes.items():
        start, end = end, end + np.dtype(dtype).itemsize * math.prod(shape)
        header[name] = {"dtype": _CODES[dtype], "shape": list(shape), "data_offsets": [start, end]}
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (size - 8 - len(encoded) if size else -len(encoded) % 8)
    return len(encoded).to_bytes(8, "little") + encoded


def write_rows(file: IO[bytes], rows: Rows) -> None:
    """Write an array, little-endian, a piece at a time."""
    width = max(1, _PIECE // max(1, rows.dtype.itemsize * math.prod(rows.shape[1:])))
    dtype = rows.dtype.newbyteorder("<")
    for _, block in pages.walk(rows, width):
        file.write(np.ascontiguousarray(block, dtype=dtype).data)


def read_arrays(
    path: str | Path, *, form: str, version: int, needs: Iterable[str] = (), may: Iterable[str] | None = ()
) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Map the arrays of a file into memory (read-only) and read its facts; refuse any other kind of file.

    Args:
        path: the file.
        form: the format it must have.
        version: the newest version this code reads.
        needs: names of arrays that must be there.
        may: names of arrays that may be there; others are refused. None: any others will do.
    """
    path = checks.path(path)
    with _opened(path) as file:
        header, data = _read_header(path, file)
        metadata = _metadata(path, header.pop("__metadata__", {}), form, version)
        _refuse_names(path, header, tuple(needs), None if may is None else tuple(may))
        _refuse_damage(path, header, data, os.fstat(file.fileno()).st_size)
        facts = _parsed(path, metadata.get("facts", "{}"), "facts")
        return {name: _map(file, entry, data) for name, entry in header.items()}, facts


def write_json(path: str | Path, content: Any) -> None:
    """Write JSON a person can read, in place of what is there."""
    with replacing(path) as file:
        file.write((json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())


def read_json(path: str | Path) -> Any:
    """Read JSON, or say what is wrong with it."""
    with _opened(checks.path(path)) as file:
        try:
            return json.loads(file.read().decode())
        except (ValueError, RecursionError) as error:
            raise FileError(f"{path}: expected JSON, got {error}") from error


def _read_header(path: Path, file: IO[bytes]) -> tuple[dict[str, Any], int]:
    """The header of a safetensors file, and where its data begins."""
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or length > min(size - 8, _LONGEST_HEADER):
        raise FileError(f"{path}: expected a safetensors file, got {size} bytes that are not one, or are cut short")
    return _parsed(path, file.read(length), "a header"), 8 + length


def _parsed(path: Path, text: Any, what: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise FileError(f"{path}: expected a safetensors file with {what} in JSON, got {error}") from error
    if not isinstance(found, dict):
        raise FileError(f"{path}: expected {what} of names and values, got {type(found).__name__}; the file is damaged")
    return found


def _metadata(path: Path, metadata: Any, form: str, version: int) -> dict[str, Any]:
    """The metadata of a file of the format ``form``, not newer than ``version``."""
    if not isinstance(metadata, dict) or metadata.get("format") != form:
        found = metadata.get("format") if isinstance(metadata, dict) else None
        raise FileError(f"{path}: expected a {form} file, got {found or 'another safetensors'!r}")
    found = metadata.get("version")
    if not (isinstance(found, str) and re.fullmatch("[0-9]{1,9}", found)) or int(found) > version:
        raise FileError(f"{path}: expected {form} of version {version} or older, got {found!r}; update vicinal")
    return metadata


def _refuse_names(path: Path, header: dict[str, Any], needs: tuple[str, ...], may: tuple[str, ...] | None) -> None:
    for name in needs:
        if name not in header:
            raise FileError(f"{path}: expected an array {name!r}, got {', '.join(sorted(header)) or 'none'}")
    for name in header:
        if may is not None and name not in (*needs, *may):
            raise FileError(f"{path}: expected only {', '.join((*needs, *may))}, got an array {name!r} too")


def _refuse_damage(path: Path, header: dict[str, Any], data: int, size: int) -> None:
    """Refuse arrays that do not lie one after the other from the header to the end of the file, without gaps."""
    for name, entry in header.items():
        if not _is_sound(entry):
            raise FileError(f"{path}: expected a shape, a type and a place that agree for {name!r}, got {entry!r:.200}")
    end = 0
    for start, stop in sorted(entry["data_offsets"] for entry in header.values()):
        if start != end:
            raise FileError(f"{path}: expected arrays one after the other, got one at {start} after {end} bytes")
        end = stop
    if size != data + end:
        raise FileError(f"{path}: expected {data + end} bytes, got {size}; the file is cut short or damaged")


def _is_sound(entry: Any) -> bool:
    """Whether a header says of an array what can be true; NumPy counts dimensions and bytes in 32 and 63 bits."""
    if not isinstance(entry, dict):
        return False
    dtype, shape, place = (entry.get(key) for key in ("dtype", "shape", "data_offsets"))
    if not (isinstance(dtype, str) and dtype in _DTYPES and isinstance(shape, list) and isinstance(place, list)):
        return False
    if len(place) != 2 or len(shape) > 32 or any(type(n) is not int or not 0 <= n < 2**48 for n in (*shape, *place)):
        return False
    size = _DTYPES[dtype].itemsize * math.prod(shape)
    return math.prod(max(1, n) for n in shape) < 2**56 and bool(place[1] - place[0] == size)


def _map(file: IO[bytes], entry: dict[str, Any], data: int) -> npt.NDArray[Any]:
    shape, dtype = tuple(entry["shape"]), _DTYPES[entry["dtype"]]
    if 0 in shape:
        return np.empty(shape, dtype)
    # from the open file, not its name: another may have taken its place by now
    return np.asarray(np.memmap(file, dtype, mode="r", offset=data + entry["data_offsets"][0], shape=shape))


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    if not os.path.isfile(path):
        raise FileError(f"{path}: expected a file, got {_kind(path)}")
    try:
        file = path.open("rb")
    except OSError as error:
        raise FileError(f"{path}: expected a file that can be read, got: {error.strerror}") from error
    with file:
        yield file


def _kind(path: Path) -> str:
    if not os.path.exists(path):
        return "nothing there"
    return "a folder" if os.path.isdir(path) else "a device"


def _sync_folder(folder: Path) -> None:
    """Make a rename last through a power cut; a folder that may be written but not read has to do without."""
    if os.name == "posix":
        with suppress(OSError):
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
