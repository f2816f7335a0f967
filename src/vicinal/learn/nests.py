"""Nests of tuples, lists and mappings, as models take and return them: go through one, or say what is in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

__all__ = ["described", "mapped"]

_LISTED = 8  # parts that a description shows


def mapped(value: Any, act: Callable[[Tensor], Tensor]) -> Any:
    """The same nest, with something done to every tensor in it; arrays become tensors first, all else stays.

    Example:
        >>> mapped({"a": torch.ones(2), "b": [3]}, lambda tensor: tensor + 1)
        {'a': tensor([2., 2.]), 'b': [3]}
    """
    if isinstance(value, np.ndarray):
        value = torch.as_tensor(value)
    if isinstance(value, Tensor):
        return act(value)
    if isinstance(value, Mapping):
        return {name: mapped(part, act) for name, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(part, act) for part in value))
    if isinstance(value, (tuple, list)):
        return type(value)(mapped(part, act) for part in value)
    return value


def described(value: Any) -> str:
    """What came, in words for an error.

    Example:
        >>> described((torch.ones(8, 3), None))
        'a tuple of 2: 0: Tensor (8, 3), 1: a NoneType'
    """
    if isinstance(value, (Tensor, np.ndarray)):
        return f"{type(value).__name__} {tuple(value.shape)}"
    if isinstance(value, Mapping):
        parts = [f"{name!r}: {described(part)}" for name, part in value.items()]
    elif isinstance(value, (tuple, list)):
        names = getattr(value, "_fields", range(len(value)))
        parts = [f"{name}: {described(part)}" for name, part in zip(names, value, strict=True)]
    else:
        return f"a {type(value).__qualname__}"
    more = ", ..." if len(parts) > _LISTED else ""
    return f"a {type(value).__name__} of {len(parts)}: {', '.join(parts[:_LISTED])}{more}"
