"""Which search a bank answers with: what was asked for, and what ``"auto"`` takes.

The searches are imported when they are chosen, so that nobody loads torch who does not search with it.
"""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from vicinal import checks
from vicinal.errors import InputError
from vicinal.search.points import Points
from vicinal.search.protocol import Search

__all__ = ["NAMES", "Choice", "Name"]

Name: TypeAlias = Literal["brute", "exact", "approximate", "torch", "auto"]
NAMES: tuple[Name, ...] = ("brute", "exact", "approximate", "torch", "auto")
_RECALL = 0.99
_FEW = 5_000  # below so many points brute force is as fast as any (docs: Which search to choose)
_NARROW = 24  # below so many columns too
_MANY = 20_000  # from so many points on, approximate search is worth its building


@dataclass(frozen=True)
class Choice:
    """What was asked for.

    Attributes:
        name: of the search.
        recall: the share of the true neighbours that approximate search must find; None where nothing was said.
        device: of torch; None where nothing was said.
    """

    name: Name = "brute"
    recall: float | None = None
    device: str | None = None

    @classmethod
    def of(cls, search: Any, recall: Any, device: Any) -> Choice:
        """The choice that some arguments say, checked."""
        name = checks.one_of(search, "search", NAMES)
        if recall is not None:
            recall = checks.fraction(recall, "recall", open_low=True)
        if recall is not None and name not in ("approximate", "auto"):
            raise InputError(f"recall: expected none with search={name!r}, which finds every neighbour, got {recall}")
        if device is not None and name not in ("torch", "auto"):
            raise InputError(f"device: expected none with search={name!r}, which uses the CPU, got {device!r}")
        return cls(name, recall, None if device is None else str(device))

    def settled(self, points: Points) -> Choice:
        """The same, with what ``"auto"`` takes for some points in its place.

        A device where one is named, or where CUDA is found and has room. Approximate search only where a recall below 1
        is asked for, as its answers differ from those of all others. Else exact search, save for small banks.
        """
        if self.name == "approximate":
            return replace(self, recall=_RECALL if self.recall is None else self.recall)
        if self.name == "torch":
            return replace(self, device=self.device or ("cuda" if _fits(points, "cuda") else "cpu"))
        if self.name != "auto":
            return self
        if self.device is not None and _fits(points, self.device):
            return Choice("torch", device=self.device)
        if self.recall is not None and self.recall < 1 and len(points) >= _MANY:
            return Choice("approximate", recall=self.recall)
        if _fits(points, "cuda") and len(points) >= _FEW:
            return Choice("torch", device="cuda")
        return Choice("exact" if len(points) >= _FEW and points.dimension >= _NARROW else "brute")

    def saved(self, path: str | Path, points: Points) -> Search | None:
        """A search that was saved beside the file of a bank, if this choice can use it."""
        taken = self.settled(points)
        if taken.name != "approximate":
            return None
        from vicinal.search import building

        return building.saved(path, points, taken.recall or _RECALL)

    def save(self, path: str | Path, search: Search) -> None:
        """Write what this choice took long to build beside the file of a bank; nothing for most searches."""
        if self.name == "approximate":
            from vicinal.search import building

            building.save(path, search)

    def begin(self, points: Points, before: Search | None = None) -> tuple[Choice, Search]:
        """The choice settled, and its search; see ``search``.

        Where ``"auto"`` takes approximate search and that does not reach the recall, it takes another.
        """
        taken = self.settled(points)
        try:
            return taken, taken.search(points, before)
        except InputError:
            if (self.name, taken.name) != ("auto", "approximate"):
                raise
            return replace(self, recall=None).begin(points, before)

    def search(self, points: Points, before: Search | None = None) -> Search:
        """A search of some points, by a choice that is settled.

        Args:
            points: what to look through.
            before: a search of the points that these were made of, by adding or removing some; what it knows is used.
        """
        if self.name == "exact":
            from vicinal.search.exact import ExactSearch

            return before.after(points) if isinstance(before, ExactSearch) else ExactSearch(points)
        if self.name == "approximate":
            from vicinal.search.building import approximate

            return approximate(points, self.recall or _RECALL, before)
        if self.name == "torch":
            from vicinal.search.device import DeviceSearch

            return DeviceSearch(points, self.device or "cpu")
        from vicinal.search.brute import BruteSearch

        return BruteSearch(points)


def _fits(points: Points, device: str) -> bool:
    """Whether a device is there and has room; torch is not even loaded where CUDA can be ruled out without it."""
    if importlib.util.find_spec("torch") is None:
        return False
    if device.startswith("cuda") and "torch" not in sys.modules and not Path("/dev/nvidiactl").exists():
        return False
    from vicinal.search.tensors import free_memory, needed_memory

    try:
        free = free_memory(device)
    except InputError:
        if device == "cuda":
            return False
        raise
    return free is None or needed_memory(points, device) <= free
