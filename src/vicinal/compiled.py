"""Compiling loops with Numba, and keeping what was compiled where there is a place for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

__all__ = ["compiled"]


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function when it is first called, without Python's lock, and keep it for the next process.

    Numba keeps it beside the source or under the home folder (or in ``NUMBA_CACHE_DIR``). Where none of these can be
    written to, as in a read-only container, each process compiles anew.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return njit(nogil=True, cache=True, **options)(function)
        except RuntimeError:  # Numba found no place to write to
            return njit(nogil=True, **options)(function)

    return decorate
