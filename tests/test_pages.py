"""Mapped arrays: every row comes once and in order, only what is wanted is read, and nothing stays resident."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vicinal import Bank, pages

WHOLE = np.arange(600 * 7, dtype=np.float32).reshape(600, 7)


@pytest.fixture
def mapped(tmp_path):
    WHOLE.tofile(tmp_path / "raw")
    return np.memmap(tmp_path / "raw", np.float32, "r", shape=WHOLE.shape)


@given(
    start=st.integers(0, 300),
    stop=st.integers(300, 600),
    width=st.integers(1, 700),
    window=st.integers(1, 20_000),
    inside=st.booleans(),
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_all_rows_come_once_in_order_in_small_blocks(mapped, start, stop, width, window, inside):
    array = (mapped if inside else WHOLE)[start:stop]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "WINDOW", window)
        blocks = [(first, block.copy()) for first, block in pages.walk(array, width)]
    assert np.concatenate([np.empty((0, 7)), *(block for _, block in blocks)]).tolist() == array.tolist()
    assert [first for first, _ in blocks] == np.cumsum([0, *(len(block) for _, block in blocks)])[:-1].tolist()
    assert max((len(block) for _, block in blocks), default=0) <= width
    if inside:
        assert all(block.nbytes <= max(window, 28) for _, block in blocks)


@given(
    rows=st.lists(st.integers(0, 599), max_size=40),
    width=st.integers(1, 700),
    window=st.integers(28, 20_000),
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_rows_that_are_wanted_are_among_the_blocks(mapped, rows, width, window):
    asked, wanted = [], np.array(rows, np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "WINDOW", window)
        patch.setattr(pages._Pages, "expect", lambda self, one: asked.append(one))
        seen = {first + t for first, block in pages.walk(mapped, width, only=wanted) for t in range(len(block))}
    assert set(rows) <= seen
    assert sorted(row for one in asked for row in one.wanted) == sorted(set(rows))
    assert all(any(one.start <= row < one.stop for row in rows) for one in asked)


def test_what_may_be_written_to_is_not_given_back(tmp_path):
    """What was written to a private map is nowhere else."""
    WHOLE.tofile(tmp_path / "raw")
    for mode in ("c", "r+"):
        private = np.memmap(tmp_path / "raw", np.float32, mode, shape=WHOLE.shape)
        private[5] = -1
        assert not pages.is_mapped(private)
        for _, block in pages.walk(private, 100):
            block.sum()
        pages.release(private)
        assert (private[5] == -1).all()


@pytest.mark.parametrize(
    ("view", "said"),
    [
        (lambda m: m, True),
        (lambda m: np.asarray(m)[3:9], True),
        (lambda m: m[:, 2], False),
        (lambda m: m[::2], False),
        (lambda m: m[:0], False),
        (lambda m: np.array(m), False),
    ],
)
def test_views_of_a_map_are_known(mapped, view, said):
    assert pages.is_mapped(view(mapped)) == said


RESIDENT = """
import sys
import numpy as np
from vicinal import Bank, distance

def resident():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssFile")) / 1024

bank = Bank.load(sys.argv[1])
queries = np.random.default_rng(1).standard_normal((200, 512), dtype=np.float32)
small = Bank(queries, np.arange(200) % 5)  # everything is loaded and compiled
distance(small, queries, np.zeros(200, int)), distance(small, queries, np.zeros(200, int), k="all")
before, most = resident(), 0
for act in (
    lambda: distance(bank, queries, np.zeros(200, int)),
    lambda: distance(bank, queries, np.zeros(200, int), k="all"),
    lambda: bank.nearest(queries[:1]),
    lambda: bank.nearest(np.concatenate([queries, [np.full(512, 1e37)]])),
    lambda: bank.take(np.arange(0, len(bank), 99)),
    lambda: bank.remove([7]).save(sys.argv[2]),
    lambda: bank.save(sys.argv[2]),
    lambda: Bank(bank.vectors, bank.labels),
):
    act()
    most = max(most, resident() - before)
print(most)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not say what is resident")
def test_nothing_of_a_bank_in_a_file_stays_resident(tmp_path):
    vectors = np.random.default_rng(0).standard_normal((80_000, 512), dtype=np.float32)  # 156 MiB
    Bank(vectors, np.arange(80_000) % 5).save(tmp_path / "bank")
    done = subprocess.run(
        [sys.executable, "-c", RESIDENT, tmp_path / "bank", tmp_path / "other"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 24


def test_a_bank_in_a_file_answers_as_one_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "WINDOW", 5000)
    rng = np.random.default_rng(0)
    vectors, labels = rng.standard_normal((3000, 7), dtype=np.float32), rng.integers(0, 9, 3000)
    vectors[5], vectors[2990] = 900, vectors[3]
    bank = Bank(vectors, labels)
    bank.save(tmp_path / "bank")
    loaded = Bank.load(tmp_path / "bank")
    assert loaded._points.mapped
    assert not bank._points.mapped
    queries = np.concatenate([vectors[:150], rng.standard_normal((50, 7), dtype=np.float32)])
    predicted = rng.integers(0, 10, 200)
    for rows in (slice(None), slice(1)):
        for k in (1, 50):
            one = bank.nearest(queries[rows], k, predicted=predicted[rows])
            two = loaded.nearest(queries[rows], k, predicted=predicted[rows])
            assert one.indices.tobytes() == two.indices.tobytes()
            assert one.distances.tobytes() == two.distances.tobytes()
            assert one.same.indices.tobytes() == two.same.indices.tobytes()
            assert one.other.distances.tobytes() == two.other.distances.tobytes()
    one, two = (each.masses(queries, predicted, k=5)[1] for each in (bank, loaded))
    np.testing.assert_allclose(one.rest, two.rest, rtol=1e-6)  # added up in another order
    chosen = rng.permutation(3000)[:500]
    assert (loaded.take(chosen).vectors == vectors[np.sort(chosen)]).all()
