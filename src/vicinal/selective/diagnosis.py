"""Before trusting the distance score: will it help this network? In numbers, and in words."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from vicinal import checks, metrics, score
from vicinal.bank import Bank
from vicinal.checks import Flags, Floats, Integers
from vicinal.density import density_of
from vicinal.errors import InputError
from vicinal.held_out import FEW
from vicinal.metrics import Comparison, Interval
from vicinal.selective import advice
from vicinal.selective.fusion import cross_fitted
from vicinal.values import Embeddings, Neighbors, Trust

__all__ = ["Diagnosis", "diagnose"]

K = 50
CHOICES = (10, 20, 50, 100, 200)
_FEWEST = 10  # right or wrong predictions below which an AUROC says little
_DOUBT = np.log(9.0)  # log-odds of nine to one: at which a bank label is suspect
_WIDEST = 1e300
_HELD = 2**24  # neighbours of held-out inputs that are held together; of more inputs, some are drawn


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What the bank and held-out inputs tell about the distance score; print it, or read the numbers.

    Attributes:
        k: how many neighbours all but ``by_k`` looks at.
        inputs: how many held-out inputs were looked at.
        errors: how many predictions of them are wrong; None where no labels were given.
        bank: how many points the bank has.
        checked: how many of them were looked at, drawn at random, each left out of its own neighbours.
        saturated: the share of held-out predictions whose confidence D is exactly 0 or 1, as all neighbours that weigh
            anything agree.
        saturated_float32: the share for which D rounds to 0 or 1 in float32, as it is often computed.
        purity: the share of a bank point's neighbours that are of its class, by class. Of a class of n points the
            nearest n - 1 count, where that is less than k; a class of one point is missing.
        smallest: how many points the smallest class has.
        effective: the median number of neighbours that effectively count, (Σ w)² / Σ w² of the weights w = exp(-d).
        hubness: the skewness of how often a bank point is among the neighbours of others; 0 to 2 is usual.
        duplicates: rows of the held-out inputs at distance 0 of a bank point; no AUROC looks at them.
        suspects: rows of the bank whose label their neighbours contradict, the most contradicted first.
        suspected: for each suspect, the label that its neighbours have instead.
        auroc: of distance, margin and the two fused with density (each row by a fit on other rows), on held-out
            predictions, with intervals; empty where it cannot be known.
        lead: of distance over the margin, by DeLong's paired test; None where it cannot be known.
        fused_lead: of the fusion over the better of the two; None likewise, or where fewer than 60 rows tell.
        by_k: the AUROC of distance for several k.
        recommended_k: k, unless another one of ``by_k`` is better by the paired test, all others considered.
    """

    k: int
    inputs: int
    errors: int | None
    bank: int
    checked: int
    saturated: float
    saturated_float32: float
    purity: dict[int, float]
    smallest: int
    effective: float
    hubness: float
    duplicates: Integers
    suspects: Integers
    suspected: Integers
    auroc: dict[str, Interval]
    lead: Comparison | None
    fused_lead: Comparison | None
    by_k: dict[int, float]
    recommended_k: int

    @property
    def advice(self) -> tuple[str, ...]:
        """What to do about it."""
        return tuple(advice.sentences(self))

    def to_json(self) -> dict[str, Any]:
        """The same as plain words and numbers, for a file."""
        found = asdict(self)
        return {**found, "advice": list(self.advice)}

    def __str__(self) -> str:
        return "\n".join(advice.lines(self))


def diagnose(
    embeddings: Embeddings, bank: Bank, *, k: int = K, most: int = 5000, samples: int = 1000, seed: int = 0
) -> Diagnosis:
    """Tell whether distance will help this network, by leave-one-out on the bank and by held-out inputs.

    Args:
        embeddings: of inputs that are not in the bank; with labels and logits, to compare distance with softmax.
        bank: the training points.
        k: how many neighbours; all others, where the bank is smaller.
        most: how many bank points to look at, at most.
        samples: of the bootstrap for intervals.
        seed: of the draws, the folds and the bootstrap.

    Example:
        >>> generator = np.random.default_rng(0)
        >>> labels = generator.integers(0, 2, 600)
        >>> points = 3.0 * labels[:, None] + generator.normal(size=(600, 2))
        >>> predicted = (points.sum(axis=1) > 3).astype(int)
        >>> held_out = Embeddings(points[500:], labels=labels[500:], predicted=predicted[500:])
        >>> found = diagnose(held_out, Bank(points[:500], labels[:500]), k=20)
        >>> sorted(found.purity), found.recommended_k
        ([0, 1], 20)
    """
    if embeddings.predicted is None:
        raise InputError("embeddings: expected logits or predicted, got neither; pass one of them in")
    if len(bank) < 3:
        raise InputError(f"bank: expected at least three points, got {len(bank)}")
    k, seed = min(checks.whole(k, "k", low=1), len(bank) - 1), checks.whole(seed, "seed", low=0)
    tried = sorted({k, *(choice for choice in CHOICES if choice < len(bank))})
    shown = _draw(len(embeddings), _HELD // tried[-1], seed)
    inputs = embeddings if len(shown) == len(embeddings) else embeddings.take(shown)
    trust = score.distance(bank, inputs.vectors, inputs.predicted, k=tried[-1])
    own = _leave_one_out(bank, k, _draw(len(bank), checks.whole(most, "most", low=1), seed))
    near = trust.neighbors
    assert near is not None
    duplicate = near.distances[:, 0] == 0
    by_choice = {choice: trust if choice == tried[-1] else _of_first(bank, trust, choice) for choice in tried}
    judged = _judge(inputs, by_choice, k, duplicate, samples, seed)
    confidence = by_choice[k].confidence
    return Diagnosis(
        k=k,
        inputs=len(inputs),
        errors=None if inputs.labels is None else int((~inputs.correct).sum()),
        bank=len(bank),
        saturated=float(np.isin(confidence, (0.0, 1.0)).mean()),
        saturated_float32=float(np.isin(confidence.astype(np.float32), (0.0, 1.0)).mean()),
        smallest=int(np.unique(bank.labels, return_counts=True)[1].min()),
        effective=float(np.median(_effective(near.distances[:, :k]))),
        duplicates=shown[duplicate],
        **own,
        **judged,
    )


def _draw(n: int, most: int, seed: int) -> Integers:
    """At most so many of n rows, in order."""
    return np.sort(np.random.default_rng(seed).permutation(n)[:most])


def _leave_one_out(bank: Bank, k: int, places: Integers) -> dict[str, Any]:
    """What the bank says of its own points."""
    rows, labels = bank.rows[places], bank.labels[places]
    own = score.distance(bank, bank.vectors[places], labels, k=k, exclude_self=rows)
    assert own.neighbors is not None
    assert own.rival is not None
    doubted = np.flatnonzero((own.rival.log_odds >= _DOUBT) & (own.log_odds <= -_DOUBT))
    worst = doubted[np.argsort(own.log_odds[doubted], kind="stable")]
    return {
        "checked": len(rows),
        "purity": _purity(own.neighbors, labels, bank),
        "hubness": _hubness(own.neighbors, bank),
        "suspects": rows[worst],
        "suspected": own.rival.labels[worst],
    }


def _purity(near: Neighbors, labels: Integers, bank: Bank) -> dict[int, float]:
    sizes = dict(zip(*np.unique(bank.labels, return_counts=True), strict=True))
    same = near.labels == labels[:, None]
    found = {}
    for label in np.unique(labels):
        others = min(near.k, int(sizes[label]) - 1)
        if others:
            found[int(label)] = float(same[labels == label, :others].mean())
    return found


def _effective(distances: Floats) -> Floats:
    weights = np.exp(distances[:, :1] - distances)
    found: Floats = weights.sum(axis=1) ** 2 / (weights**2).sum(axis=1)
    return found


def _hubness(near: Neighbors, bank: Bank) -> float:
    """The third standardised moment of the number of times that each bank point is a neighbour (Radovanović 2010)."""
    counts = np.bincount(np.searchsorted(bank.rows, near.indices.ravel()), minlength=len(bank)).astype(np.float64)
    gaps = counts - counts.mean()
    spread = float(np.sqrt((gaps**2).mean()))
    return 0.0 if spread == 0 else float((gaps**3).mean()) / spread**3


def _of_first(bank: Bank, trust: Trust, k: int) -> Trust:
    """The distance score of the k nearest of neighbours that are already found: confidence and log-odds."""
    near = trust.neighbors
    assert near is not None
    assert near.same is not None
    assert near.other is not None
    from scipy.special import expit

    first = near.first(k)
    same = first.labels == trust.predicted[:, None]  # type: ignore[index]
    sides = []
    for kind, nearest in ((same, near.same), (~same, near.other)):
        mass = np.logaddexp.reduce(np.where(kind, -first.distances, -np.inf), axis=1)
        sides.append((mass, np.where(np.isneginf(mass), -nearest.distances, mass)))
    confidence = expit(sides[0][0] - sides[1][0])
    log_odds = np.clip(sides[0][1] - sides[1][1], -_WIDEST, _WIDEST)  # infinite where the bank has one side only
    return Trust("distance", confidence, log_odds, trust.predicted, first)


def _judge(
    inputs: Embeddings, by_choice: dict[int, Trust], k: int, duplicate: Flags, samples: int, seed: int
) -> dict[str, Any]:
    """How well distance, margin and their fusion rank the held-out predictions, where it can be known."""
    unknown: dict[str, Any] = {"auroc": {}, "lead": None, "fused_lead": None, "by_k": {}, "recommended_k": k}
    if inputs.labels is None:
        return unknown
    right = inputs.correct[~duplicate]
    if min(int(right.sum()), int((~right).sum())) < _FEWEST:
        return unknown
    by_k = {choice: trust.log_odds[~duplicate] for choice, trust in by_choice.items()}
    scores = {"distance": by_k[k]}
    lead = fused_lead = None
    if inputs.logits is not None:
        scores["margin"] = score.margin(inputs.logits).log_odds[~duplicate]
        lead = metrics.delong(scores["distance"], scores["margin"], right)
    if lead is not None and len(right) >= 2 * FEW:  # so that four fifths are enough to fit on
        near = by_choice[k].neighbors
        assert near is not None
        density = density_of(near).log_odds[~duplicate]
        scores["fused"] = cross_fitted({**scores, "density": density}, right, seed=seed)
        fused_lead = metrics.delong(scores["fused"], scores["distance" if lead.difference > 0 else "margin"], right)
    return {
        "auroc": {name: metrics.interval("auroc", s, right, samples=samples, seed=seed) for name, s in scores.items()},
        "lead": lead,
        "fused_lead": fused_lead,
        "by_k": {choice: metrics.auroc(found, right) for choice, found in by_k.items()},
        "recommended_k": _recommended(by_k, k, right),
    }


def _recommended(by_k: dict[int, Floats], k: int, right: Flags) -> int:
    """The best of those that beat k by DeLong's test; where none does, k."""
    level = 1 - 0.05 / max(1, len(by_k) - 1)  # each of the others has its part of 5 %
    better = [
        choice
        for choice, found in by_k.items()
        if choice != k and metrics.delong(found, by_k[k], right, level=level).low > 0
    ]
    return max(better, key=lambda choice: metrics.auroc(by_k[choice], right), default=k)
