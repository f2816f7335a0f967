"""From any score to the probability of being right, and how well such probabilities hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from vicinal import checks
from vicinal.checks import Flags, Floats, Integers
from vicinal.errors import InputError
from vicinal.guarantee import bounds, p_values
from vicinal.held_out import FEW, HeldOut, caution, scores_of
from vicinal.selective.logistic import fit_logistic, log_odds_of_share, smoothed
from vicinal.values import Trust

__all__ = ["METHODS", "Calibration", "Reliability", "calibrate", "conformal", "reliability"]

Method: TypeAlias = Literal["isotonic", "platt", "beta"]
METHODS: tuple[Method, ...] = ("isotonic", "platt", "beta")
_FOLDS = 5
_WIDEST = 1e300  # log-odds beyond it are taken as it, so that their differences stay finite


@dataclass(frozen=True, eq=False)
class Reliability:
    """Probabilities beside what came true, in bins of equally many predictions, ascending.

    Attributes:
        probability: (b,), the mean probability of each bin.
        observed: (b,), the share of right predictions in it.
        low: (b,), of the interval of that share (Clopper-Pearson).
        high: (b,), of the interval.
        counts: (b,), how many predictions.
        level: of the intervals.
    """

    probability: Floats
    observed: Floats
    low: Floats
    high: Floats
    counts: Integers
    level: float

    def records(self) -> list[dict[str, float]]:
        """One record for each bin."""
        names = ("probability", "observed", "low", "high", "counts")
        return [{name: float(getattr(self, name)[i]) for name in names} for i in range(len(self.counts))]


@dataclass(frozen=True, eq=False)
class Calibration:
    """A map from a score to the probability of being right; it never falls as the score rises.

    Attributes:
        score: the name of the score.
        method: how it was fitted; ``"constant"`` where the rows allowed no more.
        knots: (g,), scores of the isotonic map, ascending; it is flat beyond them.
        values: (g,), the probabilities there.
        coefficients: (c,), of the other maps: intercept first.
        centre: what is taken off a score first.
        scale: what it is divided by then.
        curve: how well it holds on rows that it was not fitted on (five-fold cross-fitting). None where it is constant.
        n: how many rows it was fitted on.
        notes: what the reader should know.
    """

    score: str
    method: str
    knots: Floats
    values: Floats
    coefficients: Floats
    centre: float
    scale: float
    curve: Reliability | None
    n: int
    notes: tuple[str, ...] = ()

    def __call__(self, trust: Trust | Any) -> Floats:
        """(m,), the probability that each prediction is right, in (0, 1)."""
        from scipy.special import expit

        if isinstance(trust, Trust) and trust.name != self.score:
            raise InputError(f"trust: expected the score {self.score!r}, which was calibrated, got {trust.name!r}")
        scores = scores_of(trust)
        if self.method == "isotonic":
            return np.interp(scores, self.knots, self.values)
        terms = _terms(self.method, _scaled(scores, self.centre, self.scale))
        summed = np.einsum("ij,j->i", terms, self.coefficients[1:])  # row by row: alike in every batch
        found: Floats = expit(self.coefficients[0] + summed)
        return found


def calibrate(trust: Trust | Any, correct: Any, method: Method = "isotonic", *, seed: int = 0) -> Calibration:
    """Fit a map from a score to the probability of being right, on held-out rows.

    - ``isotonic``: the non-decreasing map of least squared error (scikit-learn); any shape, needs some hundred rows.
      Kept from 1 / (n + 2) to 1 - 1 / (n + 2): no n rows show that something never happens.
    - ``platt``: sigmoid(a · s + b) of the log-odds s, a ≥ 0 (Platt 1999, with his targets); two numbers.
    - ``beta``: sigmoid(a · log p - b · log(1 - p) + c) with p = sigmoid(s), a, b ≥ 0 (Kull et al. 2017); three numbers.

    Fewer than 30 rows, or rows that are all right or all wrong, give the share of right ones as the probability of all
    (with one right and one wrong added), and a ``Caution``.

    Args:
        trust: how far each of n held-out predictions can be trusted; or scores (n,).
        correct: (n,), whether each prediction is right.
        method: one of the three.
        seed: of the folds for the reliability curve.

    Example:
        >>> generator = np.random.default_rng(0)
        >>> log_odds = generator.normal(1, 2, 5000)
        >>> correct = generator.random(5000) < 1 / (1 + np.exp(-log_odds))
        >>> calibrate(log_odds, correct, "platt")([-2.0, 0.0, 2.0]).round(1)
        array([0.1, 0.5, 0.9])
    """
    method = checks.one_of(method, "method", METHODS)
    seed = checks.whole(seed, "seed", low=0)
    rows = HeldOut.of([trust], correct)
    scores, right = rows.scores[0], rows.correct
    name = trust.name if isinstance(trust, Trust) else "score"
    if len(right) < FEW or rows.one_sided:
        why = (
            f"all {len(right)} rows are {rows.one_sided}"
            if rows.one_sided
            else f"{len(right)} rows are fewer than {FEW}"
        )
        note = caution(f"calibrate: {why}: the probability of all predictions is the share of right ones")
        return _constant(name, right, (*rows.notes, note))
    fitted = _fitted(name, method, scores, right)
    curve = reliability(_crossed(method, scores, right, seed), right)
    return Calibration(name, method, *fitted, curve, len(right), rows.notes)


def reliability(probability: Any, correct: Any, *, bins: int = 10, level: float = 0.95) -> Reliability:
    """Sort predictions by their probability into bins of equally many, and see how many are right in each.

    Args:
        probability: (n,), claimed probabilities of being right.
        correct: (n,), whether each prediction is right.
        bins: how many; fewer where there are not so many predictions. Equal probabilities stay in one bin.
        level: of the intervals.

    Example:
        >>> found = reliability([0.2, 0.2, 0.9, 0.9], [False, False, True, True], bins=2)
        >>> found.probability, found.observed
        (array([0.2, 0.9]), array([0., 1.]))
    """
    claimed = checks.numbers(probability, "probability", low=0.0, high=1.0)
    right = checks.flags(correct, "correct", rows=len(claimed))
    bins = checks.whole(bins, "bins", low=1)
    level = checks.fraction(level, "level", open_low=True)
    order = np.argsort(claimed, kind="stable")
    ordered = claimed[order]
    starts = np.unique(np.searchsorted(ordered, ordered[np.arange(bins) * len(ordered) // bins]))
    counts = np.diff(starts, append=len(ordered))
    hits = np.add.reduceat(right[order].astype(np.int64), starts)
    low, high = bounds(hits, counts, level)
    return Reliability(np.add.reduceat(ordered, starts) / counts, hits / counts, low, high, counts, level)


def conformal(held_out: Trust | Any, trust: Trust | Any) -> Floats:
    """(m,), how often a held-out prediction is trusted as little as each of these: a p-value that needs no labels.

    Where nobody knows which held-out predictions are wrong, there is no probability of being right; but whoever refuses
    every prediction with p ≤ α refuses at most the share α of inputs like the held-out ones, for any score, any
    distribution and any number of rows (Vovk et al. 2005). Few rows allow no small p: none is below 1 / (n + 1).

    Args:
        held_out: a score of n predictions of inputs that are not in the bank; or scores (n,).
        trust: the same score of m others.

    Example:
        >>> conformal(np.arange(99.0), [-5.0, 49.5, 200.0])
        array([0.01, 0.51, 1.  ])
    """
    if isinstance(held_out, Trust) and isinstance(trust, Trust) and trust.name != held_out.name:
        raise InputError(f"trust: expected the score {held_out.name!r}, as held out, got {trust.name!r}")
    rows = HeldOut.of([held_out], np.ones(len(scores_of(held_out)), bool))
    return p_values(np.sort(rows.scores[0]), scores_of(trust))


_Fitted: TypeAlias = tuple[Floats, Floats, Floats, float, float]
_NONE = np.empty(0)


def _fitted(name: str, method: str, scores: Floats, right: Flags) -> _Fitted:
    """Knots, values, coefficients, centre and scale."""
    if method == "isotonic":
        knots, values = _isotonic(scores, right)
        return knots, values, _NONE, 0.0, 1.0
    centre, scale = (0.0, 1.0) if method == "beta" else _middle(scores)
    terms = _terms(method, _scaled(scores, centre, scale))
    size = np.maximum(np.abs(terms).max(axis=0), 1e-300)  # the search for the optimum wants terms around 1
    intercept, weights = fit_logistic(terms / size, smoothed(right))
    return _NONE, _NONE, np.append(intercept, weights / size), centre, scale


def _isotonic(scores: Floats, right: Flags) -> tuple[Floats, Floats]:
    from sklearn.isotonic import IsotonicRegression

    least = 1 / (len(right) + 2)
    model = IsotonicRegression(y_min=least, y_max=1 - least, out_of_bounds="clip")
    model.fit(np.clip(scores, -_WIDEST, _WIDEST), right.astype(np.float64))
    return model.X_thresholds_.astype(np.float64), model.y_thresholds_.astype(np.float64)


def _terms(method: str, scores: Floats) -> Floats:
    """(n, p), what the coefficients multiply."""
    if method == "constant":
        return np.empty((len(scores), 0))
    if method == "beta":  # log p and -log(1 - p) of p = sigmoid(s), both rising with s
        return np.stack([-np.logaddexp(0.0, -scores), np.logaddexp(0.0, scores)], axis=1)
    return scores[:, None]


def _middle(scores: Floats) -> tuple[float, float]:
    """Median and interquartile range, or whatever spread there is; 1 where there is none."""
    low, centre, high = np.quantile(np.clip(scores, -_WIDEST, _WIDEST), [0.25, 0.5, 0.75])
    scale = high - low or np.ptp(np.clip(scores, -_WIDEST, _WIDEST)) or 1.0
    return float(centre), float(scale)


def _scaled(scores: Floats, centre: float, scale: float) -> Floats:
    with np.errstate(over="ignore"):  # a score far from all the others, over the small scale of those
        found: Floats = np.clip((np.clip(scores, -_WIDEST, _WIDEST) - centre) / scale, -_WIDEST, _WIDEST)
    return found


def _constant(name: str, right: Flags, notes: tuple[str, ...]) -> Calibration:
    coefficients = np.array([log_odds_of_share(right.astype(np.float64))])
    return Calibration(name, "constant", _NONE, _NONE, coefficients, 0.0, 1.0, None, len(right), notes)


def _crossed(method: str, scores: Floats, right: Flags, seed: int) -> Floats:
    """(n,), the probability of each row by a map fitted on the other folds."""
    folds = np.random.default_rng(seed).permutation(len(right)) % _FOLDS
    found = np.empty(len(right))
    for fold in range(_FOLDS):
        out = folds == fold
        part = _fitted("", method, scores[~out], right[~out])
        found[out] = Calibration("score", method, *part, None, int((~out).sum()))(scores[out])
    return found
