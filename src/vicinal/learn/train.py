"""From images to a network on disk, and from a data set to a network, its embeddings and its bank."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from vicinal import checks, data
from vicinal.bank import Bank
from vicinal.checks import Integers, Pixels
from vicinal.data import DataSet
from vicinal.errors import InputError
from vicinal.learn import recipes
from vicinal.learn.as_found import usable_device
from vicinal.learn.loop import CHECKPOINT, Fitted, Pace, fit
from vicinal.learn.network import PREPROCESSING, Network, is_finished, module_for
from vicinal.learn.preprocess import Preprocessing
from vicinal.learn.recipe import Recipe
from vicinal.values import Embeddings

__all__ = ["Trained", "train", "train_dataset"]

_SPLIT = 0  # seed of the validation points, the same for every network


@dataclass(frozen=True, eq=False)
class Trained:
    """What a training run on a data set leaves in its folder.

    Attributes:
        network: the network.
        train: embeddings of the points it was trained on; the bank is made of these.
        validation: embeddings of the points it was validated on; None where there are none.
        test: embeddings of the test points.
        bank: the bank.
    """

    network: Network
    train: Embeddings
    validation: Embeddings | None
    test: Embeddings
    bank: Bank

    @classmethod
    def load(cls, folder: str | Path) -> Trained:
        """Read the folder that ``train_dataset`` left; embeddings and bank are memory-mapped."""
        place = checks.path(folder, "folder")
        validation = place / "validation.safetensors"
        return cls(
            network=Network.load(place),
            train=Embeddings.load(place / "train.safetensors"),
            validation=Embeddings.load(validation) if validation.exists() else None,
            test=Embeddings.load(place / "test.safetensors"),
            bank=Bank.load(place / "bank.safetensors"),
        )


def train(
    images: Any,
    labels: Any,
    recipe: Recipe,
    *,
    classes: Sequence[str] | None = None,
    validation: tuple[Any, Any] | None = None,
    out: str | Path | None = None,
    seed: int = 0,
    device: str | torch.device = "cpu",
    resume: bool = False,
    retries: int = 0,
    pace: Pace | None = None,
    facts: Mapping[str, str] | None = None,
) -> Network:
    """Train a network on images: fit the preprocessing, build, run the loop, write the folder.

    Args:
        images: (n, h, w, c) or, grey, (n, h, w), uint8: the images to train on.
        labels: (n,), classes counted from 0.
        recipe: how to train.
        classes: the name of each class; left out, they are numbered up to the largest label.
        validation: images and labels to validate on. Nothing is chosen by them here.
        out: the folder of the network, its log and, until it is done, its checkpoint. None: nothing is written.
        seed: decides initial weights, order, pairs, dropout and augmentation.
        device: where to train.
        resume: go on from the checkpoint in ``out``, or start if there is none; a finished network is returned.
        retries: how often a run that diverges goes on from its last good checkpoint at half the rate.
        pace: how often to log, to write a checkpoint and to validate.
        facts: words to keep with the network.

    Example:
        >>> from vicinal.learn.recipe import OneCycle
        >>> noise = np.random.default_rng(0)
        >>> images, labels = noise.integers(0, 256, (40, 8, 8), np.uint8), noise.integers(0, 2, 40)
        >>> recipe = Recipe(name="mine", network="digits", schedule=OneCycle(0.01), epochs=1, batch=20, width=0.25)
        >>> train(images, labels, recipe)
        Network(digits, 2 classes, reg, mine)
    """
    pixels, wanted, names = _sound(images, labels, classes)
    said = {**(facts or {}), "seed": str(seed), "points": _digest(pixels, wanted)}
    place = None if out is None else checks.path(out, "out")
    if place is not None and is_finished(place):
        return _finished(place, recipe, said, resume, device)
    if place is not None:
        place.mkdir(parents=True, exist_ok=True)
    preprocessing = _preprocessing(pixels, recipe, place)
    module = module_for(recipe, len(names), preprocessing.shape, seed=seed)
    fitted = fit(
        module,
        preprocessing.apply(pixels),
        wanted,
        recipe,
        seed=seed,
        validation=None if validation is None else _ready(preprocessing, validation, len(names)),
        folder=place,
        resume=resume,
        retries=retries,
        device=device,
        pace=pace,
    )
    network = Network(module, preprocessing, recipe, names, _metrics(fitted), said)
    if place is not None:
        network.save(place)
        (place / CHECKPOINT).unlink(missing_ok=True)
    return network


def train_dataset(
    dataset: str | DataSet,
    recipe: str | Recipe = "compact",
    method: str | None = None,
    *,
    out: str | Path,
    seed: int = 0,
    device: str | torch.device = "cpu",
    resume: bool = False,
    retries: int = 0,
    validation: float = 0.1,
    root: str | Path | None = None,
    pace: Pace | None = None,
) -> Trained:
    """Train on a data set; leave network, embeddings and bank in a folder.

    The folder holds the network (see :class:`Network`), ``train.safetensors``, ``validation.safetensors`` and
    ``test.safetensors`` (embeddings), ``bank.safetensors``, and ``log.jsonl``.

    Args:
        dataset: the name of a data set, or one that is loaded.
        recipe: a recipe, or the name of one that is made for this data set.
        method: ``reg``, ``distance`` or ``adversarial``; left out, the recipe's own, which is ``reg`` for a name.
        out: the folder.
        seed: decides the network; the validation points are the same for every seed.
        device: where to train and to embed.
        resume: go on from the checkpoint in ``out``, or start if there is none.
        retries: how often a run that diverges goes on from its last good checkpoint at half the rate.
        validation: the share of the training points that is cut off to validate on, stratified; 0 for none.
        root: where the data sets are; left out, ``VICINAL_DATA`` says it.
        pace: how often to log, to write a checkpoint and to validate.
    """
    place, device = checks.path(out, "out"), usable_device(device)
    found = data.load(dataset, root=root) if isinstance(dataset, str) else dataset
    rows, apart = _split(found, validation)
    parts = {"train": found.train.take(rows), "test": found.test}
    if apart is not None:
        parts["validation"] = found.train.take(apart)
    network = train(
        parts["train"].images,
        parts["train"].labels,
        _recipe(recipe, found.name, method),
        classes=found.class_names,
        validation=(parts["validation"].images, parts["validation"].labels) if apart is not None else None,
        out=place,
        seed=seed,
        device=device,
        resume=resume,
        retries=retries,
        pace=pace,
        facts={"data": found.name},
    )
    for name, part in parts.items():
        path = place / f"{name}.safetensors"
        if not (path.exists() and Embeddings.load(path).facts.get("fingerprint") == network.fingerprint):
            network.embed(part.images, part.labels).save(path)
    known = Embeddings.load(place / "train.safetensors")
    Bank(known.vectors, known.labels, facts=known.facts).save(place / "bank.safetensors")
    return Trained.load(place)


def _sound(images: Any, labels: Any, classes: Sequence[str] | None) -> tuple[Pixels, Integers, tuple[str, ...]]:
    pixels = checks.images(images, "images")
    wanted = checks.labels(labels, "labels", rows=len(pixels), of="image")
    names = tuple(classes) if classes is not None else tuple(str(n) for n in range(max(2, int(wanted.max()) + 1)))
    _refuse_strangers(wanted, len(names), "labels")
    return pixels, wanted, names


def _refuse_strangers(labels: Integers, classes: int, name: str) -> None:
    wrong = np.flatnonzero((labels < 0) | (labels >= classes))
    if wrong.size:
        raise InputError(
            f"{name}: expected classes from 0 to {classes - 1}, got {labels[wrong[0]]} at row {wrong[0]} "
            f"({wrong.size} such rows)"
        )


def _digest(pixels: Pixels, labels: Integers) -> str:
    digest = hashlib.sha256(f"{pixels.shape}".encode())
    digest.update(pixels.data)
    digest.update(labels.data)
    return digest.hexdigest()


def _finished(
    place: Path, recipe: Recipe, said: Mapping[str, str], resume: bool, device: str | torch.device
) -> Network:
    """The network that is already there, if it is the one that is asked for."""
    if not resume:
        raise InputError(f"{place}: there is a finished network in it; choose another folder, or resume to take it")
    network = Network.load(place, device=device)
    differences = recipe.differences(network.recipe)
    differences += [
        f"{name}: {said[name]}, not {network.facts.get(name)}" for name in said if said[name] != network.facts.get(name)
    ]
    if differences:
        raise InputError(f"{place}: expected the network to resume, got another ({'; '.join(differences)})")
    return network


def _preprocessing(pixels: Pixels, recipe: Recipe, place: Path | None) -> Preprocessing:
    """Fitted on these images; where a run goes on, the one it began with."""
    if place is None:
        return Preprocessing.fit(pixels, recipe.preprocessing)
    if not (place / CHECKPOINT).exists():
        Preprocessing.fit(pixels, recipe.preprocessing).save(place / PREPROCESSING)
    return Preprocessing.load(place / PREPROCESSING)


def _ready(preprocessing: Preprocessing, validation: tuple[Any, Any], classes: int) -> tuple[Any, Any]:
    images, labels = validation
    wanted = checks.labels(labels, "validation labels", of="image")
    _refuse_strangers(wanted, classes, "validation labels")
    return preprocessing.apply(images), wanted


def _metrics(fitted: Fitted) -> dict[str, Any]:
    """Nothing here depends on the clock, so that a run that was interrupted ends in the same bytes."""
    return {"steps": fitted.steps, "rate_factor": fitted.rate_factor, "last": dict(fitted.said)}


def _recipe(recipe: str | Recipe, dataset: str, method: str | None) -> Recipe:
    if isinstance(recipe, str):
        return recipes.named(recipe, dataset, method or "reg")
    return recipe if method is None else recipe.change(method=method)


def _split(found: DataSet, share: float) -> tuple[Integers, Integers | None]:
    if share == 0:
        return np.arange(len(found.train)), None
    return data.split(found.train.labels, share, _SPLIT)
