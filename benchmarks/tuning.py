"""What the recipes were chosen by: one trial of a changed recipe, measured on validation points, never on test.

    python benchmarks/tuning.py cifar100 reg peak=0.1 epochs=5     # one trial; done already: says so
    python benchmarks/tuning.py --plan trials.txt --processes 15 --device cuda      # a trial a line, side by side
    python benchmarks/tuning.py --collect                          # write results/tuning.json

A trial trains with some fields of the recipe changed (``peak``, ``warmup`` and ``end`` are those of the one-cycle
schedule, ``whitening`` and ``strength`` the epsilon and the strength of the whitening, ``seed`` that of the network,
``name`` the recipe to start from) on nine tenths of the training points, and measures the tenth that is left: the same
for every trial. Killed, it goes on where it was when started again. Preprocessed images, checkpoints and the outcome
of each trial are kept in ``--folder``. An outcome holds the whole recipe, because the one that the changes start from
may have moved on since.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
import torch
from environment import facts

from vicinal import Bank, data, distance, entropy, margin, store
from vicinal.errors import DivergedError
from vicinal.learn import recipes
from vicinal.learn.as_found import device_of
from vicinal.learn.loop import CHECKPOINT, Pace, fit, scored
from vicinal.learn.network import module_for
from vicinal.learn.preprocess import Preprocessing
from vicinal.learn.recipe import Recipe
from vicinal.learn.schedule import OneCycle
from vicinal.metrics import auroc

RESULTS = Path(__file__).parent / "results" / "tuning.json"
SHARE, SPLIT, SHAPE = 0.1, 0, (32, 32, 3)
WHITENING = {"whitening": "epsilon", "strength": "strength"}  # the words of a trial for the parameters of the stage


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trial", nargs="*", help="data set, method, and changes as key=value")
    parser.add_argument("--plan", type=Path, help="a file of trials, one a line")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--folder", type=Path, default=Path("runs/tuning"))
    parser.add_argument("--collect", action="store_true")
    asked = parser.parse_args()
    if asked.collect:
        collect(asked.folder)
    elif asked.plan:
        lines = [line.split() for line in asked.plan.read_text().splitlines() if line.strip()]
        side_by_side(lines, asked.folder, asked.device, asked.processes)
    else:
        print(json.dumps(trial(asked.trial, asked.folder, asked.device), indent=1))


def collect(folder: Path) -> None:
    """Write the result file: trials made elsewhere are kept, those in the folder added."""
    known = json.loads(RESULTS.read_text())["trials"] if RESULTS.exists() else []
    found = [json.loads(path.read_text()) for path in folder.glob("*/outcome.json")]
    by_trial = {
        json.dumps([one.get(key, 0) for key in ("recipe", "data", "seed", "device")]): one for one in known + found
    }
    trials = sorted(by_trial.values(), key=lambda one: one["finished"])
    made = facts() | {"command": "python benchmarks/tuning.py --collect"}
    store.write_json(RESULTS, {"environment": made, "measured on": "validation", "trials": trials})


def side_by_side(plan: list[list[str]], folder: Path, device: str, processes: int) -> None:
    """Run many trials at once; one that fails is told, and does not stop the others."""
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = {pool.submit(trial, words, folder, device): words for words in plan}
        for future in as_completed(futures):
            said = future.exception() or future.result().get("validation", "diverged")
            print(*futures[future], said, flush=True)


def trial(words: list[str], folder: Path, device: str) -> dict[str, Any]:
    """One trial: its outcome, found in the folder if it is there."""
    dataset, method, *changed = words
    changes = {key: _value(value) for key, _, value in (word.partition("=") for word in changed)}
    seed = changes.get("seed", 0)
    recipe = _recipe(dataset, method, **{key: value for key, value in changes.items() if key != "seed"})
    digest = hashlib.sha256(json.dumps(recipe.to_json(), sort_keys=True).encode()).hexdigest()[:8]
    place = folder / f"{dataset}-{method}-{digest}-{seed}"
    place.mkdir(parents=True, exist_ok=True)
    path = place / "outcome.json"
    if not path.exists():
        said = {"data": dataset, "method": method, "seed": seed, "changes": changes, "device": _hardware(device)}
        outcome = said | {"recipe": recipe.to_json()} | _trial(dataset, recipe, seed, place, folder, device)
        store.write_json(path, outcome)
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def _hardware(device: str) -> str:
    return torch.cuda.get_device_name() if device.startswith("cuda") else "one core of the CPU"


def _value(word: str) -> Any:
    try:
        return json.loads(word)
    except json.JSONDecodeError:
        return word


def _recipe(dataset: str, method: str, **changes: Any) -> Recipe:
    begun = recipes.named(changes.pop("name", "compact"), dataset, method)
    cycle = {key: changes.pop(key) for key in ("peak", "warmup", "start", "end") if key in changes}
    if cycle:
        changes["schedule"] = OneCycle(**{**vars(begun.schedule), **cycle})
    white = {field: changes.pop(word) for word, field in WHITENING.items() if word in changes}
    if white:
        changes["preprocessing"] = {**begun.preprocessing, "whitening": {**begun.preprocessing["whitening"], **white}}
    return begun.change(**changes)


def _trial(dataset: str, recipe: Recipe, seed: int, place: Path, folder: Path, device: str) -> dict[str, Any]:
    torch.set_num_threads(1)
    known, labels, apart, wanted = _points(dataset, recipe, folder)
    module = module_for(recipe, int(labels.max()) + 1, SHAPE, seed=seed)
    pace, begun = Pace(log=50, checkpoint=450), time.process_time()
    try:
        fitted = fit(module, known, labels, recipe, seed=seed, folder=place, resume=True, device=device, pace=pace)
    except DivergedError:
        return {"diverged": True, "finished": _now()}
    spent = time.process_time() - begun
    (place / CHECKPOINT).unlink()
    return {
        "steps": fitted.steps,
        "seconds": round(fitted.seconds),
        "seconds of the core": round(spent),
        "rate factor": fitted.rate_factor,
        "train": _scored(module, known[:5000], labels[:5000]),
        "validation": _measured(module, known, labels, apart, wanted),
        "finished": _now(),
    }


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())


def _measured(module: Any, known: Any, labels: Any, apart: Any, wanted: Any) -> dict[str, float]:
    vectors, _ = _through(module, known)
    found, logits = _through(module, apart)
    predicted = logits.argmax(1)
    right, bank = predicted == wanted, Bank(vectors, labels)
    trusts = {"distance": distance(bank, found, predicted), "margin": margin(logits), "entropy": entropy(logits)}
    trusts |= {f"distance, k = {k}": distance(bank, found, predicted, k=k) for k in (10, 200, 500)}
    said = {f"auroc of {name}": round(auroc(trust.log_odds, right), 4) for name, trust in trusts.items()}
    return {"accuracy": float(right.mean()), "loss": round(_scored(module, apart, wanted)["loss"], 4), **said}


def _scored(module: Any, images: Any, labels: Any) -> dict[str, float]:
    device = device_of(module)
    return scored(module, torch.from_numpy(images).to(device), torch.from_numpy(labels).to(device))


def _through(module: Any, images: Any) -> tuple[Any, Any]:
    device = device_of(module)
    with torch.inference_mode():
        parts = [module(some.to(device)) for some in torch.split(torch.from_numpy(images), 500)]
    logits, vectors = (torch.cat([part[place] for part in parts]).cpu().numpy() for place in (0, 1))
    return vectors, logits


def _points(dataset: str, recipe: Recipe, folder: Path) -> tuple[Any, ...]:
    """Images to train on and to validate on, preprocessed, and their labels."""
    digest = hashlib.sha256(json.dumps(recipe.preprocessing, sort_keys=True).encode()).hexdigest()[:8]
    path = folder / f"{dataset}-{digest}.npz"
    if not path.exists():
        found = data.load(dataset).train
        rows, apart = data.split(found.labels, SHARE, SPLIT)
        preprocessing = Preprocessing.fit(found.images[rows], recipe.preprocessing)
        images = {"known": preprocessing.apply(found.images[rows]), "apart": preprocessing.apply(found.images[apart])}
        part = path.with_suffix(f".{time.time_ns()}.npz")
        np.savez(part, **images, labels=found.labels[rows], wanted=found.labels[apart])
        part.rename(path)
    held = np.load(path)
    return held["known"], held["labels"], held["apart"], held["wanted"]


if __name__ == "__main__":
    main()
