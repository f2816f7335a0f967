"""``vicinal fit``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vicinal.cli import options, show
from vicinal.cli.app import command

if TYPE_CHECKING:
    from vicinal.guard import Guard

__all__ = ["fit"]


@command("vicinal fit validation.npz --bank bank.safetensors --risk 0.1 --out guard")
def fit(
    file: options.HeldOut,
    bank: options.BankFile,
    out: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", show_default=False, help="Write the guard there: a folder.")
    ],
    risk: options.Risk = 0.05,
    false_alarms: options.FalseAlarms = 0.05,
    delta: options.Delta = 0.05,
    score: Annotated[
        str | None,
        typer.Option(
            "--score",
            metavar="NAME",
            show_default="fused with logits, else distance",
            help="By which predictions are trusted: fused (distance, margin and density), distance or margin.",
        ),
    ] = None,
    novelty: Annotated[
        str,
        typer.Option("--novelty", metavar="NAME", help="By which inputs are called novel: density, distance, energy."),
    ] = "density",
    method: options.Method = "platt",
    class_names: Annotated[
        Path | None,
        typer.Option(
            "--class-names",
            metavar="FILE",
            show_default=False,
            help="A text file, a line for each class, in the order of the labels.",
        ),
    ] = None,
    k: options.Neighbors = 50,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", help="Of the draw of the rows that fuse scores, and of folds.")
    ] = 0,
    as_json: options.AsJson = False,
    *,
    names: options.Predicted,
) -> None:
    """Fit a guard on held-out predictions: what accepts, questions or refuses each input in production."""
    from vicinal import Guard
    from vicinal.guard import check_folder

    check_folder(out)
    held_out = names.read(file, needs=["labels", "predicted"])
    called = None if class_names is None else options.read_lines(class_names)
    with show.cautions_as_notes():
        guard = Guard.fit_arrays(
            options.open_bank(bank),
            held_out,
            k=k,
            score=score,  # type: ignore[arg-type]
            novelty=novelty,  # type: ignore[arg-type]
            risk=risk,
            false_alarms=false_alarms,
            delta=delta,
            method=method,  # type: ignore[arg-type]
            names=called,
            seed=seed,
        )
    guard.save(out)
    show.answer(f"{guard}\nwritten to {out}", _content(guard, out), as_json)


def _content(guard: Guard, out: Path) -> dict[str, Any]:
    triage = guard.triage
    return {
        "guard": str(out),
        "score": guard.score,
        "novelty": guard.novelty,
        "k": guard.k,
        "points": len(guard.bank),
        "promised": {"false_alarms": triage.promised[0], "risk": triage.promised[1], "delta": triage.delta},
        "shares": triage.shares,
        "notes": guard.notes,
    }
