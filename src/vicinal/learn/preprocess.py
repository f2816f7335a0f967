"""From pixels to what a network takes: stages with explicit parameters, fitted on the training images only.

    images (n, h, w, c), uint8 ─▶ GlobalContrast ─▶ Whitening ─▶ (n, c, h, w), float32       the paper's
    images (n, h, w, c), uint8 ─▶ Standardize ─▶ (n, c, h, w), float32                       the simple modern one

They are stored with the network, so that a served image passes through the same arithmetic: float64 inside, a block of
images at a time, rounded to float32 once, at the end. An image gives the same values whatever it comes with: exactly
so after ``GlobalContrast`` and ``Standardize``, and within 1e-6 after ``Whitening``, whose float64 sums some BLAS
libraries order by the number of images (with OpenBLAS the results were equal, bit for bit).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from vicinal import checks, store
from vicinal.checks import Floats, Pixels, Vectors
from vicinal.errors import FileError, InputError, ShapeError
from vicinal.progress import track

__all__ = ["GlobalContrast", "Preprocessing", "Stage", "Standardize", "Whitening"]

PREPROCESSING_FORMAT = "vicinal.preprocessing"
PREPROCESSING_VERSION = 1
_BLOCK = 1024  # images held as float64 at a time; a multiple of 8, see Whitening.apply
_WIDEST = 12_288  # numbers an image may have to be whitened (64 x 64 x 3): a covariance of 1.2 GB, twice
_LARGE = 1e12  # more than any parameter can sensibly be


@dataclass(frozen=True, eq=False)
class GlobalContrast:
    """Global contrast normalisation: of every image by itself, over all its pixels and channels.

    ``scale * (x - mean(x)) / max(epsilon, sqrt(bias + var(x)))``

    Args:
        scale: the standard deviation of an image of plenty of contrast afterwards.
        bias: added to the variance, in squared grey levels, so that flat images are not blown up to noise.
        epsilon: the least number to divide by.

    Example:
        >>> two = np.array([0, 255], np.uint8).reshape(1, 1, 2, 1)
        >>> Preprocessing((GlobalContrast(bias=0.0),), (1, 2, 1)).apply(two).ravel()
        array([-1.,  1.], dtype=float32)
    """

    scale: float = 1.0
    bias: float = 10.0
    epsilon: float = 1e-8
    name: ClassVar[str] = "global-contrast"

    def __post_init__(self) -> None:
        checks.fraction(self.scale, "scale", high=_LARGE, open_low=True)
        checks.fraction(self.bias, "bias", high=_LARGE)
        checks.fraction(self.epsilon, "epsilon", high=_LARGE, open_low=True)

    @classmethod
    def fit(cls, blocks: Blocks, **parameters: float) -> GlobalContrast:
        """Nothing is learnt from the images; here so that every stage is made alike."""
        return cls(**parameters)

    def apply(self, block: Floats) -> Floats:
        """(n, c, h, w) to (n, c, h, w)."""
        rows = block.reshape(len(block), -1)
        centred = rows - rows.mean(axis=1, keepdims=True)
        spread = np.sqrt(self.bias + np.square(centred).mean(axis=1, keepdims=True))
        normalised: Floats = (centred / np.maximum(self.epsilon, spread) * self.scale).reshape(block.shape)
        return normalised

    def fits(self, shape: tuple[int, int, int]) -> bool:
        """Whether images (h, w, c) can go through."""
        return True


@dataclass(frozen=True, eq=False)
class Standardize:
    """Take off the mean of each channel over the images to train on, and divide by its standard deviation.

    Args:
        mean: (c,), float64.
        deviation: (c,), float64, above 0.

    Example:
        >>> images = np.array([[0, 10], [20, 30]], np.uint8).reshape(2, 1, 2, 1)
        >>> Preprocessing.fit(images, {"standardize": {}}).stages[0].mean
        array([15.])
    """

    mean: Floats
    deviation: Floats
    name: ClassVar[str] = "standardize"

    def __post_init__(self) -> None:
        _same_lengths(self.mean, self.deviation, "standardize", self.mean.shape)
        flat = np.flatnonzero(~(self.deviation > 0))
        if flat.size:
            raise InputError(
                f"standardize: expected channels that vary, but channel {flat[0]} is the same in every pixel"
            )

    @classmethod
    def fit(cls, blocks: Blocks) -> Standardize:
        """Mean and standard deviation over all images and pixels."""
        count = 0
        total: Any = 0.0
        squares: Any = 0.0
        for block in blocks:
            count += block[:, 0].size
            total = total + block.sum(axis=(0, 2, 3))
            squares = squares + np.square(block).sum(axis=(0, 2, 3))
        mean = total / count
        return cls(mean, np.sqrt(np.maximum(squares / count - mean**2, 0.0)))

    def apply(self, block: Floats) -> Floats:
        """(n, c, h, w) to (n, c, h, w)."""
        standard: Floats = (block - self.mean[:, None, None]) / self.deviation[:, None, None]
        return standard

    def fits(self, shape: tuple[int, int, int]) -> bool:
        """Whether images (h, w, c) can go through."""
        return len(self.mean) == shape[2]


@dataclass(frozen=True, eq=False)
class Whitening:
    """ZCA whitening: decorrelate all pixels while changing the image as little as possible.

    ``(x - mean) @ U diag((λ + epsilon) ** (-strength / 2)) Uᵀ``, where ``U diag(λ) Uᵀ`` is the covariance of the images
    to train on.

    Args:
        mean: (d,), float64, where d = c·h·w, in the order channel, row, column.
        matrix: (d, d), float32, symmetric.
        epsilon: added to every eigenvalue of the covariance: what is far below it counts as noise and is not amplified.
        strength: 1 whitens fully, 0 only takes off the mean.

    Example:
        >>> images = np.random.default_rng(0).integers(0, 256, (500, 2, 2, 1), np.uint8)
        >>> white = Preprocessing.fit(images, {"whitening": {"epsilon": 0.0}}).apply(images).reshape(500, 4)
        >>> bool(np.allclose(np.cov(white.T), np.eye(4), atol=1e-5))
        True
    """

    mean: Floats
    matrix: Vectors
    epsilon: float
    strength: float = 1.0
    name: ClassVar[str] = "whitening"

    def __post_init__(self) -> None:
        _same_lengths(self.mean, self.matrix, "whitening", self.mean.shape * 2)
        checks.fraction(self.epsilon, "epsilon", high=_LARGE)
        checks.fraction(self.strength, "strength")

    @classmethod
    def fit(cls, blocks: Blocks, *, epsilon: float, strength: float = 1.0) -> Whitening:
        """Sum up the covariance block by block, in float64; the eigenvectors are LAPACK's, by divide and conquer."""
        from scipy.linalg import eigh

        checks.fraction(epsilon, "epsilon", high=_LARGE)
        checks.fraction(strength, "strength")
        mean, covariance = _moments(blocks)
        values, vectors = eigh(covariance, driver="evd", overwrite_a=True, check_finite=False)
        flat = values < values[-1] * len(values) * np.finfo(np.float64).eps
        if epsilon == 0 and strength > 0 and flat.any():
            raise InputError(
                f"epsilon: expected a number above 0, got 0 where {flat.sum()} of {len(values)} directions have no "
                "variance at all; try 0.1 after global contrast normalisation"
            )
        powers = (np.maximum(values, 0.0) + epsilon) ** (-strength / 2) if strength else np.ones_like(values)
        matrix = (vectors * powers) @ vectors.T
        return cls(mean, matrix.astype(np.float32), epsilon, strength)

    def apply(self, block: Floats) -> Floats:
        """(n, c, h, w) to (n, c, h, w).

        The rows are filled up to a multiple of 8, because BLAS libraries multiply single rows by another routine than
        many, and the last few by another than the rest; see the head of this module.
        """
        n = len(block)
        centred = np.zeros((-(-n // 8) * 8, len(self.mean)))
        np.subtract(block.reshape(n, -1), self.mean, out=centred[:n])
        white: Floats = (centred @ self._matrix)[:n].reshape(block.shape)
        return white

    def fits(self, shape: tuple[int, int, int]) -> bool:
        """Whether images (h, w, c) can go through."""
        return len(self.mean) == int(np.prod(shape))

    @cached_property
    def _matrix(self) -> Floats:
        return np.asarray(self.matrix, np.float64)


Stage: TypeAlias = GlobalContrast | Standardize | Whitening
Blocks: TypeAlias = Iterator[Floats]
_STAGES: dict[str, type[Stage]] = {stage.name: stage for stage in (GlobalContrast, Standardize, Whitening)}
_ARRAYS = {"standardize": ("mean", "deviation"), "whitening": ("mean", "matrix")}


@dataclass(frozen=True, eq=False)
class Preprocessing:
    """What happens to an image before the network sees it: stages, one after the other.

    Args:
        stages: each kind at most once.
        shape: (h, w, c) of the images.

    Example:
        >>> images = np.random.default_rng(0).integers(0, 256, (50, 4, 4, 3), np.uint8)
        >>> chain = Preprocessing.fit(images, {"global-contrast": {"scale": 1.0}, "whitening": {"epsilon": 0.1}})
        >>> chain
        Preprocessing(4 x 4 x 3: global-contrast, whitening)
        >>> chain.apply(images[:2]).shape
        (2, 3, 4, 4)
    """

    stages: tuple[Stage, ...]
    shape: tuple[int, int, int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "stages", tuple(self.stages))
        object.__setattr__(self, "shape", tuple(int(n) for n in self.shape))
        names = [stage.name for stage in self.stages]
        if len(set(names)) != len(names):
            raise InputError(f"stages: expected each kind at most once, got {', '.join(names)}")
        for stage in self.stages:
            if not stage.fits(self.shape):
                raise ShapeError(f"stages: expected {stage.name} for images of {self.shape}, got one for another shape")

    def __repr__(self) -> str:
        return f"Preprocessing({' x '.join(map(str, self.shape))}: {', '.join(stage.name for stage in self.stages)})"

    @classmethod
    def fit(cls, images: Any, steps: Mapping[str, Mapping[str, float]]) -> Preprocessing:
        """Make the stages one after the other, each from what the ones before make of the images.

        Args:
            images: (n, h, w, c), uint8: the images to train on, and no others.
            steps: the name of each stage, in order, and its parameters: ``"global-contrast"`` (scale, bias, epsilon),
                ``"whitening"`` (epsilon, strength), ``"standardize"`` (none).
        """
        pixels = checks.images(images, "images")
        if len(pixels) < 2:
            raise ShapeError("images: expected at least two to fit on, got one")
        stages: tuple[Stage, ...] = ()
        for name, parameters in steps.items():
            kind = _STAGES[checks.one_of(name, "steps", tuple(_STAGES))]
            _only_known(kind, name, parameters)
            blocks = (_passed(block, stages) for block in track(_blocks(pixels), f"fitting {name}", _count(pixels)))
            stages = (*stages, kind.fit(blocks, **parameters))
        return cls(stages, (pixels.shape[1], pixels.shape[2], pixels.shape[3]))

    def apply(self, images: Any) -> Vectors:
        """Images (n, h, w, c), uint8, to what the network takes: (n, c, h, w), float32."""
        pixels = checks.images(images, "images", shape=self.shape)
        height, width, channels = self.shape
        ready = np.empty((len(pixels), channels, height, width), np.float32)
        done = 0
        for block in track(_blocks(pixels), "preprocessing", _count(pixels)):
            ready[done : done + len(block)] = _passed(block, self.stages)
            done += len(block)
        return ready

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays of all stages, as ``"<stage>.<array>"``: to be stored together with :meth:`facts`."""
        return {
            f"{stage.name}.{name}": getattr(stage, name)
            for stage in self.stages
            for name in _ARRAYS.get(stage.name, ())
        }

    def facts(self) -> dict[str, Any]:
        """Everything but the arrays, as JSON holds it."""
        return {"shape": list(self.shape), "stages": [_parameters(stage) for stage in self.stages]}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]], facts: Mapping[str, Any]) -> Preprocessing:
        """What :meth:`arrays` and :meth:`facts` gave, whole again, to the bit."""
        try:
            stages = [_stage(dict(parameters), arrays) for parameters in facts["stages"]]
            return cls(tuple(stages), tuple(facts["shape"]))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise FileError(f"preprocessing: expected stages and a shape that belong together, got {error}") from error

    def save(self, path: str | Path) -> None:
        """Write one ``.safetensors`` file: the arrays, and the parameters as JSON in its header."""
        form, version = PREPROCESSING_FORMAT, PREPROCESSING_VERSION
        store.write_arrays(path, self.arrays(), form=form, version=version, facts=self.facts())

    @classmethod
    def load(cls, path: str | Path) -> Preprocessing:
        """Read what ``save`` wrote; the arrays are memory-mapped."""
        may = [f"{stage}.{name}" for stage, names in _ARRAYS.items() for name in names]
        arrays, facts = store.read_arrays(path, form=PREPROCESSING_FORMAT, version=PREPROCESSING_VERSION, may=may)
        return cls.from_arrays(arrays, facts)


def _blocks(pixels: Pixels) -> Iterator[Floats]:
    """Blocks of images, channels first, as float64 in grey levels."""
    for start in range(0, len(pixels), _BLOCK):
        yield np.ascontiguousarray(pixels[start : start + _BLOCK].transpose(0, 3, 1, 2), dtype=np.float64)


def _count(pixels: Pixels) -> int:
    return -(-len(pixels) // _BLOCK)


def _passed(block: Floats, stages: Sequence[Stage]) -> Floats:
    for stage in stages:
        block = stage.apply(block)
    return block


def _moments(blocks: Blocks) -> tuple[Floats, Floats]:
    """Mean (d,) and covariance (d, d), divided by n - 1, of all images; summed up without ever holding them all."""
    count = 0
    total: Any = 0.0
    products: Any = 0.0
    for block in blocks:
        rows = block.reshape(len(block), -1)
        if rows.shape[1] > _WIDEST:
            raise ShapeError(
                f"images: expected at most {_WIDEST:,} numbers each, to whiten them, got {rows.shape[1]:,}; "
                "standardize them instead, or make them smaller first"
            )
        count += len(rows)
        total = total + rows.sum(axis=0)
        products = products + rows.T @ rows
    mean: Floats = total / count
    covariance: Floats = (products - count * np.outer(mean, mean)) / (count - 1)
    return mean, covariance


def _parameters(stage: Stage) -> dict[str, Any]:
    named = (field.name for field in fields(stage) if field.name not in _ARRAYS.get(stage.name, ()))
    return {"name": stage.name, **{name: float(getattr(stage, name)) for name in named}}


def _stage(parameters: dict[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> Stage:
    name = parameters.pop("name")
    kind = _STAGES[checks.one_of(name, "stage", tuple(_STAGES))]
    parameters |= {key: arrays[f"{name}.{key}"] for key in _ARRAYS.get(name, ())}
    return kind(**parameters)


def _only_known(kind: type[Stage], name: str, parameters: Mapping[str, float]) -> None:
    if not isinstance(parameters, Mapping):
        raise InputError(f"steps: expected {name} with its parameters by name, got {parameters!r}")
    takes = [field.name for field in fields(kind) if field.name not in _ARRAYS.get(name, ())]
    for parameter in parameters:
        if parameter not in takes:
            raise InputError(f"steps: expected {name} with {', '.join(takes) or 'no parameters'}, got {parameter!r}")
    if name == "whitening" and "epsilon" not in parameters:
        raise InputError(
            "steps: expected whitening with epsilon; 0.1 is a good one after global contrast normalisation"
        )


def _same_lengths(mean: Floats, other: npt.NDArray[Any], name: str, wanted: tuple[int, ...]) -> None:
    if mean.ndim != 1 or len(mean) == 0 or other.shape != wanted:
        raise ShapeError(f"{name}: expected a mean (d,) and what goes with it, got {mean.shape} and {other.shape}")
    if not (np.isfinite(mean).all() and np.isfinite(other).all()):
        raise InputError(f"{name}: expected finite numbers, got NaN or infinity; was it fitted on sound images?")
