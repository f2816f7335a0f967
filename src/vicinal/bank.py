"""The bank: the training points that vouch for predictions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from vicinal import bank_file, checks, stream
from vicinal.bank_file import HEAVIEST, LIGHTEST, Stored
from vicinal.checks import Floats, Integers, Vectors
from vicinal.errors import InputError, ShapeError
from vicinal.search import Choice, Found, Masses, Name, Points, Search
from vicinal.search.points import Gathered
from vicinal.search.protocol import Approximate, Codes, Measured
from vicinal.stream import Chunks
from vicinal.values import Embeddings, Nearest, Neighbors

__all__ = ["Bank"]


class Bank:
    """Training points in a network's embedding, with their classes, ready to be searched.

    A bank never changes: ``add``, ``remove`` and ``take`` give a new one that shares the vectors with the old, without
    rebuilding anything. Rows keep the numbers they had when they came in, so the indices in an answer stay those of the
    user's own arrays, whatever was removed since; added rows are numbered on from the highest row so far.

    Args:
        vectors: (n, d), float32 without a copy (so leave it as it is while the bank is used), or anything that
            converts. A memory-mapped array stays on disk.
        labels: (n,), whole numbers; gaps, 0 and negative ones are welcome.
        weights: (n,), how many points each stands for, as in a condensed bank: each counts so many times in Eq. 1,
            though it is one of the k neighbours. Left out, each stands for itself.
        facts: where the vectors come from, as words to words.
        search: how to find neighbours (docs: Which search to choose): ``"brute"`` looks at every point; ``"exact"``
            proves most points too far, with the same answer; ``"approximate"`` looks where neighbours mostly are;
            ``"torch"`` computes on a device; ``"auto"`` takes what suits the bank, and ``search`` says which it took.
        recall: of ``"approximate"``: the share of the true neighbours that it must find, 0.99 if nothing is said.
            With ``"auto"``: allow an approximate answer.
        device: of ``"torch"``: ``"cpu"``, ``"cuda"``, ...; if nothing is said, CUDA where it is found.

    Example:
        >>> bank = Bank([[0.0, 0.0], [1.0, 0.0], [5.0, 5.0]], labels=[7, 7, 9])
        >>> near = bank.nearest([[0.9, 0.0]], k=2)
        >>> near.indices, near.labels
        (array([[1, 0]]), array([[7, 7]]))
        >>> bank.remove([1]).nearest([[0.9, 0.0]], k=1).indices
        array([[0]])
    """

    def __init__(
        self,
        vectors: Any,
        labels: Any,
        *,
        weights: Any = None,
        facts: Mapping[str, str] | None = None,
        search: Name = "brute",
        recall: float | None = None,
        device: str | None = None,
    ) -> None:
        choice = Choice.of(search, recall, device)
        found = checks.vectors(vectors, "vectors")
        classes = checks.labels(labels, "labels", rows=len(found)).copy()
        said = checks.facts({} if facts is None else facts)
        points = Points.of(found, classes, _weights(weights, len(found)))
        self._fill(points, np.arange(len(found)), len(found), said, choice)

    def _fill(
        self,
        points: Points,
        rows: Integers,
        next_row: int,
        facts: dict[str, str],
        choice: Choice,
        before: Search | None = None,
    ) -> None:
        self._points, self._rows, self._next_row, self.facts = points, rows, next_row, dict(facts)
        self._asked_for = choice
        self._taken, self._search = choice.begin(points, before)

    def __len__(self) -> int:
        return int(self._points.living.sum())

    def __repr__(self) -> str:
        return f"Bank({len(self)} x {self.dimension}, {len(self.classes)} classes)"

    @property
    def dimension(self) -> int:
        """d, the number of columns of the vectors."""
        return self._points.dimension

    @property
    def search(self) -> Name:
        """How neighbours are found; where ``"auto"`` was asked for, what it took."""
        return self._taken.name

    def measured(self, k: int = 50) -> Measured | None:
        """What approximate search finds of k neighbours, and what it costs; None where all points are looked at."""
        return self._search.measured(k) if isinstance(self._search, Approximate) else None

    @property
    def classes(self) -> Integers:
        """The labels that occur, sorted, each once."""
        return self._points.classes

    @cached_property
    def _living(self) -> Integers:
        return np.flatnonzero(self._points.living)

    @cached_property
    def rows(self) -> Integers:
        """(n,), the row numbers of the points, ascending: what ``indices`` in an answer refer to."""
        return self._rows[self._living]

    @cached_property
    def labels(self) -> Integers:
        """(n,), the class of each row in ``rows``."""
        return self._points.labels[self._living]

    @cached_property
    def weights(self) -> Floats | None:
        """(n,), how many points each row in ``rows`` stands for; None where each stands for itself."""
        return None if self._points.weights is None else self._points.weights[self._living]

    @cached_property
    def vectors(self) -> Vectors:
        """(n, d), the vector of each row in ``rows``: the array given, while nothing was added or removed."""
        whole = len(self._living) == len(self._points)
        return (
            self._points.segments[0] if whole and len(self._points.segments) == 1 else self._points.gather(self._living)
        )

    @property
    def lazy_vectors(self) -> Vectors | Gathered:
        """The same as ``vectors``; those that lie in a file are copied as they are asked for, and not held."""
        return Gathered(self._points, self._living) if self._points.mapped else self.vectors

    def nearest(
        self, queries: Any, k: int = 50, *, predicted: Any = None, exclude_self: bool | Any = False
    ) -> Neighbors:
        """The k nearest points of each query: nearest first, ties by the lowest row.

        All of them, exactly, save with approximate search: then ``recall`` of the answer says what share is found.

        Args:
            queries: (m, d).
            k: how many, from 1 to the size of the bank (one less with ``exclude_self``).
            predicted: (m,), a class for each query; with it the answer also holds the nearest point of that class
                (``same``) and of any other (``other``), wherever they lie, found in the same pass.
            exclude_self: True where the queries are the bank's own rows, in order: each is left out of its own
                answer, by its row, so that a duplicate still counts. Or (m,), the row to leave out for each query.
        """
        asked, skip, codes = self._asked(queries, predicted, exclude_self)
        k = self.checked_k(k, skip)
        return self._neighbors(self._search.nearest(asked, k, exclude=skip, predicted=codes))

    def masses(
        self, queries: Any, predicted: Any, *, k: int, inverse: bool = False, exclude_self: bool | Any = False
    ) -> tuple[Neighbors, Masses]:
        """The k nearest, and the weights of every point of the bank summed by class: Eq. 1 without a selection."""
        asked, skip, codes = self._asked(queries, predicted, exclude_self)
        assert codes is not None
        k = self.checked_k(k, skip)
        found, masses = self._search.masses(asked, k, codes, inverse=inverse, exclude=skip)
        return self._neighbors(found), masses

    def checked_k(self, k: Any, skip: Integers | None = None) -> int:
        """A number of neighbours that the bank has, for queries of which ``skip`` are left out."""
        why = ", the size of the bank" + (" without the query itself" if skip is not None else "")
        return checks.whole(k, "k", low=1, high=len(self) - (skip is not None), why=why)

    def left_out(self, exclude_self: bool | Any, m: int) -> Integers | None:
        """(m,), the row to leave out of the answer to each of m queries, as ``exclude_self`` says it; None for none."""
        if isinstance(exclude_self, (bool, np.bool_)):
            if not exclude_self:
                return None
            if m != len(self):
                raise ShapeError(
                    f"queries: expected the bank's own {len(self)} rows, in order, with exclude_self=True, got {m}; "
                    "or pass the row of each query as exclude_self"
                )
            rows = self.rows
        elif np.ndim(exclude_self) == 0:
            raise InputError(f"exclude_self: expected True, False, or a row for each query, got {exclude_self!r}")
        else:
            rows = checks.rows(exclude_self, "exclude_self", rows=m, of="query")
            self._places(rows, "exclude_self")
        if len(self) == 1:
            raise InputError("exclude_self: expected a bank of at least two points, got one, and nothing would be left")
        return rows

    def codes(self, labels: Integers) -> Codes:
        """Labels as places in ``classes``; -1 for a class that the bank does not have."""
        return self._points.code(labels)

    def farthest(self, queries: Vectors) -> Floats:
        """(m,), a distance beyond which the bank surely has no point: to its centre, plus its radius."""
        gaps = queries.astype(np.float64) - self._points.centre
        found: Floats = np.sqrt(np.einsum("ij,ij->i", gaps, gaps)) + self._points.radius
        return found

    def add(self, vectors: Any, labels: Any, weights: Any = None) -> Bank:
        """A bank with more points. Their rows are numbered on from the highest row there ever was."""
        found = checks.vectors(vectors, "vectors", columns=self.dimension)
        classes = checks.labels(labels, "labels", rows=len(found))
        points = self._points.add(found, classes, _weights(weights, len(found)))
        end = self._next_row + len(found)
        return self._like(points, np.concatenate([self._rows, np.arange(self._next_row, end)]), end, self._search)

    def remove(self, indices: Any) -> Bank:
        """A bank without the points at some rows; all others keep their row numbers."""
        places = self._places(indices)
        if len(np.unique(places)) == len(self):
            raise InputError("indices: expected to leave at least one point in the bank, got all of them")
        return self._like(self._points.remove(places), self._rows, self._next_row, self._search)

    def take(self, indices: Any) -> Bank:
        """A bank of only the points at some rows, which keep their row numbers. The vectors are copied."""
        places = np.unique(self._places(indices))
        if not len(places):
            raise ShapeError("indices: expected at least one row, got none")
        return self._like(self._points.take(places), self._rows[places], self._next_row)

    def represented_by(self, indices: Any, *, vectors: Any = None, weights: Any = None) -> Bank:
        """A bank of fewer points that stand for this one's, under the numbers and labels of some of its rows.

        Args:
            indices: (m,), the rows, ascending, each once.
            vectors: (m, d), where each lies; left out, where its row does.
            weights: (m,), how many points each stands for; left out, each for itself.
        """
        places = self._places(indices)
        if not len(places) or (np.diff(places) <= 0).any():
            raise InputError("indices: expected at least one row, ascending, each once; sort them with np.unique")
        own = self._points.gather(places) if vectors is None else checks.vectors(vectors, "vectors")
        checks.same_length(own, places, "vectors and indices")
        points = Points.of(own, self._points.labels[places], _weights(weights, len(own)))
        return self._like(points, self._rows[places], self._next_row)

    def unit(self) -> Bank:
        """The same rows with every vector divided by its length, for cosine neighbours; a zero vector is refused."""
        points = Points.of(checks.unit_vectors(self.vectors, "bank"), self.labels, self.weights)
        return self._like(points, self.rows, self._next_row)

    def save(self, path: str | Path) -> None:
        """Write a ``.safetensors`` file, in place of what is there (docs: File formats).

        What approximate search took long to build goes into a second file, ``bank.index.safetensors`` beside
        ``bank.safetensors``, from where ``load`` takes it if it is still that of this bank.
        """
        bank_file.write(path, Stored(self._points, self._rows, self._next_row, self.facts))
        self._taken.save(path, self._search)

    @classmethod
    def load(
        cls, path: str | Path, *, search: Name = "brute", recall: float | None = None, device: str | None = None
    ) -> Bank:
        """Open what ``save`` wrote. The vectors stay on disk and are mapped into memory as they are needed.

        Args:
            path: the file.
            search: how to find neighbours, and with it ``recall`` and ``device``, as in :class:`Bank`.
            recall: see there.
            device: see there.
        """
        choice = Choice.of(search, recall, device)
        stored = bank_file.read(path)
        bank = cls.__new__(cls)
        before = choice.saved(path, stored.points)
        bank._fill(stored.points, stored.rows, stored.next_row, stored.facts, choice, before)
        return bank

    @classmethod
    def from_stream(
        cls,
        path: str | Path,
        chunks: Chunks,
        *,
        facts: Mapping[str, str] | None = None,
        search: Name = "brute",
        recall: float | None = None,
        device: str | None = None,
    ) -> Bank:
        """Write the file of a bank that may be larger than memory, a chunk at a time, and open it.

        Whatever interrupts this, there is no half-written bank: what was written waits beside ``path``, and the same
        call goes on where it stopped, after a check that the rows which come again are the same.

        Args:
            path: the file, which ``save`` would write alike.
            chunks: pairs of vectors (m, d) and labels (m,), one after the other; or a function that gives them from a
                row on, so that what is written already need not come again.
            facts: where the vectors come from, as words to words.
            search: how to find neighbours, and with it ``recall`` and ``device``, as in :class:`Bank`.
            recall: see there.
            device: see there.

        Example:
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     len(Bank.from_stream(f"{folder}/bank", (([[float(i)]], [i % 3]) for i in range(100))))
            100
        """
        Choice.of(search, recall, device)
        stream.build(path, chunks, {} if facts is None else facts)
        return cls.load(path, search=search, recall=recall, device=device)

    @classmethod
    def from_model(cls, model: Any, loader: Any, **options: Any) -> Bank:
        """Run a torch model over its training data; see :func:`vicinal.learn.embed.from_model` for the options."""
        return cls.from_embeddings(Embeddings.from_model(model, loader, **options))

    @classmethod
    def from_embeddings(cls, embeddings: Any) -> Bank:
        """The bank of some embeddings, which must have labels."""
        if not isinstance(embeddings, Embeddings):
            raise InputError(f"embeddings: expected Embeddings, got {type(embeddings).__name__}; or use Bank(...)")
        if embeddings.labels is None:
            raise InputError("embeddings: expected labels, the true classes of the training points, got none")
        return cls(embeddings.vectors, embeddings.labels, facts=embeddings.facts)

    def _like(self, points: Points, rows: Integers, next_row: int, before: Search | None = None) -> Bank:
        """A bank of other points; ``before`` is the search of those that they were made of by adding or removing."""
        bank = Bank.__new__(Bank)
        bank._fill(points, rows, next_row, self.facts, self._asked_for, before)
        return bank

    def _asked(
        self, queries: Any, predicted: Any, exclude_self: bool | Any
    ) -> tuple[Vectors, Integers | None, Codes | None]:
        asked = checks.vectors(queries, "queries", columns=self.dimension)
        codes = None
        if predicted is not None:
            codes = self.codes(checks.labels(predicted, "predicted", rows=len(asked), of="query"))
        skip = self.left_out(exclude_self, len(asked))
        return asked, None if skip is None else self._places(skip, "exclude_self"), codes

    def _places(self, indices: Any, name: str = "indices") -> Integers:
        wanted = checks.rows(indices, name)
        places = np.minimum(np.searchsorted(self._rows, wanted), len(self._rows) - 1)
        wrong = np.flatnonzero((self._rows[places] != wanted) | ~self._points.living[places])
        if wrong.size:
            raise InputError(
                f"{name}: expected rows of the bank, got {wanted[wrong[0]]}, which it does not have ({wrong.size} such)"
            )
        return places

    def _neighbors(self, found: Found) -> Neighbors:
        same = other = None
        if found.near_distances is not None and found.near_places is not None:
            same, other = map(self._nearest, found.near_distances.T, found.near_places.T)
        points, places = self._points, found.places
        labels, weights = points.labels[places], None if points.weights is None else points.weights[places]
        return Neighbors(found.distances, self._numbered(places), labels, same, other, weights, found.recall)

    def _nearest(self, distances: Floats, places: Integers) -> Nearest:
        points, none = self._points, places < 0
        rows, labels = (np.where(none, -1, part[places]) for part in (self._rows, points.labels))
        weights = None if points.weights is None else np.where(none, 1.0, points.weights[places])
        return Nearest(distances, rows, labels, weights)

    def _numbered(self, places: Integers) -> Integers:
        """Places (m, k) as rows: in place, as the answer to many queries may be large."""
        if self._rows[-1] >= len(self._rows):  # else, as they ascend, each row is its own place
            step = max(1, 2**20 // places.shape[1])
            for start in range(0, len(places), step):
                places[start : start + step] = self._rows[places[start : start + step]]
        return places


def _weights(weights: Any, n: int) -> Floats | None:
    """How many points each of n stands for, copied, if it is said."""
    if weights is None:
        return None
    return checks.numbers(weights, "weights", rows=n, low=LIGHTEST, high=HEAVIEST, of="vector").copy()
