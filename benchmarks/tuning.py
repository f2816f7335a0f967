"""What the recipes were chosen by: one trial of a changed recipe, measured on validation points, never on test.

    python benchmarks/tuning.py cifar100 reg peak=0.1 epochs=5     # one trial; done already: says so
    python benchmarks/tuning.py --collect                          # write results/tuning.json

A trial trains with some fields of the recipe changed (``peak``, ``warmup`` and ``end`` are those of the one-cycle
schedule, ``whitening`` is the epsilon of the whitening, ``name`` the recipe to start from) on nine tenths of the
training points, and measures the tenth that is left: the same for every trial. Killed, it goes on where it was when
started again. Preprocessed images, checkpoints and the outcome of each trial are kept in ``--folder``. An outcome holds
the whole recipe, because the one that the changes start from may have moved on since.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from environment import facts

from vicinal import Bank, data, distance, entropy, margin, store
from vicinal.errors import DivergedError
from vicinal.learn import recipes
from vicinal.learn.loop import Pace, fit, scored
from vicinal.learn.network import module_for
from vicinal.learn.preprocess import Preprocessing
from vicinal.learn.recipe import Recipe
from vicinal.learn.schedule import OneCycle
from vicinal.metrics import auroc

RESULTS = Path(__file__).parent / "results" / "tuning.json"
SHARE, SPLIT, SHAPE = 0.1, 0, (32, 32, 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trial", nargs="*", help="data set, method, and changes as key=value")
    parser.add_argument("--folder", type=Path, default=Path("runs/tuning"))
    parser.add_argument("--collect", action="store_true")
    asked = parser.parse_args()
    if asked.collect:
        found = [json.loads(path.read_text()) for path in asked.folder.glob("*/outcome.json")]
        found.sort(key=lambda one: one["finished"])
        made = facts() | {"command": "python benchmarks/tuning.py --collect"}
        store.write_json(RESULTS, {"environment": made, "measured on": "validation", "trials": found})
        return
    dataset, method, *words = asked.trial
    changes = {key: _value(value) for key, _, value in (word.partition("=") for word in words)}
    recipe = _recipe(dataset, method, **changes)
    digest = hashlib.sha256(json.dumps(recipe.to_json(), sort_keys=True).encode()).hexdigest()[:8]
    place = asked.folder / f"{dataset}-{method}-{digest}"
    place.mkdir(parents=True, exist_ok=True)
    if not (place / "outcome.json").exists():
        said = {"data": dataset, "method": method, "changes": changes}
        outcome = said | {"recipe": recipe.to_json()} | _trial(dataset, recipe, place, asked.folder)
        store.write_json(place / "outcome.json", outcome)
    print((place / "outcome.json").read_text())


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
    if "whitening" in changes:
        changes["preprocessing"] = {**begun.preprocessing, "whitening": {"epsilon": changes.pop("whitening")}}
    return begun.change(**changes)


def _trial(dataset: str, recipe: Recipe, place: Path, folder: Path) -> dict[str, Any]:
    torch.set_num_threads(1)
    known, labels, apart, wanted = _points(dataset, recipe, folder)
    module = module_for(recipe, int(labels.max()) + 1, SHAPE)
    begun = time.process_time()
    try:
        fitted = fit(module, known, labels, recipe, folder=place, resume=True, pace=Pace(log=50, checkpoint=450))
    except DivergedError:
        return {"diverged": True, "finished": _now()}
    return {
        "steps": fitted.steps,
        "seconds": round(fitted.seconds),
        "seconds of the core": round(time.process_time() - begun),
        "rate factor": fitted.rate_factor,
        "train": scored(module, torch.from_numpy(known[:5000]), torch.from_numpy(labels[:5000])),
        "validation": _measured(module, known, labels, apart, wanted),
        "finished": _now(),
    }


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())


def _measured(module: Any, known: Any, labels: Any, apart: Any, wanted: Any) -> dict[str, float]:
    vectors, _ = _through(module, known)
    found, logits = _through(module, apart)
    predicted = logits.argmax(1)
    right = predicted == wanted
    trusts = {"distance": distance(Bank(vectors, labels), found, predicted)}
    trusts |= {"margin": margin(logits), "entropy": entropy(logits)}
    said = {f"auroc of {name}": round(auroc(trust.log_odds, right), 4) for name, trust in trusts.items()}
    loss = scored(module, torch.from_numpy(np.array(apart)), torch.from_numpy(wanted))["loss"]
    return {"accuracy": float(right.mean()), "loss": round(loss, 4), **said}


def _through(module: Any, images: Any) -> tuple[Any, Any]:
    with torch.inference_mode():
        parts = [module(some) for some in torch.split(torch.from_numpy(np.array(images)), 500)]
    logits, vectors = (torch.cat([part[place] for part in parts]).numpy() for place in (0, 1))
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
