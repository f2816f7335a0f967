"""Every score of every prediction, and how good the scores are at two jobs: errors, and novelties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from vicinal import scoring
from vicinal.bank import Bank
from vicinal.demo.digits import PER_CLASS
from vicinal.demo.views import Views
from vicinal.evaluate import Evaluation, evaluate
from vicinal.values import Embeddings, Trust

__all__ = ["ON_NEIGHBORS", "ON_OUTPUTS", "SCORES", "Judged", "K", "judge"]

K = PER_CLASS  # neighbours: as many as there are training images of a class, as in the paper
ON_NEIGHBORS = ("distance", "trust_ratio", "kth_distance", "mahalanobis")
ON_OUTPUTS = ("margin", "entropy", "top_two_gap", "energy")
SCORES = (*ON_NEIGHBORS, *ON_OUTPUTS)
_SAMPLES = 1000  # of the bootstrap


@dataclass(frozen=True, eq=False)
class Judged:
    """How good the scores are on one network.

    Attributes:
        name: of the network.
        errors: whether they tell right predictions from wrong ones, on the test images.
        novelties: whether they tell the test images from digits never seen.
        trusts: the scores of the test images.
    """

    name: str
    errors: Evaluation
    novelties: Evaluation
    trusts: Mapping[str, Trust]


def judge(view: Views, seed: int) -> Judged:
    """Score the predictions of one network, those that look at neighbours only where there are no logits."""
    bank = Bank(view.train.vectors, view.train.labels)
    trusts = _scores(view.test, bank)
    both = _joined(view.test, view.novel)
    ranks = {name: trust.log_odds for name, trust in _scores(both, bank).items()}  # no probabilities of being known
    known = np.arange(len(both)) < len(view.test)
    errors = evaluate(view.test, trusts, samples=_SAMPLES, seed=seed)
    novelties = evaluate(None, ranks, correct=known, samples=_SAMPLES, seed=seed, kinds=("known", "novel"))
    return Judged(view.name, errors, novelties, trusts)


def _scores(asked: Embeddings, bank: Bank) -> dict[str, Trust]:
    names = ON_NEIGHBORS if asked.logits is None else SCORES
    settings = scoring.Settings(k=K, unit=True)  # unit: kth_distance on the unit sphere, as its authors have it
    return scoring.apply(names, asked, bank, settings)


def _joined(*parts: Embeddings) -> Embeddings:
    """Vectors, logits and predictions of several, one after the other."""

    def together(name: str) -> Any:
        found = [getattr(part, name) for part in parts]
        return None if any(one is None for one in found) else np.concatenate(found)

    return Embeddings(together("vectors"), together("logits"), predicted=together("predicted"))
