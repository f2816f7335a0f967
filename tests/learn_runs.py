"""Tiny training runs in processes of their own, to be killed, starved of disk, and resumed."""

from __future__ import annotations

import multiprocessing
import resource
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import numpy.typing as npt

from vicinal.learn.loop import Pace
from vicinal.learn.recipe import OneCycle, Recipe

N, CLASSES = 120, 4
PACE = Pace(log=2, checkpoint=4, validation=40)
_PLAIN = Recipe(
    name="tiny",
    network="digits",
    schedule=OneCycle(0.01),
    steps=240,
    batch=10,
    width=0.125,
    weight_decay=1e-3,
    preprocessing={"global-contrast": {}},
)
CASES = {
    "distance": _PLAIN.change(method="distance", crop=1, flip=True, margin=3.0),
    "adversarial": _PLAIN.change(method="adversarial", optimizer="adam", epsilon_ramp=0.5),
    "bfloat16": _PLAIN.change(precision="bfloat16", flip=True),
    "norms": _PLAIN.change(network="resnet", optimizer="adam", crop=2),
}


def pixels(n: int = N, seed: int = 0) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Noise with a bright stripe where the class says."""
    random = np.random.default_rng(seed)
    labels = random.permutation(np.arange(n) % CLASSES)
    images = random.integers(0, 120, (n, 8, 8, 1), np.uint8)
    images[np.arange(n), labels * 2] += 100
    return images, labels


def run(case: str, out: Path, most_bytes: int | None = None) -> None:
    """Train, or go on training, to the end; with no room for files larger than this."""
    import torch

    from vicinal.errors import WriteError
    from vicinal.learn.train import train

    torch.set_num_threads(1)
    if most_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    try:
        train(*pixels(), CASES[case], out=out, validation=pixels(20, 1), seed=3, resume=True, pace=PACE)
    except WriteError as error:
        (out / "error.txt").write_text(str(error))


def started(case: str, out: Path, most_bytes: int | None = None) -> BaseProcess:
    """The run in a process of its own, forked from one that has torch ready and no threads."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["vicinal.learn.train"])
    process = context.Process(target=run, args=(case, out, most_bytes))
    process.start()
    return process


def lines(out: Path) -> int:
    """How many lines the log has."""
    log = out / "log.jsonl"
    return log.read_bytes().count(b"\n") if log.exists() else 0
