"""Random crops and flips of the images to train on, drawn anew for every batch."""

from __future__ import annotations

import torch

from vicinal import checks
from vicinal.errors import InputError, ShapeError

__all__ = ["crop_and_flip"]


def crop_and_flip(
    images: torch.Tensor, generator: torch.Generator, *, padding: int = 4, flip: bool = True
) -> torch.Tensor:
    """Shift every image at random, by up to ``padding`` pixels each way, and mirror half of them left to right.

    It is the usual random crop: ``padding`` zeros are put around the image, and a window of its own size is cut out.
    After preprocessing zero is the mean colour. All numbers are drawn on the generator's device, so that a seed gives
    the same crops wherever the images are.

    Args:
        images: (n, c, h, w), preprocessed; they are not changed.
        generator: where the numbers come from.
        padding: the largest shift; 0 for no crops.
        flip: whether to mirror half of the images.

    Returns:
        (n, c, h, w), on the same device.

    Example:
        >>> seeded = torch.Generator().manual_seed(0)
        >>> crop_and_flip(torch.ones(2, 3, 8, 8), seeded, padding=0).sum().item()
        384.0
    """
    if images.ndim != 4:
        raise ShapeError(f"images: expected shape (n, c, h, w), got {tuple(images.shape)}")
    most = min(images.shape[2:])
    checks.whole(padding, "padding", low=0, high=most, why=", the size of the images")
    if not isinstance(flip, bool):
        raise InputError(f"flip: expected True or False, got {flip!r}")
    n, channels, height, width = images.shape
    rows = _shifts(n, padding, generator, images.device) + torch.arange(height, device=images.device)
    columns = _shifts(n, padding, generator, images.device) + torch.arange(width, device=images.device)
    if flip:
        mirrored = torch.rand((n, 1), generator=generator, device=generator.device).to(images.device) < 0.5
        columns = torch.where(mirrored, columns.flip(1), columns)
    padded = torch.nn.functional.pad(images, (padding, padding, padding, padding))
    places = rows[:, :, None] * padded.shape[3] + columns[:, None, :]
    everywhere = places.view(n, 1, height * width).expand(n, channels, height * width)
    return padded.flatten(2).gather(2, everywhere).view(images.shape)


def _shifts(count: int, padding: int, generator: torch.Generator, device: torch.device) -> torch.Tensor:
    drawn = torch.randint(2 * padding + 1, (count, 1), generator=generator, device=generator.device)
    return drawn.to(device)
