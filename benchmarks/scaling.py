"""What the parts of ``scale.py`` share: the embeddings they measure on, and how a bar is said to be met or not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vicinal import Embeddings

__all__ = ["Bar", "Clusters", "Given", "World", "clustered", "gaussian", "markdown"]

CLASSES = 100
PART = 250_000  # points that are drawn together


@dataclass(frozen=True, eq=False)
class World:
    """A bank to be, and queries.

    Attributes:
        name: what it is, in words.
        vectors: (n, d), float32.
        labels: (n,), their classes.
        asked: (m, d), float32.
        predicted: (m,), the classes predicted for them.
        truth: (m,), their true classes; None where there are none.
    """

    name: str
    vectors: np.ndarray
    labels: np.ndarray
    asked: np.ndarray
    predicted: np.ndarray
    truth: np.ndarray | None = None

    def first(self, queries: int) -> World:
        """The same with at most so many queries."""
        truth = None if self.truth is None else self.truth[:queries]
        return World(self.name, self.vectors, self.labels, self.asked[:queries], self.predicted[:queries], truth)


@dataclass(frozen=True)
class Given:
    """Where embeddings of trained networks lie; they are not part of the project.

    Attributes:
        embeddings: a folder of ``.npz`` files as ``published.py`` describes them, of networks that others trained.
        networks: a folder with a folder for each network that ``vicinal train`` trained.
    """

    embeddings: Path | None = None
    networks: Path | None = None

    def worlds(self) -> Iterator[World]:
        """All that is given, one after the other: each bank the training points, and each query a test point."""
        for path in sorted(self.embeddings.glob("*.npz")) if self.embeddings else []:
            yield _published(path)
        for path in sorted(self.networks.glob("*/train.safetensors")) if self.networks else []:
            yield _trained(path.parent)

    def options(self, *, given: bool = True) -> list[str]:
        """The options that were given, or that were not, so that a result says what it does not cover."""
        return [f"--{name}" for name, folder in asdict(self).items() if (folder is not None) == given]


@dataclass(frozen=True)
class Bar:
    """Something that a part has to reach.

    Attributes:
        of: what is measured, and on what.
        measured: the figure.
        limit: what it may be at most, or has to be at least.
        least: whether the limit is one from below.
    """

    of: str
    measured: float
    limit: float
    least: bool = False

    @property
    def met(self) -> bool:
        """Whether the figure reaches the bar."""
        return self.measured >= self.limit if self.least else self.measured <= self.limit

    def to_json(self) -> dict[str, Any]:
        """As it stands in the result file."""
        return {**asdict(self), "met": self.met}


def gaussian(n: int, d: int, m: int, seed: int = 0) -> World:
    """Points without any structure that a search could use."""
    rng = np.random.default_rng(seed)
    vectors, asked = (rng.standard_normal((rows, d), dtype=np.float32) for rows in (n, m))
    return World(f"Gaussian, {n:,} x {d}", vectors, *(rng.integers(0, CLASSES, n), asked, rng.integers(0, CLASSES, m)))


class Clusters:
    """Points like a trained network's embeddings: classes around centres, all near a few directions, turned at random.

    The spread along the i-th direction falls as 1 / i, within a class as among centres, and some points are surer than
    others: farther out, as a factor of its own says for each.
    """

    def __init__(self, d: int, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.spread = (1 / np.arange(1, d + 1)).astype(np.float32)
        self.turn = np.linalg.qr(self.rng.standard_normal((d, d)))[0].astype(np.float32)
        self.centres = 3 * self.rng.standard_normal((CLASSES, d), dtype=np.float32) * self.spread

    def draw(self, rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Vectors and labels."""
        labels = self.rng.integers(0, CLASSES, rows)
        points = self.rng.standard_normal((rows, len(self.spread)), dtype=np.float32)
        points *= self.spread
        points += self.centres[labels]
        points *= self.rng.lognormal(0, 0.2, (rows, 1)).astype(np.float32)
        return points @ self.turn, labels


def clustered(n: int, d: int, m: int, seed: int = 0) -> World:
    """Points like a trained network's embeddings, drawn a part at a time where they are many."""
    clusters = Clusters(d, seed)
    vectors, labels = np.empty((n, d), np.float32), np.empty(n, np.int64)
    for start in range(0, n, PART):
        part = slice(start, min(start + PART, n))
        vectors[part], labels[part] = clusters.draw(part.stop - start)
    asked, truth = clusters.draw(m)
    return World(f"clustered, {n:,} x {d}", vectors, labels, asked, truth, truth)


def markdown(rows: list[list[str]]) -> str:
    """A table; the first row is its head."""
    head, *others = rows
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *others))


def _published(path: Path) -> World:
    with np.load(path, allow_pickle=False) as file:
        vectors, asked = (file[f"{part}_vectors"].astype(np.float32) for part in ("train", "test"))
        predicted, truth = file["test_logits"].argmax(axis=1), file["test_labels"].astype(np.int64)
        labels = file["train_labels"].astype(np.int64)
    return World(f"{path.stem}, {len(vectors):,} x {vectors.shape[1]}", vectors, labels, asked, predicted, truth)


def _trained(folder: Path) -> World:
    train, test = (Embeddings.load(folder / f"{part}.safetensors") for part in ("train", "test"))
    vectors, asked = np.asarray(train.vectors), np.asarray(test.vectors)
    name = f"{folder.name}, {len(vectors):,} x {vectors.shape[1]}"
    return World(name, vectors, train.labels, asked, test.predicted, test.labels)
