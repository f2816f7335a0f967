"""Predictions beside their neighbours: why one is trusted and another is not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vicinal import checks
from vicinal.checks import Integers, Pixels
from vicinal.errors import InputError, ShapeError
from vicinal.plots.canvas import AGREES, CONTRADICTS, INK, SOFT, figure
from vicinal.values import Neighbors, Trust

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["draw_neighbor_gallery", "least_trusted", "neighbor_gallery"]

# In widths of an image: where the words beside an input and its first neighbour begin, from one neighbour to the next,
# the heading, and the size of the words.
_SAID, _FIRST, _STEP, _HEADING, _SMALL = 1.14, 3.05, 1.1, 0.55, 0.185
_MARGIN = 0.2  # around a gallery that stands alone, above and at its sides


def least_trusted(trust: Trust, count: int) -> Integers:
    """(count,), the predictions with the lowest log-odds, the lowest first."""
    count = checks.whole(count, "count", low=1)
    found: Integers = np.argsort(trust.log_odds, kind="stable")[:count].astype(np.int64)
    return found


def neighbor_gallery(
    images: Any,
    bank_images: Any,
    trust: Trust,
    *,
    labels: Any = None,
    rows: Any = None,
    count: int = 5,
    shown: int = 8,
    names: Mapping[int, str] | None = None,
    cmap: str = "gray",
) -> Figure:
    """Predictions beside the training images that speak for and against them: why a prediction is trusted or not.

    Args:
        images: (m, h, w, 3), (m, h, w, 1) or (m, h, w), uint8: what was classified.
        bank_images: (n, h, w, ...), uint8: the image of each row of the bank.
        trust: of a score that looks at neighbours, such as ``distance``, for all m predictions.
        labels: (m,), the true classes, where they are known.
        rows: which of the m to show. Left out, the ``count`` least trusted, the least trusted first.
        count: how many to show.
        shown: how many neighbours of each, the nearest first.
        names: a word for each class. Left out, classes are shown as numbers.
        cmap: of grey images, as matplotlib names it: ``"gray"``, or ``"gray_r"`` for ink on paper.

    Example:
        >>> import vicinal
        >>> bank = vicinal.Bank([[0.0], [1.0], [3.0]], labels=[0, 0, 1])
        >>> trust = vicinal.distance(bank, [[2.2]], predicted=[0], k=3)
        >>> noise = np.random.default_rng(0).integers(0, 256, (4, 8, 8), np.uint8)
        >>> picture = neighbor_gallery(noise[3:], noise[:3], trust, names={0: "cat", 1: "dog"})
        >>> [words.get_text() for words in picture.axes[0].texts if words.get_text() in ("cat", "dog")]
        ['dog', 'cat', 'cat']
    """
    chosen = least_trusted(trust, count) if rows is None else checks.labels(rows, "rows")
    plan = _Plan.of(_near(trust), chosen, shown, names or {})
    blank = figure(plan.width + 2 * _MARGIN, plan.height + _MARGIN)
    sides, ends = (_MARGIN, plan.width, _MARGIN), (_MARGIN, plan.height)
    parts = blank.subfigures(2, 3, squeeze=False, width_ratios=sides, height_ratios=ends, wspace=0, hspace=0)
    draw_neighbor_gallery(
        parts[1, 1], images, bank_images, trust, labels=labels, rows=chosen, shown=shown, names=names, cmap=cmap
    )
    return blank


def draw_neighbor_gallery(
    into: Figure | SubFigure,
    images: Any,
    bank_images: Any,
    trust: Trust,
    *,
    labels: Any = None,
    rows: Any = None,
    count: int = 5,
    shown: int = 8,
    names: Mapping[int, str] | None = None,
    cmap: str = "gray",
) -> None:
    """As :func:`neighbor_gallery`, into a figure or a part of one."""
    chosen = least_trusted(trust, count) if rows is None else checks.labels(rows, "rows")
    near, asked = _near(trust), checks.images(images, "images")
    known = checks.images(bank_images, "bank_images", shape=asked.shape[1:])
    truth = None if labels is None else checks.labels(labels, "labels", rows=len(trust), of="prediction")
    _check_rows(asked, known, trust, near, chosen)
    plan = _Plan.of(near, chosen, shown, names or {})
    pencil = _Pencil(_bare_axes(into, plan.width, plan.height), cmap)
    _draw_heading(pencil, trust)
    for place, row in enumerate(chosen):
        top = _HEADING + plan.row * place
        _draw_query(pencil, plan, top, trust, int(row), asked[row], None if truth is None else int(truth[row]))
        for column in range(plan.columns):
            image = known[int(near.indices[row, column])]
            _draw_neighbor(pencil, plan, top, trust, int(row), column, image)


@dataclass(frozen=True)
class _Plan:
    """What stands where, in widths of an image.

    Attributes:
        columns: how many neighbours of each.
        rows: how many predictions.
        names: a word for each class.
        lines: 2 where the words are so long that the distances need a line of their own, below the classes.
        decimals: of the distances.
    """

    columns: int
    rows: int
    names: Mapping[int, str]
    lines: int
    decimals: int

    @classmethod
    def of(cls, near: Neighbors, chosen: Integers, shown: int, names: Mapping[int, str]) -> _Plan:
        """Look at the longest words and the largest distance."""
        columns = min(checks.whole(shown, "shown", low=1), near.k)
        rows = chosen[(chosen >= 0) & (chosen < len(near))]
        farthest = float(near.distances[rows, :columns].max(initial=1e-9))
        decimals = int(np.clip(2 - np.floor(np.log10(farthest)), 0, 6))
        words = {names.get(int(label), str(label)) for label in np.unique(near.labels[rows, :columns])}
        widest = max((_SMALL * _width_of(word, "bold") for word in words), default=0.0)
        number = _SMALL * _width_of(f"{farthest:.{decimals}f}", "normal")
        return cls(columns, len(chosen), names, 1 if widest + number < 0.9 else 2, decimals)

    @property
    def row(self) -> float:
        """The height of a row."""
        return 1.38 + 0.24 * self.lines

    @property
    def width(self) -> float:
        """Of everything; the heading needs some, too."""
        return max(_FIRST + _STEP * self.columns, _FIRST + 7.4)

    @property
    def height(self) -> float:
        """Of everything."""
        return _HEADING + self.row * self.rows

    def name(self, label: int) -> str:
        """The word for a class."""
        return self.names.get(label, str(label))


class _Pencil:
    """Draws images and words into the one bare axes of a gallery."""

    def __init__(self, axes: Axes, cmap: str) -> None:
        self.axes, self._cmap = axes, cmap
        left, right = axes.get_xlim()
        self.tile = axes.get_window_extent().width / axes.figure.dpi / (right - left) * 72  # points

    def show(self, left: float, top: float, image: Pixels, colour: str, gid: str) -> None:
        """An image in a frame one unit wide; one that is not square leaves some of it free."""
        from matplotlib.patches import Rectangle

        height, width = (side / max(image.shape[:2]) for side in image.shape[:2])
        x, y = left + (1 - width) / 2, top + (1 - height) / 2
        pixels = image[..., 0] if image.shape[2] == 1 else image
        extent = (x, x + width, y + height, y)
        self.axes.imshow(pixels, cmap=self._cmap, vmin=0, vmax=255, extent=extent, gid=gid, aspect="equal")
        width_ = self.tile * 0.035
        frame = Rectangle((left, top), 1, 1, fill=False, edgecolor=colour, linewidth=width_, gid=gid, clip_on=False)
        self.axes.add_patch(frame)

    def write(
        self, x: float, y: float, words: str, colour: str, *, size: float = 1.0, room: float = np.inf, **style: Any
    ) -> None:
        """Words on this base line, made smaller where they would take more than the room there is."""
        size *= _SMALL
        needed = size * _width_of(words, style.get("weight", "normal"))
        points = self.tile * size * min(1.0, room / max(needed, 1e-9))
        self.axes.text(x, y, words, color=colour, fontsize=points, va="baseline", **style)


def _draw_heading(pencil: _Pencil, trust: Trust) -> None:
    pencil.write(0, 0.22, "input", SOFT)
    if trust.predicted is not None:
        pencil.write(_SAID, 0.22, "predicted", SOFT)
    pencil.write(_FIRST, 0.22, "nearest training images: class, distance", SOFT)
    if trust.predicted is not None:
        pencil.write(_FIRST + 4.25, 0.22, "■ class predicted", AGREES)
        pencil.write(_FIRST + 6.3, 0.22, "■ another", CONTRADICTS, weight="bold")


def _draw_query(
    pencil: _Pencil, plan: _Plan, top: float, trust: Trust, row: int, image: Pixels, truth: int | None
) -> None:
    """The image that was classified, and what is said of it."""
    predicted = None if trust.predicted is None else int(trust.predicted[row])
    right = predicted == truth
    judged = truth is not None and predicted is not None
    colour = (AGREES if right else CONTRADICTS) if judged else INK
    pencil.show(0, top, image, colour, f"query:{row}")
    room = _FIRST - _SAID - 0.12
    if predicted is not None:
        pencil.write(_SAID, top + 0.27, f"“{plan.name(predicted)}”", INK, size=1.27, room=room, weight="bold")
    if truth is not None:
        said = "right" if judged and right else f"{'wrong: ' if judged else ''}it is {plan.name(truth)}"
        pencil.write(_SAID, top + 0.56, said, colour, room=room)
    number = float(trust.confidence[row])
    said = _share(number) if trust.probability else f"{number:.3g}"
    pencil.write(_SAID, top + 0.85, f"confidence {said}", SOFT, room=room)


def _draw_neighbor(
    pencil: _Pencil, plan: _Plan, top: float, trust: Trust, row: int, column: int, image: Pixels
) -> None:
    """One neighbour: its image, its class and how far away it is."""
    near = _near(trust)
    label, distance = int(near.labels[row, column]), float(near.distances[row, column])
    colour, weight = INK, "normal"
    if trust.predicted is not None:
        agrees = label == int(trust.predicted[row])
        colour, weight = (AGREES, "normal") if agrees else (CONTRADICTS, "bold")
    left = _FIRST + _STEP * column
    pencil.show(left, top, image, colour, f"neighbor:{row}:{column}")
    pencil.write(left, top + 1.26, plan.name(label), colour, weight=weight, room=1.0)
    number, below = f"{distance:.{plan.decimals}f}", top + 1.02 + 0.24 * plan.lines
    if plan.lines == 1:
        pencil.write(left + 1, below, number, SOFT, size=0.92, ha="right")
    else:
        pencil.write(left, below, number, SOFT, size=0.92)


def _width_of(words: str, weight: str) -> float:
    """How wide words are, in multiples of the size of their letters."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    if not words.strip():
        return 0.0
    path = TextPath((0, 0), words, size=1, prop=FontProperties(weight=weight))
    return float(path.get_extents().x1)


def _bare_axes(into: Figure | SubFigure, width: float, height: float) -> Axes:
    """Axes without anything, in units of an image, from the top left, with square units."""
    axes: Axes = into.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set(xlim=(-0.03, width), ylim=(height, 0))
    axes.set_aspect("equal", adjustable="box", anchor="NW")
    axes.apply_aspect()
    axes.set_autoscale_on(False)
    return axes


def _near(trust: Trust) -> Neighbors:
    if trust.neighbors is None:
        raise InputError(f"trust: expected one of a score that looks at neighbours, got {trust.name!r}; use distance")
    return trust.neighbors


def _check_rows(images: Pixels, bank_images: Pixels, trust: Trust, near: Neighbors, rows: Integers) -> None:
    checks.same_length(images, trust.log_odds, "images and trust")
    if len(rows) == 0:
        raise ShapeError("rows: expected at least one, got none")
    if rows.min() < 0 or rows.max() >= len(trust):
        raise InputError(f"rows: expected indices from 0 to {len(trust) - 1}, got {rows.min()} to {rows.max()}")
    last = int(near.indices[rows].max())
    if last >= len(bank_images):
        raise ShapeError(
            f"bank_images: expected an image for each row of the bank, got {len(bank_images)} and a neighbour in "
            f"row {last}"
        )


def _share(value: float) -> str:
    """A confidence in few digits, never rounded to a certainty that it is not."""
    value = float(value)
    if 0 < value < 0.01:
        return "< 0.01"
    if 0.99 < value < 1:
        return "> 0.99"
    return f"{value:.2f}"
