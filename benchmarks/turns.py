"""Contenders that take turns, so that a busy moment of the machine meets all of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["Contenders", "as_ratios", "take_turns"]

Contenders = dict[str, Callable[[], Any]]
WARM = 0.15  # seconds of runs that do not count, at the beginning of a turn


def take_turns(contenders: Contenders, rounds: int, runs: int = 1) -> dict[str, float]:
    """Median seconds of each contender over rounds in which each has a turn of so many runs that count.

    Each turn begins with runs that do not count: the threads of NumPy's matrix library go on looking for work for a
    tenth of a second after the contender before, on cores that this one needs.
    """
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            warm = time.perf_counter() + WARM
            run()
            while time.perf_counter() < warm:
                run()
            for _ in range(runs):
                begun = time.perf_counter()
                run()
                times[name].append(time.perf_counter() - begun)
    return {name: float(np.median(found)) for name, found in times.items()}


def as_ratios(seconds: dict[str, float]) -> dict[str, Any]:
    """The seconds, and each as a multiple of the floor."""
    floor = seconds["floor"]
    return {
        "floor, ms": round(floor * 1e3, 3),
        "times the floor": {name: round(found / floor, 3) for name, found in seconds.items() if name != "floor"},
        "ms": {name: round(found * 1e3, 3) for name, found in seconds.items() if name != "floor"},
    }
