"""What is left to train, and how long it will take."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from vicinal.paper.editions import EDITIONS
from vicinal.paper.networks import Entry, Networks
from vicinal.paper.plan import make_plan, shown


def test_nothing_is_left(networks):
    plan = make_plan(networks, networks.wanted(), 2)
    assert (plan.there, plan.missing, plan.minutes, plan.refused) == (6, (), 0, ())
    assert str(plan) == "quick: 6 networks there, nothing to train"


def test_what_is_missing_takes_as_long_as_its_kind_took(copied, edition):
    networks = Networks(copied, edition)
    missing = [Entry(edition.sources[0], "reg", 1), Entry(edition.sources[0], "distance", 0)]
    for entry in missing:
        shutil.rmtree(networks.folder / entry.name)
    expected = [Entry(edition.sources[0], "reg", 0), Entry(edition.sources[0], "distance", 1)]
    minutes = sum(networks.seconds(entry) for entry in expected) / 60
    plan = make_plan(networks, networks.wanted(), 1)
    assert set(plan.missing) == set(missing)
    assert plan.minutes == pytest.approx(minutes)
    assert make_plan(networks, networks.wanted(), 8).minutes == pytest.approx(minutes / 2)
    assert str(plan) == "quick: 4 networks there, 2 to train: less than a minute"


def test_before_any_was_trained_the_edition_guesses(tmp_path, edition):
    networks = Networks(tmp_path, edition)
    plan = make_plan(networks, networks.wanted(), 1)
    assert plan.minutes == pytest.approx(2 * 0.1 * (1 + 1 + 2.1))
    slow = Networks(tmp_path, replace(edition, cpu=100.0))
    assert make_plan(slow, networks.wanted(), 1).minutes == pytest.approx(100 * plan.minutes)
    fast = Networks(tmp_path, replace(edition, cpu=100.0), device="cuda")
    assert make_plan(fast, networks.wanted(), 1).minutes == pytest.approx(plan.minutes)


def test_missing_data_and_other_recipes_are_said(copied, edition, tmp_path):
    other = Networks(copied, replace(edition, changes={"epochs": 7}))
    plan = make_plan(other, other.wanted(), 1)
    assert (plan.there, plan.missing, len(plan.refused)) == (0, (), 6)
    assert all("move it away" in line for line in str(plan).splitlines()[1:])
    compact = Networks(tmp_path / "none", EDITIONS["compact"], tmp_path / "nowhere")
    plan = make_plan(compact, compact.wanted(), 1)
    assert list(plan.lacking) == ["cifar100", "stl10-partial", "svhn"]
    assert "skipped: cifar100: expected" in str(plan)


@pytest.mark.parametrize(
    ("minutes", "words"),
    [
        (0.99, "less than a minute"),
        (89.4, "about 89 minutes"),
        (90, "about 1.5 hours"),
        (35.9 * 60, "about 35.9 hours"),
        (36 * 60, "about 1.5 days"),
    ],
)
def test_lengths_of_time(minutes, words):
    assert shown(minutes) == words
