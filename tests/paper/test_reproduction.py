"""A reproduction from end to end on a small edition: what it writes, what it skips, what it asks."""

from __future__ import annotations

import shutil

import pytest

from vicinal import store
from vicinal.errors import InputError
from vicinal.paper import reproduction
from vicinal.paper.cache import code
from vicinal.paper.editions import EDITIONS
from vicinal.paper.reproduction import NAMES, Reproduction
from vicinal.paper.results import Result

pytestmark = pytest.mark.usefixtures("small")


@pytest.fixture
def asked(trained, tmp_path):
    return Reproduction(["table2"], networks=trained, results=tmp_path / "results")


def test_every_result_is_written_and_drawn(trained, tmp_path, monkeypatch):
    monkeypatch.setattr("vicinal.paper.costs._ROUNDS", 2)
    asked = Reproduction(networks=trained, results=tmp_path / "results")
    found = asked.run()
    assert [one.name for one in found] == list(NAMES)
    place = tmp_path / "results" / "quick"
    files = sorted(f"{name}.{form}" for name in NAMES for form in ("json", "png", "svg"))
    assert sorted(path.name for path in place.iterdir()) == files
    for one in found:
        read = Result.load(place / f"{one.name}.json")
        assert (read.name, read.edition, read.notes) == (one.name, "quick", one.notes)
        assert [table.rows for table in read.tables] == [table.rows for table in one.tables]


def test_a_result_says_where_it_comes_from(asked, networks):
    (result,) = asked.run()
    assert result.made["command"] == "vicinal reproduce table2 --edition quick"
    assert {"commit", "date", "machine", "versions", "code"} <= set(result.made)
    assert result.networks == {entry.name: networks.fingerprint(entry) for entry in networks.wanted()}
    assert {kind: recipe["method"] for kind, recipe in result.recipes.items()} == {
        "digits-reg": "reg",
        "digits-distance": "distance",
        "digits-adversarial": "adversarial",
    }


def test_names_are_made_once_in_their_order():
    assert Reproduction(["table3", "table1", "table3"]).names == ("table1", "table3")
    assert Reproduction(["claims", "all"]).names == NAMES


@pytest.mark.parametrize(
    ("given", "words"),
    [({"names": ["table4"]}, "did you mean"), ({"edition": "huge"}, "edition: expected one of")],
)
def test_unknown_names_are_refused(given, words):
    with pytest.raises(InputError, match=words):
        Reproduction(**given)


def test_results_of_other_code_are_replaced_only_after_a_question(asked, monkeypatch):
    assert asked.doubts == []
    asked.run()
    assert asked.doubts == []
    monkeypatch.setattr(reproduction, "code", lambda places: "another")
    (doubt,) = asked.doubts
    assert "table2.json: made by another version of the code" in doubt


@pytest.mark.parametrize("content", ["[]", "{", '{"made": 3}'])
def test_whatever_else_stands_there_is_replaced_only_after_a_question(asked, content):
    asked.results.mkdir(parents=True)
    (asked.results / "table2.json").write_text(content)
    assert len(asked.doubts) == 1


def test_scores_of_other_code_are_not_used(copied, tmp_path, monkeypatch):
    shutil.rmtree(copied / "quick" / "cache")
    Reproduction(["table2"], networks=copied, results=tmp_path / "results").run()
    before = {path.name: path.read_bytes() for path in (copied / "quick" / "cache").glob("*--in--*")}
    monkeypatch.setattr("vicinal.paper.views.code", lambda *places: "another")
    Reproduction(["table2"], networks=copied, results=tmp_path / "others").run()
    for name, content in before.items():
        _, facts = store.read_arrays(copied / "quick" / "cache" / name, form="vicinal.paper.cache", version=1, may=None)
        assert facts["code"] == "another"
        assert (copied / "quick" / "cache" / name).read_bytes() != content
    assert before


def test_a_gpu_edition_without_a_gpu_is_a_question(tmp_path, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    full = Reproduction(["table1"], "full", networks=tmp_path, results=tmp_path, data=tmp_path / "nowhere")
    monkeypatch.setattr(full.networks, "lacking", lambda name: "")
    (doubt,) = full.doubts
    assert "made for a GPU, and there is none" in doubt
    assert "days" in doubt
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert Reproduction(["table1"], "full", networks=tmp_path, results=tmp_path).networks.device == "cuda"


def test_what_is_missing_is_trained_and_what_is_there_is_kept(copied, tmp_path, edition):
    lost = copied / "quick" / "digits-distance-1"
    fingerprint = store.read_json(lost / "network.json")["fingerprint"]
    kept = (copied / "quick" / "digits-reg-0" / "network.json").stat().st_mtime_ns
    shutil.rmtree(lost)
    asked = Reproduction(["table2"], networks=copied, results=tmp_path / "results")
    assert [entry.name for entry in asked.plan.missing] == ["digits-distance-1"]
    (result,) = asked.run()
    assert result.networks["digits-distance-1"] == fingerprint
    assert (copied / "quick" / "digits-reg-0" / "network.json").stat().st_mtime_ns == kept


def test_without_training_what_is_there_is_shown(copied, tmp_path):
    shutil.rmtree(copied / "quick" / "digits-distance-1")
    asked = Reproduction(["table1"], networks=copied, results=tmp_path / "results", train=False)
    assert asked.plan.missing == ()
    (result,) = asked.run()
    numbers = {column.name: result.tables[0].cell("margin", column).value.n for column in result.tables[0].columns}
    assert numbers == {"Reg": 2, "Dist": 1, "AT": 2, "MCD": 2}


def test_a_network_that_cannot_be_trained_is_a_note(copied, tmp_path, monkeypatch):
    shutil.rmtree(copied / "quick" / "digits-distance-1")
    asked = Reproduction(["table2"], networks=copied, results=tmp_path / "results")
    command = ["/bin/sh", "-c", "echo out of memory >&2; exit 3"]
    popen = __import__("subprocess").Popen
    monkeypatch.setattr("subprocess.Popen", lambda words, **how: popen(command, **how))
    (result,) = asked.run()
    assert "digits-distance-1: not trained: out of memory (exit 3)" in result.notes


def test_nothing_at_all_is_refused(tmp_path):
    where = {"networks": tmp_path / "runs", "results": tmp_path / "results", "data": tmp_path / "nowhere"}
    with pytest.raises(InputError, match="vicinal data fetch cifar100"):
        _ = Reproduction(["table1"], "compact", **where).plan
    with pytest.raises(InputError, match="expected at least one network"):
        _ = Reproduction(["table1"], train=False, **where).plan


def test_a_network_by_another_recipe_is_said_and_left_out(copied, tmp_path):
    place = copied / "quick"
    shutil.rmtree(place / "digits-reg-1")
    shutil.copytree(place / "digits-adversarial-1", place / "digits-reg-1")
    asked = Reproduction(["table2"], networks=copied, results=tmp_path / "results")
    (result,) = asked.run()
    assert "digits-reg-1" not in result.networks
    assert [note for note in result.notes if "digits-reg-1: trained otherwise (method: 'reg'" in note]


def test_the_version_of_the_code_covers_every_module_that_makes_figures():
    from pathlib import Path

    import vicinal

    root = Path(vicinal.__file__).parent
    assert [place for place in reproduction._OF_RESULTS if not (root / place).exists()] == []
    rest = {path.name for path in (root / "paper").glob("*.py")}
    rest -= {place.removeprefix("paper/") for place in reproduction._OF_RESULTS}
    shown_only = {"__init__", "cache", "page", "pictures", "plan", "reproduction", "results", "words"}
    assert rest == {f"{name}.py" for name in shown_only}
    assert code(reproduction._OF_RESULTS) != code()


def test_the_editions_are_those_that_are_told():
    assert list(EDITIONS) == ["quick", "compact", "wide", "full"]
