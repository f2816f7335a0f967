"""``vicinal demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vicinal.cli import options, show
from vicinal.cli.app import command

__all__ = ["demo"]


@command("vicinal demo --out demo.png")
def demo(
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Draw the picture there: .png.")] = Path(
        "demo.png"
    ),
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of the training.")] = 0,
    as_json: options.AsJson = False,
) -> None:
    """Train a small network on handwritten digits, and ask which of its predictions to trust."""
    from vicinal import demo

    found = demo.run(out, seed=seed)
    show.answer(str(found), found.to_json(), as_json)
