"""A network and its folder: what goes in comes out, and what does not belong together is refused."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import vicinal
from vicinal.errors import FileError, InputError, ShapeError
from vicinal.learn.embed import fingerprint, from_model
from vicinal.learn.network import Network, is_finished, module_for
from vicinal.learn.preprocess import Preprocessing
from vicinal.learn.recipe import OneCycle, Recipe

RECIPE = Recipe(name="mine", network="resnet", schedule=OneCycle(0.1), epochs=1, width=0.25)


def pixels(n: int = 40) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.random.default_rng(0).integers(0, 256, (n, 8, 8, 3), np.uint8)


def network(recipe: Recipe = RECIPE, classes: tuple[str, ...] = ("a", "b", "c")) -> Network:
    """A network whose norms have moved, so that evaluation mode matters."""
    chain = Preprocessing.fit(pixels(), {"global-contrast": {}, "whitening": {"epsilon": 0.1}})
    module = module_for(recipe, len(classes), chain.shape, seed=3).train()
    with torch.no_grad():
        module(torch.from_numpy(chain.apply(pixels())))
    return Network(module, chain, recipe, classes, {"steps": 4, "last": {"loss": 0.5}}, {"data": "noise"})


def test_save_and_load_give_the_same_network(tmp_path: Path) -> None:
    saved = network()
    saved.save(tmp_path / "n")
    loaded = Network.load(tmp_path / "n")
    assert loaded.fingerprint == saved.fingerprint == fingerprint(saved.module)
    assert (loaded.recipe, loaded.classes, loaded.metrics, loaded.facts) == (
        saved.recipe,
        saved.classes,
        saved.metrics,
        saved.facts,
    )
    one, other = saved.embed(pixels()), loaded.embed(pixels())
    np.testing.assert_array_equal(one.vectors, other.vectors)
    np.testing.assert_array_equal(one.logits, other.logits)
    assert not loaded.module.training


def test_every_architecture_has_a_folder(tmp_path: Path) -> None:
    for number, (name, width) in enumerate([("digits", 0.5), ("svhn", 0.25), ("cifar100", 0.125), ("stl10", 0.125)]):
        shape = (8, 8, 1) if name == "digits" else (32, 32, 3)
        recipe = RECIPE.change(network=name, width=width, dropout=0.5)
        chain = Preprocessing((), shape)
        Network(module_for(recipe, 5, shape, seed=number), chain, recipe, tuple("abcde")).save(tmp_path / name)
        loaded = Network.load(tmp_path / name)
        wanted = fingerprint(module_for(recipe, 5, shape, seed=number))
        assert loaded.fingerprint == wanted


@pytest.mark.slow
def test_loading_needs_no_other_code(tmp_path: Path) -> None:
    network().save(tmp_path / "n")
    np.save(tmp_path / "x.npy", pixels(5))
    code = (
        "import sys, numpy as np, vicinal.learn.network as n\n"
        "e = n.Network.load(sys.argv[1]).embed(np.load(sys.argv[2]))\n"
        "print(float(e.logits.sum()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "n"), str(tmp_path / "x.npy")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(done.stdout) == pytest.approx(float(network().embed(pixels(5)).logits.sum()), abs=1e-4)


def test_the_folder_is_plain(tmp_path: Path) -> None:
    from safetensors.torch import load_file

    saved = network()
    saved.save(tmp_path)
    weights = load_file(tmp_path / "weights.safetensors")
    for name, value in saved.module.state_dict().items():
        np.testing.assert_array_equal(weights[name].reshape(value.shape).numpy(), value.numpy())
    said = json.loads((tmp_path / "network.json").read_text())
    assert said["classes"] == ["a", "b", "c"]
    assert said["versions"]["vicinal"] == vicinal.__version__
    assert said["versions"]["torch"] == torch.__version__
    assert (said["format"], said["version"]) == ("vicinal.network", 1)
    assert Recipe.from_json(said["recipe"]) == RECIPE


def test_embed_is_the_forward_pass_after_preprocessing() -> None:
    found = network()
    embeddings = found.embed(pixels(), np.arange(40) % 3, batch=7)
    ready = torch.from_numpy(found.preprocessing.apply(pixels()))
    with torch.no_grad():
        logits, vectors = found.module(ready)
    np.testing.assert_allclose(embeddings.vectors, vectors.numpy(), atol=1e-5)
    np.testing.assert_allclose(embeddings.logits, logits.numpy(), atol=1e-5)
    np.testing.assert_array_equal(embeddings.labels, np.arange(40) % 3)
    np.testing.assert_array_equal(embeddings.predicted, logits.argmax(1).numpy())
    assert embeddings.facts == {
        "network": "resnet",
        "layer": "embedding",
        "torch": torch.__version__,
        "fingerprint": found.fingerprint,
        "recipe": "mine",
        "method": "reg",
        "data": "noise",
    }


def test_the_embedding_is_the_input_of_the_last_linear_layer() -> None:
    found = network()
    ready = torch.from_numpy(found.preprocessing.apply(pixels()))
    other = from_model(found.module, [ready], logits="logits")
    np.testing.assert_allclose(found.embed(pixels()).vectors, other.vectors, atol=1e-5)


def test_batches_change_nothing_to_speak_of() -> None:
    found = network()
    wanted = found.embed(pixels(), batch=40)
    for batch in (1, 13, 39, 100):
        np.testing.assert_allclose(found.embed(pixels(), batch=batch).vectors, wanted.vectors, atol=2e-5)


def test_grey_images_need_no_channel() -> None:
    recipe = RECIPE.change(network="digits")
    found = Network(module_for(recipe, 2, (8, 8, 1)), Preprocessing((), (8, 8, 1)), recipe, ("x", "y"))
    grey = pixels()[..., 0]
    np.testing.assert_array_equal(found.embed(grey).vectors, found.embed(grey[..., None]).vectors)


def test_embedding_leaves_no_trace() -> None:
    found = network()
    torch.manual_seed(0)
    before = torch.random.get_rng_state()
    one = found.embed(pixels())
    assert torch.equal(before, torch.random.get_rng_state())
    assert found.fingerprint == fingerprint(found.module)
    np.testing.assert_array_equal(one.vectors, found.embed(pixels()).vectors)


def test_it_says_what_it_is() -> None:
    assert repr(network()) == "Network(resnet, 3 classes, reg, mine)"
    assert network().to("cpu").module.training is False


def test_finished_is_when_the_facts_are_there(tmp_path: Path) -> None:
    assert not is_finished(tmp_path)
    network().save(tmp_path)
    assert is_finished(tmp_path)


@pytest.mark.parametrize(
    ("images", "options", "error", "message"),
    [
        (pixels().astype(np.float32), {}, InputError, "expected pixels as uint8"),
        (pixels()[:, :4], {}, ShapeError, r"expected shape \(n, 8, 8, 3\), got \(40, 4, 8, 3\)"),
        (pixels()[0], {}, ShapeError, "for one image, pass images"),
        (pixels(), {"labels": [1, 2]}, ShapeError, "expected 40, one for each image, got 2"),
        (pixels(), {"batch": 0}, InputError, "batch: expected a whole number of at least 1"),
    ],
)
def test_images_that_cannot_be_are_refused(
    images: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        network().embed(images, **options)


def change(path: Path, act: Any) -> None:
    said = json.loads(path.read_text())
    act(said)
    path.write_text(json.dumps(said))


def test_weights_of_another_network_are_refused(tmp_path: Path) -> None:
    network().save(tmp_path / "a")
    network(RECIPE.change(width=0.5)).save(tmp_path / "b")
    (tmp_path / "a" / "weights.safetensors").write_bytes((tmp_path / "b" / "weights.safetensors").read_bytes())
    with pytest.raises(FileError, match=r"weights\.safetensors: expected the file that network\.json was written for"):
        Network.load(tmp_path / "a")
    change(tmp_path / "a" / "network.json", lambda said: said.update(checksums={}))
    with pytest.raises(FileError, match=r"expected .* of shape"):
        Network.load(tmp_path / "a")


def test_other_preprocessing_is_refused(tmp_path: Path) -> None:
    network().save(tmp_path)
    Preprocessing((), (8, 8, 3)).save(tmp_path / "preprocessing.safetensors")
    with pytest.raises(FileError, match=r"preprocessing\.safetensors: expected the file that network\.json was"):
        Network.load(tmp_path)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda said: said.update(format="other"), r"expected the facts of a vicinal\.network, got something else"),
        (lambda said: said.update(version=2), "expected version 1 or older, got 2; update vicinal"),
        (lambda said: said.update(version="1"), "expected version 1 or older, got '1'"),
        (lambda said: said.pop("recipe"), "expected the facts of a network, got 'recipe'"),
        (lambda said: said["recipe"].update(dropuot=1), "an unknown field 'dropuot'"),
        (lambda said: said.update(fingerprint="0"), "expected weights with the fingerprint 0"),
        (lambda said: said["checksums"].update({"../x": ""}), "expected the file that"),
        (lambda said: said["recipe"].update(network="nonet"), "expected one of"),
    ],
)
def test_facts_that_cannot_be_are_refused(tmp_path: Path, act: Any, message: str) -> None:
    network().save(tmp_path)
    change(tmp_path / "network.json", act)
    with pytest.raises((FileError, InputError), match=message):
        Network.load(tmp_path)


@pytest.mark.parametrize("name", ["network.json", "weights.safetensors", "preprocessing.safetensors"])
def test_missing_and_damaged_files_are_refused(tmp_path: Path, name: str) -> None:
    network().save(tmp_path)
    path = tmp_path / name
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(FileError, match=re.escape(name)):
        Network.load(tmp_path)
    path.unlink()
    with pytest.raises(FileError, match=f"{re.escape(name)}: expected a file, got nothing there"):
        Network.load(tmp_path)


def test_a_list_is_not_the_facts_of_a_network(tmp_path: Path) -> None:
    network().save(tmp_path)
    (tmp_path / "network.json").write_text("[1]")
    with pytest.raises(FileError, match="got something else"):
        Network.load(tmp_path)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_on_a_gpu(tmp_path: Path) -> None:
    network().save(tmp_path)
    found = Network.load(tmp_path, device="cuda").embed(pixels())
    np.testing.assert_allclose(found.vectors, network().embed(pixels()).vectors, atol=1e-2)
