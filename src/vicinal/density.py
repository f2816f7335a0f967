"""How many training points lie around an input, whatever their class: the label-free part of Eq. 1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from vicinal import checks
from vicinal.bank import Bank
from vicinal.checks import Floats, Integers, Vectors
from vicinal.mass import log_weights
from vicinal.values import Neighbors, Trust

__all__ = ["class_density", "class_kth_distance", "density", "density_of"]

_LEAST = 1e-300  # stands for a distance of 0 where its logarithm would be infinite


def density(bank: Bank, queries: Any, *, k: int = 50, exclude_self: bool | Any = False) -> Trust:
    """The mass around each query: the denominator of Eq. 1, as a logarithm.

    With A(x) the k nearest points of the bank,

        log Σ_{j in A} exp(-|f(x) - f(x_j)|)    in (-inf, log k].

    It judges the input and not the prediction: small where training points are far, whatever they are. Log-odds: the
    confidence itself.

    Args:
        bank: the training points.
        queries: (m, d).
        k: how many neighbours.
        exclude_self: as in :meth:`Bank.nearest`.

    Example:
        >>> bank = Bank([[0.0], [1.0], [4.0]], labels=[0, 0, 1])
        >>> density(bank, [[0.5], [9.0]], k=2).confidence.round(3)
        array([ 0.193, -4.951])
    """
    return density_of(bank.nearest(queries, k, exclude_self=exclude_self))


def density_of(near: Neighbors) -> Trust:
    """The density score from neighbours that are already found, such as ``trust.neighbors`` of a distance score."""
    mass = _mass(near)
    return Trust("density", mass, mass, neighbors=near)


def class_density(bank: Bank, queries: Any, predicted: Any, *, k: int = 50) -> Trust:
    """The mass of the predicted class around each query: ``density`` among the k nearest points of that class.

    Among all of them, where the class has fewer. A class that the bank does not have counts as one point farther away
    than any.

    Args:
        bank: the training points.
        queries: (m, d).
        predicted: (m,), the classes predicted.
        k: how many neighbours.

    Example:
        >>> bank = Bank([[0.0], [1.0], [4.0]], labels=[0, 0, 1])
        >>> class_density(bank, [[0.5], [0.5]], [0, 1], k=2).confidence.round(3)
        array([ 0.193, -3.5  ])
    """
    asked, labels, mass = _asked(bank, queries, predicted)
    for rows, near in _within(bank, asked, labels, k):
        mass[rows] = _mass(near)
    return Trust("class_density", mass, mass, labels, notes=_unseen(bank, labels))


def class_kth_distance(bank: Bank, queries: Any, predicted: Any, *, k: int = 50) -> Trust:
    """How near the k-th neighbour of the predicted class lies: minus its distance, in (-inf, 0].

    The farthest of the class, where it has fewer. A class that the bank does not have counts as lying farther away than
    any point. Log-odds: -log(distance), which ranks alike.
    """
    asked, labels, nearness = _asked(bank, queries, predicted)
    for rows, near in _within(bank, asked, labels, k):
        nearness[rows] = -near.distances[:, -1]
    return Trust(
        "class_kth_distance", nearness, -np.log(np.maximum(-nearness, _LEAST)), labels, notes=_unseen(bank, labels)
    )


def _mass(near: Neighbors) -> Floats:
    """(m,), the summed weight of the neighbours of each query, as a logarithm."""
    summed: Floats = np.logaddexp.reduce(log_weights(near.distances, "exp", near.weights), axis=1)
    return summed


def _asked(bank: Bank, queries: Any, predicted: Any) -> tuple[Vectors, Integers, Floats]:
    """The checked input, and how near a class lies that the bank does not have."""
    asked = checks.vectors(queries, "queries", columns=bank.dimension)
    return asked, checks.labels(predicted, "predicted", rows=len(asked), of="query"), -bank.farthest(asked)


def _within(bank: Bank, asked: Vectors, labels: Integers, k: int) -> Iterator[tuple[Integers, Neighbors]]:
    """For each class predicted, the queries it is predicted for, and their neighbours of that class."""
    k = checks.whole(k, "k", low=1, high=len(bank), why=", the size of the bank")
    for label in np.intersect1d(labels, bank.classes):
        rows = np.flatnonzero(labels == label)
        own = bank.take(bank.rows[bank.labels == label])
        yield rows, own.nearest(asked[rows], min(k, len(own)))


def _unseen(bank: Bank, labels: Integers) -> tuple[str, ...]:
    missing = int((~np.isin(labels, bank.classes)).sum())
    return (f"{missing} predictions name a class that the bank does not have",) if missing else ()
