"""Novel inputs of several kinds: how well each score tells them from known digits, and what a guard makes of them.

    python benchmarks/novelty.py [--seeds 10] [--out FILE]

Scikit-learn's digits; 0 to 7 are known. For each seed, a network of one hidden layer (64 units, scikit-learn) learns
from 400 images of them; 400 more calibrate, the rest are judged beside novel inputs: the digits 8 and 9; the judged
images on their side, inverted, moved by three pixels (what leaves comes in on the other side), with twice the contrast,
with their pixels shuffled; and pure noise. Means and standard deviations over seeds; nothing is chosen: k = 50, false
alarms 5 %; the guard's risk 5 %, confidence 95 %.

Takes about a minute; writes benchmarks/results/novelty.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import environment
import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from vicinal import Bank, Embeddings, Guard, metrics
from vicinal.held_out import Caution
from vicinal.novelty import Detector, one_class_svm, scores
from vicinal.values import Trust

RESULTS = Path(__file__).parent / "results" / "novelty.json"
KNOWN = 8  # digits from 0
EACH = 400
ALARMS = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, default=RESULTS, help="write the figures there, as JSON")
    arguments = parser.parse_args()
    runs = [_run(seed) for seed in range(arguments.seeds)]
    figures = {
        "what": "AUROC of known against novel inputs, and the share of each called novel; mean and standard deviation",
        "seeds": arguments.seeds,
        "false_alarms_asked_for": ALARMS,
        **_spread(runs),
        **environment.facts(),
    }
    text = json.dumps(figures, indent=2) + "\n"
    sys.stdout.write(text)
    arguments.out.write_text(text, encoding="utf-8")


def tables(figures: dict[str, Any]) -> dict[str, str]:
    """The figures as the documentation shows them: AUROC of each score, and what the guard decides."""
    scored, guard = figures["scores"], figures["guard"]
    kinds = list(next(iter(scored.values()))["auroc"])
    lines = [f"| AUROC | {' | '.join(kinds)} |", f"|---|{'---|' * len(kinds)}"]
    lines += [f"| `{n}` | {' | '.join(_three(one['auroc'][kind][0]) for kind in kinds)} |" for n, one in scored.items()]
    decided = ["| the guard | accept | unsure | novel |", "|---|---|---|---|"]
    for name, shares in guard.items():
        decided.append(f"| {name} | {' | '.join(f'{shares[d][0]:.1%}' for d in ('accept', 'unsure', 'novel'))} |")
    return {"scores": "\n".join(lines), "guard": "\n".join(decided)}


def _three(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def _run(seed: int) -> dict[str, Any]:
    pixels, labels = load_digits(return_X_y=True)
    pixels = pixels / 16
    known = np.random.default_rng(seed).permutation(np.flatnonzero(labels < KNOWN))
    train, held_out, test = np.split(known, [EACH, 2 * EACH])
    network = MLPClassifier((64,), max_iter=200, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.fit(pixels[train], labels[train])
    bank = Bank.from_embeddings(_seen(network, pixels[train], labels[train]))
    calibration, judged = (_seen(network, pixels[rows], labels[rows]) for rows in (held_out, test))
    kinds = _novel(pixels[test], pixels[labels >= KNOWN], seed)
    strange = {name: _seen(network, images) for name, images in kinds.items()}
    return {
        "accuracy": float(judged.correct.mean()),
        "scores": _scores(bank, calibration, judged, strange),
        "guard": _guard(bank, calibration, judged, strange),
    }


def _seen(network: MLPClassifier, images: Any, labels: Any = None) -> Embeddings:
    hidden = np.maximum(images @ network.coefs_[0] + network.intercepts_[0], 0)
    return Embeddings(hidden, hidden @ network.coefs_[1] + network.intercepts_[1], labels)


def _novel(known: Any, others: Any, seed: int) -> dict[str, Any]:
    """Images (n, 64) of each kind."""
    generator, square = np.random.default_rng([seed, 1]), known.reshape(-1, 8, 8)
    return {
        "8 and 9": others,
        "on their side": np.rot90(square, axes=(1, 2)).reshape(len(known), -1),
        "inverted": 1 - known,
        "moved": np.roll(square, 3, axis=2).reshape(len(known), -1),
        "contrast": 2 * known,
        "shuffled": generator.permuted(known, axis=1),
        "noise": generator.random((300, 64)),
    }


def _scores(bank: Bank, held_out: Embeddings, test: Embeddings, strange: dict[str, Embeddings]) -> dict[str, Any]:
    def ranked(asked: Embeddings) -> dict[str, Trust]:
        return {**scores(bank, asked), "one_class_svm": one_class_svm(bank, asked.vectors)}

    reference, known = ranked(held_out), ranked(test)
    detectors = {name: Detector.fit(trust) for name, trust in reference.items()}
    found: dict[str, Any] = {
        name: {"false_alarms": float(detector.novel(known[name], ALARMS).mean()), "auroc": {}, "detected": {}}
        for name, detector in detectors.items()
    }
    for kind, asked in strange.items():
        right = np.arange(len(test) + len(asked)) < len(test)
        for name, trust in ranked(asked).items():
            both = np.concatenate([known[name].log_odds, trust.log_odds])
            found[name]["auroc"][kind] = metrics.auroc(both, right)
            found[name]["detected"][kind] = float(detectors[name].novel(trust, ALARMS).mean())
    return found


def _guard(bank: Bank, held_out: Embeddings, test: Embeddings, strange: dict[str, Embeddings]) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Caution)  # a third of the rows may hold too few errors to fuse scores
        guard = Guard.fit_arrays(bank, held_out, false_alarms=ALARMS)
    decided = guard(test)
    accepted = decided.decision == "accept"
    return {
        "known": {**decided.shares(), "wrong_among_accepted": float((~test.correct)[accepted].mean())},
        **{kind: guard(asked).shares() for kind, asked in strange.items()},
    }


def _spread(runs: Sequence[Any]) -> Any:
    """Mean and standard deviation of every number in some records of one shape."""
    if isinstance(runs[0], dict):
        return {name: _spread([run[name] for run in runs]) for name in runs[0]}
    return [round(float(np.mean(runs)), 4), round(float(np.std(runs, ddof=1)), 4)]


if __name__ == "__main__":
    main()
