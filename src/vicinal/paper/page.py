"""The page of a reproduction: whatever is printed there comes from result files, between marks that name them.

    <!-- results: quick table1 -->      what stands between the two marks is written again
    <!-- results end -->

``python -m vicinal.paper.page docs/reproduction.md results`` writes a page.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from vicinal import store
from vicinal.errors import FileError
from vicinal.paper.results import Result
from vicinal.paper.words import MOST_ROWS, findings, legend, rows

__all__ = ["block", "render"]

_MARKED = re.compile(r"(<!-- results: (\w+) (\w+) -->)\n.*?(<!-- results end -->)", re.DOTALL)


def render(text: str, results: Path, beside: str) -> str:
    """A page with everything between its marks written again.

    Args:
        text: of the page.
        results: the folder of all results.
        beside: that folder, as links on the page have it.
    """

    def written(found: re.Match[str]) -> str:
        begin, edition, name, end = found.groups()
        result = Result.load(results / edition / f"{name}.json")
        return f"{begin}\n\n{block(result, f'{beside}/{edition}/{name}')}\n\n{end}"

    return _MARKED.sub(written, text)


def block(result: Result, link: str) -> str:
    """A result in Markdown: its picture, its tables, its findings, its notes, and where it was made."""
    parts = [f"![{result.name}, edition {result.edition}]({link}.svg)"]
    for table in result.tables:
        if len(table.rows) > MOST_ROWS:
            parts.append(f"{table.title}: {len(table.rows)} rows, in the file.")
            continue
        rival = f"; against {table.rival}" if table.rival else ""
        parts.append(f"**{table.title}** ({table.figure}{rival})")
        for columns in table.groups().values():
            shown = [column for column in columns if any(table.cell(row, column) for row in table.rows)]
            parts.append(_table(rows(table, shown)))
    if result.findings:
        parts.append(_table(findings(result)))
    parts.append("\n".join(f"- {line}" for line in (*legend(result), *result.notes, _made(result, link))))
    return "\n\n".join(parts)


def _table(lines: Sequence[Sequence[str]]) -> str:
    head, *body = [f"| {' | '.join(cell or ' ' for cell in line)} |" for line in lines]
    return "\n".join([head, f"|{' --- |' * len(lines[0])}", *body])


def _made(result: Result, link: str) -> str:
    made, machine = result.made, result.made["machine"]
    versions = ", ".join(f"{name} {made['versions'][name]}" for name in ("python", "numpy", "torch"))
    return (
        f"`{link.rpartition('../')[2]}.json`: `{made['command']}`, commit {made['commit'][:7]}"
        f"{' with changes' if made['commit'].endswith('changes') else ''}, {made['date']}, "
        f"{machine['cores']} cores of {machine['cpu']}, {versions}; {len(result.networks)} networks."
    )


def main(arguments: Sequence[str]) -> None:
    """Write a page again."""
    if len(arguments) != 2:
        raise FileError("expected a page and the folder of all results, as in: docs/reproduction.md results")
    page, results = map(Path, arguments)
    text = render(page.read_text(encoding="utf-8"), results, f"../{results}")
    with store.replacing(page) as file:
        file.write(text.encode())


if __name__ == "__main__":
    main(sys.argv[1:])
