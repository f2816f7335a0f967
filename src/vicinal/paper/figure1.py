"""Figure 1: accuracy against the number of networks that decide together.

Which lines are shown is decided on the validation points: the best composition and rule with the distance score, the
best such without adversarial training, the best without the distance score, and AT networks averaged, as in the paper.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from vicinal.ensemble import Growth, Line, Member, accuracy_by_size
from vicinal.paper.cells import goal
from vicinal.paper.editions import METHODS, Source
from vicinal.paper.inference import Sample, difference, estimate
from vicinal.paper.networks import Entry
from vicinal.paper.pairs import member, scores_of_one
from vicinal.paper.published import METHODS as TITLES
from vicinal.paper.results import Cell, Column, Finding, Result, Table
from vicinal.paper.views import Views
from vicinal.values import Trust

__all__ = ["GAINS", "LINES", "figure1"]

LINES = ("best with distance", "best with distance, without AT", "best without distance", "AT, average")
GAINS = "Accuracy less that of the best without distance"
_SIZES = range(2, 11)
_REPEATS = 5
_WEIGHTED = ("weighted", "confidence_vote", "dictator")
_PLAIN = ("average", "majority", *(f"{rule}:{by}" for rule in _WEIGHTED for by in ("margin", "entropy")))
_ON_GROUPS = (
    f"each accuracy is the mean over {_REPEATS} groups; where the networks do not suffice for groups without one in "
    "common, groups are drawn at random from all of them, and spread less than others would"
)
_BY_DISTANCE = tuple(f"{rule}:distance" for rule in _WEIGHTED)


@dataclass(frozen=True, eq=False)
class _Lines:
    """Every line of a data set, and those that are shown, by what they are."""

    source: Source
    every: tuple[Line, ...]
    shown: dict[str, Line]


def figure1(views: Views) -> Result:
    """Accuracy of ensembles by composition, rule and number of networks."""
    found = [lines for source in views.edition.sources if (lines := _lines(views, source)) is not None]
    findings = [finding for lines in found for finding in _findings(views, lines)]
    tables = [table for lines in found for table in (_shown(lines), _gains(lines), _every(lines))]
    notes = [f"{lines.source.title}: {_told(name, line)}" for lines in found for name, line in lines.shown.items()]
    return Result("figure1", views.edition.name, tuple(tables), tuple(findings), notes=(*notes, _ON_GROUPS))


def _lines(views: Views, source: Source) -> _Lines | None:
    kinds = {method: views.networks.ready(source, method, source.figure) for method in METHODS}
    if min(map(len, kinds.values())) < 2:
        return None
    tried = _grown(views, kinds, "validation")
    every = _grown(views, kinds, "test")
    chosen = {name: _key(line) for name, line in _choose(tried).items()}
    by_key = {_key(line): line for line in every}
    return _Lines(source, tuple(every), {name: by_key[key] for name, key in chosen.items()})


def _grown(views: Views, kinds: dict[str, list[Entry]], view: str) -> list[Line]:
    """Every composition by every rule, on the points of a view."""
    labels = views.seen(kinds["reg"][0], view).labels
    singles = [member(views, entry, view, TITLES[method]) for method, entries in kinds.items() for entry in entries]
    found: list[Growth] = [_by_size(singles, labels, (*_PLAIN, *_BY_DISTANCE), list(map(TITLES.get, kinds)))]
    for first, second in combinations(METHODS, 2):
        n = min(len(kinds[first]), len(kinds[second]))
        pairs = [(kinds[first][i], kinds[second][(i + 1) % n]) for i in range(n)]  # none began with the same weights
        members = _mixed(views, pairs, view, (first, second))
        hybrids = [f"{rule}:in {TITLES[embeds]}" for embeds in (first, second) for rule in _WEIGHTED]
        mix = f"{TITLES[first]}+{TITLES[second]}"
        found.append(_by_size(members, labels, (*_PLAIN, *_BY_DISTANCE, *hybrids), [mix]))
    return [line for growth in found for line in growth.lines]


def _by_size(members: Sequence[Member], labels: object, rules: Sequence[str], compositions: Sequence[object]) -> Growth:
    most = len(members)
    sizes = [size for size in _SIZES if size <= most]
    return accuracy_by_size(
        members, labels, rules, sizes=sizes, compositions=list(map(str, compositions)), repeats=_REPEATS
    )


def _mixed(views: Views, pairs: list[tuple[Entry, Entry]], view: str, methods: tuple[str, str]) -> list[Member]:
    """Pairs of networks of two kinds, both judged in the embedding of the one and of the other as well."""
    found = []
    for pair in pairs:
        for entry, method in zip(pair, methods, strict=True):
            own = member(views, entry, view, TITLES[method])
            for embeds, other in zip(pair, methods, strict=True):
                own = own.scored(f"in {TITLES[other]}", _judged(views, own, entry, embeds, view))
            found.append(own)
    return found


def _judged(views: Views, own: Member, predicts: Entry, embeds: Entry, view: str) -> Trust:
    """The distance score of a network's predictions in the embedding of another, or its own."""
    if predicts == embeds:
        return own.trust("distance")
    scores = scores_of_one(views, predicts, embeds, view)
    return Trust("hybrid", scores["hybrid_share"], scores["hybrid"], own.predicted, probability=True)


def _choose(lines: list[Line]) -> dict[str, Line]:
    """The lines to show: the best of their kind on average over the sizes that all compositions have."""
    common = sorted(set.intersection(*({int(size) for size in line.sizes} for line in lines)))

    def height(line: Line) -> float:
        return float(line.mean[np.isin(line.sizes, common)].mean())

    def best(lines_: Iterator[Line]) -> Line:
        return max(lines_, key=height)

    return {
        LINES[0]: best(line for line in lines if _by_distance(line)),
        LINES[1]: best(line for line in lines if _by_distance(line) and "AT" not in line.composition),
        LINES[2]: best(line for line in lines if not _by_distance(line)),
        LINES[3]: next(line for line in lines if _key(line) == ("AT", "average")),
    }


def _by_distance(line: Line) -> bool:
    return ":distance" in line.rule or ":in " in line.rule


def _key(line: Line) -> tuple[str, str]:
    return line.composition, line.rule


def _samples(line: Line, size: int) -> list[Sample]:
    """The accuracy of each group of a size; the influence of a point is that on all groups together."""
    place = int(np.flatnonzero(line.sizes == size)[0])
    hits, accuracies = line.hits[place].astype(np.float64), line.accuracies[place]
    influence = hits - hits.mean()
    return [Sample(float(accuracy), influence) for accuracy in accuracies]


def _shown(lines: _Lines) -> Table:
    return _table(lines, lines.shown, "Figure 1: accuracy by number of networks")


def _every(lines: _Lines) -> Table:
    return _table(lines, {_title(line): line for line in lines.every}, "Every composition and rule")


def _table(lines: _Lines, rows: dict[str, Line], title: str) -> Table:
    columns = {size: _column(lines, size) for size in _sizes(rows)}
    cells = [
        Cell(row, columns[size].key, estimate(_samples(line, size)))
        for row, line in rows.items()
        for size in line.sizes
    ]
    heading = f"{title}, {lines.source.title}"
    return Table(heading, "accuracy", tuple(rows), tuple(columns.values()), tuple(cells), over="groups")


def _gains(lines: _Lines) -> Table:
    """The differences to the best without distance, at the sizes that both lines have."""
    baseline = lines.shown[LINES[2]]
    rows = {name: lines.shown[name] for name in LINES[:2]}
    columns = {size: _column(lines, size) for size in _sizes(rows)}
    cells = []
    for name, line in rows.items():
        for size in sorted(set(line.sizes) & set(baseline.sizes)):
            gaps = [one - other for one, other in zip(_samples(line, size), _samples(baseline, size), strict=True)]
            cells.append(Cell(name, columns[size].key, estimate(gaps)))
    heading = f"{GAINS}, {lines.source.title}"
    return Table(heading, "accuracy", tuple(rows), tuple(columns.values()), tuple(cells), over="groups")


def _sizes(rows: dict[str, Line]) -> list[int]:
    return sorted({int(size) for line in rows.values() for size in line.sizes})


def _column(lines: _Lines, size: int) -> Column:
    return Column(lines.source.title, str(size))


def _findings(views: Views, lines: _Lines) -> Iterator[Finding]:
    first, baseline = lines.shown[LINES[0]], lines.shown[LINES[2]]
    size = int(max(set(first.sizes) & set(baseline.sizes)))
    found = difference(_samples(first, size), _samples(baseline, size))
    what = f"{size} networks: {_title(first)} over {_title(baseline)}, the best without distance"
    yield from goal(what, lines.source.title, found)


def _title(line: Line) -> str:
    return f"{line.composition}, {line.rule.replace(':', ' by ').replace('_', ' ')}"


def _told(name: str, line: Line) -> str:
    apart = [str(size) for size, disjoint in zip(line.sizes, line.disjoint, strict=True) if disjoint]
    told = f"groups without a network in common at n = {', '.join(apart)}" if apart else "groups drawn at random"
    return f"{name} is {_title(line)}; {told}"
