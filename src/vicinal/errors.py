"""The errors that vicinal raises, all under one roof.

    VicinalError
    ├── InputError         an argument that cannot be used             (also a ValueError)
    │   └── ShapeError     ... because of its shape or length
    ├── FileError          a file that is not what it should be        (also a ValueError)
    ├── WriteError         a file that cannot be written               (also an OSError)
    ├── MissingDataError   a data set that is not on this machine      (also a FileNotFoundError)
    ├── MissingExtraError  an optional dependency is not installed     (also an ImportError)
    └── DivergedError      a training run whose loss is no number      (also an ArithmeticError)

Each message says what was expected, of what, what came, and what to do. The command line prints it as one line and
exits with 2; anything that is not a ``VicinalError`` is a defect of vicinal and shows its traceback.
"""

from __future__ import annotations

import importlib
from types import ModuleType

__all__ = [
    "DivergedError",
    "FileError",
    "InputError",
    "MissingDataError",
    "MissingExtraError",
    "ShapeError",
    "VicinalError",
    "WriteError",
    "require",
]


class VicinalError(Exception):
    """Anything that vicinal refuses; catch this to catch all of it."""


class InputError(VicinalError, ValueError):
    """An argument that cannot be used as it is."""


class ShapeError(InputError):
    """An array of the wrong shape, or arrays of different lengths."""


class FileError(VicinalError, ValueError):
    """A file that is truncated, of another kind, or of a newer version."""


class WriteError(VicinalError, OSError):
    """A file that cannot be written: a full disk, no permission; what was there before is whole."""


class MissingDataError(VicinalError, FileNotFoundError):
    """A data set that is not under the data root."""


class MissingExtraError(VicinalError, ImportError):
    """An optional dependency that is not installed."""


class DivergedError(VicinalError, ArithmeticError):
    """A training run whose loss is no longer a number."""


def require(module: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional dependency, or say which command installs it.

    Args:
        module: what to import, such as ``"matplotlib.pyplot"``.
        extra: the extra of vicinal that brings it.
        purpose: what needs it, as the subject of a sentence.

    Example:
        >>> require("no_such_module", "plots", "a plot")
        Traceback (most recent call last):
        ...
        vicinal.errors.MissingExtraError: a plot needs no_such_module; install it with: pip install 'vicinal[plots]'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        top = module.partition(".")[0]
        raise MissingExtraError(f"{purpose} needs {top}; install it with: pip install 'vicinal[{extra}]'") from error
