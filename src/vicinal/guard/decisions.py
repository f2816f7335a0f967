"""What a guard says of each input: what it is, how likely that is right, what to do, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from vicinal.checks import Floats, Integers
from vicinal.novelty import ACCEPT, NOVEL, UNSURE
from vicinal.values import Neighbors, Rival, Trust

__all__ = ["Decisions"]

_KINDS = (ACCEPT, UNSURE, NOVEL)
_PRINTED = 20  # rows that a table shows
_WITNESSES = 5  # neighbours of each input among the records


@dataclass(frozen=True, eq=False)
class Decisions:
    """What a ``Guard`` says of m inputs.

    Attributes:
        label: (m,), the class predicted.
        probability: (m,), of the prediction being right, if the input is of a known class.
        p_value: (m,), how often an input of a known class is as unusual as this one.
        decision: (m,), ``"accept"``, ``"unsure"`` or ``"novel"``.
        log_odds: (m,), of the guard's score, before calibration: rank by it.
        distance: the distance score: its neighbours and rivals are the reason; ``vicinal.explain`` puts it in words.
        names: of the classes, as far as they have any.
        notes: what the reader should know.
    """

    label: Integers
    probability: Floats
    p_value: Floats
    decision: npt.NDArray[Any]
    log_odds: Floats
    distance: Trust
    names: Mapping[int, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.label)

    def __repr__(self) -> str:
        counts = ", ".join(f"{int((self.decision == name).sum())} {name}" for name in _KINDS)
        return f"Decisions({len(self)} inputs: {counts})"

    @property
    def neighbors(self) -> Neighbors:
        """The nearest training points of each input: rows of the bank, their classes, their distances."""
        assert self.distance.neighbors is not None
        return self.distance.neighbors

    @property
    def rival(self) -> Integers:
        """(m,), the class that speaks most against each prediction."""
        assert self.distance.rival is not None
        return self.distance.rival.labels

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """One value for each input, by name: what a table or a data frame holds.

        ``agreeing`` is how many of the neighbours are of the predicted class; ``nearest`` the row of the nearest one,
        with its class and its distance.
        """
        near = self.neighbors
        columns: dict[str, npt.NDArray[Any]] = {"row": np.arange(len(self)), "label": self.label}
        columns |= self._named("name", self.label)
        columns |= {name: getattr(self, name) for name in ("probability", "p_value", "decision", "rival")}
        columns |= self._named("rival_name", self.rival)
        return columns | {
            "agreeing": (near.labels == self.label[:, None]).sum(axis=1),
            "nearest": near.indices[:, 0],
            "nearest_label": near.labels[:, 0],
            "nearest_distance": near.distances[:, 0],
        }

    def records(self) -> list[dict[str, Any]]:
        """One record for each input, with its five nearest neighbours: plain values, as JSON holds them."""
        columns = {name: values.tolist() for name, values in self.columns().items()}
        near = self.neighbors.first(_WITNESSES)
        witnesses = zip(near.indices.tolist(), near.labels.tolist(), near.distances.tolist(), strict=True)
        return [
            {
                **dict(zip(columns, values, strict=True)),
                "neighbors": [
                    {"row": row, "label": label, "distance": distance}
                    for row, label, distance in zip(*found, strict=True)
                ],
            }
            for values, found in zip(zip(*columns.values(), strict=True), witnesses, strict=True)
        ]

    def shares(self) -> dict[str, float]:
        """The share of each decision."""
        return {name: float((self.decision == name).mean()) for name in _KINDS}

    def __str__(self) -> str:
        columns = {name: values[:_PRINTED] for name, values in self.columns().items()}
        lines = [list(columns), *(list(map(_cell, row)) for row in zip(*columns.values(), strict=True))]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
        more = [f"... and {len(self) - _PRINTED:,} more"] if len(self) > _PRINTED else []
        return "\n".join(table + more + [f"note: {note}" for note in self.notes])

    @classmethod
    def join(cls, parts: Sequence[Decisions]) -> Decisions:
        """The decisions of several batches of inputs, one after the other."""
        if len(parts) == 1:
            return parts[0]

        def together(name: str) -> Any:
            return np.concatenate([getattr(part, name) for part in parts])

        notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
        ours = {name: together(name) for name in ("label", "probability", "p_value", "decision", "log_odds")}
        return cls(**ours, distance=_joined([part.distance for part in parts]), names=parts[0].names, notes=notes)

    def _named(self, column: str, labels: Integers) -> dict[str, npt.NDArray[Any]]:
        if not self.names:
            return {}
        return {column: np.array([self.names.get(label, str(label)) for label in labels.tolist()])}


def _joined(trusts: Sequence[Trust]) -> Trust:
    def together(values: Sequence[Any], name: str) -> Any:
        return np.concatenate([getattr(value, name) for value in values])

    rivals = [trust.rival for trust in trusts]
    return replace(
        trusts[0],
        confidence=together(trusts, "confidence"),
        log_odds=together(trusts, "log_odds"),
        predicted=together(trusts, "predicted"),
        neighbors=Neighbors.join([trust.neighbors for trust in trusts if trust.neighbors is not None]),
        rival=Rival(together(rivals, "labels"), together(rivals, "log_odds")),
        notes=tuple(dict.fromkeys(note for trust in trusts for note in trust.notes)),
    )


def _cell(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
