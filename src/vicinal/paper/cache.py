"""Arrays that took long to compute, kept with everything that they depend on.

An entry has a name, which is where it is, and a key, which is what it was computed from: the fingerprint of a network,
a digest of the data, settings, and a digest of the code. An entry of another key is computed anew.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import vicinal
from vicinal import store
from vicinal.errors import FileError

__all__ = ["CODE", "EMBEDDING", "Cache", "code", "digest"]

FORMAT, VERSION = "vicinal.paper.cache", 1
_Arrays = Mapping[str, npt.NDArray[Any]]

EMBEDDING = tuple(f"learn/{name}.py" for name in ("blocks", "cut", "dropout", "network", "networks", "preprocess"))
CODE = (
    *EMBEDDING,
    *(f"{name}.py" for name in ("bank", "mass", "score", "density", "novelty")),
    *("condensation", "search", "selective", "ensemble", "metrics"),
    *(f"paper/{name}.py" for name in ("banks", "chosen", "inference", "pairs", "peers", "remembering", "scores")),
)


class Cache:
    """A folder of safetensors files.

    Args:
        folder: where they are; made when something is kept.

    Example:
        >>> import tempfile
        >>> kept = Cache(Path(tempfile.mkdtemp()))
        >>> _ = kept.get("one", {"seed": "0"}, lambda: {"x": np.ones(2)})
        >>> kept.get("one", {"seed": "0"}, lambda: {"x": np.zeros(2)})["x"]
        array([1., 1.])
        >>> kept.get("one", {"seed": "1"}, lambda: {"x": np.zeros(2)})["x"]
        array([0., 0.])
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def has(self, name: str, key: Mapping[str, str]) -> bool:
        """Whether an entry is there, and of this key."""
        return self._read(name, key) is not None

    def get(self, name: str, key: Mapping[str, str], compute: Callable[[], _Arrays]) -> dict[str, npt.NDArray[Any]]:
        """The arrays of an entry, computed and kept where they are not there, or are of another key."""
        found = self._read(name, key)
        if found is None:
            arrays = {one: np.ascontiguousarray(values) for one, values in compute().items()}
            self.folder.mkdir(parents=True, exist_ok=True)
            store.write_arrays(self._path(name), arrays, form=FORMAT, version=VERSION, facts=dict(key))
            found = arrays
        return found

    def _read(self, name: str, key: Mapping[str, str]) -> dict[str, npt.NDArray[Any]] | None:
        path = self._path(name)
        if not path.exists():
            return None
        try:
            arrays, facts = store.read_arrays(path, form=FORMAT, version=VERSION, may=None)
        except FileError:
            return None
        return arrays if facts == dict(key) else None

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.safetensors"


@cache
def code(places: tuple[str, ...] = CODE) -> str:
    """A digest of the code that some numbers come from: of what it does, not of its comments and docstrings.

    Args:
        places: modules and packages, from the folder of vicinal; those that do not exist are left out.

    Example:
        >>> code() == code(), code() == code(EMBEDDING)
        (True, False)
    """
    root = Path(vicinal.__file__).parent
    found = hashlib.sha256()
    for place in places:
        path = root / place
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path] if path.exists() else []:
            found.update(f"{file.relative_to(root)}\n{_bare(file.read_text(encoding='utf-8'))}\n".encode())
    return found.hexdigest()[:16]


def digest(*arrays: npt.NDArray[Any]) -> str:
    """A digest of some arrays: their types, shapes and bytes."""
    found = hashlib.sha256()
    for values in arrays:
        found.update(f"{values.dtype} {values.shape}\n".encode())
        found.update(np.ascontiguousarray(values).data)
    return found.hexdigest()[:16]


def _bare(source: str) -> str:
    """Some code without its docstrings and comments."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and body and _is_text(body[0]):
            node.body = body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
