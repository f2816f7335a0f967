"""How far to trust each prediction of a neural-network classifier, told by the training points around it.

    any network ──▶ Embeddings ──▶ Bank ──▶ distance, margin, ... ──▶ Trust ──▶ evaluate ──▶ Evaluation
                    (plain arrays)          (scores)

``Embeddings`` are what a network says of some inputs. A ``Bank`` holds the training points. A score looks at both and
gives a ``Trust`` for every prediction: rank by its ``log_odds``, show its ``confidence``, explain by its ``neighbors``.
``evaluate`` tells how good a score is. A ``Guard`` carries all of it into production. Everything below
is imported when it is first used.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Bank": "bank",
    "Embeddings": "values",
    "Evaluation": "evaluation",
    "Fusion": "selective",
    "Guard": "guard",
    "NeighborConfidence": "estimator",
    "Neighbors": "values",
    "Network": "learn.network",
    "Trust": "values",
    "VicinalError": "errors",
    "calibrate": "selective",
    "condense": "condensation",
    "diagnose": "selective",
    "distance": "score",
    "energy": "score",
    "entropy": "score",
    "evaluate": "evaluation",
    "kth_distance": "score",
    "mahalanobis": "score",
    "margin": "score",
    "max_logit": "score",
    "threshold_at": "selective",
    "top_two_gap": "score",
    "trust_ratio": "score",
}

__all__ = [  # noqa: RUF022  sorted without regard to case
    "Bank",
    "calibrate",
    "condense",
    "diagnose",
    "distance",
    "Embeddings",
    "energy",
    "entropy",
    "evaluate",
    "Evaluation",
    "Fusion",
    "Guard",
    "kth_distance",
    "mahalanobis",
    "margin",
    "max_logit",
    "NeighborConfidence",
    "Neighbors",
    "Network",
    "threshold_at",
    "top_two_gap",
    "Trust",
    "trust_ratio",
    "VicinalError",
]


def _has(module: str) -> bool:
    """Whether a module could be imported; it is not."""
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


if not _has("torch"):
    __all__.remove("Network")  # so that ``from vicinal import *`` and ``help(vicinal)`` work without it

if TYPE_CHECKING:
    from vicinal.bank import Bank
    from vicinal.condensation import condense
    from vicinal.errors import VicinalError
    from vicinal.estimator import NeighborConfidence
    from vicinal.evaluation import Evaluation, evaluate
    from vicinal.guard import Guard
    from vicinal.learn.network import Network
    from vicinal.score import (
        distance,
        energy,
        entropy,
        kth_distance,
        mahalanobis,
        margin,
        max_logit,
        top_two_gap,
        trust_ratio,
    )
    from vicinal.selective import Fusion, calibrate, diagnose, threshold_at
    from vicinal.values import Embeddings, Neighbors, Trust


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'vicinal' has no attribute {name!r}")
    if name == "Network":
        from vicinal.errors import require

        require("torch", "torch", "vicinal.Network")
    found = getattr(importlib.import_module(f"vicinal.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
