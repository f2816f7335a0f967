"""The data of the quick edition: scikit-learn's digits behind noise, as folders that ``vicinal.data`` reads.

Without the noise the networks make so few errors that no score could be told from another.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from vicinal import store
from vicinal.checks import Integers, Pixels

__all__ = ["write_digits"]

KNOWN = 8  # digits from 0
NOVEL = "digits-8-9"
_EACH = 45  # images of each known digit to train and validate on
_NOISE = 60.0  # standard deviation, of 255


def write_digits(root: Path) -> None:
    """Write ``digits`` (0 to 7) and ``digits-8-9`` under a data root, unless they are there.

    Example:
        >>> import tempfile
        >>> from vicinal import data
        >>> root = Path(tempfile.mkdtemp())
        >>> write_digits(root)
        >>> data.load("digits", root=root)
        DataSet(digits: 360 to train on, 1083 to test on, 8 x 8 x 1, 8 classes)
    """
    images, labels, random = _noisy()
    order = random.permutation(len(labels))
    train = np.sort(np.concatenate([order[labels[order] == digit][:_EACH] for digit in range(KNOWN)]))
    test = np.setdiff1d(np.flatnonzero(labels < KNOWN), train)
    novel = np.flatnonzero(labels >= KNOWN)
    _write(root / "digits", images, labels, train, test)
    _write(root / NOVEL, images, labels - KNOWN, novel, novel)


def _noisy() -> tuple[Pixels, Integers, np.random.Generator]:
    from sklearn.datasets import load_digits

    raw, random = load_digits(), np.random.default_rng(0)
    clean = raw.images[..., None] * (255 / 16)
    noisy = np.clip(np.rint(clean + random.normal(0, _NOISE, clean.shape)), 0, 255)
    return noisy.astype(np.uint8), raw.target.astype(np.int64), random


def _write(folder: Path, images: Pixels, labels: Integers, train: Integers, test: Integers) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for part, rows in (("train", train), ("test", test)):
        for kind, values in (("images", images), ("labels", labels)):
            path = folder / f"{part}_{kind}.npy"
            if not path.exists():
                packed = io.BytesIO()
                np.save(packed, values[rows])
                with store.replacing(path) as file:
                    file.write(packed.getvalue())
