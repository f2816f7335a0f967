"""The metrics by name: which way is better, what each needs to be defined, and how it is computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from vicinal import checks
from vicinal.checks import Floats
from vicinal.errors import InputError
from vicinal.metrics.curve import Curve
from vicinal.metrics.gaps import Gaps

__all__ = ["METRICS", "ON_CURVE", "ON_GAPS", "Metric", "Points", "refuse_undefined"]

TPR = 0.95  # of fpr_at_95_tpr
_MOST_BINS = 100_000


@dataclass(frozen=True)
class Points:
    """Where on its curve, or with how many bins, a metric looks.

    Args:
        coverage: of ``risk_at_coverage``, the least share of predictions accepted, in (0, 1].
        risk: of ``coverage_at_risk``, the largest share of wrong ones among the accepted, in [0, 1].
        bins: of ``ece``, how many, from 1 to 100,000.
    """

    coverage: float = 0.8
    risk: float = 0.05
    bins: int = 15

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "coverage", checks.fraction(self.coverage, "coverage", open_low=True))
        set_(self, "risk", checks.fraction(self.risk, "risk"))
        set_(self, "bins", checks.whole(self.bins, "bins", low=1, high=_MOST_BINS))


@dataclass(frozen=True)
class Metric:
    """One metric.

    Attributes:
        name: as in ``vicinal.metrics``.
        title: of its column in a table; may hold ``{coverage}`` and ``{risk}``.
        larger: whether a larger value is better.
        needs: the kinds of prediction, ``right`` and ``wrong``, without which it is undefined.
        scale: ``order`` if it depends on the order of the predictions alone, ``probability`` if on the confidences.
        reflected: whether resampling inflates it, so that its interval is the reflected ("basic") one.
    """

    name: str
    title: str
    larger: bool
    needs: tuple[str, ...] = ()
    scale: Literal["order", "probability"] = "order"
    reflected: bool = False

    def defined(self, rights: int, wrongs: int) -> bool:
        """Whether it has a value for this many right and wrong predictions."""
        return not (("right" in self.needs and rights == 0) or ("wrong" in self.needs and wrongs == 0))

    def heading(self, points: Points) -> str:
        """The title with its numbers filled in."""
        return self.title.format(coverage=f"{100 * points.coverage:g}%", risk=f"{100 * points.risk:g}%")


_BOTH = ("right", "wrong")
METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        metric.name: metric
        for metric in (
            Metric("auroc", "AUROC", True, _BOTH),
            Metric("aupr_success", "AUPR success", True, ("right",)),
            Metric("aupr_error", "AUPR error", True, ("wrong",)),
            Metric("fpr_at_95_tpr", "FPR at 95% TPR", False, _BOTH),
            Metric("aurc", "AURC", False),
            Metric("e_aurc", "E-AURC", False),
            Metric("augrc", "AUGRC", False),
            Metric("risk_at_coverage", "risk at {coverage}", False),
            Metric("coverage_at_risk", "coverage at {risk}", True),
            Metric("ece", "ECE", False, scale="probability", reflected=True),
            Metric("brier", "Brier", False, scale="probability"),
        )
    }
)
ON_CURVE: Mapping[str, Callable[[Curve, Points], Floats]] = MappingProxyType(
    {
        "auroc": lambda curve, _: curve.auroc(),
        "aupr_success": lambda curve, _: curve.aupr_success(),
        "aupr_error": lambda curve, _: curve.aupr_error(),
        "fpr_at_95_tpr": lambda curve, _: curve.fpr(TPR),
        "aurc": lambda curve, _: curve.aurc,
        "e_aurc": lambda curve, _: curve.e_aurc(),
        "augrc": lambda curve, _: curve.augrc(),
        "risk_at_coverage": lambda curve, points: curve.risk_at(points.coverage),
        "coverage_at_risk": lambda curve, points: curve.coverage_at(points.risk),
    }
)
ON_GAPS: Mapping[str, Callable[[Gaps], Floats]] = MappingProxyType({"ece": Gaps.ece, "brier": Gaps.brier})


def refuse_undefined(metric: Metric, rights: int, wrongs: int) -> None:
    """Say why a metric has no value here, if it has none."""
    if not metric.defined(rights, wrongs):
        needed = " and one ".join(metric.needs)
        raise InputError(
            f"{metric.name}: expected at least one {needed} prediction, got {rights} right and {wrongs} wrong; "
            "it is undefined here: aurc, augrc and risk_at_coverage are not"
        )
