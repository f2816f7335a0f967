"""The only input checks in vicinal: arrays of any framework in, clean NumPy arrays out, or an ``InputError``.

Every function takes the value and the name it has for the user, and returns what the rest of the library may rely on:
float32 vectors, float64 logits, int64 labels, all finite. Nothing is guessed and nothing is repaired.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from vicinal import pages
from vicinal.errors import InputError, ShapeError

__all__ = [
    "Bytes",
    "Flags",
    "Floats",
    "Integers",
    "Pixels",
    "Vectors",
    "array",
    "facts",
    "flags",
    "fraction",
    "images",
    "labels",
    "logits",
    "numbers",
    "one_of",
    "path",
    "probabilities",
    "rows",
    "same_length",
    "unit_vectors",
    "vectors",
    "whole",
]

Floats: TypeAlias = npt.NDArray[np.float64]
Bytes: TypeAlias = npt.NDArray[np.int8]
Flags: TypeAlias = npt.NDArray[np.bool_]
Integers: TypeAlias = npt.NDArray[np.int64]
Pixels: TypeAlias = npt.NDArray[np.uint8]
Vectors: TypeAlias = npt.NDArray[np.float32]
_Name = TypeVar("_Name", bound=str)

_FINITE_ROWS = 65_536  # rows looked at in one go, so that a memory-mapped array never has to fit in memory


def array(value: Any, name: str) -> npt.NDArray[Any]:
    """An array of numbers from NumPy, torch, JAX, pandas or a list, without a copy if possible.

    A torch tensor may require gradients or live on another device; bfloat16 becomes float32. A masked array is refused,
    because the numbers under its mask are not meant.
    """
    if isinstance(value, np.ma.MaskedArray):
        raise InputError(f"{name}: expected an array without a mask, got a masked one; fill it or drop the masked rows")
    try:
        if hasattr(value, "detach"):
            value = value.detach().cpu()
            if str(value.dtype) == "torch.bfloat16":
                value = value.float()
        found = np.asarray(value)
        if found.dtype == object and hasattr(value, "to_numpy"):  # columns of pandas' own types, or of several
            with suppress(TypeError, ValueError):
                found = value.to_numpy(dtype=np.float64, na_value=np.nan)
    except (ValueError, TypeError, AttributeError, RuntimeError) as error:
        raise InputError(f"{name}: expected an array of numbers, got {type(value).__name__} ({error})") from error
    if found.dtype.name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        found = found.astype(np.float32)
    if found.dtype.kind not in "fiub":
        raise InputError(f"{name}: expected an array of numbers, got dtype {found.dtype}; convert it first")
    return found


def vectors(value: Any, name: str, *, columns: int | None = None) -> Vectors:
    """Vectors (n, d) as C-ordered float32, every entry finite.

    float64 and integers are rounded to the nearest float32, float16 and bfloat16 are exact. A float32 array, a
    memory-mapped one too, is returned as it is.

    Args:
        value: the array.
        name: what the user calls it.
        columns: d, where it is already known.
    """
    found = array(value, name)
    if found.ndim != 2:
        hint = "; reshape one vector to (1, d)" if found.ndim == 1 else ""
        raise ShapeError(f"{name}: expected shape (n, d), got {_shape(found)}{hint}")
    if found.shape[0] == 0 or found.shape[1] == 0:
        raise ShapeError(f"{name}: expected at least one row and one column, got {_shape(found)}")
    if columns is not None and found.shape[1] != columns:
        raise ShapeError(
            f"{name}: expected {columns} columns, as in the bank, got {found.shape[1]}; "
            "vectors must come from the same layer of the same network"
        )
    with np.errstate(over="ignore", under="ignore"):
        rounded = np.ascontiguousarray(found, dtype=np.float32)
    _refuse_nonfinite(rounded, name, found)
    return rounded


def unit_vectors(found: Vectors, name: str) -> Vectors:
    """Vectors divided by their lengths, in float64, rounded to float32; zeros have no direction and are refused."""
    lengths = np.sqrt(np.einsum("ij,ij->i", found, found, dtype=np.float64))
    zero = np.flatnonzero(lengths == 0)
    if zero.size:
        raise InputError(
            f"{name}: expected vectors with a direction, got zeros in row {zero[0]} ({zero.size} such rows)"
        )
    divided: Vectors = (found / lengths[:, None]).astype(np.float32)
    return divided


def logits(value: Any, name: str, *, rows: int | None = None) -> Floats:
    """Logits (n, c) as float64, c of at least 2, every entry finite."""
    found = array(value, name)
    if found.ndim != 2 or found.shape[0] == 0 or found.shape[1] < 2:
        raise ShapeError(f"{name}: expected shape (n, c) with at least one row and two classes, got {_shape(found)}")
    if rows is not None and len(found) != rows:
        raise ShapeError(f"{name}: expected {rows} rows, one for each vector, got {len(found)}")
    with np.errstate(over="ignore"):  # of what is wider than float64
        converted = np.ascontiguousarray(found, dtype=np.float64)
    _refuse_nonfinite(converted, name, found)
    return converted


def probabilities(value: Any, name: str, *, rows: int | None = None) -> Floats:
    """Probabilities (n, c) as float64: in [0, 1], each row summing to 1 within 1e-3 (float16 rounds that much)."""
    found = logits(value, name, rows=rows)
    wrong = np.flatnonzero(((found < 0) | (found > 1)).any(axis=1))
    if wrong.size:
        raise InputError(
            f"{name}: expected values from 0 to 1, but row {wrong[0]} has {_outside(found[wrong[0]])} "
            f"({wrong.size} such rows); if these are logits, pass them as logits"
        )
    sums = found.sum(axis=1)
    wrong = np.flatnonzero(np.abs(sums - 1) > 1e-3)
    if wrong.size:
        raise InputError(
            f"{name}: expected rows that sum to 1, but row {wrong[0]} sums to {sums[wrong[0]]:.6g} "
            f"({wrong.size} such rows); if these are logits, pass them as logits"
        )
    return found


def labels(value: Any, name: str, *, rows: int | None = None, of: str = "vector") -> Integers:
    """Labels (n,) as int64. Any integers will do: gaps, negative ones and 0 are labels like others."""
    found = array(value, name)
    if found.ndim != 1:
        raise ShapeError(f"{name}: expected shape (n,), got {_shape(found)}")
    if rows is not None and len(found) != rows:
        raise ShapeError(f"{name}: expected {rows}, one for each {of}, got {len(found)}")
    if found.dtype.kind == "f":
        wrong = np.flatnonzero(~np.isfinite(found) | (found != np.floor(found)))
        if wrong.size:
            raise InputError(
                f"{name}: expected whole numbers, got {found[wrong[0]]} at row {wrong[0]} ({wrong.size} such rows)"
            )
    if found.dtype.kind in "fu":
        end = np.uint64(2**63) if found.dtype.kind == "u" else np.float64(2**63)
        wrong = np.flatnonzero((found >= end) | (found < -np.float64(2**63)))
        if wrong.size:
            raise InputError(
                f"{name}: expected whole numbers below 2^63, got {found[wrong[0]]} at row {wrong[0]} "
                f"({wrong.size} such rows)"
            )
    return np.ascontiguousarray(found, dtype=np.int64)


def rows(value: Any, name: str, *, rows: int | None = None, of: str = "row") -> Integers:
    """Row numbers (n,) as int64. A mask of booleans is refused: read as numbers, it would name rows 0 and 1."""
    found = array(value, name)
    if found.dtype.kind == "b":
        raise InputError(f"{name}: expected row numbers, got booleans; pass np.flatnonzero of the mask")
    return labels(found, name, rows=rows, of=of)


def numbers(
    value: Any,
    name: str,
    *,
    rows: int | None = None,
    of: str = "prediction",
    low: float = -np.inf,
    high: float = np.inf,
) -> Floats:
    """Numbers (n,) as float64, one for each prediction, finite and from ``low`` to ``high``, both included."""
    found = _one_each(value, name, rows, of)
    with np.errstate(over="ignore"):
        converted = np.ascontiguousarray(found, dtype=np.float64)
    wrong = np.flatnonzero(~np.isfinite(converted))
    if wrong.size:
        raise InputError(
            f"{name}: expected finite numbers, got {found[wrong[0]]} in row {wrong[0]} ({wrong.size} such rows); "
            "remove or repair these rows"
        )
    wrong = np.flatnonzero((converted < low) | (converted > high))
    if wrong.size:
        raise InputError(
            f"{name}: expected numbers from {low:g} to {high:g}, got {found[wrong[0]]} in row {wrong[0]} "
            f"({wrong.size} such rows)"
        )
    return converted


def flags(value: Any, name: str, *, rows: int | None = None) -> Flags:
    """Yes or no (n,) as booleans, one for each prediction; 0 and 1 will do."""
    found = _one_each(value, name, rows)
    wrong = np.flatnonzero((found != 0) & (found != 1))
    if wrong.size:
        raise InputError(
            f"{name}: expected booleans, or 0 and 1, got {found[wrong[0]]} in row {wrong[0]} ({wrong.size} such rows)"
        )
    return np.ascontiguousarray(found, dtype=np.bool_)


def images(value: Any, name: str, *, shape: tuple[int, int, int] | None = None) -> Pixels:
    """Images (n, h, w, c) of uint8, grey (c = 1) or RGB (c = 3), C-ordered; (n, h, w) gains its one channel.

    Args:
        value: the array.
        name: what the user calls it.
        shape: (h, w, c), where it is already known.
    """
    found = array(value, name)
    wanted = "(n, h, w, 1 or 3)" if shape is None else f"(n, {shape[0]}, {shape[1]}, {shape[2]})"
    if found.dtype != np.uint8:
        raise InputError(f"{name}: expected pixels as uint8, from 0 to 255, got {found.dtype}; convert them first")
    if found.ndim == 3 and (shape is None or shape[2] == 1):
        found = found[..., None]
    if found.ndim != 4:
        hint = "; for one image, pass images[None]" if found.ndim in (2, 3) else ""
        raise ShapeError(f"{name}: expected shape {wanted}, got {_shape(found)}{hint}")
    fits = found.shape[3] in (1, 3) if shape is None else found.shape[1:] == shape
    if not fits:
        hint = "; channels come last" if found.shape[1] in (1, 3) and found.shape[3] not in (1, 3) else ""
        raise ShapeError(f"{name}: expected shape {wanted}, got {_shape(found)}{hint}")
    if 0 in found.shape:
        raise ShapeError(f"{name}: expected at least one image of at least one pixel, got {_shape(found)}")
    return np.ascontiguousarray(found)


def whole(value: Any, name: str, *, low: int, high: int | None = None, why: str = "") -> int:
    """A whole number from ``low`` to ``high``, both included; ``why`` says where the upper bound comes from."""
    wanted = f"a whole number of at least {low}" if high is None else f"a whole number from {low} to {high}{why}"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise InputError(f"{name}: expected {wanted}, got {value!r}")
    if value < low or (high is not None and value > high):
        raise InputError(f"{name}: expected {wanted}, got {value}")
    return int(value)


def fraction(
    value: Any, name: str, *, low: float = 0.0, high: float = 1.0, open_low: bool = False, open_high: bool = False
) -> float:
    """A number from ``low`` to ``high``; with ``open_low`` or ``open_high``, these themselves are refused."""
    brackets = "(" if open_low else "[", ")" if open_high else "]"
    wanted = f"a number in {brackets[0]}{low:g}, {high:g}{brackets[1]}"
    if high == sys.float_info.max:
        wanted = f"a finite number {'above' if open_low else 'of at least'} {low:g}"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise InputError(f"{name}: expected {wanted}, got {value!r}")
    number = float(value)
    if not (low <= number <= high) or (open_low and number == low) or (open_high and number == high):
        raise InputError(f"{name}: expected {wanted}, got {value}")
    return number


def one_of(value: Any, name: str, choices: Sequence[_Name]) -> _Name:
    """One of a few words; the error names the closest."""
    for choice in choices:
        if isinstance(value, str) and value == choice:
            return choice
    near = get_close_matches(str(value), choices, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise InputError(f"{name}: expected one of {', '.join(map(repr, choices))}, got {value!r}{hint}")


def path(value: Any, name: str = "path") -> Path:
    """A path as text or as what ``os.fspath`` takes; whether there is anything is for others to see."""
    try:
        found = Path(value)
        known = b"\0" not in os.fsencode(found)
    except (TypeError, UnicodeEncodeError) as error:
        raise InputError(f"{name}: expected a path, as text or as a Path, got {value!r:.100}") from error
    if not known or value == "":
        raise InputError(f"{name}: expected a path that a file system can know, got {value!r:.100}")
    return found


def facts(value: Any, name: str = "facts") -> dict[str, str]:
    """Words to words, such as where some vectors come from."""
    if not isinstance(value, Mapping):
        raise InputError(f"{name}: expected words to words, as a dict, got {type(value).__name__}")
    for key, word in value.items():
        if not isinstance(key, str) or not isinstance(word, str):
            raise InputError(f"{name}: expected words to words, got {key!r}: {word!r}; turn them into strings")
    return dict(value)


def same_length(first: Sequence[Any] | npt.NDArray[Any], second: Sequence[Any] | npt.NDArray[Any], names: str) -> None:
    """Refuse two arrays of different lengths; ``names`` are both, as in ``"scores and correct"``."""
    if len(first) != len(second):
        raise ShapeError(f"{names}: expected equal lengths, got {len(first)} and {len(second)}")


def _refuse_nonfinite(found: npt.NDArray[Any], name: str, original: npt.NDArray[Any]) -> None:
    bad: list[int] = []
    count = 0
    for start, block in pages.walk(found, _FINITE_ROWS):
        with np.errstate(over="ignore", invalid="ignore"):  # a finite sum proves every entry finite, and is quick
            total = float(block.sum(dtype=np.float64))
        if not np.isfinite(total):
            rows = np.flatnonzero(~np.isfinite(block).all(axis=1))
            count += len(rows)
            if not bad and len(rows):
                bad.append(start + int(rows[0]))
    if bad:
        row = bad[0]
        column = int(np.flatnonzero(~np.isfinite(found[row]))[0])
        was = original[row, column]
        said = f"{was}, too large for {found.dtype}" if np.isfinite(was) else ("NaN" if np.isnan(was) else f"{was}")
        rows_said = "1 such row" if count == 1 else f"{count} such rows"
        raise InputError(
            f"{name}: expected finite numbers, got {said} in row {row}, column {column} ({rows_said}); "
            "remove or repair these rows"
        )


def _one_each(value: Any, name: str, rows: int | None, of: str = "prediction") -> npt.NDArray[Any]:
    found = array(value, name)
    if found.ndim != 1 or len(found) == 0:
        raise ShapeError(f"{name}: expected shape (n,), one for each of at least one {of}, got {_shape(found)}")
    if rows is not None and len(found) != rows:
        raise ShapeError(f"{name}: expected {rows}, one for each {of}, got {len(found)}")
    return found


def _outside(row: Floats) -> float:
    return float(row[(row < 0) | (row > 1)][0])


def _shape(found: npt.NDArray[Any]) -> str:
    return str(tuple(int(n) for n in found.shape))
