"""``vicinal calibrate`` and ``vicinal diagnose``: what the library finds, in words, as JSON and as files."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from vicinal import Bank, Embeddings, distance, margin
from vicinal.selective import calibrate, diagnose, threshold_at
from vicinal.tables import plain


def network(n, seed):
    """What a network says of n inputs of three classes."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 3, n)
    vectors = 3.0 * np.eye(3, 4)[labels] + generator.normal(size=(n, 4))
    return Embeddings(vectors, 2 * vectors[:, :3] + 2 * generator.normal(size=(n, 3)), labels)


BANK, HELD_OUT, ASKED = network(300, 0), network(800, 1), network(200, 2)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder to work in, with a bank, and files of held-out and further predictions."""
    monkeypatch.chdir(tmp_path)
    for name, one in (("train", BANK), ("validation", HELD_OUT), ("test", ASKED)):
        np.savez(f"{name}.npz", vectors=one.vectors, logits=one.logits, labels=one.labels)
    Bank(BANK.vectors, BANK.labels).save("bank.safetensors")


def trusts(embeddings):
    return distance(Bank(BANK.vectors, BANK.labels), embeddings.vectors, embeddings.predicted)


def test_the_threshold_and_the_curve_are_those_of_the_library(run):
    code, out, err = run("calibrate validation.npz --bank bank.safetensors")
    assert (code, err) == (0, "")
    threshold = threshold_at(trusts(HELD_OUT), HELD_OUT.correct, risk=0.05)
    curve = calibrate(trusts(HELD_OUT), HELD_OUT.correct, "platt").curve
    first, second, head, *rows = out.splitlines()
    assert first == str(threshold)
    assert second.startswith("probability of being right, by platt of distance, on predictions that it was not fitted")
    assert head.split() == ["claimed", "right", "low", "high", "counts"]
    np.testing.assert_allclose(
        [[float(cell) for cell in row.split()] for row in rows],
        np.stack([curve.probability, curve.observed, curve.low, curve.high, curve.counts], axis=1),
        rtol=1e-3,
    )


def test_as_json_it_is_the_same_and_nothing_else(run):
    found = json.loads(run("calibrate validation.npz --score margin --fpr 0.3 --delta 0.2 --method isotonic --json")[1])
    trust = margin(HELD_OUT.logits)
    threshold = threshold_at(trust, HELD_OUT.correct, fpr=0.3, delta=0.2)
    assert found["threshold"] == {
        **{name: getattr(threshold, name) for name in vars(threshold)},
        "notes": [],
    }
    calibration = calibrate(trust, HELD_OUT.correct, "isotonic")
    assert found["calibration"]["reliability"] == calibration.curve.records()
    assert found["calibration"]["predictions"] == 800
    assert found["notes"] == []
    assert "rows" not in found


def test_it_accepts_and_refuses_other_predictions(run):
    line = "calibrate validation.npz --bank bank.safetensors --coverage 0.9 --apply test.npz"
    out = run(f"{line} --out accepted.csv")[1]
    threshold = threshold_at(trusts(HELD_OUT), HELD_OUT.correct, coverage=0.9)
    accepted = threshold.accept(trusts(ASKED))
    with open("accepted.csv") as file:
        rows = list(csv.DictReader(file))
    assert [row["accepted"] == "True" for row in rows] == accepted.tolist()
    probability = calibrate(trusts(HELD_OUT), HELD_OUT.correct, "platt")(trusts(ASKED))
    assert [float(row["probability"]) for row in rows] == probability.tolist()
    assert [int(row["label"]) for row in rows] == ASKED.labels.tolist()
    kept, wrong = int(accepted.sum()), int((accepted & ~ASKED.correct).sum())
    assert 0 < wrong < kept < 200
    assert out.splitlines()[-1] == (
        f"of the 200 predictions to judge {kept} are accepted, {wrong} of them wrong; of all, {(~ASKED.correct).sum()}"
    )
    found = json.loads(run(f"{line} --json")[1])
    assert [row["accepted"] for row in found["rows"]] == accepted.tolist()
    np.savez("asked.npz", vectors=ASKED.vectors, logits=ASKED.logits)
    assert run(line.replace("test.npz", "asked.npz"))[1].splitlines()[-1] == (
        f"of the 200 predictions to judge {kept} are accepted"
    )


def test_the_curve_goes_into_a_file_where_nothing_is_to_be_judged(run):
    run("calibrate validation.npz --score margin --out curve.jsonl")
    with open("curve.jsonl") as file:
        rows = [json.loads(line) for line in file]
    curve = calibrate(margin(HELD_OUT.logits), HELD_OUT.correct, "platt").curve
    assert [row["observed"] for row in rows] == curve.observed.tolist()


def test_what_is_cautious_is_noted_in_the_answer(run):
    few = HELD_OUT.take(np.append(np.flatnonzero(HELD_OUT.correct)[:15], np.flatnonzero(~HELD_OUT.correct)[:5]))
    np.savez("few.npz", vectors=few.vectors, logits=few.logits, labels=few.labels)
    code, out, err = run("calibrate few.npz --score margin --risk 0.01")
    assert (code, err) == (0, "")
    assert f"by constant of margin: {16 / 22:.3f} for all" in out
    notes = [line for line in out.splitlines() if line.startswith("note: ")]
    assert [note.split()[1] for note in notes] == ["20", "no", "calibrate:"]
    assert json.loads(run("calibrate few.npz --score margin --risk 0.01 --json")[1])["calibration"]["reliability"] == []


REFUSED = [
    ("--risk 0.1 --coverage 0.8", "risk, coverage, fpr: expected exactly one of the three, got risk, coverage"),
    ("--risk 1.5", "risk: expected a number in (0, 1), got 1.5"),
    ("--delta 0", "delta: expected a number in (0, 1), got 0.0"),
    ("--method plat", "method: expected one of 'isotonic', 'platt', 'beta', got 'plat'; did you mean 'platt'"),
    ("--score distance", "a bank of training points (--bank)"),
    ("--score margni", "did you mean 'margin'"),
    ("--kernel count", "kernel"),
    ("--labels truth", "validation.npz: expected an array 'truth', got vectors, logits, labels"),
    ("--out curve.txt", "curve.txt: expected a file that ends in .csv, .parquet, .jsonl"),
    ("--apply no.npz", "no.npz: expected a file, got nothing there"),
]


@pytest.mark.parametrize(("options", "words"), REFUSED)
def test_bad_input_is_one_line_on_standard_error(run, options, words):
    code, out, err = run(f"calibrate validation.npz {options}")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert words in err


def test_held_out_rows_must_not_be_those_of_the_bank(run):
    code, _, err = run("calibrate train.npz --bank bank.safetensors")
    assert code == 2
    assert "got 300 that all lie at distance 0 of a bank point" in err


def test_diagnose_prints_what_the_library_finds(run):
    expected = diagnose(HELD_OUT, Bank(BANK.vectors, BANK.labels), k=20, most=100, samples=50, seed=3)
    line = "diagnose validation.npz --bank bank.safetensors --k 20 --most 100 --samples 50 --seed 3"
    assert run(line) == (0, f"{expected}\n", "")
    assert json.loads(run(f"{line} --json")[1]) == json.loads(json.dumps(plain(expected.to_json())))
    code, _, err = run("diagnose validation.npz --bank bank.safetensors --k 0")
    assert (code, err.count("\n")) == (2, 1)
