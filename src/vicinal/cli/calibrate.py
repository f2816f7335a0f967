"""``vicinal calibrate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vicinal.cli import options, show
from vicinal.cli.app import command

if TYPE_CHECKING:
    from vicinal.selective import Calibration, Threshold
    from vicinal.values import Embeddings, Trust

__all__ = ["calibrate"]


@command(
    "vicinal calibrate validation.npz --score margin --coverage 0.8",
    "vicinal calibrate validation.npz --bank bank.safetensors --apply test.npz",
)
def calibrate(
    file: options.HeldOut,
    bank: options.MaybeBankFile = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--score", metavar="NAME", show_default="distance with a bank, else margin", help="As of `vicinal score`."
        ),
    ] = None,
    method: options.Method = "platt",
    risk: options.MaybeRisk = None,
    coverage: options.Coverage = None,
    fpr: options.Fpr = None,
    delta: options.Delta = 0.05,
    judged: Annotated[
        Path | None,
        typer.Option(
            "--apply", metavar="FILE", show_default=False, help="Predictions to accept or refuse, of the same network."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            show_default=False,
            help="Write what is accepted there, or without --apply the reliability: .csv, .parquet or .jsonl.",
        ),
    ] = None,
    as_json: options.AsJson = False,
    k: options.K = None,
    kernel: options.KernelName = None,
    temperature: options.Temperature = None,
    *,
    names: options.Predicted,
) -> None:
    """Find the threshold of a score that keeps a promise, and the probability of being right that it stands for."""
    from vicinal import scoring, selective, tables

    target = None if out is None else tables.check_target(out)
    settings = options.settings(k, kernel, False, temperature=temperature)
    chosen = name or ("margin" if bank is None else "distance")
    points, looked_at = options.open_bank(bank), scoring.needs([chosen])
    held_out = names.read(file, needs=("labels", "predicted", *looked_at))
    asked = None if judged is None else names.read(judged, needs=("predicted", *looked_at))
    trust = scoring.apply([chosen], held_out, points, settings)[chosen]
    goal = {"risk": risk, "coverage": coverage, "fpr": fpr}
    if risk is coverage is fpr is None:
        goal["risk"] = 0.05
    with show.cautions_as_notes():
        threshold = selective.threshold_at(trust, held_out.correct, **goal, delta=delta)
        calibration = selective.calibrate(trust, held_out.correct, method)  # type: ignore[arg-type]
    content, lines = _content(threshold, calibration), _words(threshold, calibration)
    columns = _reliability(calibration)
    if asked is not None:
        columns = _accepted(asked, scoring.apply([chosen], asked, points, settings)[chosen], threshold, calibration)
        lines.append(_count(columns))
    if target is not None:
        tables.write(target, columns)
        content["out"] = str(target)
    elif asked is not None:
        content["rows"] = show.rows(columns)
    notes = dict.fromkeys((*trust.notes, *threshold.notes, *calibration.notes))
    content["notes"] = list(notes)
    show.answer("\n".join([*lines, *(f"note: {note}" for note in notes)]), content, as_json)


def _content(threshold: Threshold, calibration: Calibration) -> dict[str, Any]:
    from dataclasses import asdict

    curve = calibration.curve
    return {
        "threshold": asdict(threshold),
        "calibration": {
            "score": calibration.score,
            "method": calibration.method,
            "predictions": calibration.n,
            "reliability": [] if curve is None else curve.records(),
        },
    }


def _reliability(calibration: Calibration) -> dict[str, Any]:
    names = ("probability", "observed", "low", "high", "counts")
    return {name: [] if calibration.curve is None else getattr(calibration.curve, name) for name in names}


def _accepted(asked: Embeddings, trust: Trust, threshold: Threshold, calibration: Calibration) -> dict[str, Any]:
    columns = show.trust_columns(trust, asked)
    columns.pop("confidence")
    return {**columns, "probability": calibration(trust), "accepted": threshold.accept(trust)}


def _count(columns: dict[str, Any]) -> str:
    accepted = columns["accepted"]
    said = f"of the {len(accepted):,} predictions to judge {int(accepted.sum()):,} are accepted"
    if "label" not in columns:
        return said
    wrong = columns["predicted"] != columns["label"]
    return f"{said}, {int((wrong & accepted).sum()):,} of them wrong; of all, {int(wrong.sum()):,}"


def _words(threshold: Threshold, calibration: Calibration) -> list[str]:
    import numpy as np

    head = f"probability of being right, by {calibration.method} of {calibration.score}"
    if calibration.curve is None:
        share = float(calibration(np.zeros(1))[0])
        return [str(threshold), f"{head}: {share:.3f} for all"]
    columns = _reliability(calibration)
    shown = {"claimed": columns["probability"], "right": columns["observed"], **columns}
    table = show.table(
        {name: shown[name] for name in ("claimed", "right", "low", "high", "counts")}, range(len(shown["low"]))
    )
    return [str(threshold), f"{head}, on predictions that it was not fitted on (95% intervals):", *table]
