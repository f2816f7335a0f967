"""Pictures: the neighbours behind predictions, risk-coverage curves, and scores with their intervals.

    neighbor_gallery    the least trusted predictions beside their nearest training images
    risk_coverage       one small panel for each score, its curve in front of all others
    intervals           one dot and its interval for each score, side by side for several questions
    condensation        one small panel for each method of condensing, a metric against the share that is kept

Each returns a matplotlib ``Figure`` that belongs to nobody: pyplot and its settings are not touched, nothing is shown.
``save`` writes one, whole or not at all. The ``draw_`` functions draw the same into a part of a larger figure. Blue
stands for what agrees with a prediction, orange for what contradicts it, colours that the colour-blind tell apart
(after Okabe and Ito 2008); everything that a colour says is also said in words.

matplotlib is needed only here: ``pip install 'vicinal[plots]'``.
"""

from vicinal.plots.canvas import AGREES, CONTRADICTS, FORMATS, INK, SOFT, figure, inches, save
from vicinal.plots.curves import draw_risk_coverage, risk_coverage
from vicinal.plots.dots import draw_intervals, intervals
from vicinal.plots.gallery import draw_neighbor_gallery, least_trusted, neighbor_gallery
from vicinal.plots.shares import condensation, draw_condensation

__all__ = [
    "AGREES",
    "CONTRADICTS",
    "FORMATS",
    "INK",
    "SOFT",
    "condensation",
    "draw_condensation",
    "draw_intervals",
    "draw_neighbor_gallery",
    "draw_risk_coverage",
    "figure",
    "inches",
    "intervals",
    "least_trusted",
    "neighbor_gallery",
    "risk_coverage",
    "save",
]
