"""The distance score by other banks than the whole one: 5 % of it, or all of it searched approximately."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from vicinal import score
from vicinal.bank import Bank
from vicinal.checks import Floats
from vicinal.condensation import condense
from vicinal.paper.chosen import best_k
from vicinal.paper.networks import Entry
from vicinal.paper.remembering import Remembering
from vicinal.paper.scores import K, usable
from vicinal.paper.views import Views
from vicinal.values import Embeddings

__all__ = ["APPROXIMATE", "RECALL", "SHARE", "approximately", "banks", "by_other_banks", "condensed"]

SHARE = 0.05
RECALL = 0.99
APPROXIMATE = "all, approximately"
_SEED = 0


def condensed(bank: Bank, *, weighted: bool = True) -> Bank:
    """5 % of a bank by k-means within classes; without weights, each centre counts as one point."""
    return condense(bank, "k-means", SHARE, weighted=weighted, seed=_SEED).bank


def approximately(bank: Bank) -> Bank:
    """The same bank, searched approximately."""
    return Bank(bank.vectors, bank.labels, search="approximate", recall=RECALL)


def banks() -> Mapping[str, Callable[[Bank], Bank]]:
    """How other banks are made of the whole one, by name; approximate search only where there is one."""
    found: dict[str, Callable[[Bank], Bank]] = {
        "5 %": condensed,
        "5 %, each counts as one": partial(condensed, weighted=False),
    }
    if importlib.util.find_spec("vicinal.search.approximate") is not None:
        found[APPROXIMATE] = approximately
    return found


def by_other_banks(views: Views, entry: Entry) -> dict[str, Floats]:
    """The log-odds of a network's test predictions by each of the other banks; k is chosen on validation points."""
    return {
        name: views.kept(f"{entry.name}--bank-{place}", (entry,), partial(_scored, views, entry, made))["log_odds"]
        for place, (name, made) in enumerate(banks().items())
    }


def _scored(views: Views, entry: Entry, made: Callable[[Bank], Bank]) -> dict[str, Floats]:
    bank = made(views.networks.bank(entry))
    ks = [k for k in usable(views.edition.ks, bank) if k <= K]
    validation, test = views.seen(entry, "validation"), views.seen(entry, "test")
    k = best_k(_ranks(bank, validation, ks), validation.correct)
    return {"log_odds": _ranks(bank, test, [k])[k], "k": np.array([float(k)])}


def _ranks(bank: Bank, seen: Embeddings, ks: list[int]) -> dict[int, Floats]:
    near = Remembering(bank, max(ks))
    return {k: score.distance(near, seen.vectors, seen.predicted, k=k).log_odds for k in ks}
