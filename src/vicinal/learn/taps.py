"""Tapping a running model: the value at one layer, beside the model's own output."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, Protocol, TypeAlias

import torch
from torch import Tensor, nn

from vicinal.errors import InputError
from vicinal.learn.nests import mapped

__all__ = ["Arguments", "Layer", "Tap", "name_of", "tapped"]

Arguments: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]
Layer: TypeAlias = "str | nn.Module | Callable[..., Any] | None"
_LISTED = 8  # names that an error shows


class Tap(Protocol):
    """Runs a batch and reads a layer."""

    @property
    def where(self) -> str:
        """The layer in words, as in ``output of 'pool'``."""

    def refuse_other(self, logits: Tensor) -> None:
        """Refuse logits that another layer than the one read may have made."""

    def read(self, arguments: Arguments) -> tuple[Any, Any]:
        """The value at the layer, and the output of the model (None where it was not run)."""


@contextmanager
def tapped(model: nn.Module, layer: Layer, *, needs_output: bool) -> Iterator[Tap]:
    """How to read a layer; hooks live as long as the block.

    Args:
        model: the model to look into.
        layer: None for the input of the last linear layer that runs; a dotted name or a submodule for its output; any
            other callable for what it returns.
        needs_output: whether a callable needs the model to run beside it.
    """
    name = name_of(model, layer) if isinstance(layer, nn.Module) else layer
    if layer is None:
        with _hooked_linears(model) as linears:
            yield linears
    elif isinstance(name, str):
        with _hooked_output(model, name) as output:
            yield output
    else:
        yield _Called(model, layer, needs_output)


def name_of(model: nn.Module, wanted: nn.Module) -> str | None:
    """The dotted name of a submodule; None where it is not one of this model's."""
    return next((name for name, part in model.named_modules() if part is wanted), None)


class _LastLinear:
    """The input of the linear layer that runs last."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._name = ""
        self._runs: dict[str, int] = {}
        self._inputs: list[Tensor] = []
        self._outputs: dict[str, Tensor] = {}

    @property
    def where(self) -> str:
        return f"input of {self._name!r}"

    def saw(self, name: str, value: Tensor) -> None:
        self._name = name
        self._inputs[:] = [value.detach().clone()]  # a copy: what comes after may work in place
        self._runs[name] = self._runs.get(name, 0) + 1

    def gave(self, name: str, output: Tensor) -> None:
        self._outputs[name] = output.detach()

    def read(self, arguments: Arguments) -> tuple[Any, Any]:
        before, self._runs, self._outputs = self._name, {}, {}
        output = self._model(*arguments[0], **arguments[1])
        if not self._inputs:
            raise InputError(
                "layer: expected a torch.nn.Linear to run in the forward pass, found none; name the layer whose output "
                f"to keep, such as {_listed(_leaves(self._model))}"
            )
        if before not in ("", self._name):
            raise InputError(
                f"layer: the last linear layer to run was {before!r} in one batch, {self._name!r} in another; name one"
            )
        if self._runs[self._name] > 1:
            raise InputError(_several(self._name, self._runs[self._name]))
        return self._inputs.pop(), output

    def refuse_other(self, logits: Tensor) -> None:
        last, columns = self._outputs[self._name], logits.shape[-1]
        if last.shape[-1] != columns:
            raise InputError(
                f"layer: the last linear layer ({self.where}) gives {last.shape[-1]} numbers and there are {columns} "
                "logits, so it is not the classifier; name the layer"
            )
        alike = [name for name, output in self._outputs.items() if output.shape == last.shape]
        if len(alike) > 1 and not (last.shape == logits.shape and torch.equal(last, logits)):
            raise InputError(
                f"layer: {_listed(alike)} all give {columns} numbers, and the logits are not those of {self._name!r}, "
                "which ran last; name the layer whose output to keep, the one before the classifier"
            )


class _Anything:
    """A tap for which any logits will do."""

    def refuse_other(self, logits: Tensor) -> None:
        pass


class _Output(_Anything):
    """The output of one layer."""

    def __init__(self, model: nn.Module, name: str) -> None:
        self._model = model
        self._name = name
        self._seen: list[Any] = []

    @property
    def where(self) -> str:
        return f"output of {self._name!r}" if self._name else "output of the model"

    def saw(self, _: nn.Module, __: Any, output: Any) -> None:
        self._seen.append(mapped(output, lambda tensor: tensor.detach().clone()))

    def read(self, arguments: Arguments) -> tuple[Any, Any]:
        output = self._model(*arguments[0], **arguments[1])
        if not self._seen:
            raise InputError(
                f"layer: expected {self._name!r} to run in the forward pass, but nothing called it; name another, or "
                "pass a callable"
            )
        if len(self._seen) > 1:
            raise InputError(_several(self._name, len(self._seen)))
        return self._seen.pop(), output


class _Called(_Anything):
    """What a callable says."""

    def __init__(self, model: nn.Module, layer: Any, needs_output: bool) -> None:
        if not callable(layer):
            raise InputError(f"layer: expected a name, a submodule, a callable or None, got {layer!r}")
        self._model, self._layer, self._needs_output = model, layer, needs_output

    @property
    def where(self) -> str:
        return f"callable {getattr(self._layer, '__qualname__', type(self._layer).__qualname__)}"

    def read(self, arguments: Arguments) -> tuple[Any, Any]:
        args, kwargs = arguments
        value = self._layer(*args, **kwargs)
        return value, self._model(*args, **kwargs) if self._needs_output else None


@contextmanager
def _hooked_linears(model: nn.Module) -> Iterator[_LastLinear]:
    tap = _LastLinear(model)

    def before(name: str) -> Callable[[nn.Module, tuple[Any, ...], dict[str, Any]], None]:
        return lambda part, args, kwargs: tap.saw(name, args[0] if args else kwargs["input"])

    def after(name: str) -> Callable[[nn.Module, Any, Tensor], None]:
        return lambda part, args, output: tap.gave(name, output)

    linears = [(name, part) for name, part in model.named_modules() if isinstance(part, nn.Linear)]
    handles = [part.register_forward_pre_hook(before(name), with_kwargs=True) for name, part in linears]
    handles += [part.register_forward_hook(after(name)) for name, part in linears]
    try:
        yield tap
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def _hooked_output(model: nn.Module, name: str) -> Iterator[_Output]:
    tap = _Output(model, name)
    handle = _named(model, name).register_forward_hook(tap.saw)
    try:
        yield tap
    finally:
        handle.remove()


def _named(model: nn.Module, name: str) -> nn.Module:
    try:
        return model.get_submodule(name)
    except AttributeError:
        names = [found for found, _ in model.named_modules(remove_duplicate=False) if found]
        near = get_close_matches(name, names, n=_LISTED, cutoff=0.5)
        hint = f"the closest: {_listed(near)}" if near else f"the last ones: {_listed(_leaves(model))}"
        raise InputError(f"layer: expected the name of a submodule, got {name!r}; {hint}") from None


def _several(name: str, times: int) -> str:
    return (
        f"layer: {name!r} ran {times} times in one forward pass, so there is no telling which to keep; name another, "
        "or pass a callable that returns the vectors"
    )


def _leaves(model: nn.Module) -> list[str]:
    """Submodules that hold no others, the last first."""
    return [name for name, part in model.named_modules() if name and not list(part.children())][::-1]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:_LISTED])) or "none (it has no submodules)"
