"""``vicinal data`` on tiny files of the official layouts; downloads from a server that is not there."""

from __future__ import annotations

import json

import pytest

import layouts
from vicinal.data.catalog import CATALOG


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A data root with MNIST, half of CIFAR-10, and a folder of arrays."""
    layouts.mnist(tmp_path, packed=False)
    layouts.arrays(tmp_path, "pets")
    (layouts.cifar10(tmp_path) / "data_batch_4.bin").unlink()
    monkeypatch.setenv("VICINAL_DATA", str(tmp_path))
    return tmp_path


def test_the_list_says_what_is_there_what_is_missing_and_how_to_get_it(run, root):
    code, out, err = run("data list")
    assert (code, err) == (0, "")
    first, *lines = out.splitlines()
    assert first == f"data root: {root}"
    said = {line.split()[0]: line.split(maxsplit=1)[1] for line in lines}
    assert set(said) == {*CATALOG, "pets"}
    assert said["mnist"] == f"16 kB  {root / 'mnist'}"
    assert said["cifar10"] == f"part  missing in {root / 'cifar-10-batches-bin'}: data_batch_4.bin"
    assert said["svhn"] == "-  get it with: vicinal data fetch svhn"
    assert said["pets"].endswith(str(root / "pets"))
    assert max(map(len, out.replace(str(root), "root").splitlines())) < 100


def test_the_list_in_json_has_every_field(run, root):
    found = json.loads(run("data list --json")[1])
    assert found["root"] == str(root)
    by_name = {one["name"]: one for one in found["datasets"]}
    assert by_name["pets"] == {
        "name": "pets",
        "title": "pets",
        "place": str(root / "pets"),
        "missing": [],
        "size": sum(path.stat().st_size for path in (root / "pets").iterdir()),
        "fetchable": False,
        "there": True,
    }
    assert (by_name["cifar10"]["there"], by_name["cifar10"]["missing"]) == (False, ["data_batch_4.bin"])


def test_another_root_by_its_option(run, root, tmp_path):
    empty = tmp_path / "empty"
    out = run(f"data list --data {empty}")[1]
    assert out.startswith(f"data root: {empty}\n")
    assert "pets" not in out


@pytest.mark.parametrize(
    ("size", "words"), [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (12_345_678, "12 MB"), (2_640_397_119, "2.6 GB")]
)
def test_sizes_in_words(size, words):
    from vicinal.cli.data import _size

    assert _size(size) == words


def test_what_is_there_is_not_fetched(run, root):
    assert run("data fetch mnist") == (0, f"mnist is in {root / 'mnist'}\n", "")
    assert json.loads(run("data fetch mnist --json")[1]) == {"name": "mnist", "place": str(root / "mnist")}


def test_every_address_given_is_tried(run, root):
    code, out, err = run("data fetch svhn --from http://127.0.0.1:9/one --from http://127.0.0.1:9/two")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "http://127.0.0.1:9/one/train_32x32.mat: no connection" in err
    assert "http://127.0.0.1:9/two/train_32x32.mat: no connection" in err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("data fetch minst", "did you mean 'mnist'?"),
        ("data fetch pets", "name: expected one of 'cifar10'"),
        ("data fetch cifar10", "expected the official file, 30,730,000 bytes, got another; move it away first"),
        ("data fetch", "Missing argument 'NAME'"),
        ("data", "Missing command"),
        ("data lits", "No such command 'lits'"),
    ],
)
def test_what_is_refused_is_said_in_one_line(line, said, run, root):
    code, out, err = run(line)
    assert (code, out) == (2, "")
    assert err.startswith("vicinal: ")
    assert err.count("\n") == 1
    assert said in err
