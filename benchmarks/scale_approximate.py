"""Approximate search: queries a second as a multiple of brute force's, at the recall that was asked for.

Peers get the least effort, of those on a ladder, that reaches the same recall on queries that they are timed on, which
is more than ours gets: it is tuned on points of the bank. Whoever looks at every point is timed on fewer queries.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scaling import CLASSES, Bar, Given, World, clustered, markdown
from turns import Contenders, take_turns

from vicinal import Bank, distance
from vicinal.metrics import auroc

__all__ = ["measure", "tables"]

K, RECALL = 50, 0.99
QUERIES, FEWER = 10_000, 500  # queries of whoever is fast, and of those that look at every point
LARGE, WIDE = (1_000_000, 256), (1_000_000, 1_024)
GROWTH = (10_000, 30_000, 100_000, 300_000)
LADDER = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
GRAPHS_UP_TO = 100_000  # points of which peers build a graph here: of a million it takes them most of an hour
TIMES_AT_A_MILLION, TIMES_ON_REAL, REAL_FROM = 50, 5, 50_000
MEGAFLOP, AUROC_LOST = 5.0, 0.001


def measure(given: Given) -> dict[str, Any]:
    """A million points, real embeddings, growth, and operations a query in many columns."""
    large = compared(_mixed(clustered(*LARGE, QUERIES)), rounds=3)
    wide = _operations(clustered(*WIDE, 2))
    real = [compared(world.first(QUERIES), rounds=5) for world in given.worlds()]
    grown = [compared(clustered(n, 256, QUERIES), rounds=3) for n in GROWTH]
    bars = [bar.to_json() for bar in (*_bars(large, TIMES_AT_A_MILLION), _flop_bar(wide))]
    bars += [bar.to_json() for row in real for bar in _bars(row, TIMES_ON_REAL if row["points"] >= REAL_FROM else None)]
    return {
        "k": K,
        "recall asked for": RECALL,
        "large": large,
        "wide": wide,
        "real": real,
        "growth": grown,
        "bars": bars,
    }


def compared(world: World, rounds: int) -> dict[str, Any]:
    """Approximate search, brute force, exact search and peers on one world, in turns."""
    vectors, labels, asked, predicted = world.vectors, world.labels, world.asked, world.predicted
    few, sides = asked[:FEWER], predicted[:FEWER]
    begun = time.perf_counter()
    bank = Bank(vectors, labels, search="approximate", recall=RECALL)
    built = time.perf_counter() - begun
    brute, exact = (Bank(vectors, labels, search=name) for name in ("brute", "exact"))
    contenders: Contenders = {
        "brute": lambda: brute.nearest(few, K),
        "brute, with both sides": lambda: brute.nearest(few, K, predicted=sides),
        "exact": lambda: exact.nearest(few, K),
        "approximate": lambda: bank.nearest(asked, K),
        "approximate, with both sides": lambda: bank.nearest(asked, K, predicted=predicted),
    }
    true, near = (each.nearest(few, K, predicted=sides) for each in (brute, bank))
    peers = {name: tuned for name, peer in _peers(world).items() if (tuned := _tuned(peer, few, true.indices))}
    contenders |= {name: (lambda search=peer["search"]: search(asked)) for name, peer in peers.items()}
    seconds = take_turns(contenders, rounds)
    counts = {name: len(few) if name.startswith(("brute", "exact")) else len(asked) for name in contenders}
    speed = {name: counts[name] / seconds[name] for name in contenders}
    row = {
        "of": world.name,
        "points": len(vectors),
        "columns": vectors.shape[1],
        "built, s": round(built, 1),
        "recall": round(float((near.distances <= true.distances[:, -1:]).mean()), 4),
        "same": round(float((near.same.distances == true.same.distances).mean()), 4),
        "other": round(float((near.other.distances == true.other.distances).mean()), 4),
        "measured": _measured(bank),
        "peers": {name: {key: peer[key] for key in ("effort", "recall", "built, s")} for name, peer in peers.items()},
        "queries a second": {name: round(found, 1) for name, found in speed.items()},
        "times brute": _times(speed),
        "auroc": _auroc(world, brute, bank),
    }
    print(row, flush=True)
    return row


def _times(speed: dict[str, float]) -> dict[str, float]:
    """How many times brute force's queries a second; with both sides, brute force's own with both."""
    both = ", with both sides"
    return {name: round(found / speed["brute" + (both if both in name else "")], 2) for name, found in speed.items()}


def _measured(bank: Bank) -> dict[str, Any]:
    found, contents = bank.measured(K), bank._search.contents
    if found is None:
        return {}
    said = {"recall": round(found.recall, 4), "sides": round(found.sides, 4), "MFLOP": round(found.flop / 1e6, 3)}
    effort = bank._search.effort(K)
    cells, axes = contents.index.centres.shape
    return {**said, "cells": cells, "axes": axes, "probes": effort.probes, "measured points": effort.keep}


def _auroc(world: World, brute: Bank, bank: Bank) -> dict[str, float] | None:
    """AUROC of errors by both searches, where there are errors."""
    if world.truth is None or (world.predicted == world.truth).all():
        return None
    correct = world.predicted == world.truth
    full, short = (distance(each, world.asked, world.predicted, k=K).log_odds for each in (brute, bank))
    return {"brute": round(auroc(full, correct), 5), "approximate": round(auroc(short, correct), 5)}


def _mixed(world: World) -> World:
    """The same with errors: in every other class some points bear another label, in some more than in others."""
    rng = np.random.default_rng(5)

    def mixed(labels: np.ndarray) -> np.ndarray:
        wrong = rng.random(len(labels)) < 0.6 * (labels % 8) / 7 * (labels % 2)
        return np.where(wrong, rng.integers(0, CLASSES, len(labels)), labels)

    return replace(world, labels=mixed(world.labels), truth=mixed(world.truth))


def _operations(world: World) -> dict[str, Any]:
    """Operations of a query in many columns."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "bank.safetensors"
        Bank(world.vectors, world.labels).save(place)
        bank = Bank.load(place, search="approximate", recall=RECALL)
        return {"of": world.name, "points": len(world.vectors), "columns": world.vectors.shape[1], **_measured(bank)}


Peer = Callable[[int, np.ndarray], np.ndarray]


def _peers(world: World) -> dict[str, tuple[Peer, float]]:
    """Searches of other libraries, by an effort and queries, and the seconds that it took to build them."""
    import faiss

    n, d = world.vectors.shape
    lists = int(2 ** np.round(np.log2(4 * np.sqrt(n))))
    ivf = faiss.IndexIVFFlat(faiss.IndexFlatL2(d), d, lists)

    def search_lists(effort: int, asked: np.ndarray) -> np.ndarray:
        ivf.nprobe = effort
        return ivf.search(asked, K)[1]

    def build_lists() -> None:
        ivf.train(world.vectors[np.random.default_rng(0).permutation(n)[: 64 * lists]])
        ivf.add(world.vectors)

    found = {"faiss IVF": (search_lists, _seconds(build_lists))}
    if n <= GRAPHS_UP_TO:
        found["faiss HNSW"] = _hnsw(world)
        found["usearch"] = _usearch(world)
    return found


def _hnsw(world: World) -> tuple[Peer, float]:
    import faiss

    graph = faiss.IndexHNSWFlat(world.vectors.shape[1], 32)
    graph.hnsw.efConstruction = 100

    def search(effort: int, asked: np.ndarray) -> np.ndarray:
        graph.hnsw.efSearch = K + effort
        return graph.search(asked, K)[1]

    return search, _seconds(lambda: graph.add(world.vectors))


def _usearch(world: World) -> tuple[Peer, float]:
    from usearch.index import Index

    graph = Index(ndim=world.vectors.shape[1], metric="l2sq", connectivity=32, expansion_add=100)

    def search(effort: int, asked: np.ndarray) -> np.ndarray:
        graph.expansion_search = K + effort
        return np.asarray(graph.search(asked, K).keys).astype(np.int64)

    return search, _seconds(lambda: graph.add(np.arange(len(world.vectors)), world.vectors))


def _seconds(act: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    act()
    return round(time.perf_counter() - begun, 1)


def _tuned(peer: tuple[Peer, float], asked: np.ndarray, true: np.ndarray) -> dict[str, Any] | None:
    """A peer at its least effort that reaches the recall; None where none does."""
    search, built = peer
    for effort in LADDER:
        found = search(effort, asked)
        recall = float(np.mean([np.isin(a, b).mean() for a, b in zip(true, found, strict=True)]))
        if recall >= RECALL:
            said = {"effort": effort, "recall": round(recall, 4), "built, s": built}
            return {**said, "search": partial(search, effort)}
    return None


def _bars(row: dict[str, Any], times: float | None) -> list[Bar]:
    of, ratios = row["of"], row["times brute"]
    bars = [Bar(f"{of}: recall", row["recall"], RECALL, least=True)]
    if times is not None:
        bars.append(Bar(f"{of}: times brute force", ratios["approximate"], times, least=True))
    if row["peers"]:
        ratio = round(ratios["approximate"] / max(ratios[name] for name in row["peers"]), 2)
        bars.append(Bar(f"{of}: times the best peer", ratio, 1.0, least=True))
    if row["auroc"]:
        lost = round(abs(row["auroc"]["brute"] - row["auroc"]["approximate"]), 5)
        bars.append(Bar(f"{of}: AUROC apart from brute force's", lost, AUROC_LOST))
    return bars


def _flop_bar(wide: dict[str, Any]) -> Bar:
    return Bar(f"{wide['of']}: MFLOP a query, both sides included", wide["MFLOP"], MEGAFLOP)


def tables(section: dict[str, Any]) -> dict[str, str]:
    """Which search to choose: queries a second of each, and what approximate search finds."""
    rows = [*section["real"], *section["growth"], section["large"]]
    names = ("brute", "exact", "approximate", "approximate, with both sides", "faiss IVF", "faiss HNSW", "usearch")
    found = [["", "brute, queries/s", *(f"{name}, times" for name in names[1:]), "recall", "MFLOP", "built, s"]]
    for row in rows:
        times = [f"{row['times brute'][name]:.1f}" if name in row["times brute"] else "" for name in names[1:]]
        flop = row["measured"].get("MFLOP", "")
        cells = [row["of"], f"{row['queries a second']['brute']:,.0f}", *times]
        found.append([*cells, f"{row['recall']:.3f}", f"{flop}", f"{row['built, s']}"])
    return {"choice": markdown(found)}
