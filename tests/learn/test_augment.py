"""Crops and flips against a loop over images, and over what they may and may not do."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vicinal.errors import InputError, ShapeError
from vicinal.learn.augment import crop_and_flip


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def numbered(n: int, channels: int, height: int, width: int) -> torch.Tensor:
    """Images whose every number is different and above 0."""
    return 1 + torch.arange(n * channels * height * width, dtype=torch.float32).view(n, channels, height, width)


def every_crop(image: torch.Tensor, padding: int, flip: bool) -> list[torch.Tensor]:
    _, height, width = image.shape
    padded = torch.zeros(image.shape[0], height + 2 * padding, width + 2 * padding)
    padded[:, padding : padding + height, padding : padding + width] = image
    crops = [
        padded[:, top : top + height, left : left + width]
        for top in range(2 * padding + 1)
        for left in range(2 * padding + 1)
    ]
    return crops + [crop.flip(2) for crop in crops] * flip


@given(st.integers(0, 1000), st.integers(0, 3), st.booleans(), st.sampled_from([(3, 4, 5), (1, 5, 3)]))
def test_every_image_becomes_one_of_its_own_crops(seed, padding, flip, shape):
    images = numbered(4, *shape)
    before = images.clone()
    found = crop_and_flip(images, seeded(seed), padding=padding, flip=flip)
    assert found.shape == images.shape
    assert found.is_contiguous()
    for image, crop in zip(images, found, strict=True):
        assert any(torch.equal(crop, candidate) for candidate in every_crop(image, padding, flip))
    assert torch.equal(images, before)


def test_all_crops_are_equally_likely():
    image = numbered(1, 1, 3, 3)
    found = crop_and_flip(image.expand(9000, 1, 3, 3), seeded(0), padding=1)
    candidates = torch.stack(every_crop(image[0], 1, True))
    times = (found[:, None] == candidates[None]).flatten(2).all(dim=2).sum(dim=0)
    assert int(times.sum()) == 9000
    assert int(times.min()) > 400  # 500 expected each, standard deviation 22
    assert int(times.max()) < 600


def test_the_same_seed_gives_the_same_crops_and_another_batch_others():
    images = numbered(16, 3, 8, 8)
    first, second = seeded(7), seeded(7)
    assert torch.equal(crop_and_flip(images, first), crop_and_flip(images, second))
    assert not torch.equal(crop_and_flip(images, first), crop_and_flip(images, seeded(7)))


def test_nothing_happens_where_nothing_is_asked_for():
    images = numbered(3, 3, 6, 6)
    assert torch.equal(crop_and_flip(images, seeded(0), padding=0, flip=False), images)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"padding": -1}, "padding: expected a whole number from 0 to 6, the size of the images, got -1"),
        ({"padding": 7}, "got 7"),
        ({"padding": 1.5}, "padding: expected a whole number"),
        ({"flip": 0.5}, "flip: expected True or False, got 0.5"),
    ],
)
def test_options_that_cannot_be_are_refused(options, says):
    with pytest.raises(InputError, match=says):
        crop_and_flip(numbered(2, 3, 6, 9), seeded(0), **options)


def test_images_without_a_batch_are_refused():
    with pytest.raises(ShapeError, match=r"expected shape \(n, c, h, w\), got \(3, 6, 6\)"):
        crop_and_flip(numbered(1, 3, 6, 6)[0], seeded(0))
