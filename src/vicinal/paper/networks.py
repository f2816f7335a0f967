"""The networks of an edition: where they are, which are missing, and how the missing ones come to be.

``ROOT/<edition>/<data>-<method>-<seed>/`` is what ``vicinal train`` leaves there. A network that was trained by another
recipe, or from another seed, or whose embeddings are not those that this code gives, is never used, and never
overwritten.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vicinal import data, store
from vicinal.bank import Bank
from vicinal.data import DataSet
from vicinal.errors import FileError, InputError, MissingDataError, VicinalError
from vicinal.paper.cache import EMBEDDING, Cache, code
from vicinal.paper.digits import write_digits
from vicinal.paper.editions import METHODS, Edition, Source
from vicinal.values import Embeddings

if TYPE_CHECKING:
    from vicinal.learn.many import Job, Outcome
    from vicinal.learn.network import Network
    from vicinal.learn.recipe import Recipe

__all__ = ["MISSING", "Entry", "Networks"]

MISSING = "missing"  # what keeps a network from being used where it is still to be trained
_PARTS = ("train", "validation", "test")
_TRIED = 16  # test images that stored embeddings are held against
_STRAY = 1e-3  # of the embeddings' typical length: what another machine may round otherwise


@dataclass(frozen=True)
class Entry:
    """One network of an edition.

    Attributes:
        source: its data set.
        method: how it is trained.
        seed: of the network.
        variant: of the recipe, as the edition names it; empty for the recipe itself.

    Example:
        >>> Entry(Source("svhn", "SVHN", "svhn", 5, 5, 15, False), "reg", 3).name
        'svhn-reg-3'
    """

    source: Source
    method: str
    seed: int
    variant: str = ""

    @property
    def name(self) -> str:
        """Of its folder."""
        return "-".join(filter(None, (self.source.data, self.method, self.variant, str(self.seed))))


class Networks:
    """The networks of an edition, under a root.

    Args:
        root: the folder of all editions.
        edition: which one.
        data_root: the folder of all data sets; None for the usual one.
        device: where to train.
    """

    def __init__(self, root: Path, edition: Edition, data_root: Path | None = None, device: str = "cpu") -> None:
        self.folder, self.edition, self.device = root / edition.name, edition, device
        self._data_root = data_root
        self._usable: set[Entry] = set()

    @cached_property
    def data_root(self) -> Path | None:
        """Where the data sets are; the digits are written first."""
        if self.edition.name != "quick":
            return self._data_root
        root = self.folder / "data"
        write_digits(root)
        return root

    def wanted(self, figure: bool = False, variants: bool = False) -> list[Entry]:
        """Every network that the tables need; or the figure; or the claims, with one of each variant."""
        first = self.edition.sources[0]
        entries = [
            Entry(source, method, seed)
            for source in self.edition.sources
            for seed in range(max(source.networks, source.figure) if figure else source.networks)
            for method in METHODS
        ]
        if variants and self.edition.variants:
            entries += [Entry(first, "distance", 0, name) for name in self.edition.variants]
            entries.append(Entry(first, "both", 0))
        return entries

    def ready(self, source: Source, method: str, most: int) -> list[Entry]:
        """Those of a data set and a method that can be used, in the order of their seeds."""
        entries = [Entry(source, method, seed) for seed in range(most)]
        return [entry for entry in entries if self.obstacle(entry) == ""]

    def recipe(self, entry: Entry) -> Recipe:
        """How a network is trained; refused where no recipe is made for its data."""
        from vicinal.learn.recipes import named

        changes = {**self.edition.changes, **self.edition.variants.get(entry.variant, {})}
        return named(self.edition.recipe, entry.source.data, entry.method, **changes)

    def obstacle(self, entry: Entry) -> str:
        """Why a network cannot be used, in words; empty where it can. ``MISSING`` where it is to be trained."""
        if entry not in self._usable:
            said = self._obstacle(entry)
            if said:
                return said
            self._usable.add(entry)
        return ""

    def to_train(self, entries: Iterable[Entry]) -> list[Entry]:
        """Those that are missing, and could be trained."""
        return [entry for entry in entries if self.obstacle(entry) == MISSING and self.lacking(entry.source.data) == ""]

    def lacking(self, name: str) -> str:
        """What keeps networks from being trained on a data set, and how to get it; empty where nothing does."""
        source = self.edition.source(name)
        try:
            if source is not None:
                self.recipe(Entry(source, "reg", 0))
            if not any(holding.name == name and holding.there for holding in data.available(self.data_root)):
                data.load(name, root=self.data_root)
        except (MissingDataError, InputError) as error:
            return str(error)
        return ""

    def data(self, name: str) -> DataSet:
        """A data set of the edition, in memory."""
        return _loaded(name, self.data_root)

    def embeddings(self, entry: Entry, part: str) -> Embeddings:
        """Of the points that a network was trained on (``train``), validated on, or tested on."""
        return Embeddings.load(self.folder / entry.name / f"{part}.safetensors")

    def bank(self, entry: Entry) -> Bank:
        """The bank of a network."""
        return Bank.load(self.folder / entry.name / "bank.safetensors")

    def network(self, entry: Entry) -> Network:
        """A network itself, to run it."""
        from vicinal.learn.network import Network

        return Network.load(self.folder / entry.name, device=self.device)

    def fingerprint(self, entry: Entry) -> str:
        """The digest of a network's weights."""
        found: str = store.read_json(self.folder / entry.name / "network.json")["fingerprint"]
        return found

    def seconds(self, entry: Entry) -> float | None:
        """How long a network trained, interruptions left out; None where its log does not say it."""
        try:
            *_, last = (self.folder / entry.name / "log.jsonl").read_text(encoding="utf-8").splitlines()
            return float(json.loads(last)["seconds"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def train(self, entries: Iterable[Entry], processes: int | None = None) -> tuple[Outcome, ...]:
        """Train networks side by side, each from where it was interrupted."""
        from vicinal.learn.many import train_many

        return train_many([self._job(entry) for entry in entries], processes=processes)

    def _job(self, entry: Entry) -> Job:
        from vicinal.learn.many import Job

        return Job(
            entry.source.data,
            out=self.folder / entry.name,
            recipe=self.recipe(entry),
            seed=entry.seed,
            device=self.device,
            resume=True,
            retries=2,
            validation=self.edition.validation,
            root=self.data_root,
        )

    def _obstacle(self, entry: Entry) -> str:
        place = self.folder / entry.name
        if not (place / "network.json").exists():
            return MISSING
        try:
            said = store.read_json(place / "network.json")
            differences = self._differences(said, entry)
            whole = all(_fingerprint(place / f"{part}.safetensors") == said["fingerprint"] for part in _PARTS)
            whole = whole and (place / "bank.safetensors").exists()
            stray = self._strays(entry) if whole and not differences else False
        except (VicinalError, KeyError, TypeError) as error:
            return f"{place}: {error}"
        if differences:
            return f"{place}: trained otherwise ({'; '.join(differences)}); move it away to train it anew"
        if stray:
            return f"{place}: its embeddings are not those that this version gives; move it away to train it anew"
        return "" if whole else MISSING

    def _differences(self, said: Mapping[str, Any], entry: Entry) -> list[str]:
        """In what a network's training differs from what is wanted."""
        from vicinal.learn.recipe import Recipe

        wanted = {"seed": str(entry.seed), "data": entry.source.data}
        others = [
            f"{name}: {value}, not {said['facts'].get(name)}"
            for name, value in wanted.items()
            if said["facts"].get(name) != value
        ]
        return [*self.recipe(entry).differences(Recipe.from_json(said["recipe"])), *others]

    def _strays(self, entry: Entry) -> bool:
        """Whether this version of the code embeds test images elsewhere than the folder says; asked once."""
        if self.lacking(entry.source.data):
            return False  # nothing to embed

        def compute() -> dict[str, Any]:
            kept = self.embeddings(entry, "test").vectors[:_TRIED]
            now = self.network(entry).embed(self.data(entry.source.data).test.images[:_TRIED]).vectors
            length = np.linalg.norm(kept, axis=1).mean()
            return {"gap": np.atleast_1d(np.linalg.norm(now - kept, axis=1).max() / length)}

        key = {"network": self.fingerprint(entry), "code": code(EMBEDDING)}
        found = Cache(self.folder / "cache").get(f"{entry.name}--strays", key, compute)
        return not float(found["gap"][0]) <= _STRAY


@lru_cache(maxsize=2)
def _loaded(name: str, root: Path | None) -> DataSet:
    return data.load(name, root=root)


def _fingerprint(path: Path) -> str | None:
    """Of the network whose embeddings a file holds; None where it is not there, or not whole."""
    try:
        _, facts = store.read_arrays(path, form="vicinal.embeddings", version=1, may=None)
    except FileError:
        return None
    found: str | None = facts.get("fingerprint")
    return found
