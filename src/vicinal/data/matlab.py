"""Arrays of numbers from MATLAB files of level 5 (versions 5 to 7), and nothing else from them.

SciPy reads these files too, but a damaged one can end the whole process (a segmentation fault in SciPy 1.17's
``loadmat`` after a few changed bytes). Here every length is checked before it is believed.

The format: 128 bytes of head that end in the version and ``IM`` (or ``MI``, big-endian), then elements. An element is a
tag of 8 bytes (type, length), its bytes, and zeros up to a multiple of 8; one of at most 4 bytes may stand inside its
own tag. Element 15 holds a compressed element, element 14 a matrix: flags, lengths of the axes, name, and numbers.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vicinal.errors import FileError

__all__ = ["read_matrices"]

_MATRIX, _COMPRESSED = 14, 15
_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}
_COMPLEX = 0x800


class _Damaged(Exception):
    """What is wrong, in a few words."""


def read_matrices(path: Path, names: Collection[str]) -> dict[str, npt.NDArray[Any]]:
    """The named arrays of numbers in a file; names that are not in it, or are no plain numbers, are left out."""
    raw = memoryview(path.read_bytes())
    order = {b"IM": "<", b"MI": ">"}.get(bytes(raw[126:128]))
    if order is None:
        raise FileError(f"{path}: expected a MATLAB file of level 5, got one that begins {bytes(raw[:10])!r}")
    found: dict[str, npt.NDArray[Any]] = {}
    try:
        for kind, content in _elements(raw[128:], order):
            if kind == _COMPRESSED:
                kind, content = next(_elements(memoryview(zlib.decompress(content)), order))
            if kind == _MATRIX:
                found |= _matrix(content, order, names)
    except (_Damaged, zlib.error, StopIteration) as error:
        raise FileError(f"{path}: expected a whole MATLAB file, got a damaged one ({error}); fetch it again") from error
    return found


def _elements(raw: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """The type and the bytes of each element."""
    at = 0
    while at < len(raw):
        if at + 8 > len(raw):
            raise _Damaged("it ends within a tag")
        first, second = (int(n) for n in np.frombuffer(raw[at : at + 8], f"{order}u4"))
        small = first >> 16
        kind, length, start = (first & 0xFFFF, small, at + 4) if small else (first, second, at + 8)
        if start + length > len(raw) or (small and length > 4):
            raise _Damaged(f"an element of {length:,} bytes where {len(raw) - start:,} are left")
        yield kind, raw[start : start + length]
        end = at + 8 if small else start + length
        at = end if kind == _COMPRESSED else -(-end // 8) * 8


def _matrix(raw: memoryview, order: str, names: Collection[str]) -> dict[str, npt.NDArray[Any]]:
    """One array of numbers by its name, or nothing if it is not asked for, or holds something else."""
    parts = _elements(raw, order)
    flags = _numbers(*_next(parts, "flags"), order)
    axes = _numbers(*_next(parts, "axes"), order)
    name = bytes(_next(parts, "a name")[1]).decode("latin-1")
    number = _CLASSES.get(int(flags[0]) & 0xFF) if len(flags) else None
    if name not in names or number is None or int(flags[0]) & _COMPLEX:
        return {}
    values = _numbers(*_next(parts, "numbers"), order)
    shape = tuple(int(length) for length in axes)
    if len(values) != int(np.prod(shape, dtype=object)) or min(shape, default=0) < 0:
        raise _Damaged(f"{len(values):,} numbers for the shape {shape}")
    return {name: values.reshape(shape, order="F").astype(number, copy=False)}


def _next(parts: Iterator[tuple[int, memoryview]], what: str) -> tuple[int, memoryview]:
    for part in parts:
        return part
    raise _Damaged(f"a matrix without {what}")


def _numbers(kind: int, raw: memoryview, order: str) -> npt.NDArray[Any]:
    if kind not in _TYPES:
        raise _Damaged(f"numbers of the unknown type {kind}")
    dtype = np.dtype(order + _TYPES[kind])
    if len(raw) % dtype.itemsize:
        raise _Damaged(f"{len(raw):,} bytes of numbers of {dtype.itemsize} bytes each")
    return np.frombuffer(raw, dtype)
