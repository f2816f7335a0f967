"""Any torch model in, ``Embeddings`` out: the way across the waist."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from vicinal import progress
from vicinal.errors import InputError, ShapeError
from vicinal.learn.as_found import as_found
from vicinal.learn.nests import described, mapped
from vicinal.learn.taps import Arguments, Layer, Tap, name_of, tapped
from vicinal.values import Embeddings

__all__ = ["fingerprint", "from_model"]


def from_model(
    model: nn.Module,
    loader: Iterable[Any],
    *,
    layer: Layer = None,
    pool: Callable[[Any], Tensor] | None = None,
    logits: str | int | bool | Callable[[Any], Tensor] | None = None,
    labels: Any = None,
    classes: Any = None,
    device: str | torch.device | None = None,
    facts: Mapping[str, str] | None = None,
) -> Embeddings:
    """Run a classifier over its data and keep, of each input, where the network puts it and what it answers.

    The model runs in evaluation mode under ``torch.no_grad`` and is left exactly as it was found, also when it
    or the loader fails half way: the mode of every submodule, hooks, device, buffers, and torch's random state.

    Args:
        model: any torch module.
        loader: an iterable of batches; each is the inputs alone (a tensor, an array, or a mapping of keyword
            arguments), or a pair ``(inputs, labels)``, where inputs may also be a tuple of positional arguments.
        layer: which vectors to keep. Left out, the *input of the last linear layer* that runs; it must give as many
            numbers as there are logits. A dotted name (as in ``model.named_modules()``) or a submodule: its *output*.
            Any other callable: what it returns for the arguments of the model.
        pool: turns what the layer gives into vectors (n, d), as in ``lambda tokens: tokens.mean(1)``. Left out, only
            (n, d) will do, or (n, d, 1, 1): how to pool is not guessed.
        logits: where the logits are in the model's output: a key or the name of a field, an index, or a callable.
            None: the output is the logits. False: there are none to keep.
        labels: the true classes, where the loader does not give them: an array in the order of the loader (which then
            must not shuffle), or the key under which each batch, a mapping, holds them.
        classes: (c,), the label of each column of the logits; left out, column j stands for label j.
        device: where to run; left out, where the model is. Batches are moved there.
        facts: to be kept beside the facts that are always there: network, layer, fingerprint, torch.

    Returns:
        Embeddings with float32 vectors, one row for each input, in the order of the loader.

    Example:
        >>> model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
        >>> from_model(model, [(torch.ones(5, 4), torch.tensor([0, 1, 0, 1, 0]))])
        Embeddings(5 x 3; logits, labels, predicted)
    """
    model = _unwrapped(model)
    _refuse_unready(model, loader, labels)
    key = labels if isinstance(labels, str) else None
    stranger = [layer] if isinstance(layer, nn.Module) and name_of(model, layer) is None else []
    rows = _Rows()
    with (
        as_found(model, *stranger, device=device) as target,
        torch.no_grad(),  # not inference mode: what a model keeps for itself as it runs must still be fit to train with
        tapped(model, layer, needs_output=logits is not False) as tap,
    ):
        for batch in progress.track(iter(loader), "embedding", _length(loader)):
            arguments, truth = _parted(batch, key)
            value, output = tap.read(_moved(arguments, target))
            found = None if logits is False else _logits(output, logits, tap)
            rows.add(_vectors(value, pool, tap.where), found, truth)
        where = tap.where
    given = labels is not None and key is None
    if given and rows.labels() is not None:
        raise InputError("labels: expected them once, got an array and a loader that gives labels too; leave one out")
    said = {"network": type(model).__qualname__, "layer": where, "torch": str(torch.__version__)}
    return Embeddings(
        rows.vectors(),
        rows.logits(),
        labels if given else rows.labels(),
        classes=classes,
        facts={**said, "fingerprint": fingerprint(model), **(facts or {})},
    )


def fingerprint(model: nn.Module) -> str:
    """Sha256 of a model's weights: names, types, shapes and bytes of the state dict, in the order of the names.

    Example:
        >>> fingerprint(nn.Identity())[:8]
        'e3b0c442'
    """
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        if isinstance(value, Tensor):
            digest.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
            flat = _plain(value).contiguous().reshape(-1)
            digest.update(flat.view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _plain(value: Tensor) -> Tensor:
    """The same numbers in an ordinary, dense tensor on the CPU."""
    dense = value.detach().cpu() if value.layout == torch.strided else value.detach().cpu().to_dense()
    return dense.resolve_conj().resolve_neg()


def _unwrapped(model: nn.Module) -> nn.Module:
    """The module inside a compiled or data-parallel one, whose layers hooks would not see run."""
    if not isinstance(model, nn.Module):
        raise InputError(f"model: expected a torch.nn.Module, got {type(model).__name__}")
    inner: nn.Module = getattr(model, "_orig_mod", model)
    if isinstance(inner, (nn.DataParallel, nn.parallel.DistributedDataParallel)):
        inner = inner.module
    return inner


def _refuse_unready(model: nn.Module, loader: Any, labels: Any) -> None:
    if not isinstance(loader, Iterable) and not hasattr(loader, "__getitem__"):
        raise InputError(f"loader: expected an iterable of batches, got {type(loader).__name__}")
    if any(nn.parameter.is_lazy(tensor) for tensor in (*model.parameters(), *model.buffers())):
        raise InputError("model: expected weights, got a lazy layer that has none yet; run the model once first")
    given = labels is not None and not isinstance(labels, str)
    if given and isinstance(getattr(loader, "sampler", None), torch.utils.data.RandomSampler):
        raise InputError("labels: an array needs a loader in a known order, got one that shuffles; set shuffle=False")


def _length(loader: Any) -> int | None:
    try:
        return len(loader)
    except TypeError:
        return None


def _parted(batch: Any, key: str | None) -> tuple[Arguments, Any]:
    """A batch as the model's arguments and its labels."""
    inputs, truth = batch, None
    if isinstance(batch, (tuple, list)):
        if not 1 <= len(batch) <= 2:
            raise InputError(
                f"loader: expected inputs, or a pair (inputs, labels), got {described(batch)}; "
                "several inputs go into one tuple: ((a, b), labels)"
            )
        inputs, truth = batch if len(batch) == 2 else (batch[0], None)
    if key is not None:
        if not isinstance(inputs, Mapping) or key not in inputs:
            raise InputError(f"labels: expected batches that are mappings with a key {key!r}, got {described(inputs)}")
        truth = inputs[key]
    if isinstance(inputs, Mapping):
        return ((), {name: value for name, value in inputs.items() if name != key}), truth
    return (tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,), {}), truth


def _moved(arguments: Arguments, device: torch.device) -> Arguments:
    args, kwargs = mapped(arguments, lambda tensor: tensor.to(device, non_blocking=True))
    return args, kwargs


def _vectors(value: Any, pool: Callable[[Any], Tensor] | None, where: str) -> Tensor:
    found = value if pool is None else pool(value)
    if not isinstance(found, Tensor):
        raise InputError(f"layer: expected a tensor from the {where}, got {described(found)}; pass pool, to choose one")
    if found.ndim > 2 and found.shape[2:].numel() == 1:
        found = found.flatten(1)
    if found.ndim != 2:
        raise ShapeError(
            f"layer: expected vectors (n, d) from the {where}, got {tuple(found.shape)}; "
            "pass pool, such as pool=lambda v: v.flatten(1) or pool=lambda v: v.mean((2, 3))"
        )
    return found


def _logits(output: Any, logits: str | int | bool | Callable[[Any], Tensor] | None, tap: Tap) -> Tensor:
    found = output if logits is None else _chosen(output, logits)
    if not isinstance(found, Tensor):
        if logits is None:
            raise InputError(
                f"logits: the model returns {described(output)}; say which of them: logits={_hint(output)}"
            )
        raise InputError(f"logits: expected a tensor at {logits!r}, got {described(found)}")
    tap.refuse_other(found)
    return found


def _chosen(output: Any, logits: str | int | bool | Callable[[Any], Tensor]) -> Any:
    if isinstance(logits, str):
        if isinstance(output, Mapping) and logits in output:
            return output[logits]
        if not isinstance(output, (Mapping, Tensor)) and hasattr(output, logits):
            return getattr(output, logits)
    elif isinstance(logits, int) and not isinstance(logits, bool):
        if isinstance(output, (tuple, list)) and -len(output) <= logits < len(output):
            return output[logits]
    elif callable(logits):
        return logits(output)
    raise InputError(f"logits: {logits!r} is not in the model's output, which is {described(output)}")


def _hint(output: Any) -> str:
    if isinstance(output, Mapping):
        return repr(next(iter(output), "logits"))
    fields = getattr(output, "_fields", None)
    return repr(fields[0]) if fields else "0" if isinstance(output, (tuple, list)) else "lambda output: ..."


class _Rows:
    """What was kept of each batch, on the CPU."""

    def __init__(self) -> None:
        self._vectors: list[Any] = []
        self._logits: list[Any] = []
        self._labels: list[Any] = []

    def add(self, vectors: Tensor, logits: Tensor | None, labels: Any) -> None:
        n = len(vectors)
        if logits is not None and (logits.ndim != 2 or len(logits) != n):
            raise ShapeError(f"logits: expected ({n}, c), one row for each vector, got {tuple(logits.shape)}")
        if labels is not None and (np.ndim(labels) != 1 or len(labels) != n):
            raise ShapeError(f"labels: expected shape ({n},) in this batch, got {tuple(np.shape(labels))}")
        if self._vectors and vectors.shape[1] != self._vectors[0].shape[1]:
            said = f"{self._vectors[0].shape[1]} in one batch and {vectors.shape[1]} in another"
            raise ShapeError(f"layer: expected as many columns in every batch, got {said}; name another, or pass pool")
        if self._vectors and (labels is None) != (not self._labels):
            raise InputError("labels: expected them in every batch of the loader or in none, got both kinds")
        for rows, value in ((self._vectors, vectors), (self._logits, logits), (self._labels, labels)):
            if value is not None:
                rows.append(_array(value))

    def vectors(self) -> Any:
        if not self._vectors:
            raise InputError("loader: expected at least one batch, got none; an iterator can be run through only once")
        return np.concatenate(self._vectors).astype(np.float32, copy=False)

    def logits(self) -> Any:
        return np.concatenate(self._logits) if self._logits else None

    def labels(self) -> Any:
        return np.concatenate(self._labels) if self._labels else None


def _array(value: Any) -> Any:
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        return (value.float() if value.dtype in (torch.float16, torch.bfloat16) else value).numpy()
    return np.asarray(value)
