"""For all tests: a property is no test of speed, so hypothesis sets no deadlines; and how to run a command line."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import settings

from vicinal.cli import main

settings.register_profile("vicinal", deadline=None)
settings.load_profile("vicinal")


@pytest.fixture
def run(capsys):
    """Run one command line; its exit code, standard output and standard error."""

    def run(line):
        code = main(shlex.split(line))
        found = capsys.readouterr()
        return code, found.out, found.err

    return run


@pytest.fixture
def done(run):
    """What a command prints that must succeed and say nothing on standard error."""

    def done(line):
        code, out, err = run(line)
        assert (code, err) == (0, "")
        return out

    return done
