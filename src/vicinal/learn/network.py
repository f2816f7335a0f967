"""A trained network and its folder: everything that is needed to run it again, and no code.

weights.safetensors        the weights
preprocessing.safetensors  what happens to an image before the network sees it
network.json               recipe, class names, metrics, versions, and the checksums of the other two; written last
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import vicinal
from vicinal import checks, progress, store
from vicinal.checks import Pixels
from vicinal.errors import FileError, InputError
from vicinal.learn import networks
from vicinal.learn.as_found import device_of
from vicinal.learn.embed import fingerprint
from vicinal.learn.preprocess import Preprocessing
from vicinal.learn.recipe import Recipe
from vicinal.values import Embeddings

__all__ = ["PREPROCESSING", "Network", "is_finished", "module_for"]

FORMAT, VERSION = "vicinal.network", 1
WEIGHTS_FORMAT, WEIGHTS_VERSION = "vicinal.weights", 1
FACTS, WEIGHTS, PREPROCESSING = "network.json", "weights.safetensors", "preprocessing.safetensors"
_BATCH = 250  # images that run at once


@dataclass(frozen=True, eq=False)
class Network:
    """A classifier that takes images as they come and says where it puts them.

    Args:
        module: its forward pass gives ``(logits, embedding)``.
        preprocessing: from pixels to what the module takes.
        recipe: how it was trained.
        classes: the name of each class, in the order of the logits.
        metrics: what is known of it, such as its accuracy on the validation points.
        facts: where it comes from, as words to words: data, seed.

    Example:
        >>> import tempfile
        >>> from vicinal.learn.recipe import OneCycle
        >>> recipe = Recipe(name="mine", network="digits", schedule=OneCycle(0.1), epochs=1)
        >>> plain = Preprocessing((), (8, 8, 1))
        >>> network = Network(networks.build("digits", 2), plain, recipe, ("odd", "even"))
        >>> folder = Path(tempfile.mkdtemp()) / "mine"
        >>> network.save(folder)
        >>> Network.load(folder).embed(np.zeros((5, 8, 8), np.uint8), [0, 1, 0, 1, 0])
        Embeddings(5 x 64; logits, labels, predicted)
    """

    module: nn.Module
    preprocessing: Preprocessing
    recipe: Recipe
    classes: tuple[str, ...]
    metrics: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", tuple(self.classes))
        self.module.eval()

    def __repr__(self) -> str:
        return f"Network({self.recipe.network}, {len(self.classes)} classes, {self.recipe.method}, {self.recipe.name})"

    @cached_property
    def fingerprint(self) -> str:
        """Sha256 of the weights."""
        return fingerprint(self.module)

    def to(self, device: str | torch.device) -> Network:
        """Move the module, in place, to where it is to run."""
        self.module.to(device)
        return self

    def embed(self, images: Any, labels: Any = None, *, batch: int = _BATCH) -> Embeddings:
        """Where the network puts images, and what it calls them.

        Args:
            images: (n, h, w, c) or, grey, (n, h, w), uint8.
            labels: (n,), the true classes, if they are known.
            batch: images that run at once.

        Returns:
            Embeddings of n rows, in the order of the images.
        """
        checks.whole(batch, "batch", low=1)
        pixels = checks.images(images, "images", shape=self.preprocessing.shape)
        if labels is not None:
            labels = checks.labels(labels, "labels", rows=len(pixels), of="image")
        vectors, logits = self._run(pixels, batch)
        facts = {"network": self.recipe.network, "layer": "embedding", "torch": str(torch.__version__)}
        facts |= {"fingerprint": self.fingerprint, "recipe": self.recipe.name, "method": self.recipe.method}
        return Embeddings(vectors, logits, labels, facts=facts | dict(self.facts))

    def save(self, folder: str | Path) -> None:
        """Write the folder; ``network.json`` comes last and says that the rest is whole."""
        place = checks.path(folder, "folder")
        place.mkdir(parents=True, exist_ok=True)
        arrays = {name: np.atleast_1d(value.cpu().numpy()) for name, value in self.module.state_dict().items()}
        facts = {"fingerprint": self.fingerprint}
        store.write_arrays(place / WEIGHTS, arrays, form=WEIGHTS_FORMAT, version=WEIGHTS_VERSION, facts=facts)
        self.preprocessing.save(place / PREPROCESSING)
        said = {
            "format": FORMAT,
            "version": VERSION,
            "fingerprint": self.fingerprint,
            "classes": list(self.classes),
            "recipe": self.recipe.to_json(),
            "metrics": dict(self.metrics),
            "facts": dict(self.facts),
            "versions": _versions(),
            "checksums": {name: _checksum(place / name) for name in (WEIGHTS, PREPROCESSING)},
        }
        store.write_json(place / FACTS, said)

    @classmethod
    def load(cls, folder: str | Path, *, device: str | torch.device = "cpu") -> Network:
        """Read a folder that ``save`` wrote; needs no code but this library."""
        place = checks.path(folder, "folder")
        said = _facts_of(place)
        try:
            recipe, classes = Recipe.from_json(said["recipe"]), tuple(said["classes"])
            metrics, facts, wanted = said["metrics"], said["facts"], said["fingerprint"]
        except (KeyError, TypeError, InputError) as error:
            raise FileError(f"{place / FACTS}: expected the facts of a network, got {error}") from error
        preprocessing = Preprocessing.load(place / PREPROCESSING)
        module = module_for(recipe, len(classes), preprocessing.shape)
        _fill(module, place / WEIGHTS)
        network = cls(module.to(device), preprocessing, recipe, classes, metrics, facts)
        if network.fingerprint != wanted:
            raise FileError(f"{place}: expected weights with the fingerprint {wanted}, got {network.fingerprint}")
        return network

    def _run(self, pixels: Pixels, batch: int) -> tuple[Any, Any]:
        device = device_of(self.module)
        vectors = logits = np.empty((0, 0), np.float32)
        done = 0
        with torch.inference_mode():
            for ready in progress.track(self._batches(pixels, batch), "embedding", -(-len(pixels) // batch)):
                found, put = (part.float().cpu().numpy() for part in self.module(ready.to(device)))
                if done == 0:
                    vectors = np.empty((len(pixels), put.shape[1]), np.float32)
                    logits = np.empty((len(pixels), found.shape[1]), np.float32)
                vectors[done : done + len(put)], logits[done : done + len(put)] = put, found
                done += len(put)
        return vectors, logits

    def _batches(self, pixels: Pixels, batch: int) -> Iterator[Tensor]:
        for start in range(0, len(pixels), batch):
            yield torch.from_numpy(self.preprocessing.apply(pixels[start : start + batch]))


def is_finished(folder: str | Path) -> bool:
    """Whether a folder holds a whole network."""
    return (Path(folder) / FACTS).is_file()


def module_for(recipe: Recipe, classes: int, shape: tuple[int, int, int], *, seed: int = 0) -> nn.Module:
    """The module that a recipe asks for, with fresh weights, for images (h, w, c)."""
    height, width, channels = shape
    size = (channels, height, width)
    return networks.build(recipe.network, classes, width=recipe.width, dropout=recipe.dropout, shape=size, seed=seed)


def _fill(module: nn.Module, path: Path) -> None:
    wanted = module.state_dict()
    arrays, _ = store.read_arrays(path, form=WEIGHTS_FORMAT, version=WEIGHTS_VERSION, needs=tuple(wanted))
    for name, value in wanted.items():
        found = np.array(arrays[name])
        if found.size != value.numel():
            raise FileError(f"{path}: expected {name} of shape {tuple(value.shape)}, got {found.shape}")
        value.copy_(torch.from_numpy(found).reshape(value.shape))


def _facts_of(place: Path) -> dict[str, Any]:
    said = store.read_json(place / FACTS)
    if not isinstance(said, dict) or said.get("format") != FORMAT:
        raise FileError(f"{place / FACTS}: expected the facts of a {FORMAT}, got something else")
    version = said.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise FileError(f"{place / FACTS}: expected version {VERSION} or older, got {version!r}; update vicinal")
    for name, wanted in dict(said.get("checksums", {})).items():
        if name not in (WEIGHTS, PREPROCESSING) or _checksum(place / name) != wanted:
            raise FileError(f"{place / name}: expected the file that {FACTS} was written for, got another")
    return said


def _checksum(path: Path) -> str:
    if not path.is_file():
        raise FileError(f"{path}: expected a file, got nothing there")
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(2**20):
            digest.update(piece)
    return digest.hexdigest()


def _versions() -> dict[str, str]:
    return {
        "vicinal": vicinal.__version__,
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
