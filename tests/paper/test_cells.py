"""Cells: figures over networks, gains over the best rival of each, and what is wanted of them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from vicinal.paper.cells import Panel, goal
from vicinal.paper.goals import wanted
from vicinal.paper.results import Difference

RANDOM = np.random.default_rng(0)
RIGHTS = [RANDOM.random(50) < 0.7 for _ in range(2)]
RANKS = [
    {name: right + RANDOM.normal(0, spread, 50) for name, spread in (("margin", 1), ("entropy", 1), ("distance", 0.4))}
    for right in RIGHTS
]


@pytest.fixture
def panel():
    return Panel.of("digits", "Reg", RANKS, RIGHTS)


def aurocs(row):
    return [roc_auc_score(right, ranks[row]) for ranks, right in zip(RANKS, RIGHTS, strict=True)]


def test_a_cell_is_the_mean_over_networks(panel):
    cell = panel.cell("distance", 0.8)
    assert cell.value.values == pytest.approx(tuple(aurocs("distance")))
    assert cell.value.mean == pytest.approx(np.mean(aurocs("distance")))
    assert (cell.published, cell.column) == (0.8, "digits, Reg")


def test_the_gain_is_over_the_better_rival_of_each_network(panel):
    best = np.maximum(aurocs("margin"), aurocs("entropy"))
    assert panel.cell("distance").gain.mean == pytest.approx(np.mean(np.array(aurocs("distance")) - best))
    assert panel.cell("entropy").gain is None
    only = panel.gain("distance", "margin").mean
    assert only == pytest.approx(np.mean(np.array(aurocs("distance")) - aurocs("margin")))


def test_accuracy_stands_above(panel):
    assert panel.column.accuracy.values == pytest.approx(tuple(right.mean() for right in RIGHTS))
    assert Panel.of("digits", "Reg", RANKS, RIGHTS, accuracy=False).column.accuracy is None


def test_networks_without_two_errors_are_left_out():
    almost = np.arange(50) > 0
    assert len(Panel.of("digits", "Reg", RANKS, [RIGHTS[0], almost])) == 1
    nobody = Panel.of("digits", "Reg", RANKS, [almost, almost])
    assert len(nobody) == 0
    assert nobody.cell("margin") is None


def test_a_row_that_one_network_lacks_has_no_cell(panel):
    lacking = Panel.of("digits", "Reg", [RANKS[0], {"margin": RANKS[1]["margin"]}], RIGHTS)
    assert lacking.cell("distance") is None
    assert lacking.gain("distance") is None


@pytest.mark.parametrize(
    ("low", "high", "aim", "outcome"),
    [
        (0.01, 0.03, None, "confirmed"),
        (-0.01, 0.03, None, "not settled"),
        (-0.03, -0.01, None, "not confirmed"),
        (0.01, 0.03, 0.03, "not confirmed"),
        (-0.01, 0.005, 0, "confirmed"),
        (-0.03, -0.01, 0, "not confirmed"),
    ],
)
def test_a_goal_is_held_against_the_test(low, high, aim, outcome):
    (found,) = goal("so", "there", Difference((low + high) / 2, low, high, None, 2), aim)
    assert found.outcome == outcome


def test_without_a_gain_there_is_no_goal():
    assert goal("so", "there", None) == []


@pytest.mark.parametrize(
    ("asked", "gain"),
    [
        (("compact", "distance", "cifar100", "reg"), 0.005),
        (("compact", "distance", "svhn", "adversarial"), 0.0),
        (("compact", "fused", "svhn", "distance"), 0.01),
        (("compact", "fused", "cifar100", "distance"), None),
        (("quick", "distance", "cifar100", "reg"), None),
    ],
)
def test_goals_are_those_that_were_set_for_the_compact_edition(asked, gain):
    assert wanted(*asked) == gain
