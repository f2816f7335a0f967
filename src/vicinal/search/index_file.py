"""The file of an approximate search, beside that of its bank (docs: File formats).

It says by a fingerprint whose index it is, so that the index of another bank, or of this one before it was saved again,
is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vicinal import store
from vicinal.errors import FileError
from vicinal.search.approximate import ApproximateSearch, Effort
from vicinal.search.cells import Axes, Index, Layer
from vicinal.search.points import Points
from vicinal.search.probe import Contents
from vicinal.search.protocol import Measured

__all__ = ["FORMAT", "VERSION", "beside", "fingerprint", "read", "write"]

FORMAT = "vicinal.index"
VERSION = 2
_KINDS = {
    "centre": ("float32", 1),
    "directions": ("float32", 2),
    "centres": ("float32", 2),
    "numbers": ("int8", 2),
    "scales": ("float32", 1),
    "places": ("int64", 1),
    "starts": ("int64", 1),
}
_LAYER = ("numbers", "scales", "places", "starts")
_LOOKED_AT = 64  # vectors that go into the fingerprint whole; of all others, the length


def beside(path: str | Path) -> Path:
    """Where the index of the bank in a file is kept: ``bank.index.safetensors`` beside ``bank.safetensors``."""
    place = Path(path)
    return place.with_name(f"{place.stem}.index{place.suffix}")


def fingerprint(points: Points) -> str:
    """What tells the living points from those of another bank: their number and order, lengths, and some vectors."""
    living = np.flatnonzero(points.living)
    some = living[np.linspace(0, len(living) - 1, min(_LOOKED_AT, len(living))).astype(np.int64)]
    seen = hashlib.sha256(f"{len(living)} x {points.dimension}".encode())
    for part in (points.centre, points.squares[living], points.gather(some)):
        seen.update(np.ascontiguousarray(part, dtype=part.dtype.newbyteorder("<")).tobytes())
    return seen.hexdigest()


def write(path: str | Path, search: ApproximateSearch) -> None:
    """Write the index of a search that has one, without the points that were removed, in place of what is there."""
    assert search.contents is not None
    index = search.contents.index
    layer = _living(index.layers, search.points)
    arrays: dict[str, npt.NDArray[Any]]
    arrays = {"centre": index.axes.centre, "directions": index.axes.directions, "centres": index.centres}
    arrays |= {name: getattr(layer, name) for name in _LAYER}
    facts = {
        "fingerprint": fingerprint(search.points),
        "scale": index.axes.scale,
        "built": search.built,
        "moved": search.moved,
        "efforts": [asdict(effort) for effort in search.efforts],
    }
    store.write_arrays(path, arrays, form=FORMAT, version=VERSION, facts=facts)


def _living(layers: tuple[Layer, ...], points: Points) -> Layer:
    """All layers in one, with the places that the living points have once the others are gone."""
    places = np.concatenate([layer.places for layer in layers])
    kept = points.living[places]
    after = np.cumsum(points.living) - 1
    numbers, scales, owners = (
        np.concatenate([getattr(layer, name) for layer in layers])[kept] for name in ("numbers", "scales", "owners")
    )
    return Layer.of(numbers, scales, after[places[kept]], owners, len(layers[0].starts) - 1)


def read(path: str | Path, points: Points) -> ApproximateSearch:
    """The search of some points, all of them living, that was written.

    Raises:
        FileError: where there is none, or it is damaged, or it is the index of other points.
    """
    arrays, facts = store.read_arrays(path, form=FORMAT, version=VERSION, needs=tuple(_KINDS))
    kinds = {name: (str(array.dtype), array.ndim) for name, array in arrays.items()}
    if kinds != _KINDS:
        raise FileError(f"{path}: expected types and dimensions {_KINDS}, got {kinds}; the file is damaged")
    if facts.get("fingerprint") != fingerprint(points):
        raise FileError(
            f"{path}: expected the index of this bank, got that of another, or of this one before it changed"
        )
    parts = {name: np.array(array) for name, array in arrays.items()}
    _refuse_disagreement(path, parts, points)
    try:
        axes = Axes(parts["centre"], float(facts["scale"]), parts["directions"])
        efforts = tuple(Effort(**{**said, "measured": Measured(**said["measured"])}) for said in facts["efforts"])
        built, moved = int(facts["built"]), int(facts["moved"])
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(f"{path}: expected scale, efforts and numbers of points, got {error!r}; damaged") from error
    layer = Layer(*(parts[name] for name in _LAYER))
    contents = Contents(points, Index(axes, parts["centres"], (layer,)))
    return ApproximateSearch(points, contents, efforts, built, moved)


def _refuse_disagreement(path: str | Path, parts: Mapping[str, Any], points: Points) -> None:
    """Refuse what ``write`` never writes."""
    (n, p), cells, starts = parts["numbers"].shape, len(parts["centres"]), parts["starts"]
    shapes = {name: parts[name].shape for name in ("centre", "directions", "centres", "scales", "places")}
    fitting = n == len(points) and shapes == {
        "centre": (points.dimension,),
        "directions": (points.dimension, p),
        "centres": (cells, p),
        "scales": (n,),
        "places": (n,),
    }
    fitting &= (
        starts.shape == (cells + 1,) and starts[0] == 0 and starts[-1] == n and bool((np.diff(starts) >= 0).all())
    )
    if not fitting or not np.array_equal(np.sort(parts["places"]), np.arange(n)):
        raise FileError(f"{path}: expected every point once, in cells one after the other; the file is damaged")
    if not all(np.isfinite(parts[name]).all() for name in ("centre", "directions", "centres", "scales")):
        raise FileError(f"{path}: expected finite axes, centres and scales; the file is damaged")
