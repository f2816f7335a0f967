"""Progress bars appear on a terminal after two seconds, and nowhere else."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest

from vicinal import progress


class Terminal(io.StringIO):
    """Standard error of someone who watches."""

    def isatty(self) -> bool:
        return True


def watch(monkeypatch) -> Terminal:
    """Within a test: pytest puts its own standard error back between the fixtures and the test."""
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    return screen


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is set."""

    class Clock:
        now = 0.0

    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: Clock.now))
    return Clock


def slow(clock, count, seconds):
    for item in range(count):
        clock.now += seconds
        yield item


def test_what_is_quick_shows_nothing(monkeypatch, clock):
    terminal = watch(monkeypatch)
    assert list(progress.track(slow(clock, 10, 0.1), "searching", total=10)) == list(range(10))
    assert terminal.getvalue() == ""


def test_what_is_slow_says_how_far_it_is(monkeypatch, clock):
    terminal = watch(monkeypatch)
    assert list(progress.track(slow(clock, 10, 0.5), "searching", total=10, note=lambda: "loss 0.3")) == list(range(10))
    shown = terminal.getvalue()
    assert "searching loss 0.3" in shown
    assert "/10" in shown


def test_a_list_knows_its_length(monkeypatch, clock):
    terminal = watch(monkeypatch)
    for _ in progress.track([1, 2, 3, 4, 5], "adding"):
        clock.now += 1.0
    assert "/5" in terminal.getvalue()


def test_nobody_watching_sees_nothing(monkeypatch, clock):
    page = io.StringIO()
    monkeypatch.setattr(sys, "stderr", page)
    assert list(progress.track(slow(clock, 10, 1.0), "searching")) == list(range(10))
    assert page.getvalue() == ""


def test_a_process_without_standard_error_goes_on(monkeypatch, clock):
    monkeypatch.setattr(sys, "stderr", None)
    assert list(progress.track(slow(clock, 3, 1.0), "searching")) == [0, 1, 2]


def test_the_bar_is_cleared_when_the_work_breaks_off(monkeypatch, clock):
    terminal = watch(monkeypatch)

    def broken():
        yield from slow(clock, 5, 1.0)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(progress.track(broken(), "dividing", total=9))
    assert "/9" in terminal.getvalue()
    assert terminal.getvalue().endswith("\x1b[2K")  # the line is erased
