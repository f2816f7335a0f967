"""Cutting a module in two: what its random layers never touch, which can run once, and the rest, which cannot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn

from vicinal.learn.nests import mapped

__all__ = ["Cut", "UncutError", "cut", "uncut"]

Kept = tuple[Any, ...]


class UncutError(Exception):
    """The module cannot be cut; the message says why."""


@dataclass(frozen=True)
class Cut:
    """A module in two parts: ``after(*before(images))`` is ``module(images)``.

    Args:
        before: what does not depend on any random layer; maps images to everything that ``after`` needs.
        after: the rest of the module.
        once: the layers in ``before``, by name.
        folds: whether every value between the parts has one row for each image, so that ``after`` can run on several
            copies of them at once.
        copies: whether ``after`` changes what it is given, and needs a copy.
    """

    before: Callable[[Tensor], Kept]
    after: nn.Module
    once: tuple[str, ...]
    folds: bool
    copies: bool

    def run(self, kept: Kept, times: int = 1) -> Any:
        """What ``after`` makes of the values kept, of several copies of them at once, or of each anew."""
        if times > 1:
            kept = tuple(torch.cat([value] * times) for value in kept)  # which keeps the channels last in memory
        elif self.copies:
            kept = mapped(kept, torch.Tensor.clone)
        return self.after(*kept)


def uncut(module: nn.Module) -> Cut:
    """The whole module as what comes after: plain passes."""
    return Cut(lambda images: (images,), module, (), folds=False, copies=True)


def cut(module: nn.Module, is_random: Callable[[nn.Module], bool], sample: Tensor) -> Cut:
    """Cut a module before its random layers, and try the cut out against the module itself.

    torch's global generators are used, and not put back.

    Args:
        module: takes one tensor; in the modes in which it is to run.
        is_random: whether a layer itself draws random numbers.
        sample: (n, ...), some images to try it on.

    Raises:
        UncutError: if the module cannot be traced, or its parts together are not the module.

    Example:
        >>> module = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Dropout(), nn.Linear(3, 2))
        >>> cut(module, lambda layer: isinstance(layer, nn.Dropout), torch.ones(2, 3)).once
        ('0', '1')
    """
    root = _OneInput(module)
    try:
        graph = _Tracer(is_random).trace(root)
        before, after, once = _parts(root, graph, is_random)
        folds = _has_rows(before(sample), len(sample)) and _has_rows(before(sample[:1]), 1)
        copies = _changes_its_input(before, after, sample)
        parts = Cut(before, after, once, folds, copies)
        _try_out(module, parts, sample)
    except UncutError:
        raise
    except Exception as error:  # whatever a stranger's code does when it is traced or run in parts
        said = str(error).strip().split("\n")[0]
        raise UncutError(f"it cannot be traced ({type(error).__name__}: {said})") from error
    return parts


class _OneInput(nn.Module):
    """A module called with images alone, so that its other arguments have their defaults while it is traced."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, images: Tensor) -> Any:
        return self.module(images)


class _Tracer(fx.Tracer):
    """Looks only into modules that hold a random layer; all others are one step, whatever they do inside."""

    def __init__(self, is_random: Callable[[nn.Module], bool]) -> None:
        super().__init__()
        self.is_random = is_random

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return (
            self.is_random(m)
            or not any(map(self.is_random, m.modules()))
            or super().is_leaf_module(m, module_qualified_name)
        )


def _parts(
    root: nn.Module, graph: fx.Graph, is_random: Callable[[nn.Module], bool]
) -> tuple[fx.GraphModule, fx.GraphModule, tuple[str, ...]]:
    """Both parts as modules, and the names of the layers in the first."""
    late: set[fx.Node] = set()
    for node in graph.nodes:
        draws = node.op == "call_module" and any(map(is_random, root.get_submodule(str(node.target)).modules()))
        if draws or node.op == "output" or any(source in late for source in node.all_input_nodes):
            late.add(node)
    if not any(node.op == "call_module" for node in late):
        raise UncutError("no dropout layer runs in its forward pass")
    early = [node for node in graph.nodes if node not in late]
    kept = [node for node in early if node.op != "get_attr" and any(user in late for user in node.users)]
    first, second = fx.Graph(), fx.Graph()
    copied: dict[fx.Node, fx.Node] = {}
    for node in early:
        copied[node] = first.node_copy(node, copied.__getitem__)
    first.output(tuple(copied[node] for node in kept))
    copied = {node: second.placeholder(f"kept{place}") for place, node in enumerate(kept)}
    for node in graph.nodes:
        if node in late or node.op == "get_attr":  # weights are no values of the images: both parts have them
            copied[node] = second.node_copy(node, copied.__getitem__)
    once = tuple(str(node.target).removeprefix("module.") for node in early if node.op == "call_module")
    return fx.GraphModule(root, first), fx.GraphModule(root, second), once


def _has_rows(kept: Kept, rows: int) -> bool:
    return all(isinstance(value, Tensor) and value.ndim > 0 and len(value) == rows for value in kept)


def _changes_its_input(before: nn.Module, after: nn.Module, sample: Tensor) -> bool:
    kept = before(sample)
    versions = [value._version for value in kept if isinstance(value, Tensor)]
    after(*kept)
    return versions != [value._version for value in kept if isinstance(value, Tensor)]


def _try_out(module: nn.Module, parts: Cut, sample: Tensor) -> None:
    """Refuse parts that, with the same random numbers, do not give what the module gives."""
    torch.manual_seed(0)
    kept = parts.before(sample)
    torch.manual_seed(1)
    if not _alike(kept, parts.before(sample)):
        raise UncutError("it draws random numbers outside its dropout layers")
    times = 2 if parts.folds else 1
    torch.manual_seed(2)
    whole = module(torch.cat([sample] * times))
    torch.manual_seed(2)
    if not _alike(whole, parts.run(kept, times)):
        raise UncutError("its traced parts do not give what it gives itself")


def _alike(first: Any, second: Any) -> bool:
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        if first.shape != second.shape or not first.is_floating_point():
            return torch.equal(first, second)
        scale = float(first.detach().abs().max()) if first.numel() else 0.0
        return torch.allclose(first, second, rtol=1e-4, atol=1e-5 * scale, equal_nan=True)
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(_alike(first[key], second[key]) for key in first)
    if isinstance(first, (tuple, list)) and isinstance(second, (tuple, list)):
        return len(first) == len(second) and all(map(_alike, first, second))
    return bool(first == second)
