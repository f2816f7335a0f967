"""``vicinal decide``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vicinal.cli import options, show
from vicinal.cli.app import command

if TYPE_CHECKING:
    from vicinal.guard import Decisions
    from vicinal.values import Embeddings

__all__ = ["decide"]

_SHOWN = 5  # of the inputs that are not accepted


@command("vicinal decide test.npz --guard guard --out decisions.csv")
def decide(
    file: options.Predictions,
    guard: Annotated[
        Path, typer.Option("--guard", metavar="FOLDER", show_default=False, help="As `vicinal fit` wrote it.")
    ],
    out: options.Out = None,
    as_json: options.AsJson = False,
    *,
    names: options.Predicted,
) -> None:
    """Accept each prediction, call its input novel, or neither; with a probability, a p-value and the neighbours."""
    from vicinal import Guard, tables

    target = None if out is None else tables.check_target(out)
    inputs = names.read(file, needs=["predicted"])
    found = Guard.load(guard)(inputs)
    content: dict[str, Any] = {"decisions": len(found), "shares": found.shares(), "notes": found.notes}
    if target is None:
        content["rows"] = found.records()
    else:
        tables.write(target, found.columns())
        content["out"] = str(target)
    show.answer(_words(found, inputs), content, as_json)


def _words(found: Decisions, inputs: Embeddings) -> str:
    """How many of each kind, and those that need a person most: the least likely right of those not accepted."""
    import numpy as np

    counts = {name: int((found.decision == name).sum()) for name in ("accept", "unsure", "novel")}
    lines = [
        f"{len(found):,} inputs: {counts['accept']:,} accepted, {counts['unsure']:,} unsure, {counts['novel']:,} novel"
    ]
    if inputs.labels is not None and counts["accept"]:
        wrong = int((~inputs.correct)[found.decision == "accept"].sum())
        lines.append(
            f"of the accepted predictions {wrong:,} are wrong ({wrong / counts['accept']:.2%}); "
            f"of all, {int((~inputs.correct).sum()):,} ({(~inputs.correct).mean():.2%})"
        )
    held = np.flatnonzero(found.decision != "accept")
    first = held[np.argsort(found.probability[held], kind="stable")][:_SHOWN]
    if len(first):
        lines += ["the least likely right of those not accepted:", *show.table(found.columns(), first)]
    return "\n".join([*lines, *(f"note: {note}" for note in found.notes)])
