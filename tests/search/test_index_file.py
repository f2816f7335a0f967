"""The file of an index: back as it went, refused if it is another bank's, built again if it is damaged."""

from __future__ import annotations

import hashlib
import logging
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from vicinal import Bank
from vicinal.errors import FileError, WriteError
from vicinal.guard import folder
from vicinal.search import building, index_file, tuning

RNG = np.random.default_rng(0)
VECTORS = RNG.standard_normal((1_500, 8), dtype=np.float32) / np.arange(1, 9, dtype=np.float32)
LABELS = RNG.integers(0, 5, 1_500)
ASKED = VECTORS[:100] + np.float32(0.01)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Small banks have an index too; how often one is built is counted."""
    monkeypatch.setattr(building, "_FEW", 500)
    monkeypatch.setattr(tuning, "_QUERIES", 64)
    built = []
    build = building.build
    monkeypatch.setattr(building, "build", lambda *args: built.append(1) or build(*args))
    return built


@pytest.fixture
def bank():
    return Bank(VECTORS, LABELS, search="approximate", recall=0.9)


def load(path, recall=0.9):
    return Bank.load(path, search="approximate", recall=recall)


def assert_same(one, two):
    near, again = (each.nearest(ASKED, 20, predicted=LABELS[:100]) for each in (one, two))
    assert (near.indices == again.indices).all()
    assert (near.distances == again.distances).all()
    assert (near.other.indices == again.other.indices).all()
    assert near.recall == again.recall


def test_a_bank_comes_back_with_its_index_which_is_not_built_again(bank, tmp_path, small):
    bank.save(tmp_path / "b.safetensors")
    assert sorted(os.listdir(tmp_path)) == ["b.index.safetensors", "b.safetensors"]
    small.clear()
    again = load(tmp_path / "b.safetensors")
    assert_same(bank, again)
    assert again.measured() == bank.measured()
    assert_same(bank, Bank.load(tmp_path / "b.safetensors", search="approximate", recall=0.8))
    assert small == []


def test_removed_points_are_not_written_and_added_ones_are(bank, tmp_path, small):
    changed = bank.remove(np.arange(0, 60, 2)).add(ASKED[:70], LABELS[:70])
    changed.save(tmp_path / "b")
    small.clear()
    again = load(tmp_path / "b")
    assert_same(changed, again)
    assert small == []
    assert again.remove(np.arange(100, 150))._search.moved == 150, "what came and went before is not forgotten"


def test_an_index_that_finds_less_than_is_asked_for_is_built_again(bank, tmp_path, small):
    bank.save(tmp_path / "b")
    small.clear()
    assert load(tmp_path / "b", recall=0.999).measured().recall >= 0.999
    assert small


def test_other_searches_neither_write_an_index_nor_look_at_one(tmp_path, small):
    Bank(VECTORS, LABELS).save(tmp_path / "b")
    assert os.listdir(tmp_path) == ["b"]
    (tmp_path / "b.index").write_bytes(b"no index")
    assert Bank.load(tmp_path / "b").measured() is None
    assert small == []


@pytest.mark.parametrize(
    "other",
    [
        lambda: Bank(VECTORS[::-1], LABELS, search="approximate", recall=0.9),
        lambda: Bank(VECTORS + np.float32(1), LABELS, search="approximate", recall=0.9),
        lambda: Bank(VECTORS[1:], LABELS[1:], search="approximate", recall=0.9),
        lambda: Bank(-VECTORS, LABELS, search="approximate", recall=0.9),
    ],
    ids=["another order", "moved", "fewer", "mirrored"],
)
def test_the_index_of_another_bank_is_refused_and_built_again(bank, other, tmp_path, small, caplog):
    bank.save(tmp_path / "b")
    other().save(tmp_path / "c")
    os.replace(tmp_path / "c.index", tmp_path / "b.index")
    with pytest.raises(FileError, match="expected the index of this bank, got that of another"):
        index_file.read(tmp_path / "b.index", bank._points)
    small.clear()
    with caplog.at_level(logging.WARNING):
        assert_same(bank, load(tmp_path / "b"))
    assert small == [1]
    assert "b.index: expected the index of this bank" in caplog.text


def test_other_labels_of_the_same_points_have_the_same_index(bank, tmp_path, small):
    bank.save(tmp_path / "b")
    Bank(VECTORS, LABELS[::-1]).save(tmp_path / "b")
    small.clear()
    near = load(tmp_path / "b").nearest(ASKED, 5)
    assert (near.labels == LABELS[::-1][near.indices]).all()
    assert small == []


def test_a_file_cut_short_or_changed_is_refused_or_harmless(bank, tmp_path, caplog):
    bank.save(tmp_path / "b")
    whole = (tmp_path / "b.index").read_bytes()
    for size in [0, 5, 100, 3000, *range(5000, len(whole), 9001)]:
        (tmp_path / "b.index").write_bytes(whole[:size])
        with pytest.raises(FileError, match=r"b\.index: expected"):
            index_file.read(tmp_path / "b.index", bank._points)
    rng = np.random.default_rng(1)
    header = 8 + int.from_bytes(whole[:8], "little")
    for place in rng.integers(0, len(whole), 150).tolist() + rng.integers(0, header, 150).tolist():
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(rng.integers(8))
        (tmp_path / "b.index").write_bytes(damaged)
        try:
            search = index_file.read(tmp_path / "b.index", bank._points)
        except FileError:
            continue
        found = search.nearest(ASKED, 5)
        assert ((found.places >= 0) & (found.places < 1_500)).all()


def test_the_fingerprint_is_of_the_living_points(bank):
    left = bank.remove([3])
    assert index_file.fingerprint(left._points) != index_file.fingerprint(bank._points)
    assert len(index_file.fingerprint(bank._points)) == len(hashlib.sha256().hexdigest())


def test_the_fingerprint_tells_points_from_their_mirror_images():
    """Whose lengths and centre are the same."""
    half = RNG.integers(-9, 9, (200, 4)).astype(np.float32)
    both = np.concatenate([half, -half])
    marks = {index_file.fingerprint(Bank(part, np.zeros(400))._points) for part in (both, -both)}
    assert len(marks) == 2


KILLED = """
import os, signal, sys
import numpy as np
from vicinal import Bank, store
from vicinal.search import building, tuning

building._FEW, tuning._QUERIES = 500, 64
path, where = sys.argv[1:]
bank = Bank.load(path, search="approximate", recall=0.9).remove([7])
left = int(where)
write = store.write_rows
def dying(file, rows):
    global left
    left -= 1
    write(file, rows if left else rows[: len(rows) // 2])
    if not left:
        file.flush()
        os.kill(os.getpid(), signal.SIGKILL)
store.write_rows = dying
bank.save(path)
"""


@pytest.mark.parametrize("where", [1, 4, 6, 11])
def test_a_save_that_is_killed_leaves_a_bank_that_opens_and_answers(bank, tmp_path, where):
    """Killed in the bank, both files are the old ones; killed in the index, that is of another bank and built again."""
    bank.save(tmp_path / "b")
    done = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "b", str(where)], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr
    again = load(tmp_path / "b")
    assert len(again) == 1_500 if where < 6 else 1_499
    assert_same(again, load(tmp_path / "b"))


FULL = """
import resource, sys
from vicinal import Bank
from vicinal.search import building, tuning

building._FEW, tuning._QUERIES = 500, 64
bank = Bank.load(sys.argv[1], search="approximate", recall=0.9)
resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))
try:
    building.save(sys.argv[1], bank._search)
except OSError as error:
    print(type(error).__name__, error)
"""


def test_a_full_disk_leaves_the_old_index_whole(bank, tmp_path):
    bank.save(tmp_path / "b")
    before = (tmp_path / "b.index").read_bytes()
    assert len(before) > 30_000
    said = subprocess.run([sys.executable, "-c", FULL, tmp_path / "b"], capture_output=True, text=True, check=True)
    assert said.stdout.startswith(f"{WriteError.__name__} {tmp_path / 'b.index'}: expected to write it, got: File too")
    assert (tmp_path / "b.index").read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["b", "b.index"]


def test_a_guard_keeps_the_index_of_its_bank_and_removes_it_with_it(bank, tmp_path):
    for _ in range(2):
        folder.write(tmp_path / "guard", bank, {}, {})
        names = sorted(os.listdir(tmp_path / "guard"))
        assert [name.partition("-")[0] for name in names] == ["arrays", "bank", "bank", "guard.json"]
        folder.check_folder(tmp_path / "guard")
