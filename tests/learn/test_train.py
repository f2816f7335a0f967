"""From images to a folder: what is in it, and that nothing but the recipe, the data and the seed decides it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import learn_runs
from learn_runs import CASES, PACE, pixels
from vicinal import data
from vicinal.bank import Bank
from vicinal.data import DataSet, Images
from vicinal.errors import FileError, InputError, ShapeError
from vicinal.learn import checkpoint, recipes
from vicinal.learn.journal import read_journal
from vicinal.learn.loop import CHECKPOINT, LOG, Pace
from vicinal.learn.network import Network
from vicinal.learn.preprocess import Preprocessing
from vicinal.learn.recipe import OneCycle, Recipe
from vicinal.learn.train import Trained, train, train_dataset
from vicinal.values import Embeddings

SHORT = CASES["distance"].change(steps=24)
KILLS = 5


def files(folder: Path) -> dict[str, bytes]:
    """Every file's bytes; of the log, all but the times."""
    found = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != LOG}
    lines = read_journal(folder / LOG)
    for line in lines:
        assert line.pop("seconds") >= 0
    return {**found, LOG: json.dumps(lines).encode()}


def assert_same_files(first: Path, second: Path) -> None:
    one, other = files(first), files(second)
    assert sorted(one) == sorted(other)
    for name in one:
        assert one[name] == other[name], name


# --- killed, starved, resumed


def whole_run(case: str, folder: Path) -> Path:
    out = folder / "whole"
    process = learn_runs.started(case, out)
    process.join()
    assert process.exitcode == 0
    return out


def kill_at_random(case: str, out: Path, luck: random.Random) -> None:
    """Kill the run with SIGKILL, somewhere in the thirty steps after the next line of the log."""
    goal = learn_runs.lines(out) + luck.randint(1, 16)
    process = learn_runs.started(case, out)
    while learn_runs.lines(out) < goal and process.is_alive():
        process.join(luck.random() * 0.01)
    process.kill()
    process.join()
    assert process.exitcode == -9


def check_kills(case: str, folder: Path, kills: int) -> None:
    luck, out = random.Random(case), folder / "killed"
    for _ in range(kills):
        kill_at_random(case, out, luck)
    process = learn_runs.started(case, out)
    process.join()
    assert process.exitcode == 0
    assert_same_files(whole_run(case, folder), out)


def test_a_killed_run_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    check_kills("distance", tmp_path, 2)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_run_killed_again_and_again_resumes_to_the_same_bytes(tmp_path: Path, case: str) -> None:
    check_kills(case, tmp_path, KILLS)


def test_a_full_disk_at_a_checkpoint_leaves_the_one_before_and_the_run_resumes(tmp_path: Path) -> None:
    out = tmp_path / "starved"
    kill_at_random("adversarial", out, random.Random(1))
    before = checkpoint.read(out / CHECKPOINT)
    size = (out / CHECKPOINT).stat().st_size
    process = learn_runs.started("adversarial", out, most_bytes=size - 1)
    process.join()
    said = (out / "error.txt").read_text()
    assert f"stopped at step {before.step + 4}: no checkpoint could be written" in said
    assert "File too large; what was there before is whole; make room and resume" in said
    assert checkpoint.read(out / CHECKPOINT).step == before.step
    (out / "error.txt").unlink()
    process = learn_runs.started("adversarial", out)
    process.join()
    assert_same_files(whole_run("adversarial", tmp_path), out)


# --- from images to a folder


def test_a_folder_holds_the_network_and_its_log_and_no_checkpoint(tmp_path: Path) -> None:
    network = train(*pixels(), SHORT, out=tmp_path / "run", classes=tuple("abcd"), validation=pixels(20, 1), pace=PACE)
    names = ["log.jsonl", "network.json", "preprocessing.safetensors", "weights.safetensors"]
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == names
    loaded = Network.load(tmp_path / "run")
    assert (loaded.recipe, loaded.classes, loaded.metrics) == (SHORT, tuple("abcd"), network.metrics)
    assert network.metrics["steps"] == 24
    assert network.metrics["last"]["validation"]["accuracy"] <= 1
    test = pixels(30, 2)
    np.testing.assert_array_equal(loaded.embed(test[0]).logits, network.embed(test[0]).logits)
    validation = network.embed(*pixels(20, 1))
    assert validation.correct.mean() == network.metrics["last"]["validation"]["accuracy"]


def test_it_learns() -> None:
    network = train(*pixels(), SHORT.change(method="reg", steps=200, crop=0, flip=False))
    assert network.embed(*pixels(200, 5)).correct.mean() > 0.95


def test_preprocessing_is_fitted_on_the_images_to_train_on_alone() -> None:
    recipe = SHORT.change(preprocessing={"standardize": {}}, steps=2)
    network = train(*pixels(), recipe, validation=pixels(20, 1))
    wanted = Preprocessing.fit(pixels()[0], {"standardize": {}})
    np.testing.assert_array_equal(network.preprocessing.stages[0].mean, wanted.stages[0].mean)


def test_seed_and_width_reach_the_network() -> None:
    first, second = (train(*pixels(), SHORT.change(steps=1, width=width), seed=1) for width in (0.125, 0.25))
    third = train(*pixels(), SHORT.change(steps=1, width=0.125), seed=2)
    assert first.fingerprint != third.fingerprint
    assert sum(p.numel() for p in first.module.parameters()) < sum(p.numel() for p in second.module.parameters())
    assert first.facts["seed"] == "1"


def test_the_caller_s_random_state_is_left_alone() -> None:
    before = torch.random.get_rng_state()
    train(*pixels(), SHORT.change(steps=2))
    assert torch.equal(before, torch.random.get_rng_state())


def test_a_finished_network_is_taken_by_resume_and_guarded_otherwise(tmp_path: Path) -> None:
    network = train(*pixels(), SHORT, out=tmp_path)
    before = files(tmp_path)
    assert train(*pixels(), SHORT, out=tmp_path, resume=True).fingerprint == network.fingerprint
    with pytest.raises(InputError, match="there is a finished network in it"):
        train(*pixels(), SHORT, out=tmp_path)
    with pytest.raises(InputError, match=r"alpha: 0\.3, not 0\.2; seed: 1, not 0"):
        train(*pixels(), SHORT.change(alpha=0.3), out=tmp_path, seed=1, resume=True)
    with pytest.raises(InputError, match=r"got another .points: \w+, not \w+.$"):
        train(*pixels(seed=9), SHORT, out=tmp_path, resume=True)
    assert files(tmp_path) == before


def test_an_unfinished_run_is_guarded(tmp_path: Path) -> None:
    kill_at_random("distance", tmp_path / "run", random.Random(3))
    with pytest.raises(InputError, match="expected no run in this folder, got one; resume it, or choose another"):
        train(*pixels(), CASES["distance"], out=tmp_path / "run", seed=3)
    with pytest.raises(InputError, match=r"margin: 4\.0, not 3\.0"):
        train(*pixels(), CASES["distance"].change(margin=4.0), out=tmp_path / "run", seed=3, resume=True)
    with pytest.raises(InputError, match="other images or labels"):
        train(*pixels(seed=4), CASES["distance"], out=tmp_path / "run", seed=3, resume=True)


@pytest.mark.parametrize(
    ("images", "labels", "options", "error", "message"),
    [
        (pixels()[0].astype(float), pixels()[1], {}, InputError, "images: expected pixels as uint8"),
        (pixels()[0], pixels()[1][1:], {}, ShapeError, "labels: expected 120, one for each image, got 119"),
        (pixels()[0], pixels()[1], {"classes": "abc"}, InputError, r"classes from 0 to 2, got 3 at row \d+ .30 such"),
        (pixels()[0], pixels()[1] - 1, {}, InputError, "classes from 0 to 2, got -1 at row"),
        (pixels()[0], pixels()[1], {"validation": (pixels(4)[0], [0, 1, 2, 4])}, InputError, "from 0 to 3, got 4"),
        (pixels()[0], pixels()[1], {"validation": (np.zeros((1, 9, 8, 1), np.uint8), [0])}, ShapeError, "8, 8, 1"),
    ],
)
def test_data_that_cannot_be_are_refused(
    tmp_path: Path, images: Any, labels: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        train(images, labels, SHORT, out=tmp_path / "run", **options)


def test_two_classes_at_least() -> None:
    images, labels = pixels(20)
    assert train(images, labels * 0, SHORT.change(steps=1)).classes == ("0", "1")


# --- from a data set to a bank


def stripes() -> DataSet:
    return DataSet("digits", Images(*pixels(200)), Images(*pixels(40, 7)), tuple("abcd"), {"title": "stripes"})


TINY: dict[str, Any] = {"recipe": SHORT, "pace": Pace(2, 4)}


def test_a_data_set_leaves_network_embeddings_and_bank(tmp_path: Path) -> None:
    found = train_dataset(stripes(), out=tmp_path, **TINY)
    train_rows, validation_rows = data.split(stripes().train.labels, 0.1, 0)
    assert (len(found.train), len(found.test), len(found.bank)) == (180, 40, 180)
    assert found.validation is not None
    np.testing.assert_array_equal(found.validation.labels, stripes().train.labels[validation_rows])
    np.testing.assert_array_equal(found.train.labels, stripes().train.labels[train_rows])
    np.testing.assert_array_equal(found.bank.vectors, found.train.vectors)
    np.testing.assert_array_equal(found.bank.labels, found.train.labels)
    again = found.network.embed(stripes().test.images, stripes().test.labels)
    np.testing.assert_array_equal(found.test.vectors, again.vectors)
    assert found.network.classes == tuple("abcd")
    assert found.test.facts["data"] == "digits"
    assert found.test.facts["fingerprint"] == found.network.fingerprint == found.bank.facts["fingerprint"]
    assert (
        Bank.load(tmp_path / "bank.safetensors").dimension
        == Embeddings.load(tmp_path / "test.safetensors").vectors.shape[1]
    )


def test_validation_points_are_the_same_for_every_seed_and_can_be_none(tmp_path: Path) -> None:
    first = train_dataset(stripes(), out=tmp_path / "a", seed=1, **TINY)
    second = train_dataset(stripes(), out=tmp_path / "b", seed=2, **TINY)
    np.testing.assert_array_equal(first.validation.labels, second.validation.labels)
    assert first.network.fingerprint != second.network.fingerprint
    none = train_dataset(stripes(), out=tmp_path / "c", validation=0, **TINY)
    assert none.validation is None
    assert len(none.train) == 200
    assert not (tmp_path / "c" / "validation.safetensors").exists()
    assert "validation" not in none.network.metrics["last"]


def test_resume_makes_what_is_missing_and_keeps_what_is_there(tmp_path: Path) -> None:
    train_dataset(stripes(), out=tmp_path, **TINY)
    before = files(tmp_path)
    (tmp_path / "bank.safetensors").unlink()
    (tmp_path / "test.safetensors").unlink()
    other = Embeddings.load(tmp_path / "train.safetensors")
    Embeddings(other.vectors[:5], facts={"fingerprint": "another"}).save(tmp_path / "validation.safetensors")
    train_dataset(stripes(), out=tmp_path, resume=True, **TINY)
    assert files(tmp_path) == before
    with pytest.raises(InputError, match="there is a finished network"):
        train_dataset(stripes(), out=tmp_path, **TINY)
    with pytest.raises(InputError, match="method: 'reg', not 'distance'"):
        train_dataset(stripes(), out=tmp_path, method="reg", resume=True, **TINY)


def test_a_data_set_and_a_recipe_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "data" / "digits"
    folder.mkdir(parents=True)
    for part, images in (("train", stripes().train), ("test", stripes().test)):
        np.save(folder / f"{part}_images.npy", images.images)
        np.save(folder / f"{part}_labels.npy", images.labels)
    quick = recipes.named("digits", "digits").change(epochs=1)
    monkeypatch.setitem(recipes._ALL, "digits", {"digits": quick})
    found = train_dataset("digits", "digits", "adversarial", out=tmp_path / "run", root=tmp_path / "data")
    assert found.network.recipe == quick.change(method="adversarial")
    monkeypatch.setenv("VICINAL_DATA", str(tmp_path / "data"))
    named = train_dataset("digits", "digits", out=tmp_path / "reg")
    assert named.network.recipe.method == "reg"
    with pytest.raises(InputError, match="expected one of 'cifar100', 'stl10-32', 'svhn', got 'digits'"):
        train_dataset("digits", out=tmp_path / "none")


def test_a_folder_that_holds_no_run_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"network\.json: expected a file, got nothing there"):
        Trained.load(tmp_path)


def test_recipes_may_be_given_as_they_are(tmp_path: Path) -> None:
    recipe = Recipe(name="mine", network="digits", schedule=OneCycle(0.01), steps=2, batch=10, width=0.125)
    assert train_dataset(stripes(), recipe, "distance", out=tmp_path).network.recipe == recipe.change(method="distance")
