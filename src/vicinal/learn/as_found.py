"""Borrowing a torch module: whatever is done to it inside the block, it leaves as it came."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn

from vicinal.errors import InputError

__all__ = ["as_found", "device_of", "kept_random_state", "usable_device"]


@contextmanager
def as_found(*modules: nn.Module, device: str | torch.device | None = None) -> Iterator[torch.device]:
    """Lend modules, in evaluation mode and on ``device``, and put everything back at the end, also after an error.

    Put back are the mode of every submodule (set without calling ``train`` or ``eval``, which may be overridden and do
    more), the device, every buffer, and the state of torch's generators. Parameters are not touched: what runs inside
    the block is expected not to train.

    Args:
        modules: what to lend; the first decides where to run.
        device: where to run; left out, where the first module is.

    Yields:
        The device that inputs belong on.

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 2), nn.Dropout())
        >>> with as_found(model):
        ...     model[1].training
        False
        >>> model[1].training
        True
    """
    target = device_of(modules[0]) if device is None else torch.device(device)
    with ExitStack() as stack:
        stack.enter_context(kept_random_state(target, device_of(modules[0])))
        for module in modules:
            stack.enter_context(_kept_tensors(module, None if device is None else target))
            stack.enter_context(_evaluating(module))
        yield target


def device_of(module: nn.Module) -> torch.device:
    """Where a module's first parameter or buffer lies; the CPU for one that has none."""
    for tensor in (*module.parameters(), *module.buffers()):
        return tensor.device
    return torch.device("cpu")


def usable_device(device: str | torch.device) -> torch.device:
    """A device by its name, if torch can put something there.

    Example:
        >>> usable_device("cpu")
        device(type='cpu')
    """
    try:
        found = torch.device(device)
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        said = str(error).strip().split("\n")[0]
        raise InputError(
            f"device: expected one that torch can use here, such as cpu, got {device!r} ({said})"
        ) from error
    return found


@contextmanager
def kept_random_state(*devices: torch.device) -> Iterator[None]:
    """Put torch's generators back at the end: the CPU's always, those of CUDA where it is or may be in use."""
    running: bool = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    cuda = running or any(device.type == "cuda" for device in devices)
    state = torch.random.get_rng_state()
    states = torch.cuda.get_rng_state_all() if cuda else []
    try:
        yield
    finally:
        torch.random.set_rng_state(state)
        if cuda:
            torch.cuda.set_rng_state_all(states)


@contextmanager
def _evaluating(module: nn.Module) -> Iterator[None]:
    modes = [(part, part.training) for part in module.modules()]
    try:
        for part, _ in modes:
            part.training = False
        yield
    finally:
        for part, mode in modes:
            part.training = mode


@contextmanager
def _kept_tensors(module: nn.Module, device: torch.device | None) -> Iterator[None]:
    """Move a module and put back its very storages; without a move, put back the values of its buffers."""
    places = sorted({str(tensor.device) for tensor in (*module.parameters(), *module.buffers())})
    if device is not None and len(places) > 1:
        raise InputError(f"device: expected none, as the model lies on {' and '.join(places)}; leave device out")
    owned = [(part, name, value) for part in module.modules() for name, value in part._parameters.items()]
    movable = [] if device is None else [part for owner in module.parameters() for part in (owner, owner.grad)]
    storages = [(tensor, tensor.data) for tensor in movable if tensor is not None]
    buffers = [(part, name, buffer) for part in module.modules() for name, buffer in part._buffers.items()]
    values = [None if buffer is None else buffer.detach().clone() for _, _, buffer in buffers]
    try:
        if device is not None:
            module.to(device)
        yield
    finally:
        for part, name, parameter in owned:  # some devices get parameters of their own, others other storages
            part._parameters[name] = parameter
        for tensor, data in storages:
            tensor.data = data
        for (part, name, buffer), value in zip(buffers, values, strict=True):
            part._buffers[name] = buffer
            _put_back(buffer, value)


def _put_back(buffer: Tensor | None, value: Tensor | None) -> None:
    if buffer is None or value is None:
        return
    if buffer.layout != torch.strided or not torch.equal(buffer, value):  # sparse ones cannot be compared
        with torch.no_grad():
            buffer.copy_(value)
