from __future__ import annotations

import numpy as np
import pytest

from vicinal.data import DataSet, Images
from vicinal.errors import InputError, ShapeError


def some(n: int = 3, classes: int = 3, size: int = 4) -> Images:
    return Images(np.arange(n * size * size * 3).astype(np.uint8).reshape(n, size, size, 3), np.arange(n) % classes)


def test_grey_images_gain_their_channel():
    assert Images(np.zeros((2, 5, 4), np.uint8), [0, 1]).shape == (5, 4, 1)


def test_taking_rows_keeps_their_order_and_pairs_them_with_their_labels():
    taken = some().take([2, 0])
    np.testing.assert_array_equal(taken.images, some().images[[2, 0]])
    assert taken.labels.tolist() == [2, 0]


@pytest.mark.parametrize(
    ("images", "labels", "says"),
    [
        (np.zeros((2, 4, 4, 3)), [0, 1], "expected pixels as uint8, from 0 to 255, got float64"),
        (np.zeros((2, 3, 4, 4), np.uint8), [0, 1], "channels come last"),
        (np.zeros((2, 4, 4, 4), np.uint8), [0, 1], r"expected shape \(n, h, w, 1 or 3\), got \(2, 4, 4, 4\)"),
        (np.zeros((4, 4), np.uint8), [0, 1], r"for one image, pass images\[None\]"),
        (np.zeros((0, 4, 4, 3), np.uint8), [], "expected at least one image"),
        (np.zeros((2, 4, 4, 3), np.uint8), [0], "labels: expected 2, one for each image, got 1"),
        (np.zeros((2, 4, 4, 3), np.uint8), [0, -1], "labels: expected classes counted from 0, got -1 at row 1"),
    ],
)
def test_images_that_cannot_be_are_refused(images, labels, says):
    with pytest.raises(InputError, match=says):
        Images(images, labels)


@pytest.mark.parametrize("rows", [[], [3], [-1]])
def test_rows_that_are_not_there_are_refused(rows):
    with pytest.raises(InputError, match="rows: expected"):
        some().take(rows)


def test_a_label_without_a_class_name_is_refused():
    with pytest.raises(InputError, match=r"two: expected test labels from 0 to 1, .* got 2 at row 2"):
        DataSet("two", some(classes=2), some(), ("a", "b"))


def test_images_of_two_shapes_are_refused():
    with pytest.raises(ShapeError, match=r"\(4, 4, 3\) and \(5, 5, 3\)"):
        DataSet("two", some(), some(size=5), ("a", "b", "c"))
