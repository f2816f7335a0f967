"""Memory-mapped arrays, gone through a window at a time, so that no more of them than that is resident.

A page of a mapped file that was touched counts as resident until the system takes it away, and it takes none away while
memory is plenty. So whoever goes through a mapped array does it here: the next window is asked for while one is looked
at, so that the disk and the processor work at the same time, and a window that is done with is given back. Arrays in
memory are gone through as if none of this existed.

Only maps that nobody can write to are given back: of a private one, what was written would be lost.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["WINDOW", "is_mapped", "release", "walk"]

WINDOW = 32 * 2**20  # bytes of a mapped array that are looked at before they are given back
_SPARSE = 2**16  # bytes: where rows are wanted more densely than one in so many, all of the window is read


def is_mapped(array: npt.NDArray[Any]) -> bool:
    """Whether an array lies in a file that is mapped into memory, to be read only."""
    return _Pages.of(array) is not None


def release(array: npt.NDArray[Any]) -> None:
    """Give the pages of a mapped array back; they are read again when they are touched again."""
    pages = _Pages.of(array)
    if pages is not None:
        pages.release(0, len(array))


def walk(array: Any, width: int, *, only: npt.NDArray[np.int64] | None = None) -> Iterator[tuple[int, Any]]:
    """The rows of an array in blocks of at most ``width``, each with the number of its first row.

    Args:
        array: (n, ...), or whatever gives its rows a slice at a time; a mapped array comes in blocks no larger than a
            window.
        width: how many rows at most.
        only: rows that will be looked at, in any order: of a mapped array, blocks without any of them may be left out,
            and no others are fetched from the disk if they are few.

    Example:
        >>> [(first, block.tolist()) for first, block in walk(np.arange(5), 2)]
        [(0, [0, 1]), (2, [2, 3]), (4, [4])]
    """
    pages = _Pages.of(array)
    if pages is None:
        for start in range(0, len(array), width):
            yield start, array[start : start + width]
        return
    windows = pages.windows(len(array), width, only)
    for following in windows[:1]:
        pages.expect(following)
    for number, window in enumerate(windows):
        for following in windows[number + 1 : number + 2]:
            pages.expect(following)
        try:
            for start in range(window.start, window.stop, width):
                yield start, array[start : min(start + width, window.stop)]
        finally:
            pages.release(window.start, window.stop)


@dataclass(frozen=True)
class _Window:
    """Rows from ``start`` to ``stop``; of these, those that are wanted, or None for all."""

    start: int
    stop: int
    wanted: npt.NDArray[np.int64] | None


@dataclass(frozen=True, eq=False)
class _Pages:
    """Where the rows of an array lie in a map: from byte ``first`` on, ``row`` bytes each."""

    map: mmap.mmap
    first: int
    row: int

    @classmethod
    def of(cls, array: Any) -> _Pages | None:
        """None for an array that is not mapped, that somebody may write to, or whose rows do not lie side by side."""
        base: Any = array
        while isinstance(base, np.ndarray):
            base = base.base
        if not isinstance(base, mmap.mmap) or not hasattr(base, "madvise") or not len(array):
            return None
        if not array.flags.c_contiguous or not memoryview(base).readonly:
            return None
        begin = np.frombuffer(base, np.uint8).ctypes.data
        return cls(base, array.ctypes.data - begin, array.nbytes // len(array))

    def windows(self, n: int, width: int, only: npt.NDArray[np.int64] | None) -> list[_Window]:
        """The windows to go through, each of whole blocks where these are smaller."""
        rows = max(1, WINDOW // max(1, self.row))
        rows = rows // width * width or rows
        starts = range(0, n, rows)
        if only is None:
            return [_Window(start, min(n, start + rows), None) for start in starts]
        wanted = np.unique(only)
        ends = np.searchsorted(wanted, [*starts, n])
        parts = [wanted[a:b] for a, b in pairwise(ends)]
        return [_Window(s, min(n, s + rows), part) for s, part in zip(starts, parts, strict=True) if len(part)]

    def expect(self, window: _Window) -> None:
        """Have the disk begin to read what is wanted of a window."""
        size = (window.stop - window.start) * self.row
        if window.wanted is None or len(window.wanted) * _SPARSE > size:
            self._advise(mmap.MADV_WILLNEED, window.start, window.stop)
            return
        for row in window.wanted.tolist():
            self._advise(mmap.MADV_WILLNEED, row, row + 1)

    def release(self, start: int, stop: int) -> None:
        """Give rows back."""
        self._advise(mmap.MADV_DONTNEED, start, stop)

    def _advise(self, advice: int, start: int, stop: int) -> None:
        begin = (self.first + start * self.row) // mmap.PAGESIZE * mmap.PAGESIZE
        self.map.madvise(advice, begin, self.first + stop * self.row - begin)
