"""Two networks that others trained decide together: the rules, and how far to trust what comes out.

    VICINAL_DATA=DIR python benchmarks/together.py [--out FILE]

The ResNet-20 and the pruned DenseNet of ``published.py``, on the 3,000 test images of CIFAR-100 that both have seen.
The bank of the first holds 50,000 training points, that of the second 10,000. Nothing is fitted or chosen: k = 50.
Given are the accuracy of each rule, and the AUROC of the errors of the averaged softmax for every way to judge it, with
DeLong's paired test against the fair rival, the averaged softmax's own probability.

Takes about a minute; writes benchmarks/results/together.json.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import environment
import numpy as np
import published

from vicinal import metrics
from vicinal.checks import Integers
from vicinal.data.loading import data_root
from vicinal.ensemble import RULES, Member, combine, judge
from vicinal.values import Trust

RESULTS = Path(__file__).parent / "results" / "together.json"
WEIGHED_BY = ("margin", "entropy", "distance")
K = 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS, help="write the figures there, as JSON")
    arguments = parser.parse_args()
    members, labels = _members()
    figures = {
        "what": "two published networks on the test images of CIFAR-100 that both have seen",
        "networks": {name: published.NETWORKS[name] for name in (member.name for member in members)},
        "points_of_the_banks": {member.name: len(member.bank) for member in members if member.bank is not None},
        "images": len(labels),
        "k": K,
        "alone": {member.name: _alone(member, labels) for member in members},
        "rules": _rules(members, labels),
        "trust_in_the_averaged_softmax": _trusts(members, labels),
        **environment.facts(),
    }
    text = json.dumps(figures, indent=2) + "\n"
    sys.stdout.write(text)
    arguments.out.write_text(text, encoding="utf-8")


def tables(figures: dict[str, Any]) -> dict[str, str]:
    """The figures as the documentation shows them: the accuracy of each rule, and the ways to judge the average."""
    rules, ways = figures["rules"], dict(figures["trust_in_the_averaged_softmax"])
    del ways["accuracy"]
    lines = ["| rule | accuracy |", "|---|---|", *(f"| `{rule}` | {value:.3f} |" for rule, value in rules.items())]
    judged = ["| way | AUROC of errors | less `softmax` (95 %) |", "|---|---|---|"]
    for name, found in ways.items():
        gap = found["less_softmax"]
        said = "" if name == "softmax" else f"{gap['auroc']:+.3f} [{gap['low']:+.3f}, {gap['high']:+.3f}]"
        judged.append(f"| {name} | {found['auroc']:.3f} | {said} |")
    return {"rules": "\n".join(lines), "ways": "\n".join(judged)}


def _members() -> tuple[list[Member], Integers]:
    """Both networks on the rows that both have, and the true classes of these."""
    found = {name: (*published.read(name), _rows(name)) for name in published.NETWORKS}
    shared = np.array(sorted(set.intersection(*(set(rows.tolist()) for _, _, rows in found.values()))))
    members, labels = [], np.empty(0, np.int64)
    for name, (bank, test, rows) in found.items():
        order = np.argsort(rows)
        part = test.take(order[np.searchsorted(rows[order], shared)])
        assert part.labels is not None
        assert not len(labels) or np.array_equal(labels, part.labels)
        labels = part.labels
        members.append(Member.of(name, part, bank, rows=shared, k=K))
    return members, labels


def _rows(name: str) -> Integers:
    with np.load(data_root() / "embeddings" / f"{name}.npz", allow_pickle=False) as file:
        return np.asarray(file["test_index"], np.int64)


def _alone(member: Member, labels: Integers) -> dict[str, Any]:
    correct = member.predicted == labels
    scores = {name: round(metrics.auroc(member.trust(name).log_odds, correct), 4) for name in WEIGHED_BY}
    return {"accuracy": round(float(correct.mean()), 4), "auroc": scores}


def _rules(members: Sequence[Member], labels: Integers) -> dict[str, float]:
    found = {}
    for rule in RULES:
        for by in (None,) if rule in ("average", "majority") else WEIGHED_BY:
            combined = combine(members, rule, by=by)
            found[rule if by is None else f"{rule}:{by}"] = round(float((combined.predicted == labels).mean()), 4)
    return found


def _trusts(members: Sequence[Member], labels: Integers) -> dict[str, Any]:
    predicted = combine(members).predicted
    correct = predicted == labels
    fair = judge(members, predicted, "softmax")
    ways: dict[str, Trust] = {"softmax": fair}
    ways |= {how: judge(members, predicted, how, k=K) for how in ("own", "summed")}
    ways |= {f"hybrid in {m.name}": judge(members, predicted, "hybrid", embedding=m.name, k=K) for m in members}
    return {"accuracy": round(float(correct.mean()), 4)} | {
        name: {
            "auroc": round(metrics.auroc(trust.log_odds, correct), 4),
            "aurc": round(metrics.aurc(trust.log_odds, correct), 4),
            "less_softmax": _gap(metrics.delong(trust.log_odds, fair.log_odds, correct)),
        }
        for name, trust in ways.items()
    }


def _gap(found: metrics.Comparison) -> dict[str, float]:
    return {"auroc": round(found.difference, 4), "low": round(found.low, 4), "high": round(found.high, 4)}


if __name__ == "__main__":
    main()
