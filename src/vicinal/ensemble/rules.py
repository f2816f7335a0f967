"""The five rules by which several networks decide together (the paper, section 2.3), without a loop over inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from vicinal import checks
from vicinal.checks import Flags, Floats, Integers
from vicinal.compiled import compiled
from vicinal.ensemble.members import Ensemble, Member
from vicinal.errors import InputError
from vicinal.values import Trust

__all__ = ["RULES", "Combined", "Rule", "combine"]

Rule: TypeAlias = Literal["average", "majority", "weighted", "confidence_vote", "dictator"]
RULES: tuple[Rule, ...] = ("average", "majority", "weighted", "confidence_vote", "dictator")
_UNWEIGHTED = ("average", "majority")
_BLOCK = 512  # rows worked on at a time: what stays in the cache while all members add to it


@dataclass(frozen=True, eq=False)
class Combined:
    """What an ensemble decides of n inputs.

    Attributes:
        predicted: (n,), labels.
        support: (n, c), each class's share of what the rule counts: averaged softmax, votes, or the dictator's softmax.
            Rows sum to 1; columns stand for ``classes``.
        tied: (n,), where several classes had the most and the rule for ties decided.
        rows: (n,), numbers of the inputs, as in ``Ensemble``.
        classes: (c,), the label of each column.
        rule: by which it was decided.
        by: the score that weighed the members, if any.
    """

    predicted: Integers
    support: Floats
    tied: Flags
    rows: Integers
    classes: Integers
    rule: str
    by: str | None = None

    def __len__(self) -> int:
        return len(self.predicted)


def combine(members: Ensemble | Sequence[Member], rule: Rule = "average", *, by: str | None = None) -> Combined:
    """Decide together, for each input, by those members that have it.

    - ``average``: the class with the largest softmax output, averaged over members.
    - ``majority``: each member has a vote.
    - ``weighted``: as ``average``, each member's softmax outputs multiplied by its confidence.
    - ``confidence_vote``: the surest of n members has n / 2 votes, each other one vote.
    - ``dictator``: the surest member decides.

    The surest is the one with the largest log-odds, the first of several such. The weight of ``weighted`` is the
    confidence of the score, which must be in [0, 1]; of ``entropy``, whose confidence is a negative entropy,
    1 - entropy / log c. Where every weight is 0, all count alike.

    Ties. A tie between classes in a vote goes to the surest member's class if it is one of them (``confidence_vote``
    only), then to the class with the largest averaged softmax. Any tie that is left goes to the lowest label.

    Args:
        members: over the same classes.
        rule: by which to decide.
        by: the name of the score of each member that says how sure it is; for the last three rules.

    Example:
        >>> one = Member("one", [[0.6, 0.4], [0.9, 0.1]])
        >>> two = Member("two", [[0.1, 0.9], [0.2, 0.8]])
        >>> combine([one, two]).predicted
        array([1, 0])
    """
    ensemble = Ensemble.of(members)
    rule = checks.one_of(rule, "rule", RULES)
    if (by is None) != (rule in _UNWEIGHTED):
        wanted = "no score" if rule in _UNWEIGHTED else "the name of a score"
        raise InputError(f"by: expected {wanted} with the rule {rule!r}, got {by!r}")
    support, columns, tied = _DECIDE[rule](ensemble, by or "")
    return Combined(ensemble.classes[columns], support, tied, ensemble.rows, ensemble.classes, rule, by)


_Decided: TypeAlias = tuple[Floats, Integers, Flags]


def _average(ensemble: Ensemble, _: str) -> _Decided:
    return _summed(ensemble, ensemble.present.astype(np.float64))


def _weighted(ensemble: Ensemble, by: str) -> _Decided:
    weights = np.stack([ensemble.spread(i, _weights(member, by), 0.0) for i, member in enumerate(ensemble.members)])
    nobody = ~(weights > 0).any(axis=0)
    return _summed(ensemble, np.where(nobody, ensemble.present, weights))


def _majority(ensemble: Ensemble, _: str) -> _Decided:
    return _polled(ensemble, ensemble.choices(), ensemble.present.astype(np.float64), None)


def _confidence_vote(ensemble: Ensemble, by: str) -> _Decided:
    choices, surest = ensemble.choices(), _surest(ensemble, by)
    counts = ensemble.present.astype(np.float64)
    everyone = np.arange(len(surest))
    counts[surest, everyone] = ensemble.present.sum(axis=0) / 2
    return _polled(ensemble, choices, counts, choices[surest, everyone])


def _dictator(ensemble: Ensemble, by: str) -> _Decided:
    surest = _surest(ensemble, by)
    support = np.empty_like(ensemble.probabilities[0])
    for index, probabilities in enumerate(ensemble.probabilities):
        ruled = np.flatnonzero(surest == index)
        support[ruled] = probabilities[ruled]
    best = support.max(axis=1, keepdims=True)
    return support, support.argmax(axis=1), (support == best).sum(axis=1) > 1


_DECIDE: dict[str, Callable[[Ensemble, str], _Decided]] = {
    "average": _average,
    "majority": _majority,
    "weighted": _weighted,
    "confidence_vote": _confidence_vote,
    "dictator": _dictator,
}


def _summed(ensemble: Ensemble, weights: Floats) -> _Decided:
    """The softmax outputs of all members, weighted by (m, n) and divided by the sum of the weights."""
    n, c = ensemble.probabilities[0].shape
    support, columns, tied = np.zeros((n, c)), np.empty(n, np.int64), np.empty(n, bool)
    whole = weights.sum(axis=0)
    for start in range(0, n, _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, n))
        total = support[rows[0] : rows[-1] + 1]
        for part, weight in zip(ensemble.probabilities, weights, strict=True):
            _add(part, rows, weight, total)
        _settle(total, rows, whole, columns, tied)
    return support, columns, tied


@compiled()
def _settle(total, rows, whole, columns, tied):  # type: ignore[no-untyped-def]
    """The first largest column of each row, whether there are several, and each row divided by its ``whole``."""
    for i in range(len(rows)):
        best, several = 0, False
        for j in range(1, total.shape[1]):
            if total[i, j] > total[i, best]:
                best, several = j, False
            elif total[i, j] == total[i, best]:
                several = True
        columns[rows[i]], tied[rows[i]] = best, several
        for j in range(total.shape[1]):
            total[i, j] /= whole[rows[i]]


@compiled()
def _add(part, rows, share, total):  # type: ignore[no-untyped-def]
    """Add some rows of ``part``, each times its ``share``, to the rows of ``total``."""
    for i in range(len(rows)):
        row = rows[i]
        times = share[row]
        for j in range(part.shape[1]):
            total[i, j] += times * part[row, j]


def _polled(ensemble: Ensemble, choices: Integers, counts: Floats, decisive: Integers | None) -> _Decided:
    """The class with the most votes, where member i has ``counts[i]`` votes for ``choices[i]``, both (n,).

    Of several such classes, that of ``decisive``, or else the one with the largest averaged softmax.
    """
    n, c = ensemble.probabilities[0].shape
    support, columns, tied = np.zeros((n, c)), np.empty(n, np.int64), np.empty(n, bool)
    alike = np.ones(n)  # a member that lacks a row is zero there, and a sum orders as a mean does
    for start in range(0, n, _BLOCK):
        block = slice(start, start + _BLOCK)
        votes = support[block]
        _poll(choices[:, block], counts[:, block], votes)
        columns[block] = votes.argmax(axis=1)
        leading = votes == votes[np.arange(len(votes)), columns[block]][:, None]
        tied[block] = np.count_nonzero(leading, axis=1) > 1
        places = np.flatnonzero(tied[block])
        total = np.zeros((len(places), c))
        for part in ensemble.probabilities:
            _add(part, start + places, alike, total)
        columns[start + places] = np.where(leading[places], total, -1.0).argmax(axis=1)
        if decisive is not None:
            chosen = decisive[start + places]
            columns[start + places] = np.where(leading[places, chosen], chosen, columns[start + places])
        votes /= votes.sum(axis=1, keepdims=True)
    return support, columns, tied


@compiled()
def _poll(choices, counts, votes):  # type: ignore[no-untyped-def]
    """Add each member's votes to the class it chooses; -1 is no choice."""
    for member in range(len(choices)):
        for i in range(len(votes)):
            if choices[member, i] >= 0:
                votes[i, choices[member, i]] += counts[member, i]


def _surest(ensemble: Ensemble, by: str) -> Integers:
    """(n,), the member with the largest log-odds; the first of several such."""
    sure = [ensemble.spread(index, member.trust(by).log_odds, -np.inf) for index, member in enumerate(ensemble.members)]
    found: Integers = np.stack(sure).argmax(axis=0)
    return found


def _weights(member: Member, by: str) -> Floats:
    trust = member.trust(by)
    found = trust.confidence
    if trust.name == "entropy":
        left: Floats = 1 + found / np.log(member.probabilities.shape[1])
        return np.maximum(left, 0.0)
    _refuse_outside(member, by, trust)
    return found


def _refuse_outside(member: Member, by: str, trust: Trust) -> None:
    low, high = float(trust.confidence.min()), float(trust.confidence.max())
    if low < 0 or high > 1:
        raise InputError(
            f"{member.name}: expected confidences in [0, 1] as weights, got {low:g} to {high:g} for {by!r}; "
            "calibrate the score first, or use the rule 'confidence_vote' or 'dictator', which only compare"
        )
