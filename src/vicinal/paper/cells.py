"""Cells from scores: one AUROC over networks, its gain over the softmax's, and what stands beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vicinal import metrics
from vicinal.checks import Flags, Floats
from vicinal.paper.inference import Sample, difference, estimate, of_accuracy, of_auroc
from vicinal.paper.results import Cell, Column, Difference, Finding, Outcome, outcome_above

__all__ = ["Panel", "goal"]

SOFTMAX = ("margin", "entropy")


@dataclass(frozen=True, eq=False)
class Panel:
    """What stands in one column: the same scores of several networks on the same points.

    Attributes:
        column: of the table; its accuracy is filled in here.
        ranks: for each network the scores (n,) by row.
        rights: for each network, which predictions are right, or which inputs known.
        rivals: the rows whose best, network by network, the others are tested against. The choice sees the very points
            that are tested on, which is to the rivals' advantage.
    """

    column: Column
    ranks: tuple[Mapping[str, Floats], ...]
    rights: tuple[Flags, ...]
    rivals: tuple[str, ...] = SOFTMAX

    @classmethod
    def of(
        cls,
        group: str,
        name: str,
        ranks: Sequence[Mapping[str, Floats]],
        rights: Sequence[Flags],
        *,
        rivals: tuple[str, ...] = SOFTMAX,
        published: float | None = None,
        accuracy: bool = True,
    ) -> Panel:
        """A panel of those networks that have at least two right and two wrong predictions."""
        fit = [i for i, right in enumerate(rights) if 2 <= right.sum() <= len(right) - 2]
        shown = estimate([of_accuracy(rights[i]) for i in fit]) if accuracy and fit else None
        column = Column(group, name, shown, published)
        return cls(column, tuple(ranks[i] for i in fit), tuple(rights[i] for i in fit), rivals)

    def __len__(self) -> int:
        return len(self.rights)

    def samples(self, row: str) -> list[Sample]:
        """The AUROC of a row on each network; empty where it has no such row."""
        if not all(row in ranks for ranks in self.ranks):
            return []
        found = [of_auroc(ranks[row], right) for ranks, right in zip(self.ranks, self.rights, strict=True)]
        return [sample for sample in found if sample is not None]

    def rival(self) -> list[Sample]:
        """The better of the rivals on each network; of those that every network has."""
        every = [samples for row in self.rivals if (samples := self.samples(row))]
        return [max(choices, key=lambda sample: sample.value) for choices in zip(*every, strict=True)]

    def gain(self, row: str, over: str | None = None) -> Difference | None:
        """How much larger the AUROC of a row is than that of the rivals, or of another row."""
        mine, others = self.samples(row), self.rival() if over is None else self.samples(over)
        return difference(mine, others) if mine and others else None

    def cell(self, row: str, published: float | None = None, *, beside: bool = True) -> Cell | None:
        """The cell of a row; None where the column has no such row."""
        samples = self.samples(row)
        if not samples:
            return None
        gain = None if row in self.rivals else self.gain(row)
        return Cell(row, self.column.key, estimate(samples), gain, published, self._beside(row) if beside else {})

    def _beside(self, row: str) -> dict[str, float]:
        pairs = [(ranks[row], right) for ranks, right in zip(self.ranks, self.rights, strict=True)]
        return {
            name: float(np.mean([measure(scores, right) for scores, right in pairs]))
            for name, measure in (("aurc", metrics.aurc), ("augrc", metrics.augrc))
        }


def goal(what: str, where: str, found: Difference | None, wanted: float | None = None) -> list[Finding]:
    """A gain held against what was wanted of it; nothing where there is no gain to test.

    Args:
        what: is gained, over what.
        where: the column.
        found: the gain.
        wanted: at least so much, and surely more than 0; 0: not surely less than 0; None: surely more than 0.
    """
    if found is None:
        return []
    if wanted == 0:
        kept: Outcome = "not confirmed" if found.verdict == "worse" else "confirmed"
        return [Finding(what, where, kept, found, "not below")]
    said = f"{wanted:+.3f}, interval above 0" if wanted else "interval above 0"
    return [Finding(what, where, outcome_above(found, wanted or 0.0), found, said)]
