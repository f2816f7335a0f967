"""The paper's scores from a network's folder, plainly: NumPy on its embeddings, nothing of vicinal's scores."""

from __future__ import annotations

import numpy as np
from scipy.special import log_softmax, logsumexp

import oracle


class Plain:
    """What one network says of its points, and of its bank.

    Args:
        networks: of an edition.
        entry: which one.
        seen: its embeddings; left out, those of its test points.
    """

    def __init__(self, networks, entry, seen=None):
        known = networks.embeddings(entry, "train")
        seen = networks.embeddings(entry, "test") if seen is None else seen
        self.points, self.labels = np.array(known.vectors), np.array(known.labels)
        self.vectors, self.logits = np.array(seen.vectors), np.array(seen.logits, np.float64)
        self.predicted = self.logits.argmax(axis=1)
        self.right = None if seen.labels is None else self.predicted == seen.labels

    @property
    def softmax(self):
        return np.exp(log_softmax(self.logits, axis=1))

    def margin(self):
        others = np.sort(self.logits, axis=1)[:, :-1]
        return self.logits.max(axis=1) - logsumexp(others, axis=1)

    def entropy(self):
        return -plain_entropy(self.softmax)

    def energy(self):
        return logsumexp(self.logits, axis=1)

    def gaps(self):
        """(n, bank), every distance, from the differences."""
        points, vectors = self.points.astype(np.float64), self.vectors.astype(np.float64)
        return np.array([np.sqrt(((points - x) ** 2).sum(axis=1)) for x in vectors])

    def distance(self, k, predicted=None, kernel="exp", factor=1.0):
        """The log-odds of some predictions, its own by default."""
        predicted = self.predicted if predicted is None else predicted
        return np.array(
            [_log_odds(d, self.labels == y, k, kernel) for d, y in zip(factor * self.gaps(), predicted, strict=True)]
        )

    def as_published(self, k):
        """Eq. 1 in float32."""
        found = []
        for d, y in zip(self.gaps(), self.predicted, strict=True):
            near = np.argsort(d, kind="stable")[:k]
            weights = np.exp(-d[near].astype(np.float32))
            found.append(weights[self.labels[near] == y].sum() / weights.sum())
        return np.array(found)


def _log_odds(distances, same, k, kernel):
    order = np.argsort(distances, kind="stable")
    sides = []
    for mine in (same, ~same):
        near = [j for j in order[:k] if mine[j]] or [next(j for j in order if mine[j])]
        sides.append(oracle.log_sum([oracle.log_weight(float(distances[j]), kernel) for j in near]))
    return sides[0] - sides[1]


def plain_entropy(shares):
    return -(shares * np.log(np.maximum(shares, 1e-300))).sum(axis=1)
