"""The guard: a bank, a score, its calibration and its thresholds, fitted together and used together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from vicinal import checks
from vicinal.bank import Bank
from vicinal.checks import Integers
from vicinal.errors import FileError, InputError, ShapeError
from vicinal.guard import fitting, folder, packing
from vicinal.guard.decisions import Decisions
from vicinal.guard.scores import NOVELTY, SCORES, NoveltyName, ScoreName, parts, refuse_missing, trusted
from vicinal.novelty import Triage
from vicinal.progress import track
from vicinal.selective import Calibration, Fusion
from vicinal.selective.calibration import Method
from vicinal.values import Embeddings

__all__ = ["Guard"]

_TOGETHER = 2**24  # neighbours that are looked at together, where inputs are many
_UNSAID = ("the inputs do not say which network they come from: that it is the guard's could not be checked",)


@dataclass(frozen=True, eq=False)
class Guard:
    """Decides of each input of a classifier: accept the prediction, call the input novel, or neither.

    Made by ``fit`` or ``fit_arrays``, kept by ``save`` and ``load``. All that it needs is in it, and it never changes.

    Attributes:
        bank: the training points.
        k: how many neighbours it looks at.
        score: by which predictions are trusted: ``"fused"``, ``"distance"`` or ``"margin"``.
        fusion: of the fused score; None for the others.
        calibration: from the score to the probability of being right.
        triage: the thresholds, and what they promise.
        classes: (c,), the label of each column of the logits; None where the classifier has no logits.
        names: of the classes, as far as they have any.
        preprocessing: what happens to an input before the network sees it, as JSON holds it; for the reader.
        origin: the fingerprint of the network's weights, and the layer, as far as the embeddings said so.
        notes: what was cautioned of in the fit.

    Example:
        >>> generator = np.random.default_rng(0)
        >>> labels = generator.integers(0, 2, 3000)
        >>> vectors = generator.normal(size=(3000, 2)) + 2 * labels[:, None]
        >>> logits = np.stack([-vectors.sum(axis=1) + 2, vectors.sum(axis=1) - 2], axis=1)
        >>> everything = Embeddings(vectors, logits, labels)
        >>> train, calibration = everything.take(range(1000)), everything.take(range(1000, 3000))
        >>> guard = Guard.fit_arrays(train, calibration, risk=0.05)
        >>> guard([[2.1, 2.2], [9.0, -9.0]], logits=[[-2.3, 2.3], [2.0, -2.0]]).decision.tolist()
        ['accept', 'novel']
    """

    bank: Bank
    k: int
    score: str
    fusion: Fusion | None
    calibration: Calibration
    triage: Triage
    classes: Integers | None = None
    names: Mapping[int, str] = field(default_factory=dict)
    preprocessing: Any = None
    origin: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @classmethod
    def fit(
        cls,
        model: Any,
        train: Any,
        calibration: Any,
        *,
        layer: Any = None,
        pool: Any = None,
        logits: Any = None,
        classes: Any = None,
        device: Any = None,
        **settings: Any,
    ) -> Guard:
        """A guard for a torch model in one call: run it over its data, and fit.

        Args:
            model: any torch module that classifies.
            train: batches (inputs, labels) of the training data, without augmentation.
            calibration: batches of data of the same classes that the model has not seen.
            layer: which vectors to keep, and
            pool: how to pool them,
            logits: where they are in the output,
            classes: the label of each,
            device: where to run, as in :func:`vicinal.learn.embed.from_model`.
            **settings: as in ``fit_arrays``.
        """
        where = {"layer": layer, "pool": pool, "logits": logits, "classes": classes, "device": device}
        known, held_out = (Embeddings.from_model(model, loader, **where) for loader in (train, calibration))
        return cls.fit_arrays(known, held_out, **settings)

    @classmethod
    def fit_arrays(
        cls,
        train: Embeddings | Bank,
        calibration: Embeddings,
        *,
        k: int = 50,
        score: ScoreName | None = None,
        novelty: NoveltyName = "density",
        risk: float = 0.05,
        false_alarms: float = 0.05,
        delta: float = 0.05,
        method: Method = "platt",
        names: Mapping[int, str] | Sequence[str] | None = None,
        preprocessing: Any = None,
        seed: int = 0,
    ) -> Guard:
        """A guard from what any network says of its data.

        The fused score (distance, margin and density) is fitted on a third of the calibration rows, drawn at random;
        its calibration and the thresholds on the others, so that their promise holds. A score that needs no fit has
        all rows for these. Held-out rows that are in the bank are left out if they are many, with a ``Caution``; so few
        rows that no promise can be made give a guard that accepts nothing, with a ``Caution`` too.

        Args:
            train: the training points with their true labels; or a bank of them, condensed or not.
            calibration: held-out inputs of the same classes, with labels and logits (or predictions).
            k: how many neighbours.
            score: by which to trust predictions; by default ``"fused"`` with logits, ``"distance"`` without.
            novelty: by which to call inputs novel: ``"density"``, the safest of the three against inputs unlike any
                known one; ``"distance"`` or ``"energy"``, better where novel inputs resemble known ones.
            risk: at most this share of the accepted predictions is wrong.
            false_alarms: at most this share of inputs of known classes is called novel.
            delta: both hold with probability 1 - delta over the calibration rows (see ``vicinal.novelty.Triage``).
            method: of ``vicinal.selective.calibrate``: ``"platt"``, ``"isotonic"`` or ``"beta"``.
            names: of the classes: by label, or in the order of the bank's sorted labels.
            preprocessing: what happens to an input first: anything that JSON can hold.
            seed: of the draw.
        """
        bank = train if isinstance(train, Bank) else Bank.from_embeddings(train)
        k = checks.whole(k, "k", low=1, high=len(bank), why=", the size of the bank")
        fitting.refuse_other_network(bank.facts, calibration.facts, "calibration")
        called = _names(names, bank)
        _refuse_unwritable(preprocessing)
        targets = {"false_alarms": false_alarms, "risk": risk, "delta": delta}
        found = fitting.fit(
            bank, calibration, k=k, score=score, novelty=novelty, targets=targets, method=method, seed=seed
        )
        return cls(
            bank,
            k,
            found.score,
            found.fusion,
            found.calibration,
            found.triage,
            calibration.classes,
            called,
            preprocessing,
            fitting.origin(bank.facts, calibration.facts),
            found.notes,
        )

    def __call__(self, vectors: Any, logits: Any = None, *, predicted: Any = None) -> Decisions:
        """Decide of m inputs.

        Args:
            vectors: (m, d), from the same layer of the same network; or ``Embeddings``, which also tell which network
                they come from: those of another one are refused, by the fingerprint of its weights.
            logits: (m, c), in the order of ``classes``.
            predicted: (m,), the classes predicted, where they are not those of the largest logits.
        """
        asked = self._asked(vectors, logits, predicted)
        m, size = len(asked), max(1, _TOGETHER // self.k)
        if m <= size:
            return self._decided(asked)
        starts = track(range(0, m, size), "deciding")
        return Decisions.join([self._decided(asked.take(range(i, min(i + size, m)))) for i in starts])

    def save(self, path: str | Path) -> None:
        """Write one folder, in place of the guard that is there: killed half way, it leaves the old one whole."""
        arrays, facts = packing.pack(self.fusion, self.calibration, self.triage)
        if self.classes is not None:
            arrays["classes"] = self.classes
        facts |= {
            "k": self.k,
            "score": self.score,
            "names": [[label, name] for label, name in self.names.items()],
            "preprocessing": self.preprocessing,
            "origin": dict(self.origin),
            "notes": list(self.notes),
        }
        folder.write(path, self.bank, arrays, facts)

    @classmethod
    def load(cls, path: str | Path) -> Guard:
        """Open what ``save`` wrote. The vectors of the bank stay on disk and are mapped into memory."""
        bank, arrays, facts = folder.read(path)
        try:
            k = checks.whole(facts["k"], "k", low=1, high=len(bank))
            wanted = checks.one_of(facts["score"], "score", SCORES)
            names = {int(label): str(name) for label, name in facts["names"]}
            fusion, calibration, triage = packing.unpack(arrays, facts)
            if (fusion is None) is (wanted == "fused"):
                raise ValueError("expected a fusion for the fused score, and for no other")
            checks.one_of(triage.detector.score, "novelty", NOVELTY)
            classes, notes = arrays.get("classes"), tuple(map(str, facts["notes"]))
            said, origin = facts["preprocessing"], checks.facts(facts["origin"], "origin")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FileError(f"{path}: expected a guard whose parts agree, got {error!r}; it is damaged") from error
        return cls(bank, k, wanted, fusion, calibration, triage, classes, names, said, origin, notes)

    @property
    def novelty(self) -> str:
        """The score by which inputs are called novel."""
        return self.triage.detector.score

    def __repr__(self) -> str:
        return f"Guard({self.score}, k = {self.k}, {self.bank!r})"

    def __str__(self) -> str:
        shares = self.triage.shares
        n, d = len(self.bank), self.bank.dimension
        lines = [
            f"guard over {n:,} points of {d} dimensions, {len(self.bank.classes)} classes; k = {self.k}",
            f"score: {self.fusion if self.fusion is not None else self.score}",
            f"novelty: {self.novelty}",
            f"probability of being right: {self.calibration.method}, fitted on {self.calibration.n:,} rows",
            f"promised: {self._promise()}",
            f"of the calibration rows {shares['accept']:.1%} are accepted, {shares['risk']:.2%} of them wrong; "
            f"{shares['unsure']:.1%} are unsure, {shares['novel']:.1%} called novel",
        ]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def _promise(self) -> str:
        triage = self.triage
        alarms, risk = triage.promised
        said = []
        if triage.accept_at < np.inf:
            said.append(f"at most {risk:.3g} of the accepted predictions are wrong")
        if triage.novel_at > -np.inf:
            said.append(f"at most {alarms:.3g} of the inputs of known classes are called novel")
        return f"{' and '.join(said)}, with {1 - triage.delta:.3g} confidence" if said else "nothing"

    def _asked(self, vectors: Any, logits: Any, predicted: Any) -> Embeddings:
        """The inputs as embeddings of this guard's network."""
        if isinstance(vectors, Embeddings):
            if logits is not None or predicted is not None:
                raise InputError("logits, predicted: expected none beside embeddings, which hold them, got some")
            fitting.refuse_other_network(self.origin, vectors.facts, "inputs")
            asked = vectors
        else:
            asked = Embeddings(vectors, logits, predicted=predicted, classes=self._classes_for(logits, predicted))
        refuse_missing(asked, self.score, self.novelty, "inputs")
        if asked.predicted is None:
            raise InputError("predicted: expected the classes predicted, or logits, got neither; pass one of them in")
        if self.classes is not None and asked.classes is not None and set(asked.classes) != set(self.classes):
            raise InputError(f"inputs: expected logits of the {len(self.classes)} classes of the guard, got other ones")
        return asked

    def _classes_for(self, logits: Any, predicted: Any) -> Integers | None:
        """The labels of the columns of some logits, which do not say it themselves."""
        if logits is None:
            return None
        if self.classes is None:
            if predicted is None:
                raise InputError("predicted: expected the classes predicted, as the guard was fitted without logits")
            return None
        columns = checks.logits(logits, "logits").shape[1]
        if columns != len(self.classes):
            raise ShapeError(
                f"logits: expected {len(self.classes)} columns, one for each class of the guard, got {columns}"
            )
        return self.classes

    def _decided(self, asked: Embeddings) -> Decisions:
        found = parts(self.bank, asked, self.k)
        distance, trust = found["distance"], trusted(self.score, self.fusion, found)
        triaged = self.triage(found[self.novelty], trust)
        assert asked.predicted is not None
        unsaid = _UNSAID if asked.facts and "fingerprint" in self.origin and "fingerprint" not in asked.facts else ()
        return Decisions(
            asked.predicted,
            self.calibration(trust),
            triaged.p_value,
            triaged.decision,
            trust.log_odds,
            distance,
            self.names,
            (*distance.notes, *unsaid),
        )


def _names(names: Mapping[int, str] | Sequence[str] | None, bank: Bank) -> dict[int, str]:
    labels = bank.classes.tolist()
    if names is None:
        return {}
    if isinstance(names, str) or not isinstance(names, (Mapping, Sequence)):
        raise InputError(f"names: expected one for each class, as a list or by label, got {type(names).__name__}")
    if not isinstance(names, Mapping):
        if len(names) != len(labels):
            raise InputError(f"names: expected {len(labels)}, one for each class of the bank, got {len(names)}")
        names = dict(zip(labels, names, strict=True))
    for label, name in names.items():
        if isinstance(label, bool) or not isinstance(label, (int, np.integer)) or not isinstance(name, str):
            raise InputError(f"names: expected words by whole-number labels, got {label!r}: {name!r}")
    return {int(label): name for label, name in names.items()}


def _refuse_unwritable(preprocessing: Any) -> None:
    try:
        json.dumps(preprocessing, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"preprocessing: expected what JSON can hold, got {error}") from error
