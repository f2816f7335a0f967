"""The networks of the demo, and where they put the digits: the only part that trains."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from vicinal.checks import Floats, Integers, Pixels
from vicinal.demo.digits import KNOWN, Digits
from vicinal.errors import MissingExtraError, require
from vicinal.progress import track
from vicinal.values import Embeddings

__all__ = ["ADVERSARIAL", "HYBRID", "PLAIN", "Views", "hidden_and_logits", "hybrid", "learn"]

PLAIN, DISTANCE, ADVERSARIAL, HYBRID = "plain", "distance loss", "adversarial", "hybrid"
_METHODS = {"reg": PLAIN, "distance": DISTANCE, "adversarial": ADVERSARIAL}
_EPOCHS = 60  # of scikit-learn's network


@dataclass(frozen=True, eq=False)
class Views:
    """Where one network puts the digits, and what it calls them.

    Attributes:
        name: of the network.
        train: of the training images; the bank is made of these.
        test: of other images of the same digits.
        novel: of the digits never seen.
    """

    name: str
    train: Embeddings
    test: Embeddings
    novel: Embeddings


def learn(digits: Digits, seed: int) -> tuple[tuple[Views, ...], tuple[str, ...]]:
    """Train: with torch, the paper's three ways, and the hybrid of two; without it, one network of scikit-learn.

    Returns:
        The networks, the plain one first; and what the reader should know.
    """
    try:
        require("torch", "torch", "the demo with three networks")
    except MissingExtraError as missing:
        return (_with_sklearn(digits, seed),), (str(missing),)
    with _one_thread():
        views = {method: _with_torch(digits, method, seed) for method in _METHODS}
    return (*views.values(), hybrid(views["reg"], views["adversarial"])), ()


def hybrid(predicts: Views, embeds: Views) -> Views:
    """The predictions of one network in the embedding of another; there are no logits that fit both."""

    def both(first: Embeddings, second: Embeddings) -> Embeddings:
        return Embeddings(second.vectors, labels=first.labels, predicted=first.predicted)

    return Views(
        HYBRID,
        both(predicts.train, embeds.train),
        both(predicts.test, embeds.test),
        both(predicts.novel, embeds.novel),
    )


def hidden_and_logits(network: Any, inputs: Floats) -> tuple[Floats, Floats]:
    """The last hidden layer of a fitted ``MLPClassifier`` with ReLU, and its outputs before the softmax."""
    vectors = inputs
    for weights, biases in zip(network.coefs_[:-1], network.intercepts_[:-1], strict=True):
        vectors = np.maximum(vectors @ weights + biases, 0)
    return vectors, vectors @ network.coefs_[-1] + network.intercepts_[-1]


def _with_torch(digits: Digits, method: str, seed: int) -> Views:
    from vicinal.learn.recipes import named
    from vicinal.learn.train import train

    recipe = named("digits", "digits", method)
    network = train(digits.train, digits.train_labels, recipe, classes=[str(digit) for digit in KNOWN], seed=seed)
    return _views(_METHODS[method], digits, network.embed)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Networks this small train fastest on one thread, most of all beside other work, and alike on any machine."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _with_sklearn(digits: Digits, seed: int) -> Views:
    from sklearn.neural_network import MLPClassifier

    network = MLPClassifier(hidden_layer_sizes=(64, 64), batch_size=20, random_state=seed)
    for _ in track(range(_EPOCHS), "training"):
        network.partial_fit(_flat(digits.train), digits.train_labels, classes=KNOWN)

    def embed(images: Pixels, labels: Integers) -> Embeddings:
        vectors, logits = hidden_and_logits(network, _flat(images))
        return Embeddings(
            vectors.astype(np.float32), logits, labels, facts={"network": "scikit-learn's MLPClassifier, 64-64"}
        )

    return _views(PLAIN, digits, embed)


def _views(name: str, digits: Digits, embed: Callable[[Pixels, Integers], Embeddings]) -> Views:
    return Views(
        name,
        embed(digits.train, digits.train_labels),
        embed(digits.test, digits.test_labels),
        embed(digits.novel, digits.novel_labels),
    )


def _flat(images: Pixels) -> Floats:
    flat: Floats = images.reshape(len(images), -1) / 255.0
    return flat
