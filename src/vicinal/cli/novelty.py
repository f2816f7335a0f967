"""``vicinal novelty``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from vicinal.cli import options, show
from vicinal.cli.app import command

__all__ = ["novelty"]

_SHOWN = 5


@command("vicinal novelty test.npz --bank bank.safetensors --known validation.npz")
def novelty(
    file: options.Predictions,
    bank: options.BankFile,
    known: Annotated[
        Path,
        typer.Option(
            "--known",
            metavar="FILE",
            show_default=False,
            help="Inputs of known classes that are not in the bank, to compare with.",
        ),
    ],
    score: Annotated[
        str,
        typer.Option(
            "--score",
            metavar="NAME",
            help="density, kth_distance, mahalanobis, relative_mahalanobis; with predictions distance, class_density, "
            "class_kth_distance; with logits margin, entropy, energy.",
        ),
    ] = "density",
    false_alarms: options.FalseAlarms = 0.05,
    by_class: Annotated[
        bool, typer.Option("--by-class", help="Compare an input only with those of the same predicted class.")
    ] = False,
    out: options.Out = None,
    as_json: options.AsJson = False,
    k: options.Neighbors = 50,
    *,
    names: options.Predicted,
) -> None:
    """Say of each input how often one of a known class is as unusual, and whether to call it novel."""
    from dataclasses import replace

    import numpy as np

    from vicinal import tables
    from vicinal.novelty import Detector, scores

    target = None if out is None else tables.check_target(out)
    points = options.open_bank(bank)
    asked, held_out = (names.read(one, needs=["predicted"] * by_class) for one in (file, known))
    ranked, reference = (
        replace(scores(points, one, names=[score], k=k)[score], predicted=one.predicted) for one in (asked, held_out)
    )
    with show.cautions_as_notes():
        detector = Detector.fit(reference, by_class=by_class)
    novel = detector.novel(ranked, false_alarms)
    columns: dict[str, Any] = {"row": np.arange(len(asked)), score: ranked.log_odds}
    columns |= {"p_value": detector.p_value(ranked), "novel": novel}
    notes = (*ranked.notes, *detector.notes)
    content: dict[str, Any] = {"score": score, "inputs": len(asked), "novel": int(novel.sum()), "notes": notes}
    if target is None:
        content["rows"] = show.rows(columns)
    else:
        tables.write(target, columns)
        content["out"] = str(target)
    first = np.argsort(columns["p_value"], kind="stable")[:_SHOWN]
    lines = [
        f"{int(novel.sum()):,} of {len(asked):,} inputs are called novel by {score}, "
        f"with at most {false_alarms:.3g} false alarms among known ones",
        "the most unusual:",
        *show.table(columns, first),
        *(f"note: {note}" for note in notes),
    ]
    show.answer("\n".join(lines), content, as_json)
