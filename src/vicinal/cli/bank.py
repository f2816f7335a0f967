"""``vicinal bank``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vicinal.cli import options, show
from vicinal.cli.app import command

__all__ = ["bank"]


@command("vicinal bank train.npz --out bank.safetensors")
def bank(
    file: options.Training,
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", show_default=False, help="Write the bank there: .safetensors.")
    ],
    vectors: options.VectorsName = None,
    labels: options.LabelsName = None,
    as_json: options.AsJson = False,
) -> None:
    """Make a bank of training points: the vectors of a network, and the true classes."""
    from vicinal import Bank, tables

    target = tables.check_target(out, (".safetensors",))
    names = tables.Names(vectors=vectors, labels=labels)
    made = Bank.from_embeddings(tables.read(file, names, needs=["labels"], skips=["logits", "predicted"]))
    made.save(target)
    n, d, classes = len(made), made.dimension, len(made.classes)
    show.answer(
        f"{target}: {n:,} points of {d} dimensions, {classes} classes",
        {"bank": str(target), "points": n, "dimension": d, "classes": made.classes, "facts": made.facts},
        as_json,
    )
