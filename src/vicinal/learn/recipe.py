"""A recipe: everything that decides how a network is trained, as data.

With a seed and the data, a ``Recipe`` decides the network to the last bit (on one machine).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from vicinal import checks
from vicinal.errors import InputError
from vicinal.learn.schedule import LARGEST, OneCycle, Piecewise, Schedule, schedule_from_json, schedule_to_json

__all__ = ["METHODS", "OneCycle", "Piecewise", "Recipe"]

METHODS = ("reg", "distance", "adversarial", "both")  # the last only to show that it is worse
OPTIMIZERS = ("sgd", "adam")
PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How one network is trained.

    Args:
        name: what this recipe is called.
        network: the architecture, as in ``vicinal.learn.networks.build``.
        schedule: the learning rate at every step.
        method: ``reg`` (cross entropy), ``distance`` (Eq. 2), ``adversarial`` (Eq. 3), or ``both`` of these, which the
            paper found worse than either.
        width: factor of the architecture's channels; 1 is the paper's.
        dropout: factor of the architecture's dropout rates; 1 is the paper's.
        batch: points in a batch.
        steps: how many steps to run; a piecewise schedule says that itself.
        epochs: instead of steps, how many times to go through the training points.
        optimizer: ``sgd`` (with momentum) or ``adam``.
        momentum: of ``sgd``.
        weight_decay: factor of half the squared length of the weights in the loss. Biases and norms are left alone.
        alpha: the weight of the distance loss beside the cross entropy; of ``distance``.
        margin: m of Eq. 2; of ``distance``.
        same_class: the least share of a batch that stands in same-class pairs; of ``distance``.
        epsilon: the length of the adversarial step in every coordinate, in units of the network's input; of
            ``adversarial``.
        epsilon_ramp: the share of the run over which epsilon grows from 0.
        clip: the range that adversarial inputs are held to. None: any value will do.
        precision: ``float32``, or ``bfloat16`` where the forward pass is fast and rounds more (the weights stay
            float32).
        preprocessing: the options of :meth:`vicinal.learn.preprocess.Preprocessing.fit`.
        crop: training images are shifted by up to so many pixels in each direction; 0 for none.
        flip: training images are mirrored at random.

    Example:
        >>> recipe = Recipe(name="mine", network="svhn", schedule=OneCycle(0.05), epochs=2)
        >>> recipe.total_steps(1000)
        20
        >>> Recipe.from_json(recipe.to_json()) == recipe
        True
    """

    name: str
    network: str
    schedule: Schedule
    method: str = "reg"
    width: float = 1.0
    dropout: float = 1.0
    batch: int = 100
    steps: int | None = None
    epochs: float | None = None
    optimizer: str = "sgd"
    momentum: float = 0.9
    weight_decay: float = 1e-4
    alpha: float = 0.2
    margin: float = 25.0
    same_class: float = 0.2
    epsilon: float = 0.1
    epsilon_ramp: float = 0.0
    clip: tuple[float, float] | None = None
    precision: str = "float32"
    preprocessing: Mapping[str, Any] = field(default_factory=dict)
    crop: int = 0
    flip: bool = False

    def __post_init__(self) -> None:
        _check_words(self)
        _check_numbers(self)
        _check_length(self)
        if not isinstance(self.preprocessing, Mapping):
            raise InputError(f"preprocessing: expected stages and their parameters, got {self.preprocessing!r}")
        _set(self, preprocessing=dict(self.preprocessing))
        if self.clip is not None:
            _set(self, clip=_bounds(self.clip))

    def change(self, **changes: Any) -> Recipe:
        """The same recipe but for some fields; an unknown field is refused with the closest names."""
        known = [one.name for one in fields(self)]
        for name in changes:
            checks.one_of(name, "recipe field", known)
        return replace(self, **changes)

    def total_steps(self, points: int) -> int:
        """How many steps a run over so many training points has."""
        if isinstance(self.schedule, Piecewise):
            return self.schedule.until[-1]
        if self.steps is not None:
            return self.steps
        return max(1, round((self.epochs or 0) * (points // self.batch)))

    def rate(self, step: int, total: int) -> float:
        """The learning rate at a step, counted from 0."""
        return self.schedule.rate(step, total)

    def to_json(self) -> dict[str, Any]:
        """Plain words and numbers, for a file."""
        said = asdict(self) | {"schedule": schedule_to_json(self.schedule)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in said.items()}

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> Recipe:
        """The recipe that ``to_json`` wrote; anything else is refused, naming the field."""
        if not isinstance(said, Mapping):
            raise InputError(f"recipe: expected the fields of a Recipe, got {said!r}")
        wanted = {one.name for one in fields(cls)}
        unknown, missing = sorted(set(said) - wanted), sorted({"name", "network", "schedule"} - set(said))
        if unknown or missing:
            what = f"an unknown field {unknown[0]!r}" if unknown else f"no field {missing[0]!r}"
            raise InputError(f"recipe: expected the fields of a Recipe, got {what}")
        return cls(**{**said, "schedule": schedule_from_json(said["schedule"])})

    def differences(self, other: Recipe) -> list[str]:
        """What is not the same in another recipe, as ``weight_decay: 0.001, not 0.0001``; names do not count."""
        mine, theirs = self.to_json(), other.to_json()
        return [
            f"{key}: {mine[key]!r}, not {theirs[key]!r}" for key in mine if key != "name" and mine[key] != theirs[key]
        ]


def _check_words(recipe: Recipe) -> None:
    for name in ("name", "network"):
        if not isinstance(getattr(recipe, name), str):
            raise InputError(f"{name}: expected a word, got {getattr(recipe, name)!r}")
    if not isinstance(recipe.flip, bool):
        raise InputError(f"flip: expected True or False, got {recipe.flip!r}")
    checks.one_of(recipe.method, "method", METHODS)
    checks.one_of(recipe.optimizer, "optimizer", OPTIMIZERS)
    checks.one_of(recipe.precision, "precision", PRECISIONS)
    if not isinstance(recipe.schedule, (Piecewise, OneCycle)):
        raise InputError(f"schedule: expected a Piecewise or a OneCycle, got {recipe.schedule!r}")


def _check_numbers(recipe: Recipe) -> None:
    checks.whole(recipe.batch, "batch", low=2)
    checks.whole(recipe.crop, "crop", low=0)
    for name in ("same_class", "epsilon_ramp", "momentum"):
        checks.fraction(getattr(recipe, name), name)
    for name in ("dropout", "weight_decay", "alpha", "margin", "epsilon"):
        checks.fraction(getattr(recipe, name), name, high=LARGEST)
    checks.fraction(recipe.width, "width", high=LARGEST, open_low=True)
    if recipe.epochs is not None:
        checks.fraction(recipe.epochs, "epochs", high=LARGEST, open_low=True)


def _check_length(recipe: Recipe) -> None:
    """The length of the run is said once."""
    said = {name: getattr(recipe, name) for name in ("steps", "epochs") if getattr(recipe, name) is not None}
    if recipe.steps is not None:
        checks.whole(recipe.steps, "steps", low=1)
    if isinstance(recipe.schedule, Piecewise):
        if said:
            raise InputError(f"{' and '.join(said)}: expected none, as the schedule says when it ends, got {said}")
    elif len(said) != 1:
        raise InputError(f"steps, epochs: expected one of them, got {said or 'none'}")


def _bounds(clip: Any) -> tuple[float, float]:
    try:
        low, high = (float(bound) for bound in clip)
    except (TypeError, ValueError):
        raise InputError(f"clip: expected two numbers, (low, high), got {clip!r}") from None
    if not low < high:
        raise InputError(f"clip: expected (low, high) with low below high, got ({low:g}, {high:g})")
    return low, high


def _set(value: Any, **parts: Any) -> None:
    for name, part in parts.items():
        object.__setattr__(value, name, part)
