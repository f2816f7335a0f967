"""Exact search: as a multiple of the bare float32 matrix product of the same shape in the same run."""

from __future__ import annotations

from typing import Any

import numpy as np
from scaling import Bar, Given, World, clustered, gaussian, markdown
from turns import Contenders, as_ratios, take_turns

from vicinal import Bank

__all__ = ["measure", "tables"]

K, QUERIES = 50, 1_000
LIMITS = ((256, 0.6), (128, 0.9), (64, 1.2))  # times the product, at so many columns and more
AGAINST_BRUTE = 1.1  # times brute force, on data without structure
SHAPES = ((50_000, 64), (73_257, 128), (50_000, 256))  # of those data: the shapes of the real ones
GROWTH = (10_000, 30_000, 100_000, 300_000, 1_000_000)


def measure(given: Given) -> dict[str, Any]:
    """Real embeddings, data without structure, and growth."""
    rows = [compared(world.first(QUERIES), rounds=9) for world in given.worlds()]
    flat = [compared(gaussian(n, d, QUERIES), rounds=7) for n, d in SHAPES]
    grown = [compared(clustered(n, 256, 256), rounds=3) for n in GROWTH]
    bars = [bar.to_json() for row in rows for bar in _bars(row)]
    bars += [bar.to_json() for row in flat for bar in _flat_bars(row)]
    return {"k": K, "real": rows, "without structure": flat, "growth": grown, "bars": bars}


def compared(world: World, rounds: int) -> dict[str, Any]:
    """Searches, peers and the floor on one world, in turns; exact search must answer as brute force does."""
    banks = {name: Bank(world.vectors, world.labels, search=name) for name in ("brute", "exact")}
    asked, predicted = world.asked, world.predicted
    contenders: Contenders = {"floor": lambda: asked @ world.vectors.T}
    for name, bank in banks.items():
        contenders[name] = lambda bank=bank: bank.nearest(asked, K)
        contenders[f"{name}, with both sides"] = lambda bank=bank: bank.nearest(asked, K, predicted=predicted)
    assert _same(*(contenders[f"{name}, with both sides"]() for name in banks)), world.name
    timed = as_ratios(take_turns({**contenders, **_peers(world)}, rounds))
    n, d = world.vectors.shape
    print(world.name, timed["times the floor"], flush=True)
    return {"of": world.name, "points": n, "columns": d, "queries": len(asked), **timed}


def _same(left: Any, right: Any) -> bool:
    """Whether two answers are the same to the last bit."""
    pairs = [(getattr(left, name), getattr(right, name)) for name in ("distances", "indices")]
    pairs += [(getattr(left.same, name), getattr(right.same, name)) for name in ("distances", "indices")]
    pairs += [(getattr(left.other, name), getattr(right.other, name)) for name in ("distances", "indices")]
    return all(np.array_equal(*pair) for pair in pairs)


def _peers(world: World) -> Contenders:
    import faiss
    import torch

    flat = faiss.IndexFlatL2(world.vectors.shape[1])
    flat.add(np.ascontiguousarray(world.vectors))
    lengths = torch.from_numpy((world.vectors**2).sum(axis=1))
    points, queries = (torch.from_numpy(np.array(part)) for part in (world.vectors, world.asked))
    return {
        "faiss flat": lambda: flat.search(np.ascontiguousarray(world.asked), K),
        "torch matmul + topk": lambda: torch.topk(lengths - 2 * (queries @ points.T), K, largest=False),
    }


def _bars(row: dict[str, Any]) -> list[Bar]:
    """At fewer columns than the least that a limit is set for, the limit of that holds."""
    limit = next((most for columns, most in LIMITS if row["columns"] >= columns), LIMITS[-1][1])
    return [Bar(f"{row['of']}: exact, times the product", row["times the floor"]["exact"], limit)]


def _flat_bars(row: dict[str, Any]) -> list[Bar]:
    ratio = round(row["ms"]["exact"] / row["ms"]["brute"], 3)
    return [Bar(f"{row['of']}: exact, times brute force", ratio, AGAINST_BRUTE)]


def tables(section: dict[str, Any]) -> dict[str, str]:
    """Two tables: of all data as multiples of the floor, and of growth in milliseconds."""
    rows = section["real"] + section["without structure"]
    names = list(section["growth"][0]["times the floor"])
    found = [["", "floor, ms", *names]]
    found += [[row["of"], f"{row['floor, ms']:.1f}", *_cells(row["times the floor"], names)] for row in rows]
    grown = [["points", "floor, ms", *names]]
    grown += [
        [f"{row['points']:,}", f"{row['floor, ms']:.1f}", *_cells(row["times the floor"], names)]
        for row in section["growth"]
    ]
    return {"exact": markdown(found), "exact growth": markdown(grown)}


def _cells(ratios: dict[str, float], names: list[str]) -> list[str]:
    return [f"{ratios[name]:.2f}" for name in names]
