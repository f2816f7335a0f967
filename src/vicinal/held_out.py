"""Rows held out to calibrate on: scores, whether each prediction is right, and what is wrong with them.

Whoever fits something on held-out rows asks here first. What cannot be used is an ``InputError``; where a cautious
answer exists it is given, with a ``Caution`` that names it. Rows at distance 0 from a bank point are such a case: they,
or copies of them, are in the bank, whose points vouch for them too well. A stray one happens; where they are more than
1 %, the held-out rows overlap the training points, and these rows are left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vicinal import checks
from vicinal.checks import Flags, Floats
from vicinal.errors import InputError
from vicinal.values import Trust

__all__ = ["FEW", "Caution", "HeldOut", "caution", "in_bank", "scores_of"]

FEW = 30  # rows below which shapes cannot be told from noise
_STRAY = 0.01  # the share of duplicates of bank points that may happen


class Caution(UserWarning):
    """A cautious answer was given in place of the one asked for; the message says which and why."""


def caution(note: str) -> str:
    """Warn, at the caller of vicinal, and hand the note back for the record."""
    warnings.warn(note, Caution, stacklevel=_depth())
    return note


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out rows that may be calibrated on.

    Attributes:
        scores: one (n,) for each trust, larger is more trustworthy.
        correct: (n,), whether each prediction is right.
        kept: (rows,), which of the rows given these are.
        notes: what the reader should know; each has been warned of.
    """

    scores: tuple[Floats, ...]
    correct: Flags
    kept: Flags
    notes: tuple[str, ...]

    @classmethod
    def of(cls, trusts: Sequence[Trust | Any], correct: Any) -> HeldOut:
        """Check the rows, and leave out those that are in the bank if they are many.

        Args:
            trusts: scores of the same predictions: each a ``Trust``, or (n,) numbers.
            correct: (n,), whether each prediction is right.
        """
        right = checks.flags(correct, "correct")
        scores = tuple(scores_of(trust, rows=len(right)) for trust in trusts)
        known = np.zeros(len(right), bool)
        for trust in trusts:
            known |= in_bank(trust, len(right))
        if known.mean() <= _STRAY:
            return cls(scores, right, np.ones(len(right), bool), ())
        if known.all():
            raise InputError(
                f"correct: expected rows that are not in the bank, got {len(right)} that all lie at distance 0 of a "
                "bank point; hold rows out of the bank, or score its own with exclude_self=True"
            )
        note = caution(
            f"{int(known.sum())} of {len(right)} held-out rows lie at distance 0 of a bank point: they overlap the "
            "bank and are left out"
        )
        return cls(tuple(score[~known] for score in scores), right[~known], ~known, (note,))

    @property
    def one_sided(self) -> str | None:
        """``"right"`` or ``"wrong"`` where all predictions are; None where there are both."""
        if self.correct.all():
            return "right"
        return None if self.correct.any() else "wrong"


def scores_of(trust: Trust | Any, *, rows: int | None = None) -> Floats:
    """What to rank by: the log-odds of a ``Trust``, or numbers as they are."""
    return checks.numbers(trust.log_odds if isinstance(trust, Trust) else trust, "trust", rows=rows)


def in_bank(trust: Trust | Any, rows: int) -> Flags:
    """(n,), whether the nearest point of the bank is at distance 0; all False for a score without neighbours."""
    if not isinstance(trust, Trust) or trust.neighbors is None:
        return np.zeros(rows, bool)
    found: Flags = trust.neighbors.distances[:, 0] == 0
    return found


def _depth() -> int:
    """How many frames up the caller of vicinal stands."""
    import sys

    depth = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("vicinal"):
        frame, depth = frame.f_back, depth + 1
    return depth
