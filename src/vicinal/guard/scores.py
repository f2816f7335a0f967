"""The scores that a guard knows, on the arrays of some inputs: one search for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from vicinal import score
from vicinal.bank import Bank
from vicinal.checks import Integers
from vicinal.density import density_of
from vicinal.errors import InputError
from vicinal.selective import Fusion
from vicinal.values import LOG_PROBABILITIES, Embeddings, Trust

__all__ = ["FUSED", "NOVELTY", "SCORES", "NoveltyName", "ScoreName", "parts", "refuse_missing", "taken", "trusted"]

ScoreName: TypeAlias = Literal["fused", "distance", "margin"]
SCORES: tuple[ScoreName, ...] = ("fused", "distance", "margin")
FUSED = ("distance", "margin", "density")  # the parts of the fused score
NoveltyName: TypeAlias = Literal["density", "distance", "energy"]
NOVELTY: tuple[NoveltyName, ...] = ("density", "distance", "energy")


def parts(bank: Bank, asked: Embeddings, k: int) -> dict[str, Trust]:
    """Distance, density of the same neighbours, and margin and energy where there are logits."""
    distance = score.distance(bank, asked.vectors, asked.predicted, k=k)
    near = distance.neighbors
    if near is None or near.k < k:  # of very many inputs not all neighbours are kept
        near = bank.nearest(asked.vectors, k)
    found = {"distance": distance, "density": density_of(near)}
    if asked.logits is None:
        return found
    return found | {"margin": score.margin(asked.logits), "energy": score.energy(asked.logits)}


def refuse_missing(asked: Embeddings, name: str, novelty: str, what: str) -> None:
    """Refuse inputs that the two scores of a guard cannot look at."""
    for one in (name, novelty):
        if asked.logits is None and one in ("fused", "margin", "energy"):
            raise InputError(f"{what}: expected logits for the score {one!r}, got none; pass them in")
    if novelty == "energy" and LOG_PROBABILITIES in asked.facts.items():
        raise InputError(f"{what}: expected logits for the energy, got probabilities, which do not tell their size")


def trusted(name: str, fusion: Fusion | None, found: Mapping[str, Trust]) -> Trust:
    """The score of this name, from its parts."""
    return found[name] if fusion is None else fusion(found)


def taken(trust: Trust, rows: Integers) -> Trust:
    """Some rows of a score, without the neighbours, of which a fit needs nothing more."""
    predicted = None if trust.predicted is None else trust.predicted[rows]
    return Trust(trust.name, trust.confidence[rows], trust.log_odds[rows], predicted, probability=trust.probability)
