"""Several scores in one: what errs differently, weighed on held-out rows. What most users should rank by."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vicinal import checks, metrics, score
from vicinal.bank import Bank
from vicinal.checks import Flags, Floats
from vicinal.density import density_of
from vicinal.errors import InputError
from vicinal.held_out import FEW, HeldOut, caution, scores_of
from vicinal.selective.logistic import fit_logistic, log_odds_of_share
from vicinal.values import Embeddings, Trust

__all__ = ["Fusion", "cross_fitted", "parts"]

PENALTY = 1.0
_LASSO = 2.0  # beside half the squared weights
_FEWEST = 5  # right or wrong rows below which weights cannot be told from noise
_FOLDS = 5
_DOUBT = 0.8  # level of the test whether all together rank worse than the best alone: losing it is no great loss
_WIDEST = 1e300
_SMALLEST = 1e-300
_FARTHEST = 30.0  # standard deviations, beyond which a score says no more


@dataclass(frozen=True, eq=False)
class Fusion:
    """A calibrated combination of scores, with one weight for each, none negative.

    With s_i the log-odds of score i, c_i their median and r_i their interquartile range / 1.349 (a standard deviation,
    for a normal distribution) on the rows of the fit,

        log-odds = intercept + Σ_i w_i · 2 asinh((s_i - c_i) / (2 r_i)),    w_i ≥ 0.

    The asinh is all but linear in the bulk and grows like a logarithm in the tails; beyond 30 r_i from c_i it is held
    where it is. So a few huge log-odds do not decide. As no weight is negative, more trust by any part is never less
    trust in the whole.

    Attributes:
        names: of the scores.
        centres: (p,), c.
        scales: (p,), r; 1 for a score that does not vary.
        weights: (p,), w.
        intercept: as above.
        n: how many rows it was fitted on.
        notes: what the reader should know.
    """

    names: tuple[str, ...]
    centres: Floats
    scales: Floats
    weights: Floats
    intercept: float
    n: int
    notes: tuple[str, ...] = ()

    @classmethod
    def fit(cls, trusts: Mapping[str, Trust], correct: Any, *, penalty: float = PENALTY, seed: int = 0) -> Fusion:
        """Weigh scores of the same held-out predictions by a logistic fit with a small penalty on the weights.

        The penalty is Σ_i (2 w_i + w_i² / 2), on the scale of the log-likelihood: its first part sets the weight of a
        score that tells next to nothing to 0, its second shares weight among scores that tell the same. If the fit
        ranks rows that it has not seen (five folds) worse than the best of its parts does, by DeLong's test at 80 %,
        only that part is kept. So noise among the parts cannot do much harm. Fewer than 30 rows, or fewer than five
        right or wrong ones, give equal weights and a ``Caution``.

        Args:
            trusts: by name; ``parts`` makes the usual three.
            correct: (n,), whether each prediction is right.
            penalty: how many times this penalty; some hundred rows hardly feel that of one.
            seed: of the folds.

        Example:
            >>> generator = np.random.default_rng(0)
            >>> truth = generator.normal(size=2000)
            >>> correct = generator.random(2000) < 1 / (1 + np.exp(-1 - 2 * truth))
            >>> seen = [truth + generator.normal(size=2000) for _ in range(2)]
            >>> trusts = {name: Trust(name, s, s) for name, s in zip("ab", seen)}
            >>> fusion = Fusion.fit(trusts, correct)
            >>> fused = metrics.auroc(fusion(trusts).log_odds, correct)
            >>> fused > max(metrics.auroc(s, correct) for s in seen)
            True
        """
        if not trusts:
            raise InputError("trusts: expected at least one score, got none")
        penalty = checks.fraction(penalty, "penalty", high=sys.float_info.max)
        seed = checks.whole(seed, "seed", low=0)
        rows = HeldOut.of(list(trusts.values()), correct)
        clipped = np.clip(np.stack(rows.scores, axis=1), -_WIDEST, _WIDEST)
        centres, scales = _middles(clipped)
        empty = cls(tuple(trusts), centres, scales, np.zeros(len(trusts)), 0.0, len(rows.correct), rows.notes)
        terms = empty._terms(clipped)
        if min(int(rows.correct.sum()), int((~rows.correct).sum())) < _FEWEST or len(rows.correct) < FEW:
            return empty._equal(rows.correct)
        kept = _kept(terms, rows.correct, penalty, seed)
        intercept, weights = _fit(terms * kept, rows.correct, penalty)
        return replace(empty, weights=weights * kept, intercept=intercept)

    def __call__(self, trusts: Mapping[str, Trust]) -> Trust:
        """Fuse the same scores of other predictions: the confidence is the probability of being right."""
        from scipy.special import expit

        missing = [name for name in self.names if name not in trusts]
        if missing:
            raise InputError(
                f"trusts: expected {', '.join(self.names)}, which this fusion was fitted on, "
                f"but {missing[0]!r} is missing"
            )
        chosen = [trusts[name] for name in self.names]
        rows = len(chosen[0])
        columns = np.stack([scores_of(trust, rows=rows) for trust in chosen], axis=1)
        terms = self._terms(np.clip(columns, -_WIDEST, _WIDEST))
        log_odds = self.intercept + np.einsum("ij,j->i", terms, self.weights)  # row by row: alike in every batch
        reason = next((trust for trust in chosen if trust.rival is not None), None)
        notes = tuple(dict.fromkeys(note for trust in chosen for note in trust.notes))
        return Trust(
            "fused",
            expit(log_odds),
            log_odds,
            _predicted(chosen),
            None if reason is None else reason.neighbors,
            None if reason is None else reason.rival,
            notes,
            probability=True,
        )

    def _terms(self, columns: Floats) -> Floats:
        with np.errstate(over="ignore"):  # clipped anyway
            gaps = np.clip((columns - self.centres) / self.scales, -_FARTHEST, _FARTHEST)
        found: Floats = 2 * np.arcsinh(gaps / 2)
        return found

    def _equal(self, right: Flags) -> Fusion:
        n, wrong = len(right), int((~right).sum())
        note = caution(
            f"Fusion.fit: {n} rows with {wrong} errors do not tell the scores apart: all have equal weights; pass at "
            f"least {FEW} rows with {_FEWEST} right and {_FEWEST} wrong ones"
        )
        weights = np.full(len(self.names), 1 / len(self.names))
        intercept = log_odds_of_share(right.astype(np.float64))
        return replace(self, weights=weights, intercept=intercept, notes=(*self.notes, note))

    def __str__(self) -> str:
        shares = ", ".join(f"{name} {weight:.3g}" for name, weight in zip(self.names, self.weights, strict=True))
        return f"fused of {shares} (weights of standardised log-odds, fitted on {self.n} rows)"


def parts(bank: Bank, embeddings: Embeddings, *, k: int = 50) -> dict[str, Trust]:
    """The usual parts of a fusion: distance, margin, and density of the same neighbours, for one search.

    Example:
        >>> bank = Bank([[0.0], [1.0], [4.0]], labels=[0, 0, 1])
        >>> embeddings = Embeddings([[0.5]], logits=[[2.0, 1.0]])
        >>> list(parts(bank, embeddings, k=2))
        ['distance', 'margin', 'density']
    """
    if embeddings.logits is None:
        raise InputError("embeddings: expected logits, for the margin, got none; pass them in")
    distance = score.distance(bank, embeddings.vectors, embeddings.predicted, k=k)
    near = distance.neighbors
    if near is None or near.k < k:  # too many for all of them to be kept
        near = bank.nearest(embeddings.vectors, k)
    return {"distance": distance, "margin": score.margin(embeddings.logits), "density": density_of(near)}


def cross_fitted(scores: Mapping[str, Floats], correct: Flags, *, seed: int = 0) -> Floats:
    """(n,), the fused log-odds of each row by a fusion that was fitted on other rows (five folds).

    What a fusion is worth on unseen rows, told from the rows at hand.

    Example:
        >>> generator = np.random.default_rng(0)
        >>> noise, correct = generator.normal(size=300), np.arange(300) % 4 > 0
        >>> unseen = cross_fitted({"noise": noise, "better": noise + correct}, correct)
        >>> round(metrics.auroc(unseen, correct), 2)
        0.77
    """
    found = np.empty(len(correct))
    folds = _folds(correct, seed)
    for fold in range(_FOLDS):
        out = folds == fold
        fitted, judged = ({name: Trust(name, s[rows], s[rows]) for name, s in scores.items()} for rows in (~out, out))
        found[out] = Fusion.fit(fitted, correct[~out], seed=seed)(judged).log_odds
    return found


def _middles(columns: Floats) -> tuple[Floats, Floats]:
    """Median and interquartile range / 1.349 of each column; the mean gap to the median where that range is 0."""
    low, centres, high = np.quantile(columns, [0.25, 0.5, 0.75], axis=0)
    scales = (high - low) / 1.349
    scales = np.where(scales > 0, scales, np.abs(columns - centres).mean(axis=0))
    return centres, np.where(scales > _SMALLEST, scales, 1.0)


def _fit(terms: Floats, right: Flags, penalty: float) -> tuple[float, Floats]:
    return fit_logistic(terms, right.astype(np.float64), ridge=penalty, lasso=_LASSO * penalty)


def _kept(terms: Floats, right: Flags, penalty: float, seed: int) -> Floats:
    """(p,), 1 for the terms to fit: all, or the best alone where all together seem to rank unseen rows worse."""
    everything = np.ones(terms.shape[1])
    if terms.shape[1] == 1:
        return everything
    best = int(np.argmax([metrics.auroc(column, right) for column in terms.T]))
    folds = _folds(right, seed)
    unseen = np.empty(len(right))
    for fold in range(_FOLDS):
        out = folds == fold
        intercept, weights = _fit(terms[~out], right[~out], penalty)
        unseen[out] = intercept + terms[out] @ weights
    lead = metrics.delong(terms[:, best], unseen, right, level=_DOUBT)
    return np.eye(terms.shape[1])[best] if lead.low > 0 else everything


def _folds(right: Flags, seed: int) -> Any:
    """(n,), a fold for each row, each with its part of the wrong ones."""
    generator = np.random.default_rng(seed)
    folds = np.empty(len(right), np.int64)
    for kind in (right, ~right):
        places = generator.permutation(np.flatnonzero(kind))
        folds[places] = np.arange(len(places)) % _FOLDS
    return folds


def _predicted(trusts: list[Trust]) -> Any:
    """The predictions judged; refused where the parts judge different ones."""
    judged = [trust for trust in trusts if trust.predicted is not None]
    for trust in judged[1:]:
        if not np.array_equal(trust.predicted, judged[0].predicted):  # type: ignore[arg-type]
            raise InputError(
                f"trusts: expected scores of the same predictions, but {judged[0].name!r} and {trust.name!r} differ"
            )
    return judged[0].predicted if judged else None
