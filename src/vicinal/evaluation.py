"""How good are some scores? Every metric of each, with intervals, and paired tests between them: an ``Evaluation``.

An ``Evaluation`` is data. All of it is computed once, by ``evaluate``; printing, comparing and saving only look it up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy.typing as npt

from vicinal import checks, store
from vicinal.checks import Flags, Floats
from vicinal.errors import FileError, InputError, ShapeError
from vicinal.metrics import METRICS, Comparison, Interval, Points
from vicinal.metrics.bootstrap import MOST_SAMPLES, Judge, bootstrap
from vicinal.values import Embeddings, Trust

if TYPE_CHECKING:
    from rich.console import Group

__all__ = ["Evaluation", "evaluate"]

FORMAT = "vicinal.evaluation"
VERSION = 1
Score: TypeAlias = "Trust | Callable[[Embeddings], Trust] | npt.ArrayLike"

_FEW = 10  # right or wrong predictions below which resampling them says little
_BLOCKS = (  # what stands side by side in print; about a hundred characters wide
    ("auroc", "aupr_success", "aupr_error", "fpr_at_95_tpr"),
    ("aurc", "e_aurc", "augrc"),
    ("risk_at_coverage", "coverage_at_risk", "ece", "brier"),
)
_FINE = ("aurc", "e_aurc", "augrc")  # shown with one more digit


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Every metric of every score, and every two scores compared.

    Attributes:
        intervals: by (score, metric); NaN where a metric is undefined: AUROC without errors, or ECE of a score that
            is no probability.
        comparisons: by (metric, first, second), the scores in the order in which they were given.
        n: how many predictions.
        errors: how many of them are wrong.
        accuracy: with its Clopper-Pearson interval.
        points: the coverage, the risk and the bins of the metrics that need them.
        samples: how many bootstrap samples.
        seed: of the samples.
        level: of all intervals.
        kinds: what right and wrong are called here; ("known", "novel") for novelty.
        notes: what the reader should know.
        facts: where the predictions come from, as in ``Embeddings``.
    """

    intervals: Mapping[tuple[str, str], Interval]
    comparisons: Mapping[tuple[str, str, str], Comparison]
    n: int
    errors: int
    accuracy: Interval
    points: Points
    samples: int
    seed: int
    level: float
    kinds: tuple[str, str] = ("right", "wrong")
    notes: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def scores(self) -> tuple[str, ...]:
        """The names of the scores, as given."""
        return tuple(dict.fromkeys(score for score, _ in self.intervals))

    def interval(self, score: str, metric: str = "auroc") -> Interval:
        """One metric of one score."""
        score = checks.one_of(score, "score", self.scores)
        return self.intervals[score, checks.one_of(metric, "metric", tuple(METRICS))]

    def compare(self, first: str, second: str, metric: str = "auroc") -> Comparison:
        """How much larger a metric is for the first score than for the second; the paired test of it."""
        metric = checks.one_of(metric, "metric", tuple(METRICS))
        first, second = (checks.one_of(score, "score", self.scores) for score in (first, second))
        if first == second:
            raise InputError(f"compare: expected two scores, got {first!r} twice")
        if (metric, first, second) in self.comparisons:
            return self.comparisons[metric, first, second]
        return -self.comparisons[metric, second, first]

    def best(self, metric: str = "auroc") -> str | None:
        """The score that is better than every other one by the paired test at this level; None if there is none."""
        sign = 1 if METRICS[checks.one_of(metric, "metric", tuple(METRICS))].larger else -1
        values = {score: sign * self.intervals[score, metric].value for score in self.scores}
        rivals = [score for score, value in values.items() if not math.isnan(value)]
        if len(rivals) < 2:
            return None
        top = max(rivals, key=values.__getitem__)
        sure = all(self.compare(top, other, metric).p < 1 - self.level for other in rivals if other != top)
        return top if sure else None

    def rows(self) -> list[dict[str, Any]]:
        """One row for each score and metric: score, metric, value, low, high; for CSV or Parquet."""
        return [
            {"score": score, "metric": metric, "value": found.value, "low": found.low, "high": found.high}
            for (score, metric), found in self.intervals.items()
        ]

    def table(self) -> Group:
        """The same as ``str``, for ``rich.print``."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        tables = []
        for header, *rows in _tables(self):
            shown = Table(header_style="bold")
            for cell in header:
                shown.add_column(Text(cell))
            for score, *cells in rows:
                shown.add_row(Text(score), *[Text(cell, style="bold green" if "*" in cell else "") for cell in cells])
            tables.append(shown)
        return Group(*map(Text, _heading(self)), *tables, *map(Text, _footing(self)))

    def __str__(self) -> str:
        parts = ["\n".join(_heading(self)), *map(_aligned, _tables(self)), "\n".join(_footing(self))]
        return "\n\n".join(part for part in parts if part)

    def __repr__(self) -> str:
        return f"Evaluation({', '.join(self.scores)}; {self.n} predictions, {self.errors} {self.kinds[1]})"

    def to_json(self) -> dict[str, Any]:
        """All of it in plain words and numbers, as JSON has them; what is undefined is None."""
        content = {
            "format": FORMAT,
            "version": VERSION,
            **{name: getattr(self, name) for name in ("n", "errors", "samples", "seed", "level", "kinds", "notes")},
            "accuracy": vars(self.accuracy),
            "points": vars(self.points),
            "facts": dict(self.facts),
            "intervals": self.rows(),
            "comparisons": [
                {"metric": metric, "first": first, "second": second, **vars(found)}
                for (metric, first, second), found in self.comparisons.items()
            ],
        }
        plain: dict[str, Any] = _without_nan(content)
        return plain

    def save(self, path: str | Path) -> None:
        """Write JSON (docs: Metrics); what is undefined becomes null."""
        store.write_json(path, self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> Evaluation:
        """Read what ``save`` wrote."""
        content = store.read_json(path)
        form = content.get("format") if isinstance(content, dict) else None
        if form != FORMAT:
            raise FileError(f"{path}: expected a {FORMAT} file, got {form or 'other JSON'!r}")
        if not isinstance(content.get("version"), int) or content["version"] > VERSION:
            raise FileError(
                f"{path}: expected {FORMAT} of version {VERSION} or older, got {content.get('version')!r}; "
                "update vicinal"
            )
        try:
            return _read(content)
        except (IndexError, KeyError, TypeError, ValueError) as error:
            raise FileError(f"{path}: expected a whole {FORMAT} file, but {error!r}") from error


def evaluate(
    embeddings: Embeddings | None,
    scores: Mapping[str, Score],
    *,
    correct: npt.ArrayLike | None = None,
    samples: int = 2000,
    seed: int = 0,
    level: float = 0.95,
    coverage: float = 0.8,
    risk: float = 0.05,
    bins: int = 15,
    kinds: tuple[str, str] = ("right", "wrong"),
) -> Evaluation:
    """Measure how well some scores tell right predictions from wrong ones, or known inputs from novel ones.

    Scores are ranked by their log-odds. ECE and Brier score are measured of the confidences of those that are
    probabilities. Every score is measured on the same bootstrap samples (``vicinal.metrics.bootstrap``).

    Args:
        embeddings: of n predictions, with what tells right from wrong: labels, and logits or predictions. None, if
            ``correct`` and finished scores are given.
        scores: by name, each a ``Trust``, a function of the embeddings that gives one, or plain numbers (n,), larger
            for more trustworthy.
        correct: (n,), whether each prediction is right, where the embeddings do not say it; for novelty, whether each
            input is of a known class.
        samples: how many bootstrap samples.
        seed: of the samples.
        level: of the intervals, above 0 and below 1; two scores differ where p is below 1 - level.
        coverage: of ``risk_at_coverage``.
        risk: of ``coverage_at_risk``.
        bins: of ``ece``.
        kinds: what right and wrong are called in print.

    Example:
        >>> found = evaluate(None, {"a": [3, 2, 1, 0], "b": [1, 3, 0, 2]}, correct=[1, 1, 0, 0], samples=100)
        >>> found.interval("a").value, found.compare("a", "b").difference
        (1.0, 0.25)
    """
    if not isinstance(scores, Mapping) or not scores:
        raise InputError(f"scores: expected names and scores, such as {{'margin': trust}}, got {scores!r}")
    if not all(isinstance(name, str) for name in scores):
        raise InputError(f"scores: expected names of scores, got {next(n for n in scores if not isinstance(n, str))!r}")
    if embeddings is not None and not isinstance(embeddings, Embeddings):
        raise InputError(f"embeddings: expected Embeddings, or None with correct, got {type(embeddings).__name__}")
    points = Points(coverage, risk, bins)
    samples, seed = checks.whole(samples, "samples", low=1, high=MOST_SAMPLES), checks.whole(seed, "seed", low=0)
    level = checks.fraction(level, "level", open_low=True, open_high=True)
    if len(kinds) != 2 or not all(isinstance(kind, str) for kind in kinds):
        raise InputError(f"kinds: expected two words, such as ('known', 'novel'), got {kinds!r}")
    right = _right(embeddings, correct)
    trusts = {name: _trust(name, given, embeddings, len(right)) for name, given in scores.items()}
    if embeddings is not None and correct is None:
        _same_predictions(embeddings, trusts)
    judges = [Judge.of(trust.log_odds, right, _probability(trust), bins=points.bins) for trust in trusts.values()]
    found = bootstrap(judges, right, tuple(METRICS), points=points, samples=samples, seed=seed)
    names = tuple(trusts)
    return Evaluation(
        intervals={(s, m): found.interval(i, j, level) for i, s in enumerate(names) for j, m in enumerate(METRICS)},
        comparisons={
            (metric, names[i], names[j]): found.compare(i, j, row, level)
            for row, metric in enumerate(METRICS)
            for i, j in combinations(range(len(names)), 2)
        },
        n=len(right),
        errors=int((~right).sum()),
        accuracy=_share(right, level),
        points=points,
        samples=samples,
        seed=seed,
        level=level,
        kinds=(kinds[0], kinds[1]),
        notes=(*_doubts(right, kinds), *(f"{name}: {note}" for name, trust in trusts.items() for note in trust.notes)),
        facts={} if embeddings is None else dict(embeddings.facts),
    )


def _right(embeddings: Embeddings | None, correct: npt.ArrayLike | None) -> Flags:
    if correct is not None:
        return checks.flags(correct, "correct", rows=None if embeddings is None else len(embeddings))
    if embeddings is None:
        raise InputError(
            "correct: expected which predictions are right, as there are no embeddings to tell; pass it in"
        )
    return embeddings.correct


def _trust(name: str, given: Score, embeddings: Embeddings | None, n: int) -> Trust:
    """The score as a ``Trust`` of n finite values, whatever it came as."""
    if callable(given) and not isinstance(given, Trust):
        if embeddings is None:
            raise InputError(f"scores[{name!r}]: expected a Trust or numbers, as there are no embeddings to score")
        given = given(embeddings)
    if not isinstance(given, Trust):
        numbers = checks.numbers(given, f"scores[{name!r}]", rows=n)
        return Trust(name, numbers, numbers)
    if len(given) != n:
        raise ShapeError(f"scores[{name!r}]: expected {n} values, one for each prediction, got {len(given)}")
    checks.numbers(given.log_odds, f"scores[{name!r}].log_odds", rows=n)
    return given


def _same_predictions(embeddings: Embeddings, trusts: Mapping[str, Trust]) -> None:
    for name, trust in trusts.items():
        if trust.predicted is None or embeddings.predicted is None:
            continue
        others = (trust.predicted != embeddings.predicted).nonzero()[0]
        if len(others):
            raise InputError(
                f"scores[{name!r}]: expected a judgement of the predictions in the embeddings, got one of other "
                f"predictions ({len(others)} rows, the first {others[0]}); pass correct to say which of those are right"
            )


def _probability(trust: Trust) -> Floats | None:
    if not trust.probability:
        return None
    return checks.numbers(trust.confidence, f"{trust.name}.confidence", rows=len(trust), low=0.0, high=1.0)


def _share(right: Flags, level: float) -> Interval:
    from scipy.stats import binomtest

    rights = int(right.sum())
    found = binomtest(rights, len(right)).proportion_ci(level, method="exact")
    return Interval(rights / len(right), float(found.low), float(found.high))


def _doubts(right: Flags, kinds: tuple[str, str]) -> Iterator[str]:
    counts = (int(right.sum()), int((~right).sum()))
    for kind, count in zip(kinds, counts, strict=True):
        if count == 0:
            lost = [m.heading(Points()) for m in METRICS.values() if not m.defined(*counts)]
            yield f"none of the predictions is {kind}: {', '.join(lost)} are undefined"
        elif count < _FEW:
            verb = "is" if count == 1 else "are"
            yield f"only {count} of the predictions {verb} {kind}: do not rely on the intervals"


def _read(content: dict[str, Any]) -> Evaluation:
    return Evaluation(
        intervals={(row["score"], row["metric"]): _interval(row) for row in content["intervals"]},
        comparisons={
            (row["metric"], row["first"], row["second"]): Comparison(
                *(_number(row[name]) for name in ("difference", "low", "high", "p"))
            )
            for row in content["comparisons"]
        },
        accuracy=_interval(content["accuracy"]),
        points=Points(**content["points"]),
        kinds=(str(content["kinds"][0]), str(content["kinds"][1])),
        notes=tuple(content["notes"]),
        facts=dict(content["facts"]),
        level=float(content["level"]),
        **{name: int(content[name]) for name in ("n", "errors", "samples", "seed")},
    )


def _interval(row: Mapping[str, Any]) -> Interval:
    return Interval(_number(row["value"]), _number(row["low"]), _number(row["high"]))


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _without_nan(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _without_nan(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_without_nan(value) for value in content]
    return None if isinstance(content, float) and math.isnan(content) else content


def _heading(found: Evaluation) -> list[str]:
    named = "accuracy" if found.kinds == ("right", "wrong") else f"share of {found.kinds[0]}"
    return [
        f"{found.n:,} predictions, {found.errors:,} of them {found.kinds[1]}: {named} {_shown(found.accuracy, 3)}",
        f"{100 * found.level:g}% intervals from {found.samples:,} stratified bootstrap samples, seed {found.seed}",
    ]


def _footing(found: Evaluation) -> list[str]:
    star = f"* better than every other score (paired bootstrap, p < {1 - found.level:.2g})"
    marked = any(found.best(metric) for metric in METRICS)
    return [*([star] if marked else []), *(f"note: {note}" for note in found.notes)]


def _tables(found: Evaluation) -> Iterator[list[list[str]]]:
    """Header and rows of each block of metrics; a metric that no score has is left out."""
    has = {metric for (_, metric), interval in found.intervals.items() if not math.isnan(interval.value)}
    for block in ([metric for metric in block if metric in has] for block in _BLOCKS):
        best = {metric: found.best(metric) for metric in block}
        titles = [METRICS[metric].heading(found.points) for metric in block]
        ways = ["higher is better" if METRICS[metric].larger else "lower is better" for metric in block]
        yield [
            ["", *(f"{title}\n{way}" for title, way in zip(titles, ways, strict=True))],
            *([score, *(_cell(found, score, metric, best[metric]) for metric in block)] for score in found.scores),
        ]


def _cell(found: Evaluation, score: str, metric: str, best: str | None) -> str:
    return _shown(found.intervals[score, metric], 4 if metric in _FINE else 3, "*" if score == best else " ")


def _shown(interval: Interval, digits: int, mark: str = "") -> str:
    if math.isnan(interval.value):
        return "-"
    return f"{interval.value:.{digits}f}{mark} [{interval.low:.{digits}f}, {interval.high:.{digits}f}]"


def _aligned(rows: list[list[str]]) -> str:
    lines = [[cell.split("\n")[0] for cell in rows[0]], [cell.split("\n")[-1] for cell in rows[0]], *rows[1:]]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    padded = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
    return "\n".join(line.rstrip() for line in padded)
