"""The paper reproduced: train what is missing, score, compare, and write down what came out.

    Reproduction(...).plan ──▶ run ──▶ Results ──▶ results/<edition>/<name>.json, .svg, .png

Whatever was done stays: networks in their folders, scores in the cache. The same call goes on where another ended.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from vicinal import checks, store
from vicinal.errors import InputError, MissingExtraError, VicinalError, require
from vicinal.origin import origin
from vicinal.paper.cache import CODE, code
from vicinal.paper.claims import claims
from vicinal.paper.costs import costs
from vicinal.paper.editions import EDITIONS
from vicinal.paper.figure1 import figure1
from vicinal.paper.networks import Entry, Networks
from vicinal.paper.peers import missing_peers
from vicinal.paper.plan import Plan, make_plan, shown
from vicinal.paper.results import Result
from vicinal.paper.table1 import table1
from vicinal.paper.table2 import table2
from vicinal.paper.table3 import table3
from vicinal.paper.views import Views

__all__ = ["NAMES", "Reproduction"]

_log = logging.getLogger(__name__)
_MAKERS: Mapping[str, Callable[[Views], Result]] = MappingProxyType(
    {"table1": table1, "table2": table2, "table3": table3, "figure1": figure1, "claims": claims, "costs": costs}
)
NAMES = tuple(_MAKERS)
# what decides the figures in a result, and not only how they are shown
_OF_RESULTS = (
    *CODE,
    *(
        f"paper/{name}.py"
        for name in (*NAMES, "cells", "digits", "editions", "goals", "networks", "published", "views")
    ),
)


class Reproduction:
    """Some tables and figures of an edition.

    Args:
        names: which ones, of ``NAMES``; ``all`` for all of them.
        edition: ``quick``, ``compact``, ``wide`` or ``full``.
        networks: the folder of all networks, with one folder in it for each edition.
        results: the folder of all results, likewise.
        data: the folder of all data sets; None for the usual one.
        train: whether to train what is missing, or show what is there.
    """

    def __init__(
        self,
        names: Iterable[str] = ("all",),
        edition: str = "quick",
        *,
        networks: str | Path = "runs",
        results: str | Path = "results",
        data: str | Path | None = None,
        train: bool = True,
    ) -> None:
        self.edition = EDITIONS[checks.one_of(edition, "edition", tuple(EDITIONS))]
        self.names = _named(names)
        self.train = train
        self.results = checks.path(results, "results") / self.edition.name
        root = None if data is None else checks.path(data, "data")
        require("torch", "torch", "vicinal reproduce")
        self.networks = Networks(checks.path(networks, "networks"), self.edition, root, _device(self.edition.device))

    @cached_property
    def wanted(self) -> list[Entry]:
        """The networks that all of it rests on."""
        return self._rests_on(self.names)

    @cached_property
    def plan(self) -> Plan:
        """What is there, and what is left to train."""
        plan = make_plan(self.networks, self.wanted, self._processes)
        if plan.there == 0 and (not plan.missing or not self.train):
            raise InputError(f"{self.edition.name}: expected at least one network or data set, got none; {plan}")
        return plan if self.train else replace(plan, missing=(), minutes=0.0)

    @property
    def doubts(self) -> list[str]:
        """What to ask before it begins: results of other code to be replaced, days to be spent on the wrong machine."""
        doubts = [f"{path}: made by another version of the code; replace it" for path in self._of_other_code()]
        slow = self.edition.device != "cpu" and self.networks.device == "cpu"
        if slow and self.plan.missing:
            doubts.append(
                f"{self.edition.name}: made for a GPU, and there is none; begin what takes {shown(self.plan.minutes)}"
            )
        return doubts

    def run(self) -> list[Result]:
        """Train what is missing, then make, write and return every result."""
        self.results.mkdir(parents=True, exist_ok=True)
        failed = self._trained()
        views, found = Views(self.networks), []
        for name in self.names:
            result = self._signed(name, _MAKERS[name](views), failed)
            result.save(self.results / f"{name}.json")
            _drawn(result, self.results)
            found.append(result)
        return found

    def _rests_on(self, names: Sequence[str]) -> list[Entry]:
        return self.networks.wanted(figure="figure1" in names, variants="claims" in names)

    @property
    def _processes(self) -> int:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return cores if self.networks.device == "cpu" else 1

    def _trained(self) -> list[str]:
        """Train what is missing; what could not be trained, in words."""
        if not self.plan.missing:
            return []
        outcomes = self.networks.train(self.plan.missing, self._processes)
        return [f"{Path(one.job.out).name}: not trained: {one.error}" for one in outcomes if one.error is not None]

    def _signed(self, name: str, result: Result, failed: Sequence[str]) -> Result:
        """A result with where it was made, from which networks, and what is missing from it."""
        entries = [entry for entry in self._rests_on([name]) if not self.networks.obstacle(entry)]
        kinds = {entry.name.removesuffix(f"-{entry.seed}"): entry for entry in entries}
        made = origin(f"vicinal reproduce {name} --edition {self.edition.name}")
        lacking = [f"skipped: {why}" for why in self.plan.lacking.values()]
        peers = [f"{package} is not installed; its row is left out" for package in missing_peers()]
        return replace(
            result,
            networks={entry.name: self.networks.fingerprint(entry) for entry in entries},
            recipes={kind: self.networks.recipe(entry).to_json() for kind, entry in kinds.items()},
            made={**made, "code": code(_OF_RESULTS)},
            notes=tuple(dict.fromkeys([*result.notes, *lacking, *self.plan.refused, *failed, *peers])),
        )

    def _of_other_code(self) -> list[Path]:
        paths = [self.results / f"{name}.json" for name in self.names]
        return [path for path in paths if path.exists() and _code_of(path) != code(_OF_RESULTS)]


def _named(names: Iterable[str]) -> tuple[str, ...]:
    asked = [checks.one_of(name, "name", (*NAMES, "all")) for name in names]
    return tuple(name for name in NAMES if name in asked or "all" in asked)


def _device(wanted: str) -> str:
    import torch

    return wanted if wanted == "cpu" or torch.cuda.is_available() else "cpu"


def _code_of(path: Path) -> str | None:
    """The version of the code that a result was made by; None where the file does not say it."""
    try:
        said = store.read_json(path)
    except VicinalError:
        return None
    made = said.get("made") if isinstance(said, dict) else None
    return made.get("code") if isinstance(made, dict) else None


def _drawn(result: Result, folder: Path) -> None:
    from vicinal import plots
    from vicinal.paper.pictures import draw

    try:
        picture = draw(result)
    except MissingExtraError as missing:
        _log.warning("%s", missing)
        return
    for form in ("svg", "png"):
        plots.save(picture, folder / f"{result.name}.{form}")
