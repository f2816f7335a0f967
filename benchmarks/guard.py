"""One image at a time through a guard, vectors and logits in hand: a bank of 10,000 x 300, one core, under 2 ms.

    python benchmarks/guard.py [--points 10000] [--dimension 300] [--classes 100] [--out FILE]

The floor is one product of the bank with one vector (NumPy, float32): nobody can look at every training point for less.
Floor and guard take turns, in one thread, each turn with another image; what is compared are medians. Beside them, with
no bound: the parts of a decision, a thousand images in one call, and how long saving and opening the folder takes.

Takes about half a minute; writes benchmarks/results/guard.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import environment
import numpy as np

from vicinal import Bank, Embeddings, Guard, distance, margin

RESULTS = Path(__file__).parent / "results" / "guard.json"
MOST = 2.0  # milliseconds that one decision may take
TURNS = 2000
HELD_OUT = 3000
SEED = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--dimension", type=int, default=300)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--out", type=Path, default=RESULTS, help="write the figures there, as JSON")
    arguments = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    data = _data(arguments.points + HELD_OUT + TURNS, arguments.dimension, arguments.classes)
    train, held_out, asked = (
        data.take(range(*part)) for part in _parts(arguments.points, arguments.points + HELD_OUT, len(data))
    )
    guard = Guard.fit_arrays(Bank.from_embeddings(train), held_out, risk=0.1, seed=SEED)
    one = _one_by_one(guard, asked)
    figures = {
        "what": "milliseconds of one decision, one image at a time, one core; medians of turns",
        "points": arguments.points,
        "dimension": arguments.dimension,
        "classes": arguments.classes,
        "k": guard.k,
        "score": guard.score,
        "wrong_predictions": round(float((~held_out.correct).mean()), 4),
        "turns": TURNS,
        "seed": SEED,
        **one,
        "a_thousand_in_one_call_ms_each": round(_batch(guard, asked), 4),
        **_folder(guard),
        "most_ms": MOST,
        "met": one["median_ms"] < MOST,
        **environment.facts(),
    }
    text = json.dumps(figures, indent=2) + "\n"
    sys.stdout.write(text)
    arguments.out.write_text(text, encoding="utf-8")


def tables(figures: dict[str, Any]) -> dict[str, str]:
    """The figures as the documentation shows them."""
    rows = {
        "one decision, one image at a time": figures["median_ms"],
        "... of which the distance score": figures["of_which_ms"]["distance"],
        "floor: one product of the bank with one vector": figures["floor_ms"],
        "each of a thousand images in one call": figures["a_thousand_in_one_call_ms_each"],
        "opening the folder": figures["load_ms"],
        "saving it": figures["save_ms"],
    }
    lines = [f"| {name} | {value:.2f} ms |" for name, value in rows.items()]
    return {"times": "\n".join(["| | median |", "|---|---|", *lines])}


def _parts(*ends: int) -> list[tuple[int, int]]:
    return list(zip((0, *ends[:-1]), ends, strict=True))


def _data(n: int, d: int, c: int) -> Embeddings:
    """Classes that overlap, around centres at random, seen by a network that knows the centres."""
    generator = np.random.default_rng(SEED)
    centres = 0.2 * generator.normal(size=(c, 8)) @ generator.normal(size=(8, d)) / np.sqrt(8)
    labels = generator.integers(0, c, n)
    vectors = centres[labels] + generator.normal(size=(n, d))
    logits = vectors @ centres.T - (centres**2).sum(axis=1) / 2
    return Embeddings(vectors, logits, labels)


def _one_by_one(guard: Guard, asked: Embeddings) -> dict[str, Any]:
    logits, bank, points = asked.logits, guard.bank, guard.bank.vectors
    assert logits is not None
    assert asked.predicted is not None
    rows = [slice(i, i + 1) for i in range(TURNS)]
    predicted = asked.predicted
    work: dict[str, Callable[[slice], Any]] = {
        "floor": lambda row: points @ asked.vectors[row].T,
        "guard": lambda row: guard(asked.vectors[row], logits[row]),
        "distance": lambda row: distance(bank, asked.vectors[row], predicted[row], k=guard.k),
        "margin": lambda row: margin(logits[row]),
    }
    times: dict[str, list[float]] = {name: [] for name in work}
    for act in work.values():
        for row in rows[:50]:  # warms the caches, and compiles what is compiled
            act(row)
    for row in rows:
        for name, act in work.items():
            begun = time.perf_counter()
            act(row)
            times[name].append(1e3 * (time.perf_counter() - begun))
    middle = {name: statistics.median(found) for name, found in times.items()}
    return {
        "median_ms": round(middle["guard"], 4),
        "p95_ms": round(float(np.quantile(times["guard"], 0.95)), 4),
        "p99_ms": round(float(np.quantile(times["guard"], 0.99)), 4),
        "floor_ms": round(middle["floor"], 4),
        "floor_p95_ms": round(float(np.quantile(times["floor"], 0.95)), 4),
        "times_the_floor": round(middle["guard"] / middle["floor"], 2),
        "of_which_ms": {name: round(middle[name], 4) for name in ("distance", "margin")},
    }


def _batch(guard: Guard, asked: Embeddings) -> float:
    part = asked.take(range(1000))
    return 1e3 * statistics.median(_seconds(lambda: guard(part)) for _ in range(5)) / 1000


def _folder(guard: Guard) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "guard"
        saving = statistics.median(_seconds(lambda: guard.save(place)) for _ in range(5))
        opening = statistics.median(_seconds(lambda: Guard.load(place)) for _ in range(5))
    return {"save_ms": round(1e3 * saving, 2), "load_ms": round(1e3 * opening, 2)}


def _seconds(act: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
