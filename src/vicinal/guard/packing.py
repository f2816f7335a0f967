"""The fitted parts of a guard as arrays and facts, and back: exact to the last bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from vicinal.novelty import Detector, Triage
from vicinal.selective import Calibration, Fusion, Reliability

__all__ = ["pack", "unpack"]

Arrays = Mapping[str, npt.NDArray[Any]]
_FUSION = ("centres", "scales", "weights")
_CALIBRATION = ("knots", "values", "coefficients")
_CURVE = ("probability", "observed", "low", "high", "counts")


def pack(
    fusion: Fusion | None, calibration: Calibration, triage: Triage
) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """All arrays by name, and all else as JSON holds it."""
    arrays = {f"calibration.{name}": getattr(calibration, name) for name in _CALIBRATION}
    curve = calibration.curve
    if curve is not None:
        arrays |= {f"curve.{name}": getattr(curve, name) for name in _CURVE}
    if fusion is not None:
        arrays |= {f"fusion.{name}": getattr(fusion, name) for name in _FUSION}
    arrays["triage.known"] = triage.detector.known[None]
    arrays["triage.thresholds"] = np.array([triage.novel_at, triage.accept_at])
    facts = {
        "fusion": None
        if fusion is None
        else {"names": list(fusion.names), "intercept": fusion.intercept, "n": fusion.n, "notes": list(fusion.notes)},
        "calibration": {
            **{name: getattr(calibration, name) for name in ("score", "method", "centre", "scale", "n")},
            "notes": list(calibration.notes),
            "level": None if curve is None else curve.level,
        },
        "triage": {
            "novelty": triage.detector.score,
            **{name: getattr(triage, name) for name in ("trusted", "false_alarms", "risk", "delta")},
            "promised": list(triage.promised),
            "shares": dict(triage.shares),
            "notes": list(triage.notes),
        },
    }
    return arrays, facts


def unpack(arrays: Arrays, facts: Mapping[str, Any]) -> tuple[Fusion | None, Calibration, Triage]:
    """What ``pack`` was given. Raises KeyError, TypeError or ValueError where parts are missing or of another kind."""
    return (
        _fusion(arrays, facts["fusion"]),
        _calibration(arrays, facts["calibration"]),
        _triage(arrays, facts["triage"]),
    )


def _fusion(arrays: Arrays, said: Mapping[str, Any] | None) -> Fusion | None:
    if said is None:
        return None
    parts = {name: arrays[f"fusion.{name}"] for name in _FUSION}
    if {part.shape for part in parts.values()} != {(len(said["names"]),)}:
        raise ValueError("expected a fusion with as many weights as scores")
    return Fusion(
        names=tuple(map(str, said["names"])),
        **parts,
        intercept=float(said["intercept"]),
        n=int(said["n"]),
        notes=tuple(map(str, said["notes"])),
    )


def _calibration(arrays: Arrays, said: Mapping[str, Any]) -> Calibration:
    curve = None
    if said["level"] is not None:
        bins = {name: arrays[f"curve.{name}"] for name in _CURVE}
        curve = Reliability(**bins, level=float(said["level"]))
    parts = {name: arrays[f"calibration.{name}"] for name in _CALIBRATION}
    return Calibration(
        score=str(said["score"]),
        method=str(said["method"]),
        **parts,
        centre=float(said["centre"]),
        scale=float(said["scale"]),
        curve=curve,
        n=int(said["n"]),
        notes=tuple(map(str, said["notes"])),
    )


def _triage(arrays: Arrays, said: Mapping[str, Any]) -> Triage:
    alarms, risk = said["promised"]
    novel_at, accept_at = arrays["triage.thresholds"]
    return Triage(
        detector=Detector(str(said["novelty"]), {None: arrays["triage.known"]}),
        trusted=str(said["trusted"]),
        novel_at=float(novel_at),
        accept_at=float(accept_at),
        false_alarms=float(said["false_alarms"]),
        risk=float(said["risk"]),
        delta=float(said["delta"]),
        promised=(float(alarms), float(risk)),
        shares={str(name): float(share) for name, share in said["shares"].items()},
        notes=tuple(map(str, said["notes"])),
    )
