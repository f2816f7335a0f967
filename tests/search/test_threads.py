"""Work is shared out among the cores that there are now, and breaks off together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from vicinal.search.threads import Halt, cores, rounds, spread


def test_an_interrupted_piece_of_work_tells_the_others_to_stop():
    started, told = Halt(), []

    def work(item, halt):
        if item == "interrupted":
            started.wait(30)
            raise KeyboardInterrupt
        started.set()
        told.append(halt.wait(30))

    if cores() < 2:
        pytest.skip("needs two cores, to be in two pieces of work at once")
    with pytest.raises(KeyboardInterrupt):
        spread(work, ["interrupted", "going on"])
    assert told == [True]


def test_cores_are_as_many_as_the_matrix_library_may_use_now():
    before = cores()
    with threadpool_limits(1, user_api="blas"):
        assert cores() == 1
    assert cores() == before


def test_while_cores_are_shared_out_each_piece_still_knows_how_many_there_are():
    before = cores()
    assert spread(lambda item, halt: (item, cores()), [1, 2, 3]) == [(1, before), (2, before), (3, before)]
    assert cores() == before


@given(st.integers(0, 500), st.integers(1, 60), st.integers(1, 5))
def test_rounds_hold_every_row_once_in_slices_of_one_size(m, most, together):
    found = rounds(m, most, together)
    slices = [one for batch in found for one in batch]
    assert [row for one in slices for row in range(one.start, one.stop)] == list(range(m))
    sizes = [one.stop - one.start for one in slices]
    assert max(sizes, default=0) <= most
    assert len(set(sizes[:-1])) <= 1
    assert all(len(batch) == together for batch in found[:-1])
    assert len(found) == -(-m // (most * together)) or m < together * len(found)


def test_an_error_of_a_helper_reaches_the_caller_and_no_more_work_begins():
    begun = []

    def work(item, halt):
        begun.append(item)
        if item == 1:
            raise ZeroDivisionError
        halt.wait(30)

    if cores() < 2:
        pytest.skip("needs two cores, to be in two pieces of work at once")
    with pytest.raises(ZeroDivisionError):
        spread(work, range(50))
    assert len(begun) <= cores() + 1
