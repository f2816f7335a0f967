"""The guard: one fitted object that carries all of it into production.

    guard       ``Guard``: a bank, a score, its calibration and its thresholds; inputs in, decisions out
    decisions   ``Decisions``: what it says of each input, and why
    scores      the scores that it knows, from one search
    fitting     what of it is fitted on held-out rows
    packing     its fitted parts as arrays and facts
    folder      a guard on disk: one folder, the old one whole or the new one whole

It stands above the jobs: it uses ``vicinal.selective`` and ``vicinal.novelty``, which do not know each other.
"""

from vicinal.guard.decisions import Decisions
from vicinal.guard.folder import check_folder
from vicinal.guard.guard import Guard

__all__ = ["Decisions", "Guard", "check_folder"]
