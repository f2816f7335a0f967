"""Progress bars for whatever takes longer than two seconds, and none where nobody watches."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import TypeVar

__all__ = ["track"]

_Item = TypeVar("_Item")
_PATIENCE = 2.0  # seconds before a bar appears


def track(
    items: Iterable[_Item], what: str, total: int | None = None, *, note: Callable[[], str] | None = None
) -> Iterator[_Item]:
    """Yield the items; once two seconds have passed, show how far we are on standard error, if it is a terminal.

    Args:
        items: what to go through.
        what: the work, as the bar names it, such as ``"searching"``.
        total: how many items there are, where ``items`` cannot tell.
        note: what to say beside the work, such as a loss; asked again for every item.

    Example:
        >>> [2 * n for n in track([1, 2, 3], "doubling")]
        [2, 4, 6]
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield from items
        return
    if total is None and isinstance(items, Sized):
        total = len(items)
    yield from _shown(items, what, total, note or str)


def _shown(items: Iterable[_Item], what: str, total: int | None, note: Callable[[], str]) -> Iterator[_Item]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(what, total=total)
    begun = time.monotonic()
    started = False
    try:
        for done, item in enumerate(items):
            if not started and time.monotonic() - begun > _PATIENCE:
                bar.start()
                started = True
            bar.update(task, completed=done, description=f"{what} {note()}".strip())
            yield item
    finally:
        if started:
            bar.stop()
