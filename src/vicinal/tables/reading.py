"""Embeddings from a file of the user's own, whatever its arrays are called."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vicinal import checks
from vicinal.errors import InputError
from vicinal.tables.sources import Source, nearest_word, open_source
from vicinal.values import LOG_PROBABILITIES, Embeddings

__all__ = ["Names", "read"]

_LEAST = 1e-300  # stands for a probability of 0
_OPTIONAL = ("logits", "labels", "predicted")


@dataclass(frozen=True)
class Names:
    """What the arrays are called in a file. None: by the name they have here, if they are there.

    Args:
        vectors: (n, d); or several columns, as ``"x,y"`` or ``"x_*"``.
        logits: (n, c), likewise.
        probabilities: (n, c), likewise, instead of logits. Taken only where named.
        labels: (n,).
        predicted: (n,).
        classes: (c,), the label of each column of the logits. Taken only where named, or from vicinal's own files.
    """

    vectors: str | None = None
    logits: str | None = None
    probabilities: str | None = None
    labels: str | None = None
    predicted: str | None = None
    classes: str | None = None

    def __post_init__(self) -> None:
        if self.logits is not None and self.probabilities is not None:
            raise InputError("logits, probabilities: expected one of the two to be named, got both")


def read(
    path: str | Path, names: Names | None = None, *, needs: Iterable[str] = (), skips: Iterable[str] = ()
) -> Embeddings:
    """Read embeddings from a file; see :mod:`vicinal.tables` for the kinds.

    Probabilities become logits that have them as their softmax, and a fact says so.

    Args:
        path: the file, or a folder of ``.npy`` files.
        names: what its arrays are called.
        needs: which of ``logits``, ``labels`` and ``predicted`` must be there; logits will do as ``predicted``.
        skips: which of them not to read.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "test.npz"
        >>> np.savez(file, vectors=np.eye(3), target=[0, 1, 1])
        >>> read(file, Names(labels="target"), needs=["labels"])
        Embeddings(3 x 3; labels)
    """
    names, source = names or Names(), open_source(path)
    facts = dict(source.facts)
    arrays: dict[str, Any] = {"vectors": _needed(source, names.vectors, "vectors")}
    for one in _OPTIONAL:
        called = getattr(names, one) or one
        if one not in skips and (getattr(names, one) is not None or one in source.arrays):
            arrays[one] = source.array(called)
    if names.probabilities is not None:
        found = checks.probabilities(source.array(names.probabilities), f"{source.path}: {names.probabilities}")
        arrays["logits"] = np.log(np.maximum(found, _LEAST))
        facts.update([LOG_PROBABILITIES])
    if "logits" in arrays and (names.classes is not None or (source.own and "classes" in source.arrays)):
        arrays["classes"] = source.array(names.classes or "classes")
    for one in needs:
        if one not in arrays and not (one == "predicted" and "logits" in arrays):
            _refuse_missing(source, one)
    try:
        return Embeddings(**arrays, facts=facts)
    except InputError as error:
        raise type(error)(f"{source.path}: {error}") from error


def _needed(source: Source, called: str | None, name: str) -> Any:
    if called is None and name not in source.arrays:
        _refuse_missing(source, name)
    if called is not None and source.path.suffix == ".npy":
        raise InputError(f"{source.path}: expected no other name for the vectors, which are this file, got {called!r}")
    return source.array(called or name)


def _refuse_missing(source: Source, name: str) -> None:
    what, options = f"an array {name!r}", f"--{name} NAME"
    if name == "predicted":
        what, options = "an array 'predicted' or 'logits', to know the predictions", "--predicted or --logits NAME"
    near = nearest_word(name, source.arrays)
    raise InputError(f"{source.path}: expected {what}, got {source.listed()}{near}; say what it is called: {options}")
