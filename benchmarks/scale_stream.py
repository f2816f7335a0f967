"""A bank larger than memory should be: built from a stream, condensed and scored, and how much memory that takes.

Each stage is a process of its own, so that the most memory it ever had resident can be told: as the system counts it,
pages of mapped files included. The floor of a stage is the disk's and the product's own speed in the same run.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scaling import Bar, Clusters, Given, markdown

from vicinal import Bank, condense, distance

__all__ = ["measure", "tables"]

POINTS, COLUMNS = 10_000_000, 256
CHUNK, QUERIES, SHARE = 50_000, 512, 0.001
GIBIBYTES = 4.0
SLOWEST = 2.0  # times the floor, at most, for scoring
ROOM = 1.3  # times the file that the disk must have
STAGES = ("build", "condense", "score", "floor")


def measure(given: Given) -> dict[str, Any]:
    """All stages on one file, which is removed in the end."""
    points = int(os.environ.get("VICINAL_POINTS", POINTS))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bank.safetensors"
        found = {stage: _apart(stage, path, points) for stage in STAGES}
        found["file, GiB"] = round(path.stat().st_size / 2**30, 2)
    bars = [Bar(f"{stage}: GiB resident", found[stage]["GiB resident"], GIBIBYTES) for stage in STAGES[:3]]
    slow = round(found["score"]["seconds"] / max(found["floor"]["reading, s"], found["floor"]["product, s"]), 2)
    bars.append(Bar("score: times the slower of reading and multiplying", slow, SLOWEST))
    return {"points": points, "columns": COLUMNS, "queries": QUERIES, **found, "bars": [bar.to_json() for bar in bars]}


def _apart(stage: str, path: Path, points: int) -> dict[str, Any]:
    """What one stage says, run in a process of its own."""
    command = [sys.executable, __file__, stage, str(path), str(points)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    print(stage, done.stdout.strip(), flush=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _build(path: Path, points: int) -> dict[str, Any]:
    drawing = 0.0

    def chunks() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        nonlocal drawing
        clusters = Clusters(COLUMNS)
        for start in range(0, points, CHUNK):
            begun = time.perf_counter()
            chunk = clusters.draw(min(CHUNK, points - start))
            drawing += time.perf_counter() - begun
            yield chunk

    seconds = _timed(lambda: Bank.from_stream(path, chunks()))
    return {"seconds": round(seconds - drawing, 1), "drawing the points, s": round(drawing, 1)}


def _condense(path: Path, points: int) -> dict[str, Any]:
    bank, found = Bank.load(path), {}
    for method in ("random", "k-means"):
        seconds = _timed(lambda method=method: condense(bank, method, SHARE).bank.save(path.with_name(method)))
        found[f"{method}, s"] = round(seconds, 1)
    return found


def _score(path: Path, points: int) -> dict[str, Any]:
    bank = Bank.load(path)
    asked, predicted = Clusters(COLUMNS).draw(QUERIES)
    bank.take(bank.rows[: 2 * QUERIES]).nearest(asked, 50, predicted=predicted)  # loads and compiles
    return {"seconds": round(_timed(lambda: distance(bank, asked, predicted)), 1)}


def _floor(path: Path, points: int) -> dict[str, Any]:
    """Reading the file once, with nothing of it in memory before; and its bare product with the queries."""
    descriptor = os.open(path, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    buffer = bytearray(2**24)

    def read() -> None:
        while os.readv(descriptor, [buffer]):
            pass

    reading = _timed(read)
    os.close(descriptor)
    block, asked = (np.ones((rows, COLUMNS), np.float32) for rows in (CHUNK, QUERIES))
    into = np.empty((QUERIES, CHUNK), np.float32)  # touched once: what follows is the product alone
    np.matmul(asked, block.T, out=into)
    product = _timed(lambda: [np.matmul(asked, block.T, out=into) for _ in range(20)]) / 20 * points / CHUNK
    return {"reading, s": round(reading, 1), "product, s": round(product, 1)}


def _timed(act: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun


def tables(section: dict[str, Any]) -> dict[str, str]:
    """One row for each stage."""
    floor, condensed = section["floor"], section["condense"]
    stages = [
        ("write it from a stream", section["build"]["seconds"], section["build"]),
        ("condense it, at random", condensed["random, s"], condensed),
        ("condense it, by k-means", condensed["k-means, s"], condensed),
        (f"score {section['queries']} queries", section["score"]["seconds"], section["score"]),
    ]
    rows = [[what, f"{seconds:,.0f}", f"{found['GiB resident']:.1f}"] for what, seconds, found in stages]
    rows += [
        ["*read it once*", f"{floor['reading, s']:,.0f}", ""],
        ["*the bare product*", f"{floor['product, s']:,.0f}", ""],
    ]
    return {"larger than memory": markdown([["", "seconds", "GiB resident"], *rows])}


if __name__ == "__main__":
    name, file, count = sys.argv[1:]
    told = {"build": _build, "condense": _condense, "score": _score, "floor": _floor}[name](Path(file), int(count))
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({**told, "GiB resident": round(most, 2)}))
