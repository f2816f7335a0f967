"""``vicinal evaluate``."""

from __future__ import annotations

from typing import Annotated

import typer

from vicinal.cli import options, show
from vicinal.cli.app import command

__all__ = ["evaluate"]

_INTERVALS = "The metrics"


@command(
    "vicinal evaluate test.npz --score margin --score entropy",
    "vicinal evaluate test.npz --bank bank.safetensors --out metrics.csv",
)
def evaluate(
    file: options.Predictions,
    bank: options.MaybeBankFile = None,
    scores: Annotated[
        list[str] | None,
        typer.Option(
            "--score",
            metavar="NAME",
            show_default="distance with a bank; margin and entropy with logits",
            help="A score, as of `vicinal score`; give several to compare them.",
        ),
    ] = None,
    out: options.Evaluated = None,
    as_json: options.AsJson = False,
    samples: Annotated[
        int, typer.Option("--samples", metavar="N", rich_help_panel=_INTERVALS, help="How many bootstrap samples.")
    ] = 2000,
    seed: Annotated[int, typer.Option("--seed", metavar="N", rich_help_panel=_INTERVALS, help="Of the samples.")] = 0,
    level: Annotated[
        float, typer.Option("--level", metavar="P", rich_help_panel=_INTERVALS, help="Of the intervals.")
    ] = 0.95,
    coverage: Annotated[
        float,
        typer.Option("--coverage", metavar="P", rich_help_panel=_INTERVALS, help="Where to read the risk."),
    ] = 0.8,
    risk: Annotated[
        float,
        typer.Option("--risk", metavar="P", rich_help_panel=_INTERVALS, help="Where to read the coverage."),
    ] = 0.05,
    bins: Annotated[int, typer.Option("--bins", metavar="N", rich_help_panel=_INTERVALS, help="Of ECE.")] = 15,
    *,
    how: options.Scoring,
    names: options.Predicted,
) -> None:
    """Say how well scores tell right predictions from wrong ones, with intervals and paired tests."""
    from vicinal import scoring, tables
    from vicinal.evaluation import evaluate as measure

    target = None if out is None else tables.check_target(out, (*tables.ENDINGS, ".json"))
    needed = ("labels", "predicted", *scoring.needs(scores or ()))
    inputs = names.read(file, needs=needed)
    points = options.open_bank(bank)
    trusts = scoring.apply(scores or scoring.default_scores(inputs, points), inputs, points, how.settings)
    found = measure(inputs, trusts, samples=samples, seed=seed, level=level, coverage=coverage, risk=risk, bins=bins)
    show.save_evaluation(found, target)
    show.answer(show.evaluation(found), found.to_json(), as_json)
