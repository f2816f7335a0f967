"""The demo: train small networks on the digits of scikit-learn, and ask which of their predictions to trust.

    load_digits ─▶ learn ─▶ Views of each network ─▶ judge ─▶ Judged (errors, novelties) ─▶ DemoResult and its picture

Two of the ten digits are never shown to the networks and serve as novelties. The networks learn from few images, so
that there are errors to predict. With torch there are three, trained as in the paper (plain, distance loss,
adversarial); without it, one of scikit-learn. The *hybrid* asks the neighbours in the adversarial network's embedding
about the predictions of the plain one.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from vicinal import checks, plots, tables
from vicinal.demo.digits import Digits, load_digits
from vicinal.demo.judging import Judged, Verdict, judge, settle
from vicinal.demo.result import DemoResult, found_in, told_of
from vicinal.demo.views import Views, learn
from vicinal.errors import MissingExtraError, WriteError
from vicinal.progress import track

__all__ = ["DemoResult", "Digits", "Judged", "Verdict", "Views", "judge", "learn", "load_digits", "run", "settle"]

_ENDINGS = tuple(f".{form}" for form in plots.FORMATS)
_LAST_SEED = 2**32 - 1  # that scikit-learn takes


def run(out: str | Path = "demo.png", *, seed: int = 0) -> DemoResult:
    """Train on digits, score every prediction, evaluate the scores, draw a picture.

    Args:
        out: the picture's file; its ending says the format.
        seed: decides which images are trained on, the networks, and the bootstrap samples.

    Returns:
        DemoResult: the evaluations, in words too. Without matplotlib there is no picture, and without torch only one
        network; a note says which command installs them.
    """
    target = _check_target(out)
    digits = load_digits(checks.whole(seed, "seed", low=0, high=_LAST_SEED))
    views, notes = learn(digits, seed)
    judged = tuple(judge(one, seed) for one in track(views, "evaluating"))
    story, finding = told_of(digits, views), found_in(judged[0], views[0])
    verdicts = settle(judged, views[0].test.correct, seed)
    notes += tuple(dict.fromkeys(f"{one.name}: {note}" for one in judged for note in one.errors.notes))
    try:
        from vicinal.demo.picture import draw

        plots.save(draw(digits, views[0], judged, finding, story), target)
    except MissingExtraError as missing:
        return DemoResult(judged, story, finding, verdicts, None, (*notes, str(missing)))
    return DemoResult(judged, story, finding, verdicts, target, notes)


def _check_target(out: str | Path) -> Path:
    """Refuse a place where no picture can be written before anything is trained."""
    target = tables.check_target(out, _ENDINGS)
    try:
        with tempfile.TemporaryFile(dir=target.parent):
            return target
    except OSError as error:
        raise WriteError(f"{target}: expected a folder that can be written, got: {error.strerror}") from error
