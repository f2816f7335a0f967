"""Thresholds with a promise: how often it fails, and what it costs in coverage; beside MAPIE's risk control.

    python benchmarks/selective.py     write benchmarks/results/selective.json

The promise: with probability 1 - delta, at most 5 % of the accepted predictions are wrong; delta is 5 %, or 10 % as in
papers on risk control. To know what is true, the test images of a published network (``published.py``) are taken as the
whole population, and 1,000 or 5,000 calibration rows are drawn from them, with replacement, 2,000 times. Two worlds in
which the chance of being right is a known function of the score stand beside them. *lost* is the coverage of the best
threshold for the population less that of ours, in points. *least* is what any method loses that keeps the promise for
every distribution (``least``). The fusion is fitted on 500 of the images, which leave the population.

MAPIE gets the same draws, and the ranks of the population as its probabilities, in steps of a hundredth: by its default
(Holm's correction), and by a fixed sequence that begins where a quarter is accepted, as its user may choose.
"""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from environment import facts
from mapie.risk_control import BinaryClassificationController
from published import NETWORKS, read, scored
from scipy.special import bdtr
from scipy.stats import binom, norm

from vicinal.progress import track
from vicinal.selective import Fusion, threshold_at
from vicinal.values import Trust

RESULTS = Path(__file__).parent / "results" / "selective.json"
RISK, DELTA = 0.05, 0.05
CASES = {"n = 1,000": (1000, DELTA), "n = 5,000": (5000, DELTA), "n = 5,000, delta = 10 %": (5000, 0.1)}
MOST = 5000
TRIALS, MAPIE_TRIALS = 2000, 300
WANTED = 3.0  # points of coverage lost at the most, of 5,000 rows
FITTED = 500
STEPS = 100
PLACES = 500
METHODS = {"Holm": "bonferroni_holm", "fixed sequence": "fixed_sequence"}
WORLDS = {"a world right in .92": (2.2, 1.2), "a world right in .79": (1.3, 1.3)}


@dataclass(frozen=True, eq=False)
class Population:
    """Scores, the highest first, and which predictions are right; then the true risk of accepting the first i."""

    scores: np.ndarray
    correct: np.ndarray

    @classmethod
    def of(cls, scores: np.ndarray, correct: np.ndarray) -> Population:
        """Sort the rows."""
        order = np.argsort(-scores, kind="stable")
        return cls(scores[order], correct[order])

    @property
    def risks(self) -> np.ndarray:
        """The share of errors among the first i."""
        return np.cumsum(~self.correct) / np.arange(1, len(self.correct) + 1)

    @property
    def best(self) -> int:
        """How many the best threshold accepts."""
        return int(np.flatnonzero(self.risks <= RISK).max(initial=-1)) + 1

    def accepted(self, value: float) -> int:
        """How many score at least this."""
        return int(np.searchsorted(-self.scores, -value, side="right"))


def main() -> int:
    every = populations()
    found: dict[str, Any] = {
        "environment": facts("mapie"),
        "risk": RISK,
        "trials": TRIALS,
        "wanted_points": WANTED,
        "ours": {
            name: {case: ours(one, n, delta) for case, (n, delta) in CASES.items()}
            for name, one in track(every.items(), "drawing")
        },
        "mapie": {
            name: beside_mapie(one) for name, one in every.items() if name.endswith(("fused", "world right in .92"))
        },
    }
    RESULTS.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print("\n\n".join(tables(found).values()))
    return 0


def populations() -> dict[str, Population]:
    """By name: each score of each published network, and the worlds."""
    found = {}
    for name, title in NETWORKS.items():
        scores = scored(*read(name))
        order = np.random.default_rng(0).permutation(len(scores.correct))
        fit, rest = scores.take(order[:FITTED]), scores.take(order[FITTED:])
        names = ("distance", "margin", "density")
        first, judged = ({p: Trust(p, s.of[p], s.of[p]) for p in names} for s in (fit, rest))
        fused = Fusion.fit(first, fit.correct)(judged).log_odds
        short = title.split(" (")[0]
        for part, s in {"margin": rest.of["margin"], "distance": rest.of["distance"], "fused": fused}.items():
            found[f"{short}: {part}"] = Population.of(s, rest.correct)
    for name, (offset, slope) in WORLDS.items():
        z = norm.ppf((np.arange(100_000) + 0.5) / 100_000)
        right = np.random.default_rng(0).random(len(z)) < norm.cdf(offset + slope * z)
        found[name] = Population.of(z, right)
    return found


def ours(population: Population, n: int, delta: float) -> dict[str, float]:
    """How often the true risk is above the target, and the coverage lost, over all trials."""
    generator = np.random.default_rng(n)
    failed, lost, hindsight = [], [], []
    for _ in range(TRIALS):
        rows = generator.integers(0, len(population.scores), n)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # where nothing can be promised, nothing is accepted
            found = threshold_at(population.scores[rows], population.correct[rows], risk=RISK, delta=delta)
        failed.append(_fails(population, found.value))
        lost.append(_lost(population, found.value))
        hindsight.append(100 * (found.hindsight - found.coverage))
    return {
        "delta": delta,
        "accuracy": round(float(population.correct.mean()), 4),
        "best": round(population.best / len(population.scores), 4),
        "failed": round(float(np.mean(failed)), 4),
        "lost": round(float(np.mean(lost)), 2),
        "lost_deviation": round(float(np.std(lost, ddof=1)), 2),
        "lost_at_least_0": round(float(np.maximum(lost, 0).mean()), 2),
        "lost_to_hindsight_on_the_rows": round(float(np.mean(hindsight)), 2),
        "least": round(least(population, n, delta), 2),
    }


def least(population: Population, n: int, delta: float) -> float:
    """Points that any method loses in the mean, draws that accept too much counted as no loss.

    Let a method promise the risk for every distribution. Take this population, and make errors among its first i rows
    so much more frequent (each as likely as before among the errors, and among the others) that every cut below them
    is beyond the target. There the method goes below row i with probability delta at the most. So here it does with
    the power of the best test at level delta of the one against the other at the most (Neyman and Pearson), which
    counts rows and errors among the first i. The mean of what it accepts is the sum of these probabilities.
    """
    size, best = len(population.scores), population.best
    counts = np.arange(1, size + 1)
    errors = np.cumsum(~population.correct)
    room = np.maximum.accumulate((RISK * counts - errors)[::-1])[::-1]  # errors to add before no later cut is within
    places = np.unique(np.linspace(1, best, PLACES).astype(np.int64))
    tests = [_power(n, i / size, errors[i - 1] / i, (errors[i - 1] + room[i - 1]) / i, delta) for i in places.tolist()]
    below = np.minimum.accumulate(tests)  # at the most: the probability of going below each place
    return 100 * float(best - places[0] - below @ np.diff([*places, best])) / size


def _power(n: int, share: float, rate: float, more: float, delta: float) -> float:
    """Of the best test of a rate of errors against a larger one, among a share of n rows; rounded up."""
    if more >= 1 or rate == 0 or more <= rate:
        return delta if more <= rate else 1.0
    deviation = (n * share * (1 - share)) ** 0.5
    rows = np.arange(max(0, int(n * share - 8 * deviation)), min(n, int(n * share + 8 * deviation)) + 1)
    chance = binom.pmf(rows, n, share)
    for_row, for_error = np.log((1 - rate) / (1 - more)), np.log(rate / more)

    def passes(bar: float, true: float) -> float:
        """The probability that the likelihood ratio is above the bar."""
        errors = np.floor((rows * for_row - bar) / (for_row - for_error))
        return float(chance @ np.where(errors < 0, 0.0, bdtr(np.clip(errors, 0, rows), rows, true)))

    low, high = n * for_error, n * for_row
    while high - low > 1e-9 * n:
        middle = (low + high) / 2
        low, high = (middle, high) if passes(middle, more) > delta else (low, middle)
    return passes(low, rate)


def beside_mapie(population: Population) -> dict[str, Any]:
    """Coverage kept, and how often the true risk is above the target, on the same draws of 5,000 rows."""
    size = len(population.scores)
    share = 1 - (np.arange(size) + 0.5) / size  # the ranks as probabilities
    values: dict[str, list[float]] = {"vicinal": [], **{name: [] for name in METHODS}}
    generator = np.random.default_rng(0)
    for _ in range(MAPIE_TRIALS):
        rows = generator.integers(0, size, MOST)
        right = population.correct[rows]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values["vicinal"].append(threshold_at(share[rows], right, risk=RISK, delta=DELTA).value)
            for name, method in METHODS.items():
                values[name].append(_mapie(share[rows], right, method))
    by_rank = Population(share, population.correct)
    return {
        name: {
            "failed": round(float(np.mean([_fails(by_rank, value) for value in found])), 4),
            "kept": round(100 * float(np.mean([by_rank.accepted(value) / size for value in found])), 2),
        }
        for name, found in values.items()
    }


def _mapie(share: np.ndarray, right: np.ndarray, method: str) -> float:
    first = 0.75 if method == "fixed_sequence" else 1 - 1 / STEPS
    controller = BinaryClassificationController(
        lambda x: np.stack([1 - x, x], axis=1),
        "precision",
        target_level=1 - RISK,
        confidence_level=1 - DELTA,
        best_predict_param_choice="recall",
        list_predict_params=np.linspace(first, 0, round(first * STEPS) + 1),
        fwer_method=method,
    )
    controller.calibrate(share, right.astype(int))
    return np.inf if controller.best_predict_param is None else float(controller.best_predict_param)


def _fails(population: Population, value: float) -> bool:
    accepted = population.accepted(value)
    return accepted > 0 and bool(population.risks[accepted - 1] > RISK)


def _lost(population: Population, value: float) -> float:
    return 100 * (population.best - population.accepted(value)) / len(population.scores)


def tables(found: dict[str, Any]) -> dict[str, str]:
    """The figures as docs/errors.md shows them."""
    head = [cell for case in CASES for cell in (f"lost, {case}", "least", "failed")]
    rows = [("scores", "accuracy", "best coverage", *head), ("---",) * (3 + len(head))]
    for name, one in found["ours"].items():
        cases = list(one.values())
        cells = [cell for s in cases for cell in (f"{s['lost']:.1f}", f"{s['least']:.1f}", f"{s['failed']:.1%}")]
        rows.append((name, f"{cases[0]['accuracy']:.3f}", f"{cases[0]['best']:.1%}", *cells))
    peers = [("scores", *(f"{name}: kept, failed" for name in ("vicinal", *(f"MAPIE, {m}" for m in METHODS))))]
    peers.append(("---",) * len(peers[0]))
    for name, one in found["mapie"].items():
        peers.append((name, *(f"{s['kept']:.1f}%, {s['failed']:.1%}" for s in one.values())))
    return {"thresholds": _table(rows), "mapie": _table(peers)}


def _table(rows: list[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    sys.exit(main())
