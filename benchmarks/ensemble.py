"""Combine ten networks' opinions of 10,000 inputs among 100 classes: each rule beside one pass over the same bytes.

    python benchmarks/ensemble.py [--members 10] [--inputs 10000] [--classes 100] [--out FILE]

The pass adds up every number of the members' softmax outputs, once (NumPy's ``sum``): nobody can combine them without
reading them. Every rule must stay under three passes. Two kinds of networks: *alike*, which mostly agree, as networks
for one task do; and *random*, which agree on nothing, so that most majorities are ties: the worst case.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from vicinal.ensemble import RULES, Ensemble, Member, combine
from vicinal.score import margin

MOST = 3.0  # passes that a rule may take
REPEATS = 9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--out", help="write the figures there, as JSON")
    arguments = parser.parse_args()
    shape = (arguments.members, arguments.inputs, arguments.classes)
    kinds = {name: _measured(_members(*shape, shared)) for name, shared in (("alike", 2.0), ("random", 0.0))}
    figures = {
        "shape": shape,
        "bytes": int(np.prod(shape)) * 8,
        **kinds,
        "met": all(passes < MOST for kind in kinds.values() for passes in kind["passes"].values()),
        "machine": {"cpu": platform.processor() or platform.machine(), "python": platform.python_version()},
        "versions": {"numpy": np.__version__},
    }
    text = json.dumps(figures, indent=2) + "\n"
    sys.stdout.write(text)
    if arguments.out:
        Path(arguments.out).write_text(text, encoding="utf-8")


def _members(members: int, inputs: int, classes: int, shared: float) -> Ensemble:
    generator = np.random.default_rng(0)
    common = shared * generator.normal(size=(inputs, classes))
    found = []
    for index in range(members):
        logits = common + generator.normal(size=(inputs, classes))
        softmax = np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))
        found.append(Member(f"network {index}", softmax, scores={"margin": margin(logits)}))
    return Ensemble(tuple(found))


def _measured(ensemble: Ensemble) -> dict[str, Any]:
    one_pass = _fastest(lambda: [part.sum() for part in ensemble.probabilities])
    passes, ties = {}, {}
    for rule in RULES:
        by = None if rule in ("average", "majority") else "margin"
        combined = combine(ensemble, rule, by=by)  # also compiles what is compiled
        ties[rule] = float(combined.tied.mean())
        passes[rule] = round(_fastest(lambda rule=rule, by=by: combine(ensemble, rule, by=by)) / one_pass, 2)
    return {"one_pass_ms": round(1e3 * one_pass, 2), "passes": passes, "tied": ties}


def _fastest(work: Callable[[], Any]) -> float:
    times = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return min(times)


if __name__ == "__main__":
    main()
