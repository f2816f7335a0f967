"""How answers are printed: in words for people, as JSON for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt

    from vicinal.evaluation import Evaluation
    from vicinal.values import Embeddings, Trust

__all__ = [
    "answer",
    "cautions_as_notes",
    "evaluation",
    "rows",
    "save_evaluation",
    "table",
    "trust_columns",
    "trust_lines",
]

_LEAST = 5  # predictions shown


def answer(text: Any, content: Mapping[str, Any] | Sequence[Any], as_json: bool) -> None:
    """Print what a command found: ``text``, as a string or for rich; or ``content``, as one JSON value."""
    if as_json:
        import json

        from vicinal.tables import plain

        typer.echo(json.dumps(plain(content), indent=2, ensure_ascii=False))
    elif isinstance(text, str):
        typer.echo(text)
    else:
        from rich.console import Console

        Console().print(text)


def evaluation(found: Evaluation) -> Any:
    """A table for a terminal, or plain text of any width."""
    return found.table() if sys.stdout.isatty() else str(found)


def save_evaluation(found: Evaluation, target: Path | None) -> None:
    """Write an evaluation as its file's ending says; nothing without a file."""
    from vicinal import tables

    if target is not None and target.suffix == ".json":
        found.save(target)
    elif target is not None:
        every = found.rows()
        tables.write(target, {name: [row[name] for row in every] for name in every[0]})


def rows(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Columns as rows, for JSON."""
    values = (column.tolist() for column in columns.values())
    return [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]


def trust_columns(trust: Trust, embeddings: Embeddings) -> dict[str, Any]:
    """One row for each prediction, by column."""
    import numpy as np

    columns: dict[str, Any] = {"row": np.arange(len(trust))}
    for name in ("predicted", "labels"):
        if getattr(embeddings, name) is not None:
            columns[name.removesuffix("s")] = getattr(embeddings, name)
    columns.update(confidence=trust.confidence, log_odds=trust.log_odds)
    if trust.rival is not None:
        columns.update(rival=trust.rival.labels, rival_log_odds=trust.rival.log_odds)
    return columns


def trust_lines(trust: Trust, columns: Mapping[str, Any]) -> str:
    """A summary and the least trusted predictions."""
    import numpy as np

    low, middle, high = np.quantile(trust.log_odds, [0, 0.5, 1])
    order = np.argsort(trust.log_odds, kind="stable")[:_LEAST]
    return "\n".join(
        [
            f"{trust.name} of {len(trust):,} predictions: log-odds from {low:.4g} to {high:.4g}, median {middle:.4g}",
            "the least trusted:",
            *table(columns, order),
            *(f"note: {note}" for note in trust.notes),
        ]
    )


def table(columns: Mapping[str, Any], chosen: Sequence[int] | npt.NDArray[np.int64]) -> list[str]:
    """The lines of a table of some rows of columns."""
    cells = [list(columns), *([_cell(column[row]) for column in columns.values()] for row in chosen)]
    widths = [max(len(line[place]) for line in cells) for place in range(len(columns))]
    return ["  " + "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells]


@contextmanager
def cautions_as_notes() -> Iterator[None]:
    """Within it, cautions are not shown as warnings: the command prints them as notes of its answer."""
    import warnings

    from vicinal.held_out import Caution

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Caution)
        yield


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
