"""Risk-coverage curves as small multiples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vicinal import checks, metrics
from vicinal.checks import Flags, Floats
from vicinal.errors import InputError
from vicinal.plots.canvas import AGREES, FAINT, INK, SOFT, figure, grid, name_axes, spaced, style
from vicinal.values import Trust

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["draw_risk_coverage", "risk_coverage"]

_STEADY = 0.05  # coverage below which a risk rests on too few predictions to set the height of the axis


def risk_coverage(scores: Mapping[str, Any], correct: Any, *, columns: int = 4, start: float = 0.0) -> Figure:
    """The risk-coverage curves of several scores, a panel each: accept the most trusted, how many are wrong?

    Each panel has its own curve in front of all others, in faint grey, and a dotted line at the level of an order by
    chance. The area under the curve stands above it.

    Args:
        scores: for each name a ``Trust``, or (n,) numbers, larger is more trustworthy.
        correct: (n,), whether each prediction is right.
        columns: how many panels stand side by side.
        start: the coverage at which the horizontal axis begins, to look closely at the other end.

    Example:
        >>> picture = risk_coverage({"mine": [0.9, 0.8, 0.7, 0.6]}, [True, True, True, False])
        >>> [float(y) for y in picture.axes[0].lines[-1].get_ydata()]
        [0.0, 0.0, 0.0, 0.0, 0.25]
    """
    columns = min(checks.whole(columns, "columns", low=1), max(1, len(scores)))
    rows = -(-len(scores) // columns)
    blank = figure(2.8 * columns + 0.9, 2.2 * rows + 0.7)
    draw_risk_coverage(blank, scores, correct, columns=columns, start=start)
    return blank


def draw_risk_coverage(
    into: Figure | SubFigure, scores: Mapping[str, Any], correct: Any, *, columns: int = 4, start: float = 0.0
) -> None:
    """As :func:`risk_coverage`, into a figure or a part of one."""
    if not scores:
        raise InputError("scores: expected at least one, got none")
    start = checks.fraction(start, "start", high=0.95)
    right = checks.flags(correct, "correct")
    curves = {name: _curve(name, given, right) for name, given in scores.items()}
    error, top = float(1 - right.mean()), _height([curve for curve, _ in curves.values()], right, start)
    panels = grid(into, -(-len(curves) // columns), columns, left=0.75, right=0.25, bottom=0.68, top=0.35, gap=0.45)
    for place, axes in enumerate(panels):
        if place >= len(curves):
            axes.set_visible(False)
            continue
        _draw_curves(axes, list(curves)[place], curves, error)
        style(axes, bottom=place + columns >= len(curves), left=place % columns == 0)
    panels[0].set(xlim=(start, 1), ylim=(0, top))
    _percent(panels, start, top)
    _name_chance(panels[0], start, error)
    name_axes(into, "share accepted, most trusted first", "errors among the accepted")


def _curve(name: str, given: Any, right: Flags) -> tuple[tuple[Floats, Floats], float]:
    """The corners of the line, from coverage 0, and the area under it."""
    values = given.log_odds if isinstance(given, Trust) else given
    values = checks.numbers(values, f"scores[{name!r}]", rows=len(right))
    found = metrics.risk_coverage(values, right)
    line = np.concatenate([[0.0], found.coverage]), np.concatenate([found.risk[:1], found.risk])
    return line, metrics.aurc(values, right)


def _height(lines: Sequence[tuple[Floats, Floats]], right: Flags, start: float) -> float:
    """Where the axis of the risk ends: above every risk in sight that rests on more than a handful of predictions."""
    highest = max(float(risk[coverage >= max(_STEADY, start)].max()) for coverage, risk in lines)
    return 1.25 * max(highest, float(1 - right.mean()), 0.01)  # room for the word above the line of chance


def _draw_curves(axes: Axes, name: str, curves: Mapping[str, tuple[Any, float]], error: float) -> None:
    for other, (line, _) in curves.items():
        if other != name:
            axes.plot(*line, color=FAINT, linewidth=0.9, gid=f"behind:{other}", zorder=2)
    axes.axhline(error, color=SOFT, linewidth=0.9, linestyle=(0, (1, 2)), gid="chance", zorder=3)
    line, area = curves[name]
    axes.plot(*line, color=AGREES, linewidth=2.2, gid=f"curve:{name}", zorder=4, solid_joinstyle="round")
    axes.set_title(spaced(name), loc="left", fontsize=11, color=INK, weight="bold", pad=5)
    axes.set_title(f"AURC {area:.4f}", loc="right", fontsize=9.5, color=SOFT, pad=5)


def _name_chance(axes: Axes, start: float, error: float) -> None:
    """Say once what the dotted line is; a curve that crosses the words does not cross them out."""
    from matplotlib.patheffects import withStroke

    words = axes.annotate(
        "in random order", (start, error), (3, 3), textcoords="offset points", fontsize=8.5, color=SOFT, zorder=5
    )
    words.set_path_effects([withStroke(linewidth=2.5, foreground="white")])


def _percent(panels: Sequence[Axes], start: float, top: float) -> None:
    """Round percentages at both axes of panels that share them; none reaches beyond its panel at the left or right."""
    step = next(step for step in (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5) if top / step <= 4)
    ticks = step * np.arange(int(min(top, 1.0) / step + 1e-9) + 1)
    panels[0].set_yticks(ticks, [f"{100 * tick:.3g}%" for tick in ticks])
    shares = [start, (1 + start) / 2, 1.0]
    panels[0].set_xticks(shares, [f"{100 * share:.3g}%" for share in shares])
    for axes in panels:
        words = axes.get_xticklabels()
        if words:  # none, where a panel below shows them
            words[0].set_horizontalalignment("left")
            words[-1].set_horizontalalignment("right")
