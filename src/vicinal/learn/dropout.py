"""MC dropout (Gal and Ghahramani 2016): predictions averaged over passes with dropout on, at a third of their cost.

What no dropout layer has touched is the same in every pass, so it runs once: the module is cut in two along its graph,
whatever its shape (``vicinal.learn.cut``). The cut is tried out against the module itself before it is used; where a
module cannot be cut, plain passes are run instead, and the result and the log say why.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from vicinal import checks, progress
from vicinal.errors import InputError
from vicinal.learn.as_found import as_found
from vicinal.learn.cut import Cut, UncutError, cut, uncut
from vicinal.learn.networks import logits_of

__all__ = ["DropoutMean", "mc_dropout"]

_TRIAL = 3  # images that a cut is tried out on
_ALIKE = "so that every pass would be the same; build the network with dropout, or use its plain prediction"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class DropoutMean:
    """What a network says of n inputs on average over passes with dropout.

    Args:
        probabilities: (n, c), the mean of the softmax outputs.
        embeddings: (n, d), the mean of the embeddings: the output's ``embedding``, or else the input of the last linear
            layer that runs. None where there is neither.
        passes: how many there were.
        once: the layers that ran once instead of in every pass, by name.
        note: where the module could not be cut, why; else empty.
    """

    probabilities: Tensor
    embeddings: Tensor | None
    passes: int
    once: tuple[str, ...]
    note: str

    def __repr__(self) -> str:
        n, c = self.probabilities.shape
        note = f"; {self.note}" if self.note else ""
        return f"DropoutMean({n} x {c}, {self.passes} passes, {len(self.once)} layers once{note})"


def mc_dropout(module: nn.Module, images: Tensor, *, passes: int = 100, seed: int = 0, batch: int = 100) -> DropoutMean:
    """The mean prediction and embedding of a network over passes in which its dropout layers drop.

    Only the dropout layers are switched on (``nn.Dropout`` and its kin, not dropout called as a function): batch
    normalization stays in evaluation mode. The module is left as it was found: modes, buffers, and torch's random
    state. The same call gives the same result; another batch size draws other masks.

    Args:
        module: takes images, returns logits (n, c), alone, first of a tuple, or named ``logits``. What it makes of an
            image must not depend on the others in the batch, as is the rule in evaluation mode.
        images: (n, ...), what the module takes, on its device.
        passes: T, at least 1; the paper's is 100.
        seed: of the masks.
        batch: how many rows run at once. Of fewer images, several passes run together.

    Example:
        >>> network = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3))
        >>> mc_dropout(network, torch.ones(5, 4))
        DropoutMean(5 x 3, 100 passes, 2 layers once)
    """
    checks.whole(passes, "passes", low=1)
    checks.whole(seed, "seed", low=0)
    checks.whole(batch, "batch", low=1)
    if not isinstance(images, Tensor) or images.ndim < 2 or len(images) == 0:
        found = f"shape {tuple(images.shape)}" if isinstance(images, Tensor) else type(images).__name__
        raise InputError(f"images: expected a tensor of shape (n, ...) with at least one image, got {found}")
    with as_found(module), torch.no_grad(), _last_inputs(module) as last, _dropping(module) as dropped:
        parts, note = _parts(module, images[:_TRIAL])
        torch.manual_seed(seed)
        probabilities, embeddings, begun = _Mean(len(images), passes), _Mean(len(images), passes), -1
        for start, times in progress.track(_jobs(len(images), passes, batch, parts.folds), "MC dropout"):
            rows = slice(start, start + batch)
            if start != begun:
                kept, begun = parts.before(images[rows]), start
            last.clear()
            output = parts.run(kept, times)
            logits = logits_of(output)
            probabilities.add(rows, times, logits.float().softmax(1))
            embeddings.add(rows, times, _embedding(output, last, len(logits)))
    if not dropped:
        raise InputError(f"module: expected a dropout layer to run in its forward pass, but none did, {_ALIKE}")
    if probabilities.total is None:  # pragma: no cover - there is at least one image
        raise AssertionError
    return DropoutMean(probabilities.total, embeddings.total, passes, parts.once, note)


class _Mean:
    """The mean over passes, one row for each image; None where some pass gave nothing."""

    def __init__(self, images: int, passes: int) -> None:
        self.total: Tensor | None = None
        self._images, self._passes, self._whole = images, passes, True

    def add(self, rows: slice, times: int, values: Tensor | None) -> None:
        """Several passes over some rows, one after the other."""
        if values is None:
            self.total, self._whole = None, False
        elif self._whole:
            if self.total is None:
                self.total = torch.zeros(self._images, values.shape[1], device=values.device)
            self.total[rows] += values.float().view(times, -1, values.shape[1]).sum(0) / self._passes


@contextmanager
def _dropping(module: nn.Module) -> Iterator[set[nn.Module]]:
    """Switch the dropout layers on, and note those that run."""
    layers = [layer for layer in module.modules() if _drops(layer)]
    if not layers:
        raise InputError(f"module: expected a dropout layer with a probability above 0, got none, {_ALIKE}")
    dropped: set[nn.Module] = set()
    handles = [layer.register_forward_hook(lambda layer, *_: dropped.add(layer)) for layer in layers]
    try:
        for layer in layers:
            layer.training = True
        yield dropped
    finally:
        for handle in handles:
            handle.remove()


def _drops(layer: nn.Module) -> bool:
    return isinstance(layer, _DropoutNd) and layer.p > 0


def _parts(module: nn.Module, sample: Tensor) -> tuple[Cut, str]:
    """The module in two parts, or else whole and the reason."""
    try:
        return cut(module, _drops, sample), ""
    except UncutError as error:
        note = f"plain passes: {error}"
        _log.warning("MC dropout runs the whole of %s in every pass: %s", type(module).__qualname__, error)
        return uncut(module), note


def _jobs(images: int, passes: int, batch: int, folds: bool) -> list[tuple[int, int]]:
    """What to run, one after the other: the first row, and how many passes at once."""
    jobs = []
    for start in range(0, images, batch):
        at_once = max(1, batch // min(batch, images - start)) if folds else 1
        jobs += [(start, min(at_once, passes - done)) for done in range(0, passes, at_once)]
    return jobs


@contextmanager
def _last_inputs(module: nn.Module) -> Iterator[list[Tensor]]:
    """What the linear layers read, in the order they run."""
    seen: list[Tensor] = []
    handles = [
        layer.register_forward_pre_hook(lambda _, inputs: seen.extend(inputs[:1]))
        for layer in module.modules()
        if isinstance(layer, nn.Linear)
    ]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


def _embedding(output: Any, last: list[Tensor], rows: int) -> Tensor | None:
    found = getattr(output, "embedding", last[-1] if last else None)
    return found if isinstance(found, Tensor) and found.ndim == 2 and len(found) == rows else None
