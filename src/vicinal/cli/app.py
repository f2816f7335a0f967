"""The Typer application, and what makes a function a command of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

import vicinal

__all__ = ["app", "command", "group"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

app = typer.Typer(
    name="vicinal", add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich", no_args_is_help=True
)


def command(*examples: str, name: str | None = None, of: typer.Typer = app) -> Callable[[_Function], _Function]:
    """Make a function a command of ``vicinal`` whose help ends in examples. A test runs every one of them.

    A parameter that is a dataclass, such as ``options.Scoring``, is a group: the command has an option for each of its
    fields, in its place.

    Args:
        examples: command lines, each short enough for one line of a terminal.
        name: of the command; by default, the name of the function.
        of: the group that it belongs to; by default, none.
    """
    register = of.command(name, epilog=_epilog(examples))

    def made(function: _Function) -> _Function:
        register(_ungrouped(function))
        return function

    return made


def _ungrouped(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function with the fields of groups as parameters of its own."""
    groups = {name: hint for name, hint in _hints(function).items() if is_dataclass(hint)}
    if not groups:
        return function

    @wraps(function)
    def run(**given: Any) -> Any:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})  # type: ignore[operator]
        return function(**given)

    shown = [one for each in _parameters(function) for one in (_parameters(groups.get(each.name)) or [each])]
    run.__signature__ = Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in shown}
    return run


def _parameters(of: Any) -> list[Parameter]:
    """What a function or a group is called with, each by name and with its type; nothing of None."""
    if of is None:
        return []
    hints = _hints(of)
    every = signature(of).parameters.values()
    return [one.replace(annotation=hints[one.name], kind=Parameter.KEYWORD_ONLY) for one in every]


def _hints(of: Any) -> dict[str, Any]:
    return {name: hint for name, hint in get_type_hints(of, include_extras=True).items() if name != "return"}


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
