"""What a training run is fed with: for every step the rows of its batch, and for the distance loss their pairs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from vicinal.checks import Integers
from vicinal.learn.batches import PairBatches
from vicinal.learn.losses import sample_pairs
from vicinal.learn.recipe import Recipe

__all__ = ["Batch", "feed"]


class Batch(NamedTuple):
    """What one step is made of.

    Args:
        step: its number, counted from 0.
        rows: (b,), rows of the training points.
        pairs: (b // 2, 2), rows of the batch; None where no pairs are needed.
    """

    step: int
    rows: Tensor
    pairs: Tensor | None


def feed(
    labels: Integers, recipe: Recipe, *, seed: int, start: int, total: int, device: torch.device
) -> Iterator[Batch]:
    """The batches of a run from a step on; each depends on the seed and its number alone, so a run can start anywhere.

    The order of an epoch is put on the device at once, so that no step waits for it. Whatever cannot work, such as a
    class without a pair, is refused before the first batch.

    Args:
        labels: (n,), of the training points.
        recipe: says the method, the size of a batch and the share in same-class pairs.
        seed: decides the order and the pairs.
        start: the first step.
        total: how many steps the whole run has.
        device: where rows and pairs are wanted.
    """
    paired = recipe.method in ("distance", "both")
    batches = PairBatches(labels, recipe.batch, share=recipe.same_class if paired else 0.0, seed=seed)
    return _batches(batches, paired, recipe.same_class, start, total, device)


def _batches(
    batches: PairBatches, paired: bool, share: float, start: int, total: int, device: torch.device
) -> Iterator[Batch]:
    for epoch in range(start // len(batches), -(-total // len(batches))):
        order = batches.epoch(epoch)
        rows = torch.as_tensor(order, device=device)
        pairs = _pairs(batches.labels[order], share, (batches.seed, epoch)).to(device) if paired else None
        first = epoch * len(batches)
        for step in range(max(start, first), min(total, first + len(batches))):
            yield Batch(step, rows[step - first], None if pairs is None else pairs[step - first])


def _pairs(labels: Integers, share: float, seed: tuple[int, int]) -> Tensor:
    """The pairs of every batch of an epoch."""
    drawn = np.random.SeedSequence([*seed, 1]).generate_state(1, np.uint64)[0]
    generator = torch.Generator().manual_seed(int(drawn) % 2**63)
    return torch.stack([sample_pairs(one, generator, share=share) for one in torch.as_tensor(labels)])
