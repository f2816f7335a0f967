"""For all tests: how hypothesis looks for counterexamples, and how to run a command line.

A property is no test of speed, so there are no deadlines. The tests draw the same examples every time, so that a change
is judged by what it changes; ``pytest --hypothesis-profile=explore`` draws new ones, and more.
"""

from __future__ import annotations

import shlex

import pytest
from hypothesis import settings

from vicinal.cli import main

settings.register_profile("vicinal", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=500)
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
