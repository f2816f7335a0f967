"""One owner for the cores: while our own threads work, the matrix library under NumPy keeps to one thread each."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

__all__ = ["Halt", "cores", "rounds", "spread"]

Halt = threading.Event  # set when nobody waits for the results any more
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_lock = threading.Lock()
_users = 0
_limit: Any = None
_before = 1  # threads of the matrix library when the first user came


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    import numpy  # noqa: F401  the controller sees the libraries that are loaded when it is made

    return ThreadpoolController()


def cores() -> int:
    """How many threads to use: as many as the matrix library may now, so OMP_NUM_THREADS and its like are obeyed."""
    with _lock:
        return _before if _users else _threads()


def _threads() -> int:
    libraries = _controller().lib_controllers
    return max([1, *(int(library.num_threads) for library in libraries if library.user_api == "blas")])


def rounds(m: int, most: int, together: int) -> list[list[slice]]:
    """The rows from 0 to m in slices of at most ``most``, as alike in size as they can be, so many of them in a round.

    Example:
        >>> rounds(10, most=3, together=2)
        [[slice(0, 3, None), slice(3, 6, None)], [slice(6, 9, None), slice(9, 10, None)]]
    """
    count = max(1, -(-m // (most * together)) * together)
    size = max(1, -(-m // count))
    slices = [slice(start, min(m, start + size)) for start in range(0, m, size)]
    return [slices[start : start + together] for start in range(0, len(slices), together)]


def spread(work: Callable[[_Item, Halt], _Result], items: Sequence[_Item]) -> list[_Result]:
    """The results of ``work`` on each item, in order, on all cores at once.

    ``work`` must spend its time where Python's lock is released: in NumPy products and compiled loops. It is handed an
    event besides, and should come to an end soon after that is set, which happens on Ctrl-C and when another piece of
    work fails. Any number of threads may call this at the same time; the last to leave gives the matrix library its
    threads back.
    """
    halt = Halt()
    helpers = min(cores(), len(items)) - 1
    if helpers < 1:
        return [work(item, halt) for item in items]
    waiting, found = deque(enumerate(items)), {}

    def serve() -> None:
        while not halt.is_set():
            try:
                place, item = waiting.popleft()
            except IndexError:
                return
            try:
                found[place] = work(item, halt)
            except BaseException:
                halt.set()
                raise

    _enter()
    try:
        with ThreadPoolExecutor(helpers, thread_name_prefix="vicinal") as pool:
            busy = [pool.submit(serve) for _ in range(helpers)]
            try:
                serve()  # the caller's own core is awake, and new threads find the others idle
                for helper in busy:
                    helper.result()
            except BaseException:
                halt.set()
                raise
    finally:
        _leave()
    return [found[place] for place in range(len(items))]


def _enter() -> None:
    global _users, _limit, _before
    with _lock:
        if _users == 0:
            _before = _threads()
            _limit = _controller().limit(limits=1, user_api="blas")
        _users += 1


def _leave() -> None:
    global _users, _limit
    with _lock:
        _users -= 1
        if _users == 0:
            _limit.restore_original_limits()
            _limit = None
