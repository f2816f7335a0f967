"""``vicinal score``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from vicinal.cli import options, show
from vicinal.cli.app import command

__all__ = ["score"]


@command(
    "vicinal score test.npz --score margin",
    "vicinal score test.npz --bank bank.safetensors --k 50 --out trust.csv",
)
def score(
    file: options.Predictions,
    bank: options.MaybeBankFile = None,
    name: Annotated[
        str,
        typer.Option(
            "--score",
            metavar="NAME",
            help="distance, kth_distance, trust_ratio or mahalanobis, with a bank; "
            "margin, entropy, top_two_gap, max_logit or energy, with logits.",
        ),
    ] = "distance",
    out: options.Out = None,
    as_json: options.AsJson = False,
    *,
    how: options.Scoring,
    names: options.Predicted,
) -> None:
    """Say how far each prediction can be trusted, by one score. Larger is more trustworthy; rank by log_odds."""
    from vicinal import scoring, tables

    target = None if out is None else tables.check_target(out)
    inputs = names.read(file, needs=scoring.needs([name]))
    trust = scoring.apply([name], inputs, options.open_bank(bank), how.settings)[name]
    columns = show.trust_columns(trust, inputs)
    content: dict[str, Any] = {"score": name, "predictions": len(trust), "notes": trust.notes}
    if target is None:
        content["rows"] = show.rows(columns)
    else:
        tables.write(target, columns)
        content["out"] = str(target)
    show.answer(show.trust_lines(trust, columns), content, as_json)
