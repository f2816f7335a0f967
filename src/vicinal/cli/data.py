"""``vicinal data``: what data sets there are, and how to get one."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from vicinal.cli import options, show
from vicinal.cli.app import command, group

if TYPE_CHECKING:
    from vicinal.data import Holding

__all__ = ["data"]

data = group("data", "List the data sets that there are, or fetch one.", "vicinal data list")


@command("vicinal data list", name="list", of=data)
def list_(root: options.DataRoot = None, as_json: options.AsJson = False) -> None:
    """List the data sets that vicinal knows, and those of your own in the data root: there, or missing."""
    from vicinal.data import available, data_root

    found = available(root)
    lines = [f"data root: {data_root(root)}", *map(_line, found)]
    content = [{**asdict(holding), "place": str(holding.place), "there": holding.there} for holding in found]
    show.answer("\n".join(lines), {"root": str(data_root(root)), "datasets": content}, as_json)


@command("vicinal data fetch mnist", of=data)
def fetch(
    name: Annotated[
        str, typer.Argument(metavar="NAME", show_default=False, help="The data set, as `vicinal data list` calls it.")
    ],
    root: options.DataRoot = None,
    addresses: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="URL",
            show_default="the official address",
            help="A folder on the web to look in instead; several are tried in turn.",
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Bring a data set from its official site: resumed where it broke off, and checked before it takes its place."""
    from vicinal import data

    place = data.fetch(name, root, addresses=addresses)
    show.answer(f"{name} is in {place}", {"name": name, "place": str(place)}, as_json)


def _line(holding: Holding) -> str:
    if holding.there:
        said = f"{_size(holding.size):>7}  {holding.place}"
    elif holding.size:
        said = f"   part  missing in {holding.place}: {', '.join(holding.missing)}"
    else:
        said = f"      -  get it with: vicinal data fetch {holding.name}"
    return f"  {holding.name:<14} {said}"


def _size(count: float) -> str:
    """Bytes in words of at most six letters."""
    for unit in ("B", "kB", "MB"):
        if count < 999.5:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
