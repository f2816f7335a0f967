from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import layouts
from vicinal.data import available, data_root, load
from vicinal.data.catalog import CATALOG
from vicinal.errors import FileError, InputError, MissingDataError

WRITERS = {
    "cifar10": layouts.cifar10,
    "cifar100": layouts.cifar100,
    "fashion-mnist": lambda root: layouts.mnist(root, "fashion-mnist"),
    "mnist": layouts.mnist,
    "stl10": layouts.stl10,
    "stl10-32": layouts.stl10,
    "svhn": layouts.svhn,
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_known_data_set_loads_from_its_layout(name, tmp_path, caplog):
    WRITERS[name](tmp_path)
    with caplog.at_level(logging.WARNING):
        found = load(name, root=tmp_path)
    assert found.name == name
    assert found.class_names == CATALOG[name].class_names
    assert found.facts["title"] == CATALOG[name].title
    assert found.facts["address"].startswith(CATALOG[name].downloads[0].addresses[0])
    assert all(isinstance(fact, str) for fact in found.facts.values())
    count = f"{len(found.test)} test images, not the official {CATALOG[name].counts[1]:,}"
    assert count in found.facts["notes"]
    assert count in caplog.text


def test_the_catalog_names_every_data_set_that_is_tested():
    assert set(CATALOG) == set(WRITERS)


def test_the_reduction_of_stl10_has_the_same_labels(tmp_path):
    layouts.stl10(tmp_path)
    full, reduced = load("stl10", root=tmp_path), load("stl10-32", root=tmp_path)
    assert full.train.shape == (96, 96, 3)
    assert reduced.train.shape == (32, 32, 3)
    np.testing.assert_array_equal(full.test.labels, reduced.test.labels)


@pytest.mark.parametrize(("name", "place"), [("mnist", "MNIST/raw"), ("fashion-mnist", "FashionMNIST/raw")])
def test_the_folders_that_torchvision_makes_are_found(name, place, tmp_path):
    layouts.mnist(tmp_path, place)
    assert len(load(name, root=tmp_path).train) == 10


def test_svhn_is_found_in_a_folder_of_its_own(tmp_path):
    layouts.svhn(tmp_path / "svhn")
    assert load("svhn", root=tmp_path).train.labels[:3].tolist() == [9, 8, 7]


def test_a_missing_data_set_says_where_to_get_it(tmp_path):
    with pytest.raises(MissingDataError) as raised:
        load("cifar100", root=tmp_path)
    said = str(raised.value)
    for part in ("train.bin, test.bin", str(tmp_path), "vicinal data fetch cifar100", "cs.toronto.edu", "VICINAL_DATA"):
        assert part in said
    assert isinstance(raised.value, FileNotFoundError)


def test_a_missing_file_is_named_and_the_others_are_not(tmp_path):
    (layouts.stl10(tmp_path) / "test_y.bin").unlink()
    with pytest.raises(MissingDataError, match=r"stl10: expected test_y\.bin in .*stl10_binary, got nothing there"):
        load("stl10", root=tmp_path)


def test_a_name_close_to_a_known_one_is_suggested(tmp_path):
    with pytest.raises(MissingDataError, match="did you mean 'fashion-mnist'"):
        load("fashionmnist", root=tmp_path)
    with pytest.raises(MissingDataError, match="vicinal data list"):
        load("nothing of the kind", root=tmp_path)
    with pytest.raises(InputError, match="name: expected a path that a file system can know, got ''"):
        load("", root=tmp_path)


def test_a_folder_of_arrays_is_found_under_the_root_and_by_its_path(tmp_path):
    folder = layouts.arrays(tmp_path, "mine")
    for found in (load("mine", root=tmp_path), load(str(folder), root=tmp_path / "elsewhere")):
        assert found.name == "mine"
        assert found.train.labels.tolist() == [2, 1, 0, 2, 1, 0]


def test_a_folder_of_nothing_known_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match=r"empty: expected train_images\.npy, .* got neither"):
        load("empty", root=tmp_path)


def test_the_argument_comes_before_the_variable_and_the_variable_before_the_home(tmp_path, monkeypatch):
    monkeypatch.setenv("VICINAL_DATA", str(tmp_path / "variable"))
    assert data_root("argument") == Path("argument")
    assert data_root() == tmp_path / "variable"
    monkeypatch.delenv("VICINAL_DATA")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert data_root() == tmp_path / ".cache" / "vicinal" / "data"
    assert data_root("~/mine") == tmp_path / "mine"


def test_the_variable_leads_load_to_the_data(tmp_path, monkeypatch):
    layouts.cifar100(tmp_path)
    monkeypatch.setenv("VICINAL_DATA", str(tmp_path))
    assert len(load("cifar100").train) == 6


def test_the_list_tells_what_is_there_and_what_is_missing(tmp_path):
    layouts.cifar100(tmp_path)
    (layouts.stl10(tmp_path) / "train_X.bin").unlink()
    folder = layouts.arrays(tmp_path, "mine")
    (tmp_path / "something else").mkdir()
    listed = {holding.name: holding for holding in available(tmp_path)}
    assert set(listed) == {*CATALOG, "mine"}
    assert {name for name, holding in listed.items() if holding.there} == {"cifar100", "mine"}
    assert listed["cifar100"].size == 2 * 6 * 3074
    assert listed["stl10"].missing == ("train_X.bin",)
    assert listed["stl10"].size == 11 * 27648 + 22
    assert listed["mnist"].size == 0
    assert listed["mine"].place == folder
    assert listed["mine"].size == sum(path.stat().st_size for path in folder.iterdir())
    assert {name for name, holding in listed.items() if not holding.fetchable} == {"mine"}


def test_nothing_is_there_where_there_is_no_root(tmp_path):
    assert not any(holding.there for holding in available(tmp_path / "nowhere"))


def test_importing_it_brings_neither_torch_nor_any_extra():
    code = (
        "import sys, vicinal.data; "
        "print([m for m in ('torch', 'pooch', 'requests', 'PIL', 'sklearn', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
