"""``vicinal train`` from a folder of images to a network, its embeddings and its bank."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import layouts
from learn_runs import pixels
from vicinal import Bank, Embeddings, store
from vicinal.learn import recipes, train
from vicinal.learn.network import Network
from vicinal.learn.recipe import OneCycle, Recipe

RECIPE = Recipe(name="mine", network="digits", schedule=OneCycle(0.01), epochs=2, batch=20, width=0.125, margin=3.0)


def save(name, images, labels, test_labels, test_images=None):
    """A data set of arrays."""
    place = Path("data") / name
    place.mkdir(parents=True)
    np.save(place / "train_images.npy", images)
    np.save(place / "train_labels.npy", labels)
    np.save(place / "test_images.npy", images if test_images is None else test_images)
    np.save(place / "test_labels.npy", test_labels)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder to work in, with a data root that holds 200 stripes to train on and 40 to test on."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VICINAL_DATA", str(tmp_path / "data"))
    images, labels = pixels(240)
    save("digits", images[:200], labels[:200], labels[200:], images[200:])
    store.write_json("mine.json", RECIPE.to_json())
    return tmp_path


def test_it_leaves_a_network_its_embeddings_and_its_bank(done):
    out = done("train --dataset digits --recipe mine.json --method distance --seed 3")
    place = Path("digits-distance-3")
    network = Network.load(place)
    assert network.recipe == RECIPE.change(method="distance")
    assert network.facts["seed"] == "3"
    assert len(Bank.load(place / "bank.safetensors")) == 180
    right = {name: Embeddings.load(place / f"{name}.safetensors").correct for name in ("train", "validation", "test")}
    said = ", ".join(f"{part.mean():.3f} on {len(part)} {name} images" for name, part in right.items())
    assert out.splitlines() == [
        f"{place}: digits, distance, 18 steps",
        f"accuracy: {said}",
        f"next: vicinal evaluate {place}/test.safetensors --bank {place}/bank.safetensors",
    ]


def test_what_it_says_next_works(done):
    line = done("train --dataset digits --recipe mine.json").splitlines()[-1]
    assert "AUROC" in done(line.removeprefix("next: vicinal ") + " --samples 20")


def test_in_json(done):
    found = json.loads(done("train --dataset digits --recipe mine.json --out here --json"))
    parts = {name: Embeddings.load(path) for name, path in found["files"].items() if name != "bank"}
    assert found == {
        "folder": "here",
        "dataset": "digits",
        "method": "reg",
        "recipe": "mine",
        "seed": 0,
        "steps": 18,
        "images": {"train": 180, "validation": 20, "test": 40},
        "accuracy": {name: part.correct.mean() for name, part in parts.items()},
        "files": {name: f"here/{name}.safetensors" for name in ("train", "validation", "test", "bank")},
        "fingerprint": Network.load("here").fingerprint,
    }


def test_every_option_is_handed_on(run, monkeypatch):
    asked = []

    def spy(*arguments, **options):
        asked.append((arguments, options))
        raise KeyboardInterrupt

    monkeypatch.setattr(train, "train_dataset", spy)
    line = "--method adversarial --recipe tuned --seed 4 --out o --data d --validation 0.2 --device cpu"
    assert run(f"train --dataset svhn {line} --resume --retries 2")[0] == 130
    assert asked == [
        (
            ("svhn", "tuned", "adversarial"),
            {
                "out": Path("o"),
                "seed": 4,
                "device": "cpu",
                "resume": True,
                "retries": 2,
                "validation": 0.2,
                "root": Path("d"),
            },
        )
    ]
    asked.clear()
    run("train --dataset some/where/pets --recipe mine.json")
    ((arguments, options),) = asked
    assert arguments == ("some/where/pets", RECIPE, None)
    assert options["out"] == Path("pets-reg-0")


def test_a_recipe_by_name(done, monkeypatch):
    quick = recipes.named("digits", "digits").change(epochs=1)
    monkeypatch.setitem(recipes._ALL, "digits", {"digits": quick})
    done("train --dataset digits --recipe digits --method adversarial")
    assert Network.load("digits-adversarial-0").recipe == quick.change(method="adversarial")


def test_none_to_validate_on(done):
    found = json.loads(done("train --dataset digits --recipe mine.json --validation 0 --json"))
    assert found["images"] == {"train": 200, "test": 40}


def test_a_finished_run_is_guarded_and_resumed(run, done):
    line = "train --dataset digits --recipe mine.json --json"
    first = done(line)
    code, out, err = run(line)
    assert (code, out) == (2, "")
    assert "digits-reg-0: there is a finished network in it; choose another folder, or resume to take it" in err
    assert done(f"{line} --resume") == first
    code, _, err = run(f"{line} --resume --seed 1 --out digits-reg-0")
    assert code == 2
    assert "seed: 1, not 0" in err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--dataset digist", "digist: expected one of cifar10"),
        ("--dataset cifar100", "get them with: vicinal data fetch cifar100"),
        ("--dataset digits", "data set of the recipe 'compact': expected one of"),
        ("--dataset digits --recipe compcat", "got 'compcat'; did you mean 'compact'?"),
        ("--dataset digits --recipe yours.json", "yours.json: expected a file, got nothing there"),
        ("--dataset digits --recipe broken.json", "broken.json: expected"),
        ("--dataset digits --recipe mine.json --method distanc", "did you mean 'distance'?"),
        ("--dataset digits --recipe mine.json --device gpu", "device: expected one that torch can use here"),
        ("--dataset digits --recipe mine.json --validation 1", "share: expected a number above 0 and below 1"),
        ("--dataset digits --recipe mine.json --seed -1", "seed: expected a whole number of at least 0, got -1"),
        ("--dataset digits --recipe mine.json --retries -1", "retries: expected a whole number of at least 0"),
        ("--dataset digits --recipe large.json", "size: expected a batch of at most 180, all the points there are"),
        ("--dataset digits --recipe negative.json", "margin: expected a number in"),
        ("--dataset lonely --recipe mine.json --method distance", "at least two points of every class"),
        ("--dataset beyond --recipe mine.json", "test_labels.npy: expected labels from 0 to 3, got 4"),
        ("", "Missing option '--dataset'"),
    ],
)
def test_what_is_refused_is_said_in_one_line_before_the_first_step(line, said, run):
    Path("broken.json").write_text("{")
    store.write_json("large.json", RECIPE.change(batch=181).to_json())
    store.write_json("negative.json", RECIPE.to_json() | {"margin": -1.0})
    images, labels = pixels(40)
    save("lonely", images, np.where(np.arange(40) == 3, 1, 0), labels % 2)
    save("beyond", images, labels, labels + 1)
    code, out, err = run(f"train {line} --out run")
    assert (code, out) == (2, "")
    assert err.startswith("vicinal: ")
    assert err.count("\n") == 1
    assert said in err
    assert not list(Path().glob("run/log.jsonl"))


def test_without_torch_it_says_what_to_install(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    code, _, err = run("train --dataset digits --recipe mine.json")
    assert code == 2
    assert err == "vicinal: vicinal train needs torch; install it with: pip install 'vicinal[torch]'\n"


INTERRUPTED = """
import functools, os, signal, sys
from vicinal.cli import main
from vicinal.learn import journal, loop

write = journal.Journal.write

def write_and_interrupt(self, **line):
    write(self, **line)
    if line["step"] == 100:
        os.kill(os.getpid(), signal.SIGINT)

journal.Journal.write = write_and_interrupt
loop.Pace = functools.partial(loop.Pace, log=20, checkpoint=40)
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(os.name != "posix", reason="signals are sent otherwise on Windows")
def test_ctrl_c_leaves_a_run_that_resume_brings_to_the_same_end(done):
    """A real process, interrupted between two checkpoints."""
    store.write_json("long.json", RECIPE.change(epochs=20).to_json())
    line = "train --dataset digits --recipe long.json --json --out"
    words = [sys.executable, "-c", INTERRUPTED, *shlex.split(line), "one"]
    found = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert (found.returncode, found.stdout, found.stderr) == (130, "", "")
    assert sorted(path.name for path in Path("one").iterdir()) == [
        "checkpoint.safetensors",
        "log.jsonl",
        "preprocessing.safetensors",
    ]
    resumed, whole = json.loads(done(f"{line} one --resume")), json.loads(done(f"{line} two"))
    assert resumed["steps"] == 180
    assert resumed["fingerprint"] == whole["fingerprint"]


@pytest.mark.slow
def test_the_lines_in_the_docs_work_one_after_the_other(done, tmp_path):
    """All but the download."""
    page = Path(__file__).parents[2] / "docs" / "command-line.md"
    (block,) = re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    layouts.cifar100(tmp_path / "data", n=300)
    lines = [line.removeprefix("vicinal ") for line in block.splitlines()]
    assert lines.pop(1) == "data fetch cifar100"
    for line in lines:
        assert done(line)
    assert len(Bank.load("cifar100-distance-0/bank.safetensors")) == 270
