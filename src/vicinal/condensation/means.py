"""Centres of clusters, class by class, and the points nearest to them."""

from __future__ import annotations

import numpy as np

from vicinal.checks import Floats, Integers, Vectors
from vicinal.condensation.masses import nearest_kept, takers
from vicinal.condensation.task import Kept, Task, by_class

__all__ = ["k_means", "medoids"]

_ROUNDS = 50  # of Lloyd's algorithm, at most


def k_means(task: Task) -> Kept:
    """The centres that k-means finds within each class; a centre takes over the row of a point near it.

    A centre stands for the points of its cluster.
    """

    def choose(members: Integers, keep: int, generator: np.random.Generator) -> Kept:
        vectors, masses = task.vectors[members], task.masses[members]
        centres, owners = clusters(vectors, masses, keep, generator)
        weights = np.bincount(owners, masses, len(centres)).astype(np.float64)
        return Kept(members[takers(centres, vectors)], centres, weights)

    return by_class(task, choose, "clustering")


def medoids(task: Task) -> Kept:
    """The points nearest to the centres that k-means finds within each class, none taken twice."""

    def choose(members: Integers, keep: int, generator: np.random.Generator) -> Kept:
        vectors = task.vectors[members]
        centres, _ = clusters(vectors, task.masses[members], keep, generator)
        return Kept(np.sort(members[takers(centres, vectors)]))

    return by_class(task, choose, "clustering")


def clusters(vectors: Vectors, masses: Floats, keep: int, generator: np.random.Generator) -> tuple[Vectors, Integers]:
    """The centres (m, d) of clusters, fewer than asked for where fewer points differ, and the cluster of each point.

    Every cluster has at least one point.
    """
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    if keep >= len(vectors):
        return vectors, np.arange(len(vectors))
    different = len(np.unique(vectors, axis=0))
    fit = KMeans(min(keep, different), n_init=1, max_iter=_ROUNDS, random_state=int(generator.integers(2**31)))
    with threadpool_limits(1):  # so that sums are taken in the same order wherever this runs; more gain nothing here
        fit.fit(vectors, sample_weight=masses)
    centres = np.ascontiguousarray(fit.cluster_centers_, dtype=np.float32)
    owners = nearest_kept(vectors, centres)
    used, owners = np.unique(owners, return_inverse=True)
    return centres[used], owners
