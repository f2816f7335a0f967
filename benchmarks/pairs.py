"""Two networks judge the prediction of one: the paper's hybrid, the evidence of both summed, and the fair rival.

    python benchmarks/pairs.py --networks runs/compact       write benchmarks/results/pairs.json

For every ordered pair of a plain, a distance and an adversarial network of one seed (``benchmarks/compact.py`` trains
them, or ``vicinal train``), on the test points: the AUROC of the errors of the first one's prediction, by its own
margin, by the averaged softmax of both for that prediction (which has seen both networks, too), by its distance score
in the embedding of the second (the hybrid), and by the log-odds in both embeddings summed. k = 50; nothing is chosen.
The gaps to the averaged softmax are means over seeds, with the outermost ends of DeLong's intervals.
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
from environment import facts

from vicinal import metrics, store
from vicinal.ensemble import Member, judge
from vicinal.learn.train import Trained
from vicinal.progress import track

RESULTS = Path(__file__).parent / "results" / "pairs.json"
KINDS = {"reg": "Reg", "distance": "Dist", "adversarial": "AT"}
K = 50
WAYS = {"softmax": "averaged softmax", "hybrid": "hybrid", "summed": "summed log-odds"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", type=Path, required=True, help="a folder of folders such as svhn-reg-0")
    networks = parser.parse_args().networks
    found = {}
    for dataset, seed in track(_groups(networks), "judging"):
        found[f"{dataset}-{seed}"] = pairs(networks, dataset, seed)
    made = facts() | {"command": "python benchmarks/pairs.py --networks FOLDER"}  # where it lies does not matter
    store.write_json(RESULTS, {"environment": made, "k": K, "groups": found, "over seeds": summary(found)})
    print(tables(json.loads(RESULTS.read_text()))["pairs"])


def _groups(networks: Path) -> list[tuple[str, str]]:
    """Data sets and seeds of which all three kinds are there."""
    whole = {tuple(path.parent.name.rsplit("-", 2)) for path in networks.glob("*/bank.safetensors")}
    return sorted({(name, seed) for name, _, seed in whole if all((name, kind, seed) in whole for kind in KINDS)})


def pairs(networks: Path, dataset: str, seed: str) -> dict[str, Any]:
    """The six ordered pairs of one data set and seed."""
    members, fingerprints, labels = {}, {}, np.empty(0)
    for method, kind in KINDS.items():
        trained = Trained.load(networks / f"{dataset}-{method}-{seed}")
        members[kind] = Member.of(kind, trained.test, trained.bank, k=K)
        fingerprints[kind], labels = trained.network.fingerprint, trained.test.labels
    found = {
        f"{first} by {second}": _judged(members[first], members[second], labels)
        for first, second in itertools.permutations(members, 2)
    }
    return {"data": dataset, "seed": int(seed), "networks": fingerprints, "n": len(labels), "pairs": found}


def _judged(first: Member, second: Member, labels: Any) -> dict[str, Any]:
    predicted = first.predicted
    correct = predicted == labels
    both = [first, second]
    trusts = {"margin": first.trust("margin")}
    trusts |= {how: judge(both, predicted, how, k=K) for how in ("softmax", "summed")}
    trusts["hybrid"] = judge(both, predicted, "hybrid", embedding=second.name, k=K)
    found: dict[str, Any] = {"accuracy": round(float(correct.mean()), 4)}
    found |= {name: round(metrics.auroc(trust.log_odds, correct), 4) for name, trust in trusts.items()}
    for name in ("hybrid", "summed"):
        gap = metrics.delong(trusts[name].log_odds, trusts["softmax"].log_odds, correct)
        said = {"difference": gap.difference, "low": gap.low, "high": gap.high}
        found[f"{name} less softmax"] = {key: round(value, 4) for key, value in said.items()}
    return found


def summary(groups: dict[str, Any]) -> dict[str, Any]:
    """Means over the seeds of each data set and pair, and the least and largest gap of the sum to the fair rival."""
    found: dict[str, Any] = {}
    for dataset in dict.fromkeys(group["data"] for group in groups.values()):
        members = [group["pairs"] for group in groups.values() if group["data"] == dataset]
        for pair in members[0]:
            rows = [one[pair] for one in members]
            means = {key: round(float(np.mean([row[key] for row in rows])), 4) for key in ("margin", *WAYS)}
            gaps = [row["summed less softmax"] for row in rows]
            found[f"{dataset}, {pair}"] = means | {
                "seeds": len(rows),
                "summed less softmax": round(float(np.mean([gap["difference"] for gap in gaps])), 4),
                "low": min(gap["low"] for gap in gaps),
                "high": max(gap["high"] for gap in gaps),
            }
    return found


def tables(written: dict[str, Any]) -> dict[str, str]:
    """The figures as docs/ensembles.md shows them."""
    heads = ["data, prediction by embedding", "seeds", "own margin", *WAYS.values(), "summed less averaged softmax"]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for name, said in written["over seeds"].items():
        values = [f"{said[key]:.3f}" for key in ("margin", *WAYS)]
        gap = f"{said['summed less softmax']:+.3f} [{said['low']:+.3f}, {said['high']:+.3f}]"
        lines.append(f"| {name} | {said['seeds']} | {' | '.join(values)} | {gap} |")
    return {"pairs": "\n".join(lines)}


if __name__ == "__main__":
    main()
