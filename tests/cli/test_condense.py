"""``vicinal condense``: the library's smaller bank and its curve, in words, as JSON, as files and as a picture."""

from __future__ import annotations

import csv
import dataclasses
import json

import numpy as np
import pytest

from scenarios import clustered
from vicinal import Bank, Embeddings, condense
from vicinal.condensation import CondensationCurve, condensation_curve

WORLD = clustered(500)
BANK = WORLD.take(np.arange(300))
_REST = WORLD.take(np.arange(300, 500))
ASKED = Embeddings(_REST.vectors, labels=_REST.labels, predicted=np.where(np.arange(200) % 4, _REST.labels, 0))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("test.npz", vectors=ASKED.vectors, labels=ASKED.labels, predicted=ASKED.predicted)
    Bank(BANK.vectors, BANK.labels).save("bank.safetensors")


def test_the_bank_it_writes_is_that_of_the_library(done):
    content = json.loads(done("condense bank.safetensors --out small.safetensors --method k-means --share 0.1 --json"))
    expected = condense(Bank(BANK.vectors, BANK.labels), "k-means", 0.1)
    found = Bank.load("small.safetensors")
    np.testing.assert_array_equal(found.vectors, expected.bank.vectors)
    np.testing.assert_array_equal(found.weights, expected.bank.weights)
    np.testing.assert_array_equal(found.rows, expected.indices)
    said = {"bank": "small.safetensors", "method": "k-means", "points": 30, "of": 300, "k": expected.k}
    assert content == said


def test_options_of_the_bank_reach_it(done):
    out = done("condense bank.safetensors --out small.safetensors --method random --unweighted --seed 7 --share 0.2")
    expected = condense(Bank(BANK.vectors, BANK.labels), "random", 0.2, weighted=False, seed=7)
    assert out.startswith("small.safetensors: 60 points stand for 300, by random; ask for k = ")
    found = Bank.load("small.safetensors")
    np.testing.assert_array_equal(found.rows, expected.indices)
    assert found.weights is None


def test_the_curve_is_that_of_the_library_in_words_and_files(done, tmp_path):
    line = "condense bank.safetensors --curve test.npz --method random --method medoids --shares 0.1,0.05"
    out = done(f"{line} --figures curve.json --picture curve.png")
    expected = condensation_curve(Bank(BANK.vectors, BANK.labels), ASKED, ["random", "medoids"], [0.1, 0.05])
    assert out.strip() == str(expected)
    expected = dataclasses.replace(expected, facts={"file": "test.npz"})
    assert CondensationCurve.load("curve.json") == expected
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads(done(f"{line} --figures curve.csv --json"))["curve"] == expected.to_json()
    with open("curve.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["auroc"]) for row in rows] == [point.auroc.value for point in expected.points]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "--out, --curve: expected at least one"),
        ("--out small.safetensors --picture a.png", "--picture, --figures: expected with --curve"),
        ("--out small.safetensors --method random --method hart", "--method: expected one with --out, got 2"),
        ("--out small.safetensors --share 0", "share: expected a number in (0, 1], got 0"),
        ("--out small.npz", "expected a file that ends in .safetensors"),
        ("--out small.safetensors --method best", "method: expected one of"),
        ("--curve test.npz --shares 0.1,few", "--shares: expected numbers and commas, such as 0.01,0.05"),
        ("--curve test.npz --shares 0.1,2", "shares: expected a number in (0, 1], got 2"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(run, tmp_path, words, said):
    code, out, err = run(f"condense bank.safetensors {words}")
    assert (code, out) == (2, "")
    assert said in err
    assert not (tmp_path / "small.safetensors").exists()
