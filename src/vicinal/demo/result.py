"""What the demo found, in words and tables."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from vicinal import plots
from vicinal.demo.digits import KNOWN, NOVEL, PER_CLASS, Digits
from vicinal.demo.judging import SCORES, Judged, K, Verdict
from vicinal.demo.views import ADVERSARIAL, HYBRID, PLAIN, Views
from vicinal.metrics import Comparison, Interval

__all__ = ["SHOWN", "DemoResult", "found_in", "told_of"]

_Show: TypeAlias = Callable[[Interval, int], str]

SHOWN = 5  # least trusted predictions to look at
_COLUMNS, _TEXT = 120, 100  # of lines where no terminal says how many it has, and of running text at most
_UNLIKELY = 0.05  # by chance alone: a smaller p is a difference
_TABLES = {  # how a table is headed, and a column of it where there is but one table
    ("errors", "auroc"): ("Is the prediction wrong? AUROC: higher is better, 0.5 is chance", "errors: AUROC"),
    ("errors", "aurc"): (
        "Is the prediction wrong? AURC, errors among the most trusted: lower is better",
        "errors: AURC",
    ),
    ("novelties", "auroc"): ("Is it a digit never seen? AUROC: higher is better, 0.5 is chance", "novelties: AUROC"),
}
_NEXT = "next: your own network, with `vicinal bank --help` and `vicinal score --help`"


@dataclass(frozen=True, eq=False)
class DemoResult:
    """What the demo found; print it.

    Attributes:
        networks: the evaluations of each network, the plain one first.
        story: what was done.
        finding: what came out of it, in one sentence.
        verdicts: whether scores differ, or so few images cannot tell.
        picture: where the picture is; None where matplotlib is missing.
        notes: what the reader should know.
    """

    networks: tuple[Judged, ...]
    story: str
    finding: str
    verdicts: tuple[Verdict, ...]
    picture: Path | None
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The same as plain words and numbers, for a file."""
        return {
            "story": self.story,
            "finding": self.finding,
            "networks": {one.name: _rows(one) for one in self.networks},
            "verdicts": [
                {"job": one.job, "metric": "auroc", "first": one.first, "second": one.second, **vars(one.found)}
                for one in self.verdicts
            ],
            "picture": None if self.picture is None else str(self.picture),
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        """As wide as the terminal; in a narrow one, an interval is shown as half of its width."""
        width = shutil.get_terminal_size((_COLUMNS, 0)).columns
        told = [textwrap.fill(words, min(width, _TEXT)) for words in (self.finding, self.story)]
        shown = list(_tables(self.networks, _in_full))
        if any(len(line) > width for table in shown for line in table.splitlines()):
            shown = list(_tables(self.networks, _in_short))
        ends = [*(f"note: {note}" for note in self.notes), _NEXT]
        ends += [] if self.picture is None else [f"picture: {self.picture}"]
        return "\n\n".join([*told, *shown, _settled(self.verdicts), "\n".join(ends)])


def told_of(digits: Digits, views: Sequence[Views]) -> str:
    """What was done, in a few sentences."""
    trained = [one.name for one in views if one.name != HYBRID]
    several = len(trained) > 1
    told = [
        f"{'Three small networks' if several else 'A small network'} learnt the digits {KNOWN[0]} to {KNOWN[-1]} from "
        f"{PER_CLASS} images of each{' (' + ', '.join(trained) + ')' if several else ''}.",
        f"Judged are {len(digits.test):,} other images of these digits, and {len(digits.novel):,} of "
        f"{' and '.join(map(str, NOVEL))}, digits never seen. Neighbours are the {K} nearest of the "
        f"{len(digits.train)} training images.",
    ]
    if several:
        told.append(f"The {HYBRID} scores the {PLAIN} network's predictions in the {ADVERSARIAL} one's embedding.")
    return " ".join(told)


def found_in(judged: Judged, view: Views) -> str:
    """How many of the least trusted predictions are wrong, and how many of all."""
    least = plots.least_trusted(judged.trusts["distance"], SHOWN)
    wrong = int((~view.test.correct[least]).sum())
    some = {0: "None of the", SHOWN: "All"}.get(wrong, f"{wrong} of the")
    errors, n = judged.errors.errors, judged.errors.n
    return (
        f"{some} {SHOWN} predictions that their neighbours trust least {'is' if wrong == 1 else 'are'} wrong; "
        f"of all {n:,}, {errors:,} are ({100 * errors / n:.1f}%)."
    )


def _rows(one: Judged) -> dict[str, Any]:
    errors = one.errors
    said = {"accuracy": vars(errors.accuracy), "predictions": errors.n, "wrong": errors.errors}
    return {**said, "errors": errors.rows(), "novelties": one.novelties.rows()}


def _tables(networks: Sequence[Judged], show: _Show) -> Iterator[str]:
    """The accuracy of each network, then its scores: a table for each job and metric, or one for a single network."""
    accuracy = ["accuracy", *(show(one.errors.accuracy, 3) for one in networks)]
    wrong = ["wrong", *(f"{one.errors.errors:,} of {one.errors.n:,}" for one in networks)]
    yield _aligned([["", *(one.name for one in networks)], accuracy, wrong])
    if len(networks) == 1:
        yield _by_score({head: _cells(networks[0], *place, show) for place, (_, head) in _TABLES.items()})
        return
    for place, (question, _) in _TABLES.items():
        yield f"{question}\n{_by_score({one.name: _cells(one, *place, show) for one in networks})}"


def _cells(one: Judged, job: str, metric: str, show: _Show) -> list[str]:
    found, digits = getattr(one, job).intervals, 4 if metric == "aurc" else 3
    return [show(found[score, metric], digits) if (score, metric) in found else "-" for score in SCORES]


def _by_score(columns: Mapping[str, Sequence[str]]) -> str:
    return _aligned([["", *columns], *zip(SCORES, *columns.values(), strict=True)])


def _settled(verdicts: Sequence[Verdict]) -> str:
    """The paired tests as a table."""
    rows = [[one.job, one.first, one.second, _signed(one.found), f"{one.found.p:.2g}"] for one in verdicts]
    told = ["Do two scores differ? AUROC of the first less that of the second"]
    told.append(_aligned([["", "first", "second", "difference", "p"], *rows]))
    if any(one.found.p >= _UNLIKELY for one in verdicts):
        told.append(f"p of {_UNLIKELY} or more: too few images to tell the two apart")
    return "\n".join(told)


def _signed(found: Comparison) -> str:
    return f"{found.difference:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"


def _in_full(one: Interval, digits: int) -> str:
    return f"{one.value:.{digits}f} [{one.low:.{digits}f}, {one.high:.{digits}f}]"


def _in_short(one: Interval, digits: int) -> str:
    return f"{one.value:.{digits}f} ±{(one.high - one.low) / 2:.{digits}f}"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in padded)
