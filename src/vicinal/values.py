"""The values that travel through vicinal: frozen, plain arrays, complete when they exist.

``Embeddings`` is the waist of the library: what any network hands over. ``Neighbors`` and ``Trust`` are answers.
A ``Bank`` (``vicinal.bank``) and an ``Evaluation`` (``vicinal.evaluation``) live beside the functions that make them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from vicinal import checks, store
from vicinal.checks import Floats, Integers, Vectors
from vicinal.errors import FileError, InputError, ShapeError

__all__ = ["Embeddings", "Nearest", "Neighbors", "Rival", "Trust"]

EMBEDDINGS_FORMAT = "vicinal.embeddings"
EMBEDDINGS_VERSION = 1
LOG_PROBABILITIES = ("logits", "logarithms of probabilities")  # a fact: only the softmax of these logits has a meaning


_Kind = TypeVar("_Kind", bound="np.dtype[Any]")


@dataclass(frozen=True, eq=False)
class Embeddings:
    """What a network says of n inputs: where it puts them, what it calls them, what they are.

    Args:
        vectors: (n, d), the embedding; by default of a torch model, the input of its last linear layer.
        logits: (n, c), before the softmax. None where the classifier has none.
        labels: (n,), the true classes. None where nobody knows.
        predicted: (n,), the classes predicted. Left out, it is the class of the largest logit.
        classes: (c,), the label that each column of the logits stands for. Left out, column j stands for label j.
        facts: where all this comes from, as words to words: network, layer, data, fingerprint of the weights.

    Example:
        >>> e = Embeddings([[0.0, 1.0], [2.0, 3.0]], logits=[[4.0, 1.0], [0.5, 2.5]], labels=[0, 0])
        >>> e.predicted
        array([0, 1])
        >>> e.correct
        array([ True, False])
    """

    vectors: Vectors
    logits: Floats | None = None
    labels: Integers | None = None
    predicted: Integers | None = None
    classes: Integers | None = None
    facts: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "vectors", checks.vectors(self.vectors, "vectors"))
        n = len(self.vectors)
        if self.logits is not None:
            set_(self, "logits", checks.logits(self.logits, "logits", rows=n))
            columns = self.logits.shape[1]
            given = np.arange(columns) if self.classes is None else self.classes
            classes = checks.labels(given, "classes", rows=columns, of="column of the logits")
            set_(self, "classes", classes)
            if len(np.unique(classes)) != columns:
                raise InputError("classes: expected a different label for every column of the logits, got repeats")
        elif self.classes is not None:
            set_(self, "classes", checks.labels(self.classes, "classes"))
        if self.labels is not None:
            set_(self, "labels", checks.labels(self.labels, "labels", rows=n))
        if self.predicted is not None:
            set_(self, "predicted", checks.labels(self.predicted, "predicted", rows=n))
        elif self.logits is not None and self.classes is not None:
            set_(self, "predicted", self.classes[self.logits.argmax(axis=1)])
        set_(self, "facts", checks.facts(self.facts))

    def __len__(self) -> int:
        return len(self.vectors)

    def __repr__(self) -> str:
        n, d = self.vectors.shape
        has = [name for name in ("logits", "labels", "predicted") if getattr(self, name) is not None]
        return f"Embeddings({n} x {d}; {', '.join(has) or 'vectors only'})"

    @property
    def correct(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """(n,), whether each prediction is right; refused where predictions or labels are missing."""
        if self.predicted is None or self.labels is None:
            missing = "labels" if self.labels is None else "logits or predicted"
            raise InputError(f"embeddings: expected {missing}, to tell right predictions from wrong ones; pass them in")
        right: np.ndarray[Any, np.dtype[np.bool_]] = self.predicted == self.labels
        return right

    def take(self, rows: Any) -> Embeddings:
        """The chosen rows (indices into this one), in the order given."""
        chosen = checks.rows(rows, "rows")
        if len(chosen) == 0:
            raise ShapeError("rows: expected at least one, got none")
        if chosen.min() < 0 or chosen.max() >= len(self):
            raise InputError(f"rows: expected indices from 0 to {len(self) - 1}, got {chosen.min()} to {chosen.max()}")
        parts = {
            name: None if part is None else part[chosen]
            for name in ("vectors", "logits", "labels", "predicted")
            for part in [getattr(self, name)]
        }
        return Embeddings(**parts, classes=self.classes, facts=self.facts)  # type: ignore[arg-type]

    def save(self, path: str | Path) -> None:
        """Write a ``.safetensors`` file: the arrays, and the facts as JSON in its header (docs: File formats)."""
        parts = {
            name: part
            for name in ("vectors", "logits", "labels", "predicted", "classes")
            for part in [getattr(self, name)]
            if part is not None
        }
        store.write_arrays(path, parts, form=EMBEDDINGS_FORMAT, version=EMBEDDINGS_VERSION, facts=dict(self.facts))

    @classmethod
    def load(cls, path: str | Path) -> Embeddings:
        """Read what ``save`` wrote; the arrays are memory-mapped."""
        arrays, facts = store.read_arrays(
            path, form=EMBEDDINGS_FORMAT, version=EMBEDDINGS_VERSION, needs=("vectors",), may=_OPTIONAL
        )
        try:
            return cls(**arrays, facts=facts)
        except InputError as error:
            raise FileError(f"{path}: {error}; the file is damaged, or was written by something else") from error

    @classmethod
    def from_model(cls, model: Any, loader: Any, **options: Any) -> Embeddings:
        """Run a torch model over its data; see :func:`vicinal.learn.embed.from_model` for the options."""
        from vicinal.learn import embed

        found: Embeddings = embed.from_model(model, loader, **options)
        return found


_OPTIONAL = ("logits", "labels", "predicted", "classes")


def _joined(parts: Sequence[Any]) -> Any:
    """Arrays one after the other, or None where there are none."""
    return None if parts[0] is None else np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class Nearest:
    """For each of m queries, the one nearest point of some kind.

    Attributes:
        distances: (m,), infinite where the bank has no such point.
        indices: (m,), rows of the bank; -1 where there is none.
        labels: (m,), their classes; -1 where there is none (look at ``indices`` to tell: -1 may be a label).
        weights: (m,), how many points each stands for, 1 where there is none; None where each stands for itself.
    """

    distances: Floats
    indices: Integers
    labels: Integers
    weights: Floats | None = None

    @classmethod
    def join(cls, parts: Sequence[Nearest | None]) -> Nearest | None:
        """The nearest points of several batches of queries, one after the other; None where any batch has none."""
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        return cls(*(_joined([getattr(part, field.name) for part in known]) for field in fields(cls)))


@dataclass(frozen=True, eq=False)
class Neighbors:
    """For each of m queries, its k nearest points of the bank, nearest first, ties by the lowest row.

    Attributes:
        distances: (m, k), Euclidean, float64, recomputed directly from the vectors.
        indices: (m, k), rows of the bank as the user numbered them.
        labels: (m, k), their classes.
        same: the nearest point of the predicted class, wherever it lies; None where no prediction was given.
        other: the nearest point of any other class, likewise.
        weights: (m, k), how many points each stands for; None where each stands for itself.
        recall: the share of the true neighbours that the search finds, as it was measured when the bank was made; 1 for
            all searches but ``"approximate"``.
    """

    distances: Floats
    indices: Integers
    labels: Integers
    same: Nearest | None = None
    other: Nearest | None = None
    weights: Floats | None = None
    recall: float = 1.0

    def __len__(self) -> int:
        return len(self.distances)

    @property
    def k(self) -> int:
        """How many neighbours each query has."""
        return int(self.distances.shape[1])

    def first(self, k: int) -> Neighbors:
        """Only the k nearest of these, copied, so that the rest can be forgotten."""

        def nearest(part: np.ndarray[Any, _Kind]) -> np.ndarray[Any, _Kind]:
            return part[:, :k].copy()

        weights = None if self.weights is None else nearest(self.weights)
        parts = nearest(self.distances), nearest(self.indices), nearest(self.labels)
        return Neighbors(*parts, self.same, self.other, weights, self.recall)

    @classmethod
    def join(cls, parts: Sequence[Neighbors]) -> Neighbors:
        """The neighbours of several batches of queries, one after the other."""
        if len(parts) == 1:
            return parts[0]
        distances, indices, labels, weights = (
            _joined([getattr(part, name) for part in parts]) for name in ("distances", "indices", "labels", "weights")
        )
        same, other = (Nearest.join([getattr(part, side) for part in parts]) for side in ("same", "other"))
        return cls(distances, indices, labels, same, other, weights, min(part.recall for part in parts))


@dataclass(frozen=True, eq=False)
class Rival:
    """The class that speaks most against each prediction.

    Attributes:
        labels: (m,), the other class with the largest mass; the predicted class itself where the bank has no other.
        log_odds: (m,), of that class against all that is not that class; above 0, the neighbourhood prefers it.
    """

    labels: Integers
    log_odds: Floats


@dataclass(frozen=True, eq=False)
class Trust:
    """How far each of m predictions can be trusted, by one score. Larger is more trustworthy, whatever the score.

    Attributes:
        name: of the score, as in ``"distance"``.
        confidence: (m,), on the scale of the score's own formula; from 0 to 1 for ``distance``, ``margin`` and
            ``top_two_gap``.
        log_odds: (m,), the same judgement without saturation, finite for every input: **rank by this**. For a
            confidence that is a probability it is its log-odds; for others the docstring of the score says what it is.
        predicted: (m,), the classes judged; None for a score that judges the input alone.
        neighbors: the reason, for the scores that look at neighbours.
        rival: the class that speaks most against each prediction, for ``distance``.
        notes: what the reader should know, such as a predicted class that the bank has never seen.
        probability: whether the confidence claims to be the probability that the prediction is right, so that its
            calibration may be measured.
    """

    name: str
    confidence: Floats
    log_odds: Floats
    predicted: Integers | None = None
    neighbors: Neighbors | None = None
    rival: Rival | None = None
    notes: tuple[str, ...] = ()
    probability: bool = False

    def __len__(self) -> int:
        return len(self.confidence)

    def __repr__(self) -> str:
        low, high = float(self.log_odds.min()), float(self.log_odds.max())
        notes = "".join(f"; note: {note}" for note in self.notes)
        return f"Trust({self.name}, {len(self)} predictions, log-odds {low:.3g} to {high:.3g}{notes})"
