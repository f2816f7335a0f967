"""The guard: its parts against their own functions, its promise by simulation, its folder against everything."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

from vicinal import Bank, Embeddings, Guard, VicinalError, store
from vicinal.density import density
from vicinal.errors import FileError, InputError, ShapeError, WriteError
from vicinal.explain import explain
from vicinal.guard import Decisions
from vicinal.held_out import Caution
from vicinal.score import distance, energy, margin
from vicinal.selective import parts
from vicinal.values import LOG_PROBABILITIES

CENTRES = 2.6 * np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
LABELS = np.array([-3, 0, 5, 12])
NAMES = ["ant", "bee", "cat", "dog"]


def draw(n, seed, facts=None):
    """Four classes that overlap; the logits are those of a network that knows the centres roughly."""
    generator = np.random.default_rng(seed)
    codes = generator.integers(0, 4, n)
    vectors = CENTRES[codes] + generator.normal(size=(n, 3))
    logits = -((vectors[:, None] - CENTRES - 0.3) ** 2).sum(axis=2) / 2
    return Embeddings(vectors, logits, LABELS[codes], classes=LABELS, facts=facts or {})


TRAIN, CALIBRATION, TEST = draw(400, 0), draw(900, 1), draw(300, 2)


@pytest.fixture(scope="module")
def guard():
    return Guard.fit_arrays(TRAIN, CALIBRATION, k=10, risk=0.1, false_alarms=0.1, names=NAMES)


def same(first, second):
    """Whether two decisions are the same to the last bit."""
    for name in ("label", "probability", "p_value", "decision", "log_odds", "rival"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    for name in ("indices", "distances", "labels"):
        np.testing.assert_array_equal(getattr(first.neighbors, name), getattr(second.neighbors, name))
    assert first.names == second.names


# What it decides.


def test_decisions_are_what_the_parts_say(guard):
    found = guard(TEST.vectors, TEST.logits)
    bank = Bank(TRAIN.vectors, TRAIN.labels)
    reasons = distance(bank, TEST.vectors, TEST.predicted, k=10)
    fused = guard.fusion(parts(bank, TEST, k=10))
    triaged = guard.triage(density(bank, TEST.vectors, k=10), fused)
    np.testing.assert_array_equal(found.label, TEST.predicted)
    np.testing.assert_array_equal(found.log_odds, fused.log_odds)
    np.testing.assert_array_equal(found.probability, guard.calibration(fused))
    np.testing.assert_array_equal(found.decision, triaged.decision)
    np.testing.assert_array_equal(found.p_value, triaged.p_value)
    np.testing.assert_array_equal(found.rival, reasons.rival.labels)
    np.testing.assert_array_equal(found.neighbors.indices, reasons.neighbors.indices)
    assert set(found.decision) == {"accept", "unsure", "novel"}


def test_one_third_fits_the_fusion_and_the_other_rows_the_promise(guard):
    assert (guard.score, guard.fusion.n, guard.calibration.n) == ("fused", 300, 600)
    assert len(guard.triage.detector.known[None]) == 600
    order = np.random.default_rng(0).permutation(900)
    unseen = density(guard.bank, CALIBRATION.vectors[order[300:]], k=10)
    np.testing.assert_array_equal(guard.triage.detector.known[None], np.sort(unseen.log_odds))


@pytest.mark.parametrize("name", ["distance", "margin"])
def test_a_score_that_needs_no_fit_has_all_rows_for_the_promise(name):
    found = Guard.fit_arrays(TRAIN, CALIBRATION, k=10, score=name, risk=0.1)
    assert (found.score, found.fusion, found.calibration.n) == (name, None, 900)
    plain = margin(TEST.logits) if name == "margin" else distance(found.bank, TEST.vectors, TEST.predicted, k=10)
    np.testing.assert_array_equal(found(TEST).log_odds, plain.log_odds)
    np.testing.assert_array_equal(found(TEST).probability, found.calibration(plain))


@pytest.mark.parametrize("name", ["distance", "energy"])
def test_novelty_may_be_told_by_other_scores(name, tmp_path):
    found = fit(novelty=name)
    plain = energy(TEST.logits) if name == "energy" else distance(found.bank, TEST.vectors, TEST.predicted, k=10)
    np.testing.assert_array_equal(found(TEST).p_value, found.triage.detector.p_value(plain))
    found.save(tmp_path / "guard")
    same(Guard.load(tmp_path / "guard")(TEST), found(TEST))


def test_a_classifier_without_logits_is_guarded_by_distance():
    def bare(embeddings):
        return Embeddings(embeddings.vectors, labels=embeddings.labels, predicted=embeddings.predicted)

    found = Guard.fit_arrays(bare(TRAIN), bare(CALIBRATION), k=10, risk=0.1)
    assert (found.score, found.classes) == ("distance", None)
    same(found(TEST.vectors, predicted=TEST.predicted), found(bare(TEST)))
    same(found(TEST), found(TEST.vectors, TEST.logits, predicted=TEST.predicted))
    with pytest.raises(InputError, match="predicted: expected the classes predicted, as the guard was fitted without"):
        found(TEST.vectors, TEST.logits)


def test_arrays_embeddings_batches_and_single_inputs_are_decided_alike(guard, monkeypatch):
    whole = guard(TEST)
    same(whole, guard(TEST.vectors, TEST.logits))
    same(whole, Decisions.join([guard(TEST.take([i])) for i in range(len(TEST))]))
    monkeypatch.setattr("vicinal.guard.guard._TOGETHER", 10 * 70)
    same(whole, guard(TEST))


def test_where_not_all_neighbours_are_kept_the_density_still_counts_them(guard, monkeypatch):
    whole = guard(TEST)
    monkeypatch.setattr("vicinal.score._KEPT", 100)
    monkeypatch.setattr("vicinal.score._SHOWN", 3)
    np.testing.assert_array_equal(guard(TEST).p_value, whole.p_value)
    np.testing.assert_array_equal(guard(TEST).decision, whole.decision)


def test_a_bank_will_do_as_training_points(guard):
    same(guard(TEST), Guard.fit_arrays(guard.bank, CALIBRATION, k=10, risk=0.1, false_alarms=0.1, names=NAMES)(TEST))


def test_probabilities_are_calibrated_and_far_inputs_are_novel():
    guard = Guard.fit_arrays(TRAIN, draw(6000, 3), k=10, risk=0.1)
    fresh = draw(20_000, 4)
    found = guard(fresh)
    for low in (0.3, 0.5, 0.7, 0.9):
        rows = (found.probability >= low) & (found.probability < low + 0.1)
        claimed, right = found.probability[rows].mean(), fresh.correct[rows].mean()
        assert right == pytest.approx(claimed, abs=0.05)
    assert (guard(fresh.vectors[:50] + 30.0, fresh.logits[:50]).decision == "novel").all()


# The answer as a value.


def test_columns_records_and_table_say_the_same(guard):
    found = guard(TEST.vectors[:30], TEST.logits[:30])
    columns, records = found.columns(), found.records()
    assert {len(column) for column in columns.values()} == {30}
    near = found.neighbors
    for i, record in enumerate(records):
        assert {name: record[name] for name in columns} == {name: column[i].item() for name, column in columns.items()}
        assert record["name"] == NAMES[LABELS.tolist().index(record["label"])]
        assert record["rival_name"] == NAMES[LABELS.tolist().index(record["rival"])]
        assert record["agreeing"] == sum(label == record["label"] for label in near.labels[i])
        nearest = record["neighbors"][0]
        assert (nearest["row"], nearest["distance"]) == (record["nearest"], record["nearest_distance"])
        assert [one["row"] for one in record["neighbors"]] == near.indices[i, :5].tolist()
    assert json.loads(json.dumps(records)) == records
    lines = str(found).splitlines()
    assert lines[0].split() == list(columns)
    assert len(lines) == 1 + 20 + 1
    assert lines[1].split()[1:3] == [str(found.label[0]), records[0]["name"]]
    assert lines[-1] == "... and 10 more"
    counts = {name: int((found.decision == name).sum()) for name in ("accept", "unsure", "novel")}
    assert repr(found) == "Decisions(30 inputs: {accept} accept, {unsure} unsure, {novel} novel)".format(**counts)
    assert found.shares() == {name: count / 30 for name, count in counts.items()}
    assert str(explain(found.distance, [0])[0]).startswith(f"row 0: predicted {found.label[0]}")


def test_without_names_there_are_no_columns_of_them():
    found = Guard.fit_arrays(TRAIN, CALIBRATION, k=10, risk=0.1)(TEST)
    assert not {"name", "rival_name"} & set(found.columns())


def test_names_by_label_need_not_be_complete(guard):
    some = Guard.fit_arrays(TRAIN, CALIBRATION, k=10, risk=0.1, names={0: "bee"})
    assert set(some(TEST).columns()["name"]) == {"-3", "bee", "5", "12"}


def test_a_guard_says_what_it_promises(guard):
    text = str(guard)
    assert "guard over 400 points of 3 dimensions, 4 classes; k = 10" in text
    assert "at most 0.1 of the accepted predictions are wrong and at most 0.1 of the inputs of known classes" in text
    assert "with 0.95 confidence" in text
    assert f"{guard.triage.shares['accept']:.1%} are accepted" in text
    assert repr(guard) == "Guard(fused, k = 10, Bank(400 x 3, 4 classes))"


def test_a_class_that_the_bank_does_not_have_is_noted():
    bank = Bank(TRAIN.vectors, TRAIN.labels).take(np.flatnonzero(TRAIN.labels != 12))
    known = CALIBRATION.take(np.flatnonzero(CALIBRATION.labels != 12))
    found = Guard.fit_arrays(bank, known, k=10, risk=0.1)(TEST)
    assert any("name a class that the bank does not have (12)" in note for note in found.notes)


# The promise.


def promise_broken(guard, fresh, truth):
    """Whether more than promised is wrong among the accepted, or called novel among the known, in truth."""
    found = guard(fresh)
    accepted = found.decision == "accept"
    return truth[accepted].mean() > guard.triage.risk or (found.decision == "novel").mean() > guard.triage.false_alarms


@pytest.mark.slow
def test_the_promise_of_a_whole_guard_holds_with_its_probability():
    bank = Bank(TRAIN.vectors, TRAIN.labels)
    fresh = draw(20_000, 5)
    # the true probability of each prediction being wrong, from the densities that were drawn from
    weights = np.exp(-((fresh.vectors[:, None] - CENTRES) ** 2).sum(axis=2) / 2)
    chosen = np.searchsorted(LABELS, fresh.predicted)
    wrong = 1 - weights[np.arange(len(fresh)), chosen] / weights.sum(axis=1)
    broken, trials, delta = 0, 200, 0.2
    for trial in range(trials):
        guard = Guard.fit_arrays(bank, draw(600, 100 + trial), k=10, risk=0.08, false_alarms=0.1, delta=delta)
        broken += promise_broken(guard, fresh, wrong)
    assert broken <= binom.ppf(0.999, trials, delta)


def digits(seed):
    """Handwritten digits seen by a small network, of 250 to train on: those, and all others."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(labels))
    train, rest = order[:250], order[250:]
    network = MLPClassifier((32,), max_iter=80, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it need not converge
        network.fit(images[train] / 16, labels[train])
    hidden = np.maximum(images / 16 @ network.coefs_[0] + network.intercepts_[0], 0)
    logits = hidden @ network.coefs_[1] + network.intercepts_[1]
    everything = Embeddings(hidden, logits, labels)
    return everything.take(train), everything.take(rest)


def test_on_digits_thresholds_fitted_on_validation_hold_on_test():
    train, rest = digits(0)
    assert (~rest.correct).mean() > 0.1  # without a guard, twice what is promised below
    risk, alarms, delta, splits = 0.05, 0.05, 0.1, 20
    beyond, wrong, accepted, novel, tested = 0, 0, 0, 0, 0
    for split in range(splits):
        order = np.random.default_rng(split).permutation(len(rest))
        validation, test = rest.take(order[:1000]), rest.take(order[1000:])
        guard = Guard.fit_arrays(train, validation, k=20, risk=risk, false_alarms=alarms, delta=delta, seed=split)
        decision = guard(test).decision
        counts = (
            int((~test.correct)[decision == "accept"].sum()),
            int((decision == "accept").sum()),
            int((decision == "novel").sum()),
        )
        # a small test set: a rate counts as beyond the promise where chance alone makes it rarer than 1 %
        beyond += counts[0] > binom.ppf(0.99, counts[1], risk) or counts[2] > binom.ppf(0.99, len(test), alarms)
        wrong, accepted, novel, tested = wrong + counts[0], accepted + counts[1], novel + counts[2], tested + len(test)
    assert beyond <= binom.ppf(0.99, splits, delta)
    assert wrong / accepted < risk
    assert novel / tested < alarms
    assert accepted / tested > 0.5


# Where it comes from.


def test_embeddings_of_another_network_are_refused():
    facts = {"fingerprint": "a" * 64, "layer": "input of fc"}
    guard = Guard.fit_arrays(draw(400, 0, facts), draw(900, 1, facts), k=10, risk=0.1)
    assert guard.origin == facts
    same(guard(draw(50, 2, facts)), guard(draw(50, 2)))
    assert guard(draw(50, 2, facts)).notes == ()
    assert guard(draw(50, 2).vectors, draw(50, 2).logits).notes == ()
    assert "do not say which network they come from" in guard(draw(50, 2, {"file": "x.npz"})).notes[0]
    with pytest.raises(InputError, match=r"inputs: expected embeddings of the network.*fingerprint aaaa.*, got bbbb"):
        guard(draw(50, 2, {"fingerprint": "b" * 64}))
    with pytest.raises(InputError, match="with the layer input of fc, got input of head"):
        guard(draw(50, 2, {**facts, "layer": "input of head"}))
    with pytest.raises(InputError, match="calibration: expected embeddings of the network"):
        Guard.fit_arrays(draw(400, 0, facts), draw(900, 1, {"fingerprint": "b" * 64}), k=10)
    only = Guard.fit_arrays(draw(400, 0), draw(900, 1, facts), k=10, risk=0.1)
    assert only.origin == facts  # known from the calibration rows alone


def test_a_torch_model_is_guarded_in_one_call():
    import torch

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4))
    inputs = [torch.from_numpy(e.vectors) for e in (TRAIN, CALIBRATION, TEST)]
    codes = [torch.from_numpy(np.searchsorted(LABELS, e.labels)) for e in (TRAIN, CALIBRATION, TEST)]
    optimizer = torch.optim.Adam(model.parameters(), 0.05)
    for _ in range(60):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs[0]), codes[0]).backward()
        optimizer.step()
    batches = [
        [(x[i : i + 100], y[i : i + 100]) for i in range(0, len(x), 100)] for x, y in zip(inputs, codes, strict=True)
    ]
    guard = Guard.fit(model, batches[0], batches[1], k=10, risk=0.1, names=NAMES)
    assert guard.bank.dimension == 8
    found = guard(Embeddings.from_model(model, batches[2]))
    assert (found.decision == "accept").mean() > 0.3
    other = Guard.fit(model, batches[0], batches[1], layer="0", k=10, risk=0.1)
    assert other.origin["layer"] != guard.origin["layer"]
    with torch.no_grad():
        model[0].weight += 0.001
    with pytest.raises(InputError, match="with the fingerprint"):
        guard(Embeddings.from_model(model, batches[2]))


# What bad input gets.


def few(n, **settings):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        guard = Guard.fit_arrays(TRAIN, CALIBRATION.take(range(n)), k=10, **settings)
    return guard, [str(one.message) for one in said]


def test_a_cautious_guard_is_cautious_after_loading_too(tmp_path):
    guard, said = few(20)
    guard.save(tmp_path / "guard")
    loaded = Guard.load(tmp_path / "guard")
    assert loaded.calibration.curve is None
    assert loaded.notes == tuple(said)
    same(loaded(TEST), guard(TEST))


def test_few_calibration_rows_get_a_cautious_guard():
    guard, said = few(20)
    assert guard.score == "distance"
    assert [message.split(":")[0] for message in said] == ["Guard.fit", "calibrate", "Triage.fit", "Triage.fit"]
    assert guard.notes == tuple(said)
    assert set(guard(TEST).decision) == {"unsure"}
    assert "promised: nothing" in str(guard)
    guard, said = few(95, risk=0.1, false_alarms=0.1)
    assert guard.score == "fused"
    assert guard.fusion.n == 31


@pytest.mark.parametrize("right", [True, False])
def test_calibration_rows_that_are_all_right_or_all_wrong(right):
    rows = CALIBRATION.take(np.flatnonzero(CALIBRATION.correct == right))
    with pytest.warns(Caution) as said:
        guard = Guard.fit_arrays(TRAIN, rows, k=10, risk=0.1)
    side = "right" if right else "wrong"
    assert any(f"calibrate: all {guard.calibration.n} rows are {side}" in str(one.message) for one in said)
    assert bool((guard(TEST).decision == "accept").mean() > 0.8) is right


def test_calibration_rows_that_are_in_the_bank_are_left_out():
    both = Embeddings(
        *(
            np.concatenate([getattr(e, name) for e in (TRAIN.take(range(100)), CALIBRATION)])
            for name in ("vectors", "logits", "labels")
        ),
        classes=LABELS,
    )
    with pytest.warns(Caution, match="100 of 1000 held-out rows lie at distance 0") as said:
        guard = Guard.fit_arrays(TRAIN, both, k=10, risk=0.1)
    assert len(said) == 1
    assert guard.fusion.n + guard.calibration.n == 900
    with pytest.raises(InputError, match="400 that all lie at distance 0"):
        Guard.fit_arrays(TRAIN, TRAIN, k=10)


def fit(train=TRAIN, calibration=CALIBRATION, **settings):
    return Guard.fit_arrays(train, calibration, **{"k": 10, "risk": 0.1, **settings})


def _bare():
    return Embeddings(CALIBRATION.vectors, labels=CALIBRATION.labels, predicted=CALIBRATION.predicted)


def _shares():
    return dataclasses.replace(CALIBRATION, facts=dict([LOG_PROBABILITIES]))


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: fit(train=Embeddings([[0.0]])), InputError, "expected labels, the true classes of the training"),
        (lambda: fit(calibration=Embeddings(TEST.vectors, TEST.logits)), InputError, "expected labels, to tell right"),
        (lambda: fit(calibration=Embeddings(TEST.vectors, labels=TEST.labels)), InputError, "logits or predicted"),
        (lambda: fit(calibration=Embeddings(np.ones((300, 2)), predicted=[0] * 300, labels=[0] * 300)), ShapeError,
         "expected 3 columns, as in the bank, got 2"),
        (lambda: fit(calibration=Embeddings(TEST.vectors, TEST.logits, [4] * 300, classes=LABELS)), InputError,
         "calibration: expected inputs of the 4 classes of the bank, got label 4 in row 0 .300 such rows."),
        (lambda: fit(k=0), InputError, "k: expected a whole number from 1 to 400, the size of the bank, got 0"),
        (lambda: fit(k="all"), InputError, "k: expected a whole number from 1 to 400, the size of the bank, got 'all'"),
        (lambda: fit(score="energy"), InputError, "score: expected one of 'fused', 'distance', 'margin', got 'energy'"),
        (lambda: fit(novelty="margin"), InputError, "novelty: expected one of 'density', 'distance', 'energy', got"),
        (lambda: fit(score="margin", calibration=_bare()), InputError, "calibration: expected logits for the score"),
        (lambda: fit(novelty="energy", calibration=_bare()), InputError, "expected logits for the score 'energy'"),
        (lambda: fit(novelty="energy", calibration=_shares()), InputError, "expected logits for the energy, got prob"),
        (lambda: fit(method="plat"), InputError, "did you mean 'platt'"),
        (lambda: fit(risk=0), InputError, "risk: expected a number in"),
        (lambda: fit(names=["a"]), InputError, "names: expected 4, one for each class of the bank, got 1"),
        (lambda: fit(names="abcd"), InputError, "names: expected one for each class, as a list or by label, got str"),
        (lambda: fit(names={"a": "b"}), InputError, "names: expected words by whole-number labels, got 'a': 'b'"),
        (lambda: fit(preprocessing={1, 2}), InputError, "preprocessing: expected what JSON can hold"),
        (lambda: fit(preprocessing=float("nan")), InputError, "preprocessing: expected what JSON can hold"),
        (lambda: fit()(TEST.vectors), InputError, "inputs: expected logits for the score 'fused', got none"),
        (lambda: fit(score="distance")(TEST.vectors), InputError, "got neither; pass one of them in"),
        (lambda: fit()(TEST.vectors, TEST.logits[:, :3]), ShapeError, "logits: expected 4 columns, one for each class"),
        (lambda: fit()(TEST.vectors, TEST.logits[:9]), ShapeError, "logits: expected 300 rows"),
        (lambda: fit()(TEST.vectors[:, :2], TEST.logits), ShapeError, "expected 3 columns, as in the bank"),
        (lambda: fit()(Embeddings(TEST.vectors, TEST.logits)), InputError, "expected logits of the 4 classes of the"),
        (lambda: fit()(TEST, TEST.logits), InputError, "expected none beside embeddings"),
        (lambda: fit()(TEST.vectors * np.nan, TEST.logits), InputError, "vectors: expected finite numbers, got NaN"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_by_name(make, error, words):
    with pytest.raises(error, match=words):
        make()


# On disk.


@pytest.mark.parametrize(
    "settings",
    [
        {"names": NAMES, "preprocessing": {"stages": ["standardize"], "shape": [8, 8, 1]}, "method": "isotonic"},
        {"score": "margin", "names": {12: "dog"}, "method": "beta"},
        {"false_alarms": 0.001, "risk": 0.0001},  # nothing novel, nothing accepted
        {"risk": 0.9},  # everything else accepted
    ],
)
def test_a_guard_that_was_saved_decides_the_same(settings, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Caution)
        guard = fit(**settings)
    guard.save(tmp_path / "guard")
    loaded = Guard.load(tmp_path / "guard")
    same(guard(TEST.vectors, TEST.logits), loaded(TEST.vectors, TEST.logits))
    assert str(loaded) == str(guard)
    assert (loaded.names, loaded.preprocessing, loaded.notes) == (guard.names, guard.preprocessing, guard.notes)
    assert (loaded.triage.novel_at, loaded.triage.accept_at) == (guard.triage.novel_at, guard.triage.accept_at)
    assert loaded.calibration.curve.records() == guard.calibration.curve.records()
    np.testing.assert_array_equal(loaded.classes, guard.classes)
    assert isinstance(loaded.bank.vectors, np.memmap) or isinstance(loaded.bank.vectors.base, np.memmap)


def test_a_guard_keeps_where_it_comes_from(tmp_path):
    facts = {"fingerprint": "a" * 64, "layer": "input of fc"}
    Guard.fit_arrays(draw(400, 0, facts), draw(900, 1, facts), k=10, risk=0.1).save(tmp_path / "guard")
    with pytest.raises(InputError, match="fingerprint"):
        Guard.load(tmp_path / "guard")(draw(50, 2, {"fingerprint": "b" * 64}))


def files(place):
    return sorted(one.name for one in place.iterdir())


def test_a_folder_holds_one_guard_and_nothing_else(guard, tmp_path):
    place = tmp_path / "guard"
    guard.save(place)
    first = files(place)
    assert [name.split("-")[0] for name in first] == ["arrays", "bank", "guard.json"]
    Guard.load(place).save(place)  # from the very files that it takes the place of
    assert len(files(place)) == 3
    assert not set(files(place)) & set(first[:2])
    same(Guard.load(place)(TEST), guard(TEST))


def test_what_a_killed_save_left_is_removed_when_it_is_old(guard, tmp_path):
    place = tmp_path / "guard"
    guard.save(place)
    left = [
        place / "bank-00000000.safetensors",
        place / ".guard.json.0a1b2c3d4e5f.part",
        place / "arrays-1.safetensors",
    ]
    left.pop()
    for one in left:
        one.write_bytes(b"half")
    guard.save(place)
    assert all(one.exists() for one in left)  # perhaps of a save that is going on
    for one in left:
        os.utime(one, (0, 0))
    guard.save(place)
    assert len(files(place)) == 3


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_full_disk_leaves_the_old_guard_whole(at, guard, tmp_path, monkeypatch):
    place = tmp_path / "guard"
    guard.save(place)
    before, other = files(place), fit(score="distance")
    count, replace = iter(range(1, 9)), os.replace

    def full(source, target):
        if next(count) == at:
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(WriteError, match="No space left on device"):
        other.save(place)
    assert files(place) == before
    same(Guard.load(place)(TEST), guard(TEST))


def test_an_interruption_after_the_last_step_leaves_the_new_guard_whole(guard, tmp_path, monkeypatch):
    place, other, write = tmp_path / "guard", fit(score="distance"), store.write_json
    guard.save(place)

    def interrupted(*arguments):
        write(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr("vicinal.store.write_json", interrupted)
    with pytest.raises(KeyboardInterrupt):
        other.save(place)
    same(Guard.load(place)(TEST), other(TEST))


_KILLED = """
import os, sys
from vicinal import Guard
first, second, place, at = Guard.load("first"), Guard.load("second"), sys.argv[1], int(sys.argv[2])
steps = iter(range(1, 99))
def dying(act, after):
    def step(*arguments, **options):
        if after:
            found = act(*arguments, **options)
        if next(steps) == at:
            os.kill(os.getpid(), 9)
        return found if after else act(*arguments, **options)
    return step
os.replace, os.unlink = dying(os.replace, at % 2), dying(os.unlink, at % 2)
os.fsync = dying(os.fsync, at % 2)
import pathlib
pathlib.Path.unlink = dying(pathlib.Path.unlink, at % 2)
second.save(place)
print("saved")
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kills a process as POSIX does")
def test_killed_at_any_step_the_folder_holds_the_old_guard_or_the_new_one(guard, tmp_path):
    other = fit(score="distance")
    guard.save(tmp_path / "first")
    other.save(tmp_path / "second")
    seen = set()
    for at in range(1, 30):
        place = tmp_path / f"place{at}"
        shutil.copytree(tmp_path / "first", place)
        done = subprocess.run([sys.executable, "-c", _KILLED, place, str(at)], cwd=tmp_path, capture_output=True)
        loaded = Guard.load(place)
        same(loaded(TEST), guard(TEST) if loaded.score == "fused" else other(TEST))
        seen.add(loaded.score)
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
    assert at > 8
    assert seen == {"fused", "distance"}


def test_who_opens_a_guard_while_another_takes_its_place_gets_one_of_the_two(guard, tmp_path, monkeypatch):
    place, other = tmp_path / "guard", fit(score="distance")
    guard.save(place)
    load, calls = Bank.load, []

    def late(path):
        calls.append(path)
        if len(calls) == 1:
            other.save(place)  # after the names of the files were read, before they are opened
        return load(path)

    monkeypatch.setattr(Bank, "load", late)
    assert Guard.load(place).score == "distance"
    assert len(calls) == 2


def broken(place, change):
    manifest = place / "guard.json"
    facts = json.loads(manifest.read_text())
    change(facts)
    manifest.write_text(json.dumps(facts))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda facts: facts.update(format="other"), "expected the facts of a vicinal.guard, got something else"),
        (lambda facts: facts.update(version=2), "expected version 1 or older, got 2; update vicinal"),
        (lambda facts: facts.update(bank="../bank.safetensors"), "expected the name of its file of bank"),
        (lambda facts: facts.update(k=401), "expected a guard whose parts agree"),
        (lambda facts: facts.update(score="energy"), "expected a guard whose parts agree"),
        (lambda facts: facts.update(names=5), "expected a guard whose parts agree"),
        (lambda facts: facts.update(fusion={"names": ["distance"]}), "expected a guard whose parts agree"),
        (lambda facts: facts.update(fusion=None), "expected a guard whose parts agree"),
        (lambda facts: facts["triage"].pop("promised"), "expected a guard whose parts agree"),
        (lambda facts: facts["calibration"].update(scale="wide"), "expected a guard whose parts agree"),
    ],
)
def test_a_damaged_guard_is_refused(change, words, guard, tmp_path):
    guard.save(tmp_path / "guard")
    broken(tmp_path / "guard", change)
    with pytest.raises(FileError, match=words):
        Guard.load(tmp_path / "guard")


def test_a_missing_or_cut_file_is_refused(guard, tmp_path):
    guard.save(tmp_path / "guard")
    bank = next((tmp_path / "guard").glob("bank-*"))
    bank.write_bytes(bank.read_bytes()[:5000])
    with pytest.raises(FileError, match="cut short or damaged"):
        Guard.load(tmp_path / "guard")
    bank.unlink()
    with pytest.raises(FileError, match="expected a file, got nothing there"):
        Guard.load(tmp_path / "guard")
    (tmp_path / "guard" / "guard.json").write_text("{")
    with pytest.raises(FileError, match="expected JSON"):
        Guard.load(tmp_path / "guard")
    with pytest.raises(FileError, match=r"expected the folder of a guard, with a file guard.json, got none there"):
        Guard.load(tmp_path / "nothing")


def _denied(path, **options):
    raise PermissionError(13, "Permission denied", str(path))


def test_a_folder_of_other_things_is_not_written_to(guard, tmp_path, monkeypatch):
    (tmp_path / "photo.png").write_bytes(b"")
    with pytest.raises(FileError, match=r"new or empty folder, or that of a guard, got one with 'photo.png'"):
        guard.save(tmp_path)
    with pytest.raises(FileError, match="expected a folder to write, got a file"):
        guard.save(tmp_path / "photo.png")
    with pytest.raises(FileError, match="expected an existing folder"):
        guard.save(tmp_path / "no" / "guard")
    assert files(tmp_path) == ["photo.png"]
    monkeypatch.setattr(Path, "mkdir", _denied)
    with pytest.raises(WriteError, match="guard: expected to create this folder, got: Permission denied"):
        guard.save(tmp_path / "guard")
    monkeypatch.undo()
    assert issubclass(FileError, VicinalError)
    (tmp_path / "empty").mkdir()
    guard.save(Path(tmp_path / "empty"))
    same(Guard.load(tmp_path / "empty")(TEST), guard(TEST))
