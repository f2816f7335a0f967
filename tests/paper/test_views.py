"""Views: what networks say of validation, test and novel points, and by MC dropout."""

from __future__ import annotations

import numpy as np
import pytest

from vicinal import data
from vicinal.errors import FileError
from vicinal.paper.networks import Entry, Networks
from vicinal.paper.views import Views


@pytest.fixture
def reg(edition):
    return Entry(edition.sources[0], "reg", 0)


def test_validation_points_are_those_that_training_cut_off(views, networks, edition, reg):
    found = networks.data("digits")
    _, rows = data.split(found.train.labels, edition.validation, 0)
    np.testing.assert_array_equal(views.seen(reg, "validation").labels, found.train.labels[rows])
    images, labels = views._images("digits", "validation")
    np.testing.assert_array_equal(images, found.train.images[rows])
    np.testing.assert_array_equal(labels, found.train.labels[rows])


def test_mc_dropout_is_the_mean_over_its_passes(views, networks, edition, reg):
    import torch

    from vicinal.learn.dropout import mc_dropout

    seen = views.seen(reg, "dropout-test")
    network = networks.network(reg)
    inputs = torch.from_numpy(network.preprocessing.apply(networks.data("digits").test.images))
    expected = mc_dropout(network.module, inputs, passes=edition.passes, seed=0)
    np.testing.assert_allclose(np.exp(seen.logits), expected.probabilities.numpy(), atol=1e-6)
    np.testing.assert_allclose(seen.vectors, expected.embeddings.numpy(), atol=1e-6)


def test_mc_dropout_of_other_points_is_refused(copied, edition, reg, monkeypatch):
    views = Views(Networks(copied, edition))
    shown = views._images
    monkeypatch.setattr(views, "_images", lambda name, part: (shown(name, part)[0], shown(name, part)[1][::-1]))
    import shutil

    shutil.rmtree(copied / "quick" / "cache")
    with pytest.raises(FileError, match="expected the test points of digits"):
        views.seen(reg, "dropout-test")


def test_novel_points_have_no_labels(views, networks, reg):
    seen = views.seen(reg, "novel-digits-8-9")
    assert len(seen) == len(networks.data("digits-8-9").test.images)
    assert seen.labels is None


def test_scores_of_novel_points_depend_on_their_images(views, networks, reg):
    known = views._key(reg, "test")
    novel = views._key(reg, "novel-digits-8-9")
    assert set(novel) - set(known) == {"data"}
    assert {"network", "code", "ks"} <= set(known)


def test_a_view_is_judged_once(views, reg):
    assert views.judged(reg) is views.judged(reg)
    assert views.judged(reg).rank("nothing") is None
