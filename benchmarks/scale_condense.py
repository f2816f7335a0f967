"""Condensed banks: how much of the AUROC is kept with 5 % of the points, and how long condensing takes.

Of the whole bank k = 50, of a condensed one the k that it recommends, found without any test data. Beside it, both with
the best k of ``CHOICES`` by the even test points, judged on the odd ones. The differences are DeLong's paired test.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scaling import Bar, Given, World, gaussian, markdown

from vicinal import Bank, condense, distance
from vicinal.condensation import METHODS
from vicinal.metrics import auroc, delong

__all__ = ["measure", "tables"]

SHARE, SHARES = 0.05, (0.02, 0.1)
CURVE = ("distilled", "k-means", "random")
CHOICES = (5, 10, 20, 50, 100, 200)
LOSS, SECONDS = -0.002, 60.0
SHAPE = (50_000, 300)


def measure(given: Given) -> dict[str, Any]:
    """All methods on all that is given, and how long they take on clustered points of one shape."""
    rows = [compared(world) for world in given.worlds() if world.truth is not None]
    seconds = timed()
    bars = [bar.to_json() for row in rows for bar in [_bar(row)]]
    bars += [
        Bar(f"{name}, {SHAPE[0]:,} x {SHAPE[1]}: seconds", found["seconds"], SECONDS).to_json()
        for name, found in seconds.items()
    ]
    return {"share": SHARE, "real": rows, "seconds": seconds, "bars": bars}


def compared(world: World) -> dict[str, Any]:
    """One world: the whole bank, each method at 5 %, without weights too, and some methods at other shares."""
    bank, right = Bank(world.vectors, world.labels), world.predicted == world.truth
    whole = {k: _log_odds(bank, world, k) for k in (10, 50, 200)}
    plans = [(name, SHARE, True) for name in METHODS] + [(name, SHARE, False) for name in CURVE[:2]]
    plans += [(name, share, True) for name in CURVE for share in SHARES]
    found = []
    for name, share, weighted in plans:
        small = condense(bank, name, share, weighted=weighted)
        odds = {k: _log_odds(small.bank, world, k) for k in {small.k, *CHOICES} if k <= len(small)}
        entry = {"method": name, "share": share, "weighted": weighted, "points": len(small), "k": small.k}
        entry |= {
            "auroc": round(auroc(odds[small.k], right), 4),
            "less the whole": _paired(odds[small.k], whole[50], right),
        }
        chosen = {k: one for k, one in odds.items() if k in CHOICES}
        found.append(entry | {"by k": _by_k(chosen, right), "k by half": _by_half(chosen, whole, right)})
        print(world.name, found[-1], flush=True)
    n, d = world.vectors.shape
    said = {
        "of": world.name,
        "points": n,
        "columns": d,
        "queries": len(right),
        "accuracy": round(float(right.mean()), 4),
    }
    return {**said, "auroc of the whole": _by_k(whole, right), "condensed": found}


def timed() -> dict[str, dict[str, float]]:
    """Seconds by the clock, and of all cores together, of each method to 5 %, loops compiled."""
    n, d = SHAPE
    world, small = gaussian(n, d, 1), gaussian(1_000, 8, 1)
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((100, d)).astype(np.float32)
    bank = Bank(world.vectors + 1.5 * centres[world.labels], world.labels)
    found = {}
    for name in METHODS:
        condense(Bank(small.vectors, small.labels), name)
        begun = time.perf_counter(), time.process_time()
        condense(bank, name, SHARE)
        spent = time.perf_counter() - begun[0], time.process_time() - begun[1]
        found[name] = {"seconds": round(spent[0], 1), "of all cores": round(spent[1], 1)}
        print(name, found[name], flush=True)
    return found


def _log_odds(bank: Bank, world: World, k: int) -> np.ndarray:
    return distance(bank, world.asked, world.predicted, k=min(k, len(bank))).log_odds


def _by_k(odds: dict[int, np.ndarray], right: np.ndarray) -> dict[str, float]:
    return {str(k): round(auroc(one, right), 4) for k, one in sorted(odds.items())}


def _paired(first: np.ndarray, second: np.ndarray, right: np.ndarray) -> dict[str, float]:
    return {name: round(value, 4) for name, value in vars(delong(first, second, right)).items()}


def _by_half(condensed: dict[int, np.ndarray], whole: dict[int, np.ndarray], right: np.ndarray) -> dict[str, Any]:
    """The best k of each by the even points, and the difference on the odd ones."""
    even, odd = np.arange(len(right)) % 2 == 0, np.arange(len(right)) % 2 == 1
    ks = [max(odds, key=lambda k: auroc(odds[k][even], right[even])) for odds in (condensed, whole)]
    gap = _paired(condensed[ks[0]][odd], whole[ks[1]][odd], right[odd])
    return {"k": ks[0], "k of the whole": ks[1], "less the whole": gap}


def _bar(row: dict[str, Any]) -> Bar:
    """The method that keeps most, among those at 5 % with weights."""
    at = [one for one in row["condensed"] if one["share"] == SHARE and one["weighted"]]
    best = max(at, key=lambda one: one["less the whole"]["difference"])
    said = f"{row['of']}: AUROC of {best['method']} at 5 %, less that of the whole bank"
    return Bar(said, best["less the whole"]["difference"], LOSS, least=True)


def tables(section: dict[str, Any]) -> dict[str, str]:
    """Three tables: all methods at 5 %, a curve of shares, and seconds."""
    names = list(section["seconds"])
    found = [["", "whole", *names]]
    curve = [["", "method", *(f"{share:.0%}" for share in sorted({SHARE, *SHARES})), "whole"]]
    for row in section["real"]:
        whole = f"{row['auroc of the whole']['50']:.3f}"
        found.append([row["of"], whole, *(_cell(_entry(row, name, section["share"])) for name in names)])
        for name in CURVE:
            cells = [f"{_entry(row, name, share)['auroc']:.3f}" for share in sorted({SHARE, *SHARES})]
            curve.append([row["of"], name, *cells, whole])
    seconds = [["", *names]]
    for what in ("seconds", "of all cores"):
        seconds.append([what, *(f"{section['seconds'][name][what]:.1f}" for name in names)])
    return {"condense": markdown(found), "condense curve": markdown(curve), "condense seconds": markdown(seconds)}


def _entry(row: dict[str, Any], method: str, share: float) -> dict[str, Any]:
    asked = {"method": method, "share": share, "weighted": True}
    return next(one for one in row["condensed"] if all(one[key] == value for key, value in asked.items()))


def _cell(entry: dict[str, Any]) -> str:
    gap = entry["less the whole"]
    return f"{entry['auroc']:.3f} ({gap['low']:+.3f} to {gap['high']:+.3f})"
