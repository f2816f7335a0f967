"""Why: the neighbours behind a distance score, as values that print as sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from vicinal import checks, scoring
from vicinal.bank import Bank
from vicinal.checks import Integers
from vicinal.errors import InputError
from vicinal.scoring import Settings
from vicinal.values import Embeddings, Nearest, Neighbors, Rival, Trust

__all__ = ["Reason", "Witness", "ask", "choose", "columns", "explain"]

_NAMED = 4  # classes named among the neighbours


@dataclass(frozen=True)
class Witness:
    """A training point.

    Attributes:
        row: of the bank.
        label: its class.
        distance: from the query.
    """

    row: int
    label: int
    distance: float

    def __str__(self) -> str:
        return f"row {self.row} of class {self.label} at {self.distance:.4g}"


@dataclass(frozen=True)
class Reason:
    """Why one prediction can be trusted as far as it can.

    Attributes:
        row: of the prediction, among those judged.
        predicted: its class.
        label: the true class, or None.
        confidence: of the score.
        log_odds: of the score.
        rival: the class that speaks most against the prediction; None where the bank has no other.
        rival_log_odds: of that class.
        k: how many neighbours ``counts`` speaks of.
        counts: how many of them each class has, the most frequent first.
        neighbors: the nearest of them.
        same: the nearest training point of the predicted class, wherever it lies; None where the bank has none.
        other: the nearest one of any other class, likewise.
    """

    row: int
    predicted: int
    label: int | None
    confidence: float
    log_odds: float
    rival: int | None
    rival_log_odds: float | None
    k: int
    counts: dict[int, int]
    neighbors: tuple[Witness, ...]
    same: Witness | None
    other: Witness | None

    def to_json(self) -> dict[str, Any]:
        """All of it in plain words and numbers, as JSON has them; the keys of ``counts`` are strings."""
        found = asdict(self)
        counts = {str(label): count for label, count in self.counts.items()}
        return {**found, "counts": counts, "neighbors": list(found["neighbors"])}

    def __str__(self) -> str:
        return "\n".join([self._verdict(), *(f"  {line}" for line in self._grounds())])

    def _verdict(self) -> str:
        truth = ""
        if self.label is not None:
            truth = " (right)" if self.label == self.predicted else f" (wrong: it is {self.label})"
        if self.log_odds > 0:
            stand = "the training points around it agree"
        elif self.rival_log_odds is not None and self.rival_log_odds > self.log_odds:
            stand = f"the training points around it rather say {self.rival}"
        else:
            stand = "the training points around it are divided"
        return (
            f"row {self.row}: predicted {self.predicted}{truth}; {stand} "
            f"(confidence {self.confidence:.3f}, log-odds {self.log_odds:.2f})"
        )

    def _grounds(self) -> list[str]:
        agreeing = self.counts.get(self.predicted, 0)
        others = [f"{count} of class {label}" for label, count in self.counts.items() if label != self.predicted]
        more = [f"{len(others) - _NAMED} classes more"] if len(others) > _NAMED else []
        split = f"; the others: {', '.join(others[:_NAMED] + more)}" if others else ""
        lines = [
            f"of its {self.k} nearest training points {agreeing} are of class {self.predicted}{split}",
            f"the nearest: {'; '.join(map(str, self.neighbors))}",
            f"the nearest of class {self.predicted}: {self.same or 'the bank has none'}",
            f"the nearest of any other class: {self.other or 'the bank has none'}",
        ]
        if self.rival is not None:
            lines.append(f"its strongest rival is class {self.rival}, at log-odds {self.rival_log_odds:.2f}")
        return lines


def explain(trust: Trust, rows: Any = None, *, labels: Any = None, shown: int = 5) -> tuple[Reason, ...]:
    """Say why some predictions are trusted as far as they are.

    Args:
        trust: by the score ``distance``, whose neighbours and rivals are the reason.
        rows: which predictions, as indices, in the order wanted; all of them if left out.
        labels: (n,), the true classes of all predictions, to say which are right.
        shown: how many of the neighbours to name.

    Example:
        >>> from vicinal import Bank, distance
        >>> bank = Bank([[0.0], [1.0], [4.0]], labels=[0, 0, 1])
        >>> print(explain(distance(bank, [[3.0]], [0], k=3), shown=2)[0])
        row 0: predicted 0; the training points around it rather say 1 (confidence 0.335, log-odds -0.69)
          of its 3 nearest training points 2 are of class 0; the others: 1 of class 1
          the nearest: row 2 of class 1 at 1; row 1 of class 0 at 2
          the nearest of class 0: row 1 of class 0 at 2
          the nearest of any other class: row 2 of class 1 at 1
          its strongest rival is class 1, at log-odds 0.69
    """
    near, rival, predicted = _grounds(trust)
    chosen = np.arange(len(trust)) if rows is None else checks.rows(rows, "rows")
    if chosen.size and (chosen.min() < 0 or chosen.max() >= len(trust)):
        wrong = chosen[(chosen < 0) | (chosen >= len(trust))][0]
        raise InputError(f"row: expected one from 0 to {len(trust) - 1}, got {wrong}")
    truth = None if labels is None else checks.labels(labels, "labels", rows=len(trust), of="prediction")
    shown = checks.whole(shown, "shown", low=1)
    return tuple(_reason(trust, near, rival, predicted, truth, int(row), shown) for row in chosen)


def choose(trust: Trust, least: int, *, of_class: int | None = None) -> Integers:
    """The rows of the least trusted predictions, the least trusted first, ties by the lowest row.

    Args:
        trust: by any score.
        least: how many; fewer if there are not so many.
        of_class: look only at predictions of this class.
    """
    least = checks.whole(least, "least", low=1)
    order = np.argsort(trust.log_odds, kind="stable")
    if of_class is not None:
        if trust.predicted is None:
            raise InputError(f"class: expected a score that judges predictions, got {trust.name}")
        order = order[trust.predicted[order] == of_class]
        if not len(order):
            known = ", ".join(map(str, np.unique(trust.predicted)[:20]))
            raise InputError(f"class: expected one that is predicted ({known}), got {of_class}")
    return order[:least]


def ask(
    embeddings: Embeddings,
    bank: Bank,
    settings: Settings | None = None,
    *,
    rows: Any = None,
    least: int = 5,
    of_class: int | None = None,
    shown: int = 5,
) -> tuple[Reason, ...]:
    """Score predictions by ``distance`` and say why: of some rows, or of the least trusted.

    Args:
        embeddings: the predictions, with labels where known.
        bank: the training points.
        settings: of the score.
        rows: which predictions; or
        least: how many of the least trusted,
        of_class: of this predicted class only.
        shown: how many of the neighbours to name.
    """
    settings = settings or Settings()
    if rows is None or settings.exclude_self:
        trust = scoring.apply(["distance"], embeddings, bank, settings)["distance"]
        chosen = choose(trust, least, of_class=of_class) if rows is None else rows
        return explain(trust, chosen, labels=embeddings.labels, shown=shown)
    part = embeddings.take(rows)
    trust = scoring.apply(["distance"], part, bank, settings)["distance"]
    reasons = explain(trust, labels=part.labels, shown=shown)
    return tuple(replace(reason, row=int(row)) for reason, row in zip(reasons, rows, strict=True))


def columns(reasons: Sequence[Reason]) -> dict[str, list[Any]]:
    """Reasons as a table: one row for each neighbour that they name, the nearest of each prediction first."""
    pairs = [(reason, rank, near) for reason in reasons for rank, near in enumerate(reason.neighbors)]
    of_reason = ("row", "predicted", "label", "confidence", "log_odds", "rival", "rival_log_odds")
    return {
        **{name: [getattr(reason, name) for reason, _, _ in pairs] for name in of_reason},
        "rank": [rank for _, rank, _ in pairs],
        **{f"neighbor_{name}": [getattr(near, name) for _, _, near in pairs] for name in ("row", "label", "distance")},
    }


def _grounds(trust: Trust) -> tuple[Neighbors, Rival, Integers]:
    if trust.neighbors is None or trust.rival is None or trust.predicted is None:
        raise InputError(f"trust: expected one by the score 'distance', which has neighbours, got {trust.name!r}")
    return trust.neighbors, trust.rival, trust.predicted


def _reason(
    trust: Trust, near: Neighbors, rival: Rival, predicted: Integers, truth: Integers | None, row: int, shown: int
) -> Reason:
    other = _witness(near.other, row)
    return Reason(
        row=row,
        predicted=int(predicted[row]),
        label=None if truth is None else int(truth[row]),
        confidence=float(trust.confidence[row]),
        log_odds=float(trust.log_odds[row]),
        rival=None if other is None else int(rival.labels[row]),
        rival_log_odds=None if other is None else float(rival.log_odds[row]),
        k=near.k,
        counts=dict(Counter(near.labels[row].tolist()).most_common()),
        neighbors=tuple(
            Witness(*found)
            for found in zip(
                near.indices[row, :shown].tolist(),
                near.labels[row, :shown].tolist(),
                near.distances[row, :shown].tolist(),
                strict=True,
            )
        ),
        same=_witness(near.same, row),
        other=other,
    )


def _witness(nearest: Nearest | None, row: int) -> Witness | None:
    if nearest is None or nearest.indices[row] < 0:
        return None
    return Witness(int(nearest.indices[row]), int(nearest.labels[row]), float(nearest.distances[row]))
