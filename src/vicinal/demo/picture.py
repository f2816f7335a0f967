"""The picture of the demo: whom the network asked and who answered, and what each score is worth."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from vicinal import plots
from vicinal.demo.digits import NOVEL, Digits
from vicinal.demo.judging import ON_NEIGHBORS, ON_OUTPUTS, SCORES, Judged
from vicinal.demo.result import SHOWN
from vicinal.demo.views import Views
from vicinal.evaluate import Evaluation

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

__all__ = ["draw"]

_WIDTH, _MARGIN = 16.0, 0.5  # inches, of 100 pixels
_HEAD, _HEADING = 2.1, 0.62
_START = 0.8  # of the axis of the AUROC: what lies far below would press all others together


def draw(digits: Digits, view: Views, judged: Sequence[Judged], finding: str, story: str) -> Figure:
    """1600 pixels wide: the least trusted predictions of the first network, its curves, the intervals of all."""
    whole = plots.figure(_WIDTH, _HEAD + 8.2 + 3.9)
    head, middle, foot = _rows(whole, _HEAD, 8.2, 3.9)
    _write(head, 0.42, finding.replace("; ", ";\n"), 24, weight="bold", color=plots.INK, linespacing=1.25)
    _write(head, 1.36, textwrap.fill(story, 175), 12.5, color=plots.SOFT, linespacing=1.4)
    _, left, _, right, _ = _columns(middle, _MARGIN, 9.2, 0.5, 5.5, 0.3)
    gallery = _headed(left, f"The {view.name} network's least trusted predictions and their neighbours")
    plots.draw_neighbor_gallery(
        gallery,
        digits.test,
        digits.train,
        judged[0].trusts["distance"],
        labels=digits.test_labels,
        count=SHOWN,
        cmap="gray_r",
    )
    curves = _headed(right, "Of its most trusted, how many are wrong?")
    in_turn = [name for pair in zip(ON_NEIGHBORS, ON_OUTPUTS, strict=True) for name in pair]
    trusts = {name: judged[0].trusts[name] for name in in_turn}
    plots.draw_risk_coverage(curves, trusts, view.test.correct, columns=2, start=0.5)
    _draw_questions(foot, judged)
    return whole


def _draw_questions(into: SubFigure, judged: Sequence[Judged]) -> None:
    _, left, _, right, _ = _columns(into, _MARGIN, 7.4, 0.4, 7.4, 0.3)
    unseen = " or ".join(map(str, NOVEL))
    questions: tuple[tuple[SubFigure, str, list[Evaluation]], ...] = (
        (left, "Which score tells wrong predictions from right ones?", [one.errors for one in judged]),
        (right, f"Which tells digits never seen ({unseen}) from known ones?", [one.novelties for one in judged]),
    )
    for part, question, found in questions:
        panels = {
            one.name: {name: each.interval(name) for name in SCORES if name in each.scores}
            for one, each in zip(judged, found, strict=True)
        }
        plots.draw_intervals(
            _headed(part, question),
            panels,
            what="AUROC and its 95% interval (1 is perfect, 0.5 is chance)",
            start=_START,
        )


def _headed(into: SubFigure, heading: str) -> SubFigure:
    """Write a heading at the top of a part of the figure, and hand over the rest of it."""
    _, height = plots.inches(into)
    top, rest = _rows(into, _HEADING, height - _HEADING)
    top.text(0, 0.5, heading, fontsize=15, weight="bold", color=plots.INK, ha="left", va="center")
    return rest


def _rows(into: Figure | SubFigure, *heights: float) -> list[SubFigure]:
    return list(into.subfigures(len(heights), 1, squeeze=False, height_ratios=heights, hspace=0)[:, 0])


def _columns(into: Figure | SubFigure, *widths: float) -> list[SubFigure]:
    return list(into.subfigures(1, len(widths), squeeze=False, width_ratios=widths, wspace=0)[0])


def _write(into: SubFigure, inches: float, words: str, size: float, **style: Any) -> None:
    """Words at the left margin, so many inches below the top."""
    width, height = plots.inches(into)
    into.text(_MARGIN / width, 1 - inches / height, words, fontsize=size, ha="left", va="top", **style)
