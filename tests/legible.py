"""Is every word of a picture whole and alone at its place? Held to account in test_plots.py."""

from __future__ import annotations

import itertools


def words_of(figure):
    """Every visible text of a figure with its box in pixels."""
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    found = [text for text in figure.findobj(lambda one: hasattr(one, "get_text")) if text.get_text().strip()]
    seen = [text for text in found if text.get_visible() and (text.axes is None or text.axes.get_visible())]
    return {f"{text.get_text()}#{place}": text.get_window_extent(renderer) for place, text in enumerate(seen)}


def assert_legible(figure):
    """No two texts overlap, and none leaves the figure."""
    boxes = words_of(figure)
    width, height = figure.canvas.get_width_height()
    for words, box in boxes.items():
        assert box.x0 >= 0, words
        assert box.y0 >= 0, words
        assert box.x1 <= width, words
        assert box.y1 <= height, words
    for (one, first), (other, second) in itertools.combinations(boxes.items(), 2):
        across = min(first.x1, second.x1) - max(first.x0, second.x0)
        down = min(first.y1, second.y1) - max(first.y0, second.y0)
        assert across <= 0.5 or down <= 0.5, f"{one!r} overlaps {other!r}"
