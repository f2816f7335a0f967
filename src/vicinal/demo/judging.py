"""Every score of every prediction, and how good the scores are at two jobs: errors, and novelties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vicinal import metrics, scoring
from vicinal.bank import Bank
from vicinal.checks import Flags
from vicinal.demo.digits import PER_CLASS
from vicinal.demo.views import HYBRID, Views
from vicinal.evaluation import Evaluation, evaluate
from vicinal.metrics import Comparison
from vicinal.values import Embeddings, Trust

__all__ = ["ON_NEIGHBORS", "ON_OUTPUTS", "SCORES", "Judged", "K", "Verdict", "judge", "settle"]

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


@dataclass(frozen=True)
class Verdict:
    """A paired test of two scores of the same predictions, by their AUROC.

    Attributes:
        job: ``errors`` or ``novelties``.
        first: what is compared, in words.
        second: what it is compared with.
        found: how much larger the AUROC of the first is.
    """

    job: str
    first: str
    second: str
    found: Comparison


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


def settle(judged: Sequence[Judged], correct: Flags, seed: int) -> tuple[Verdict, ...]:
    """Is distance better than the largest softmax output, and is it better in the embedding of another network?

    Args:
        judged: the plain network first; the hybrid, if there is one, scores the same predictions.
        correct: (n,), whether each prediction of the plain network is right.
        seed: of the bootstrap samples.
    """
    plain = judged[0]
    found = [
        Verdict(
            job, f"{plain.name}: distance", f"{plain.name}: margin", getattr(plain, job).compare("distance", "margin")
        )
        for job in ("errors", "novelties")
    ]
    for one in (one for one in judged if one.name == HYBRID):
        first, second = (each.trusts["distance"].log_odds for each in (one, plain))
        better = metrics.compare("auroc", first, second, correct, samples=_SAMPLES, seed=seed)
        found.append(Verdict("errors", f"{one.name}: distance", f"{plain.name}: distance", better))
    return tuple(found)


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
