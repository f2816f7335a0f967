"""Embeddings of networks that others trained and published, from ``embeddings/NAME.npz`` under the data root.

Each file holds ``train_vectors``, ``train_labels``, ``test_vectors``, ``test_logits`` and ``test_labels``: what
``vicinal.Embeddings.from_model`` gives for the network, the vectors being the input of its last linear layer, of images
of the official splits without augmentation. The files are not part of the project.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vicinal import Bank, Embeddings, score
from vicinal.data.loading import data_root
from vicinal.selective import parts

__all__ = ["NETWORKS", "Scores", "read", "scored"]

NETWORKS = {
    "cifar100_resnet20": "CIFAR-100, ResNet-20 (chenyaofo/pytorch-cifar-models)",
    "cifar100_densenet_4bit": "CIFAR-100, DenseNet-BC-100-12 pruned to 4 bits (peiswang/MicroNetChallenge)",
}


@dataclass(frozen=True, eq=False)
class Scores:
    """Log-odds (n,) of each score of the test images, and which predictions are right."""

    of: dict[str, np.ndarray]
    correct: np.ndarray
    bank: int

    def take(self, rows: np.ndarray) -> Scores:
        """Only some of the test images."""
        return Scores({name: s[rows] for name, s in self.of.items()}, self.correct[rows], self.bank)


def read(name: str) -> tuple[Bank, Embeddings]:
    """The training points and the test images."""
    path = data_root() / "embeddings" / f"{name}.npz"
    with np.load(path, allow_pickle=False) as file:
        bank = Bank(file["train_vectors"].astype(np.float32), file["train_labels"].astype(np.int64))
        vectors, logits = file["test_vectors"].astype(np.float32), file["test_logits"].astype(np.float64)
        return bank, Embeddings(vectors, logits, file["test_labels"].astype(np.int64))


def scored(bank: Bank, test: Embeddings, k: int = 50) -> Scores:
    """The parts of a fusion, and entropy."""
    trusts = {**parts(bank, test, k=k), "entropy": score.entropy(test.logits)}
    return Scores({name: trust.log_odds for name, trust in trusts.items()}, test.correct, len(bank))
