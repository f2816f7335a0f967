"""What fusing distance, margin and density is worth: on networks that others published, and on the demo's digits.

    python benchmarks/fusion.py     write benchmarks/results/fusion.json

Everything is judged on rows that the fusion was not fitted on. *halves*: of at most 6,000 test images, fitted on one
half and judged on the other, both ways, for ten draws of the halves. *500 rows*: fitted on 500, judged on all others,
20 draws. *folds*: all test images, each judged by a fit on the other four fifths; and *halves* of the first draw: there
the paired test is DeLong's. The networks of the demo make some 50 errors each; there the folds' differences over 20
seeds are put to a t-test, which sees the chance of training, not that of the images, which the seeds share.
*banks*: the halves again, with ever fewer of the training points in the bank, each bank a part of the one before.
``published.py`` says which files are read. The leads are those of a first study on other draws of the test images, with
all 50,000 training images in the bank.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from environment import facts
from published import NETWORKS, Scores, read, scored
from scipy.stats import t

from vicinal import Bank, Embeddings, metrics
from vicinal.demo.judging import K
from vicinal.progress import track
from vicinal.selective import Fusion
from vicinal.selective.fusion import cross_fitted
from vicinal.values import Trust

RESULTS = Path(__file__).parent / "results" / "fusion.json"
PARTS = ("distance", "margin", "density")
SHOWN = ("distance", "margin", "entropy", "fused")
MOST, DRAWS = 6000, 10
FEW, FEW_DRAWS = 500, 20
SEEDS = 20  # of the demo
BANKS = {"cifar100_resnet20": (2500, 5000, 10_000, 20_000), "cifar100_densenet_4bit": (2500, 5000)}  # and the whole
LEADS = {
    "cifar100_resnet20": {"margin": 0.835, "entropy": 0.837, "fused": 0.840},
    "cifar100_densenet_4bit": {"margin": 0.877, "entropy": 0.881, "fused": 0.891},
}


def main() -> int:
    found: dict[str, Any] = {"environment": facts(), "networks": {}, "banks": {}, "digits": {}}
    for name, title in NETWORKS.items():
        bank, test = read(name)
        found["networks"][name] = {"title": title, **figures(scored(bank, test)), "leads": LEADS[name]}
        found["banks"][name] = by_bank(bank, test, BANKS[name])
    found["digits"] = digits()
    RESULTS.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print("\n\n".join(tables(found).values()))
    return 0


def figures(scores: Scores) -> dict[str, Any]:
    return {
        "bank": scores.bank,
        "images": len(scores.correct),
        "accuracy": round(float(scores.correct.mean()), 4),
        "halves": halves(scores),
        f"fitted_on_{FEW}": few(scores),
        "paired": paired(scores),
    }


def fused(scores: Scores, fit: np.ndarray, judge: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Every score of the rows to judge, and which of these are right; the fusion is fitted on the rows to fit."""
    fitted = Fusion.fit(_trusts(scores.take(fit)), scores.correct[fit])
    there = scores.take(judge)
    return {**there.of, "fused": fitted(_trusts(there)).log_odds}, there.correct


def halves(scores: Scores) -> dict[str, Any]:
    found = []
    for seed in range(DRAWS):
        for fit, judge in _halves(len(scores.correct), seed):
            found.append(_aurocs(*fused(scores, fit, judge)))
    return {"rows": min(MOST, len(scores.correct)) // 2, "draws": 2 * DRAWS, **_summary(found)}


def by_bank(bank: Bank, test: Embeddings, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """The halves with banks of these sizes, each drawn at random from the next larger one, and with the whole."""
    order = bank.rows[np.random.default_rng(0).permutation(len(bank))]
    banks = [*(bank.take(order[:size]) for size in sizes), bank]
    return [{"bank": len(one), **halves(scored(one, test))} for one in track(banks, "thinning the bank")]


def few(scores: Scores) -> dict[str, Any]:
    found = []
    for seed in range(FEW_DRAWS):
        order = np.random.default_rng([1, seed]).permutation(len(scores.correct))
        found.append(_aurocs(*fused(scores, order[:FEW], order[FEW:])))
    over = {part: [one["fused"] - one[part] for one in found] for part in ("distance", "margin", "entropy")}
    return {
        "rows": FEW,
        "draws": FEW_DRAWS,
        **_summary(found),
        "fused_less": {part: _spread(values) for part, values in over.items()},
    }


def paired(scores: Scores) -> list[dict[str, Any]]:
    """The fusion less each of its parts: of all rows, in folds, and of each half of the first draw."""
    judged = [("folds", folded(scores), scores.correct)]
    judged += [("half", *fused(scores, *rows)) for rows in _halves(len(scores.correct), 0)]
    found = []
    for how, ranks, right in judged:
        tests = {part: metrics.delong(ranks["fused"], ranks[part], right) for part in ("distance", "margin")}
        shown = {
            part: {name: _round(getattr(test, name)) for name in ("difference", "low", "high", "p")}
            for part, test in tests.items()
        }
        beats = all(test.low > 0 for test in tests.values())
        found.append({"how": how, "rows": len(right), "fused_less": shown, "beats_both": beats})
    return found


def folded(scores: Scores) -> dict[str, np.ndarray]:
    """Every score of all rows, each fused by a fit on the other folds."""
    return {**scores.of, "fused": cross_fitted({name: scores.of[name] for name in PARTS}, scores.correct)}


def digits() -> dict[str, Any]:
    """The three networks of the demo, for several seeds."""
    from vicinal.demo import learn, load_digits

    every: dict[str, list[dict[str, float]]] = {}
    for seed in track(range(SEEDS), "training on digits"):
        images = load_digits(seed)
        views, _ = learn(images, seed)
        for view in views:
            if view.test.logits is not None:
                scores = scored(Bank(view.train.vectors, view.train.labels), view.test, k=K)
                wrong = int((~scores.correct).sum())
                every.setdefault(view.name, []).append({**_aurocs(folded(scores), scores.correct), "errors": wrong})
    return {name: _over_seeds(found) for name, found in every.items()}


def _over_seeds(found: list[dict[str, float]]) -> dict[str, Any]:
    less = {}
    for part in ("distance", "margin"):
        gaps = np.array([one["fused"] - one[part] for one in found])
        half = float(t.ppf(0.975, len(gaps) - 1) * gaps.std(ddof=1) / np.sqrt(len(gaps)))
        less[part] = {
            "difference": _round(gaps.mean()),
            "low": _round(gaps.mean() - half),
            "high": _round(gaps.mean() + half),
        }
    beats = all(test["low"] > 0 for test in less.values())
    errors = [int(one["errors"]) for one in found]
    return {"seeds": len(found), "errors": errors, "k": K, **_summary(found), "fused_less": less, "beats_both": beats}


def tables(found: dict[str, Any]) -> dict[str, str]:
    """The figures as docs/errors.md shows them."""
    head = [("network", "fitted on", *SHOWN), ("---",) * 6]
    rows = [*head]
    for one in found["networks"].values():
        for key in ("halves", f"fitted_on_{FEW}"):
            part = one[key]
            name = one["title"] if key == "halves" else ""
            rows.append((name, f"{part['rows']:,} rows", *(f"{part['mean'][s]:.3f}" for s in SHOWN)))
    for name, one in found["digits"].items():
        rows.append((f"digits of the demo, {name}", "four fifths", *(f"{one['mean'][s]:.3f}" for s in SHOWN)))
    tests = [("network", "rows", "fused less distance", "fused less margin", "beats both"), ("---",) * 5]
    for one in found["networks"].values():
        for test in one["paired"]:
            name, part = (one["title"], "all") if test["how"] == "folds" else ("", "one half")
            tests.append((name, f"{test['rows']:,} ({part})", *_verdict(test)))
    for name, one in found["digits"].items():
        tests.append((f"digits of the demo, {name}", f"{one['seeds']} seeds", *_verdict(one)))
    return {"aurocs": _table(rows), "tests": _table(tests), "banks": _table(_of_banks(found))}


def _of_banks(found: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("network", "points in the bank", "distance", "margin", "fused", "fused less margin"), ("---",) * 6]
    for name, banks in found["banks"].items():
        for place, one in enumerate(banks):
            mean = one["mean"]
            shown = (f"{mean[s]:.3f}" for s in ("distance", "margin", "fused"))
            title = "" if place else found["networks"][name]["title"]
            rows.append((title, f"{one['bank']:,}", *shown, f"{mean['fused'] - mean['margin']:+.3f}"))
    return rows


def _verdict(one: dict[str, Any]) -> tuple[str, str, str]:
    shown = [
        f"{test['difference']:+.3f} [{test['low']:+.3f}, {test['high']:+.3f}]"
        for test in (one["fused_less"]["distance"], one["fused_less"]["margin"])
    ]
    return shown[0], shown[1], "yes" if one["beats_both"] else "not shown"


def _table(rows: list[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |".replace("|  |", "| |") for row in rows)


def _halves(n: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    order = np.random.default_rng(seed).permutation(n)[:MOST]
    first, second = order[: len(order) // 2], order[len(order) // 2 :]
    return [(first, second), (second, first)]


def _trusts(scores: Scores) -> dict[str, Trust]:
    return {name: Trust(name, scores.of[name], scores.of[name]) for name in PARTS}


def _aurocs(ranks: dict[str, np.ndarray], right: np.ndarray) -> dict[str, float]:
    return {name: metrics.auroc(ranks[name], right) for name in SHOWN}


def _summary(found: list[dict[str, float]]) -> dict[str, Any]:
    return {
        "mean": {name: _round(np.mean([one[name] for one in found])) for name in SHOWN},
        "deviation": {name: _round(np.std([one[name] for one in found], ddof=1)) for name in SHOWN},
    }


def _spread(values: list[float]) -> dict[str, float]:
    return {"mean": _round(np.mean(values)), "least": _round(min(values)), "deviation": _round(np.std(values, ddof=1))}


def _round(value: Any) -> float:
    return round(float(value), 5)


if __name__ == "__main__":
    warnings.simplefilter("error")
    sys.exit(main())
