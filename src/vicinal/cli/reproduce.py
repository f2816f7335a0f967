"""``vicinal reproduce``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from vicinal.cli import options, show
from vicinal.cli.app import command
from vicinal.errors import InputError

__all__ = ["reproduce"]


@command("vicinal reproduce all --edition quick")
def reproduce(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="WHAT...",
            show_default=False,
            help="table1, table2, table3, figure1, claims, costs; or all of them.",
        ),
    ],
    edition: Annotated[
        str,
        typer.Option(
            "--edition",
            metavar="NAME",
            help="quick (digits, two minutes), compact (real data, made for two cores), "
            "wide (as compact, one network of each kind at full width) or full (for a GPU).",
        ),
    ] = "quick",
    networks: Annotated[
        Path,
        typer.Option("--networks", metavar="DIR", help="The folder of all networks; an edition is a folder in it."),
    ] = Path("runs"),
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="The folder of all results; an edition is a folder in it.")
    ] = Path("results"),
    data: options.DataRoot = None,
    train: Annotated[
        bool, typer.Option("--train/--no-train", help="Train the networks that are missing, or show what is there.")
    ] = True,
    yes: Annotated[bool, typer.Option("--yes", help="Answer every question with yes.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Reproduce the paper: its tables, its figure and its claims, ours beside theirs."""
    from vicinal.paper.reproduction import Reproduction
    from vicinal.paper.words import text

    asked = Reproduction(what, edition, networks=networks, results=out, data=data, train=train)
    if not as_json:
        typer.echo(f"{asked.plan}\n")
    for doubt in asked.doubts:
        _agree(doubt, yes)
    found = asked.run()
    written = f"written: {asked.results}/ {', '.join(asked.names)}, each as .json, .svg and .png"
    show.answer("\n\n\n".join([*map(text, found), written]), [one.to_json() for one in found], as_json)


def _agree(doubt: str, yes: bool) -> None:
    """Ask a person, if one is there and has not answered yet."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise InputError(f"{doubt}? say --yes to do so")
    typer.confirm(f"{doubt}?", abort=True)
