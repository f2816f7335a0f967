"""Loops are compiled, with a place to keep them or without."""

from __future__ import annotations

import pytest
from numba import njit

from vicinal.compiled import compiled


def double(x):
    return 2 * x


def without_a_file():
    """A function that Numba finds no place for, as in a read-only container."""
    names: dict[str, object] = {}
    exec("def double(x):\n    return 2 * x", names)
    return names["double"]


def test_what_is_compiled_answers_as_python_does():
    assert compiled()(double)(4) == 8


def test_without_a_place_to_keep_it_a_function_is_compiled_all_the_same():
    with pytest.raises(RuntimeError, match="cannot cache function"):
        njit(cache=True)(without_a_file())
    assert compiled(fastmath=True)(without_a_file())(4.5) == 9.0
