"""Learning rates over a run, as data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from vicinal import checks
from vicinal.errors import InputError

__all__ = ["LARGEST", "OneCycle", "Piecewise", "Schedule", "schedule_from_json", "schedule_to_json"]

LARGEST = 1e9  # no rate, weight or margin of a sensible recipe is larger


@dataclass(frozen=True)
class Piecewise:
    """A rate that is constant for a while, then another.

    Args:
        until: the step (not included) up to which each rate holds, increasing; the last one is the length of the run.
        rates: the rates.
        warmup: steps over which the first rate is approached in equal strides; 0 for none.

    Example:
        >>> Piecewise(until=(30, 50), rates=(0.1, 0.01)).rate(30, total=50)
        0.01
    """

    until: tuple[int, ...]
    rates: tuple[float, ...]
    warmup: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "until", tuple(self.until))
        object.__setattr__(self, "rates", tuple(self.rates))
        checks.whole(self.warmup, "warmup", low=0)
        for rate in self.rates:
            checks.fraction(rate, "rates", high=LARGEST, open_low=True)
        for step in self.until:
            checks.whole(step, "until", low=1)
        if len(self.until) != len(self.rates) or not self.until or list(self.until) != sorted(set(self.until)):
            raise InputError(
                f"until: expected as many increasing steps as there are rates, got {self.until} for {self.rates}"
            )

    def rate(self, step: int, total: int) -> float:
        """The rate at a step, counted from 0; ``total`` does not matter."""
        rate = next((rate for until, rate in zip(self.until, self.rates, strict=True) if step < until), self.rates[-1])
        return rate * min(1.0, (step + 1) / (self.warmup + 1))


@dataclass(frozen=True)
class OneCycle:
    """A rate that climbs to its peak in equal strides, and falls from there along a cosine.

    Args:
        peak: the highest rate.
        warmup: the share of the run spent climbing.
        start: the first rate, as a share of the peak.
        end: the last rate, as a share of the peak.

    Example:
        >>> cycle = OneCycle(peak=0.05, warmup=0.5)
        >>> [round(cycle.rate(step, total=5), 4) for step in range(5)]
        [0.0, 0.025, 0.05, 0.025, 0.0]
    """

    peak: float
    warmup: float = 0.25
    start: float = 0.0
    end: float = 0.0

    def __post_init__(self) -> None:
        checks.fraction(self.peak, "peak", high=LARGEST, open_low=True)
        for name in ("warmup", "start", "end"):
            checks.fraction(getattr(self, name), name)

    def rate(self, step: int, total: int) -> float:
        """The rate at a step, counted from 0, of a run of ``total``."""
        done = step / max(1, total - 1)
        if done < self.warmup:
            return self.peak * (self.start + (1 - self.start) * done / self.warmup)
        fallen = (done - self.warmup) / max(1e-12, 1 - self.warmup)
        return self.peak * (self.end + (1 - self.end) * (1 + math.cos(math.pi * fallen)) / 2)


Schedule: TypeAlias = "Piecewise | OneCycle"
KINDS: dict[str, type[Piecewise] | type[OneCycle]] = {"piecewise": Piecewise, "one-cycle": OneCycle}


def schedule_to_json(schedule: Schedule) -> dict[str, Any]:
    """Plain words and numbers, for a file.

    Example:
        >>> schedule_to_json(Piecewise((5,), (0.1,)))
        {'kind': 'piecewise', 'until': [5], 'rates': [0.1], 'warmup': 0}
    """
    kind = next(kind for kind, one in KINDS.items() if isinstance(schedule, one))
    parts = {name: list(part) if isinstance(part, tuple) else part for name, part in asdict(schedule).items()}
    return {"kind": kind, **parts}


def schedule_from_json(said: Any) -> Schedule:
    """The schedule that ``schedule_to_json`` wrote; anything else is refused."""
    if not isinstance(said, Mapping):
        raise InputError(f"schedule: expected a mapping with a kind, got {said!r}")
    kind = checks.one_of(said.get("kind"), "schedule kind", tuple(KINDS))
    try:
        return KINDS[kind](**{name: part for name, part in said.items() if name != "kind"})
    except TypeError as error:
        raise InputError(f"schedule: expected the fields of {KINDS[kind].__name__}, got {dict(said)}") from error
