"""Accuracy against the number of members: the paper's Figure 1 as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from vicinal import checks
from vicinal.checks import Floats, Integers
from vicinal.ensemble.members import Ensemble, Member
from vicinal.ensemble.rules import Rule, combine
from vicinal.errors import InputError
from vicinal.progress import track

__all__ = ["Growth", "Line", "accuracy_by_size"]


@dataclass(frozen=True, eq=False)
class Line:
    """The accuracy of one composition under one rule, for each number of members.

    Attributes:
        composition: a kind, as in ``"Dist"``, or two, half of each, as in ``"AT+Dist"``.
        rule: by which the members decide, with its score if it has one, as in ``"weighted:distance"``.
        sizes: (s,), numbers of members.
        accuracies: (s, repeats), the accuracy of each group.
        disjoint: (s,), whether no network is in two groups of this size. Where the networks do not suffice, groups are
            drawn at random from all of them, overlap, and spread less than disjoint ones would.
        hits: (s, n), the share of groups that decide each input right: what a test over inputs needs.
    """

    composition: str
    rule: str
    sizes: Integers
    accuracies: Floats
    disjoint: npt.NDArray[np.bool_]
    hits: npt.NDArray[np.float32]

    @property
    def mean(self) -> Floats:
        """(s,), over groups."""
        found: Floats = self.accuracies.mean(axis=1)
        return found

    @property
    def spread(self) -> Floats:
        """(s,), the standard deviation over groups; 0 of a single one."""
        if self.accuracies.shape[1] == 1:
            return np.zeros(len(self.sizes))
        found: Floats = self.accuracies.std(axis=1, ddof=1)
        return found


@dataclass(frozen=True, eq=False)
class Growth:
    """Lines over equally many repeats: repeat r of two lines of one composition is the same group of networks."""

    lines: tuple[Line, ...]

    def line(self, composition: str, rule: str) -> Line:
        """The line of one composition and rule."""
        for line in self.lines:
            if (line.composition, line.rule) == (composition, rule):
                return line
        has = ", ".join(f"{line.composition} {line.rule}" for line in self.lines)
        raise InputError(f"line: expected one of {has}, got {composition} {rule}")

    def difference(self, first: Line, second: Line) -> tuple[Integers, Floats, Floats]:
        """Sizes that both lines have, and the mean and spread of the first's accuracy less the second's, by repeat."""
        sizes, one, two = np.intersect1d(first.sizes, second.sizes, return_indices=True)
        gaps = first.accuracies[one] - second.accuracies[two]
        spread = gaps.std(axis=1, ddof=1) if gaps.shape[1] > 1 else np.zeros(len(sizes))
        return sizes, gaps.mean(axis=1), spread

    def records(self) -> list[dict[str, Any]]:
        """One record for each line and size: what a table or a file holds."""
        return [
            {
                "composition": line.composition,
                "rule": line.rule,
                "size": int(size),
                "mean": float(mean),
                "spread": float(spread),
                "repeats": line.accuracies.shape[1],
                "disjoint": bool(disjoint),
            }
            for line in self.lines
            for size, mean, spread, disjoint in zip(line.sizes, line.mean, line.spread, line.disjoint, strict=True)
        ]


def accuracy_by_size(
    members: Ensemble | Sequence[Member],
    labels: Any,
    rules: Sequence[str] = ("average", "majority"),
    *,
    sizes: Sequence[int] = tuple(range(2, 11)),
    compositions: Sequence[str] | None = None,
    repeats: int = 5,
    seed: int = 0,
) -> Growth:
    """Combine groups of 2, 3, ... members by each rule and measure their accuracy, several times.

    As in the paper, the groups of one size have no network in common where there are enough networks, which takes
    ``repeats`` times ``size`` of a kind. A mix of two kinds takes its members in pairs, the i-th of one kind with the
    i-th of the other, so that the hybrid (``pair`` made each of them) stays whole; it has no odd sizes.

    Args:
        members: with ``kind`` where there are several; each with the scores that the rules name.
        labels: (n,), the true classes, one for each row of the ensemble of all members.
        rules: such as ``"average"`` or ``"weighted:distance"``: a rule and, after a colon, the score that it goes by.
        sizes: numbers of members; those that a composition cannot have are left out of its lines.
        compositions: such as ``"Dist"`` or ``"AT+Dist"``. By default all kinds and all pairs of kinds.
        repeats: how many groups of each size.
        seed: of the draw.

    Example:
        >>> members = [Member(name, [[0.6, 0.4], [p, 1 - p]]) for name, p in (("a", 0.1), ("b", 0.7), ("c", 0.2))]
        >>> accuracy_by_size(members, [0, 1], ["average"], sizes=[3], repeats=1).lines[0].mean
        array([1.])
    """
    everyone = Ensemble.of(members)
    truth = checks.labels(labels, "labels", rows=len(everyone.rows), of="row of the ensemble")
    repeats = checks.whole(repeats, "repeats", low=1)
    wanted = [checks.whole(size, "sizes", low=1) for size in sizes]
    kinds = _by_kind(everyone.members)
    names = _compositions(kinds) if compositions is None else list(compositions)
    plan = [(name, _units(name, kinds)) for name in names]
    _refuse_impossible(plan, wanted)
    work = [(name, units, size) for name, units in plan for size in wanted if _fits(units, size)]
    found: dict[tuple[str, str], list[_Size]] = {}
    for position, (name, units, size) in enumerate(track(work, "combining")):
        each = len(units[0])
        groups, disjoint = _draw(len(units), size // each, repeats, np.random.default_rng([seed, position]))
        ensembles = [Ensemble(tuple(member for unit in group for member in units[unit])) for group in groups]
        for rule in rules:
            accuracies, hits = _measured(ensembles, rule, everyone.rows, truth)
            found.setdefault((name, rule), []).append((size, accuracies, disjoint, hits))
    return Growth(tuple(_line(name, rule, entries) for (name, rule), entries in found.items()))


_Unit = tuple[Member, ...]
_Size = tuple[int, list[float], bool, npt.NDArray[np.float32]]


def _by_kind(members: Sequence[Member]) -> dict[str, list[Member]]:
    kinds: dict[str, list[Member]] = {}
    for member in members:
        kinds.setdefault(member.kind, []).append(member)
    return kinds


def _compositions(kinds: dict[str, list[Member]]) -> list[str]:
    return [*sorted(kinds), *("+".join(both) for both in combinations(sorted(kinds), 2))]


def _units(composition: str, kinds: dict[str, list[Member]]) -> list[_Unit]:
    """What groups are drawn from: single members, or pairs of two kinds."""
    parts = composition.split("+")
    known = sorted(kinds)
    chosen = [kinds[checks.one_of(part, "compositions", known)] for part in parts]
    return list(zip(*chosen, strict=False))


def _fits(units: list[_Unit], size: int) -> bool:
    each = len(units[0])
    return size % each == 0 and size // each <= len(units)


def _refuse_impossible(plan: list[tuple[str, list[_Unit]]], sizes: list[int]) -> None:
    for name, units in plan:
        if not any(_fits(units, size) for size in sizes):
            raise InputError(
                f"sizes: expected some that {name or 'the ensemble'!r} can have, with "
                f"{len(units) * len(units[0])} members, got {sizes}"
            )


def _draw(count: int, size: int, repeats: int, generator: np.random.Generator) -> tuple[Iterator[Integers], bool]:
    """Groups of ``size`` of ``count`` things: disjoint if there are enough, otherwise each drawn from all."""
    if repeats * size <= count:
        return iter(generator.permutation(count)[: repeats * size].reshape(repeats, size)), True
    return (generator.choice(count, size, replace=False) for _ in range(repeats)), False


def _measured(
    ensembles: Sequence[Ensemble], rule: str, rows: Integers, truth: Integers
) -> tuple[list[float], npt.NDArray[np.float32]]:
    """The accuracy of each group, and the share of groups that decide each of all inputs right."""
    name, _, by = rule.partition(":")
    accuracies, hits, asked = [], np.zeros(len(rows), np.float32), np.zeros(len(rows), np.float32)
    for ensemble in ensembles:
        combined = combine(ensemble, cast(Rule, name), by=by or None)
        same = combined.rows is rows or np.array_equal(combined.rows, rows)
        places = np.arange(len(rows)) if same else np.searchsorted(rows, combined.rows)
        right = combined.predicted == truth[places]
        accuracies.append(float(right.mean()))
        hits[places] += right
        asked[places] += 1
    hits /= np.maximum(asked, 1)
    return accuracies, hits


def _line(name: str, rule: str, entries: list[_Size]) -> Line:
    sizes, accuracies, disjoint, hits = zip(*sorted(entries, key=lambda entry: entry[0]), strict=True)
    return Line(name, rule, np.array(sizes), np.array(accuracies), np.array(disjoint), np.stack(hits))
