"""The distance loss (Eq. 2) and the pairs it is taken over; both fit into any training loop of torch.

loss = cross_entropy(logits, labels) + 0.2 * distance_loss(embedding, labels, sample_pairs(labels, generator))
"""

from __future__ import annotations

import sys

import torch
from torch import Tensor

from vicinal import checks
from vicinal.errors import InputError, ShapeError
from vicinal.learn.batches import pairs_needed

__all__ = ["distance_loss", "sample_pairs"]


def distance_loss(vectors: Tensor, labels: Tensor, pairs: Tensor, margin: float = 25.0) -> Tensor:
    """Eq. 2: points of one class together, points of two classes a margin apart.

    The mean over the pairs (i, j) of |f_i - f_j| if y_i = y_j, and of max(0, m - |f_i - f_j|) otherwise, where f is the
    embedding and m the margin. The paper adds it to the cross entropy with a factor of 0.2. The gradient at distance 0,
    where the length has none, is 0. Computed in float32 where the vectors have less.

    Args:
        vectors: (n, d), the embedding.
        labels: (n,), whole numbers.
        pairs: (p, 2), rows of ``vectors``, at least one pair.
        margin: m, at least 0.

    Returns:
        One number, at least 0.

    Example:
        >>> vectors = torch.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])
        >>> distance_loss(vectors, torch.tensor([7, 7, 8]), torch.tensor([[0, 1], [0, 2]]))
        tensor(14.5000)
    """
    checks.fraction(margin, "margin", high=sys.float_info.max)
    _check_loss(vectors, labels, pairs)
    first, second = pairs.unbind(1)
    wide = vectors.to(torch.promote_types(vectors.dtype, torch.float32))
    distances = torch.linalg.vector_norm(wide.index_select(0, first) - wide.index_select(0, second), dim=1)
    same = labels.index_select(0, first) == labels.index_select(0, second)
    return torch.where(same, distances, (margin - distances).clamp_min(0)).mean()


def sample_pairs(labels: Tensor, generator: torch.Generator, *, share: float = 0.2) -> Tensor:
    """Half as many pairs as points in a batch, drawn without replacement: no point stands in two of them.

    First come as many same-class pairs as it takes for the share, chosen at random among the classes that have two
    points; the points left are paired at random, whatever their classes. Of an odd number of points one is left out.

    Args:
        labels: (n,), the classes of the points in the batch, n of at least 2.
        generator: of random numbers, on the CPU.
        share: of the points that must stand in same-class pairs, from 0 to 1; the paper's is 0.2.

    Returns:
        (n // 2, 2), rows of the batch, on the device of the labels.

    Example:
        >>> labels = torch.tensor([0, 1, 2, 3, 2, 4])
        >>> pairs = sample_pairs(labels, torch.Generator().manual_seed(0))
        >>> sorted(pairs.flatten().tolist()), labels[pairs[0]].tolist()
        ([0, 1, 2, 3, 4, 5], [2, 2])
    """
    if labels.ndim != 1 or len(labels) < 2:
        raise ShapeError(f"labels: expected shape (n,) with at least two points, got {tuple(labels.shape)}")
    wanted = pairs_needed(len(labels), share)
    order, second = _within_classes(labels.detach().cpu(), generator)
    if len(second) < wanted:
        raise InputError(
            f"labels: expected {wanted} same-class pairs for a share of {share:g} of {len(labels)} points, but only "
            f"{len(second)} are possible; draw the batches with vicinal.learn.batches.PairBatches, or lower the share"
        )
    chosen = second[torch.randperm(len(second), generator=generator)[:wanted]]
    same = torch.stack((order[chosen - 1], order[chosen]), 1)
    free = torch.ones(len(order), dtype=torch.bool)
    free[chosen] = free[chosen - 1] = False
    rest = order[free]
    rest = rest[torch.randperm(len(rest), generator=generator)]
    return torch.cat((same, rest[: len(rest) // 2 * 2].view(-1, 2))).to(labels.device)


def _within_classes(labels: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """The points by class, in random order within, and the places that make a pair with the place before them."""
    order = torch.randperm(len(labels), generator=generator)
    order = order[torch.argsort(labels[order], stable=True)]
    sorted_labels = labels[order]
    rank = torch.arange(len(order)) - torch.searchsorted(sorted_labels, sorted_labels)
    return order, torch.nonzero(rank % 2).flatten()


def _check_loss(vectors: Tensor, labels: Tensor, pairs: Tensor) -> None:
    if vectors.ndim != 2 or not vectors.is_floating_point():
        raise ShapeError(f"vectors: expected floats of shape (n, d), got {vectors.dtype} {tuple(vectors.shape)}")
    if labels.shape != vectors.shape[:1]:
        raise ShapeError(f"labels: expected shape ({len(vectors)},), one for each vector, got {tuple(labels.shape)}")
    if pairs.ndim != 2 or pairs.shape[1] != 2 or len(pairs) == 0 or pairs.is_floating_point():
        raise ShapeError(
            f"pairs: expected whole numbers of shape (p, 2), at least one pair, got {pairs.dtype} {tuple(pairs.shape)}"
        )
    if pairs.device.type == "cpu" and not 0 <= int(pairs.min()) <= int(pairs.max()) < len(vectors):
        raise InputError(
            f"pairs: expected rows from 0 to {len(vectors) - 1}, got {int(pairs.min())} to {int(pairs.max())}"
        )
