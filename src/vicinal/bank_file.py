"""The file of a bank: what is written, and what is refused when it is read (docs: File formats)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vicinal import store
from vicinal.checks import Integers
from vicinal.errors import FileError
from vicinal.search import Points
from vicinal.search.points import Gathered

__all__ = ["BANK_FORMAT", "BANK_VERSION", "HEAVIEST", "LIGHTEST", "Stored", "begin", "read", "rest", "room", "write"]

BANK_FORMAT = "vicinal.bank"
BANK_VERSION = 2  # what is written without weights is version 1, which has none
LIGHTEST, HEAVIEST = 1e-9, 1e9  # weights of points, so that no sum of them leaves the range of a float
_KINDS = {
    "vectors": ("float32", 2),
    "centre": ("float64", 1),
    "labels": ("int64", 1),
    "rows": ("int64", 1),
    "squares": ("float64", 1),
}
_OPTIONAL = {"weights": ("float64", 1)}
_PAGE = 4096  # bytes: the vectors begin at a multiple of this
_MOST = 2**48 - 1  # points, and the greatest number of a row


@dataclass(frozen=True, eq=False)
class Stored:
    """What a bank is made of, and what its file holds.

    Attributes:
        points: the points, of which the removed ones are not written.
        rows: (n,), the user's number of each point, ascending.
        next_row: the number that the next added row gets.
        facts: where the vectors come from.
    """

    points: Points
    rows: Integers
    next_row: int
    facts: dict[str, str]


def write(path: str | Path, stored: Stored) -> None:
    """Write a bank's file, in place of what is there."""
    points = stored.points
    living = np.flatnonzero(points.living)
    whole = len(living) == len(points)
    vectors: Sequence[Any] = points.segments if whole else [Gathered(points, living)]
    with store.replacing(path) as file:
        file.write(begin(len(living), points.dimension, points.weights is not None, stored.facts, stored.next_row))
        for part in (*vectors, *rest(stored).values()):
            store.write_rows(file, part)


def begin(n: int, d: int, weighted: bool, facts: Mapping[str, str], next_row: int) -> bytes:
    """The beginning of a bank's file, up to the vectors, which come first: they may be written before n is known."""
    return _begin(n, d, weighted, facts, next_row, room(d, weighted, facts))


def room(d: int, weighted: bool, facts: Mapping[str, str]) -> int:
    """How many bytes stand before the vectors, however many there are."""
    return -(-len(_begin(_MOST, d, weighted, facts, _MOST)) // _PAGE) * _PAGE


def _begin(n: int, d: int, weighted: bool, facts: Mapping[str, str], next_row: int, size: int = 0) -> bytes:
    kinds = _KINDS | _OPTIONAL if weighted else _KINDS
    shapes: dict[str, tuple[str, tuple[int, ...]]] = {name: (kind, (n,)) for name, (kind, _) in kinds.items()}
    shapes["vectors"], shapes["centre"] = ("float32", (n, d)), ("float64", (d,))
    said = {"facts": dict(facts), "next_row": next_row}
    return store.begin(shapes, form=BANK_FORMAT, version=BANK_VERSION if weighted else 1, facts=said, size=size)


def rest(stored: Stored) -> dict[str, Any]:
    """The arrays that follow the vectors, in order."""
    points, rows = stored.points, stored.rows
    living = np.flatnonzero(points.living)
    parts = {"labels": points.labels, "rows": rows, "squares": points.squares}
    if points.weights is not None:
        parts["weights"] = points.weights
    return {"centre": points.centre, **{name: part[living] for name, part in parts.items()}}


def read(path: str | Path) -> Stored:
    """Open a bank's file. The vectors stay on disk and are mapped into memory as they are needed."""
    arrays, facts = store.read_arrays(
        path, form=BANK_FORMAT, version=BANK_VERSION, needs=tuple(_KINDS), may=tuple(_OPTIONAL)
    )
    _refuse_disagreement(path, arrays, facts)
    vectors = arrays.pop("vectors")
    parts = {name: np.array(part) for name, part in arrays.items()}
    rows = parts.pop("rows")
    return Stored(Points((vectors,), **parts), rows, facts["next_row"], facts["facts"])


def _refuse_disagreement(path: str | Path, arrays: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
    """Refuse what ``write`` never writes, as far as can be told without reading the vectors."""
    wanted = {name: kind for name, kind in (_KINDS | _OPTIONAL).items() if name in arrays}
    kinds = {name: (str(arrays[name].dtype), arrays[name].ndim) for name in wanted}
    if kinds != wanted:
        raise FileError(f"{path}: expected types and dimensions {wanted}, got {kinds}; the file is damaged")
    n, d = arrays["vectors"].shape
    lengths = {name: len(arrays[name]) for name in wanted if name not in ("vectors", "centre")}
    if not n * d or set(lengths.values()) != {n} or len(arrays["centre"]) != d:
        raise FileError(f"{path}: expected {n} of each of {', '.join(lengths)}, got {lengths}; the file is damaged")
    rows, squares, end = arrays["rows"], arrays["squares"], facts.get("next_row")
    numbered = type(end) is int and rows[0] >= 0 and rows[-1] < end and bool((rows[:-1] < rows[1:]).all())
    largest = float(np.finfo(np.float32).max)  # of an entry, and so of a mean of entries
    finite = (np.abs(arrays["centre"]) <= largest).all() and 0 <= squares.min() <= squares.max() <= 4 * d * largest**2
    if not numbered or not finite or not isinstance(facts.get("facts"), dict):
        raise FileError(f"{path}: expected ascending rows, finite lengths and facts; the file is damaged")
    weights = arrays.get("weights", np.ones(1))
    if not (np.isfinite(weights).all() and weights.min() >= LIGHTEST and weights.max() <= HEAVIEST):
        raise FileError(f"{path}: expected weights from {LIGHTEST:g} to {HEAVIEST:g}; the file is damaged")
