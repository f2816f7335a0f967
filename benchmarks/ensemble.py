"""Combine ten networks' opinions of 10,000 inputs among 100 classes: each rule beside one pass over the same bytes.

    python benchmarks/ensemble.py [--members 10] [--inputs 10000] [--classes 100] [--out FILE]

The floor adds up every number of the members' softmax outputs, once (NumPy's ``sum``): nobody can combine them without
reading them. Every rule must stay under three such passes. Floor and rules take turns, in one thread, and medians of
their times are compared. Two kinds of networks: *alike*, which mostly agree, as networks for one task do; and *random*,
which agree on nothing, so that most majorities are ties: the worst case. Beside them, without a bound: what it costs to
make the members, that is to check their outputs, and the time of a loop over inputs in Python, on a part of them.

Takes about half a minute; writes benchmarks/results/ensemble.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import environment
import numpy as np

from vicinal.ensemble import RULES, Ensemble, Member, combine
from vicinal.score import margin

RESULTS = Path(__file__).parent / "results" / "ensemble.json"
MOST = 3.0  # passes that a rule may take
TURNS = 25
SLOW = 500  # inputs of the loop in Python
SEED = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--out", type=Path, default=RESULTS, help="write the figures there, as JSON")
    arguments = parser.parse_args()
    shape = (arguments.members, arguments.inputs, arguments.classes)
    kinds = {name: _measured(_outputs(*shape, shared)) for name, shared in (("alike", 2.0), ("random", 0.0))}
    figures = {
        "what": "passes over the softmax outputs of all members that each rule takes; medians of turns, one thread",
        "shape": shape,
        "bytes": int(np.prod(shape)) * 8,
        "turns": TURNS,
        "seed": SEED,
        **kinds,
        "most": MOST,
        "met": all(passes < MOST for kind in kinds.values() for passes in kind["passes"].values()),
        **environment.facts(),
    }
    text = json.dumps(figures, indent=2) + "\n"
    sys.stdout.write(text)
    arguments.out.write_text(text, encoding="utf-8")


def tables(figures: dict[str, Any]) -> dict[str, str]:
    """The figures as the documentation shows them."""
    lines = ["| rule | members mostly agree | members agree on nothing |", "|---|---|---|"]
    for rule in RULES:
        lines.append(f"| `{rule}` | {figures['alike']['passes'][rule]:.1f} | {figures['random']['passes'][rule]:.1f} |")
    return {"passes": "\n".join(lines)}


def _outputs(members: int, inputs: int, classes: int, shared: float) -> list[Any]:
    """Logits of each member."""
    generator = np.random.default_rng(SEED)
    common = shared * generator.normal(size=(inputs, classes))
    return [common + generator.normal(size=(inputs, classes)) for _ in range(members)]


def _measured(outputs: list[Any]) -> dict[str, Any]:
    softmax = [np.exp(z - np.logaddexp.reduce(z, axis=1, keepdims=True)) for z in outputs]
    scores = [{"margin": margin(z)} for z in outputs]

    def make() -> Ensemble:
        parts = enumerate(zip(softmax, scores, strict=True))
        return Ensemble(tuple(Member(f"network {i}", p, scores=score) for i, (p, score) in parts))

    ensemble = make()
    members = ensemble.members
    work: dict[str, Callable[[], Any]] = {"one pass": lambda: [p.sum() for p in softmax], "members": make}
    for rule in RULES:
        by = None if rule in ("average", "majority") else "margin"
        work[rule] = lambda rule=rule, by=by: combine(members, rule, by=by)
    tied = {rule: float(work[rule]().tied.mean()) for rule in RULES}  # also compiles what is compiled
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(TURNS):
        for name, act in work.items():
            begun = time.perf_counter()
            act()
            times[name].append(time.perf_counter() - begun)
    middle = {name: statistics.median(seconds) for name, seconds in times.items()}
    floor = middle.pop("one pass")
    spread = {name: np.quantile(times[name], [0.25, 0.75]) / floor for name in RULES}
    return {
        "one_pass_ms": round(1e3 * floor, 2),
        "passes": {rule: round(middle[rule] / floor, 2) for rule in RULES},
        "passes_quartiles": {rule: [round(float(q), 2) for q in spread[rule]] for rule in RULES},
        "passes_to_make_the_members": round(middle["members"] / floor, 2),
        "passes_of_a_majority_in_a_python_loop": round(_loop(softmax) / floor, 0),
        "tied": tied,
    }


def _loop(softmax: list[Any]) -> float:
    """The time of a majority vote with a loop over inputs, as for all of them."""
    begun = time.perf_counter()
    for row in range(min(SLOW, len(softmax[0]))):
        Counter(int(part[row].argmax()) for part in softmax).most_common(1)
    return (time.perf_counter() - begun) * len(softmax[0]) / min(SLOW, len(softmax[0]))


if __name__ == "__main__":
    main()
