"""A bank's file from a stream: the same bytes as if it had been saved whole, whatever interrupts the writing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from vicinal import Bank, stream
from vicinal.errors import FileError, InputError, ShapeError, WriteError

RNG = np.random.default_rng(0)
VECTORS, LABELS = RNG.standard_normal((1_000, 6), dtype=np.float32), RNG.integers(-2, 5, 1_000)
VECTORS[17] *= 1_000  # an outlier moves the centre
SIZES = (1, 99, 300, 300, 200, 100)


def chunks(sizes=SIZES, vectors=VECTORS, labels=LABELS):
    ends = np.cumsum(sizes)
    return [(vectors[end - size : end], labels[end - size : end]) for size, end in zip(sizes, ends, strict=True)]


def stopping(count, error=KeyboardInterrupt, **options):
    """The first chunks, and then an error."""
    yield from chunks(**options)[:count]
    raise error


@pytest.fixture
def whole(tmp_path):
    """The bytes of the file that ``save`` writes."""
    Bank(VECTORS, LABELS, facts={"net": "x"}).save(tmp_path / "whole")
    found = (tmp_path / "whole").read_bytes()
    (tmp_path / "whole").unlink()
    return found


def build(path, given, **options):
    return Bank.from_stream(path, given, facts={"net": "x"}, **options)


@pytest.mark.parametrize("sizes", [SIZES, (1_000,), (1,) * 1_000])
@pytest.mark.parametrize("given", [list, iter, lambda parts: lambda start: parts])
def test_a_stream_becomes_the_file_that_save_writes(sizes, given, tmp_path, whole, monkeypatch):
    monkeypatch.setattr(stream, "_SAFE", 20_000)
    bank = build(tmp_path / "b", given(chunks(sizes)))
    assert (tmp_path / "b").read_bytes() == whole
    assert os.listdir(tmp_path) == ["b"]
    near, true = (each.nearest(VECTORS[:5], 3) for each in (bank, Bank(VECTORS, LABELS)))
    assert (near.indices == true.indices).all()


def test_lists_and_other_types_will_do(tmp_path):
    bank = Bank.from_stream(tmp_path / "b", [([[1, 2]], [3]), (np.ones((2, 2)), np.array([4.0, 5.0]))])
    assert bank.vectors.tolist() == [[1, 2], [1, 1], [1, 1]]
    assert bank.labels.tolist() == [3, 4, 5]


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, OSError])
@pytest.mark.parametrize("count", [1, 3, 6])
def test_an_error_of_the_stream_leaves_the_old_file_and_the_rest_goes_on(count, error, tmp_path, whole):
    (tmp_path / "b").write_bytes(b"old")
    with pytest.raises(error):
        build(tmp_path / "b", stopping(count, error))
    assert (tmp_path / "b").read_bytes() == b"old"
    assert json.loads((tmp_path / "b.growing.json").read_text())["rows"] == sum(SIZES[:count])
    build(tmp_path / "b", chunks((500, 500)))
    assert (tmp_path / "b").read_bytes() == whole
    assert os.listdir(tmp_path) == ["b"]


def test_a_stream_that_can_begin_anywhere_gives_only_what_is_missing(tmp_path, whole):
    asked = []

    def from_row(start):
        asked.append(start)
        return [(VECTORS[start:], LABELS[start:])]

    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / "b", stopping(3))
    build(tmp_path / "b", from_row)
    build(tmp_path / "c", from_row)
    assert asked == [400, 0]
    assert (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes() == whole


@pytest.mark.parametrize("what", ["vectors", "labels"])
def test_another_stream_is_not_taken_for_the_rest_of_the_first(what, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / "b", stopping(3))
    other = {"vectors": VECTORS.copy(), "labels": LABELS.copy()}
    other[what][399] += 1
    with pytest.raises(
        InputError, match=r"chunks: expected the 400 rows .* got others; .*remove b.growing.json to begin"
    ):
        build(tmp_path / "b", chunks(**other))
    with pytest.raises(InputError, match="chunks: expected rows, the 400 that are written already, got 100"):
        build(tmp_path / "b", chunks()[:2])
    (tmp_path / "b.growing.json").unlink()
    bank = build(tmp_path / "b", chunks(**other))
    assert (bank.vectors == other["vectors"]).all()


def test_other_facts_are_refused(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / "b", stopping(3))
    with pytest.raises(
        InputError, match=r"facts: expected \{'net': 'x'\}, as when the building of .*b began, got \{\};"
    ):
        Bank.from_stream(tmp_path / "b", chunks())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "chunks: expected rows, at least one, got 0"),
        ([VECTORS], "chunks: expected pairs of vectors and labels, got ndarray"),
        ([(VECTORS, LABELS, LABELS)], "chunks: expected pairs of vectors and labels, got tuple"),
        ([(VECTORS, LABELS[1:])], "labels: expected 1000, one for each vector, got 999"),
        ([(VECTORS, LABELS), (VECTORS[:, 1:], LABELS)], "vectors: expected 6 columns, as in the bank, got 5"),
        ([(np.full((1, 2), np.nan), [0])], "vectors: expected finite numbers, got NaN in row 0"),
    ],
)
def test_what_is_no_stream_is_refused(given, said, tmp_path):
    (tmp_path / "b").write_bytes(b"old")
    with pytest.raises((InputError, ShapeError), match=said):
        build(tmp_path / "b", given)
    assert (tmp_path / "b").read_bytes() == b"old"


def test_a_search_that_is_none_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(InputError, match="search: expected one of"):
        build(tmp_path / "b", chunks(), search="fast")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"format": "vicinal.growing", "version": 2}'])
def test_a_journal_that_is_none_is_refused(content, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / "b", stopping(3))
    (tmp_path / "b.growing.json").write_text(content)
    with pytest.raises(FileError, match=r"b\.growing\.json: expected"):
        build(tmp_path / "b", chunks())
    (tmp_path / "b.growing.json").unlink()
    assert len(build(tmp_path / "b", chunks())) == 1_000


def test_rows_that_the_journal_knows_and_the_file_has_not_are_refused(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / "b", stopping(3))
    os.truncate(tmp_path / "b.growing", 5_000)
    with pytest.raises(
        FileError, match=r"b\.growing: expected \(13696, 3200\) bytes of vectors and labels, got \(5000"
    ):
        build(tmp_path / "b", chunks())


def test_nobody_else_builds_it_meanwhile(tmp_path, whole):
    def meddling():
        for number, chunk in enumerate(chunks()):
            if number == 3:
                with pytest.raises(WriteError, match="another process is building it"):
                    build(tmp_path / "b", chunks())
            yield chunk

    build(tmp_path / "b", meddling())
    assert (tmp_path / "b").read_bytes() == whole


def test_a_file_keeps_its_permissions(tmp_path):
    (tmp_path / "b").write_bytes(b"")
    (tmp_path / "b").chmod(0o604)
    build(tmp_path / "b", chunks())
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o604


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(FileError, match="create it first"):
        build(tmp_path / "none" / "b", chunks())


SCRIPT = """
import os, resource, signal, sys
sys.path.insert(0, sys.argv[3])
import test_stream
from vicinal import stream

path, where = sys.argv[1:3]
stream._SAFE = 3000
def die(*args, **options):
    os.kill(os.getpid(), signal.SIGKILL)
if where.startswith("chunk"):
    test_stream.RNG = None
    def given():
        yield from test_stream.chunks()[: int(where[5:])]
        die()
elif where.startswith("limit"):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(where[5:]),) * 2)
    given = test_stream.chunks
else:
    given = test_stream.chunks
    owners = {"put": stream.store, "begin": stream.bank_file, "write_json": stream.store, "of": stream.Points}
    setattr(owners.get(where, stream._Growing), where, die)
try:
    test_stream.build(path, given())
except OSError as error:
    print(type(error).__name__, error)
"""


def in_another_process(path, where):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, path, where, os.path.dirname(__file__)], capture_output=True, text=True
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    "where", ["chunk0", "chunk1", "chunk4", "chunk6", "write_json", "of", "begin", "put", "_remove"]
)
def test_killed_anywhere_the_old_file_is_whole_and_the_rest_goes_on(where, tmp_path, whole):
    (tmp_path / "b").write_bytes(b"old")
    code, said = in_another_process(tmp_path / "b", where)
    assert code == -signal.SIGKILL, said
    assert (tmp_path / "b").read_bytes() == (whole if where == "_remove" else b"old")
    build(tmp_path / "b", chunks())
    assert (tmp_path / "b").read_bytes() == whole
    left = [
        name for name in os.listdir(tmp_path) if not (name.startswith(".b.growing.json.") and name.endswith(".part"))
    ]
    assert left == ["b"]


@pytest.mark.parametrize("limit", [100, 5_000, 20_000, 28_200, 40_000])
def test_a_full_disk_leaves_the_old_file_and_what_fits(limit, tmp_path, whole):
    (tmp_path / "b").write_bytes(b"old")
    code, said = in_another_process(tmp_path / "b", f"limit{limit}")
    assert code == 0
    assert said.startswith(f"WriteError {tmp_path / 'b'}: expected to write it, got: File too large; what was there")
    assert (tmp_path / "b").read_bytes() == b"old"
    build(tmp_path / "b", chunks())
    assert (tmp_path / "b").read_bytes() == whole


def test_a_disk_that_is_full_leaves_the_old_file_and_what_fits(tmp_path, whole):
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=36k", "none", tmp_path], capture_output=True)
    if mounted.returncode:
        pytest.skip("only root may make a small disk")
    try:
        (tmp_path / "b").write_bytes(b"old")
        with pytest.raises(
            WriteError, match="No space left on device; what was there before is whole, and building it"
        ):
            build(tmp_path / "b", chunks())
        assert (tmp_path / "b").read_bytes() == b"old"
        subprocess.run(["mount", "-o", "remount,size=500k", tmp_path], check=True)
        build(tmp_path / "b", chunks())
        assert (tmp_path / "b").read_bytes() == whole
    finally:
        subprocess.run(["umount", tmp_path], check=True)
