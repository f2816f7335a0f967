"""Learning rates over a run."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vicinal.errors import InputError
from vicinal.learn.schedule import OneCycle, Piecewise, schedule_from_json, schedule_to_json


def test_piecewise_is_the_papers() -> None:
    paper = Piecewise(until=(30_000, 50_000, 65_000, 80_000), rates=(1e-2, 5e-3, 5e-4, 5e-5))
    at = {0: 1e-2, 29_999: 1e-2, 30_000: 5e-3, 49_999: 5e-3, 50_000: 5e-4, 64_999: 5e-4, 65_000: 5e-5, 79_999: 5e-5}
    assert {step: paper.rate(step, 80_000) for step in at} == at
    assert paper.rate(80_000, 80_000) == 5e-5


def test_warmup_climbs_in_equal_strides_to_the_first_rate() -> None:
    rates = [Piecewise(until=(10,), rates=(0.5,), warmup=4).rate(step, 10) for step in range(6)]
    np.testing.assert_allclose(rates, [0.1, 0.2, 0.3, 0.4, 0.5, 0.5])


@given(
    peak=st.floats(1e-6, 10),
    warmup=st.floats(0, 1),
    start=st.floats(0, 1),
    end=st.floats(0, 1),
    total=st.integers(1, 500),
)
def test_one_cycle_climbs_then_falls_within_its_bounds(
    peak: float, warmup: float, start: float, end: float, total: int
) -> None:
    cycle = OneCycle(peak, warmup, start, end)
    rates = np.array([cycle.rate(step, total) for step in range(total)])
    assert (rates <= peak * (1 + 1e-9)).all()
    assert (rates >= peak * min(start, end) * (1 - 1e-9)).all()
    top = int(rates.argmax())
    assert (np.diff(rates[: top + 1]) >= -1e-12 * peak).all()
    assert (np.diff(rates[top:]) <= 1e-12 * peak).all()


def test_one_cycle_against_its_formula() -> None:
    cycle, total = OneCycle(peak=2.0, warmup=0.25, start=0.1, end=0.2), 101
    rates = [cycle.rate(step, total) for step in range(total)]
    up = np.interp(np.arange(26), [0, 25], [0.2, 2.0])
    down = 0.4 + (2.0 - 0.4) * np.cos(np.linspace(0, np.pi / 2, 76)) ** 2
    np.testing.assert_allclose(rates, np.concatenate([up[:-1], down]), rtol=1e-12)


def test_one_cycle_without_warmup_begins_at_the_peak_and_all_warmup_ends_at_it() -> None:
    assert OneCycle(0.3, warmup=0.0).rate(0, 10) == 0.3
    assert OneCycle(0.3, warmup=1.0).rate(9, 10) == pytest.approx(0.3)
    assert OneCycle(0.3, warmup=0.0).rate(0, 1) == 0.3


@pytest.mark.parametrize("schedule", [Piecewise((3, 5), (0.1, 0.01), warmup=2), OneCycle(0.05, end=0.1)])
def test_json_and_back(schedule: Any) -> None:
    assert schedule_from_json(json.loads(json.dumps(schedule_to_json(schedule)))) == schedule


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Piecewise((), ()), "as many increasing steps"),
        (lambda: Piecewise((5, 3), (0.1, 0.2)), r"got \(5, 3\) for \(0.1, 0.2\)"),
        (lambda: Piecewise((3, 3), (0.1, 0.2)), "as many increasing steps"),
        (lambda: Piecewise((3,), (0.1, 0.2)), "as many increasing steps"),
        (lambda: Piecewise((0,), (0.1,)), "until: expected a whole number of at least 1"),
        (lambda: Piecewise((3,), (0.0,)), r"rates: expected a number in \(0, 1e\+09\], got 0.0"),
        (lambda: Piecewise((3,), (0.1,), warmup=-1), "warmup: expected a whole number"),
        (lambda: OneCycle(-0.1), "peak: expected a number"),
        (lambda: OneCycle(float("nan")), "peak: expected a number"),
        (lambda: OneCycle(float("inf")), "peak: expected a number"),
        (lambda: OneCycle(0.1, warmup=1.5), r"warmup: expected a number in \[0, 1\]"),
        (lambda: OneCycle(0.1, end=-0.5), "end: expected a number"),
        (lambda: schedule_from_json("fast"), "expected a mapping with a kind, got 'fast'"),
        (lambda: schedule_from_json({"kind": "one-cylce"}), "did you mean 'one-cycle'?"),
        (lambda: schedule_from_json({"kind": "one-cycle", "top": 1}), "expected the fields of OneCycle"),
    ],
)
def test_nonsense_is_refused(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
