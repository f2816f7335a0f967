"""``vicinal ensemble``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vicinal.cli import options, show
from vicinal.cli.app import command
from vicinal.errors import InputError

if TYPE_CHECKING:
    from vicinal.checks import Integers
    from vicinal.ensemble import Combined, Member
    from vicinal.values import Embeddings

__all__ = ["ensemble"]


@command(
    "vicinal ensemble test.npz second.npz --rule majority",
    "vicinal ensemble test.npz second.npz --rule dictator --by margin --out all.csv",
)
def ensemble(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            show_default=False,
            help="What each network says of the same inputs, in the same order: files with logits.",
        ),
    ],
    banks: Annotated[
        list[Path] | None,
        typer.Option(
            "--bank",
            metavar="FILE",
            show_default=False,
            help="The training points of each network, in the order of the files.",
        ),
    ] = None,
    rule: Annotated[
        str, typer.Option("--rule", metavar="NAME", help="average, majority, weighted, confidence_vote or dictator.")
    ] = "average",
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="NAME",
            show_default=False,
            help="How sure each network is, for the last three rules: margin, entropy, or distance with banks.",
        ),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            "--judge",
            metavar="NAME",
            show_default="summed with banks, else softmax",
            help="How far to trust what they decide: softmax, own, summed or hybrid.",
        ),
    ] = None,
    embedding: Annotated[
        str | None,
        typer.Option(
            "--embedding", metavar="FILE", show_default=False, help="hybrid: the network whose embedding it looks at."
        ),
    ] = None,
    out: options.Out = None,
    as_json: options.AsJson = False,
    k: options.Neighbors = 50,
    *,
    names: options.Outputs,
) -> None:
    """Let several networks decide together, and say how far to trust what they decide."""
    from vicinal import tables
    from vicinal.ensemble import combine
    from vicinal.ensemble import judge as judged_by

    target = None if out is None else tables.check_target(out)
    inputs = [names.read(file, needs=["logits"], skips=["predicted"]) for file in files]
    members = _members(files, inputs, banks, k)
    truth = _shared_labels(files, inputs)
    combined = combine(members, rule, by=by)  # type: ignore[arg-type]
    how = judge or ("summed" if banks else "softmax")
    trust = judged_by(members, combined.predicted, how, embedding=embedding, k=k)  # type: ignore[arg-type]
    columns: dict[str, Any] = {"row": combined.rows, "predicted": combined.predicted}
    if truth is not None:
        columns["label"] = truth
    columns |= {"tied": combined.tied, "confidence": trust.confidence, "log_odds": trust.log_odds}
    content: dict[str, Any] = {
        "rule": rule,
        "by": by,
        "judge": how,
        "networks": [member.name for member in members],
        "inputs": len(combined),
        "accuracy": _accuracies(members, combined, truth),
        "notes": trust.notes,
    }
    if target is None:
        content["rows"] = show.rows(columns)
    else:
        tables.write(target, columns)
        content["out"] = str(target)
    show.answer(_words(content, int(combined.tied.sum()), show.trust_lines(trust, columns)), content, as_json)


def _members(files: list[Path], inputs: list[Embeddings], banks: list[Path] | None, k: int) -> list[Member]:
    from vicinal.ensemble import Member

    if banks and len(banks) != len(files):
        raise InputError(f"--bank: expected {len(files)}, one for each network, or none, got {len(banks)}")
    points = [options.open_bank(bank) for bank in banks] if banks else [None] * len(files)
    parts = zip(files, inputs, points, strict=True)
    return [Member.of(str(file), embeddings, bank, k=k) for file, embeddings, bank in parts]


def _shared_labels(files: list[Path], inputs: list[Embeddings]) -> Integers | None:
    """The labels of the inputs, from the files that have them; they must agree."""
    import numpy as np

    known = [(file, one.labels) for file, one in zip(files, inputs, strict=True) if one.labels is not None]
    for file, labels in known[1:]:
        if not np.array_equal(labels, known[0][1]):
            raise InputError(
                f"{file}: expected the labels of {known[0][0]}: the same inputs in the same order, got others"
            )
    return known[0][1] if known else None


def _accuracies(members: list[Member], combined: Combined, truth: Integers | None) -> dict[str, float]:
    if truth is None:
        return {}
    alone = {member.name: float((member.predicted == truth).mean()) for member in members}
    return {**alone, "together": float((combined.predicted == truth).mean())}


def _words(content: dict[str, Any], tied: int, trusted: str) -> str:
    by = f" by {content['by']}" if content["by"] else ""
    ties = f"; {tied:,} ties" if tied else ""
    lines = [
        f"{len(content['networks'])} networks decide by {content['rule']}{by} of {content['inputs']:,} inputs{ties}"
    ]
    lines += [f"accuracy {value:.3f}  {name}" for name, value in content["accuracy"].items()]
    return "\n".join([*lines, trusted])
