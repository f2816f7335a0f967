"""Training, embedding and MC dropout beside their floors, in one run.

    python benchmarks/train.py             # measure, and write results/train.json
    python benchmarks/train.py --quick     # a first impression; nothing is written
    python benchmarks/train.py --only step embedding

The network is the paper's for CIFAR-100 at its full width, the batch 100. The floor of a step is its convolutions
alone, forward and backward, as bare ``torch.nn.functional.conv2d`` calls on inputs that are there already; the gradient
of the images is not asked for, as training does not need it. Every ratio is the median over rounds of the contender's
time over the floor's time in the same round, so that a busy moment meets both.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from environment import facts
from torch import nn
from torch.nn.functional import conv2d

from vicinal import store
from vicinal.learn import recipes
from vicinal.learn.dropout import mc_dropout
from vicinal.learn.embed import from_model
from vicinal.learn.many import Job, train_many
from vicinal.learn.network import Network, module_for
from vicinal.learn.preprocess import Preprocessing
from vicinal.learn.recipe import OneCycle, Recipe
from vicinal.learn.steps import STEPS, Forward

RESULTS = Path(__file__).parent / "results" / "train.json"
CLASSES, BATCH, SHAPE = 100, 100, (32, 32, 3)
PAPER = recipes.named("paper", "cifar100")
AIMS = {  # what the ratio of each figure should be: at most, or at least
    "step, one thread: reg over its convolutions": ("at most", 1.2),
    "step, two threads: reg over its convolutions": ("at most", 1.2),
    "step, one thread: distance over reg": ("at most", 1.05),
    "step, two threads: distance over reg": ("at most", 1.05),
    "step, one thread: adversarial over reg": ("at most", 2.2),
    "step, two threads: adversarial over reg": ("at most", 2.2),
    "embedding 10,000 images over the bare forward passes": ("at most", 1.1),
    "MC dropout, one thread: 100 passes over one plain pass": ("at most", 35.0),
    "MC dropout, two threads: 100 passes over one plain pass": ("at most", 35.0),
    "two networks one after the other over side by side": ("at least", 1.8),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rounds; nothing is written")
    parser.add_argument("--only", nargs="+", choices=tuple(PARTS), default=tuple(PARTS))
    asked = parser.parse_args()
    begun, found = time.perf_counter(), {}
    for name in asked.only:
        for figure, said in PARTS[name](asked.quick).items():
            found[figure] = said | _judged(figure, said["ratio"])
            print(f"{figure}: {json.dumps(found[figure])}", flush=True)
    seconds = round(time.perf_counter() - begun)
    print(f"{seconds} s")
    if not asked.quick and asked.only == tuple(PARTS):
        store.write_json(RESULTS, {"environment": facts(), "seconds": seconds, "figures": found})


def tables(written: dict[str, Any]) -> dict[str, str]:
    """The figures as docs/training.md shows them."""
    rows = ["| what | times | aim |", "| --- | --- | --- |"]
    for figure, said in written["figures"].items():
        rows.append(f"| {figure} | {said['ratio']:.2f} | {said.get('aim', '')} |")
    return {"figures": "\n".join(rows)}


def take_turns(
    contenders: dict[str, Callable[[], Any]], rounds: int, *, warm: int = 1
) -> dict[str, np.ndarray[Any, Any]]:
    """Seconds of each contender in each round, after rounds that do not count."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(warm + rounds):
        for name, run in contenders.items():
            begun = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - begun)
    return {name: np.array(found[warm:]) for name, found in times.items()}


def over(times: dict[str, np.ndarray[Any, Any]], contender: str, floor: str) -> dict[str, Any]:
    """The median ratio of two contenders, its quartiles, and how long each takes in the median."""
    ratios = times[contender] / times[floor]
    seconds = {name: round(float(np.median(times[name])), 4) for name in (contender, floor)}
    quartiles = [round(float(one), 3) for one in np.quantile(ratios, (0.25, 0.75))]
    return {
        "ratio": round(float(np.median(ratios)), 3),
        "quartiles": quartiles,
        "rounds": len(ratios),
        "seconds": seconds,
    }


def steps(quick: bool) -> dict[str, Any]:
    """A step of each method, up to the optimizer's included, beside the convolutions, on one thread and on two."""
    found: dict[str, Any] = {}
    before = torch.get_num_threads()
    for threads, word in ((1, "one thread"), (2, "two threads")):
        torch.set_num_threads(threads)
        contenders = {"its convolutions": _convolutions()} | {method: _step(method) for method in STEPS}
        times = take_turns(contenders, 3 if quick else 15)
        found[f"step, {word}: reg over its convolutions"] = over(times, "reg", "its convolutions")
        for method in ("distance", "adversarial"):
            found[f"step, {word}: {method} over reg"] = over(times, method, "reg")
    torch.set_num_threads(before)
    return found


def _step(method: str) -> Callable[[], Any]:
    recipe = PAPER.change(method=method)
    module = module_for(recipe, CLASSES, SHAPE).train()
    network = Forward(module, recipe.precision)
    optimizer = torch.optim.SGD(module.parameters(), lr=1e-3, momentum=0.9, weight_decay=1e-4)
    images, labels = _images(BATCH), torch.arange(BATCH) % (CLASSES // 2)
    pairs = torch.randperm(BATCH, generator=torch.Generator().manual_seed(0)).view(-1, 2)

    def run() -> None:
        optimizer.zero_grad(set_to_none=True)
        STEPS[method](network, images, labels, pairs, recipe, 0.5)
        optimizer.step()

    return run


def _convolutions() -> Callable[[], Any]:
    """The convolutions of the network on the inputs they have there, with the channels last: the faster layout."""
    seen: list[tuple[Any, nn.Conv2d]] = []
    module = module_for(PAPER, CLASSES, SHAPE)
    pieces: dict[nn.Conv2d, list[torch.Tensor]] = {}
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            layer.register_forward_pre_hook(lambda layer, inputs: pieces.setdefault(layer, []).append(inputs[0]))
    module.eval()
    with torch.no_grad():
        module(_images(BATCH))
    for layer, parts in pieces.items():
        seen.append((torch.cat(parts).contiguous(memory_format=torch.channels_last), layer))
    calls = []
    for number, (images, layer) in enumerate(seen):
        images.requires_grad_(number > 0)
        with torch.no_grad():
            shape = conv2d(images, layer.weight, layer.bias, padding=layer.padding)
        calls.append((images, layer, torch.randn_like(shape)))

    def run() -> None:
        for images, layer, gradient in calls:
            images.grad = layer.weight.grad = layer.bias.grad = None  # type: ignore[union-attr]
            conv2d(images, layer.weight, layer.bias, padding=layer.padding).backward(gradient)

    return run


def embedding(quick: bool) -> dict[str, Any]:
    """10,000 images through ``from_model``, and, pixels and all, through ``Network.embed``."""
    count = 1000 if quick else 10_000
    pixels = np.random.default_rng(0).integers(0, 256, (count, *SHAPE), np.uint8)
    module = module_for(PAPER, CLASSES, SHAPE).eval()
    chain = Preprocessing.fit(pixels, {"standardize": {}})
    ready = torch.from_numpy(chain.apply(pixels))
    batches = torch.split(ready, 250)
    network = Network(module, chain, PAPER, tuple(map(str, range(CLASSES))))

    def bare() -> None:
        with torch.inference_mode():
            for some in batches:
                module(some)

    contenders = {"bare": bare, "from_model": lambda: from_model(module, batches, logits="logits")}
    contenders["Network.embed"] = lambda: network.embed(pixels)
    times = take_turns(contenders, 2 if quick else 3)
    return {
        "embedding 10,000 images over the bare forward passes": over(times, "from_model", "bare"),
        "embedding 10,000 images from pixels, standardized, over the bare forward passes": over(
            times, "Network.embed", "bare"
        ),
    }


def dropout(quick: bool) -> dict[str, Any]:
    """MC dropout beside one plain pass over the same images with the dropout on."""
    module = module_for(PAPER, CLASSES, SHAPE)
    images = _images(BATCH)

    def plain() -> None:
        module.train()
        with torch.no_grad():
            module(images)

    found: dict[str, Any] = {}
    before = torch.get_num_threads()
    contenders = {"one pass": plain, "100 passes": lambda: mc_dropout(module, images, passes=100)}
    for threads, word in ((1, "one thread"), (2, "two threads")):
        torch.set_num_threads(threads)
        times = take_turns(contenders, 2 if quick else 5)
        found[f"MC dropout, {word}: 100 passes over one plain pass"] = over(times, "100 passes", "one pass")
    torch.set_num_threads(before)
    return found


def many(quick: bool) -> dict[str, Any]:
    """Two networks through ``train_many``, start of the processes and all: side by side, and one after the other."""
    recipe = Recipe(
        name="many",
        network="cifar100",
        schedule=OneCycle(0.01),
        steps=100 if quick else 250,
        width=0.25,
        preprocessing={"standardize": {}},
    )
    with tempfile.TemporaryDirectory() as folder:
        _write_data(Path(folder) / "noise")
        count = iter(range(1000))

        def trained(processes: int) -> Callable[[], Any]:
            def run() -> None:
                jobs = [
                    Job(str(Path(folder) / "noise"), out=f"{folder}/{next(count)}", recipe=recipe, seed=seed)
                    for seed in (0, 1)
                ]
                for outcome in train_many(jobs, processes=processes):
                    if outcome.error is not None:
                        raise RuntimeError(outcome.error)

            return run

        contenders = {"one after the other": trained(1), "side by side": trained(2)}
        times = take_turns(contenders, 1 if quick else 3, warm=0)
    return {"two networks one after the other over side by side": over(times, "one after the other", "side by side")}


def _write_data(folder: Path) -> None:
    folder.mkdir()
    random = np.random.default_rng(0)
    for part, count in (("train", 2000), ("test", 200)):
        np.save(folder / f"{part}_images.npy", random.integers(0, 256, (count, *SHAPE), np.uint8))
        np.save(folder / f"{part}_labels.npy", np.arange(count) % CLASSES)


def _images(count: int) -> torch.Tensor:
    return torch.randn(count, 3, 32, 32, generator=torch.Generator().manual_seed(0))


def _judged(figure: str, ratio: float) -> dict[str, Any]:
    if figure not in AIMS:
        return {}
    kind, aim = AIMS[figure]
    return {"aim": f"{kind} {aim:g}", "met": ratio <= aim if kind == "at most" else ratio >= aim}


PARTS: dict[str, Callable[[bool], dict[str, Any]]] = {
    "step": steps,
    "embedding": embedding,
    "dropout": dropout,
    "many": many,
}

if __name__ == "__main__":
    main()
