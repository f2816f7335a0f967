"""What condensing costs: the quality of the score against the share of the bank that is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vicinal import checks, score, store
from vicinal.bank import Bank
from vicinal.checks import Flags
from vicinal.condensation.condensing import condense
from vicinal.condensation.methods import METHODS
from vicinal.errors import FileError, InputError
from vicinal.guarantee import bounds
from vicinal.metrics import Comparison, Interval, Points
from vicinal.metrics.bootstrap import MOST_SAMPLES, Judge, bootstrap
from vicinal.progress import track
from vicinal.values import Embeddings, Trust

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["METRICS", "WHOLE", "CondensationCurve", "CurvePoint", "condensation_curve"]

FORMAT = "vicinal.condensation"
VERSION = 1
WHOLE = "whole bank"
METRICS = ("auroc", "risk_at_coverage")
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2)


@dataclass(frozen=True)
class CurvePoint:
    """One bank, measured.

    Attributes:
        method: how it was condensed; ``WHOLE`` where it was not.
        share: how much of the bank was to be kept.
        size: how many points it has.
        k: how many neighbours it was asked for.
        auroc: of the distance score, whether it tells right predictions from wrong ones.
        risk: the share of wrong predictions among the accepted, at the coverage of the curve.
        accuracy: of the nearest point's class as a prediction of its own (1-NN), with its Clopper-Pearson interval.
        auroc_change: the AUROC less that of the whole bank, on the same predictions (the paired test).
        risk_change: the risk less that of the whole bank, likewise.
    """

    method: str
    share: float
    size: int
    k: int
    auroc: Interval
    risk: Interval
    accuracy: Interval
    auroc_change: Comparison
    risk_change: Comparison


@dataclass(frozen=True)
class CondensationCurve:
    """The whole bank, and each method at each share, on the same predictions.

    Attributes:
        points: the whole bank first, then method by method, the smallest share first.
        n: how many predictions.
        errors: how many of them are wrong.
        coverage: at which the risk is read.
        samples: of the bootstrap.
        seed: of the bootstrap and of the methods.
        level: of the intervals.
        facts: where the predictions come from.
    """

    points: tuple[CurvePoint, ...]
    n: int
    errors: int
    coverage: float
    samples: int
    seed: int
    level: float
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def whole(self) -> CurvePoint:
        """The bank that was not condensed."""
        return self.points[0]

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods, as given."""
        return tuple(dict.fromkeys(point.method for point in self.points[1:]))

    def of(self, method: str) -> tuple[CurvePoint, ...]:
        """The points of one method, the smallest share first."""
        method = checks.one_of(method, "method", self.methods)
        return tuple(point for point in self.points if point.method == method)

    def rows(self) -> list[dict[str, Any]]:
        """One row for each point, with a column for each number; for CSV or Parquet."""
        return [_flat(point) for point in self.points]

    def to_json(self) -> dict[str, Any]:
        """All of it in plain words and numbers, as JSON has them."""
        said = {name: getattr(self, name) for name in ("n", "errors", "coverage", "samples", "seed", "level")}
        points = [{name: _plain(value) for name, value in vars(point).items()} for point in self.points]
        return {"format": FORMAT, "version": VERSION, **said, "facts": dict(self.facts), "points": points}

    def save(self, path: str | Path) -> None:
        """Write JSON."""
        store.write_json(path, self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> CondensationCurve:
        """Read what ``save`` wrote."""
        content = store.read_json(path)
        form = content.get("format") if isinstance(content, dict) else None
        if form != FORMAT or content.get("version") != VERSION:
            raise FileError(f"{path}: expected a {FORMAT} file of version {VERSION}, got {form or 'other JSON'!r}")
        try:
            rest = {name: value for name, value in content.items() if name not in ("format", "version", "points")}
            return cls(points=tuple(map(_read, content["points"])), **rest)
        except (KeyError, TypeError) as error:
            raise FileError(f"{path}: expected a whole {FORMAT} file, but {error!r}") from error

    def table(self) -> Table:
        """The same as ``str``, for ``rich.print``."""
        from rich.table import Table

        head, *rows = self._cells()
        shown = Table(*head, header_style="bold", caption=self._heading())
        for row in rows:
            shown.add_row(*row)
        return shown

    def __str__(self) -> str:
        cells = self._cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
        return "\n".join([self._heading(), *(line.rstrip() for line in lines)])

    def _heading(self) -> str:
        return f"{self.n:,} predictions, {self.errors:,} of them wrong; {100 * self.level:g}% intervals"

    def _cells(self) -> list[list[str]]:
        head = ["method", "share", "points", "k", "AUROC", "less whole bank", f"risk at {self.coverage:.0%}", "1-NN"]
        return [head, *([*_named(point), *map(_shown, _judged(point))] for point in self.points)]


def condensation_curve(
    bank: Bank,
    embeddings: Embeddings,
    methods: Sequence[str] = ("k-means", "distilled", "random"),
    shares: Sequence[float] = SHARES,
    *,
    k: int | None = None,
    weighted: bool = True,
    coverage: float = 0.8,
    samples: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> CondensationCurve:
    """Condense a bank by each method to each share, and measure the distance score with what is left.

    Args:
        bank: the training points.
        embeddings: of inputs that are not in the bank, with labels and predictions.
        methods: of ``METHODS``.
        shares: how much of each class to keep.
        k: how many neighbours, of every bank; left out, 50 of the whole bank, and what each condensed one recommends.
        weighted: whether kept points stand for others.
        coverage: where to read the risk.
        samples: of the bootstrap, the same for all: so that every difference is paired.
        seed: of the bootstrap and of the methods.
        level: of the intervals.

    Example:
        >>> generator = np.random.default_rng(0)
        >>> labels = generator.integers(0, 2, 300)
        >>> points = 2.0 * labels[:, None] + generator.normal(size=(300, 2))
        >>> asked = Embeddings(points[200:], labels=labels[200:], predicted=(points[200:].sum(axis=1) > 2).astype(int))
        >>> found = condensation_curve(Bank(points[:200], labels[:200]), asked, ["k-means"], [0.1, 0.5], samples=50)
        >>> [(point.method, point.size) for point in found.points]
        [('whole bank', 200), ('k-means', 20), ('k-means', 100)]
    """
    if embeddings.labels is None or embeddings.predicted is None:
        raise InputError("embeddings: expected labels and predictions (logits or predicted); pass them in")
    names = [checks.one_of(method, "methods", tuple(METHODS)) for method in methods]
    wanted = sorted({checks.fraction(share, "shares", open_low=True) for share in shares})
    if not names or not wanted:
        raise InputError("methods, shares: expected at least one of each, got none")
    level = checks.fraction(level, "level", open_low=True, open_high=True)
    samples, seed = checks.whole(samples, "samples", low=1, high=MOST_SAMPLES), checks.whole(seed, "seed", low=0)
    plans = [(name, share) for name in dict.fromkeys(names) for share in wanted]
    usual = min(50, len(bank)) if k is None else bank.checked_k(k)
    banks: list[tuple[str, float, Bank, int]] = [(WHOLE, 1.0, bank, usual)]
    for name, share in track(plans, "condensing"):
        small = condense(bank, name, share, weighted=weighted, seed=seed)
        banks.append((name, share, small.bank, small.k if k is None else min(k, len(small))))
    trusts = [score.distance(one, embeddings.vectors, embeddings.predicted, k=asked) for _, _, one, asked in banks]
    right, points = embeddings.correct, Points(coverage=coverage)
    judges = [Judge.of(trust.log_odds, right) for trust in trusts]
    found = bootstrap(judges, right, METRICS, points=points, samples=samples, seed=seed)

    def measured(row: int) -> CurvePoint:
        name, share, one, asked = banks[row]
        auroc, risk = (found.interval(row, metric, level) for metric in range(len(METRICS)))
        changes = (found.compare(row, 0, metric, level) for metric in range(len(METRICS)))
        nearest = _accuracy(_nearest(trusts[row]) == embeddings.labels, level)
        return CurvePoint(name, share, len(one), asked, auroc, risk, nearest, *changes)

    made = tuple(measured(row) for row in range(len(banks)))
    wrong = int((~right).sum())
    return CondensationCurve(made, len(right), wrong, points.coverage, samples, seed, level, dict(embeddings.facts))


def _nearest(trust: Trust) -> Any:
    """(m,), the class of the nearest point."""
    assert trust.neighbors is not None
    return trust.neighbors.labels[:, 0]


def _accuracy(right: Flags, level: float) -> Interval:
    low, high = bounds(int(right.sum()), len(right), level)
    return Interval(float(right.mean()), float(low), float(high))


def _plain(value: Any) -> Any:
    """An interval or a comparison as a dictionary, with None for what is undefined."""
    if not isinstance(value, Interval | Comparison):
        return value
    return {name: None if np.isnan(number) else number for name, number in vars(value).items()}


def _flat(point: CurvePoint) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, value in vars(point).items():
        if isinstance(value, Interval | Comparison):
            row |= {
                name if key in ("value", "difference") else f"{name}_{key}": one for key, one in vars(value).items()
            }
        else:
            row[name] = value
    return row


def _read(row: dict[str, Any]) -> CurvePoint:
    def numbers(given: dict[str, Any]) -> dict[str, float]:
        return {name: np.nan if value is None else value for name, value in given.items()}

    intervals = {name: Interval(**numbers(row[name])) for name in ("auroc", "risk", "accuracy")}
    compared = {name: Comparison(**numbers(row[name])) for name in ("auroc_change", "risk_change")}
    return CurvePoint(**{**row, **intervals, **compared})


def _named(point: CurvePoint) -> list[str]:
    return [point.method, f"{100 * point.share:g}%", f"{point.size:,}", str(point.k)]


def _judged(point: CurvePoint) -> list[Interval | Comparison | None]:
    whole = point.method == WHOLE
    return [point.auroc, None if whole else point.auroc_change, point.risk, point.accuracy]


def _shown(found: Interval | Comparison | None) -> str:
    if found is None:
        return ""
    value, sign = (found.value, "") if isinstance(found, Interval) else (found.difference, "+")
    return "-" if np.isnan(value) else f"{value:{sign}.3f} [{found.low:{sign}.3f}, {found.high:{sign}.3f}]"
