"""Work is shared out among the cores that there are now, and breaks off together."""

from __future__ import annotations

import pytest
from threadpoolctl import threadpool_limits

from vicinal.search.threads import Halt, cores, spread


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
