"""``vicinal diagnose``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vicinal.cli import options, show
from vicinal.cli.app import command

__all__ = ["diagnose"]


@command("vicinal diagnose validation.npz --bank bank.safetensors")
def diagnose(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            show_default=False,
            help="Predictions of inputs that are not in the bank; with labels and logits, to compare with softmax.",
        ),
    ],
    bank: options.BankFile,
    as_json: options.AsJson = False,
    k: options.Neighbors = 50,
    most: Annotated[int, typer.Option("--most", metavar="N", help="How many bank points to look at, at most.")] = 5000,
    samples: Annotated[int, typer.Option("--samples", metavar="N", help="Of the bootstrap, for intervals.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of the draws, the folds and the bootstrap.")] = 0,
    *,
    names: options.Predicted,
) -> None:
    """Tell whether distance will help this network, and what to look at first: in numbers, and in words."""
    from vicinal import selective

    inputs = names.read(file, needs=["predicted"])
    found = selective.diagnose(inputs, options.open_bank(bank), k=k, most=most, samples=samples, seed=seed)
    show.answer(str(found), found.to_json(), as_json)
