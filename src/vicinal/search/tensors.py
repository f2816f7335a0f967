"""What search asks of torch: the device and its memory, how exact its products are, and the largest of many."""

from __future__ import annotations

from typing import Any

from vicinal.errors import InputError, require
from vicinal.search.points import Points
from vicinal.search.shifting import UNIT

__all__ = ["GROUP", "LEAST_ROOM", "free_memory", "is_host", "joined", "needed_memory", "said", "top", "torch", "unit"]

GROUP = 32  # products whose largest is taken first: the best k lie in the k groups with the largest
LEAST_ROOM = 2**26  # bytes for products that a device must have beside the points
_COARSE = 2.0**-8  # how far a factor may be off where the user lets torch round products: bfloat16


def free_memory(device: str) -> int | None:
    """Bytes that are free on a device of torch; None where torch does not say. No such device is an error."""
    try:
        torch().zeros(1, device=device).cpu()
        if torch().device(device).type != "cuda":
            return None
        unused = int(torch().cuda.memory_reserved(device) - torch().cuda.memory_allocated(device))
        return int(torch().cuda.mem_get_info(device)[0]) + unused
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        why = str(error).partition("\n")[0]
        raise InputError(
            f"device: expected one that torch finds on this machine, such as 'cpu'{_others()}, got {device!r} ({why})"
        ) from error


def needed_memory(points: Points, device: str) -> int:
    """Bytes that a device must have free to hold some points and a block of products."""
    held = 0 if is_host(device) else len(points) * (4 * points.dimension + 8)
    return held + LEAST_ROOM


def _others() -> str:
    return "".join(f", 'cuda:{i}'" for i in range(torch().cuda.device_count())) if torch().cuda.is_available() else ""


def is_host(device: str) -> bool:
    """Whether a device is the CPU, which shares its memory with NumPy."""
    return device.partition(":")[0] == "cpu"


def said(size: int) -> str:
    """Bytes in words."""
    return f"{size / 2**30:.2f} GiB"


def torch() -> Any:
    """The library, or how to install it."""
    return require("torch", "torch", "search='torch'")


def unit() -> float:
    """How far a factor of a product may be off, as the user has set torch."""
    try:
        exact = torch().get_float32_matmul_precision() == "highest"
    except RuntimeError:  # set in more than one way
        exact = False
    return UNIT if exact else _COARSE


def top(values: Any, count: int) -> tuple[Any, Any]:
    """The largest of each row, at most so many, in any order, and their columns."""
    m, width = values.shape
    if width % GROUP or width // GROUP < 2 * count:
        found = values.topk(min(count, width), sorted=False)
        return found.values, found.indices
    groups = values.view(m, -1, GROUP)
    best = groups.amax(2).topk(count, sorted=False).indices
    inside = groups.gather(1, best[:, :, None].expand(-1, -1, GROUP)).flatten(1).topk(count, sorted=False)
    return inside.values, best.gather(1, inside.indices // GROUP) * GROUP + inside.indices % GROUP


def joined(best: tuple[Any, Any] | None, more: tuple[Any, Any], count: int) -> tuple[Any, Any]:
    """The largest of two lots, and their places, the largest first."""
    values, places = more if best is None else (torch().cat([a, b], 1) for a, b in zip(best, more, strict=True))
    found = values.topk(min(count, values.shape[1]))
    return found.values, places.gather(1, found.indices)
