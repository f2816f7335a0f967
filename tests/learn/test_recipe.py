"""Recipes as data, and the paper's as published."""

from __future__ import annotations

import contextlib
import json
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vicinal.errors import InputError
from vicinal.learn.networks import NAMES as NETWORKS
from vicinal.learn.recipe import METHODS, OneCycle, Piecewise, Recipe
from vicinal.learn.recipes import NAMES, named

MINE = Recipe(name="mine", network="svhn", schedule=OneCycle(0.05), epochs=2)
EVERY = [
    ("paper", "cifar100"),
    ("paper", "stl10-32"),
    ("paper", "stl10-partial"),
    ("paper", "svhn"),
    ("tuned", "cifar100"),
    ("tuned", "stl10-32"),
    ("tuned", "svhn"),
    ("compact", "cifar100"),
    ("compact", "stl10-32"),
    ("compact", "stl10-partial"),
    ("compact", "svhn"),
    ("digits", "digits"),
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("name", "dataset"), EVERY)
def test_recipes_by_name_are_whole(name: str, dataset: str, method: str) -> None:
    found = named(name, dataset, method)
    assert found.name == name
    assert found.method == method
    assert found.network in NETWORKS
    assert Recipe.from_json(json.loads(json.dumps(found.to_json()))) == found
    # shapes and losses are the paper's
    assert (found.alpha, found.margin, found.same_class) == (0.2, 25.0, 0.2)
    assert name == "digits" or found.batch == 100


@pytest.mark.parametrize(
    ("dataset", "network", "optimizer", "steps", "rates"),
    [
        ("cifar100", "cifar100", "sgd", 80_000, {0: 1e-2, 30_000: 5e-3, 50_000: 5e-4, 65_000: 5e-5}),
        ("stl10-32", "stl10", "sgd", 8_000, {0: 1e-2, 3_000: 5e-3, 5_000: 5e-4, 6_500: 5e-5}),
        ("svhn", "svhn", "adam", 16_000, {0: 1e-3, 6_000: 5e-4, 10_000: 5e-5}),
    ],
)
def test_the_papers_recipes_are_as_published(
    dataset: str, network: str, optimizer: str, steps: int, rates: dict[int, float]
) -> None:
    found = named("paper", dataset)
    assert (found.network, found.optimizer, found.width, found.dropout) == (network, optimizer, 1.0, 1.0)
    assert (found.batch, found.weight_decay, found.epsilon, found.epsilon_ramp) == (100, 1e-4, 0.1, 0.0)
    assert found.total_steps(12_345) == steps
    for step, rate in rates.items():
        assert found.rate(step, steps) == rate
        assert step == 0 or found.rate(step - 1, steps) > rate
    assert list(found.preprocessing) == ["global-contrast", "whitening"]
    assert (found.crop > 0, found.flip) == ((True, True) if dataset == "stl10-32" else (False, False))


def test_methods_differ_in_the_method_alone_in_the_paper() -> None:
    assert named("paper", "svhn", "distance") == named("paper", "svhn").change(method="distance")


def test_a_changed_recipe_says_so() -> None:
    assert named("paper", "svhn", weight_decay=0.5).name == "paper, changed"
    assert named("paper", "svhn", weight_decay=0.5).weight_decay == 0.5


def test_length_comes_from_steps_epochs_or_the_schedule() -> None:
    assert MINE.total_steps(1050) == 20
    assert MINE.change(epochs=0.5).total_steps(1000) == 5
    assert MINE.change(epochs=0.001).total_steps(1000) == 1
    assert MINE.change(epochs=None, steps=7).total_steps(1000) == 7
    assert MINE.change(epochs=None, schedule=Piecewise((9,), (0.1,))).total_steps(1000) == 9


def test_a_recipe_does_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        MINE.batch = 3  # type: ignore[misc]
    given = {"standardize": {}}
    recipe = MINE.change(preprocessing=given)
    given.clear()
    assert recipe.preprocessing == {"standardize": {}}


def test_differences_are_told_field_by_field_without_the_name() -> None:
    other = MINE.change(name="yours", batch=50, schedule=OneCycle(0.1))
    said = MINE.differences(other)
    assert len(said) == 2
    assert said[1] == "batch: 100, not 50"
    assert said[0].startswith("schedule: {'kind': 'one-cycle', 'peak': 0.05")
    assert MINE.differences(MINE) == []


def test_json_is_plain_and_whole() -> None:
    full = MINE.change(
        clip=(-1, 2), crop=4, flip=True, preprocessing={"whitening": {"epsilon": 0.1}}, method="distance"
    )
    said = json.loads(json.dumps(full.to_json()))
    assert said["clip"] == [-1.0, 2.0]
    assert Recipe.from_json(said) == full


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "dist"}, "method: expected one of 'reg', 'distance', 'adversarial', 'both', got 'dist'"),
        ({"optimizer": "adamw"}, "did you mean 'adam'?"),
        ({"precision": "float16"}, "precision: expected one of"),
        ({"schedule": 0.1}, "schedule: expected a Piecewise or a OneCycle, got 0.1"),
        ({"batch": 1}, "batch: expected a whole number of at least 2, got 1"),
        ({"batch": 10.0}, "batch: expected a whole number"),
        ({"epsilon": -0.1}, "epsilon: expected a number in .* got -0.1"),
        ({"margin": -1}, "margin: expected a number in .* got -1"),
        ({"alpha": float("nan")}, "alpha: expected a number"),
        ({"weight_decay": -1e-4}, "weight_decay: expected a number"),
        ({"dropout": -1}, "dropout: expected a number"),
        ({"width": 0}, "width: expected a number"),
        ({"same_class": 1.5}, "same_class: expected a number"),
        ({"epsilon_ramp": 2}, "epsilon_ramp: expected a number"),
        ({"momentum": -0.1}, "momentum: expected a number"),
        ({"crop": -1}, "crop: expected a whole number"),
        ({"epochs": 0}, "epochs: expected a number"),
        ({"epochs": None}, "steps, epochs: expected one of them, got none"),
        ({"steps": 5}, "steps, epochs: expected one of them, got {'steps': 5, 'epochs': 2}"),
        ({"steps": 0, "epochs": None}, "steps: expected a whole number of at least 1, got 0"),
        ({"schedule": Piecewise((5,), (0.1,))}, "epochs: expected none, as the schedule says when it ends"),
        ({"clip": (1, 0)}, r"clip: expected \(low, high\) with low below high, got \(1, 0\)"),
        ({"name": 5}, "name: expected a word, got 5"),
        ({"network": None}, "network: expected a word, got None"),
        ({"flip": 1}, "flip: expected True or False, got 1"),
        ({"clip": 5}, r"clip: expected two numbers, \(low, high\), got 5"),
        ({"clip": (0, 1, 2)}, "clip: expected two numbers"),
        ({"preprocessing": "whitening"}, "preprocessing: expected stages and their parameters, got 'whitening'"),
        ({"weight_dekay": 1}, "recipe field: .* got 'weight_dekay'; did you mean 'weight_decay'?"),
    ],
)
def test_nonsense_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        MINE.change(**changes)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({**MINE.to_json(), "dropuot": 1}, "an unknown field 'dropuot'"),
        ({"name": "x", "network": "svhn"}, "no field 'schedule'"),
        (["name"], r"expected the fields of a Recipe, got \['name'\]"),
        (None, "expected the fields of a Recipe, got None"),
    ],
)
def test_foreign_json_is_refused(said: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Recipe.from_json(said)


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.floats(), st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=2)),
    max_leaves=4,
)


@given(st.sampled_from(sorted(MINE.to_json())), VALUES, st.sampled_from(["one-cycle", "piecewise"]))
def test_any_json_is_a_recipe_or_is_refused(name: str, value: Any, kind: str) -> None:
    said = {**MINE.to_json(), name: value}
    if isinstance(value, dict) and name == "schedule":
        said["schedule"] = {"kind": kind, "peak": 0.1, "until": [3], "rates": [0.1], **value}
    with contextlib.suppress(InputError):
        assert Recipe.from_json(Recipe.from_json(said).to_json()).to_json() == Recipe.from_json(said).to_json()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("papre", "svhn"), "did you mean 'paper'?"),
        (("paper", "svhm"), "data set of the recipe 'paper': .* did you mean 'svhn'?"),
        (("compact", "fashion-mnist"), "expected one of 'cifar100', 'stl10-32', 'svhn', got 'fashion-mnist'"),
        (("paper", "stl10"), "did you mean 'stl10-32'?"),
        (("paper", "svhn", "all"), "method: expected one of"),
    ],
)
def test_unknown_names_are_refused_with_the_closest(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        named(*arguments)


def test_names_are_told() -> None:
    assert sorted({name for name, _ in EVERY}) == sorted(NAMES)
