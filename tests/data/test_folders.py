from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest
from PIL import Image

import layouts
from vicinal.data import load
from vicinal.errors import FileError, MissingExtraError


def class_folder(root, *, mode="RGB", size=(6, 5), suffix=".png", name="pets"):
    """Two classes, three images each to train on and one to test on; lossless, so that they come back as they were."""
    written = {}
    for part, count in (("train", 3), ("test", 1)):
        for label, animal in enumerate(("cat", "dog")):
            (root / name / part / animal).mkdir(parents=True)
            for number in range(count):
                channels = {"RGB": 3, "L": 1, "RGBA": 4}[mode]
                pixels = layouts.pixels(1, 6, channels, 100 * label + 10 * count + number)[0][: size[0], : size[1]]
                path = root / name / part / animal / f"{number}{suffix}"
                Image.fromarray(pixels[..., 0] if channels == 1 else pixels).save(path)
                written.setdefault(part, []).append(pixels)
    return {part: np.stack(images) for part, images in written.items()}


def test_arrays_come_back_as_they_were_saved(tmp_path):
    layouts.arrays(tmp_path)
    found = load("mine", root=tmp_path)
    np.testing.assert_array_equal(found.train.images, layouts.pixels(6, 8, 3, 1))
    np.testing.assert_array_equal(found.test.labels, layouts.labels(6, 3))
    assert found.class_names == ("0", "1", "2")
    assert "notes" not in found.facts


def test_class_names_are_read_and_may_be_more_than_the_labels(tmp_path):
    (layouts.arrays(tmp_path) / "class_names.txt").write_text("cat\ndog\n\nmouse \nélan\n", encoding="utf-8")
    assert load("mine", root=tmp_path).class_names == ("cat", "dog", "mouse", "élan")


def test_stl10_partial_is_called_what_it_is(tmp_path):
    layouts.arrays(tmp_path, "stl10-partial")
    found = load("stl10-partial", root=tmp_path)
    assert found.facts["title"] == "STL-10 partial"
    assert "not a result on STL-10" in found.facts["notes"]
    assert found.class_names[0] == "airplane"
    assert len(found.class_names) == 10


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("test_labels", np.array([0, 1, 2, 3, 0, 0]), r"test_labels\.npy: expected labels from 0 to 2, got 3 at row 3"),
        ("train_labels", np.array([0, 1, 2, 0, 0]), "labels: expected 6, one for each image, got 5"),
        ("train_labels", np.array([0, 1, -2, 0, 0, 0]), "expected classes counted from 0, got -2"),
        ("train_labels", np.array([0, 1, 0.5, 0, 0, 0]), "expected whole numbers, got 0.5"),
        ("train_images", np.zeros((6, 8, 8, 3)), "expected pixels as uint8"),
        ("train_images", np.zeros((6, 8, 7, 3), np.uint8), r"expected images of one shape, got \(8, 7, 3\)"),
        ("test_images", np.zeros((6, 8, 8, 2), np.uint8), r"test_images\.npy .*\(n, h, w, 1 or 3\)"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(file, content, says, tmp_path):
    np.save(layouts.arrays(tmp_path) / f"{file}.npy", content)
    with pytest.raises(FileError, match=says):
        load("mine", root=tmp_path)


def test_pickled_arrays_are_not_opened(tmp_path):
    class Trap:
        def __reduce__(self):
            return (sys.exit, ("the trap was sprung",))

    with (layouts.arrays(tmp_path) / "train_images.npy").open("wb") as file:
        pickle.dump(Trap(), file)
    with pytest.raises(FileError, match=r"train_images\.npy: expected a \.npy file of numbers"):
        load("mine", root=tmp_path)
    np.save(tmp_path / "mine" / "train_images.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    with pytest.raises(FileError, match=r"train_images\.npy: expected a \.npy file of numbers"):
        load("mine", root=tmp_path)


def test_a_npy_file_cut_short_is_refused(tmp_path):
    path = layouts.arrays(tmp_path) / "test_images.npy"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(FileError, match=r"test_images\.npy: expected a \.npy file"):
        load("mine", root=tmp_path)


def test_a_missing_array_is_named(tmp_path):
    (layouts.arrays(tmp_path) / "test_labels.npy").unlink()
    with pytest.raises(FileError, match=r"test_labels\.npy: expected train_ and test_ images and labels"):
        load("mine", root=tmp_path)


@pytest.mark.parametrize(("content", "says"), [(b"\n \n", "got none"), (b"\xff\xfe", "in UTF-8")])
def test_class_names_that_cannot_be_read_are_refused(content, says, tmp_path):
    (layouts.arrays(tmp_path) / "class_names.txt").write_bytes(content)
    with pytest.raises(FileError, match=rf"class_names\.txt: expected the name of one class a line.*{says}"):
        load("mine", root=tmp_path)


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".PNG"])
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_images_by_class_come_back_as_they_were_saved(mode, suffix, tmp_path):
    written = class_folder(tmp_path, mode=mode, suffix=suffix)
    found = load("pets", root=tmp_path)
    np.testing.assert_array_equal(found.train.images, written["train"])
    np.testing.assert_array_equal(found.test.images, written["test"])
    assert found.train.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert found.test.labels.tolist() == [0, 1]
    assert found.class_names == ("cat", "dog")


def test_one_coloured_image_makes_all_of_them_rgb(tmp_path):
    written = class_folder(tmp_path, mode="L")
    Image.new("RGB", (5, 6), (1, 2, 3)).save(tmp_path / "pets" / "test" / "dog" / "0.png")
    found = load("pets", root=tmp_path)
    np.testing.assert_array_equal(found.train.images, np.repeat(written["train"], 3, axis=3))
    assert found.test.images[1, 0, 0].tolist() == [1, 2, 3]


def test_a_palette_is_resolved(tmp_path):
    class_folder(tmp_path)
    Image.new("RGB", (5, 6), (9, 8, 7)).quantize(4).save(tmp_path / "pets" / "train" / "cat" / "0.png")
    assert load("pets", root=tmp_path).train.images[0, 3, 3].tolist() == [9, 8, 7]


def test_other_files_are_left_out_and_counted(tmp_path):
    class_folder(tmp_path)
    (tmp_path / "pets" / "train" / "cat" / "notes.txt").write_text("meow")
    (tmp_path / "pets" / "train" / "dog" / ".hidden.png").write_text("")
    (tmp_path / "pets" / "train" / ".cache").mkdir()
    found = load("pets", root=tmp_path)
    assert len(found.train) == 6
    assert found.facts["notes"] == "2 files that are not images were left out"


def test_a_class_need_not_be_tested_on(tmp_path):
    class_folder(tmp_path)
    (tmp_path / "pets" / "test" / "cat" / "0.png").unlink()
    (tmp_path / "pets" / "test" / "cat").rmdir()
    assert load("pets", root=tmp_path).test.labels.tolist() == [1]


def damage_size(pets):
    Image.new("RGB", (4, 6)).save(pets / "test" / "cat" / "0.png")


def damage_mode(pets):
    Image.new("RGBA", (5, 6)).save(pets / "train" / "dog" / "1.png")


def damage_depth(pets):
    Image.new("I;16", (5, 6)).save(pets / "train" / "dog" / "1.png")


def damage_bytes(pets):
    path = pets / "train" / "cat" / "2.png"
    path.write_bytes(path.read_bytes()[:60])


def damage_kind(pets):
    (pets / "train" / "cat" / "2.png").write_text("not an image at all")


def damage_class(pets):
    (pets / "test" / "horse").mkdir()


def damage_empty(pets):
    (pets / "train" / "ant").mkdir()


def damage_test(pets):
    for path in sorted((pets / "test").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()


def damage_folder(pets):
    damage_test(pets)
    (pets / "test").rmdir()


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (damage_size, r"test/cat/0\.png: expected 6 x 5 pixels \(height x width\).* got 6 x 4"),
        (damage_mode, r"train/dog/1\.png: expected 8 bits of grey or RGB, got mode RGBA"),
        (damage_depth, r"train/dog/1\.png: expected 8 bits of grey or RGB, got mode I;16"),
        (damage_bytes, r"train/cat/2\.png: expected an image"),
        (damage_kind, r"train/cat/2\.png: expected an image"),
        (damage_class, "test: expected the classes of train, cat, dog, got horse too"),
        (damage_empty, "train/ant: expected at least one image"),
        (damage_test, "test: expected at least one image, got none"),
        (damage_folder, "test: expected a folder with a folder of images for each class, got nothing"),
    ],
)
def test_images_that_do_not_fit_are_refused(damage, says, tmp_path):
    class_folder(tmp_path)
    damage(tmp_path / "pets")
    with pytest.raises(FileError, match=says):
        load("pets", root=tmp_path)


def test_without_pillow_the_error_says_what_to_install(tmp_path, monkeypatch):
    class_folder(tmp_path)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'vicinal\[images\]'"):
        load("pets", root=tmp_path)
