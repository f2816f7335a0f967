"""What condensing costs, as small multiples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from vicinal import checks
from vicinal.condensation import CondensationCurve, CurvePoint
from vicinal.metrics import Interval
from vicinal.plots.canvas import AGREES, FAINT, INK, SOFT, figure, grid, name_axes, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["condensation", "draw_condensation"]

What: TypeAlias = Literal["auroc", "risk", "accuracy"]


def condensation(curve: CondensationCurve, what: What = "auroc", *, columns: int = 4) -> Figure:
    """A panel for each method: a metric against the share of the bank that is kept, with its intervals.

    Each panel has its own line and band in front of all other lines, in faint grey; the dotted line is the whole bank.

    Args:
        curve: what was measured.
        what: ``"auroc"``, ``"risk"`` at the coverage of the curve, or ``"accuracy"`` of the nearest point's class.
        columns: how many panels stand side by side.
    """
    columns = min(checks.whole(columns, "columns", low=1), len(curve.methods))
    rows = -(-len(curve.methods) // columns)
    blank = figure(2.8 * columns + 0.9, 2.2 * rows + 0.7)
    draw_condensation(blank, curve, what, columns=columns)
    return blank


def draw_condensation(
    into: Figure | SubFigure, curve: CondensationCurve, what: What = "auroc", *, columns: int = 4
) -> None:
    """As :func:`condensation`, into a figure or a part of one."""
    what = checks.one_of(what, "what", get_args(What))
    panels = grid(
        into, -(-len(curve.methods) // columns), columns, left=0.8, right=0.25, bottom=0.68, top=0.35, gap=0.45
    )
    for place, axes in enumerate(panels):
        if place >= len(curve.methods):
            axes.set_visible(False)
            continue
        _draw(axes, curve, curve.methods[place], what)
        style(axes, bottom=place + columns >= len(curve.methods), left=place % columns == 0)
    _frame(panels[0], curve, what)
    if not np.isnan(_of(curve.whole, what).value):
        _name_whole(panels[0], _of(curve.whole, what).value)
    name_axes(into, "share of the bank that is kept", _title(curve, what))


def _of(point: CurvePoint, what: str) -> Interval:
    found: Interval = getattr(point, what)
    return found


def _draw(axes: Axes, curve: CondensationCurve, method: str, what: str) -> None:
    for other in (name for name in curve.methods if name != method):
        line = [_of(point, what).value for point in curve.of(other)]
        axes.plot(_shares(curve, other), line, color=FAINT, linewidth=0.9, gid=f"behind:{other}", zorder=2)
    whole = _of(curve.whole, what).value
    axes.axhline(whole, color=SOFT, linewidth=0.9, linestyle=(0, (1, 2)), gid="whole", zorder=3)
    found = [_of(point, what) for point in curve.of(method)]
    low, high = [one.low for one in found], [one.high for one in found]
    shares = _shares(curve, method)
    axes.fill_between(shares, low, high, color=AGREES, alpha=0.15, linewidth=0, zorder=3)
    axes.plot(
        shares,
        [one.value for one in found],
        "o-",
        color=AGREES,
        linewidth=2.0,
        markersize=4.0,
        gid=f"curve:{method}",
        zorder=4,
    )
    axes.set_title(method, loc="left", fontsize=11, color=INK, weight="bold", pad=5)


def _shares(curve: CondensationCurve, method: str) -> list[float]:
    return [point.share for point in curve.of(method)]


def _frame(axes: Axes, curve: CondensationCurve, what: str) -> None:
    """A logarithmic axis of shares with the shares that were measured, as far as their words have room."""
    shares = sorted({point.share for point in curve.points[1:]})
    shown = [share for place, share in enumerate(shares) if place == 0 or share >= 1.9 * shares[place - 1]]
    axes.set_xscale("log")
    axes.minorticks_off()
    axes.set_xticks(shown, [f"{100 * share:g}%" for share in shown])
    wide = 1.15 if len(shares) > 1 else 2.0
    axes.set_xlim(shares[0] / wide, shares[-1] * wide)
    ends = [end for point in curve.points for one in [_of(point, what)] for end in (one.low, one.high)]
    low, high = (float(end) for end in (np.nanmin(ends), np.nanmax(ends)))
    span = max(high - low, 0.02)
    step = next(step for step in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2) if span / step <= 5 or step == 0.2)
    ticks = step * np.arange(np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9) + 1)
    axes.set_yticks(ticks, [f"{tick:.3f}" if step < 0.01 else f"{tick:.2f}" for tick in ticks])
    axes.set_ylim(low - 0.06 * span, high + 0.06 * span)


def _name_whole(axes: Axes, value: float) -> None:
    """Say once what the dotted line is."""
    from matplotlib.patheffects import withStroke

    (left, _), (low, high) = axes.get_xlim(), axes.get_ylim()
    way, side = (-3, "top") if value > (low + high) / 2 else (3, "bottom")
    words = axes.annotate(
        "whole bank", (left, value), (3, way), textcoords="offset points", fontsize=8.5, color=SOFT, va=side, zorder=5
    )
    words.set_path_effects([withStroke(linewidth=2.5, foreground="white")])


def _title(curve: CondensationCurve, what: str) -> str:
    return {"auroc": "AUROC", "risk": f"risk at {curve.coverage:.0%} coverage", "accuracy": "accuracy of 1-NN"}[what]
