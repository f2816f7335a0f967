"""What took long is computed once, and again for another key, another version of the code or a damaged file."""

from __future__ import annotations

import numpy as np
import pytest

import vicinal
from vicinal.paper import cache as module
from vicinal.paper.cache import Cache, code, digest


class Counted:
    """Something to compute, and how often it was."""

    def __init__(self):
        self.times = 0

    def __call__(self):
        self.times += 1
        return {"x": np.full(3, self.times)}


@pytest.fixture
def source(tmp_path, monkeypatch):
    """A package with one module, in place of vicinal."""
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "mass.py").write_text('"""Says what it does."""\ndef f():\n    """And this."""\n    return 1\n')
    monkeypatch.setattr(vicinal, "__file__", str(folder / "__init__.py"))
    code.cache_clear()
    yield folder / "mass.py"
    code.cache_clear()


def again(place=("mass.py",)):
    code.cache_clear()
    return code(place)


def test_it_computes_once(tmp_path):
    made = Counted()
    for _ in range(2):
        found = Cache(tmp_path).get("one", {"network": "a"}, made)
    assert (made.times, found["x"].tolist()) == (1, [1, 1, 1])


def test_another_key_computes_anew(tmp_path):
    made, kept = Counted(), Cache(tmp_path)
    for key in ({"network": "a"}, {"network": "b"}, {"network": "b", "data": "c"}):
        assert not kept.has("one", key)
        kept.get("one", key, made)
        assert kept.has("one", key)
    assert made.times == 3


def test_a_damaged_file_computes_anew(tmp_path):
    made, kept = Counted(), Cache(tmp_path)
    kept.get("one", {}, made)
    path = tmp_path / "one.safetensors"
    path.write_bytes(path.read_bytes()[:-4])
    assert kept.get("one", {}, made)["x"].tolist() == [2, 2, 2]


def test_other_code_is_another_version(source):
    before = again()
    source.write_text(source.read_text().replace("return 1", "return 2"))
    assert again() != before


def test_comments_and_docstrings_are_no_other_version(source):
    before = again()
    source.write_text(source.read_text().replace("And this.", "Something else.") + "# a comment\n")
    assert again() == before


def test_every_place_that_is_named_is_there():
    from pathlib import Path

    root = Path(vicinal.__file__).parent
    assert [place for place in module.CODE if not (root / place).exists()] == []


def test_a_digest_knows_types_shapes_and_values():
    values = np.arange(6)
    others = (values.astype(np.int32), values.reshape(2, 3), values + 1)
    assert digest(values) == digest(values.copy())
    assert len({digest(values), *map(digest, others)}) == 4
