"""A guard on disk: one folder that holds the old guard whole or the new one whole, whatever happens half way.

    guard.json                  everything but arrays; names the two other files
    bank-<mark>.safetensors     the bank, as ``Bank.save`` writes it, which may write an index beside it
    arrays-<mark>.safetensors   the arrays of the fusion, the calibration and the detector

Every save writes the two under a new mark. Then the new ``guard.json`` takes the place of the old one in one step, and
only after that are the old two removed. What a killed save left behind is removed by a later one.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vicinal import checks, store
from vicinal.bank import Bank
from vicinal.errors import FileError, WriteError
from vicinal.search import index_file

__all__ = ["MANIFEST", "check_folder", "read", "write"]

MANIFEST = "guard.json"
FORMAT = "vicinal.guard"
ARRAYS = "vicinal.guard.arrays"
VERSION = 1
_OURS = re.compile(
    r"\.?(bank|arrays)-[0-9a-f]{8}(\.index)?\.safetensors(\.[0-9a-f]+\.part)?|\.guard\.json\.[0-9a-f]+\.part"
)
_ABANDONED = 3600.0  # seconds after which a file that no manifest names is nobody's

Arrays = Mapping[str, npt.NDArray[Any]]


def write(folder: str | Path, bank: Bank, arrays: Arrays, facts: Mapping[str, Any]) -> None:
    """Write a guard in place of the one that is there, if any."""
    check_folder(folder)
    place = Path(folder)
    old = _named(place)
    mark = secrets.token_hex(4)
    names = {"bank": f"bank-{mark}.safetensors", "arrays": f"arrays-{mark}.safetensors"}
    try:
        place.mkdir(exist_ok=True)
    except OSError as error:
        raise WriteError(f"{place}: expected to create this folder, got: {error.strerror}") from error
    try:
        bank.save(place / names["bank"])
        store.write_arrays(place / names["arrays"], arrays, form=ARRAYS, version=VERSION, facts={})
        store.write_json(place / MANIFEST, {"format": FORMAT, "version": VERSION, **names, **facts})
    except BaseException:
        _remove(place, _files(names) - _named(place))
        raise
    _remove(place, {*old, *_abandoned(place)} - _files(names))


def read(folder: str | Path) -> tuple[Bank, dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """The bank, the arrays and the facts of the guard in a folder."""
    place = checks.path(folder, "folder")
    while True:
        facts = _manifest(place)
        try:
            bank = Bank.load(place / facts["bank"])
            arrays, _ = store.read_arrays(place / facts["arrays"], form=ARRAYS, version=VERSION, may=None)
            return bank, {name: np.array(array) for name, array in arrays.items()}, facts
        except FileError:
            if _manifest(place) == facts:  # otherwise another save has just replaced the files: read those
                raise


def _manifest(place: Path) -> dict[str, Any]:
    path = place / MANIFEST
    if not os.path.isfile(path):
        raise FileError(f"{place}: expected the folder of a guard, with a file {MANIFEST}, got none there")
    facts = store.read_json(path)
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise FileError(f"{path}: expected the facts of a {FORMAT}, got something else")
    version = facts.get("version")
    if type(version) is not int or version > VERSION:
        raise FileError(f"{path}: expected version {VERSION} or older, got {version!r}; update vicinal")
    for name in ("bank", "arrays"):
        if not (isinstance(facts.get(name), str) and _OURS.fullmatch(facts[name])):
            raise FileError(f"{path}: expected the name of its file of {name}, got {facts.get(name)!r}")
    return facts


def _named(place: Path) -> set[str]:
    """The files of the guard that is there; none where there is no readable one."""
    with suppress(FileError):
        facts = _manifest(place)
        return _files(facts)
    return set()


def _files(names: Mapping[str, str]) -> set[str]:
    """The files that belong to these names; the bank may have an index beside it."""
    return {names["bank"], index_file.beside(names["bank"]).name, names["arrays"]}


def check_folder(folder: str | Path) -> None:
    """Refuse, before any work is done, a place where a guard cannot be written, or would stand among other things."""
    place = checks.path(folder, "folder")
    if not os.path.isdir(place.parent):
        raise FileError(f"{place}: expected an existing folder {place.parent}; create it first")
    if not os.path.exists(place):
        return
    if not os.path.isdir(place):
        raise FileError(f"{place}: expected a folder to write, got a file")
    others = sorted(one.name for one in place.iterdir() if one.name != MANIFEST and not _OURS.fullmatch(one.name))
    if others:
        raise FileError(f"{place}: expected a new or empty folder, or that of a guard, got one with {others[0]!r}")


def _abandoned(place: Path) -> set[str]:
    """Files of saves that were killed long ago."""
    before = time.time() - _ABANDONED
    found = set()
    for one in place.iterdir():
        with suppress(OSError):
            if _OURS.fullmatch(one.name) and one.stat().st_mtime < before:
                found.add(one.name)
    return found


def _remove(place: Path, names: Iterable[str]) -> None:
    for name in names:
        with suppress(OSError):
            (place / name).unlink()
