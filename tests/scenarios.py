"""Worlds with known answers: the optimal ranking, its AUROC and its risk-coverage curve in closed form.

Two Gaussians (errors): classes 0 and 1 with probability 1/2 each, x ~ N(±μ, I) along the first axis. The Bayes
classifier says the sign of x₁; it is right with probability sigmoid(2μ|x₁|), so |x₁| is the optimal ranking, and
2μ|x₁| its log-odds.

Two spreads (novelty): known inputs x ~ N(0, I), novel ones x ~ N(0, s² I), in two dimensions. The density of the known
ones falls with |x|, and -|x| is the optimal ranking; |x|² is exponential with means 2 and 2 s².
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.integrate import quad
from scipy.stats import norm

from vicinal import Bank

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class TwoGaussians:
    """Two classes at distance 2 ``mean``, in ``d`` dimensions of which only the first tells anything."""

    mean: float = 1.0
    d: int = 2

    def draw(self, n: int, seed: int) -> tuple[Floats, npt.NDArray[np.int64]]:
        """Vectors (n, d) and labels (n,)."""
        generator = np.random.default_rng(seed)
        labels = generator.integers(0, 2, n)
        vectors = generator.normal(size=(n, self.d))
        vectors[:, 0] += np.where(labels == 1, self.mean, -self.mean)
        return vectors, labels

    def predict(self, vectors: Floats) -> npt.NDArray[np.int64]:
        """What the Bayes classifier says."""
        return (vectors[:, 0] > 0).astype(np.int64)

    def log_odds(self, vectors: Floats) -> Floats:
        """Of the Bayes classifier's prediction being right."""
        return 2 * self.mean * np.abs(vectors[:, 0])

    @property
    def accuracy(self) -> float:
        return float(norm.cdf(self.mean))

    @property
    def auroc(self) -> float:
        """P(|x₁| of a right prediction > |x₁| of a wrong one), by one integral over the latter."""

        def part(t: float) -> float:
            return float(norm.pdf(t + self.mean) * norm.sf(t - self.mean))

        return quad(part, 0, np.inf)[0] / (self.accuracy * (1 - self.accuracy))

    def coverage(self, t: float) -> float:
        """P(|x₁| > t): what the optimal rule with threshold t accepts."""
        return float(norm.sf(t - self.mean) + norm.sf(t + self.mean))

    def risk(self, t: float) -> float:
        """P(wrong | |x₁| > t)."""
        return float(norm.sf(t + self.mean)) / self.coverage(t)


@dataclass(frozen=True)
class TwoSpreads:
    """Known inputs around the origin, novel ones around it too, ``spread`` times as wide."""

    spread: float = 3.0

    def known(self, n: int, seed: int) -> Floats:
        return np.random.default_rng([seed, 0]).normal(size=(n, 2))

    def novel(self, n: int, seed: int) -> Floats:
        return self.spread * np.random.default_rng([seed, 1]).normal(size=(n, 2))

    @property
    def auroc(self) -> float:
        """P(an exponential of mean 2 < one of mean 2 s²) = s² / (1 + s²)."""
        return self.spread**2 / (1 + self.spread**2)

    def detected(self, false_alarms: float) -> float:
        """The share of novel inputs beyond the radius that this share of known ones lies beyond: α^(1/s²)."""
        return float(false_alarms ** (1 / self.spread**2))


def clustered(n=400, d=8, classes=5, seed=0):
    """A bank of classes that overlap somewhat, each in three clusters."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, classes, n)
    centres = generator.normal(size=(classes, 3, d)) * 2
    return Bank(centres[labels, generator.integers(0, 3, n)] + generator.normal(size=(n, d)), labels)
