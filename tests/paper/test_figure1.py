"""Figure 1: its lines, from the networks' own softmax outputs by NumPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from paper_oracle import Plain
from vicinal.paper.figure1 import GAINS, LINES, figure1
from vicinal.paper.networks import Entry


@pytest.fixture(scope="module")
def result(views):
    return figure1(views)


@pytest.fixture(scope="module")
def shares(networks):
    """The softmax outputs of the networks of a kind, and the labels."""
    labels = np.array(networks.embeddings(Entry(networks.edition.sources[0], "reg", 0), "test").labels)
    kinds = ("reg", "distance", "adversarial")
    every = {
        kind: [Plain(networks, Entry(networks.edition.sources[0], kind, seed)).softmax for seed in range(3)]
        for kind in kinds
    }
    return every, labels


def test_all_networks_of_a_kind_averaged(result, shares):
    """Of three networks there is one group of three: all repeats are the same."""
    every, labels = shares
    table = result.tables[2]
    for kind, name in (("reg", "Reg"), ("distance", "Dist"), ("adversarial", "AT")):
        accuracy = (np.mean(every[kind], axis=0).argmax(axis=1) == labels).mean()
        cell = table.cell(f"{name}, average", "digits, 3")
        assert cell.value.values == pytest.approx((accuracy,) * 5)


def test_an_ensemble_of_both_kinds(result, shares):
    every, labels = shares
    accuracy = (np.mean([*every["reg"], *every["adversarial"]], axis=0).argmax(axis=1) == labels).mean()
    cell = result.tables[2].cell("Reg+AT, average", "digits, 6")
    assert cell.value.values == pytest.approx((accuracy,) * 5)


def test_every_rule_and_composition_has_a_line(result):
    rows = result.tables[2].rows
    compositions = {row.split(", ")[0] for row in rows}
    assert compositions == {"Reg", "Dist", "AT", "Reg+Dist", "Reg+AT", "Dist+AT"}
    rules = {row.split(", ")[1] for row in rows}
    by = {
        f"{rule} by {score}" for rule in ("weighted", "confidence vote", "dictator") for score in ("margin", "entropy")
    }
    assert by | {"average", "majority", "weighted by distance", "weighted by in AT"} <= rules


def test_what_is_shown_stands_among_all(result):
    shown, _, every = result.tables
    for name in LINES:
        (note,) = [note for note in result.notes if note.startswith(f"digits: {name} is ")]
        line = note.partition(" is ")[2].partition(";")[0]
        for column in shown.columns:
            assert shown.cell(name, column) is None or shown.cell(name, column).value == every.cell(line, column).value
    assert "distance" not in next(note for note in result.notes if LINES[2] in note).partition(" is ")[2]


def test_gains_are_differences_of_the_lines(result):
    shown, gains, _ = result.tables
    assert gains.title.startswith(GAINS)
    for name in LINES[:2]:
        for column in gains.columns:
            cell = gains.cell(name, column)
            if cell is not None:
                other = shown.cell(LINES[2], column).value
                assert cell.value.mean == pytest.approx(shown.cell(name, column).value.mean - other.mean)


def test_what_is_shown_is_chosen_without_the_test_points(views, monkeypatch):
    """Were the test points looked at, test labels turned round would change the choice."""
    from vicinal.paper import figure1 as module

    before, grown = figure1(views), module._grown

    def turned(views, kinds, view):
        lines = grown(views, kinds, view)
        return lines if view == "validation" else [replace(line, accuracies=1 - line.accuracies) for line in lines]

    monkeypatch.setattr(module, "_grown", turned)
    assert figure1(views).notes == before.notes


def test_fewer_than_two_networks_draw_nothing(views, monkeypatch):
    monkeypatch.setattr(views.networks, "ready", lambda source, method, most: [])
    assert figure1(views).tables == ()
