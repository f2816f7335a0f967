"""A score by its name: what the command line and whoever else takes names from outside calls.

``SCORES`` says of each score what it looks at and which settings it takes. ``settings`` that no score would look at are
refused, as is a score whose input is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, Literal

from vicinal import checks, score
from vicinal.bank import Bank
from vicinal.errors import InputError
from vicinal.mass import Kernel
from vicinal.values import LOG_PROBABILITIES, Embeddings, Trust

__all__ = ["SCORES", "Score", "Settings", "apply", "default_scores", "needs"]

_PARTS = {"bank": "a bank of training points (--bank)", "predicted": "predicted classes, or logits", "logits": "logits"}
_RAW = ("max_logit", "energy")  # look at the size of logits, which probabilities do not tell


@dataclass(frozen=True)
class Settings:
    """How scores are computed; None or False: as each score has it by default.

    Args:
        k: how many neighbours, or ``"all"``.
        kernel: the weight of a neighbour: ``exp``, ``count`` or ``inverse``.
        exclude_self: the inputs are the bank's own points, in order.
        unit: measure on the unit sphere.
        relative: relative to all points together.
        temperature: what logits are divided by.
    """

    k: int | Literal["all"] | None = None
    kernel: Kernel | None = None
    exclude_self: bool = False
    unit: bool = False
    relative: bool = False
    temperature: float | None = None

    @property
    def given(self) -> dict[str, Any]:
        """Those that differ from the defaults, by name."""
        every = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in every.items() if value is not None and value is not False}


@dataclass(frozen=True)
class Score:
    """A score as it is called by name.

    Attributes:
        name: its name.
        looks_at: of ``bank``, ``predicted`` and ``logits``, what it needs.
        takes: the settings it takes.
        run: the function, on embeddings and a bank.
    """

    name: str
    looks_at: tuple[str, ...]
    takes: tuple[str, ...]
    run: Callable[..., Trust]


def _of_logits(name: str) -> Score:
    function = getattr(score, name)
    return Score(name, ("logits",), ("temperature",), lambda e, bank, **given: function(e.logits, **given))


def _on_bank(name: str, *takes: str) -> Score:
    function = getattr(score, name)
    return Score(
        name, ("bank", "predicted"), takes, lambda e, bank, **given: function(bank, e.vectors, e.predicted, **given)
    )


SCORES: Mapping[str, Score] = MappingProxyType(
    {
        one.name: one
        for one in (
            _on_bank("distance", "k", "kernel", "exclude_self"),
            Score(
                "kth_distance",
                ("bank",),
                ("k", "unit", "exclude_self"),
                lambda e, bank, **given: score.kth_distance(bank, e.vectors, **given),
            ),
            _on_bank("trust_ratio", "exclude_self"),
            _on_bank("mahalanobis", "relative"),
            *map(_of_logits, ("margin", "entropy", "top_two_gap", "max_logit", "energy")),
        )
    }
)


def needs(names: Iterable[str]) -> tuple[str, ...]:
    """What the embeddings must hold for some scores: of ``predicted`` and ``logits``."""
    looked = {part for name in names for part in _named(name).looks_at}
    return tuple(sorted(looked - {"bank"}))


def default_scores(embeddings: Embeddings, bank: Bank | None) -> tuple[str, ...]:
    """The paper's scores as far as there is something to compute them from: distance, margin, entropy."""
    with_bank = ("distance",) if bank is not None and embeddings.predicted is not None else ()
    with_logits = ("margin", "entropy") if embeddings.logits is not None else ()
    if not with_bank + with_logits:
        raise InputError("scores: expected a bank or logits to compute any from, got neither; pass one of them")
    return with_bank + with_logits


def apply(
    names: Iterable[str], embeddings: Embeddings, bank: Bank | None = None, settings: Settings | None = None
) -> dict[str, Trust]:
    """Compute scores by their names.

    Args:
        names: of ``SCORES``.
        embeddings: of the inputs to judge.
        bank: the training points, for the scores that look at them.
        settings: each must concern at least one of the scores.

    Example:
        >>> inputs = Embeddings([[0.1], [0.9]], logits=[[2.0, 0.0], [1.0, 1.5]])
        >>> found = apply(["distance", "margin"], inputs, Bank([[0.0], [1.0]], [0, 1]), Settings(k=1))
        >>> found["distance"].confidence
        array([1., 1.])
        >>> apply(["margni"], inputs)
        Traceback (most recent call last):
        ...
        vicinal.errors.InputError: score: expected one of ... got 'margni'; did you mean 'margin'?
    """
    chosen = [_named(name) for name in dict.fromkeys(names)]
    given = (settings or Settings()).given
    for setting in given:
        if not any(setting in one.takes for one in chosen):
            takers = ", ".join(one.name for one in SCORES.values() if setting in one.takes)
            raise InputError(f"{setting}: expected a score that takes it ({takers}), got {', '.join(_names(chosen))}")
    for one in chosen:
        _refuse_missing(one, embeddings, bank)
    return {
        one.name: one.run(embeddings, bank, **{name: value for name, value in given.items() if name in one.takes})
        for one in chosen
    }


def _names(scores: Iterable[Score]) -> list[str]:
    return [one.name for one in scores]


def _named(name: str) -> Score:
    return SCORES[checks.one_of(name, "score", tuple(SCORES))]


def _refuse_missing(one: Score, embeddings: Embeddings, bank: Bank | None) -> None:
    held = {"bank": bank, "predicted": embeddings.predicted, "logits": embeddings.logits}
    for part in one.looks_at:
        if held[part] is None:
            raise InputError(f"{one.name}: expected {_PARTS[part]}, got none; pass it, or choose another score")
    if one.name in _RAW and LOG_PROBABILITIES in embeddings.facts.items():
        raise InputError(f"{one.name}: expected logits, got probabilities, which do not tell how large those were")
