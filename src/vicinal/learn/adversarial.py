"""Adversarial training (Eq. 3): learn from every input, and from the same input moved to where its loss is larger."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from vicinal import checks
from vicinal.errors import InputError, ShapeError
from vicinal.learn.networks import logits_of

__all__ = ["AdversarialLosses", "adversarial_backward", "perturb", "ramp"]


class AdversarialLosses(NamedTuple):
    """What one step of adversarial training found; nothing here carries a gradient.

    Args:
        total: (clean + weight * adversarial) / (1 + weight), whose gradient the parameters have received.
        clean: the loss of the inputs.
        adversarial: the loss of the moved inputs.
        logits: (n, c), of the inputs as they are.
    """

    total: Tensor
    clean: Tensor
    adversarial: Tensor
    logits: Tensor


def adversarial_backward(
    network: nn.Module,
    images: Tensor,
    labels: Tensor,
    epsilon: float,
    *,
    weight: float = 1.0,
    low: float | Tensor | None = None,
    high: float | Tensor | None = None,
    loss: Callable[[Tensor, Tensor], Tensor] = functional.cross_entropy,
    backward: Callable[[Tensor], object] = torch.Tensor.backward,
) -> AdversarialLosses:
    """Run both backward passes of adversarial training; between ``zero_grad()`` and ``step()`` of any optimizer.

    The paper minimises the loss "for both the regular and adversarial examples", following Goodfellow et al., who take
    the mean of the two. So does this, with a weight of 1: the gradients are as large as without adversaries, so that
    learning rate and weight decay keep their meaning. (A sum instead of the mean is twice the learning rate.) The
    backward pass of the clean loss gives the gradient of the parameters and that of the inputs at once, so a step
    takes two passes forward and two back. Dropout draws anew for the moved inputs.

    Args:
        network: returns logits (n, c), alone, first of a tuple, or named ``logits``. Gradients add to those it has.
        images: (n, ...), floats; left as they are.
        labels: (n,), what ``loss`` takes.
        epsilon: how far every coordinate moves, in units of the network's input; at least 0.
        weight: of the adversarial loss beside the clean one; at least 0.
        low: the smallest valid input, one number or a tensor that broadcasts; None: any.
        high: the largest valid input, likewise.
        loss: of logits and labels, a mean over the batch.
        backward: how to run a backward pass: ``self.manual_backward`` in a Lightning module, for example.

    Example:
        >>> network = nn.Linear(3, 2)
        >>> losses = adversarial_backward(network, torch.randn(5, 3), torch.tensor([0, 1, 0, 1, 0]), 0.1)
        >>> bool(losses.adversarial > losses.clean)
        True
    """
    checks.fraction(weight, "weight", high=sys.float_info.max)
    _check_move(images, epsilon, low, high)
    inputs = images.detach().requires_grad_()
    logits = logits_of(network(inputs))
    clean = loss(logits, labels)
    backward(clean / (1 + weight))
    if inputs.grad is None:
        raise InputError("network: expected logits that depend on the images, got none that do")
    moved = perturb(images, inputs.grad, epsilon, low=low, high=high)
    adversarial = loss(logits_of(network(moved)), labels)
    backward(adversarial * (weight / (1 + weight)))
    clean, adversarial = clean.detach(), adversarial.detach()
    return AdversarialLosses((clean + weight * adversarial) / (1 + weight), clean, adversarial, logits.detach())


def perturb(
    images: Tensor,
    gradient: Tensor,
    epsilon: float,
    *,
    low: float | Tensor | None = None,
    high: float | Tensor | None = None,
) -> Tensor:
    """Eq. 3, the fast gradient sign method: x' = x + epsilon * sign(gradient of the loss at x).

    A coordinate whose gradient is 0 stays where it is.

    Args:
        images: (n, ...), x, floats.
        gradient: of the classification loss, of the same shape; only its signs count.
        epsilon: at least 0, in units of the images.
        low: the smallest valid value, one number or a tensor that broadcasts; None: any.
        high: the largest valid value, likewise.

    Returns:
        x', of the same shape, without a gradient.

    Example:
        >>> perturb(torch.tensor([0.5, 0.5, 0.95]), torch.tensor([-2.0, 0.0, 3.0]), 0.1, high=1.0)
        tensor([0.4000, 0.5000, 1.0000])
    """
    _check_move(images, epsilon, low, high)
    if gradient.shape != images.shape:
        raise ShapeError(f"gradient: expected shape {tuple(images.shape)}, as the images, got {tuple(gradient.shape)}")
    with torch.no_grad():
        moved = images + epsilon * gradient.sign()
        for bound, hold in ((low, torch.maximum), (high, torch.minimum)):
            if bound is not None:
                moved = hold(moved, torch.as_tensor(bound, dtype=moved.dtype, device=moved.device))
    return moved


def ramp(epsilon: float, progress: float, *, over: float = 0.25) -> float:
    """Epsilon grown from 0 over the first part of a training, so that it does not collapse to one class.

    Args:
        epsilon: the full length, at least 0.
        progress: how much of the training is done, from 0 to 1.
        over: the part of the training by whose end the full length is reached; 0: from the start.

    Example:
        >>> [ramp(0.1, progress) for progress in (0.0, 0.125, 0.25, 1.0)]
        [0.0, 0.05, 0.1, 0.1]
    """
    checks.fraction(epsilon, "epsilon", high=sys.float_info.max)
    done, whole = checks.fraction(progress, "progress"), checks.fraction(over, "over")
    return epsilon if done >= whole else epsilon * done / whole


def _check_move(images: Tensor, epsilon: float, low: float | Tensor | None, high: float | Tensor | None) -> None:
    checks.fraction(epsilon, "epsilon", high=sys.float_info.max)
    if not images.is_floating_point():
        raise InputError(f"images: expected floats, which can move by epsilon, got {images.dtype}; preprocess first")
    if low is not None and high is not None and not bool((torch.as_tensor(low) <= torch.as_tensor(high)).all()):
        raise InputError("low, high: expected a valid range, got a low above its high")
