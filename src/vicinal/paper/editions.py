"""Editions: what is reproduced, at which size.

quick      the digits of scikit-learn: everything once, in a minute or two
compact    real data, the paper's losses, its networks at reduced width: made for two cores
full       the paper's networks and schedules: made for a GPU
wide       one network of each kind at full width on the short schedule: does width change the story?
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

__all__ = ["EDITIONS", "METHODS", "Edition", "Source"]

METHODS = ("reg", "distance", "adversarial")


@dataclass(frozen=True)
class Source:
    """A data set of an edition, and how many networks it gets.

    Attributes:
        data: what ``vicinal.data.load`` calls it.
        title: what readers call it.
        paper: what the paper's numbers call it; empty where there are none.
        networks: of each method, for the tables.
        figure: of each method, for Figure 1.
        minutes: that one Reg network trains on one core, or on a GPU where the edition is made for one; a first guess,
            until one has been trained.
        dropout: whether its network has dropout, so that MC dropout can be asked for.
    """

    data: str
    title: str
    paper: str
    networks: int
    figure: int
    minutes: float
    dropout: bool


@dataclass(frozen=True)
class Edition:
    """What is reproduced, at which size.

    Attributes:
        name: of the edition.
        recipe: the name of the recipes.
        sources: the data sets.
        novelties: pairs of known and novel data; the novel one needs no networks.
        changes: what the recipes' fields are set to instead.
        variants: of the distance loss, for the claim that its settings matter little: fields set otherwise, by name.
        validation: the share of the training points that everything is chosen on.
        passes: of MC dropout.
        ks: numbers of neighbours, to choose from and to compare.
        device: what it is made for.
        cpu: how many times longer a core takes than that.
    """

    name: str
    recipe: str
    sources: tuple[Source, ...]
    novelties: tuple[tuple[str, str], ...]
    changes: Mapping[str, Any] = field(default_factory=dict)
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    validation: float = 0.1
    passes: int = 100
    ks: tuple[int, ...] = (5, 10, 20, 50, 100, 200, 500, 1000, 2000)
    device: str = "cpu"
    cpu: float = 1.0

    def source(self, data: str) -> Source | None:
        """The data set of this name; None where it is only ever novel."""
        return next((source for source in self.sources if source.data == data), None)


_ALPHA_AND_MARGIN: dict[str, dict[str, float]] = {
    "alpha-0.1": {"alpha": 0.1},
    "alpha-0.4": {"alpha": 0.4},
    "margin-12.5": {"margin": 12.5},
    "margin-50": {"margin": 50.0},
}
_REAL = (("svhn", "stl10-partial"), ("stl10-partial", "svhn"), ("cifar100", "svhn"))

EDITIONS: Mapping[str, Edition] = MappingProxyType(
    {
        edition.name: edition
        for edition in (
            Edition(
                name="quick",
                recipe="digits",
                sources=(Source("digits", "digits", "", networks=4, figure=4, minutes=0.1, dropout=True),),
                novelties=(("digits", "digits-8-9"),),
                variants=_ALPHA_AND_MARGIN,
                validation=2 / 3,
                ks=(5, 10, 20, 50, 100),
            ),
            Edition(
                name="compact",
                recipe="compact",
                sources=(
                    Source("cifar100", "CIFAR-100", "cifar100", networks=5, figure=10, minutes=15, dropout=True),
                    Source("stl10-partial", "STL-10 partial", "stl10", networks=5, figure=5, minutes=5, dropout=True),
                    Source("svhn", "SVHN", "svhn", networks=5, figure=5, minutes=15, dropout=False),
                ),
                novelties=_REAL,
                variants=_ALPHA_AND_MARGIN,
            ),
            Edition(
                name="wide",
                recipe="compact",
                sources=(
                    Source("cifar100", "CIFAR-100", "cifar100", networks=1, figure=1, minutes=240, dropout=True),
                    Source("svhn", "SVHN", "svhn", networks=1, figure=1, minutes=60, dropout=False),
                ),
                novelties=(("cifar100", "svhn"),),
                changes={"width": 1.0},
            ),
            Edition(
                name="full",
                recipe="paper",
                sources=(
                    Source("cifar100", "CIFAR-100", "cifar100", networks=5, figure=10, minutes=3, dropout=True),
                    Source("stl10-32", "STL-10", "stl10", networks=5, figure=10, minutes=0.5, dropout=True),
                    Source("svhn", "SVHN", "svhn", networks=5, figure=10, minutes=1.5, dropout=False),
                ),
                novelties=(("svhn", "stl10-32"), ("stl10-32", "svhn"), ("cifar100", "svhn")),
                variants=_ALPHA_AND_MARGIN,
                device="cuda",
                cpu=400,
            ),
        )
    }
)
