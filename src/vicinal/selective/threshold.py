"""Which threshold to use: a cut of a score with a promise that holds for finitely many calibration rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from vicinal import checks
from vicinal.checks import Flags, Floats, Integers
from vicinal.errors import InputError
from vicinal.guarantee import Cut, Ranks, cut_for_coverage, cut_for_fpr, cut_for_risk
from vicinal.held_out import FEW, HeldOut, caution, scores_of
from vicinal.values import Trust

__all__ = ["Threshold", "threshold_at"]


@dataclass(frozen=True)
class Threshold:
    """Which predictions to accept, and what that promises.

    Attributes:
        value: accept a prediction whose log-odds (or whose score, where scores were given) are at least this.
        score: the name of the score.
        goal: what was asked for: ``"risk"``, ``"coverage"`` or ``"fpr"``.
        target: how much of it.
        delta: how improbable it is that the calibration rows were so lucky that the promise does not hold.
        met: whether the target can be promised. If not, nothing is accepted.
        promised: with probability 1 - delta, the risk (or fpr) is at most, the coverage at least this; where the target
            is not met, the smallest that can be promised from these rows.
        coverage: the share of the calibration rows that is accepted.
        risk: the share of wrong predictions among these; 0 if there are none.
        fpr: the share of the wrong predictions that is accepted; 0 if there are none.
        hindsight: the coverage of the best threshold for these very rows, known only afterwards.
        oracle: the coverage of a perfect score, which puts every right prediction above every wrong one.
        n: how many calibration rows.
        errors: how many of them are wrong.
        notes: what the reader should know.
    """

    value: float
    score: str
    goal: str
    target: float
    delta: float
    met: bool
    promised: float
    coverage: float
    risk: float
    fpr: float
    hindsight: float
    oracle: float
    n: int
    errors: int
    notes: tuple[str, ...] = ()

    def accept(self, trust: Trust | Any) -> Flags:
        """(m,), whether to accept each prediction.

        Example:
            >>> threshold = threshold_at(np.arange(100.0), np.arange(100) >= 20, coverage=0.8)
            >>> threshold.accept([5.0, 90.0])
            array([False,  True])
        """
        if isinstance(trust, Trust) and trust.name != self.score:
            raise InputError(
                f"trust: expected the score {self.score!r}, for which the threshold is, got {trust.name!r}"
            )
        found: Flags = scores_of(trust) >= self.value
        return found

    def __str__(self) -> str:
        sure = f"with {1 - self.delta:.0%} confidence"
        least = "at least" if self.goal == "coverage" else "at most"
        if not self.met:
            return (
                f"{self.score}: no threshold can promise a {self.goal} of at most {self.target:.4g} {sure}, from "
                f"{self.n} rows with {self.errors} errors; the smallest is {self.promised:.4g}. Nothing is accepted"
            )
        return (
            f"{self.score} of at least {self.value:.6g}: {sure}, a {self.goal} of {least} {self.promised:.4g}; on "
            f"{self.n} calibration rows it accepts {self.coverage:.1%} with {self.risk:.2%} errors (best in hindsight "
            f"{self.hindsight:.1%}, a perfect score {self.oracle:.1%})"
        )


def threshold_at(
    trust: Trust | Any,
    correct: Any,
    *,
    risk: float | None = None,
    coverage: float | None = None,
    fpr: float | None = None,
    delta: float = 0.05,
) -> Threshold:
    """The threshold for one image: which log-odds to accept, so that a promise holds on inputs yet to come.

    Exactly one goal:

    - ``risk``: at most this share of the accepted predictions is wrong.
    - ``coverage``: at least this share of all predictions is accepted.
    - ``fpr``: at most this share of the wrong predictions is accepted.

    With probability at least 1 - ``delta`` over the calibration rows this is true of the distribution they come from,
    for any number of rows and any distribution (see ``vicinal.guarantee``). Of the thresholds for which it can be
    promised, the one for ``risk`` and ``fpr`` accepts the most, the one for ``coverage`` the fewest.

    Args:
        trust: how far each of n held-out predictions can be trusted; or scores (n,), larger is more trustworthy.
        correct: (n,), whether each prediction is right.
        risk: in (0, 1).
        coverage: in (0, 1).
        fpr: in (0, 1).
        delta: in (0, 1).

    Returns:
        Threshold: where none can be promised, it accepts nothing, says so, and names what can be promised.

    Example:
        >>> scores = np.arange(1000.0)
        >>> threshold = threshold_at(scores, correct=scores >= 150, risk=0.05)
        >>> threshold.coverage, threshold.hindsight, threshold.met
        (0.883, 0.894, True)
    """
    goal, target = _goal({"risk": risk, "coverage": coverage, "fpr": fpr})
    delta = checks.fraction(delta, "delta", open_low=True, open_high=True)
    rows = HeldOut.of([trust], correct)
    scores, right = rows.scores[0], rows.correct
    name = trust.name if isinstance(trust, Trust) else "score"
    cut = _cut(goal, scores, right, target, delta)
    notes = rows.notes + _cautions(name, goal, target, cut, right)
    accepted = scores >= cut.value
    wrong = int((~right).sum())
    kept_wrong = int((accepted & ~right).sum())
    hindsight, oracle = _best(goal, target, scores, right)
    return Threshold(
        value=cut.value,
        score=name,
        goal=goal,
        target=target,
        delta=delta,
        met=cut.met,
        promised=cut.promised,
        coverage=float(accepted.mean()),
        risk=kept_wrong / max(1, int(accepted.sum())),
        fpr=kept_wrong / max(1, wrong),
        hindsight=hindsight,
        oracle=oracle,
        n=len(right),
        errors=wrong,
        notes=notes,
    )


def _goal(goals: dict[str, float | None]) -> tuple[str, float]:
    given = {name: value for name, value in goals.items() if value is not None}
    if len(given) != 1:
        raise InputError(f"risk, coverage, fpr: expected exactly one of the three, got {', '.join(given) or 'none'}")
    ((name, value),) = given.items()
    return name, checks.fraction(value, name, open_low=True, open_high=True)


def _cut(goal: str, scores: Floats, right: Flags, target: float, delta: float) -> Cut:
    if goal == "risk":
        return cut_for_risk(scores, right, target, delta)
    if goal == "coverage":
        return cut_for_coverage(scores, target, delta)
    return cut_for_fpr(scores, right, target, delta)


def _cautions(name: str, goal: str, target: float, cut: Cut, right: Flags) -> tuple[str, ...]:
    found = []
    if len(right) < FEW:
        found.append(f"{len(right)} calibration rows are fewer than {FEW}: the promise holds, but says little")
    if right.all() or not right.any():
        kind = "right" if right.all() else "wrong"
        found.append(
            f"all {len(right)} calibration rows are {kind}: they do not show whether {name!r} ranks errors last"
        )
    if not cut.met and goal == "fpr" and right.all():
        found.append("no calibration row is wrong: nothing can be promised of wrong predictions; nothing is accepted")
    elif not cut.met:
        found.append(
            f"no threshold of {name!r} can promise a {goal} of at most {target:.4g}: nothing is accepted; the smallest "
            f"that can be promised from these rows is {cut.promised:.4g}"
        )
    return tuple(caution(note) for note in found)


def _best(goal: str, target: float, scores: Floats, right: Flags) -> tuple[float, float]:
    """The coverage of the best threshold for these rows, and of the best one for a perfect score."""
    ranks = Ranks.of(scores, right)
    counts = np.arange(1, len(right) + 1)
    perfect = np.maximum(counts - int(right.sum()), 0)
    return _reachable(goal, target, ranks.counts, ranks.errors), _reachable(goal, target, counts, perfect)


def _reachable(goal: str, target: float, counts: Integers, errors: Integers) -> float:
    """The coverage of the best cut, where cut i accepts ``counts[i]`` rows with ``errors[i]`` wrong ones."""
    n, wrong = int(counts[-1]), int(errors[-1])
    if goal == "coverage":
        return float(counts[np.searchsorted(counts, target * n)] / n)
    within = errors <= (target * counts if goal == "risk" else target * wrong)
    return float(counts[within].max(initial=0) / n)
