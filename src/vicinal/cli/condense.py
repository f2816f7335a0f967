"""``vicinal condense``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vicinal.cli import options, show
from vicinal.cli.app import command

if TYPE_CHECKING:
    from vicinal.condensation import CondensationCurve

__all__ = ["condense"]

_CURVE = "The curve"


@command(
    "vicinal condense bank.safetensors --share 0.05 --out small.safetensors",
    "vicinal condense bank.safetensors --curve test.npz --picture curve.png",
)
def condense(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", show_default=False, help="The training points, as `vicinal bank` wrote them."),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", show_default=False, help="Write the smaller bank there: .safetensors."),
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            metavar="NAME",
            show_default="distilled; of the curve, k-means and random too",
            help="distilled, k-means, medoids, k-centres, density, hart or random; several for the curve.",
        ),
    ] = None,
    share: Annotated[float, typer.Option("--share", metavar="P", help="How much of each class to keep.")] = 0.05,
    unweighted: Annotated[
        bool, typer.Option("--unweighted", help="Each kept point counts once, however many it stands for.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of whatever is drawn.")] = 0,
    curve: Annotated[
        Path | None,
        typer.Option(
            "--curve",
            metavar="FILE",
            rich_help_panel=_CURVE,
            show_default=False,
            help="Measure what condensing costs on these predictions, with labels, of inputs not in the bank.",
        ),
    ] = None,
    shares: Annotated[
        str,
        typer.Option("--shares", metavar="P,P,...", rich_help_panel=_CURVE, help="The shares that are measured."),
    ] = "0.01,0.02,0.05,0.1,0.2",
    picture: Annotated[
        Path | None,
        typer.Option(
            "--picture",
            metavar="FILE",
            rich_help_panel=_CURVE,
            show_default=False,
            help="Draw its AUROC there: .png, .pdf, .svg or .jpg.",
        ),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(
            "--figures",
            metavar="FILE",
            rich_help_panel=_CURVE,
            show_default=False,
            help="Write its figures there: .csv, .parquet or .jsonl; or all of it, as .json.",
        ),
    ] = None,
    as_json: options.AsJson = False,
    *,
    names: options.Predicted,
) -> None:
    """Keep a few points that stand for a whole bank, and say what that costs."""
    from vicinal import tables

    _check(out, methods or [], curve, picture, figures)
    target = None if out is None else tables.check_target(out, (".safetensors",))
    written = None if figures is None else tables.check_target(figures, (*tables.ENDINGS, ".json"))
    asked = None if curve is None else names.read(curve, needs=["labels", "predicted"])
    bank, how = options.open_bank(file), {"weighted": not unweighted, "seed": seed}
    content: dict[str, Any] = {}
    lines = []
    if target is not None:
        from vicinal import condense as smaller

        found = smaller(bank, (methods or ["distilled"])[0], share, **how)  # type: ignore[arg-type]
        found.bank.save(target)
        content |= {"bank": str(target), "method": found.method, "points": len(found), "of": len(bank), "k": found.k}
        said = f"{len(found):,} points stand for {len(bank):,}, by {found.method}; ask for k = {found.k} neighbours"
        lines.append(f"{target}: {said}")
    if asked is not None:
        from vicinal.condensation import condensation_curve

        chosen = methods or ["distilled", "k-means", "random"]
        measured = condensation_curve(bank, asked, chosen, _shares(shares), **how)  # type: ignore[arg-type]
        _keep(measured, written, picture)
        content["curve"] = measured.to_json()
        lines.append(str(measured))
    show.answer("\n\n".join(lines), content, as_json)


def _check(
    out: Path | None, methods: list[str], curve: Path | None, picture: Path | None, figures: Path | None
) -> None:
    """Refuse options that do not go together."""
    from vicinal.errors import InputError

    if out is None and curve is None:
        raise InputError("--out, --curve: expected at least one: where to write the bank, or what to measure it on")
    if curve is None and not (picture is None and figures is None):
        raise InputError("--picture, --figures: expected with --curve, the predictions to measure on")
    if out is not None and len(methods) > 1:
        raise InputError(f"--method: expected one with --out, got {len(methods)}: {', '.join(methods)}")


def _shares(words: str) -> list[float]:
    from vicinal.errors import InputError

    try:
        return [float(word) for word in words.split(",")]
    except ValueError:
        raise InputError(f"--shares: expected numbers and commas, such as 0.01,0.05, got {words!r}") from None


def _keep(measured: CondensationCurve, figures: Path | None, picture: Path | None) -> None:
    """Write the figures and the picture that are wanted."""
    if figures is not None and figures.suffix == ".json":
        measured.save(figures)
    elif figures is not None:
        from vicinal import tables

        rows = measured.rows()
        tables.write(figures, {name: [row[name] for row in rows] for name in rows[0]})
    if picture is not None:
        from vicinal import plots

        plots.save(plots.condensation(measured), picture)
