"""What the demo found, in words and tables."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vicinal import plots
from vicinal.demo.digits import KNOWN, NOVEL, PER_CLASS, Digits
from vicinal.demo.judging import SCORES, Judged, K
from vicinal.demo.views import ADVERSARIAL, HYBRID, PLAIN, Views
from vicinal.evaluate import Evaluation

__all__ = ["SHOWN", "DemoResult", "found_in", "told_of"]

SHOWN = 5  # least trusted predictions to look at
_COLUMNS = 110


@dataclass(frozen=True, eq=False)
class DemoResult:
    """What the demo found; print it.

    Attributes:
        networks: the evaluations of each network, the plain one first.
        story: what was done.
        finding: what came out of it, in one sentence.
        picture: where the picture is; None where matplotlib is missing.
        notes: what the reader should know.
    """

    networks: tuple[Judged, ...]
    story: str
    finding: str
    picture: Path | None
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The same as plain words and numbers, for a file."""
        return {
            "story": self.story,
            "finding": self.finding,
            "networks": {one.name: _rows(one) for one in self.networks},
            "picture": None if self.picture is None else str(self.picture),
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        told = textwrap.fill(f"{self.finding} {self.story}", _COLUMNS)
        ends = [f"note: {note}" for note in self.notes]
        ends += [] if self.picture is None else [f"picture: {self.picture}"]
        return "\n\n".join([told, *_tables(self.networks), "\n".join(_verdicts(self.networks[0])), "\n".join(ends)])


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


def _verdicts(judged: Judged) -> Iterator[str]:
    """Whether the paper's score differs at all from the largest softmax output."""
    for question, found in (("errors", judged.errors), ("novelties", judged.novelties)):
        one = found.compare("distance", "margin")
        sure = "" if one.p < 1 - found.level else ": no difference that so few images could show"
        yield (
            f"{judged.name}, {question}: AUROC of distance less that of margin {one.difference:+.3f} "
            f"[{one.low:+.3f}, {one.high:+.3f}], p = {one.p:.2g}{sure}"
        )


def _tables(networks: Sequence[Judged]) -> Iterator[str]:
    yield "\n".join(map(_described, networks))
    if len(networks) == 1:
        (one,) = networks
        rows = [
            [name, *_cells(one.errors, name, "auroc", "aurc"), *_cells(one.novelties, name, "auroc", "fpr_at_95_tpr")]
            for name in SCORES
        ]
        yield _aligned([["", "errors: AUROC", "AURC", "novelties: AUROC", "FPR at 95% TPR"], *rows])
        return
    for question, metric in (("errors", "AUROC"), ("errors", "AURC"), ("novelties", "AUROC")):
        found = [getattr(one, question) for one in networks]
        rows = [[name, *(cell for one in found for cell in _cells(one, name, metric.lower()))] for name in SCORES]
        yield _aligned([[f"{question}: {metric}", *(one.name for one in networks)], *rows])


def _described(one: Judged) -> str:
    accuracy, errors = one.errors.accuracy, one.errors
    share = f"accuracy {accuracy.value:.3f} [{accuracy.low:.3f}, {accuracy.high:.3f}]"
    return f"{one.name}: {share}, {errors.errors:,} of {errors.n:,} predictions wrong"


def _cells(found: Evaluation, score: str, *metrics: str) -> Iterator[str]:
    for metric in metrics:
        one, digits = found.intervals.get((score, metric)), 4 if metric == "aurc" else 3
        yield "-" if one is None else f"{one.value:.{digits}f} [{one.low:.{digits}f}, {one.high:.{digits}f}]"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in padded)
