"""Before trusting the distance score: will it help this network? In numbers, and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from vicinal import checks, metrics, score
from vicinal.bank import Bank
from vicinal.checks import Flags, Floats, Integers
from vicinal.errors import InputError
from vicinal.metrics import Comparison, Interval
from vicinal.progress import track
from vicinal.values import Embeddings, Neighbors, Trust

__all__ = ["Diagnosis", "diagnose"]

K = 50
CHOICES = (10, 20, 50, 100, 200)
_FEWEST = 10  # right or wrong predictions below which an AUROC says little
_DOUBT = np.log(9.0)  # log-odds of nine to one: at which a bank label is suspect


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What the bank and held-out inputs tell about the distance score.

    Attributes:
        k: how many neighbours all but the recommendation looks at.
        saturated: the share of held-out predictions whose confidence D is exactly 0 or 1, as all neighbours agree.
        saturated_float32: the share for which D rounds to 0 or 1 in float32, as it is often computed.
        purity: the share of a bank point's neighbours that are of its class, by class, itself left out.
        effective: the median number of neighbours that effectively count, (Σ w)² / Σ w² of the weights w = exp(-d).
        hubness: the skewness of how often a bank point is among the neighbours of others; 0 to 2 is usual.
        duplicates: rows of the held-out inputs at distance 0 of a bank point.
        suspects: rows of the bank whose label their neighbours contradict, the most contradicted first.
        suspected: for each suspect, the label that its neighbours have instead.
        checked: how many bank points were looked at, drawn at random.
        auroc: of distance and margin on held-out predictions, each with its interval; empty where it cannot be known.
        lead: of the distance over the margin, by the paired test; None where it cannot be known.
        by_k: the AUROC of distance for several k.
        recommended_k: 50, unless another k is better by the paired test.
        advice: sentences.
    """

    k: int
    saturated: float
    saturated_float32: float
    purity: dict[int, float]
    effective: float
    hubness: float
    duplicates: Integers
    suspects: Integers
    suspected: Integers
    checked: int
    auroc: dict[str, Interval]
    lead: Comparison | None
    by_k: dict[int, float]
    recommended_k: int
    advice: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([*_numbers(self), *(f"- {sentence}" for sentence in self.advice)])


def diagnose(
    embeddings: Embeddings, bank: Bank, *, k: int = K, most: int = 5000, samples: int = 1000, seed: int = 0
) -> Diagnosis:
    """Tell whether distance will help this network, by leave-one-out on the bank and by held-out inputs.

    Args:
        embeddings: of inputs that are not in the bank; with labels and logits, to compare distance with softmax.
        bank: the training points.
        k: how many neighbours; all others, where the bank is smaller.
        most: how many bank points to look at, at most.
        samples: of the bootstrap for intervals and paired tests.
        seed: of the draw and of the bootstrap.

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
    k = min(checks.whole(k, "k", low=1), len(bank) - 1)
    rows = np.random.default_rng(seed).permutation(len(bank))[: checks.whole(most, "most", low=1)]
    labels = bank.labels[rows]
    own = score.distance(bank, bank.vectors[rows], labels, k=k, exclude_self=bank.rows[rows])
    trust = score.distance(bank, embeddings.vectors, embeddings.predicted, k=k)
    assert own.neighbors is not None
    assert trust.neighbors is not None
    suspects, suspected = _suspects(own, bank.rows[rows])
    auroc, lead = _against_margin(embeddings, trust, samples, seed)
    by_k, recommended = _choose(embeddings, bank, k, samples, seed)
    facts: dict[str, Any] = {
        "k": k,
        "saturated": float(np.isin(trust.confidence, (0.0, 1.0)).mean()),
        "saturated_float32": float(np.isin(trust.confidence.astype(np.float32), (0.0, 1.0)).mean()),
        "purity": _purity(own.neighbors, labels),
        "effective": float(np.median(_effective(trust.neighbors.distances))),
        "hubness": _hubness(own.neighbors, bank),
        "duplicates": np.flatnonzero(trust.neighbors.distances[:, 0] == 0),
        "suspects": suspects,
        "suspected": suspected,
        "checked": len(rows),
        "auroc": auroc,
        "lead": lead,
        "by_k": by_k,
        "recommended_k": recommended,
    }
    return Diagnosis(**facts, advice=tuple(_advice(Diagnosis(**facts, advice=()), len(embeddings))))


def _purity(near: Neighbors, labels: Integers) -> dict[int, float]:
    same = (near.labels == labels[:, None]).mean(axis=1)
    return {int(label): float(same[labels == label].mean()) for label in np.unique(labels)}


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


def _suspects(own: Trust, rows: Integers) -> tuple[Integers, Integers]:
    """Bank points whose neighbours are nine to one for another class."""
    assert own.rival is not None
    doubted = np.flatnonzero((own.rival.log_odds >= _DOUBT) & (own.log_odds <= -_DOUBT))
    worst = doubted[np.argsort(own.log_odds[doubted], kind="stable")]
    return rows[worst], own.rival.labels[worst]


def _judged(embeddings: Embeddings) -> Flags | None:
    """Whether each prediction is right, where there are enough right and wrong ones to compare scores."""
    if embeddings.labels is None:
        return None
    right = embeddings.correct
    return right if min(int(right.sum()), int((~right).sum())) >= _FEWEST else None


def _against_margin(
    embeddings: Embeddings, trust: Trust, samples: int, seed: int
) -> tuple[dict[str, Interval], Comparison | None]:
    right = _judged(embeddings)
    if right is None:
        return {}, None
    scores = {"distance": trust.log_odds}
    if embeddings.logits is not None:
        scores["margin"] = score.margin(embeddings.logits).log_odds
    found = {name: metrics.interval("auroc", s, right, samples=samples, seed=seed) for name, s in scores.items()}
    if "margin" not in scores:
        return found, None
    lead = metrics.compare("auroc", scores["distance"], scores["margin"], right, samples=samples, seed=seed)
    return found, lead


def _choose(embeddings: Embeddings, bank: Bank, k: int, samples: int, seed: int) -> tuple[dict[int, float], int]:
    """The AUROC for several k, and the best of those that beat k by DeLong's test; where none does, k."""
    right = _judged(embeddings)
    if right is None:
        return {}, k
    tried = sorted({k, *(choice for choice in CHOICES if choice <= len(bank))})
    scores = {
        choice: score.distance(bank, embeddings.vectors, embeddings.predicted, k=choice).log_odds
        for choice in track(tried, "trying k")
    }
    by_k = {choice: metrics.auroc(found, right) for choice, found in scores.items()}
    level = 1 - 0.05 / max(1, len(tried) - 1)  # each of the others has its part of 5 %
    better = [
        choice
        for choice in tried
        if choice != k and metrics.delong(scores[choice], scores[k], right, level=level).low > 0
    ]
    return by_k, max(better, key=lambda choice: by_k[choice], default=k)


def _numbers(found: Diagnosis) -> list[str]:
    purity = np.array(list(found.purity.values()))
    worst = min(found.purity, key=lambda label: found.purity[label])
    lines = [
        f"neighbours agree wholly (D is 0 or 1)   {found.saturated:.1%}   in float32 {found.saturated_float32:.1%}",
        f"purity of the bank's neighbourhoods     {purity.mean():.1%}   worst: class {worst}, {purity.min():.1%}",
        f"neighbours that effectively count       {found.effective:.1f} of {found.k}",
        f"hubness (skewness)                      {found.hubness:.2f}",
        f"held-out inputs that are in the bank    {len(found.duplicates)}",
        f"suspected label errors                  {len(found.suspects)} of {found.checked} bank points looked at",
    ]
    lines += [
        f"AUROC of errors, {name:22s} {interval.value:.3f} [{interval.low:.3f}, {interval.high:.3f}]"
        for name, interval in found.auroc.items()
    ]
    return lines


def _advice(found: Diagnosis, inputs: int) -> list[str]:
    said = [*_on_score(found), *_on_bank(found)]
    share = len(found.duplicates) / inputs
    if share > 0.01:
        said.append(
            f"{share:.1%} of the held-out inputs lie exactly on bank points: the splits overlap. Hold out others, or "
            "believe no number here."
        )
    elif len(found.duplicates):
        said.append(f"{len(found.duplicates)} held-out inputs lie exactly on bank points: leave them out.")
    return said


def _on_score(found: Diagnosis) -> list[str]:
    if found.lead is None:
        return ["Whether distance beats softmax cannot be told: that takes logits, labels, and ten errors at least."]
    said = []
    if found.lead.low > 0:
        said.append(f"Distance will help: its AUROC is {found.lead.difference:.3f} above the margin's.")
    elif found.lead.high < 0:
        said.append(
            f"Distance alone ranks worse than the margin here, by {-found.lead.difference:.3f} AUROC. Fuse the two, "
            "or train the network for distance."
        )
    else:
        said.append("Distance and margin rank equally well here, as far as these inputs tell. Fuse the two.")
    if found.recommended_k != found.k:
        k, best = found.recommended_k, found.by_k[found.recommended_k]
        said.append(f"k = {k} is better than {found.k} here: AUROC {best:.3f} against {found.by_k[found.k]:.3f}.")
    return said


def _on_bank(found: Diagnosis) -> list[str]:
    said = []
    if found.saturated > 0.5:
        said.append(
            f"For {found.saturated:.0%} of the predictions all neighbours agree, and D says no more: rank by the "
            "log-odds. The network may have memorised its training points; weight decay lowers this share."
        )
    if found.effective < 3:
        said.append(
            f"Only {found.effective:.1f} neighbours effectively count: distances differ by much more than 1, and more "
            "neighbours will change little."
        )
    if found.hubness > 5:
        said.append("A few bank points are neighbours of very many: hubs. Compare with scores on unit vectors.")
    pure = float(np.mean(list(found.purity.values())))
    poor = [label for label, purity in found.purity.items() if purity < pure / 2]
    if poor:
        named = ", ".join(map(str, poor[:5])) + (", ..." if len(poor) > 5 else "")
        said.append(f"Classes without neighbourhoods of their own: {named}. Distrust distance for them.")
    if len(found.suspects):
        first, label = int(found.suspects[0]), int(found.suspected[0])
        said.append(
            f"{len(found.suspects)} of {found.checked} bank labels are contradicted nine to one by their neighbours; "
            f"look at row {first} first, which seems to be of class {label}."
        )
    return said
