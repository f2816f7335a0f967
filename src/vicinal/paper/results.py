"""What a reproduction found, as data: tables of cells, and findings that say whether something holds.

    Estimate     a figure over networks: mean, spread, interval
    Difference   a paired test
    Cell         an estimate, the paper's number, and better, equal or worse by test
    Table        rows and columns of cells
    Finding      a statement, what was measured, and the outcome
    Result       all of it under one name, with where it was made and from which networks; a JSON file

Everything that is shown or drawn is made from a ``Result``, and from nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

from vicinal import store
from vicinal.errors import FileError

__all__ = [
    "Cell",
    "Column",
    "Difference",
    "Estimate",
    "Finding",
    "Outcome",
    "Result",
    "Table",
    "Verdict",
    "outcome_above",
    "outcome_within",
]

FORMAT, VERSION = "vicinal.reproduction", 1
Verdict: TypeAlias = Literal["better", "equal", "worse"]
Outcome: TypeAlias = Literal["confirmed", "not confirmed", "not settled", "not measured"]


@dataclass(frozen=True)
class Estimate:
    """A figure over networks.

    Attributes:
        mean: over networks.
        spread: the standard deviation over networks; None for a single one.
        low: of the 95 % interval, over networks and test points (``vicinal.paper.inference``).
        high: likewise.
        values: the figure of each network.
        n: how many networks.
    """

    mean: float
    spread: float | None
    low: float
    high: float
    values: tuple[float, ...]
    n: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", len(self.values))

    def beside(self, number: float) -> Verdict:
        """How this compares with a number that has no interval, such as one that the paper printed."""
        return self.less(number).verdict

    def less(self, number: float) -> Difference:
        """The gap to such a number."""
        return Difference(self.mean - number, self.low - number, self.high - number, None, self.n)


@dataclass(frozen=True)
class Difference:
    """A paired test over networks and test points.

    Attributes:
        mean: the difference, over networks.
        low: of its 95 % interval.
        high: likewise.
        p: of the two-sided test that there is none; None of a gap to a number that has no interval.
        n: how many networks.
        verdict: ``better`` or ``worse`` where the interval leaves out 0, else ``equal``.
    """

    mean: float
    low: float
    high: float
    p: float | None
    n: int
    verdict: Verdict = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "verdict", _verdict(self.low, self.high))


@dataclass(frozen=True)
class Cell:
    """One figure of a table.

    Attributes:
        row: of the table.
        column: the key of the column.
        value: over networks.
        gain: over the rival that the table names, on the same networks and points; None for the rival itself.
        published: the paper's number, where it has one.
        beside: further figures of the same scores, such as AURC, by name; their means.
        beside_paper: the value against the paper's number, by the interval.
    """

    row: str
    column: str
    value: Estimate
    gain: Difference | None = None
    published: float | None = None
    beside: Mapping[str, float] = field(default_factory=dict)
    beside_paper: Verdict | None = field(init=False)

    def __post_init__(self) -> None:
        against = None if self.published is None else self.value.beside(self.published)
        object.__setattr__(self, "beside_paper", against)


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes:
        group: what stands above several columns, such as a data set's title.
        name: of this one, such as ``Dist``.
        accuracy: of its networks, where that means something.
        published: the accuracy that the paper printed.
        key: both names as one.
    """

    group: str
    name: str
    accuracy: Estimate | None = None
    published: float | None = None
    key: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", f"{self.group}, {self.name}")


@dataclass(frozen=True)
class Table:
    """Cells by row and column; not every place has one.

    Attributes:
        title: what it shows.
        figure: what each cell is, such as ``AUROC``.
        rows: names.
        columns: in groups.
        cells: in any order.
        rival: what gains are over; empty where there are none.
        over: what each cell is a figure over: ``networks``, ``groups`` of networks, or ``rounds`` of a timing.
    """

    title: str
    figure: str
    rows: tuple[str, ...]
    columns: tuple[Column, ...]
    cells: tuple[Cell, ...]
    rival: str = ""
    over: str = "networks"

    @cached_property
    def _places(self) -> dict[tuple[str, str], Cell]:
        return {(cell.row, cell.column): cell for cell in self.cells}

    def cell(self, row: str, column: Column | str) -> Cell | None:
        """The cell at a place; None where there is none."""
        return self._places.get((row, column if isinstance(column, str) else column.key))

    def groups(self) -> dict[str, list[Column]]:
        """The columns by what stands above them."""
        found: dict[str, list[Column]] = {}
        for column in self.columns:
            found.setdefault(column.group, []).append(column)
        return found


@dataclass(frozen=True)
class Finding:
    """A statement, and what came of it.

    Attributes:
        what: is said, in words.
        where: it was measured, such as a data set and a way of training.
        outcome: of the test.
        found: the figure that the outcome rests on; None where nothing was measured.
        wanted: what that figure is held against, in words.
        why: what the reader must know, such as why nothing was measured.
    """

    what: str
    where: str
    outcome: Outcome
    found: Difference | None = None
    wanted: str = ""
    why: str = ""


@dataclass(frozen=True)
class Result:
    """One table, figure or list of claims, with where it was made.

    Attributes:
        name: such as ``table1``.
        edition: such as ``compact``.
        tables: what was measured.
        findings: what came of it.
        networks: the fingerprint of each network, by its name, which ends in its seed.
        recipes: how they were trained, by the name without the seed.
        made: command, commit, code, machine, versions.
        notes: what the reader must know, such as what is missing.
    """

    name: str
    edition: str
    tables: tuple[Table, ...]
    findings: tuple[Finding, ...] = ()
    networks: Mapping[str, str] = field(default_factory=dict)
    recipes: Mapping[str, Any] = field(default_factory=dict)
    made: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain words and numbers, for a file; numbers to six digits."""
        return {"format": FORMAT, "version": VERSION, **_short(asdict(self))}

    def save(self, path: str | Path) -> None:
        """Write JSON, in place of what is there."""
        store.write_json(path, self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> Result:
        """Read what ``save`` wrote; anything else is refused."""
        said = store.read_json(path)
        if not isinstance(said, dict) or said.get("format") != FORMAT:
            raise FileError(f"{path}: expected a {FORMAT} file, got other JSON")
        if not isinstance(said.get("version"), int) or said["version"] > VERSION:
            raise FileError(f"{path}: expected version {VERSION} or older, got {said.get('version')!r}; update vicinal")
        try:
            found: Result = _read(cls, said)
        except (KeyError, TypeError, AttributeError) as error:
            raise FileError(f"{path}: expected a whole {FORMAT} file, but {error!r}") from error
        return found


def outcome_above(found: Difference, wanted: float) -> Outcome:
    """Whether a gain is as large as wanted, and surely above 0.

    Example:
        >>> outcome_above(Difference(0.02, 0.01, 0.03, 0.001, 5), 0.015)
        'confirmed'
    """
    if found.mean >= wanted and found.low > 0:
        return "confirmed"
    return "not settled" if found.mean >= wanted else "not confirmed"


def outcome_within(every: Sequence[Difference], margin: float) -> Outcome:
    """Whether differences are no larger than a margin: all surely so, one surely not, or neither."""
    if all(-margin <= one.low and one.high <= margin for one in every):
        return "confirmed"
    beyond = any(one.low > margin or one.high < -margin for one in every)
    return "not confirmed" if beyond else "not settled"


def _verdict(low: float, high: float) -> Verdict:
    if low > 0:
        return "better"
    return "worse" if high < 0 else "equal"


def _short(said: Any) -> Any:
    """The same with every number to six significant digits."""
    if isinstance(said, Mapping):
        return {name: _short(value) for name, value in said.items()}
    if isinstance(said, (list, tuple)):
        return [_short(value) for value in said]
    return float(f"{said:.6g}") if isinstance(said, float) else said


def _read(kind: Any, said: Mapping[str, Any]) -> Any:
    """A dataclass from its fields as JSON has them, those of its fields that are dataclasses likewise."""
    hints = get_type_hints(kind)
    return kind(**{one.name: _part(hints[one.name], said[one.name]) for one in fields(kind) if one.init})


def _part(hint: Any, said: Any) -> Any:
    if get_origin(hint) is tuple:
        if not isinstance(said, list):
            raise TypeError(f"expected a list, got {said!r:.50}")
        return tuple(_part(get_args(hint)[0], one) for one in said)
    kinds = [kind for kind in (hint, *get_args(hint)) if is_dataclass(kind)]
    return _read(kinds[0], said) if kinds and isinstance(said, dict) else said
