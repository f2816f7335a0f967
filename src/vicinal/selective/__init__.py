"""Errors: decide which predictions to refuse.

threshold_at  which threshold for one image, with a promise that holds for finitely many calibration rows
calibrate     from any score to the probability of being right
conformal     from any score to a p-value, where nobody knows which held-out predictions are wrong
Fusion        several scores in one, fitted on held-out rows
diagnose      whether distance will help this network, in words and numbers
"""

from vicinal.selective.calibration import METHODS, Calibration, Reliability, calibrate, conformal, reliability
from vicinal.selective.diagnosis import Diagnosis, diagnose
from vicinal.selective.fusion import Fusion, parts
from vicinal.selective.threshold import Threshold, threshold_at

__all__ = [
    "METHODS",
    "Calibration",
    "Diagnosis",
    "Fusion",
    "Reliability",
    "Threshold",
    "calibrate",
    "conformal",
    "diagnose",
    "parts",
    "reliability",
    "threshold_at",
]
