"""The data of the quick edition: the digits once each, behind noise, the same every time."""

from __future__ import annotations

import numpy as np
from sklearn import datasets

from vicinal import data
from vicinal.paper.digits import NOVEL, write_digits


def test_every_image_is_there_once(tmp_path):
    write_digits(tmp_path)
    known, novel = data.load("digits", root=tmp_path), data.load(NOVEL, root=tmp_path)
    raw = datasets.load_digits()
    counts = np.bincount(raw.target)
    found = np.bincount(known.train.labels) + np.bincount(known.test.labels)
    assert found.tolist() == counts[:8].tolist()
    assert np.bincount(novel.test.labels).tolist() == counts[8:].tolist()
    assert np.bincount(known.train.labels).tolist() == [45] * 8


def test_the_noise_is_as_wide_as_it_says(tmp_path):
    write_digits(tmp_path)
    found = data.load(NOVEL, root=tmp_path).test.images[..., 0].astype(float)
    raw = datasets.load_digits()
    clean = raw.images[raw.target >= 8] * (255 / 16)
    middle = (clean > 100) & (clean < 155)  # far from the ends, where it is cut off
    assert (found - clean)[middle].std() == np.clip((found - clean)[middle].std(), 54, 66)


def test_what_is_there_stays(tmp_path):
    write_digits(tmp_path)
    path = tmp_path / "digits" / "test_images.npy"
    before = path.read_bytes()
    path.write_bytes(b"mine")
    write_digits(tmp_path)
    assert path.read_bytes() == b"mine"
    path.unlink()
    write_digits(tmp_path)
    assert path.read_bytes() == before
