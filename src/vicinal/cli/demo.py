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
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="Draw the picture there: .png, .pdf, .svg or .jpg.")
    ] = Path("demo.png"),
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", help="Decides which images are trained on, and the networks.")
    ] = 0,
    as_json: options.AsJson = False,
) -> None:
    """Train small networks on handwritten digits, and ask which of their predictions to trust."""
    from vicinal import demo

    found = demo.run(out, seed=seed)
    show.answer(str(found), found.to_json(), as_json)
