"""Condensing a bank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vicinal import checks
from vicinal.bank import Bank
from vicinal.checks import Integers
from vicinal.condensation import masses
from vicinal.condensation.methods import METHODS
from vicinal.condensation.recommending import recommended_k
from vicinal.condensation.task import Task, share_out
from vicinal.errors import InputError

__all__ = ["Condensed", "condense"]


@dataclass(frozen=True, eq=False)
class Condensed:
    """A smaller bank, and where it comes from.

    Attributes:
        bank: the points kept, each with how many points it stands for, unless that was not wanted.
        indices: (m,), ascending, the rows of the whole bank that they are, or whose numbers they took over.
        k: how many neighbours to ask it for: what makes it rank the whole bank's own points most as that ranks them,
            each left out of its own neighbours (:mod:`vicinal.condensation.recommending`). The file of the bank says
            it too, among its facts.
        method: how they were found.
    """

    bank: Bank
    indices: Integers
    k: int
    method: str

    def __len__(self) -> int:
        return len(self.bank)


def condense(
    bank: Bank, method: str = "k-means", share: float = 0.05, *, weighted: bool = True, seed: int = 0
) -> Condensed:
    """A smaller bank that stands for this one.

    Every class keeps the same share of its points, and at least one. Each kept point stands for the points of its class
    that are nearest to it, and counts so often in Eq. 1, so that the mass around a query stays an estimate of the full
    bank's.

    Rows keep the numbers that they have in ``bank``. A centre of a cluster is no row of it: it takes over the
    number of a row of its class near it, so that a neighbour can still be shown, and ``indices`` are rows of the bank
    whatever the method; its vector is its own.

    Args:
        bank: the training points; their own weights, if any, are taken into account.
        method: how to choose, one of ``METHODS``.
        share: how much of each class to keep, in (0, 1].
        weighted: whether kept points stand for others. Without it, each counts as one.
        seed: of whatever is drawn.

    Example:
        >>> bank = Bank([[0.0], [0.2], [0.3], [4.0], [9.0]], labels=[7, 7, 7, 7, 8])
        >>> small = condense(bank, "medoids", share=0.6)
        >>> small.indices, small.bank.weights, small.k
        (array([1, 3, 4]), array([3., 1., 1.]), 3)
    """
    if not isinstance(bank, Bank):
        raise InputError(
            f"bank: expected a Bank, got {type(bank).__name__}; make one with vicinal.Bank(vectors, labels)"
        )
    name = checks.one_of(method, "method", tuple(METHODS))
    share = checks.fraction(share, "share", open_low=True)
    task = _task(bank, share, checks.whole(seed, "seed", low=0), bool(weighted))
    kept = METHODS[name](task)
    weights = None
    if weighted:
        weights = masses.count(task, kept.places) if kept.weights is None else kept.weights
    rows = bank.rows[kept.places]
    small = bank.represented_by(rows, vectors=kept.vectors, weights=weights)
    k = recommended_k(bank, small, task.seed)
    small.facts |= {"condensed by": name, "condensed from": f"{len(bank)} points", "recommended k": str(k)}
    return Condensed(small, rows, k, name)


def _task(bank: Bank, share: float, seed: int, weighted: bool) -> Task:
    codes = bank.codes(bank.labels)
    each = np.ones(len(bank)) if bank.weights is None else bank.weights
    return Task(bank.lazy_vectors, codes, each, share_out(np.bincount(codes), share), seed, weighted)
