"""The picture of the demo: whom the network asked and who answered, and what each score is worth."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from vicinal import plots
from vicinal.demo.digits import NOVEL, Digits
from vicinal.demo.judging import ON_NEIGHBORS, ON_OUTPUTS, SCORES, Judged
from vicinal.demo.result import SHOWN
from vicinal.demo.views import HYBRID, Views
from vicinal.metrics import Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

__all__ = ["draw"]

_WIDTH, _MARGIN = 16.0, 0.5  # inches, of 100 pixels
_HEAD, _MIDDLE, _JOB = 2.1, 7.75, 3.9  # heights of the rows
_HEADING = 0.85
_START = 0.8  # of the axis of the AUROC: what lies far below would press all others together
_JOBS = {
    "errors": "Which score tells wrong predictions from right ones?",
    "novelties": f"Which tells digits never seen ({' or '.join(map(str, NOVEL))}) from known ones?",
}


def draw(digits: Digits, view: Views, judged: Sequence[Judged], finding: str, story: str) -> Figure:
    """1600 pixels wide: the least trusted predictions of the first network, its curves, the intervals of all."""
    jobs = 1 if len(judged) == 1 else len(_JOBS)  # rows of them: the panels of one network fit side by side
    heights = (_HEAD, _MIDDLE, *[_JOB] * jobs)
    whole = plots.figure(_WIDTH, sum(heights))
    head, middle, *feet = _rows(whole, *heights)
    _write(head, 0.42, finding.replace("; ", ";\n"), 24, weight="bold", color=plots.INK, linespacing=1.25)
    _write(head, 1.36, textwrap.fill(story, 170), 12.5, color=plots.SOFT, linespacing=1.4)
    _, left, _, right, _ = _columns(middle, _MARGIN, 9.2, 0.5, 5.5, 0.3)
    _draw_least_trusted(left, digits, judged[0])
    _draw_curves(right, view, judged[0])
    if len(feet) == 1:
        _, left, _, right, _ = _columns(feet[0], _MARGIN, 7.4, 0.4, 7.4, 0.3)
        feet = [left, right]
    else:
        feet = [_columns(foot, _MARGIN, _WIDTH - _MARGIN - 0.3, 0.3)[1] for foot in feet]
    for foot, job in zip(feet, _JOBS, strict=True):
        _draw_job(foot, job, judged)
    return whole


def _draw_least_trusted(into: SubFigure, digits: Digits, judged: Judged) -> None:
    heading = f"The {SHOWN} predictions of the {judged.name} network that are trusted least"
    plots.draw_neighbor_gallery(
        _headed(into, heading, "Each stands beside the training images nearest to it in the network's embedding."),
        digits.test,
        digits.train,
        judged.trusts["distance"],
        labels=digits.test_labels,
        count=SHOWN,
        cmap="gray_r",
    )


def _draw_curves(into: SubFigure, view: Views, judged: Judged) -> None:
    in_turn = [name for pair in zip(ON_NEIGHBORS, ON_OUTPUTS, strict=True) for name in pair]
    plots.draw_risk_coverage(
        _headed(into, "Of its most trusted, how many are wrong?", "AURC, the area under the curve: less is better."),
        {name: judged.trusts[name] for name in in_turn},
        view.test.correct,
        columns=2,
        start=0.5,
    )


def _draw_job(into: SubFigure, job: str, judged: Sequence[Judged]) -> None:
    """The scores of all networks at one job. Only of equal accuracy can two networks be compared in their errors."""
    panels: dict[str, dict[str, Interval]] = {}
    for one in judged:
        found = getattr(one, job)
        panels[one.name] = {name: found.interval(name) for name in SCORES if name in found.scores}
    told = "AUROC with its 95% interval: 1 is perfect, 0.5 is chance."
    if any(one.name == HYBRID for one in judged):
        told += f" The {HYBRID} has no outputs of its own, so that only its neighbours can be asked."
    asides = {one.name: f"accuracy {one.errors.accuracy.value:.3f}" for one in judged} if job == "errors" else {}
    plots.draw_intervals(_headed(into, _JOBS[job], told), panels, start=_START, asides=asides)


def _headed(into: SubFigure, heading: str, told: str) -> SubFigure:
    """Write a heading and a line below it at the top of a part of the figure, and hand over the rest of it."""
    _, height = plots.inches(into)
    top, rest = _rows(into, _HEADING, height - _HEADING)
    top.text(0, 0.72, heading, fontsize=15, weight="bold", color=plots.INK, ha="left", va="center")
    top.text(0, 0.36, told, fontsize=11.5, color=plots.SOFT, ha="left", va="center")
    return rest


def _rows(into: Figure | SubFigure, *heights: float) -> list[SubFigure]:
    return list(into.subfigures(len(heights), 1, squeeze=False, height_ratios=heights, hspace=0)[:, 0])


def _columns(into: Figure | SubFigure, *widths: float) -> list[SubFigure]:
    return list(into.subfigures(1, len(widths), squeeze=False, width_ratios=widths, wspace=0)[0])


def _write(into: SubFigure, inches: float, words: str, size: float, **style: Any) -> None:
    """Words at the left margin, so many inches below the top."""
    width, height = plots.inches(into)
    into.text(_MARGIN / width, 1 - inches / height, words, fontsize=size, ha="left", va="top", **style)
