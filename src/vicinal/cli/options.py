"""What several commands ask for: types of their parameters, and groups of options that go together.

A group is a dataclass; ``vicinal.cli.app.command`` gives a command with such a parameter all the options of the group.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, overload

import typer

from vicinal.errors import InputError

if TYPE_CHECKING:
    from vicinal.bank import Bank
    from vicinal.scoring import Settings
    from vicinal.values import Embeddings

_NAMES = "What the arrays are called in the file"
_SCORE = "The score"
_PROMISE = "The promise"
_KINDS = ".safetensors, .npz, .npy or .parquet file, or a folder of .npy files"

Predictions = Annotated[
    Path, typer.Argument(metavar="FILE", show_default=False, help=f"The predictions to judge: {_KINDS}.")
]
Training = Annotated[Path, typer.Argument(metavar="FILE", show_default=False, help=f"The training points: {_KINDS}.")]
HeldOut = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        show_default=False,
        help=f"Held-out predictions with labels, of inputs that are not in the bank: {_KINDS}.",
    ),
]
BankFile = Annotated[
    Path,
    typer.Option(
        "--bank", metavar="FILE", show_default=False, help="The training points, as `vicinal bank` wrote them."
    ),
]
MaybeBankFile = Annotated[
    Path | None,
    typer.Option(
        "--bank",
        metavar="FILE",
        show_default=False,
        help="The training points, as `vicinal bank` wrote them; for the scores that look at them.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="FILE", show_default=False, help="Write the results there: .csv, .parquet or .jsonl."
    ),
]
Evaluated = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        show_default=False,
        help="Write every metric of every score there: .csv, .parquet or .jsonl; or all of the evaluation, as .json.",
    ),
]
DataRoot = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        show_default="$VICINAL_DATA, else ~/.cache/vicinal/data",
        help="The folder of all data sets.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else.")]

VectorsName = Annotated[
    str | None,
    typer.Option(
        "--vectors",
        metavar="NAME",
        rich_help_panel=_NAMES,
        show_default="vectors",
        help="The embeddings (n, d). Several columns: 'x,y' or 'x_*'.",
    ),
]
LogitsName = Annotated[
    str | None,
    typer.Option(
        "--logits",
        metavar="NAME",
        rich_help_panel=_NAMES,
        show_default="logits",
        help="The outputs before the softmax (n, c).",
    ),
]
ProbabilitiesName = Annotated[
    str | None,
    typer.Option(
        "--probabilities",
        metavar="NAME",
        rich_help_panel=_NAMES,
        show_default=False,
        help="The outputs after the softmax (n, c), instead of logits.",
    ),
]
LabelsName = Annotated[
    str | None,
    typer.Option(
        "--labels", metavar="NAME", rich_help_panel=_NAMES, show_default="labels", help="The true classes (n)."
    ),
]
PredictedName = Annotated[
    str | None,
    typer.Option(
        "--predicted",
        metavar="NAME",
        rich_help_panel=_NAMES,
        show_default="predicted, else the largest logit",
        help="The predicted classes (n).",
    ),
]
ClassesName = Annotated[
    str | None,
    typer.Option(
        "--classes",
        metavar="NAME",
        rich_help_panel=_NAMES,
        show_default="0, 1, 2, ...",
        help="The class of each column of the logits (c).",
    ),
]

K = Annotated[
    str | None,
    typer.Option(
        "--k", metavar="N|all", rich_help_panel=_SCORE, show_default="50", help="How many neighbours; or all points."
    ),
]
KernelName = Annotated[
    str | None,
    typer.Option(
        "--kernel",
        metavar="NAME",
        rich_help_panel=_SCORE,
        show_default="exp",
        help="The weight of a neighbour: exp, count or inverse.",
    ),
]
ExcludeSelf = Annotated[
    bool,
    typer.Option(
        "--exclude-self",
        rich_help_panel=_SCORE,
        help="The predictions are of the bank's own points, in their order: leave each out of its neighbours.",
    ),
]
Unit = Annotated[bool, typer.Option("--unit", rich_help_panel=_SCORE, help="kth_distance: measure on the unit sphere.")]
Relative = Annotated[
    bool, typer.Option("--relative", rich_help_panel=_SCORE, help="mahalanobis: relative to all points together.")
]
Temperature = Annotated[
    float | None,
    typer.Option(
        "--temperature",
        metavar="T",
        rich_help_panel=_SCORE,
        show_default="1",
        help="Divide the logits by this, for the scores that look at them.",
    ),
]


def _promise(flag: str, help: str, default: bool | str = True) -> Any:
    return typer.Option(flag, metavar="P", rich_help_panel=_PROMISE, show_default=default, help=help)


_RISK = "At most this share of the accepted predictions is wrong."
Risk = Annotated[float, _promise("--risk", _RISK)]
MaybeRisk = Annotated[float | None, _promise("--risk", _RISK, "0.05, without another promise")]
Coverage = Annotated[
    float | None, _promise("--coverage", "Or: at least this share of all predictions is accepted.", False)
]
Fpr = Annotated[float | None, _promise("--fpr", "Or: at most this share of the wrong predictions is accepted.", False)]
FalseAlarms = Annotated[
    float, _promise("--false-alarms", "At most this share of the inputs of known classes is called novel.")
]
Delta = Annotated[float, _promise("--delta", "How improbable it is that the promise does not hold.")]
Method = Annotated[
    str, typer.Option("--method", metavar="NAME", help="From score to probability: platt, isotonic or beta.")
]
Neighbors = Annotated[int, typer.Option("--k", metavar="N", help="How many neighbours.")]


@dataclass(frozen=True)
class Outputs:
    """What a file calls the arrays that a network gives for some inputs."""

    vectors: VectorsName = None
    logits: LogitsName = None
    probabilities: ProbabilitiesName = None
    labels: LabelsName = None
    classes: ClassesName = None

    def read(self, file: Path, *, needs: Iterable[str] = (), skips: Iterable[str] = ()) -> Embeddings:
        """The arrays of a file; those it needs must be there, those it skips are left out."""
        from vicinal import tables

        return tables.read(file, tables.Names(**asdict(self)), needs=needs, skips=skips)


@dataclass(frozen=True)
class Predicted(Outputs):
    """These, and the classes predicted."""

    predicted: PredictedName = None


@dataclass(frozen=True)
class Scoring:
    """How a score is computed."""

    k: K = None
    kernel: KernelName = None
    exclude_self: ExcludeSelf = False
    unit: Unit = False
    relative: Relative = False
    temperature: Temperature = None

    @property
    def settings(self) -> Settings:
        """The same, checked."""
        return settings(**asdict(self))


def settings(
    k: str | None,
    kernel: str | None,
    exclude_self: bool,
    unit: bool = False,
    relative: bool = False,
    temperature: float | None = None,
) -> Settings:
    """How to score, as the options say it."""
    from vicinal import checks
    from vicinal.mass import KERNELS
    from vicinal.scoring import Settings

    weight = None if kernel is None else checks.one_of(kernel, "kernel", KERNELS)
    return Settings(_number_or_all(k), weight, exclude_self, unit, relative, temperature)


@overload
def open_bank(path: Path) -> Bank: ...
@overload
def open_bank(path: Path | None) -> Bank | None: ...
def open_bank(path: Path | None) -> Bank | None:
    """The bank of ``--bank``."""
    from vicinal.bank import Bank

    if path is None:
        return None
    if path.suffix != ".safetensors":
        raise InputError(
            f"{path}: expected a bank, which ends in .safetensors, got {path.suffix or 'no ending'!r}; "
            "make one with: vicinal bank FILE --out bank.safetensors"
        )
    return Bank.load(path)


def read_lines(path: Path) -> list[str]:
    """The lines of a text file, without the blanks around them."""
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: expected a text file in UTF-8, got other bytes") from error


def refuse_both(first: str, one: object, second: str, other: object) -> None:
    """Refuse two options that say different things."""
    if one is not None and other is not None:
        raise InputError(f"{first}, {second}: expected one of the two, got both")


def _number_or_all(k: str | None) -> int | Literal["all"] | None:
    if k is None or k == "all":
        return k  # type: ignore[return-value]
    try:
        return int(k)
    except ValueError:
        raise InputError(f"k: expected a whole number or 'all', got {k!r}") from None
