"""Figures that pyplot knows nothing of, their colours and margins, and the way to a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vicinal import checks, store
from vicinal.errors import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = [
    "AGREES",
    "CONTRADICTS",
    "FAINT",
    "FORMATS",
    "INK",
    "SOFT",
    "figure",
    "grid",
    "inches",
    "name_axes",
    "save",
    "spaced",
    "style",
]

AGREES, CONTRADICTS = "#0072B2", "#C44E00"
INK, SOFT, FAINT, LINE = "#1F2328", "#5F6873", "#AEB7C1", "#E4E7EB"
FORMATS = ("png", "pdf", "svg", "jpg")
_DATES = {"pdf": "CreationDate", "svg": "Date"}  # drawings of lines, and what they call the time of writing
_FINE = 300  # pixels an inch of the images inside such a drawing, which can be enlarged


def figure(width: float, height: float) -> Figure:
    """A blank figure of this many inches, 100 pixels each, that pyplot knows nothing of."""
    module = require("matplotlib.figure", "plots", "a picture")
    agg = require("matplotlib.backends.backend_agg", "plots", "a picture")
    blank: Figure = module.Figure(figsize=(width, height), dpi=100, facecolor="white")
    agg.FigureCanvasAgg(blank)
    return blank


def save(picture: Figure, path: str | Path) -> None:
    """Write a figure in place of what is at ``path``, whole or not at all; the ending says the format.

    The same figure gives the same bytes, whenever it is written.
    """
    matplotlib = require("matplotlib", "plots", "a picture")
    form = checks.one_of(checks.path(path).suffix.lower().lstrip("."), "ending of the picture's file", FORMATS)
    undated, dots = ({_DATES[form]: None}, _FINE) if form in _DATES else (None, picture.dpi)
    with store.replacing(path) as file, matplotlib.rc_context({"svg.hashsalt": "vicinal"}):
        picture.savefig(file, format=form, metadata=undated, dpi=dots)


def grid(
    into: Figure | SubFigure,
    rows: int,
    columns: int,
    *,
    left: float,
    right: float,
    bottom: float,
    top: float,
    gap: float,
) -> list[Axes]:
    """Panels that share their axes, with margins and gaps in inches, row by row."""
    width, height = inches(into)
    panel = (width - left - right - gap * (columns - 1)) / columns, (height - bottom - top - gap * (rows - 1)) / rows
    margins = {"left": left / width, "right": 1 - right / width, "bottom": bottom / height, "top": 1 - top / height}
    gaps = {"wspace": gap / panel[0], "hspace": gap / panel[1]}
    panels = into.subplots(rows, columns, sharex=True, sharey=True, squeeze=False, gridspec_kw={**margins, **gaps})
    return list(np.ravel(panels))


def inches(into: Figure | SubFigure) -> tuple[float, float]:
    """Width and height of a figure or a part of one."""
    return into.bbox.width / into.dpi, into.bbox.height / into.dpi


def name_axes(into: Figure | SubFigure, across: str, up: str = "") -> None:
    """What the shared axes of all panels show, at the lower and the left edge."""
    width, height = inches(into)
    shown = [axes.get_position() for axes in into.axes]
    x0, x1 = min(box.x0 for box in shown), max(box.x1 for box in shown)
    y0, y1 = min(box.y0 for box in shown), max(box.y1 for box in shown)
    into.text((x0 + x1) / 2, 0.12 / height, across, fontsize=10.5, color=SOFT, ha="center", va="baseline")
    into.text(0.12 / width, (y0 + y1) / 2, up, fontsize=10.5, color=SOFT, rotation=90, ha="left", va="center")


def style(axes: Axes, *, bottom: bool, left: bool) -> None:
    """Faint lines, no box, and numbers only where a row or a column of panels ends."""
    axes.set_facecolor("white")
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(side == "bottom")
        axes.spines[side].set_color(FAINT)
    axes.grid(color=LINE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, pad=5, labelsize=9, labelcolor=SOFT, labelbottom=bottom, labelleft=left)


def spaced(name: str) -> str:
    """A name of the library as words: ``trust_ratio`` as trust ratio."""
    return name.replace("_", " ")
