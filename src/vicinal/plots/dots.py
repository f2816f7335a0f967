"""Scores as dots with their intervals, side by side for several questions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from vicinal.errors import InputError
from vicinal.metrics import Interval
from vicinal.plots.canvas import AGREES, INK, SOFT, figure, grid, inches, name_axes, spaced, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["draw_intervals", "intervals"]

_NUMBER = 0.58  # inches that a number at the right of its interval takes
_TICK = 0.48  # inches that the words of a tick take


def intervals(
    questions: Mapping[str, Mapping[str, Interval]],
    *,
    what: str = "AUROC",
    start: float | None = None,
    asides: Mapping[str, str] | None = None,
) -> Figure:
    """A metric of several scores with its interval, the questions side by side.

    Args:
        questions: for each question, such as ``"Is the prediction wrong?"``, the interval of each score. The first has
            all scores, drawn from the top in its order; others may lack some. What is undefined (NaN) is left out.
        what: the metric, as the axis names it.
        start: where the axis begins; a score below it is an arrow at the edge, with its number. Left out, all fit in.
        asides: for some questions, a few words at the right of the question, such as the accuracy.

    Example:
        >>> picture = intervals({"Is it wrong?": {"distance": Interval(0.9, 0.8, 0.95)}})
        >>> picture.axes[0].get_title(loc="left")
        'Is it wrong?'
    """
    rows = max((len(scores) for scores in questions.values()), default=0)
    blank = figure(1.6 + 4.2 * max(1, len(questions)), 0.34 * rows + 1.2)
    draw_intervals(blank, questions, what=what, start=start, asides=asides)
    return blank


def draw_intervals(
    into: Figure | SubFigure,
    questions: Mapping[str, Mapping[str, Interval]],
    *,
    what: str = "AUROC",
    start: float | None = None,
    asides: Mapping[str, str] | None = None,
) -> None:
    """As :func:`intervals`, into a figure or a part of one."""
    names = list(next(iter(questions.values()), {}))
    if not names:
        raise InputError("questions: expected at least one with at least one score, got none")
    for question, scores in questions.items():
        if not set(scores) <= set(names):
            raise InputError(f"questions: expected the scores {names} in {question!r}, got {list(scores)}")
    panels = grid(into, 1, len(questions), left=1.45, right=0.1, bottom=0.62, top=0.45, gap=0.3)
    defined = [one for scores in questions.values() for one in scores.values() if not math.isnan(one.value)]
    low = _frame(panels[0], defined, start, inches(into)[0] * panels[0].get_position().width)
    for axes, (question, scores) in zip(panels, questions.items(), strict=True):
        for place, name in enumerate(names):
            if name in scores and not math.isnan(scores[name].value):
                _draw_dot(axes, place, name, scores[name], low)
        style(axes, bottom=True, left=axes is panels[0])
        axes.set_title(question, loc="left", fontsize=11.5, color=INK, weight="bold", pad=9)
        axes.set_title((asides or {}).get(question, ""), loc="right", fontsize=9.5, color=SOFT, pad=9)
    panels[0].set_ylim(len(names) - 0.4, -0.6)
    panels[0].set_yticks(range(len(names)), [spaced(name) for name in names], fontsize=11, color=INK)
    name_axes(into, what)


def _frame(axes: Axes, found: Sequence[Interval], start: float | None, width: float) -> float:
    """Limits that leave room for the numbers at the right, ticks that leave room for their words; the lower limit."""
    high = max((one.high for one in found), default=1.0)
    low = min((one.low for one in found), default=0.0) if start is None else start
    span = max(high - low, 0.02)
    usable = max(0.3, width - _NUMBER)
    most = max(2.0, usable / _TICK)
    steps = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5)
    step = next((step for step in steps if span / step <= most), 1.0)
    ticks = step * np.arange(math.ceil(low / step - 1e-9), math.floor(high / step + 0.5) + 1)
    axes.set_xlim(low - 0.05 * span, high + _NUMBER * span / usable)
    axes.set_xticks(ticks, [f"{tick:.2f}" for tick in ticks])
    return low


def _draw_dot(axes: Axes, place: int, name: str, one: Interval, low: float) -> None:
    """A dot, its interval and its number; an arrow at the left edge for what lies beyond it."""
    beyond = one.value < low
    if not beyond:
        ends = [max(one.low, low), one.high]
        axes.plot(ends, [place, place], color=AGREES, linewidth=2.2, alpha=0.75, solid_capstyle="round")
    marker, size, x = ("<", 6.0, low) if beyond else ("o", 6.5, one.value)
    axes.plot([x], [place], marker, color=AGREES, markersize=size, markeredgewidth=0, gid=f"dot:{name}")
    end = (low if beyond else one.high, place)
    style_ = {"textcoords": "offset points", "fontsize": 9.5, "color": INK, "va": "center_baseline"}
    axes.annotate(f"{one.value:.3f}", end, (7, 0), **style_)  # type: ignore[arg-type]
