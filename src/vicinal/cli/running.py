"""One run of the command line, from its words to its exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import typer

from vicinal.errors import VicinalError

__all__ = ["run"]

_REFUSED = 2
_INTERRUPTED = 130
_NOT_READ = 141  # as of a program that ends by SIGPIPE
# What Typer raises for words it cannot use: the class has no public name, but stands above BadParameter.
_USAGE: type[Any] = next(one for one in typer.BadParameter.__mro__ if one.__name__ == "ClickException")


def run(argv: Sequence[str] | None) -> int:
    """Run a command; anything refused becomes one line on standard error."""
    words = list(sys.argv[1:] if argv is None else argv)
    if sys.stdout is None:  # closed by whoever started us
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  for as long as the process lives
    if "GITHUB_ACTIONS" in os.environ:  # where Typer colours its help even if no terminal shows it
        os.environ.setdefault("_TYPER_FORCE_DISABLE_TERMINAL", "1")
    from vicinal.cli.commands import app

    try:
        code = int(app(words or ["--help"], prog_name="vicinal", standalone_mode=False) or 0)
        sys.stdout.flush()
        return code
    except VicinalError as error:
        return _refuse(str(error))
    except (BrokenPipeError, SystemExit):  # the second is what Typer makes of the first
        _forget_output()
        return _NOT_READ
    except OSError as error:
        return _refuse(f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error))
    except _USAGE as error:
        path = error.ctx.command_path if getattr(error, "ctx", None) else "vicinal"
        return _refuse(f"{error.format_message()} ({path} --help says more)")
    except typer.Abort:
        return _INTERRUPTED


def _refuse(message: str) -> int:
    if sys.stderr is not None:
        print(f"vicinal: {' '.join(message.split())}", file=sys.stderr)
    return _REFUSED


def _forget_output() -> None:
    """Nobody reads any more: what is still to be written must not raise once more when the process ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
