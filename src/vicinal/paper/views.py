"""What the networks say of their points, and every score of it: computed once, kept, and shared by all tables.

A view is what is looked at: ``validation`` or ``test``, the same by MC dropout, or the test points of another data set,
which are novel.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from vicinal import data
from vicinal.checks import Flags, Floats, Integers, Pixels
from vicinal.errors import FileError
from vicinal.paper.cache import EMBEDDING, Cache, code, digest
from vicinal.paper.chosen import Chosen, choose
from vicinal.paper.networks import Entry, Networks
from vicinal.paper.scores import novelty_scores, of_neighbors, of_outputs
from vicinal.values import LOG_PROBABILITIES, Embeddings

if TYPE_CHECKING:
    from vicinal.learn.network import Network

__all__ = ["Judged", "Views"]

_SPLIT = 0  # seed of the validation points, as in vicinal.learn.train
_SEED = 0  # of the masks of MC dropout
_LEAST = 1e-38  # stands for a probability of 0 where its logarithm would be infinite


@dataclass(frozen=True, eq=False)
class Judged:
    """One network's predictions, and every score of them.

    Attributes:
        entry: the network.
        seen: its view.
        scores: by name, as in ``vicinal.paper.scores``.
        chosen: on its validation points.
    """

    entry: Entry
    seen: Embeddings
    scores: dict[str, Floats] = field(repr=False)
    chosen: Chosen = field(repr=False)

    @property
    def right(self) -> Flags:
        """(n,), whether each prediction is right."""
        return self.seen.correct

    def rank(self, row: str) -> Floats | None:
        """(n,), what a row of a table ranks by; None where there is none."""
        if row == "fused":
            return self.chosen.fused(self.scores)
        return self.scores.get(f"{row} {self.chosen.ks[row]}" if row in self.chosen.ks else row)


class Views:
    """The views of the networks of an edition.

    Args:
        networks: of the edition.
    """

    def __init__(self, networks: Networks) -> None:
        self.networks, self.edition = networks, networks.edition
        self._cache = Cache(networks.folder / "cache")
        self._looks: dict[tuple[Entry, str], Judged] = {}
        self._choices: dict[tuple[Entry, str], Chosen] = {}
        self._digests: dict[str, str] = {}

    def judged(self, entry: Entry, *, dropout: bool = False) -> Judged:
        """A network's predictions of its test points, by a single pass or by MC dropout."""
        return self.look(entry, "dropout-test" if dropout else "test")

    def look(self, entry: Entry, view: str) -> Judged:
        """A network's view and its scores, with what was chosen on its validation points."""
        if (entry, view) not in self._looks:
            chosen = self._chosen(entry, "dropout-validation" if view.startswith("dropout-") else "validation")
            seen = self.seen(entry, view)
            scores = {**self.of_neighbors(entry, view), **of_outputs(seen, chosen.temperature)}
            self._looks[entry, view] = Judged(entry, seen, scores, chosen)
        return self._looks[entry, view]

    def for_novelty(self, entry: Entry, view: str) -> dict[str, Floats]:
        """The scores of a view that are made for novelty."""

        def compute() -> dict[str, Floats]:
            return novelty_scores(self.networks.bank(entry), self.seen(entry, view))

        return self._cache.get(f"{entry.name}--{view}--novelty", self._key(entry, view), compute)

    def of_neighbors(self, entry: Entry, view: str) -> dict[str, Floats]:
        """The scores of a view that look at neighbours."""

        def compute() -> dict[str, Floats]:
            return of_neighbors(self.networks.bank(entry), self.seen(entry, view), self.edition.ks)

        return self._cache.get(f"{entry.name}--{view}--scores", self._key(entry, view), compute)

    def kept(self, name: str, entries: tuple[Entry, ...], compute: Any) -> dict[str, Floats]:
        """Arrays that some networks and the code decide, kept under a name."""
        key = {"networks": " ".join(map(self.networks.fingerprint, entries)), "code": code()}
        return self._cache.get(name, key, compute)

    def seen(self, entry: Entry, view: str) -> Embeddings:
        """What a network says of the points of a view."""
        if view in ("validation", "test"):
            return self.networks.embeddings(entry, view)
        if view.startswith("dropout-"):
            return self._by_dropout(entry, view.removeprefix("dropout-"))
        return self._of_novel(entry, view.removeprefix("novel-"))

    def _chosen(self, entry: Entry, view: str) -> Chosen:
        if (entry, view) not in self._choices:
            seen = self.seen(entry, view)
            self._choices[entry, view] = choose({**self.of_neighbors(entry, view), **of_outputs(seen)}, seen)
        return self._choices[entry, view]

    def _by_dropout(self, entry: Entry, part: str) -> Embeddings:
        plain, passes = self.networks.embeddings(entry, part), self.edition.passes
        key = {**self._weights(entry), "passes": str(passes)}

        def compute() -> dict[str, Any]:
            images, labels = self._images(entry.source.data, part)
            if plain.labels is None or not np.array_equal(labels, plain.labels):
                raise FileError(f"{entry.name}: expected the {part} points of {entry.source.data}, got others")
            return _average(self.networks.network(entry), images, passes)

        found = self._cache.get(f"{entry.name}--dropout-{part}", key, compute)
        facts = {**plain.facts, LOG_PROBABILITIES[0]: LOG_PROBABILITIES[1]}
        return Embeddings(found["vectors"], found["logits"], plain.labels, facts=facts)

    def _of_novel(self, entry: Entry, name: str) -> Embeddings:
        images, _ = self._images(name, "test")
        key = {**self._weights(entry), "data": self._digest(name)}

        def compute() -> dict[str, Any]:
            found = self.networks.network(entry).embed(images)
            return {"vectors": found.vectors, "logits": found.logits}

        found = self._cache.get(f"{entry.name}--novel-{name}", key, compute)
        return Embeddings(found["vectors"], found["logits"])

    def _images(self, name: str, part: str) -> tuple[Pixels, Integers]:
        found = self.networks.data(name)
        if part == "test":
            return found.test.images, found.test.labels
        _, rows = data.split(found.train.labels, self.edition.validation, _SPLIT)
        return found.train.images[rows], found.train.labels[rows]

    def _weights(self, entry: Entry) -> dict[str, str]:
        return {"network": self.networks.fingerprint(entry), "code": code(EMBEDDING)}

    def _key(self, entry: Entry, view: str) -> dict[str, str]:
        ks = " ".join(map(str, self.edition.ks))
        novel = {"data": self._digest(view.removeprefix("novel-"))} if view.startswith("novel-") else {}
        return {"network": self.networks.fingerprint(entry), "code": code(), "ks": ks, **novel}

    def _digest(self, name: str) -> str:
        """Of the test images of a data set."""
        if name not in self._digests:
            self._digests[name] = digest(self.networks.data(name).test.images)
        return self._digests[name]


def _average(network: Network, images: Pixels, passes: int) -> dict[str, Any]:
    """The mean embedding, and the logarithm of the mean softmax, over passes with dropout."""
    import torch

    from vicinal.learn.as_found import device_of
    from vicinal.learn.dropout import mc_dropout

    inputs = torch.from_numpy(network.preprocessing.apply(images)).to(device_of(network.module))
    found = mc_dropout(network.module, inputs, passes=passes, seed=_SEED)
    assert found.embeddings is not None
    logits = found.probabilities.double().clamp_min(_LEAST).log()
    return {"vectors": found.embeddings.cpu().numpy(), "logits": logits.cpu().numpy()}
