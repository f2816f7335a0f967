"""How good a score is: metrics on plain arrays, with intervals and paired tests.

Every metric takes scores (n,), larger is more trustworthy, and ``correct`` (n,), whether each prediction is right; for
novelty, whether each input is of a known class. None depends on the order of the rows: tied scores are treated alike.

    order         auroc  aupr_success  aupr_error  fpr_at_95_tpr
    selection     aurc  e_aurc  augrc  risk_at_coverage  coverage_at_risk  risk_coverage
    calibration   ece  brier
    uncertainty   interval  compare  delong

``vicinal.evaluate`` measures all of them for several scores at once.
"""

from vicinal.metrics.bootstrap import Comparison, Interval, compare, interval
from vicinal.metrics.calibration import brier, ece
from vicinal.metrics.catalogue import METRICS, Metric, Points
from vicinal.metrics.delong import delong
from vicinal.metrics.order import (
    RiskCoverage,
    augrc,
    aupr_error,
    aupr_success,
    aurc,
    auroc,
    coverage_at_risk,
    e_aurc,
    fpr_at_95_tpr,
    risk_at_coverage,
    risk_coverage,
)

__all__ = [
    "METRICS",
    "Comparison",
    "Interval",
    "Metric",
    "Points",
    "RiskCoverage",
    "augrc",
    "aupr_error",
    "aupr_success",
    "aurc",
    "auroc",
    "brier",
    "compare",
    "coverage_at_risk",
    "delong",
    "e_aurc",
    "ece",
    "fpr_at_95_tpr",
    "interval",
    "risk_at_coverage",
    "risk_coverage",
]
