"""Metrics of the order alone: how well a score puts right predictions above wrong ones.

Every function takes ``scores`` (n,), larger is more trustworthy, and ``correct`` (n,), whether each prediction is
right, or, for novelty, whether each input is of a known class. Only the order of the scores counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vicinal import checks
from vicinal.checks import Floats
from vicinal.metrics.catalogue import METRICS, ON_CURVE, Points, refuse_undefined
from vicinal.metrics.curve import Ranking

__all__ = [
    "RiskCoverage",
    "augrc",
    "aupr_error",
    "aupr_success",
    "aurc",
    "auroc",
    "coverage_at_risk",
    "e_aurc",
    "fpr_at_95_tpr",
    "risk_at_coverage",
    "risk_coverage",
]


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """The risk-coverage curve: one point for each of the g distinct scores, the highest first.

    Attributes:
        coverage: (g,), the share of all predictions whose score reaches the threshold, in (0, 1], ascending.
        risk: (g,), the share of wrong ones among these, in [0, 1].
        thresholds: (g,), the scores, descending.
    """

    coverage: Floats
    risk: Floats
    thresholds: Floats


def auroc(scores: Any, correct: Any) -> float:
    """Area under the ROC curve: how often a right prediction has a higher score than a wrong one.

    P(s_right > s_wrong) + P(s_right = s_wrong) / 2 over all pairs, so that ties count half (Mann and Whitney 1947;
    Hendrycks and Gimpel 2017 for errors). In [0, 1], 0.5 by chance; larger is better. Undefined, and refused, unless
    there are right and wrong predictions.

    Example:
        >>> auroc([0.9, 0.8, 0.7, 0.7], [True, False, True, False])
        0.625
    """
    return _of("auroc", scores, correct)


def aupr_success(scores: Any, correct: Any) -> float:
    """Area under the precision-recall curve with the right predictions as positives: average precision.

    Σ_i (R_i - R_{i-1}) · P_i over the distinct scores from the highest, R_i the share of right predictions accepted and
    P_i the share of right ones among the accepted: a sum of steps, no interpolation, as scikit-learn's
    ``average_precision_score`` and FD-Shifts have it. In (0, 1], by chance the accuracy; larger is better. Undefined,
    and refused, where no prediction is right.

    Example:
        >>> round(aupr_success([0.9, 0.8, 0.7, 0.6], [True, False, True, True]), 4)  # (1 + 2/3 + 3/4) / 3
        0.8056
    """
    return _of("aupr_success", scores, correct)


def aupr_error(scores: Any, correct: Any) -> float:
    """Area under the precision-recall curve with the wrong predictions as positives, found from the lowest score up.

    As ``aupr_success``, of the negated scores and for wrong predictions. In (0, 1], by chance the error rate; larger is
    better. Undefined, and refused, where no prediction is wrong.

    Example:
        >>> round(aupr_error([0.9, 0.8, 0.7, 0.6], [True, False, True, False]), 4)  # (1 + 2/3) / 2
        0.8333
    """
    return _of("aupr_error", scores, correct)


def fpr_at_95_tpr(scores: Any, correct: Any) -> float:
    """False positives at 95 % true positives: the share of wrong predictions that are accepted with the right ones.

    At the highest threshold that accepts at least 95 % of the right predictions (Liang et al. 2018, where right means
    in-distribution). FD-Shifts asks for 94.95 %, torch-uncertainty for the threshold nearest to 95 % from either side;
    "at least" keeps the promise in the name. In [0, 1]; smaller is better. Undefined, and refused, unless there are
    right and wrong predictions.

    Example:
        >>> fpr_at_95_tpr([0.9, 0.8, 0.7, 0.6], [True, False, True, False])
        0.5
    """
    return _of("fpr_at_95_tpr", scores, correct)


def aurc(scores: Any, correct: Any) -> float:
    """Area under the risk-coverage curve: the mean error rate of the accepted, over all coverages.

    Trapezoids through the points (coverage, risk) of the distinct scores; from coverage 0 to the first point the risk
    is that of the first point (Geifman and El-Yaniv 2017). Tied predictions are accepted together. This is the sum of
    FD-Shifts (``RiskCoverageStats.aurc``) without its factor of 1,000. torch-uncertainty (0.13) leaves out the piece up
    to coverage 1/n, divides by 1 - 1/n instead, and breaks ties by their place in memory: without ties the two differ
    by at most 1/n.

    In [0, 1]; smaller is better. It depends on the accuracy: compare it only on the same predictions. A score with few
    distinct values is flattered, as straight lines between distant points cut below the curve; AUGRC is free of this.

    Example:
        >>> round(aurc([0.9, 0.8, 0.7, 0.6], [True, True, False, True]), 4)  # (0 + 0 + 1/6 + 7/24) / 4
        0.1146
    """
    return _of("aurc", scores, correct)


def e_aurc(scores: Any, correct: Any) -> float:
    """Excess AURC: the AURC less that of a perfect order at the same error rate e.

    AURC - (e + (1 - e) · ln(1 - e)) (Geifman, Uziel and El-Yaniv 2019), as in FD-Shifts without its factor of 1,000.
    The perfect order is that of infinitely many predictions without ties: a perfect score of n distinct values is
    within 1/n of 0, one of few values may fall below. At most 1; smaller is better.

    Example:
        >>> round(e_aurc([0.9, 0.8, 0.7, 0.6], [True, True, False, True]), 4)  # 0.1146 - 0.0342
        0.0803
    """
    return _of("e_aurc", scores, correct)


def augrc(scores: Any, correct: Any) -> float:
    """Area under the generalised risk-coverage curve: the mean share of predictions that are accepted yet wrong.

    As ``aurc``, with the number of wrong ones among the accepted divided by that of all predictions, which is 0 at
    coverage 0 (Traub et al. 2024). Tied predictions are accepted together, which is also the mean over all ways to
    break the ties. It equals (1 - AUROC) · acc · (1 - acc) + (1 - acc)² / 2. This is the sum of FD-Shifts
    (``RiskCoverageStats.augrc``) without its factor of 1,000; torch-uncertainty (0.13) leaves out the piece up to
    coverage 1/n, divides by 1 - 1/n instead, and breaks ties by their place in memory: without ties the two differ by
    at most 1/n.

    In [0, 0.5]; smaller is better. It depends on the accuracy: compare it only on the same predictions.

    Example:
        >>> augrc([0.9, 0.8, 0.7, 0.6], [True, True, False, True])  # (0 + 0 + 1/8 + 1/4) / 4
        0.09375
    """
    return _of("augrc", scores, correct)


def risk_at_coverage(scores: Any, correct: Any, coverage: float) -> float:
    """Share of wrong ones among the accepted, at the highest threshold that accepts at least this share of all.

    Without ties, the error rate of the ⌈coverage · n⌉ most trusted, as torch-uncertainty's ``RiskAtxCov``; tied
    predictions are accepted together, so that a threshold can do it. In [0, 1]; smaller is better.

    Args:
        scores: (n,), larger is more trustworthy.
        correct: (n,), whether each prediction is right.
        coverage: in (0, 1].

    Example:
        >>> risk_at_coverage([0.9, 0.8, 0.7, 0.6], [True, False, True, False], coverage=0.5)
        0.5
    """
    return _of("risk_at_coverage", scores, correct, Points(coverage=coverage))


def coverage_at_risk(scores: Any, correct: Any, risk: float) -> float:
    """Largest share of all predictions that a threshold can accept with at most this share of wrong ones among them.

    As torch-uncertainty's ``CovAtxRisk``, but tied predictions are accepted together, and it is 0 where no threshold
    keeps to the risk (there NaN). In [0, 1]; larger is better.

    Args:
        scores: (n,), larger is more trustworthy.
        correct: (n,), whether each prediction is right.
        risk: in [0, 1].

    Example:
        >>> coverage_at_risk([0.9, 0.8, 0.7, 0.6], [True, False, True, False], risk=0.4)
        0.75
    """
    return _of("coverage_at_risk", scores, correct, Points(risk=risk))


def risk_coverage(scores: Any, correct: Any) -> RiskCoverage:
    """The curve under which ``aurc`` is the area, to draw it or to choose a threshold.

    Example:
        >>> found = risk_coverage([0.9, 0.8, 0.8, 0.6], [True, True, False, False])
        >>> found.coverage, found.thresholds
        (array([0.25, 0.75, 1.  ]), array([0.9, 0.8, 0.6]))
    """
    ranking = _ranking(scores, correct)
    curve = ranking.curve()
    return RiskCoverage(curve.covered[0] / curve.n, curve.risk[0], ranking.scores[ranking.starts])


def _of(name: str, scores: Any, correct: Any, points: Points = Points()) -> float:  # noqa: B008 (it is frozen)
    ranking = _ranking(scores, correct)
    rights = int(ranking.correct.sum())
    refuse_undefined(METRICS[name], rights, len(ranking.correct) - rights)
    return float(ON_CURVE[name](ranking.curve(), points)[0])


def _ranking(scores: Any, correct: Any) -> Ranking:
    found = checks.numbers(scores, "scores")
    return Ranking.of(found, checks.flags(correct, "correct", rows=len(found)))
