"""Which networks of an edition can be used, which are missing, and which are refused."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

from vicinal import Embeddings, store
from vicinal.paper.editions import EDITIONS, Source
from vicinal.paper.networks import MISSING, Entry, Networks


@pytest.fixture
def reg(edition):
    return Entry(edition.sources[0], "reg", 0)


def test_those_that_are_there_can_be_used(networks, edition):
    assert {networks.obstacle(entry) for entry in networks.wanted(figure=True, variants=True)} == {""}
    assert [entry.seed for entry in networks.ready(edition.sources[0], "distance", 9)] == [0, 1, 2]
    assert networks.to_train(networks.wanted(figure=True)) == []


def test_what_is_wanted(networks):
    tables = [entry.name for entry in networks.wanted()]
    assert tables == [f"digits-{method}-{seed}" for seed in (0, 1) for method in ("reg", "distance", "adversarial")]
    figure = [entry.name for entry in networks.wanted(figure=True)]
    assert figure[:6] == tables
    assert figure[6:] == ["digits-reg-2", "digits-distance-2", "digits-adversarial-2"]
    assert [entry.name for entry in networks.wanted(variants=True)][6:] == [
        "digits-distance-alpha-0.1-0",
        "digits-both-0",
    ]


def test_the_recipe_of_a_variant(networks, edition):
    variant = networks.recipe(Entry(edition.sources[0], "distance", 0, "alpha-0.1"))
    assert (variant.alpha, variant.method, variant.epochs) == (0.1, "distance", 6)
    assert networks.recipe(Entry(edition.sources[0], "both", 0)).method == "both"


def test_an_empty_folder_lacks_all(tmp_path, edition):
    networks = Networks(tmp_path, edition)
    assert networks.to_train(networks.wanted()) == networks.wanted()
    assert networks.ready(edition.sources[0], "reg", 5) == []


@pytest.mark.parametrize("lost", ["network.json", "bank.safetensors", "test.safetensors"])
def test_half_a_folder_is_trained_on(copied, edition, reg, lost):
    (copied / "quick" / reg.name / lost).unlink()
    assert Networks(copied, edition).obstacle(reg) == MISSING


def test_embeddings_of_another_network_are_made_again(copied, edition, reg):
    place = copied / "quick"
    shutil.copy(place / "digits-reg-1" / "test.safetensors", place / reg.name / "test.safetensors")
    assert Networks(copied, edition).obstacle(reg) == MISSING


def test_a_network_by_another_recipe_is_neither_used_nor_overwritten(copied, edition, reg):
    other = Networks(copied, replace(edition, changes={"epochs": 7}))
    assert "epochs: 7, not 6); move it away" in other.obstacle(reg)
    assert other.to_train([reg]) == []
    assert other.ready(reg.source, "reg", 1) == []


def test_a_network_from_another_seed_is_refused(copied, edition, reg):
    place = copied / "quick"
    shutil.rmtree(place / reg.name)
    shutil.copytree(place / "digits-reg-1", place / reg.name)
    assert "trained otherwise (seed: 0, not 1)" in Networks(copied, edition).obstacle(reg)


def test_embeddings_that_this_code_does_not_give_are_refused(copied, edition, reg):
    path = copied / "quick" / reg.name / "test.safetensors"
    found = Embeddings.load(path)
    moved = Embeddings(
        found.vectors * np.float32(1.01), np.array(found.logits), np.array(found.labels), facts=found.facts
    )
    moved.save(path)
    shutil.rmtree(copied / "quick" / "cache")
    assert "not those that this version gives" in Networks(copied, edition).obstacle(reg)


def test_a_damaged_folder_is_refused_in_words(copied, edition, reg):
    (copied / "quick" / reg.name / "network.json").write_text("[")
    assert "expected JSON" in Networks(copied, edition).obstacle(reg)


def test_how_long_it_took(copied, edition, reg):
    networks = Networks(copied, edition)
    assert networks.seconds(reg) > 0
    (copied / "quick" / reg.name / "log.jsonl").write_text("\n")
    assert networks.seconds(reg) is None
    (copied / "quick" / reg.name / "log.jsonl").unlink()
    assert networks.seconds(reg) is None


def test_a_data_set_that_is_missing_says_how_to_get_it(tmp_path):
    compact = Networks(tmp_path, EDITIONS["compact"], tmp_path / "nowhere")
    assert "vicinal data fetch cifar100" in compact.lacking("cifar100")
    assert "stl10-partial" in compact.lacking("stl10-partial")
    assert compact.to_train(compact.wanted()) == []


def test_a_recipe_that_is_not_made_for_the_data_is_said(tmp_path, edition):
    other = replace(edition, sources=(Source("mine", "Mine", "", 1, 1, 1, False),))
    assert "recipe 'digits'" in Networks(tmp_path, other).lacking("mine")


def test_facts_of_a_network(networks, reg):
    assert networks.fingerprint(reg) == store.read_json(networks.folder / reg.name / "network.json")["fingerprint"]
