"""The command line: each command parses, calls one public function and prints what it gives.

    app         the Typer application, and what makes a function a command of it
    options     what several commands ask for
    show        how answers are printed, in words or as JSON
    running     one run: what came of it as an exit code and at most one line on standard error
    commands    the list of commands; one module for each

To add a command, write its module like those that are here, and name it in ``commands``.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Args:
        argv: the words after ``vicinal``; those of this process if left out.

    Returns:
        0 if all is well; 2 if something given was refused, or a file could not be read or written; 130 after Ctrl-C;
        141 if the output is not read to its end. A
        defect of vicinal shows its traceback, and the process ends with 1.
    """
    try:
        from vicinal.cli.running import run

        return run(argv)
    except KeyboardInterrupt:
        return 130
