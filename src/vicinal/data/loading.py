"""Where data sets are kept, and how they come into memory."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from vicinal import checks
from vicinal.data import folders
from vicinal.data.catalog import CATALOG, Known
from vicinal.data.dataset import DataSet
from vicinal.data.readers import held
from vicinal.errors import FileError, MissingDataError

__all__ = ["Holding", "available", "data_root", "load", "standing"]

_log = logging.getLogger(__name__)
_VARIABLE = "VICINAL_DATA"


@dataclass(frozen=True)
class Holding:
    """What the data root holds of one data set.

    Attributes:
        name: what ``load`` calls it.
        title: what its authors call it.
        place: the folder that holds it, or would.
        missing: the files that are not there; empty where it can be loaded.
        size: the bytes of the files that are there.
        fetchable: whether ``vicinal data fetch`` can bring it.
    """

    name: str
    title: str
    place: Path
    missing: tuple[str, ...]
    size: int
    fetchable: bool

    @property
    def there(self) -> bool:
        """Whether it can be loaded."""
        return not self.missing


def data_root(root: str | Path | None = None) -> Path:
    """The folder of all data sets: the argument, or else ``VICINAL_DATA``, or else ``~/.cache/vicinal/data``.

    Example:
        >>> data_root("mine").name
        'mine'
    """
    if root is not None:
        return checks.path(root, "root").expanduser()
    variable = os.environ.get(_VARIABLE)
    return Path(variable).expanduser() if variable else Path.home() / ".cache" / "vicinal" / "data"


def load(name: str, *, root: str | Path | None = None) -> DataSet:
    """Read a data set: one that vicinal knows by name, or a folder of your own (docs: Data sets).

    Args:
        name: ``"cifar10"``, ``"cifar100"``, ``"fashion-mnist"``, ``"mnist"``, ``"stl10"``, ``"stl10-32"``, ``"svhn"``,
            or a folder, under the data root or anywhere, of ``train_images.npy`` and so on, or of images by class.
        root: the data root; see :func:`data_root`.

    Example:
        >>> load("cifar-100", root="nowhere")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        vicinal.errors.MissingDataError: cifar-100: expected one of ... or a folder...; did you mean 'cifar100'?
    """
    base, asked = data_root(root), checks.path(name, "name")
    if str(name) in CATALOG:
        return _known(CATALOG[str(name)], base)
    for folder in (base / asked, asked.expanduser()):
        if os.path.isdir(folder):
            return _own(folder.resolve())
    near = get_close_matches(str(name), CATALOG, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else "vicinal data list shows what is there"
    raise MissingDataError(f"{name}: expected one of {', '.join(CATALOG)}, or a folder, here or under {base}; {hint}")


def standing(known: Known, base: Path) -> tuple[Path, tuple[str, ...]]:
    """The folder under the data root that holds most of a data set's files, and the files that are missing from it."""
    choices = []
    for place in known.places:
        folder = base / place
        choices.append((folder, tuple(file for file in known.files if held(folder, file) is None)))
    return min(choices, key=lambda choice: len(choice[1]))


def available(root: str | Path | None = None) -> tuple[Holding, ...]:
    """What the data root holds: the known data sets, there or not, and then the folders of your own.

    Example:
        >>> [holding.name for holding in available("nowhere") if holding.there]
        []
    """
    base = data_root(root)
    holdings = []
    for known in CATALOG.values():
        place, missing = standing(known, base)
        size = sum(path.stat().st_size for path in (held(place, file) for file in known.files) if path is not None)
        holdings.append(Holding(known.name, known.title, place, missing, size, fetchable=True))
    for folder in sorted(base.iterdir()) if base.is_dir() else []:
        if folder.is_dir() and folder.name not in CATALOG and _reads(folder):
            size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
            holdings.append(Holding(folder.name, folder.name, folder, (), size, fetchable=False))
    return tuple(holdings)


def _known(known: Known, base: Path) -> DataSet:
    place, missing = standing(known, base)
    if missing:
        raise MissingDataError(
            f"{known.name}: expected {', '.join(missing)} in {place}, got nothing there; get them with: "
            f"vicinal data fetch {known.name} (from {known.homepage}), or name a data root with --data or {_VARIABLE}"
        )
    train, test = known.read(place)
    notes = [known.notes] if known.notes else []
    for part, found, count in zip(("train", "test"), (train, test), known.counts, strict=True):
        if len(found) != count:
            notes.append(f"{len(found):,} {part} images, not the official {count:,}")
            _log.warning("%s: %s", known.name, notes[-1])
    facts = {
        "title": known.title,
        "source": known.homepage,
        "address": " ".join(download.addresses[0] + download.name for download in known.downloads),
        "sha256": " ".join(download.sha256 for download in known.downloads),
        "licence": known.licence,
    }
    if notes:
        facts["notes"] = "; ".join(notes)
    return DataSet(known.name, train, test, known.class_names, facts)


def _own(folder: Path) -> DataSet:
    if folders.is_folder_of_arrays(folder):
        return folders.read_arrays(folder)
    if folders.is_folder_of_classes(folder):
        return folders.read_classes(folder)
    raise FileError(
        f"{folder}: expected train_images.npy, train_labels.npy, test_images.npy and test_labels.npy, or folders "
        "train/<class>/ and test/<class>/ with images, got neither"
    )


def _reads(folder: Path) -> bool:
    return folders.is_folder_of_arrays(folder) or folders.is_folder_of_classes(folder)
