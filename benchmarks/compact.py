"""Real data on two cores: the recipe ``compact`` by all three methods, on CIFAR-100 and SVHN, three seeds each.

    VICINAL_DATA=... python benchmarks/compact.py --folder runs/compact               # go on with what is missing
    VICINAL_DATA=... python benchmarks/compact.py --folder runs/compact --only svhn --seeds 0
    python benchmarks/compact.py --render                                             # the table of docs/training.md

Two networks train side by side, one thread each. Every run has a folder of its own; killed, it goes on from its last
checkpoint when the command is given again. As soon as a run is done its figures go into results/compact.json: on the
test points accuracy, and the AUROC and AURC of margin, entropy and distance (log-odds, k = 50); the loss curve; how
long it took. Everything in the recipes was chosen on validation points (results/tuning.json).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
from environment import facts

RESULTS = Path(__file__).parent / "results" / "compact.json"
PAGE = Path(__file__).parent.parent / "docs" / "training.md"
DATASETS, METHODS, SEEDS = ("cifar100", "svhn"), ("reg", "distance", "adversarial"), (0, 1, 2)
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
CURVE = 60  # points of a loss curve that are kept, at most
BEGIN, END = "<!-- compact: this table is written by benchmarks/compact.py -->", "<!-- compact ends -->"
SHOWN = ("accuracy", "auroc of margin", "auroc of entropy", "auroc of distance")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("runs/compact"))
    parser.add_argument("--only", nargs="+", choices=DATASETS, default=DATASETS)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--render", action="store_true", help="measure nothing, write the table of the page again")
    asked = parser.parse_args()
    if not asked.render:
        wanted = [(d, m, s) for s in asked.seeds for d in asked.only for m in asked.methods]
        run([one for one in wanted if _name(*one) not in _done()], asked.folder, asked.processes)
    render()


def run(wanted: list[tuple[str, str, int]], folder: Path, processes: int) -> None:
    """Train what is wanted, and write down each run as soon as it is done."""
    os.environ.update(dict.fromkeys(THREADS, "1"))
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = {pool.submit(one, *words, folder): words for words in wanted}
        for future in as_completed(futures):
            name, found = _name(*futures[future]), future.result()
            runs = dict(sorted((_done() | {name: found}).items()))
            made = facts() | {"command": "python benchmarks/compact.py"}  # where its folder is does not matter
            _write({"environment": made, "runs": runs, "over seeds": summary(runs)})
            shown = ", ".join(f"{key} {found['test'][key]:.3f}" for key in SHOWN)
            print(f"{name}: {shown}, {found['seconds of the core']} s", flush=True)


def one(dataset: str, method: str, seed: int, folder: Path) -> dict[str, Any]:
    """One run, in a process of its own: train, embed, measure."""
    import torch

    from vicinal.learn.train import train_dataset

    torch.set_num_threads(1)
    place = folder / _name(dataset, method, seed)
    made = {key: value for key, value in facts().items() if key in ("commit", "date")}
    whole = not (place / "log.jsonl").exists()  # or else the run goes on, and the clock of its first part is lost
    begun, core = time.perf_counter(), time.process_time()
    trained = train_dataset(dataset, "compact", method, out=place, seed=seed, resume=True)
    spent = {"seconds in all": time.perf_counter() - begun, "seconds of the core": time.process_time() - core}
    log = [json.loads(line) for line in (place / "log.jsonl").read_text().splitlines()]
    return {
        "seed": seed,
        "made": made,
        "recipe": trained.network.recipe.to_json(),
        "fingerprint": trained.network.fingerprint,
        "test": measured(trained.test, trained.bank),
        "validation accuracy": log[-1]["validation"]["accuracy"],
        "seconds of training": round(log[-1]["seconds"]),
        **{name: round(seconds) if whole else None for name, seconds in spent.items()},
        "curve": _curve(log),
    }


def measured(test: Any, bank: Any) -> dict[str, Any]:
    """Accuracy, and how well each score tells right from wrong."""
    from vicinal import distance, entropy, margin
    from vicinal.metrics import aurc, auroc

    right = test.predicted == test.labels
    trusts = {"margin": margin(test.logits), "entropy": entropy(test.logits)}
    trusts["distance"] = distance(bank, test.vectors, test.predicted)
    found: dict[str, Any] = {"n": len(right), "bank": len(bank), "accuracy": round(float(right.mean()), 4)}
    for name, trust in trusts.items():
        found[f"auroc of {name}"] = round(auroc(trust.log_odds, right), 4)
        found[f"aurc of {name}"] = round(aurc(trust.log_odds, right), 4)
    return found


def summary(runs: dict[str, Any]) -> dict[str, Any]:
    """Mean, least and largest over the seeds of a data set and a method."""
    found: dict[str, Any] = {}
    for group in dict.fromkeys(name.rpartition("-")[0] for name in runs):
        members = [runs[name] for name in runs if name.rpartition("-")[0] == group]
        found[group] = {"seeds": [member["seed"] for member in members]}
        for key in SHOWN:
            values = [member["test"][key] for member in members]
            found[group][key] = {"mean": round(float(np.mean(values)), 4), "least": min(values), "most": max(values)}
    return found


def table(found: dict[str, Any]) -> str:
    """The figures of a result file as Markdown: mean over the seeds, least and largest."""
    rows = [
        "| data, method | seeds | accuracy | margin | entropy | distance |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for group, said in found["over seeds"].items():
        cells = [f"{said[key]['mean']:.3f} ({said[key]['least']:.3f} to {said[key]['most']:.3f})" for key in SHOWN]
        rows.append(f"| {group.replace('-', ', ')} | {len(said['seeds'])} | {' | '.join(cells)} |")
    return "\n".join(rows)


def render() -> None:
    """Write the table into the page, between its marks."""
    before, begin, rest = PAGE.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    PAGE.write_text(f"{before}{begin}\n\n{table(json.loads(RESULTS.read_text()))}\n\n{end}{after}")


def _curve(log: list[dict[str, Any]]) -> dict[str, Any]:
    lines = [log[number] for number in sorted({round(n) for n in np.linspace(0, len(log) - 1, min(CURVE, len(log)))})]
    return {key: [round(line[key], 4) for line in lines] for key in ("step", "loss", "accuracy")}


def _name(dataset: str, method: str, seed: int) -> str:
    return f"{dataset}-{method}-{seed}"


def _done() -> dict[str, Any]:
    """The runs in the result file, but for those of a recipe that has changed since."""
    from vicinal.learn.recipes import named

    runs = json.loads(RESULTS.read_text())["runs"] if RESULTS.exists() else {}
    now = {name: named("compact", *name.rsplit("-", 2)[:2]).to_json() for name in runs}
    return {name: found for name, found in runs.items() if found["recipe"] == now[name]}


def _write(said: dict[str, Any]) -> None:
    from vicinal import store

    store.write_json(RESULTS, said)


if __name__ == "__main__":
    main()
