"""Evaluate seven scores of 10,000 predictions: all metrics, intervals and paired tests from 2,000 bootstrap samples.

    python benchmarks/metrics.py            measure and write benchmarks/results/metrics.json
    python benchmarks/metrics.py --compare  measure and compare with that file

Under 20 seconds are wanted. Beside it in the same run, the AUROC alone of one score as scikit-learn computes it, once
for each bootstrap sample (measured on a hundred of them): the ratio tells machines and days apart from changes of the
code. Seconds of work are those that the processor spent, whatever else it had to do.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from environment import facts
from sklearn.metrics import roc_auc_score

from vicinal.evaluation import evaluate
from vicinal.values import Trust

RESULTS = Path(__file__).parent / "results" / "metrics.json"
PREDICTIONS, SCORES, SAMPLES = 10_000, 7, 2_000
WANTED = 20.0  # seconds
ALLOWED = 1.2  # a ratio may grow by this factor before --compare calls it a regression
FIRST = """
import sys, time
begun = time.perf_counter()
import numpy as np
from vicinal.evaluation import evaluate
evaluate(None, {"a": np.arange(100.0)}, correct=np.arange(100) % 3 > 0, samples=10)
print(time.perf_counter() - begun)
"""


def main() -> int:
    """Measure; write or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compare", action="store_true", help="compare with the committed figures, write nothing")
    chosen = parser.parse_args()
    new = {"environment": facts(), "figures": figures()}
    print(json.dumps(new["figures"], indent=2))
    if chosen.compare:
        before, now = json.loads(RESULTS.read_text())["figures"]["ratio"], new["figures"]["ratio"]
        print(f"ratio to scikit-learn's AUROC: {before} -> {now}{'   WORSE' if now > ALLOWED * before else ''}")
        return int(now > ALLOWED * before)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(new, indent=2) + "\n", encoding="utf-8")
    return 0


def figures() -> dict[str, Any]:
    """Seconds, and the ratio of those of all metrics of all scores to those of one metric of one score elsewhere."""
    correct, scores = _world(PREDICTIONS)
    tied = {name: np.round(trust.log_odds, 1) for name, trust in scores.items()}
    whole, work = _seconds(lambda: evaluate(None, scores, correct=correct, samples=SAMPLES))
    ties, _ = _seconds(lambda: evaluate(None, tied, correct=correct, samples=SAMPLES))
    peer = _peer(correct, scores["score 0"].log_odds)
    return {
        "predictions": PREDICTIONS,
        "scores": SCORES,
        "samples": SAMPLES,
        "seconds": round(whole, 2),
        "seconds_of_work": round(work, 2),
        "wanted_seconds": WANTED,
        "met": whole < WANTED,
        "seconds_with_many_ties": round(ties, 2),
        "seconds_of_work_of_scikit_learn_for_auroc_of_one_score": round(peer, 2),
        "ratio": round(work / peer, 3),
        "seconds_by_predictions": {str(n): round(_of(n), 2) for n in (1_000, 3_000, 30_000)},
        "seconds_of_import_and_first_call": round(_first(), 2),
    }


def _world(predictions: int) -> tuple[np.ndarray[Any, Any], dict[str, Trust]]:
    generator = np.random.default_rng(0)
    correct = generator.random(predictions) < 0.8
    scores = {}
    for index in range(SCORES):
        log_odds = generator.normal(size=predictions) + 1.5 * correct
        confidence = 1 / (1 + np.exp(-log_odds))
        scores[f"score {index}"] = Trust(f"score {index}", confidence, log_odds, probability=True)
    return correct, scores


def _of(predictions: int) -> float:
    correct, scores = _world(predictions)
    return _seconds(lambda: evaluate(None, scores, correct=correct, samples=SAMPLES), rounds=1)[0]


def _peer(correct: np.ndarray[Any, Any], scores: np.ndarray[Any, Any], tries: int = 100) -> float:
    generator = np.random.default_rng(0)
    rows = generator.integers(len(correct), size=(tries, len(correct)))
    _, work = _seconds(lambda: [roc_auc_score(correct[chosen], scores[chosen]) for chosen in rows])
    return SAMPLES / tries * work


def _seconds(run: Callable[[], Any], rounds: int = 3) -> tuple[float, float]:
    """The median of a few rounds, by the clock on the wall and by the processor's."""
    found = []
    for _ in range(rounds):
        begun = time.perf_counter(), time.process_time()
        run()
        found.append((time.perf_counter() - begun[0], time.process_time() - begun[1]))
    wall, work = np.median(found, axis=0)
    return float(wall), float(work)


def _first() -> float:
    done = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, check=True)
    return float(done.stdout)


if __name__ == "__main__":
    sys.exit(main())
