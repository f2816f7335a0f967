"""One step of each method, up to the optimizer's: forward and backward, leaving gradients in the parameters."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from vicinal.learn.adversarial import adversarial_backward, ramp
from vicinal.learn.losses import distance_loss
from vicinal.learn.networks import Output
from vicinal.learn.recipe import Recipe

__all__ = ["STEPS", "Forward", "Step"]

Step: TypeAlias = Callable[["Forward", Tensor, Tensor, "Tensor | None", Recipe, float], "tuple[Tensor, Tensor]"]


class Forward(nn.Module):
    """A network run in the precision of a recipe; what comes out is float32 in either.

    Args:
        network: its forward pass gives ``(logits, embedding)``.
        precision: ``float32`` or ``bfloat16``.

    Example:
        >>> Forward(nn.LSTM(3, 2), "bfloat16")(torch.zeros(4, 3)).logits.dtype
        torch.float32
    """

    def __init__(self, network: nn.Module, precision: str) -> None:
        super().__init__()
        self.network, self.precision = network, precision

    def forward(self, images: Tensor) -> Output:
        """Logits and embedding."""
        with self._casting(images.device.type):
            logits, embedding = self.network(images)
        return Output(logits.float(), embedding.float() if isinstance(embedding, Tensor) else embedding)

    def _casting(self, device: str) -> AbstractContextManager[Any]:
        return torch.autocast(device, torch.bfloat16) if self.precision == "bfloat16" else nullcontext()


def reg_step(
    network: Forward, images: Tensor, labels: Tensor, pairs: Tensor | None, recipe: Recipe, progress: float
) -> tuple[Tensor, Tensor]:
    """Cross entropy. Returns the loss and the logits, as all steps do; ``progress`` is the share of the run done."""
    logits = network(images).logits
    loss = cross_entropy(logits, labels)
    loss.backward()  # type: ignore[no-untyped-call]
    return loss, logits


def distance_step(
    network: Forward, images: Tensor, labels: Tensor, pairs: Tensor | None, recipe: Recipe, progress: float
) -> tuple[Tensor, Tensor]:
    """Eq. 2: cross entropy, and alpha times the distance loss of the pairs."""
    output = network(images)
    assert pairs is not None
    loss = cross_entropy(output.logits, labels)
    loss = loss + recipe.alpha * distance_loss(output.embedding, labels, pairs, recipe.margin)
    loss.backward()  # type: ignore[no-untyped-call]
    return loss, output.logits


def adversarial_step(
    network: Forward, images: Tensor, labels: Tensor, pairs: Tensor | None, recipe: Recipe, progress: float
) -> tuple[Tensor, Tensor]:
    """Eq. 3: the loss of the images and of their adversarial neighbours; the logits are those of the images."""
    low, high = recipe.clip or (None, None)
    epsilon = ramp(recipe.epsilon, progress, over=recipe.epsilon_ramp)
    losses = adversarial_backward(network, images, labels, epsilon, low=low, high=high)
    return losses.total, losses.logits


def both_step(
    network: Forward, images: Tensor, labels: Tensor, pairs: Tensor | None, recipe: Recipe, progress: float
) -> tuple[Tensor, Tensor]:
    """Eq. 3, and alpha times the distance loss of the images as they are: what the paper tried and advises against."""
    assert pairs is not None
    apart = recipe.alpha * distance_loss(network(images).embedding, labels, pairs, recipe.margin)
    apart.backward()  # type: ignore[no-untyped-call]
    loss, logits = adversarial_step(network, images, labels, pairs, recipe, progress)
    return loss + apart.detach(), logits


STEPS: dict[str, Step] = {
    "reg": reg_step,
    "distance": distance_step,
    "adversarial": adversarial_step,
    "both": both_step,
}
