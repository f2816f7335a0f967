"""Logistic fits whose weights are never negative: more trust by any part never means less trust in the whole."""

from __future__ import annotations

import numpy as np

from vicinal.checks import Flags, Floats

__all__ = ["fit_logistic", "log_odds_of_share", "smoothed"]


def fit_logistic(terms: Floats, targets: Floats, *, ridge: float = 0.0, lasso: float = 0.0) -> tuple[float, Floats]:
    """Minimise Σ log(1 + exp(z)) - t z + ridge / 2 · Σ w² + lasso · Σ w, with z = intercept + terms · w, under w ≥ 0.

    Args:
        terms: (n, p), of a size around 1.
        targets: (n,), in [0, 1]: how much each row is a success.
        ridge: shrinks the weights, not the intercept; as 1 / C of scikit-learn's ``LogisticRegression``, which knows no
            bounds.
        lasso: sets weights that gain little to 0, exactly.

    Returns:
        The intercept, and the weights (p,).
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    def loss(point: Floats) -> tuple[float, Floats]:
        intercept, weights = point[0], point[1:]
        z = intercept + terms @ weights
        gap = expit(z) - targets
        value = np.logaddexp(0.0, z).sum() - targets @ z + ridge / 2 * weights @ weights + lasso * weights.sum()
        return float(value), np.append(gap.sum(), terms.T @ gap + ridge * weights + lasso)

    start = np.append(log_odds_of_share(targets), np.zeros(terms.shape[1]))
    found = minimize(
        loss,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(None, None)] + [(0.0, None)] * terms.shape[1],
        options={"maxiter": 2000, "ftol": 1e-13, "gtol": 1e-8 * len(terms)},
    )
    return float(found.x[0]), found.x[1:]


def smoothed(correct: Flags) -> Floats:
    """Targets a little inside 0 and 1, by which a fit stays finite where it separates (Platt 1999)."""
    right = int(correct.sum())
    found: Floats = np.where(correct, (right + 1) / (right + 2), 1 / (len(correct) - right + 2))
    return found


def log_odds_of_share(targets: Floats) -> float:
    """The log-odds of the mean target, with one success and one failure added (the rule of succession)."""
    share = (float(targets.sum()) + 1) / (len(targets) + 2)
    return float(np.log(share / (1 - share)))
