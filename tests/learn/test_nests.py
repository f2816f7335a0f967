"""Nests keep their shape, whatever they are made of."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vicinal.learn.nests import described, mapped

Pair = namedtuple("Pair", "left right")
LEAVES = st.one_of(st.integers(), st.none(), st.text(max_size=3), st.integers(0, 5).map(lambda n: torch.full((2,), n)))
NESTS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.tuples(inner, inner).map(lambda two: Pair(*two)),
        st.dictionaries(st.text(max_size=2), inner, max_size=3),
    ),
    max_leaves=8,
)


def same(first: Any, second: Any) -> bool:
    if isinstance(first, torch.Tensor):
        return torch.equal(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
    if isinstance(first, (list, tuple)):
        return type(first) is type(second) and len(first) == len(second) and all(map(same, first, second))
    return first == second


@given(NESTS)
def test_doing_nothing_gives_the_same_nest(nest: Any) -> None:
    assert same(mapped(nest, lambda tensor: tensor), nest)


@given(NESTS)
def test_every_tensor_is_reached_once(nest: Any) -> None:
    seen: list[torch.Tensor] = []
    mapped(nest, lambda tensor: seen.append(tensor) or tensor)
    assert len(seen) == str(nest).count("tensor(")


def test_arrays_become_tensors_and_other_mappings_become_dicts() -> None:
    found = mapped(OrderedDict(a=np.ones(2), b=Pair(np.zeros(1), "word")), lambda tensor: tensor + 1)
    assert torch.equal(found["a"], torch.full((2,), 2.0, dtype=torch.float64))
    assert isinstance(found["b"], Pair)
    assert found["b"].right == "word"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (torch.ones(2, 3), "Tensor (2, 3)"),
        (np.ones(4), "ndarray (4,)"),
        ({"a": torch.ones(1)}, "a dict of 1: 'a': Tensor (1,)"),
        (Pair(1, None), "a Pair of 2: left: a int, right: a NoneType"),
        ([torch.ones(1)] * 10, f"a list of 10: {', '.join(f'{n}: Tensor (1,)' for n in range(8))}, ..."),
        ((), "a tuple of 0: "),
        ("word", "a str"),
    ],
)
def test_what_came_is_put_in_words(value: Any, words: str) -> None:
    assert described(value) == words
