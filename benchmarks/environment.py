"""Where a benchmark was run: what every result file says beside its figures."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from vicinal.origin import origin

__all__ = ["facts"]

ROOT = Path(__file__).resolve().parent.parent


def facts(*packages: str) -> dict[str, Any]:
    """Command, commit, date, machine and versions; of further packages too, if they are named."""
    return origin(_command(), "faiss-cpu", *packages)


def _command() -> str:
    script = Path(sys.argv[0]).resolve()
    shown = script.relative_to(ROOT).as_posix() if script.is_relative_to(ROOT) else script.name
    return " ".join(["python", shown, *sys.argv[1:]])
