"""Novelty: is an input of a known class at all?

    scores         what tells known from novel inputs: distance, densities, and their rivals
    one_class_svm  the rival that the paper rejects
    Detector       p-values from known inputs alone, with an exact rate of false alarms
    Triage         accept, unsure or novel, with both error rates bounded

No novel input is needed to fit anything here; novel inputs are what nobody has seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from vicinal import checks, score
from vicinal.bank import Bank
from vicinal.checks import Flags, Floats, Integers
from vicinal.density import class_density, class_kth_distance, density
from vicinal.errors import InputError
from vicinal.guarantee import cut_for_risk, p_values, rank_for_rate, upper_bound
from vicinal.held_out import FEW, HeldOut, caution, scores_of
from vicinal.values import LOG_PROBABILITIES, Embeddings, Trust

__all__ = ["ACCEPT", "NOVEL", "SCORES", "UNSURE", "Detector", "Triage", "Triaged", "one_class_svm", "scores"]

ACCEPT, UNSURE, NOVEL = "accept", "unsure", "novel"


@dataclass(frozen=True)
class _Score:
    needs: str | None  # of embeddings, beside vectors
    run: Callable[[Bank, Embeddings, int], Trust]


def _of_logits(name: str) -> _Score:
    return _Score("logits", lambda bank, e, k: getattr(score, name)(e.logits))


def _relative(bank: Bank, e: Embeddings, k: int) -> Trust:
    return replace(score.mahalanobis(bank, e.vectors, relative=True), name="relative_mahalanobis")


_SCORES = {
    "distance": _Score("predicted", lambda bank, e, k: score.distance(bank, e.vectors, e.predicted, k=k)),
    "density": _Score(None, lambda bank, e, k: density(bank, e.vectors, k=k)),
    "kth_distance": _Score(None, lambda bank, e, k: score.kth_distance(bank, e.vectors, k=k)),
    "class_density": _Score("predicted", lambda bank, e, k: class_density(bank, e.vectors, e.predicted, k=k)),
    "class_kth_distance": _Score("predicted", lambda bank, e, k: class_kth_distance(bank, e.vectors, e.predicted, k=k)),
    "mahalanobis": _Score(None, lambda bank, e, k: score.mahalanobis(bank, e.vectors)),
    "relative_mahalanobis": _Score(None, _relative),
    **{name: _of_logits(name) for name in ("margin", "entropy", "energy")},
}
SCORES = tuple(_SCORES)


def scores(bank: Bank, embeddings: Embeddings, *, names: Sequence[str] | None = None, k: int = 50) -> dict[str, Trust]:
    """Every score that tells known from novel inputs, larger is more likely known.

    ``density`` (the mass around the input, whatever its class), ``kth_distance``, and ``mahalanobis`` to the nearest
    class, plain and relative, look at vectors alone; ``distance`` (Eq. 1's log-odds), ``class_density`` and
    ``class_kth_distance`` (the same within the predicted class) at predictions too; ``margin``, ``entropy`` and
    ``energy`` at logits.

    Args:
        bank: the training points.
        embeddings: of the inputs.
        names: of the scores; by default all those that the embeddings allow.
        k: how many neighbours.

    Example:
        >>> bank = Bank([[0.0], [0.1], [1.0], [1.1]], labels=[0, 0, 1, 1])
        >>> found = scores(bank, Embeddings([[0.05], [9.0]], predicted=[0, 1]), k=2)
        >>> bool(found["density"].log_odds[0] > found["density"].log_odds[1])
        True
    """
    wanted = [name for name in SCORES if _lacks(name, embeddings) is None] if names is None else names
    for name in wanted:
        lacks = _lacks(checks.one_of(name, "score", SCORES), embeddings)
        if lacks is not None:
            raise InputError(f"{name}: expected embeddings with {lacks}; pass them in, or choose another score")
    return {name: _SCORES[name].run(bank, embeddings, k) for name in wanted}


def _lacks(name: str, embeddings: Embeddings) -> str | None:
    """What a score needs that the embeddings do not have; None where all is there."""
    needs = _SCORES[name].needs
    if needs == "logits" and embeddings.logits is None:
        return "logits, got none"
    if needs == "predicted" and embeddings.predicted is None:
        return "logits or predicted, got neither"
    if name == "energy" and LOG_PROBABILITIES in embeddings.facts.items():
        return "logits, got probabilities, which do not tell how large those were"
    return None


def one_class_svm(bank: Bank, queries: Any, *, nu: float = 0.1, most: int = 5000, seed: int = 0) -> Trust:
    """The one-class support vector machine (Schölkopf et al. 2001; scikit-learn), which the paper tried and rejected.

    With an RBF kernel of width "scale", on at most ``most`` points of the bank drawn at random: its cost grows with
    their square. Confidence and log-odds: its decision function, larger inside.

    Args:
        bank: the training points.
        queries: (m, d).
        nu: the share of the training points that may lie outside.
        most: how many of them to fit.
        seed: of the draw.
    """
    from sklearn.svm import OneClassSVM

    asked = checks.vectors(queries, "queries", columns=bank.dimension)
    nu = checks.fraction(nu, "nu", open_low=True)
    most = checks.whole(most, "most", low=1)
    rows = np.random.default_rng(seed).permutation(len(bank))[:most]
    model = OneClassSVM(nu=nu).fit(bank.vectors[rows].astype(np.float64))
    inside: Floats = model.decision_function(asked.astype(np.float64))
    return Trust("one_class_svm", inside, inside)


@dataclass(frozen=True, eq=False)
class Detector:
    """How unusual an input is among known ones: conformal p-values from a score of n known inputs.

    Attributes:
        score: its name.
        known: the sorted log-odds of the known inputs, by predicted class; under None, those of all together.
        notes: what the reader should know.
    """

    score: str
    known: Mapping[int | None, Floats]
    notes: tuple[str, ...] = ()

    @classmethod
    def fit(cls, known: Trust, *, by_class: bool = False) -> Detector:
        """Keep the scores of inputs of known classes, which are not in the bank.

        Args:
            known: any score, larger is more likely known; of at least 30 inputs, or there is a ``Caution``.
            by_class: compare an input only with those of the same predicted class, so that false alarms are as rare in
                each. A class without known inputs raises no alarm.

        Example:
            >>> calibration = np.arange(99.0)
            >>> detector = Detector.fit(Trust("density", calibration, calibration))
            >>> detector.p_value(Trust("density", np.array([-1.0]), np.array([-1.0])))
            array([0.01])
        """
        rows = HeldOut.of([known], np.ones(len(known)))
        values = rows.scores[0]
        groups: dict[int | None, Integers] = {None: np.arange(len(values))}
        if by_class:
            if known.predicted is None:
                raise InputError(f"known: expected predictions, to compare by class, but {known.name!r} judges none")
            classes = known.predicted[rows.kept]
            groups = {int(label): np.flatnonzero(classes == label) for label in np.unique(classes)}
        notes = rows.notes + _few(groups)
        return cls(known.name, {label: np.sort(values[places]) for label, places in groups.items()}, notes)

    def p_value(self, trust: Trust, *, seed: int | None = None) -> Floats:
        """(m,), how often a known input is as unusual as this one: (1 + number of known scores ≤ its own) / (n + 1).

        For an input drawn as the known ones were, P(p ≤ α) ≤ α for every α, whatever the score and the distribution
        (Vovk et al. 2005): calling p ≤ α novel gives at most the share α of false alarms, over calibration sets and
        inputs together. Without ties the share is exactly ⌊α (n + 1)⌋ / (n + 1).

        Args:
            trust: the same score of other inputs.
            seed: given, p-values are drawn between those of the neighbouring ranks, ties included, and P(p ≤ α) = α.
        """
        if trust.name != self.score:
            raise InputError(f"trust: expected the score {self.score!r}, as of the known inputs, got {trust.name!r}")
        values = scores_of(trust)
        found = np.ones(len(values))
        generator = None if seed is None else np.random.default_rng(seed)
        for label, known in self.known.items():
            rows = np.arange(len(values)) if label is None else np.flatnonzero(self._classes(trust) == label)
            found[rows] = p_values(known, values[rows], generator)
        return found

    def novel(self, trust: Trust, false_alarms: float = 0.05) -> Flags:
        """(m,), whether to call each input novel, with at most this share of false alarms."""
        found: Flags = self.p_value(trust) <= checks.fraction(false_alarms, "false_alarms", open_low=True)
        return found

    def _classes(self, trust: Trust) -> Integers:
        if trust.predicted is None:
            raise InputError(f"trust: expected predictions, to compare by class, but {trust.name!r} judges none")
        return trust.predicted


def _few(groups: Mapping[int | None, Integers]) -> tuple[str, ...]:
    """A caution, where so few known inputs are compared with that no p-value can be small."""
    label, places = min(groups.items(), key=lambda group: len(group[1]))
    if len(places) >= FEW:
        return ()
    whose = "" if label is None else f" of class {label}"
    return (
        caution(
            f"Detector.fit: {len(places)} known inputs{whose} are fewer than {FEW}: no p-value{whose} is below "
            f"{1 / (len(places) + 1):.3g}"
        ),
    )


@dataclass(frozen=True, eq=False)
class Triaged:
    """What a ``Triage`` says of m inputs.

    Attributes:
        decision: (m,), ``"accept"``, ``"unsure"`` or ``"novel"``.
        p_value: (m,), how often a known input is as unusual.
    """

    decision: npt.NDArray[Any]
    p_value: Floats

    def __len__(self) -> int:
        return len(self.decision)

    def shares(self) -> dict[str, float]:
        """The share of each decision."""
        return _shares(self.decision)


@dataclass(frozen=True, eq=False)
class Triage:
    """Accept a prediction, call its input novel, or neither: *unsure*, for a person to look at.

    With probability at least 1 - delta over the calibration rows, both hold: of inputs of known classes at most the
    share ``false_alarms`` is called novel, and of their accepted predictions at most the share ``risk`` is wrong.

    Attributes:
        detector: of novel inputs.
        trusted: the name of the score by which predictions are accepted.
        novel_at: inputs whose novelty score is below this are novel; minus infinity where none may be.
        accept_at: predictions whose log-odds are at least this are accepted, if the novelty score of their input is
            above ``novel_at``; infinite where none may be.
        false_alarms: as asked for.
        risk: as asked for.
        delta: as asked for.
        promised: the false alarms and the risk that are promised; the smallest possible ones where a target is not met.
        shares: of the calibration rows: accepted, unsure, novel, and the share of wrong ones among the accepted.
        notes: what the reader should know.
    """

    detector: Detector
    trusted: str
    novel_at: float
    accept_at: float
    false_alarms: float
    risk: float
    delta: float
    promised: tuple[float, float]
    shares: Mapping[str, float]
    notes: tuple[str, ...] = ()

    @classmethod
    def fit(
        cls,
        novelty: Trust,
        trust: Trust,
        correct: Any,
        *,
        false_alarms: float = 0.05,
        risk: float = 0.05,
        delta: float = 0.05,
    ) -> Triage:
        """Fit both thresholds on held-out inputs of known classes.

        Half of delta goes to each promise. The threshold for novelty is the score of a row, with so few rows below it
        that the false alarms are bounded; given it, the rows above are again independent draws, among which the
        threshold for acceptance is found as ``vicinal.guarantee.cut_for_risk`` says. An input exactly at the threshold
        for novelty is on neither side, and unsure: so ties cost nothing of the promise. Where a target cannot be met,
        nothing is called novel, or nothing accepted, with a ``Caution``.

        Args:
            novelty: a score that tells known from novel inputs, such as the density.
            trust: a score that tells right from wrong predictions, such as the distance; it may be the same.
            correct: (n,), whether each prediction is right.
            false_alarms: in (0, 1).
            risk: in (0, 1).
            delta: in (0, 1).

        Example:
            >>> generator = np.random.default_rng(0)
            >>> s = generator.normal(size=2000)
            >>> known = Trust("density", s, s)
            >>> trust = Trust("distance", s + 2, s + 2)
            >>> triage = Triage.fit(known, trust, correct=s > -1.2, false_alarms=0.05, risk=0.1)
            >>> away = Trust("density", s[:2] - 9, s[:2] - 9), Trust("distance", s[:2], s[:2])
            >>> triage(*away).decision.tolist()
            ['novel', 'novel']
        """
        targets = {
            name: checks.fraction(value, name, open_low=True, open_high=True)
            for name, value in _targets(false_alarms, risk, delta)
        }
        rows = HeldOut.of([novelty, trust], correct)
        unusual, sure, right = *rows.scores, rows.correct
        count = rank_for_rate(len(right), false_alarms, delta / 2)
        novel_at = float(np.sort(unusual)[count - 1]) if count else -np.inf
        known = unusual > novel_at
        if not known.any():
            raise InputError(f"novelty: expected scores that differ, got {novelty.name!r} with a single value")
        cut = cut_for_risk(sure[known], right[known], risk, delta / 2)
        alarms = false_alarms if count else float(upper_bound(0, len(right), delta / 2))
        notes = rows.notes + _cautions(bool(count), alarms, cut.met, cut.promised)
        detector = Detector(novelty.name, {None: np.sort(unusual)})
        promised = (alarms, cut.promised)
        fitted = cls(detector, trust.name, novel_at, cut.value, **targets, promised=promised, shares={}, notes=notes)
        decision = fitted._decide(unusual, sure)
        accepted = decision == ACCEPT
        risk_seen = float((accepted & ~right).sum() / max(1, accepted.sum()))
        return replace(fitted, shares={**_shares(decision), "risk": risk_seen})

    def __call__(self, novelty: Trust, trust: Trust) -> Triaged:
        """Decide of other inputs by the same two scores."""
        if trust.name != self.trusted:
            raise InputError(f"trust: expected the score {self.trusted!r}, as in the fit, got {trust.name!r}")
        p_value = self.detector.p_value(novelty)
        checks.same_length(novelty.log_odds, trust.log_odds, "novelty and trust")
        return Triaged(self._decide(novelty.log_odds, trust.log_odds), p_value)

    def _decide(self, unusual: Floats, sure: Floats) -> npt.NDArray[np.str_]:
        accepted = np.where((unusual > self.novel_at) & (sure >= self.accept_at), ACCEPT, UNSURE)
        return np.where(unusual < self.novel_at, NOVEL, accepted)


def _shares(decision: npt.NDArray[np.str_]) -> dict[str, float]:
    return {name: float((decision == name).mean()) for name in (ACCEPT, UNSURE, NOVEL)}


def _targets(false_alarms: float, risk: float, delta: float) -> tuple[tuple[str, float], ...]:
    return (("false_alarms", false_alarms), ("risk", risk), ("delta", delta))


def _cautions(alarming: bool, alarms: float, met: bool, risk: float) -> tuple[str, ...]:
    found = []
    if not alarming:
        found.append(
            f"Triage.fit: nothing is called novel, as so few rows cannot promise so few false alarms; the smallest "
            f"share that can be promised is {alarms:.3g}"
        )
    if not met:
        found.append(
            f"Triage.fit: nothing is accepted, as no threshold can promise so small a risk; the smallest that can be "
            f"promised is {risk:.3g}"
        )
    return tuple(caution(note) for note in found)
