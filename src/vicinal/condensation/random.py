"""Points at random, the same share of every class: the floor."""

from __future__ import annotations

import numpy as np

from vicinal.checks import Integers
from vicinal.condensation.task import Kept, Task, by_class

__all__ = ["random"]


def random(task: Task) -> Kept:
    """Points drawn without replacement, class by class."""

    def choose(members: Integers, keep: int, generator: np.random.Generator) -> Kept:
        return Kept(np.sort(generator.choice(members, keep, replace=False)))

    return by_class(task, choose, "choosing")
