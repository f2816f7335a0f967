"""The Typer application, and what makes a function a command of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer

import vicinal

__all__ = ["app", "command", "group"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

app = typer.Typer(
    name="vicinal", add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich", no_args_is_help=True
)


def command(*examples: str, name: str | None = None, of: typer.Typer = app) -> Callable[[_Function], _Function]:
    """Make a function a command of ``vicinal`` whose help ends in examples. A test runs every one of them.

    Args:
        examples: command lines, each short enough for one line of a terminal.
        name: of the command; by default, the name of the function.
        of: the group that it belongs to; by default, none.
    """
    return of.command(name, epilog=_epilog(examples))


def group(name: str, help: str, *examples: str) -> typer.Typer:
    """A group of commands, such as ``vicinal data``, whose help ends in examples too."""
    made = typer.Typer(rich_markup_mode="rich")
    app.add_typer(made, name=name, help=help, epilog=_epilog(examples))
    return made


def _epilog(examples: tuple[str, ...]) -> str:
    lines = ("[bold]Example[/bold]" if len(examples) == 1 else "[bold]Examples[/bold]", *map(_escaped, examples))
    return "\n\n".join(lines)


def _escaped(example: str) -> str:
    return example.replace("[", "\\[")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"vicinal {vicinal.__version__}")
        raise typer.Exit


@app.callback(epilog="[bold]Example[/bold]\n\nvicinal demo --out demo.png")
def _root(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """How far to trust each prediction of a neural-network classifier, told by the training points around it."""
