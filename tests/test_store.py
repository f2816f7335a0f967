"""Files: byte for byte what the format says, refused in words when they are not, and never half written."""

from __future__ import annotations

import json
import mmap
import os
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import tracemalloc

import numpy as np
import pytest
import safetensors
import safetensors.numpy
import safetensors.torch
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from vicinal import Bank, Embeddings, Guard, data, store, tables
from vicinal.errors import FileError, InputError, MissingDataError, WriteError
from vicinal.evaluation import Evaluation
from vicinal.guard import folder

FORM, VERSION = "vicinal.example", 3
SMALL = {"b": np.array([[1.5, -2.0]], np.float32), "a": np.array([-1, 7, 2], np.int64)}
CODES = ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"]


def write(path, content=SMALL, facts=None):
    store.write_arrays(path, content, form=FORM, version=VERSION, facts=facts or {"who": "é"})


def read(path, **options):
    return store.read_arrays(path, form=FORM, version=VERSION, **{"may": None, **options})


def forge(path, header, data=b"\0" * 8, length=None):
    """A file with any header at all, given as JSON or as bytes."""
    encoded = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(encoded) if length is None else length) + encoded + data)
    return path


def own(**entries):
    return {"__metadata__": {"format": FORM, "version": "3", "facts": "{}"}, **entries}


def entry(dtype="F64", shape=(1,), place=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(place)}


# -- the format ------------------------------------------------------------------------------------------------------


def test_a_small_file_is_what_the_format_says_to_the_byte(tmp_path):
    write(tmp_path / "f")
    header = (
        b'{"__metadata__":{"format":"vicinal.example","version":"3","facts":"{\\"who\\": \\"\\\\u00e9\\"}"},'
        b'"a":{"dtype":"I64","shape":[3],"data_offsets":[0,24]},'
        b'"b":{"dtype":"F32","shape":[1,2],"data_offsets":[24,32]}}'
    )
    header += b" " * (-len(header) % 8)
    expected = struct.pack("<Q", len(header)) + header + struct.pack("<3q2f", -1, 7, 2, 1.5, -2.0)
    assert (tmp_path / "f").read_bytes() == expected


def test_a_bank_file_is_what_the_format_says_to_the_byte(tmp_path):
    Bank([[1.0], [3.0]], [5, -1], facts={"net": "x"}).remove([0]).save(tmp_path / "f")
    header = (
        b'{"__metadata__":{"format":"vicinal.bank","version":"1","facts":"{\\"facts\\": {\\"net\\": \\"x\\"}, '
        b'\\"next_row\\": 2}"},"vectors":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]},'
        b'"centre":{"dtype":"F64","shape":[1],"data_offsets":[4,12]},'
        b'"labels":{"dtype":"I64","shape":[1],"data_offsets":[12,20]},'
        b'"rows":{"dtype":"I64","shape":[1],"data_offsets":[20,28]},'
        b'"squares":{"dtype":"F64","shape":[1],"data_offsets":[28,36]}}'
    )
    header += b" " * (4096 - 8 - len(header))
    expected = struct.pack("<Q", len(header)) + header + struct.pack("<fdqqd", 3.0, 2.0, -1, 1, 1.0)
    assert (tmp_path / "f").read_bytes() == expected


def test_a_bank_file_with_its_arrays_in_another_order_is_read_too(tmp_path):
    Bank([[1.0], [3.0]], [5, -1]).save(tmp_path / "f")
    arrays, facts = store.read_arrays(tmp_path / "f", form="vicinal.bank", version=1, may=None)
    store.write_arrays(tmp_path / "g", arrays, form="vicinal.bank", version=1, facts=facts)
    assert (tmp_path / "g").read_bytes() != (tmp_path / "f").read_bytes()
    bank = Bank.load(tmp_path / "g")
    bank.save(tmp_path / "h")
    assert (tmp_path / "h").read_bytes() == (tmp_path / "f").read_bytes()


def test_the_order_of_the_arrays_does_not_matter(tmp_path):
    write(tmp_path / "f")
    write(tmp_path / "g", dict(reversed(SMALL.items())))
    assert (tmp_path / "f").read_bytes() == (tmp_path / "g").read_bytes()


@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8"), min_size=1, max_size=5).filter(lambda name: name != "__metadata__"),
        st.sampled_from(CODES).flatmap(
            lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=3))
        ),
        max_size=4,
    ),
    st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=2),
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_safetensors_library_reads_the_same_arrays(tmp_path, content, facts):
    write(tmp_path / "f", content, {"all": facts})
    theirs = safetensors.numpy.load_file(tmp_path / "f")
    ours, said = read(tmp_path / "f")
    assert said == {"all": facts}
    assert set(ours) == set(theirs) == set(content)
    for name, array in content.items():
        assert ours[name].dtype == theirs[name].dtype == array.dtype
        assert ours[name].shape == array.shape
        assert ours[name].tobytes() == theirs[name].tobytes() == array.tobytes()
    with safetensors.safe_open(tmp_path / "f", framework="np") as file:
        assert file.metadata()["format"] == FORM
        assert json.loads(file.metadata()["facts"]) == {"all": facts}


@pytest.mark.parametrize("order", ["<", ">"])
def test_files_are_little_endian_whatever_comes_in(tmp_path, order):
    write(tmp_path / "f", {"x": np.array([1.0, 2.0], f"{order}f4")})
    assert (tmp_path / "f").read_bytes().endswith(struct.pack("<2f", 1, 2))


def test_pieces_follow_one_another(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "_PIECE", 40)
    whole = np.arange(60.0).reshape(20, 3)
    write(tmp_path / "f", {"x": [whole[:1], whole[1:12], whole[12:]]})
    write(tmp_path / "g", {"x": whole[:, ::-1][:, ::-1]})
    assert (read(tmp_path / "f")[0]["x"] == whole).all()
    assert (tmp_path / "f").read_bytes() == (tmp_path / "g").read_bytes()


def test_arrays_are_mapped_and_cannot_be_written(tmp_path):
    write(tmp_path / "f")
    for array in read(tmp_path / "f")[0].values():
        assert isinstance(_root(array), mmap.mmap)
        assert not array.flags.writeable
        assert array.flags.aligned


def _root(array):
    while isinstance(array, np.ndarray):
        array = array.base
    return array


# -- what is refused -------------------------------------------------------------------------------------------------


def test_a_file_cut_short_anywhere_or_too_long_is_refused(tmp_path):
    Bank([[1.0, 2.0], [3.0, 4.0]], [0, 1]).save(tmp_path / "bank")
    Embeddings([[1.0, 2.0]], logits=[[0.0, 1.0]], labels=[0]).save(tmp_path / "embeddings")
    for name, kind in (("bank", Bank), ("embeddings", Embeddings)):
        whole = (tmp_path / name).read_bytes()
        for size in range(len(whole)):
            (tmp_path / "cut").write_bytes(whole[:size])
            with pytest.raises(FileError, match="cut: expected"):
                kind.load(tmp_path / "cut")
        (tmp_path / "cut").write_bytes(whole + b"\0")
        with pytest.raises(
            FileError, match=f"expected {len(whole)} bytes, got {len(whole) + 1}; the file is cut short"
        ):
            kind.load(tmp_path / "cut")


@given(st.data())
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_bits_flipped_in_the_header_are_refused_or_make_another_sound_file(tmp_path, data):
    path = tmp_path / "f"
    if not path.exists():
        write(path)
    whole = bytearray(path.read_bytes())
    end = 8 + int.from_bytes(whole[:8], "little")
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, end - 1))
        whole[place] ^= 1 << data.draw(st.integers(0, 7))
    (tmp_path / "g").write_bytes(whole)
    try:
        found, facts = read(tmp_path / "g")
    except FileError:
        return
    assert isinstance(facts, dict)
    with safetensors.safe_open(tmp_path / "g", framework="np") as file:
        assert set(file.keys()) == set(found)
        for name, array in found.items():
            assert file.get_tensor(name).tobytes() == array.tobytes()


@pytest.mark.parametrize("part", ["head", "rest"])
@pytest.mark.parametrize("bit", range(8))
def test_a_bank_file_with_a_flipped_bit_beside_its_vectors_is_refused_or_answers(tmp_path, part, bit):
    path = tmp_path / "f"
    Bank([[1.0, 0.0], [3.0, 1.0], [0.0, 0.0]], [0, 1, 1]).save(path)
    whole = path.read_bytes()
    begun = 8 + int.from_bytes(whole[:8], "little")
    for place in range(500) if part == "head" else range(begun + 3 * 2 * 4, len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << bit
        _refused_or_answers(tmp_path / "g", damaged)


def _refused_or_answers(path, damaged):
    path.write_bytes(damaged)
    try:
        bank = Bank.load(path)
    except FileError:
        return
    near = bank.nearest([[1.0, 0.0]], 3)
    assert set(near.indices[0]) == set(bank.rows)
    assert np.isfinite(near.distances).all()


METADATA = {
    "no metadata": {},
    "metadata of another kind": {"__metadata__": [1]},
    "metadata that is null": {"__metadata__": None},
    "no format": {"__metadata__": {}},
    "another format": {"__metadata__": {"format": "pt"}},
    "another of ours": {"__metadata__": {"format": "vicinal.bank", "version": "1"}},
}


@pytest.mark.parametrize("case", METADATA)
def test_a_foreign_file_is_refused(tmp_path, case):
    forge(tmp_path / "f", METADATA[case] | {"x": entry()})
    with pytest.raises(
        FileError, match=r"f: expected a vicinal.example file, got '(another safetensors|pt|vicinal.bank)'"
    ):
        read(tmp_path / "f")


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}])
def test_files_that_other_programs_wrote_are_refused_as_such_even_with_types_of_their_own(tmp_path, metadata):
    safetensors.torch.save_file({"w": torch.ones(2, dtype=torch.bfloat16)}, tmp_path / "f", metadata=metadata)
    for kind, wanted in ((Bank, "vicinal.bank"), (Embeddings, "vicinal.embeddings")):
        with pytest.raises(FileError, match=f"expected a {wanted} file, got"):
            kind.load(tmp_path / "f")


def test_one_of_ours_is_not_taken_for_another(tmp_path):
    Embeddings([[1.0]]).save(tmp_path / "f")
    with pytest.raises(FileError, match=r"expected a vicinal.bank file, got 'vicinal.embeddings'"):
        Bank.load(tmp_path / "f")


def test_a_file_that_the_library_wrote_to_our_format_is_ours(tmp_path):
    safetensors.numpy.save_file({"vectors": np.ones((2, 2), np.float32)}, tmp_path / "f", {
        "format": "vicinal.embeddings", "version": "1", "facts": '{"by": "hand"}',
    })  # fmt: skip
    found = Embeddings.load(tmp_path / "f")
    assert found.vectors.tolist() == [[1, 1], [1, 1]]
    assert found.facts == {"by": "hand"}


@pytest.mark.parametrize("version", ["4", "10", "", "3.0", "-1", "²", "٣", "9" * 5000, 3, None])
def test_a_newer_version_is_refused_with_advice(tmp_path, version):
    forge(tmp_path / "f", own(x=entry()) | {"__metadata__": {"format": FORM, "version": version, "facts": "{}"}})
    with pytest.raises(FileError, match=r"expected vicinal.example of version 3 or older, got .*; update vicinal$"):
        read(tmp_path / "f")


@pytest.mark.parametrize("version", ["0", "2", "3"])
def test_an_older_version_is_read(tmp_path, version):
    forge(tmp_path / "f", own(x=entry()) | {"__metadata__": {"format": FORM, "version": version}})
    assert read(tmp_path / "f")[1] == {}


def test_missing_and_unknown_arrays_are_refused_by_name(tmp_path):
    write(tmp_path / "f")
    with pytest.raises(FileError, match=r"expected an array 'c', got a, b$"):
        read(tmp_path / "f", needs=("a", "c"))
    with pytest.raises(FileError, match=r"expected only a, c, got an array 'b' too$"):
        read(tmp_path / "f", needs=("a",), may=("c",))
    assert set(read(tmp_path / "f", needs=("a",), may=("b", "c"))[0]) == {"a", "b"}
    write(tmp_path / "f", {})
    with pytest.raises(FileError, match=r"expected an array 'c', got none$"):
        read(tmp_path / "f", needs=("c",))


ENTRIES = {
    "no entry": 3,
    "a list": [],
    "no type": {"shape": [1], "data_offsets": [0, 8]},
    "a type of another kind": entry() | {"dtype": ["F64"]},
    "an unknown type": entry("F128"),
    "no shape": {"dtype": "F64", "data_offsets": [0, 8]},
    "a shape that is a word": entry() | {"shape": ""},
    "a shape of names": entry() | {"shape": {"1": 1}},
    "a fraction of a row": entry(shape=[1.0]),
    "a flag for a size": entry(shape=[True]),
    "a negative size": entry(shape=[-1, -1]),
    "two of three negative": entry(shape=[1, -1, -1]),
    "more than the file": entry(shape=[2], place=[0, 16]),
    "less than the file": entry("F32", place=[0, 4]),
    "shape and place that disagree": entry(shape=[3]),
    "shape that wraps round to 0": entry(shape=[2**32, 2**32], place=[0, 0]),
    "shape that wraps round to 8": entry(shape=[2**61 + 1], place=[0, 8]),
    "a size beyond memory": entry(shape=[2**47], place=[0, 2**50]),
    "nothing, of endless width": entry(shape=[0, 2**62], place=[0, 0]),
    "nothing, of more dimensions than NumPy has": entry(shape=[0] * 100, place=[0, 0]),
    "nothing, of a product beyond NumPy": entry(shape=[0, 2**40, 2**40], place=[0, 0]),
    "negative place": entry(place=[-8, 0]),
    "place backwards": entry(place=[8, 0]),
    "a place of one": entry(place=[8]),
    "a place of three": entry(place=[0, 8, 8]),
    "no place": {"dtype": "F64", "shape": [1]},
    "a place beyond any": entry(place=[0, 10**400]),
    "a place of words": entry(place=["0", "8"]),
    "a gap before": entry("I32", place=[4, 8]),
}


@pytest.mark.parametrize("case", ENTRIES)
def test_an_array_that_cannot_be_is_refused_without_room_being_made_for_it(tmp_path, case):
    path = forge(tmp_path / "f", own(x=ENTRIES[case]))
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match="f: expected"):
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("second", [(0, 4), (0, 8), (4, 8), (2, 6), (8, 12)])
def test_arrays_that_overlap_or_leave_gaps_are_refused(tmp_path, second):
    forge(tmp_path / "f", own(x=entry("U8", [6], [0, 6]), y=entry("U8", [second[1] - second[0]], second)))
    with pytest.raises(FileError, match=r"arrays one after the other, got one at|expected \d+ bytes, got \d+"):
        read(tmp_path / "f")


@pytest.mark.parametrize(
    ("header", "length"),
    [
        (b"", None),
        (b"{", None),
        (b"[]", None),
        (b"3", None),
        (b"null", None),
        (b"\xff\xfe{}", None),
        (b'{"a":' * 50_000, None),
        (b"[" * 100_000, None),
        (b'{"a":' + b"9" * 5000 + b"}", None),
        (b"{}", 0),
        (b"{}", 2**63),
        (b"{}", 2**64 - 1),
        (b"{}", 100 * 2**20 + 1),
        (b"{}", 11),
    ],
)
def test_a_header_that_is_none_is_refused(tmp_path, header, length):
    path = forge(tmp_path / "f", header, length=length)
    with pytest.raises(FileError, match="f: expected a"):
        read(path)


@pytest.mark.parametrize("facts", ["", "[]", "3", "{", "null", "[" * 100_000, 7, None, {"a": "b"}])
def test_facts_that_are_none_are_refused(tmp_path, facts):
    forge(tmp_path / "f", own(x=entry()) | {"__metadata__": {"format": FORM, "version": "1", "facts": facts}})
    with pytest.raises(FileError, match="facts"):
        read(tmp_path / "f")


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name, said in (("none", "nothing there"), (".", "a folder"), ("pipe", "a device"), ("x" * 300, "nothing")):
        for function in (read, store.read_json):
            with pytest.raises(FileError, match=f"expected a file, got {said}"):
                function(tmp_path / name)


def save_guard(path):
    folder.write(path, Bank([[0.0]], [1]), {}, {})


@pytest.mark.parametrize("place", [None, 3, b"bytes", "with a NUL \0", "", "\ud800", "x" * 300, "no/such/folder/x.csv"])
@pytest.mark.parametrize(
    "door",
    [
        Bank.load,
        Bank([[0.0]], [1]).save,
        Embeddings.load,
        Embeddings([[0.0]]).save,
        Evaluation.load,
        Guard.load,
        save_guard,
        data.load,
        tables.check_target,
        tables.open_source,
    ],
    ids=lambda door: door.__qualname__,
)
def test_what_is_no_path_is_refused_at_every_door(door, place):
    with pytest.raises((InputError, FileError, WriteError, MissingDataError)):
        door(place)


# -- replacing -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit, FileNotFoundError])
def test_an_error_while_writing_leaves_the_old_file_and_nothing_else(tmp_path, error):
    (tmp_path / "f").write_bytes(b"old")

    def stop():
        with store.replacing(tmp_path / "f") as file:
            file.write(b"new")
            raise error("stop")

    with pytest.raises(error, match="stop"):
        stop()
    assert (tmp_path / "f").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]


def test_an_array_that_fails_half_way_leaves_the_old_file_and_nothing_else(tmp_path):
    class Failing(np.ndarray):
        def __getitem__(self, rows):
            raise OSError("the source is gone")

    write(tmp_path / "f")
    before = (tmp_path / "f").read_bytes()
    with pytest.raises(OSError, match="the source is gone"):
        write(tmp_path / "f", {"a": np.ones(3), "b": np.ones(3).view(Failing)})
    assert (tmp_path / "f").read_bytes() == before
    assert os.listdir(tmp_path) == ["f"]


def test_facts_that_are_no_json_touch_nothing(tmp_path):
    write(tmp_path / "f")
    before = (tmp_path / "f").read_bytes()
    with pytest.raises(TypeError):
        write(tmp_path / "f", facts={"a": object()})
    with pytest.raises(TypeError):
        store.write_json(tmp_path / "f", {"a": object()})
    assert (tmp_path / "f").read_bytes() == before
    assert os.listdir(tmp_path) == ["f"]


def test_a_file_keeps_its_permissions_and_a_new_one_gets_the_usual_ones(tmp_path):
    before = os.umask(0o027)
    try:
        write(tmp_path / "new")
        (tmp_path / "old").write_bytes(b"")
        (tmp_path / "old").chmod(0o604)
        with store.replacing(tmp_path / "old") as file:
            part = next(path for path in tmp_path.iterdir() if path.suffix == ".part")
            assert part.stat().st_mode & 0o777 == 0o604  # no one else can look in meanwhile
            file.write(b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "old").stat().st_mode & 0o777 == 0o604


def test_a_link_is_followed(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "far" / "f")
    for _ in range(2):
        write(tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert os.listdir(tmp_path / "far") == ["f"]


def test_what_cannot_be_replaced_is_refused_and_left(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name, said in (
        (".", "expected a file to write, got a folder"),
        ("pipe", "expected a file to write, got a device"),
        ("none/f", "expected an existing folder .*none; create it first"),
    ):
        with pytest.raises(FileError, match=said):
            write(tmp_path / name)
    with pytest.raises(
        WriteError, match="expected to write it, got: File name too long; what was there before is whole"
    ):
        write(tmp_path / ("x" * 255))
    with pytest.raises(FileError, match="got a device"):
        write("/dev/null")
    assert os.listdir(tmp_path) == ["pipe"]


def _python(script, *args, **options):
    done = subprocess.run([sys.executable, "-c", script, *map(str, args)], capture_output=True, text=True, **options)
    return done.returncode, done.stdout + done.stderr


KILLED = """
import os, signal, sys
import numpy as np
from vicinal import store

path, where = sys.argv[1:]
def die(*args):
    os.kill(os.getpid(), signal.SIGKILL)

class Dying(np.ndarray):
    def __getitem__(self, rows):
        if isinstance(rows, slice) and rows.start >= int(where):
            die()
        return super().__getitem__(rows)

store._PIECE = 8000
array = np.zeros(5000).view(Dying)
if where in ("fsync", "replace", "chmod"):
    setattr(os, where, die)
    array = np.zeros(5000)
store.write_arrays(path, {"a": np.zeros(9), "b": array}, form="vicinal.example", version=3, facts={})
"""


@pytest.mark.parametrize("where", ["0", "1000", "4000", "chmod", "fsync", "replace"])
def test_a_killed_write_leaves_the_old_file_whole(tmp_path, where):
    write(tmp_path / "f")
    before = (tmp_path / "f").read_bytes()
    assert _python(KILLED, tmp_path / "f", where)[0] == -signal.SIGKILL
    assert (tmp_path / "f").read_bytes() == before
    assert read(tmp_path / "f")[0]["a"].tolist() == [-1, 7, 2]


FULL = """
import os, resource, sys
import numpy as np
from vicinal import errors, store

path, limit = sys.argv[1], int(sys.argv[2])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    store.write_arrays(path, {"x": np.ones((20_000, 8), np.float32)}, form="vicinal.example", version=3, facts={})
except errors.WriteError as error:
    print(error)
"""


@pytest.mark.parametrize("limit", [1, 5000, 400_000])
def test_a_write_beyond_the_allowed_size_leaves_the_old_file_whole(tmp_path, limit):
    Bank([[1.0]], [0]).save(tmp_path / "f")
    before = (tmp_path / "f").read_bytes()
    code, said = _python(FULL, tmp_path / "f", limit)
    assert (code, said) == (
        0,
        f"{tmp_path / 'f'}: expected to write it, got: File too large; what was there before is whole\n",
    )
    assert (tmp_path / "f").read_bytes() == before
    assert os.listdir(tmp_path) == ["f"]


def test_a_full_disk_leaves_the_old_file_whole(tmp_path):
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", tmp_path], capture_output=True)
    if mounted.returncode:
        pytest.skip("only root may make a small disk")
    try:
        Bank([[1.0]], [0]).save(tmp_path / "f")
        before = (tmp_path / "f").read_bytes()
        code, said = _python(FULL, tmp_path / "f", 0)
        assert code == 0
        assert said.startswith(f"{tmp_path / 'f'}: expected to write it, got: No space left on device; what was there")
        assert (tmp_path / "f").read_bytes() == before
        assert os.listdir(tmp_path) == ["f"]
    finally:
        subprocess.run(["umount", tmp_path], check=True)


FORBIDDEN = """
import os, sys
from vicinal import Bank, errors

bank = Bank([[1.0]], [0])
os.setuid(65534)
for act in (lambda: bank.save(sys.argv[1]), lambda: Bank.load(sys.argv[1])):
    try:
        act()
    except errors.VicinalError as error:
        print(type(error).__name__, error)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")
def test_a_file_that_may_not_be_read_or_replaced_is_refused():
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # pytest's own folder is closed to others
        os.chmod(folder, 0o755)
        path = f"{folder}/f"
        Bank([[1.0]], [0]).save(path)
        os.chmod(path, 0o600)
        assert _python(FORBIDDEN, path)[1].splitlines() == [
            f"WriteError {path}: expected to write it, got: Permission denied; what was there before is whole",
            f"FileError {path}: expected a file that can be read, got: Permission denied",
        ]


def test_many_writers_at_once_leave_one_whole_file_and_no_reader_sees_two(tmp_path):
    """Each writes its own number everywhere; whoever reads, finds one number."""
    path = tmp_path / "f"

    def content(number):
        return {name: np.full(500 + 100 * number, number) for name in ("a", "b", "c")}

    write(path, content(0), {"number": 0})
    start, done, torn = threading.Barrier(5), threading.Event(), []

    def keep_reading():
        start.wait()
        while not done.is_set():
            found, facts = read(path)
            torn.extend(found for array in found.values() if (array != facts["number"]).any())

    def keep_writing(number):
        start.wait()
        for _ in range(25):
            write(path, content(number), {"number": number})

    readers = [threading.Thread(target=keep_reading) for _ in range(2)]
    writers = [threading.Thread(target=keep_writing, args=(number,)) for number in (1, 2, 3)]
    for thread in readers + writers:
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in readers:
        thread.join()
    assert torn == []
    assert read(path)[1]["number"] in (1, 2, 3)
    assert os.listdir(tmp_path) == ["f"]


# -- JSON ------------------------------------------------------------------------------------------------------------

WORDS = st.text(st.characters(codec="utf-8"))
LEAVES = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    LEAVES | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_json_comes_back_as_it_went(tmp_path, content):
    store.write_json(tmp_path / "f.json", content)
    assert store.read_json(tmp_path / "f.json") == content


def test_json_is_written_for_a_person_to_read(tmp_path):
    store.write_json(tmp_path / "f.json", {"name": "Zoë"})
    assert (tmp_path / "f.json").read_bytes() == '{\n  "name": "Zoë"\n}\n'.encode()


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000, b"9" * 5000, b"{'a': 1}"])
def test_what_is_no_json_is_refused(tmp_path, content):
    (tmp_path / "f.json").write_bytes(content)
    with pytest.raises(FileError, match=r"f.json: expected JSON, got "):
        store.read_json(tmp_path / "f.json")
