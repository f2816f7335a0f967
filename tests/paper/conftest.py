"""A small edition for the tests of ``vicinal.paper``: two networks of each kind on the digits, in two epochs each."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from vicinal.paper import reproduction
from vicinal.paper.editions import EDITIONS
from vicinal.paper.networks import Networks
from vicinal.paper.views import Views

QUICK = EDITIONS["quick"]
SMALL = replace(
    QUICK,
    sources=(replace(QUICK.sources[0], networks=2, figure=3),),
    changes={"epochs": 6},
    variants={"alpha-0.1": {"alpha": 0.1}},
    passes=3,
    ks=(5, 20, 50),
)


@pytest.fixture(scope="session")
def edition():
    return SMALL


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """The folder of all networks, with those of the small edition in it; not to be changed."""
    from vicinal.learn.train import train_dataset

    root = tmp_path_factory.mktemp("runs")
    networks = Networks(root, SMALL)
    for entry in networks.wanted(figure=True, variants=True):
        place = networks.folder / entry.name
        given = {"out": place, "seed": entry.seed, "validation": SMALL.validation, "root": networks.data_root}
        train_dataset(entry.source.data, networks.recipe(entry), **given)
    return root


@pytest.fixture(scope="session")
def networks(trained):
    return Networks(trained, SMALL)


@pytest.fixture(scope="session")
def views(networks):
    return Views(networks)


@pytest.fixture
def copied(trained, tmp_path):
    """A copy of the trained networks, to be damaged."""
    return shutil.copytree(trained, tmp_path / "runs")


@pytest.fixture
def small(monkeypatch):
    """The quick edition of the command is the small one."""
    monkeypatch.setattr(reproduction, "EDITIONS", {**EDITIONS, "quick": SMALL})
