"""``vicinal explain``."""

from __future__ import annotations

from typing import Annotated

import typer

from vicinal.cli import options, show
from vicinal.cli.app import command

__all__ = ["explain"]


@command(
    "vicinal explain test.npz --bank bank.safetensors --least 3",
    "vicinal explain test.npz --bank bank.safetensors --row 0 --row 7",
)
def explain(
    file: options.Predictions,
    bank: options.BankFile,
    rows: Annotated[
        list[int] | None,
        typer.Option("--row", metavar="N", show_default=False, help="A prediction, by its row from 0; or several."),
    ] = None,
    least: Annotated[
        int | None,
        typer.Option("--least", metavar="N", show_default="5", help="The least trusted predictions, instead of rows."),
    ] = None,
    of_class: Annotated[
        int | None,
        typer.Option(
            "--class", metavar="C", show_default=False, help="Only predictions of this class, among the least trusted."
        ),
    ] = None,
    shown: Annotated[int, typer.Option("--shown", metavar="N", help="How many neighbours to name.")] = 5,
    out: options.Out = None,
    as_json: options.AsJson = False,
    k: options.K = None,
    kernel: options.KernelName = None,
    exclude_self: options.ExcludeSelf = False,
    *,
    names: options.Predicted,
) -> None:
    """Say why predictions can be trusted as far as they can: the training points around each, and what they are."""
    from vicinal import explain, tables

    target = None if out is None else tables.check_target(out)
    options.refuse_both("--row", rows, "--least", least)
    options.refuse_both("--row", rows, "--class", of_class)
    settings = options.settings(k, kernel, exclude_self)
    inputs = names.read(file, needs=["predicted"])
    reasons = explain.ask(
        inputs,
        options.open_bank(bank),
        settings,
        rows=rows,
        least=5 if least is None else least,
        of_class=of_class,
        shown=shown,
    )
    if target is not None:
        tables.write(target, explain.columns(reasons))
    show.answer("\n\n".join(map(str, reasons)), [reason.to_json() for reason in reasons], as_json)
