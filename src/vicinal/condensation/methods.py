"""The methods by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from vicinal.condensation.centres import k_centres
from vicinal.condensation.distilled import distilled
from vicinal.condensation.halving import density_preserving
from vicinal.condensation.hart import hart
from vicinal.condensation.means import k_means, medoids
from vicinal.condensation.random import random
from vicinal.condensation.task import Method

__all__ = ["METHODS"]

METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "distilled": distilled,
        "k-means": k_means,
        "medoids": medoids,
        "k-centres": k_centres,
        "density": density_preserving,
        "hart": hart,
        "random": random,
    }
)
