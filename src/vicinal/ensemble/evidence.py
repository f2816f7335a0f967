"""How far to trust what an ensemble says: the paper's two ways (its Table 2), the fair rival, and evidence summed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np

from vicinal import checks
from vicinal.checks import Floats, Integers
from vicinal.ensemble.members import Ensemble, Member
from vicinal.errors import InputError
from vicinal.progress import track
from vicinal.values import Trust

__all__ = ["WAYS", "judge"]

Way: TypeAlias = Literal["softmax", "own", "hybrid", "summed"]
WAYS: tuple[Way, ...] = ("softmax", "own", "hybrid", "summed")
_LEAST = 1e-300  # stands for 0 where a logarithm would be infinite


def judge(
    members: Ensemble | Sequence[Member],
    predicted: Any,
    how: Way = "summed",
    *,
    embedding: str | None = None,
    k: int = 50,
) -> Trust:
    """Score predictions by all members together: the ensemble's own, or any others of the same inputs.

    With p_m the softmax output of member m for the predicted class, and D_m, L_m the distance score (Eq. 1) and its
    log-odds for that class in the embedding of member m:

    - ``summed``, ours: Σ_m L_m. Evidence from different embeddings adds. The confidence is its sigmoid.
    - ``own``, the paper's *Distance (1)*: the mean of D_m, each in its own embedding.
    - ``hybrid``, the paper's *Distance (2)*: D in the ``embedding`` of one member.
    - ``softmax``, the fair rival: the mean of p_m, which has seen as many networks as the others.

    Members that lack an input have no say there. The log-odds of a mean are those of the mean; none saturates.

    Args:
        members: with vectors and a bank, except for ``softmax``.
        predicted: (n,), labels, one for each row of the ensemble.
        how: one of the four.
        embedding: the name of the member whose embedding ``hybrid`` looks at.
        k: how many neighbours.

    Example:
        >>> one, two = Member("one", [[0.6, 0.4]]), Member("two", [[0.8, 0.2]])
        >>> judge([one, two], [0], "softmax").confidence
        array([0.7])
    """
    ensemble = Ensemble.of(members)
    labels = checks.labels(predicted, "predicted", rows=len(ensemble.rows), of="row of the ensemble")
    how = checks.one_of(how, "how", WAYS)
    if (embedding is None) != (how != "hybrid"):
        wanted = "the name of a member" if how == "hybrid" else "nothing"
        raise InputError(f"embedding: expected {wanted} with {how!r}, got {embedding!r}")
    if how == "hybrid":
        return _hybrid(ensemble, labels, str(embedding), k)
    return _JUDGE[how](ensemble, labels, k)


def _softmax(ensemble: Ensemble, labels: Integers, k: int) -> Trust:
    columns = np.searchsorted(ensemble.classes, labels)
    wrong = np.flatnonzero(ensemble.classes[np.minimum(columns, len(ensemble.classes) - 1)] != labels)
    if wrong.size:
        raise InputError(
            f"predicted: expected labels among the {len(ensemble.classes)} classes, got {labels[wrong[0]]} "
            f"in row {wrong[0]} ({wrong.size} such rows)"
        )
    everyone, mean = np.arange(len(labels)), np.zeros_like(ensemble.probabilities[0])
    for part in ensemble.probabilities:
        mean += part
    mean /= ensemble.present.sum(axis=0)[:, None]
    share = mean[everyone, columns]
    mean[everyone, columns] = 0.0
    return Trust("softmax", np.minimum(share, 1.0), _odds(share, mean.sum(axis=1)), labels, probability=True)


def _own(ensemble: Ensemble, labels: Integers, k: int) -> Trust:
    confidence, log_odds, notes = _each(ensemble, labels, k)
    mean = confidence.sum(axis=0) / ensemble.present.sum(axis=0)
    sides = [
        np.logaddexp.reduce(np.where(ensemble.present, -np.logaddexp(0.0, sign * log_odds), -np.inf), axis=0)
        for sign in (-1.0, 1.0)
    ]
    return Trust("own", mean, sides[0] - sides[1], labels, notes=notes, probability=True)


def _summed(ensemble: Ensemble, labels: Integers, k: int) -> Trust:
    from scipy.special import expit

    _, log_odds, notes = _each(ensemble, labels, k)
    total = log_odds.sum(axis=0)
    return Trust("summed", expit(total), total, labels, notes=notes, probability=True)


_JUDGE: dict[str, Callable[[Ensemble, Integers, int], Trust]] = {"softmax": _softmax, "own": _own, "summed": _summed}


def _hybrid(ensemble: Ensemble, labels: Integers, embedding: str, k: int) -> Trust:
    name = checks.one_of(embedding, "embedding", [member.name for member in ensemble.members])
    index = next(i for i, member in enumerate(ensemble.members) if member.name == name)
    places = ensemble.places(index)
    if (places < 0).any():
        raise InputError(
            f"embedding: expected a member that has every row, but {name!r} lacks {int((places < 0).sum())}"
        )
    return replace(ensemble.members[index].judge(labels, places, k=k), name="hybrid")


def _each(ensemble: Ensemble, labels: Integers, k: int) -> tuple[Floats, Floats, tuple[str, ...]]:
    """Each member's distance score of the same labels: confidence and log-odds (m, n), 0 where it lacks the row."""
    confidence, log_odds = np.zeros(ensemble.present.shape), np.zeros(ensemble.present.shape)
    notes: list[str] = []
    for index, member in enumerate(track(ensemble.members, "judging")):
        has = ensemble.present[index]
        trust = member.judge(labels[has], ensemble.places(index)[has], k=k)
        confidence[index, has], log_odds[index, has] = trust.confidence, trust.log_odds
        notes += [f"{member.name}: {note}" for note in trust.notes]
    return confidence, log_odds, tuple(notes)


def _odds(share: Floats, rest: Floats) -> Floats:
    """Log-odds from a probability and its complement, which is summed by itself so that nothing saturates."""
    logs = np.log(np.maximum([share, rest], _LEAST))
    found: Floats = logs[0] - logs[1]
    return found
