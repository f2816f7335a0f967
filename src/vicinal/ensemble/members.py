"""The members of an ensemble: what each network says of its inputs, brought in line with what the others say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from vicinal import checks, score
from vicinal.bank import Bank
from vicinal.checks import Flags, Floats, Integers, Vectors
from vicinal.errors import InputError, ShapeError
from vicinal.values import Embeddings, Trust

__all__ = ["Ensemble", "Member", "pair"]


@dataclass(frozen=True, eq=False)
class Member:
    """One network of an ensemble: what it says of n inputs, and how sure it is.

    Args:
        name: of the network; each member of an ensemble has its own.
        probabilities: (n, c), softmax outputs, rows that sum to 1.
        classes: (c,), the label that each column stands for. Left out, column j stands for label j.
        rows: (n,), numbers of the inputs, each once, where members did not see the same inputs in the same order.
        kind: how it was trained, such as ``"Reg"``, ``"Dist"`` or ``"AT"``: what compositions are made of.
        scores: how far to trust each of its predictions, by the names that ``combine`` asks for.
        vectors: (n, d), where it embeds the inputs; with ``bank``, what ``judge`` needs.
        bank: its training points in the same embedding.

    Example:
        >>> member = Member("first", [[0.9, 0.1], [0.4, 0.6]], classes=[3, 7])
        >>> member.predicted
        array([3, 7])
    """

    name: str
    probabilities: Floats
    classes: Integers | None = None
    rows: Integers | None = None
    kind: str = ""
    scores: Mapping[str, Trust] = field(default_factory=dict)
    vectors: Vectors | None = None
    bank: Bank | None = None
    choice: Integers = field(init=False, repr=False)

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "probabilities", checks.probabilities(self.probabilities, f"{self.name}: probabilities"))
        n, columns = self.probabilities.shape
        given = np.arange(columns) if self.classes is None else self.classes
        set_(self, "classes", checks.labels(given, f"{self.name}: classes", rows=columns, of="column"))
        _refuse_repeats(self.classes, f"{self.name}: classes")
        if self.rows is not None:
            set_(self, "rows", checks.labels(self.rows, f"{self.name}: rows", rows=n, of="input"))
            _refuse_repeats(self.rows, f"{self.name}: rows")
        if self.vectors is not None:
            columns_of = None if self.bank is None else self.bank.dimension
            set_(self, "vectors", checks.vectors(self.vectors, f"{self.name}: vectors", columns=columns_of))
            checks.same_length(self.vectors, self.probabilities, f"{self.name}: vectors and probabilities")
        order = np.argsort(self._labels())
        set_(self, "choice", order[_columns(self.probabilities, order).argmax(axis=1)])
        set_(self, "scores", {name: self._checked(name, trust) for name, trust in self.scores.items()})

    @classmethod
    def of(
        cls,
        name: str,
        outputs: Embeddings | Any,
        bank: Bank | None = None,
        *,
        classes: Any = None,
        kind: str = "",
        rows: Any = None,
        k: int = 50,
    ) -> Member:
        """A member from what its network says, with its margin, entropy and, given a bank, distance scores.

        Args:
            name: of the network.
            outputs: embeddings with logits; or logits (n, c) alone.
            bank: its training points in the same embedding.
            classes: (c,), the label of each column of logits alone; embeddings have their own.
            kind: how it was trained.
            rows: (n,), numbers of the inputs, as above.
            k: how many neighbours the distance score looks at.
        """
        logits, vectors = outputs, None
        if isinstance(outputs, Embeddings):
            if classes is not None:
                raise InputError(f"{name}: expected no classes beside embeddings, which have their own, got some")
            if outputs.logits is None:
                raise InputError(f"{name}: expected embeddings with logits, got none; pass them in")
            logits, vectors, classes = outputs.logits, outputs.vectors, outputs.classes
        elif bank is not None:
            raise InputError(f"{name}: expected embeddings beside a bank, got logits alone; pass vectors too")
        logits = checks.logits(logits, f"{name}: logits")
        scores = {"margin": score.margin(logits), "entropy": score.entropy(logits)}
        member = cls(name, _softmax(logits), classes, rows, kind, scores, vectors, bank)
        if bank is None:
            return member
        return member.scored("distance", score.distance(bank, vectors, member.predicted, k=k))

    def __len__(self) -> int:
        return len(self.probabilities)

    def __repr__(self) -> str:
        kind = f" ({self.kind})" if self.kind else ""
        return f"Member({self.name}{kind}, {len(self)} x {self.probabilities.shape[1]}; {', '.join(self.scores)})"

    @property
    def predicted(self) -> Integers:
        """(n,), the label of the largest softmax output; the lowest of several such."""
        found: Integers = self._labels()[self.choice]
        return found

    def scored(self, name: str, trust: Trust) -> Member:
        """The same member with one more score of its predictions."""
        return replace(self, scores={**self.scores, name: trust})

    def trust(self, name: str) -> Trust:
        """The score of this name, or an error that names those there are."""
        if name not in self.scores:
            has = ", ".join(map(repr, self.scores)) or "none"
            raise InputError(f"{self.name}: expected a score {name!r}, got {has}; add it with scored()")
        return self.scores[name]

    def judge(self, predicted: Integers, places: Integers, *, k: int) -> Trust:
        """The distance score, in this member's embedding, of predictions for the inputs at some places of its own."""
        if self.bank is None or self.vectors is None:
            missing = "a bank" if self.bank is None else "vectors"
            raise InputError(f"{self.name}: expected {missing}, to judge predictions in its embedding; pass it in")
        return score.distance(self.bank, self.vectors[places], predicted, k=k)

    def _labels(self) -> Integers:
        assert self.classes is not None
        return self.classes

    def _checked(self, name: str, trust: Trust) -> Trust:
        checks.same_length(trust.log_odds, self.probabilities, f"{self.name}: score {name!r} and probabilities")
        if trust.predicted is not None and not np.array_equal(trust.predicted, self.predicted):
            row = int(np.flatnonzero(trust.predicted != self.predicted)[0])
            raise InputError(
                f"{self.name}: expected a score {name!r} of this member's own predictions, got one that judges "
                f"{trust.predicted[row]} in row {row}, where it predicts {self.predicted[row]}"
            )
        return trust


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Members over the same classes, brought in line: one row for each input that any of them saw.

    Where members do not say which rows they have, all must have equally many: the same inputs in the same order. A
    member that lacks some rows has no say there; the others decide.

    Args:
        members: at least one.

    Attributes:
        rows: (n,), numbers of the inputs; ascending, unless all members have them in the same other order.
        classes: (c,), ascending: ties between classes go to the lowest label.
        probabilities: one (n, c) for each member, zero where it lacks the row.
        present: (m, n), whether each member has each row.

    Example:
        >>> one = Member("one", [[0.9, 0.1], [0.2, 0.8]], rows=[0, 1])
        >>> two = Member("two", [[0.3, 0.7], [0.5, 0.5]], rows=[1, 2])
        >>> Ensemble((one,)).add(two).present
        array([[ True,  True, False],
               [False,  True,  True]])
    """

    members: tuple[Member, ...]
    rows: Integers = field(init=False)
    classes: Integers = field(init=False)
    probabilities: tuple[Floats, ...] = field(init=False, repr=False)
    present: Flags = field(init=False, repr=False)
    _places: tuple[Integers | None, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "members", tuple(self.members))
        _refuse_mismatch(self.members)
        set_(self, "classes", np.sort(self.members[0]._labels()))
        rows = _all_rows(self.members)
        set_(self, "rows", rows)
        places = tuple(
            None if member.rows is None or np.array_equal(member.rows, rows) else _find(member.rows, rows)
            for member in self.members
        )
        set_(self, "_places", places)
        set_(self, "present", np.stack([np.ones(len(rows), bool) if at is None else at >= 0 for at in places]))
        set_(self, "probabilities", tuple(map(self._aligned, self.members, places)))

    @classmethod
    def of(cls, members: Ensemble | Sequence[Member]) -> Ensemble:
        """An ensemble as it is, or made of members."""
        return members if isinstance(members, Ensemble) else cls(tuple(members))

    def add(self, member: Member) -> Ensemble:
        """An ensemble with one more member."""
        return Ensemble((*self.members, member))

    def __len__(self) -> int:
        return len(self.members)

    def places(self, index: int) -> Integers:
        """(n,), where a member has each row of the ensemble; -1 where it lacks it."""
        found = self._places[index]
        return np.arange(len(self.rows)) if found is None else found

    def spread(self, index: int, values: Floats, missing: float) -> Floats:
        """(n,), a member's values for its own rows as values for the ensemble's, ``missing`` where it lacks them."""
        places = self._places[index]
        return values if places is None else np.where(places >= 0, values[places], missing)

    def choices(self) -> Integers:
        """(m, n), the column that each member chooses; -1 where it lacks the row."""
        found = np.full(self.present.shape, -1)
        for index, member in enumerate(self.members):
            columns = np.searchsorted(self.classes, member._labels())[member.choice]
            places = self.places(index)
            found[index] = np.where(places >= 0, columns[places], -1)
        return found

    def _aligned(self, member: Member, places: Integers | None) -> Floats:
        found = _columns(member.probabilities, np.argsort(member._labels()))
        if places is not None:
            found = np.where((places >= 0)[:, None], found[places], 0.0)
        return found


def pair(first: Member, second: Member, *, k: int = 50) -> tuple[Member, Member]:
    """The paper's hybrid: both members with a score ``"hybrid"``, their distance scores in the embedding of the second.

    Args:
        first: gains the distance score of its predictions among the second's training points.
        second: with vectors and a bank; gains its own distance score under this name.
        k: how many neighbours.
    """
    Ensemble((first, second))  # refuses two that disagree
    places = np.arange(len(first))
    if first.rows is not None and second.rows is not None:
        places = _find(second.rows, first.rows)
    if (places < 0).any():
        raise InputError(
            f"{second.name}: expected all rows of {first.name!r}, to judge its predictions, "
            f"got {int((places >= 0).sum())} of {len(places)}"
        )
    return (
        first.scored("hybrid", second.judge(first.predicted, places, k=k)),
        second.scored("hybrid", second.judge(second.predicted, np.arange(len(second)), k=k)),
    )


def _all_rows(members: Sequence[Member]) -> Integers:
    """The rows that any member has: as the first has them where all agree, otherwise ascending."""
    first = members[0].rows
    if first is None:
        return np.arange(len(members[0]))
    given = [(member.name, member.rows) for member in members if member.rows is not None]
    if all(np.array_equal(rows, first) for _, rows in given):
        return first
    found, counts = np.unique(np.concatenate([rows for _, rows in given]), return_counts=True)
    shared = found[counts > 1]
    for name, rows in given:
        if not np.isin(rows, shared).any():
            raise InputError(
                f"members: expected rows that number the same inputs, but {name!r} shares none with any other member"
            )
    return found


def _find(rows: Integers, wanted: Integers) -> Integers:
    """Where each wanted row stands in ``rows``; -1 where it does not."""
    order = np.argsort(rows)
    spots = np.minimum(np.searchsorted(rows, wanted, sorter=order), len(rows) - 1)
    places = order[spots]
    found: Integers = np.where(rows[places] == wanted, places, -1)
    return found


def _columns(values: Floats, order: Integers) -> Floats:
    """The columns in another order; the same array where it is the same order."""
    return values if np.array_equal(order, np.arange(len(order))) else np.ascontiguousarray(values[:, order])


def _refuse_mismatch(members: Sequence[Member]) -> None:
    if not members:
        raise InputError("members: expected at least one, got an empty ensemble")
    names = [member.name for member in members]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(f"members: expected a different name for each, got {repeated[0]!r} more than once")
    first = members[0]
    for member in members[1:]:
        if set(member._labels()) != set(first._labels()):
            odd = sorted(set(member._labels().tolist()) ^ set(first._labels().tolist()))
            raise InputError(
                f"members: expected the same classes, but only one of {first.name!r} and {member.name!r} has {odd[0]} "
                f"({len(odd)} such classes)"
            )
        if (member.rows is None) != (first.rows is None):
            which = member.name if member.rows is None else first.name
            raise InputError(f"members: expected rows of all members or of none, but {which!r} has none; pass rows=")
        if member.rows is None and len(member) != len(first):
            raise ShapeError(
                f"members: expected equally many rows, got {len(first)} of {first.name!r} and {len(member)} of "
                f"{member.name!r}; say which inputs they are with rows="
            )


def _refuse_repeats(values: Integers | None, name: str) -> None:
    if values is None:
        return
    found, counts = np.unique(values, return_counts=True)
    if (counts > 1).any():
        raise InputError(f"{name}: expected each once, got {found[counts > 1][0]} more than once")


def _softmax(logits: Floats) -> Floats:
    found: Floats = np.exp(logits - logits.max(axis=1, keepdims=True))
    found /= found.sum(axis=1, keepdims=True)
    return found
