"""What there is to do before an edition can be shown: which networks are there, and how long the others will take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from vicinal.paper.networks import MISSING, Entry, Networks

__all__ = ["Plan", "make_plan", "shown"]

# times as long as Reg, until one has been trained: steps of the full-width network (benchmarks/results/train.json)
_FACTORS = {"reg": 1.0, "distance": 1.0, "adversarial": 2.1, "both": 2.6}


@dataclass(frozen=True)
class Plan:
    """What is there and what is left.

    Attributes:
        edition: its name.
        there: how many of the networks that are wanted can be used.
        missing: those that will be trained.
        minutes: that this takes, on so many processes as will run at once.
        lacking: for each data set that is not there, how to get it.
        refused: why networks that are there cannot be used.
    """

    edition: str
    there: int
    missing: tuple[Entry, ...]
    minutes: float
    lacking: Mapping[str, str]
    refused: tuple[str, ...]

    def __str__(self) -> str:
        left = f"{len(self.missing)} to train: {shown(self.minutes)}" if self.missing else "nothing to train"
        skipped = [f"skipped: {why}" for why in self.lacking.values()]
        return "\n".join([f"{self.edition}: {self.there} networks there, {left}", *skipped, *self.refused])


def make_plan(networks: Networks, wanted: Iterable[Entry], processes: int) -> Plan:
    """Look at the networks that are wanted.

    Args:
        networks: of the edition.
        wanted: which ones.
        processes: how many train at once.
    """
    entries = list(wanted)
    obstacles = {entry: networks.obstacle(entry) for entry in entries}
    missing = tuple(networks.to_train(entries))
    novel = {name for _, name in networks.edition.novelties}
    lacking = {
        name: why
        for name in sorted({entry.source.data for entry in entries} | novel)
        if (why := networks.lacking(name))
    }
    return Plan(
        edition=networks.edition.name,
        there=sum(not obstacle for obstacle in obstacles.values()),
        missing=missing,
        minutes=_minutes(networks, missing, entries) / max(1, min(processes, len(missing))),
        lacking=lacking,
        refused=tuple(obstacle for obstacle in obstacles.values() if obstacle not in ("", MISSING)),
    )


def shown(minutes: float) -> str:
    """A length of time in words.

    Example:
        >>> shown(0.2), shown(12.4), shown(200), shown(5000)
        ('less than a minute', 'about 12 minutes', 'about 3.3 hours', 'about 3.5 days')
    """
    if minutes < 1:
        return "less than a minute"
    if minutes < 90:
        return f"about {minutes:.0f} minutes"
    return f"about {minutes / 60:.1f} hours" if minutes < 36 * 60 else f"about {minutes / 60 / 24:.1f} days"


def _minutes(networks: Networks, missing: Sequence[Entry], entries: Sequence[Entry]) -> float:
    """For all that is missing, one after the other: as long as others of its kind took, or as the edition guesses."""
    took: dict[tuple[str, str], list[float]] = {}
    for entry in entries:
        seconds = None if entry in missing else networks.seconds(entry)
        if seconds is not None:
            took.setdefault((entry.source.data, entry.method), []).append(seconds / 60)
    slower = networks.edition.cpu if networks.device == "cpu" else 1.0
    found = 0.0
    for entry in missing:
        known = took.get((entry.source.data, entry.method))
        guess = entry.source.minutes * slower * _FACTORS[entry.method]
        found += sum(known) / len(known) if known else guess
    return found
