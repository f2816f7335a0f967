"""Global contrast normalisation and ZCA whitening of 50,000 images of 3,072 numbers: time, memory and exactness.

    python benchmarks/whitening.py [--data DIR] [--images 50000] [--out FILE]

With ``--data``, CIFAR-100 from that data root; otherwise random images with a spectrum like CIFAR's. The floor beside
each time is the bare matrix arithmetic of the same size in the same run, ``x.T @ x``, ``x @ w`` and ``eigh`` in float64.
Everything must stay under 120 s, 6 GiB at its peak, and within 1e-4 of float64 arithmetic throughout.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from scipy.linalg import eigh
from threadpoolctl import threadpool_info

from vicinal.learn.preprocess import GlobalContrast, Preprocessing

STEPS = {"global-contrast": {"scale": 1.0, "bias": 10.0}, "whitening": {"epsilon": 0.1, "strength": 1.0}}
CHECKED = 512  # images looked at against float64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="the data root with CIFAR-100; left out, random images")
    parser.add_argument("--images", type=int, default=50_000)
    parser.add_argument("--out", help="write the figures there, as JSON")
    arguments = parser.parse_args()
    images = _images(arguments.data, arguments.images)
    before = _peak()
    fitted, fit_s = _timed(lambda: Preprocessing.fit(images, STEPS))
    ready, apply_s = _timed(lambda: fitted.apply(images))
    peak = _peak()
    figures = {
        "images": len(images),
        "numbers": int(np.prod(images.shape[1:])),
        "data": "CIFAR-100" if arguments.data else "random",
        "fit_s": fit_s,
        "apply_s": apply_s,
        "total_s": round(fit_s + apply_s, 2),
        "one_image_ms": _one_image(fitted, images),
        "peak_gib": round(peak, 2),
        "peak_gib_before": round(before, 2),
        "off_float64": _off(images, ready),
        "alone_equals_batch": bool(all((fitted.apply(images[i : i + 1]) == ready[i]).all() for i in range(32))),
        "floor": _floor(len(images), ready.reshape(len(ready), -1)),
        "machine": _machine(),
    }
    figures["met"] = figures["total_s"] < 120 and peak < 6 and figures["off_float64"] < 1e-4
    sys.stdout.write(json.dumps(figures, indent=2) + "\n")
    if arguments.out:
        Path(arguments.out).write_text(json.dumps(figures, indent=2) + "\n")
    sys.exit(0 if figures["met"] else 1)


def _images(root: str | None, count: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    if root:
        from vicinal.data import load

        return load("cifar100", root=root).train.images[:count]
    draw = np.random.default_rng(0)
    images = np.empty((count, 32, 32, 3), np.uint8)
    for start in range(
        0, count, 1000
    ):  # smooth images with a little noise: neighbouring pixels are alike, as in photographs
        coarse = draw.normal(128, 50, (min(1000, count - start), 4, 4, 3)).repeat(8, axis=1).repeat(8, axis=2)
        images[start : start + 1000] = np.clip(coarse + draw.normal(0, 12, coarse.shape), 0, 255)
    return images


def _off(images: np.ndarray[Any, Any], ready: np.ndarray[Any, Any]) -> float:
    """The largest difference from the same arithmetic in float64 throughout, written out once more, of some images."""
    planes = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
    total, products = 0.0, 0.0
    for start in range(0, len(planes), 2000):
        rows = _contrast(planes[start : start + 2000])
        total, products = total + rows.sum(axis=0), products + rows.T @ rows
    mean = total / len(planes)
    covariance = (products - len(planes) * np.outer(mean, mean)) / (len(planes) - 1)
    values, vectors = eigh(covariance, driver="evr", check_finite=False)
    coordinates = (_contrast(planes[:CHECKED]) - mean) @ vectors
    wanted = (coordinates / np.sqrt(np.maximum(values, 0) + STEPS["whitening"]["epsilon"])) @ vectors.T
    return float(np.abs(ready[:CHECKED].reshape(CHECKED, -1) - wanted).max())


def _contrast(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    stage = GlobalContrast(**STEPS["global-contrast"])
    centred = rows - rows.mean(axis=1, keepdims=True, dtype=np.float64)
    return stage.scale * centred / np.sqrt(stage.bias + (centred**2).mean(axis=1, keepdims=True))


def _floor(count: int, rows: np.ndarray[Any, Any]) -> dict[str, float]:
    block = rows[:1024].astype(np.float64)
    many = count / len(block)
    covariance = block.T @ block
    _, product_s = _timed(lambda: [block.T @ block for _ in range(4)])
    _, apply_s = _timed(lambda: [block @ covariance for _ in range(4)])
    _, eigh_s = _timed(lambda: eigh(covariance + np.eye(len(covariance)), driver="evd", check_finite=False))
    fit_s = product_s / 4 * many + eigh_s
    return {"fit_s": round(fit_s, 2), "eigh_s": eigh_s, "apply_s": round(apply_s / 4 * many, 2)}


def _one_image(fitted: Preprocessing, images: np.ndarray[Any, Any]) -> float:
    seconds = sorted(_timed(lambda i=i: fitted.apply(images[i : i + 1]))[1] for i in range(15))  # type: ignore[misc]
    return round(1000 * seconds[7], 1)


def _timed(call: Callable[[], Any]) -> tuple[Any, float]:
    begun = time.perf_counter()
    result = call()
    return result, round(time.perf_counter() - begun, 4)


def _peak() -> float:
    """The most memory this process has held, in GiB."""
    unit = 2**30 if sys.platform == "darwin" else 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def _machine() -> dict[str, Any]:
    blas = [{key: pool[key] for key in ("internal_api", "version", "num_threads")} for pool in threadpool_info()]
    versions = {"python": platform.python_version(), "numpy": np.__version__, "scipy": scipy.__version__}
    return {"platform": platform.platform(), "blas": blas, **versions}


if __name__ == "__main__":
    main()
