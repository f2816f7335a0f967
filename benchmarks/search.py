"""Exact search beside its peers, in one run, with the floor: the bare float32 matrix product of the same shape.

    python benchmarks/search.py             # measure, and write results/search.json
    python benchmarks/search.py --compare   # measure, and compare with the committed file; exit 1 past 20 %
    python benchmarks/search.py --quick     # the figures only, without the table of growth
    python benchmarks/search.py --render    # measure nothing, write the tables of README.md and docs/speed.md again

Every ratio is the median over rounds in which all contenders take turns (see ``turns.py``).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from environment import facts
from turns import as_ratios, take_turns

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "search.json"
POINTS, COLUMNS, QUERIES, CLASSES = 50_000, 300, 1_000, 100
ALLOWED = 1.2  # a ratio may grow by this factor before --compare calls it a regression


def world(points: int, columns: int, queries: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Gaussian points, labels, queries and predictions: no structure that a search could use."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((points, columns), dtype=np.float32)
    asked = rng.standard_normal((queries, columns), dtype=np.float32)
    return vectors, rng.integers(0, CLASSES, points), asked, rng.integers(0, CLASSES, queries)


def peers(vectors: np.ndarray, asked: np.ndarray, k: int) -> dict[str, Callable[[], Any]]:
    """The same question put to NumPy, torch, scikit-learn and faiss, each as its users would."""
    import faiss
    import torch
    from sklearn.neighbors import NearestNeighbors

    lengths = (vectors**2).sum(axis=1)
    tensors = torch.from_numpy(vectors), torch.from_numpy(asked), torch.from_numpy(lengths)
    brute = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(vectors)
    flat = faiss.IndexFlatL2(vectors.shape[1])
    flat.add(vectors)

    def with_numpy() -> Any:
        squares = lengths - 2 * (asked @ vectors.T)
        near = np.argpartition(squares, k - 1, axis=1)[:, :k]
        return np.take_along_axis(near, np.take_along_axis(squares, near, 1).argsort(axis=1), 1)

    def with_torch() -> Any:
        points, queries, squares = tensors
        return torch.topk(squares - 2 * (queries @ points.T), k, largest=False)

    return {
        "torch matmul + topk": with_torch,
        "NumPy argpartition": with_numpy,
        "scikit-learn brute": lambda: brute.kneighbors(asked),
        "faiss flat": lambda: flat.search(asked, k),
    }


def figures() -> dict[str, Any]:
    """The shape of the paper's CIFAR-100: 50,000 x 300, 1,000 queries."""
    from vicinal import Bank, distance

    vectors, labels, asked, predicted = world(POINTS, COLUMNS, QUERIES)
    bank = Bank(vectors, labels)
    found: dict[str, Any] = {"shape": {"points": POINTS, "columns": COLUMNS, "queries": QUERIES}}
    for k in (50, 500):
        contenders = {
            "floor": lambda: asked @ vectors.T,
            "vicinal nearest": lambda k=k: bank.nearest(asked, k),
            "vicinal distance": lambda k=k: distance(bank, asked, predicted, k=k),
            **peers(vectors, asked, k),
        }
        if k == 50:
            contenders["vicinal distance, k = all"] = lambda: distance(bank, asked, predicted, k="all")
        found[f"k = {k}"] = as_ratios(take_turns(contenders, rounds=15))
    one, mine = asked[0], asked[:1]
    found["one query, k = 50"] = as_ratios(
        take_turns(
            {
                "floor": lambda: vectors @ one,
                "vicinal nearest": lambda: bank.nearest(mine, 50),
                "vicinal distance": lambda: distance(bank, mine, predicted[:1], k=50),
                **peers(vectors, mine, 50),
            },
            rounds=21,
            runs=11,
        )
    )
    return found


def growth(rounds: int = 3) -> list[dict[str, Any]]:
    """The cost along each axis: points, columns, neighbours. Peers where they fit in memory."""
    from vicinal import Bank

    shapes = [(n, 64, 256, 50) for n in (1_000, 10_000, 100_000, 1_000_000)]
    shapes += [(50_000, d, 256, 50) for d in (16, 64, 256, 1_024, 2_048)]
    shapes += [(50_000, 64, 256, k) for k in (1, 10, 100, 1_000, 5_000)]
    rows = []
    for n, d, m, k in shapes:
        vectors, labels, asked, _ = world(n, d, m)
        bank = Bank(vectors, labels)
        contenders = {
            "floor": lambda v=vectors, a=asked: a @ v.T,
            "vicinal": lambda b=bank, a=asked, k=k: b.nearest(a, k),
        }
        timed = as_ratios(take_turns({**contenders, **peers(vectors, asked, k)}, rounds, runs=3))
        rows.append({"points": n, "columns": d, "queries": m, "k": k, **timed})
        print(n, d, k, timed["times the floor"], flush=True)
    return rows


def opening() -> dict[str, float]:
    """Seconds to import the package, and to open a bank of 1,000,000 x 1,024 from disk, in a fresh process each."""

    def fresh(code: str) -> float:
        script = f"import time; begun = time.perf_counter(); {code}; print(time.perf_counter() - begun)"
        runs = [
            subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True) for _ in range(5)
        ]
        return round(float(np.median([float(run.stdout) for run in runs])), 4)

    from vicinal import Bank

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bank.safetensors"
        raw = np.lib.format.open_memmap(Path(folder) / "raw.npy", "w+", np.float32, (1_000_000, 1_024))
        rng = np.random.default_rng(0)
        for start in range(0, len(raw), 50_000):
            raw[start : start + 50_000] = rng.standard_normal((50_000, 1_024), dtype=np.float32)
        Bank(raw, np.arange(len(raw)) % 1_000).save(path)
        script = f"import vicinal.bank; begun = time.perf_counter(); vicinal.bank.Bank.load({str(path)!r})"
        return {
            "import vicinal, s": fresh("import vicinal"),
            "open a bank of 1,000,000 x 1,024, s": fresh(script),
        }


def regressions(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Ratios to the floor that grew past what is allowed, in words."""
    said = []
    for part, measured in new["figures"].items():
        for name, ratio in measured.get("times the floor", {}).items():
            before = old["figures"].get(part, {}).get("times the floor", {}).get(name)
            if before is None:
                continue
            worse = name.startswith("vicinal") and ratio > ALLOWED * before
            print(f"{part:20} {name:28} {before:8.3f} -> {ratio:8.3f}{'   WORSE' if worse else ''}")
            if worse:
                said.append(f"{part}, {name}: {before} -> {ratio}")
    return said


def tables(results: dict[str, Any]) -> dict[str, str]:
    """The tables that pages show, by the name of their place."""
    parts = {part: found["times the floor"] for part, found in results["figures"].items() if "times the floor" in found}
    names = list(dict.fromkeys(name for ratios in parts.values() for name in ratios))
    search = [["", *parts], ["---"] * (1 + len(parts))]
    search += [
        [name, *(f"{ratios[name]:.2f}" if name in ratios else "" for ratios in parts.values())] for name in names
    ]
    floors = [f"{found['floor, ms']:.2f} ms" for found in results["figures"].values() if "floor, ms" in found]
    search.append(["*the floor itself*", *floors])
    peers_named = list(results["growth"][0]["times the floor"])
    grown = [["points", "columns", "k", "floor, ms", *peers_named], ["---"] * (4 + len(peers_named))]
    grown += [
        [f"{row['points']:,}", f"{row['columns']:,}", f"{row['k']:,}", f"{row['floor, ms']:.2f}"]
        + [f"{row['times the floor'][name]:.2f}" for name in peers_named]
        for row in results["growth"]
    ]
    opened = [["", "seconds"], ["---"] * 2, *([name, f"{found:.3f}"] for name, found in results["opening"].items())]
    return {name: _markdown(rows) for name, rows in (("search", search), ("growth", grown), ("opening", opened))}


def _markdown(rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def render(results: dict[str, Any]) -> None:
    """Write the tables into their places in README.md and docs/speed.md."""
    for page in (ROOT / "README.md", ROOT / "docs" / "speed.md"):
        text = page.read_text()
        for name, table in tables(results).items():
            opened, closed = f"<!-- {name}: this table is written by benchmarks/search.py -->", f"<!-- {name} ends -->"
            if opened in text:
                before, _, rest = text.partition(opened)
                text = f"{before}{opened}\n\n{table}\n\n{closed}{rest.partition(closed)[2]}"
        page.write_text(text)


def main() -> int:
    """Measure; write or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--render", action="store_true")
    chosen = parser.parse_args()
    if chosen.render:
        render(json.loads(RESULTS.read_text()))
        return 0
    new: dict[str, Any] = {"environment": facts(), "figures": figures()}
    print(json.dumps(new["figures"], indent=1))
    if chosen.compare:
        return 1 if regressions(json.loads(RESULTS.read_text()), new) else 0
    if not chosen.quick:
        new["opening"] = opening()
        print(new["opening"])
        new["growth"] = growth()
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(new, indent=1) + "\n")
        render(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
