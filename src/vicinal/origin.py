"""Where a measurement was made: what every result file says beside its figures."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

__all__ = ["origin"]

_ROOT = Path(__file__).resolve().parents[2]
_PACKAGES = ("vicinal", "numpy", "scipy", "scikit-learn", "numba", "torch")


def origin(command: str, *packages: str) -> dict[str, Any]:
    """Command, commit, date, machine and versions; of further packages too, if they are named.

    Example:
        >>> sorted(origin("vicinal demo"))
        ['command', 'commit', 'date', 'machine', 'versions']
    """
    return {
        "command": command,
        "commit": _commit(),
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": {
            "cpu": _cpu(),
            "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            "memory_gib": _memory(),
            "system": platform.platform(aliased=True, terse=True),
        },
        "versions": {"python": platform.python_version(), **_versions((*_PACKAGES, *packages))},
    }


def _commit() -> str:
    """The commit that is checked out, and whether the code differs from it; empty where this is no checkout."""
    found = _git("rev-parse", "HEAD") if (_ROOT / ".git").exists() else ""
    return f"{found} with changes" if found and _git("status", "--porcelain", "--", "src", "benchmarks/*.py") else found


def _git(*words: str) -> str:
    try:
        done = subprocess.run(["git", *words], cwd=_ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):
        return None


def _versions(packages: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for name in packages:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
