"""All bars of scale on one machine, each beside its peers and its floor: one run, one part after the other.

    python benchmarks/scale.py                      # all parts; those that need embeddings say that none were given
    python benchmarks/scale.py --only exact         # one part; its section of the result file is replaced
    python benchmarks/scale.py --embeddings FOLDER  # with embeddings of networks that others trained (published.py)
    python benchmarks/scale.py --networks FOLDER    # with those of networks that ``vicinal train`` trained
    python benchmarks/scale.py --render             # measure nothing, write the tables of the pages again

A part is a file ``scale_NAME.py`` beside this one, with two functions:

    measure(given: Given) -> dict    its section of the result file, with a list of "bars" (see ``scaling.Bar``)
    tables(section: dict) -> dict    Markdown tables of it, by the name of their place in a page

A place in a page begins with ``<!-- NAME: this table is written by benchmarks/scale.py -->`` and ends with
``<!-- NAME ends -->``. Every section names the commit, machine and versions that it was made with.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from environment import facts
from scaling import Given

from vicinal import store

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "scale.json"
PAGES = (HERE.parent / "README.md", *sorted((HERE.parent / "docs").glob("*.md")))
PARTS = tuple(sorted(path.stem.removeprefix("scale_") for path in HERE.glob("scale_*.py")))


def main() -> int:
    """Measure the parts that are asked for, say which bars are met, and write files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--embeddings", type=Path)
    parser.add_argument("--networks", type=Path)
    parser.add_argument("--render", action="store_true")
    parser.add_argument("--dry", action="store_true", help="measure and print, but write no file")
    asked = parser.parse_args()
    given = Given(asked.embeddings, asked.networks)
    for name in () if asked.render else asked.only:
        section = _measured(name, given)
        say(name, section)
        if not asked.dry:
            replace(name, section)
    if not asked.dry:
        render()
    return 0


def part(name: str) -> ModuleType:
    """The module of a part."""
    return importlib.import_module(f"scale_{name}")


def _measured(name: str, given: Given) -> dict[str, Any]:
    words = ["python benchmarks/scale.py --only", name, *(f"{option} FOLDER" for option in given.options())]
    made = facts() | {"command": " ".join(words)}  # where the folders lie does not matter
    return {"environment": made, "not given": given.options(given=False), **part(name).measure(given)}


def say(name: str, section: dict[str, Any]) -> None:
    """Print a section, and which of its bars are met."""
    print(json.dumps({key: value for key, value in section.items() if key != "environment"}, indent=1))
    for bar in section["bars"]:
        way, met = "at least" if bar["least"] else "at most", "met" if bar["met"] else "MISSED"
        print(f"{name}: {bar['of']}: {bar['measured']:g}, {way} {bar['limit']:g}: {met}")
    for option in section["not given"]:
        print(f"{name}: {option} was not given: nothing is measured on its embeddings", flush=True)


def replace(name: str, section: dict[str, Any]) -> None:
    """Put one section into the result file; the others stay."""
    before = store.read_json(RESULTS) if RESULTS.exists() else {}
    store.write_json(RESULTS, dict(sorted({**before, name: section}.items())))


def tables(results: dict[str, Any]) -> dict[str, str]:
    """The tables of all sections, by the name of their place."""
    return {place: table for name, section in results.items() for place, table in part(name).tables(section).items()}


def render() -> None:
    """Write the tables into their places in the pages."""
    found = tables(store.read_json(RESULTS))
    for page in PAGES:
        before = text = page.read_text()
        for place, table in found.items():
            opened, closed = f"<!-- {place}: this table is written by benchmarks/scale.py -->", f"<!-- {place} ends -->"
            if opened in text:
                head, _, rest = text.partition(opened)
                text = f"{head}{opened}\n\n{table}\n\n{closed}{rest.partition(closed)[2]}"
        if text != before:
            page.write_text(text)


if __name__ == "__main__":
    sys.exit(main())
