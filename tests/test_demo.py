"""The demo: what it shows is what the networks did, in words, as JSON and as a picture, with and without the extras."""

from __future__ import annotations

import importlib
import json
import math
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn import datasets
from sklearn.metrics import roc_auc_score
from sklearn.neural_network import MLPClassifier

import oracle
import vicinal
from legible import assert_legible
from vicinal import demo, plots, tables
from vicinal.cli import main
from vicinal.demo import digits as parts
from vicinal.demo import judging, result, views
from vicinal.errors import FileError, InputError, WriteError


class Seen:
    """One run of the demo, and everything that it went through."""

    def __init__(self, folder, seed):
        self.out = folder / "demo.png"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(judging, "_SAMPLES", 60)
            patch.setattr("vicinal.plots.save", self._keep(plots.save))
            patch.setattr(demo, "learn", self._learn(demo.learn))
            self.result = demo.run(self.out, seed=seed)
        self.plain = self.views[0]

    def _keep(self, save):
        def kept(figure, path):
            self.figure = figure
            save(figure, path)

        return kept

    def _learn(self, learn):
        def learnt(digits, seed):
            self.digits = digits
            self.views, notes = learn(digits, seed)
            return self.views, notes

        return learnt


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """A run without torch."""
    have = importlib.import_module

    def lack(name, *arguments):
        if name == "torch":
            raise ModuleNotFoundError(name)
        return have(name, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("importlib.import_module", lack)
        return Seen(tmp_path_factory.mktemp("alone"), seed=3)


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """A run with torch, whose networks learn for a shorter time."""
    from vicinal.learn import recipes

    named = recipes.named
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recipes, "named", lambda *words: named(*words, epochs=5))
        return Seen(tmp_path_factory.mktemp("three"), seed=0)


@pytest.fixture(params=["alone", "three"])
def seen(request):
    return request.getfixturevalue(request.param)


class TestDigits:
    def test_the_parts_are_all_images_once(self):
        found, raw = demo.load_digits(5), datasets.load_digits()
        images = np.concatenate([found.train, found.test, found.novel])[..., 0]
        labels = np.concatenate([found.train_labels, found.test_labels, found.novel_labels])
        had = sorted(
            (int(label), (image * 255 / 16 + 0.5).astype(int).tolist())
            for image, label in zip(raw.images, raw.target, strict=True)
        )
        assert sorted((int(label), image.tolist()) for image, label in zip(images, labels, strict=True)) == had

    def test_few_of_each_known_digit_to_train_on_and_none_of_the_others(self):
        found = demo.load_digits(5)
        assert np.bincount(found.train_labels).tolist() == [parts.PER_CLASS] * 8
        assert sorted(set(found.test_labels.tolist())) == list(range(8))
        assert set(found.novel_labels.tolist()) == {8, 9}

    def test_the_seed_decides(self):
        one, same, other = (demo.load_digits(seed).train for seed in (1, 1, 2))
        np.testing.assert_array_equal(one, same)
        assert (one != other).any()


class TestViews:
    def test_logits_of_scikit_learn_give_its_probabilities(self):
        noise = np.random.default_rng(0)
        inputs, labels = noise.random((40, 6)), noise.integers(0, 3, 40)
        network = MLPClassifier(hidden_layer_sizes=(5, 4), random_state=0)
        network.partial_fit(inputs, labels, classes=(0, 1, 2))
        vectors, logits = views.hidden_and_logits(network, inputs)
        assert vectors.shape == (40, 4)
        shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(shares, network.predict_proba(inputs), atol=1e-12)

    def test_with_torch_three_networks_and_the_hybrid_of_two(self, three):
        assert [one.name for one in three.views] == ["plain", "distance loss", "adversarial", "hybrid"]
        plain, other, adversarial, hybrid = three.views
        for part in ("train", "test", "novel"):
            mixed, predicts, embeds = (getattr(one, part) for one in (hybrid, plain, adversarial))
            np.testing.assert_array_equal(mixed.predicted, predicts.predicted)
            np.testing.assert_array_equal(mixed.vectors, embeds.vectors)
            np.testing.assert_array_equal(mixed.labels, predicts.labels)
            assert mixed.logits is None
        assert not np.array_equal(plain.test.vectors, other.test.vectors)
        assert three.result.notes == ()

    def test_without_torch_one_network_and_the_command_that_brings_the_others(self, alone):
        assert [one.name for one in alone.views] == ["plain"]
        assert alone.result.notes == (
            "the demo with three networks needs torch; install it with: pip install 'vicinal[torch]'",
        )

    def test_the_threads_of_torch_are_as_before(self, three):
        import torch

        before = torch.get_num_threads()
        with views._one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == before

    def test_they_learn(self, alone):
        assert alone.plain.test.correct.mean() > 0.9


class TestJudging:
    def test_auroc_against_scikit_learn(self, seen):
        for view, judged in zip(seen.views, seen.result.networks, strict=True):
            bank = vicinal.Bank(view.train.vectors, view.train.labels)
            ranks = {
                part: vicinal.distance(bank, one.vectors, one.predicted, k=judging.K).log_odds
                for part, one in (("test", view.test), ("novel", view.novel))
            }
            expected = roc_auc_score(view.test.correct, ranks["test"])
            assert judged.errors.interval("distance").value == pytest.approx(expected, abs=1e-12)
            known = np.repeat([1, 0], [len(ranks["test"]), len(ranks["novel"])])
            expected = roc_auc_score(known, np.concatenate([ranks["test"], ranks["novel"]]))
            assert judged.novelties.interval("distance").value == pytest.approx(expected, abs=1e-12)

    def test_scores_on_outputs_against_scikit_learn(self, seen):
        logits = seen.plain.test.logits.astype(np.float64)
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        found = seen.result.networks[0].errors
        expected = roc_auc_score(seen.plain.test.correct, np.max(shares, axis=1))
        assert found.interval("margin").value == pytest.approx(expected, abs=2e-4)  # shares of 1.0 tie
        expected = roc_auc_score(seen.plain.test.correct, np.log(np.exp(logits).sum(axis=1)))
        assert found.interval("energy").value == pytest.approx(expected, abs=1e-9)

    def test_a_hybrid_has_only_scores_on_neighbours(self, three):
        hybrid = three.result.networks[-1]
        assert hybrid.errors.scores == hybrid.novelties.scores == judging.ON_NEIGHBORS

    def test_verdicts_are_differences_of_what_the_tables_show(self, seen):
        named = {one.name: one for one in seen.result.networks}

        def auroc(words, job):
            network, score = words.split(": ")
            return getattr(named[network], job).interval(score).value

        for one in seen.result.verdicts:
            expected = auroc(one.first, one.job) - auroc(one.second, one.job)
            assert one.found.difference == pytest.approx(expected, abs=1e-12)
        pairs = [(one.job, one.first, one.second) for one in seen.result.verdicts]
        assert pairs[:2] == [(job, "plain: distance", "plain: margin") for job in ("errors", "novelties")]
        assert pairs[2:] == ([("errors", "hybrid: distance", "plain: distance")] if len(named) > 1 else [])


def cells_of(text, heading):
    """The cells of the table below a heading, by the name of the row."""
    _, _, rest = text.partition(f"{heading}\n")
    lines = rest.split("\n\n")[0].splitlines()
    return lines[0].split("  "), {line.split()[0]: re.split(r"\s{2,}", line)[1:] for line in lines[1:]}


class TestWords:
    @pytest.mark.parametrize("columns", [80, 200])
    def test_it_fits_the_terminal(self, seen, columns, monkeypatch):
        monkeypatch.setenv("COLUMNS", str(columns))
        lines = str(replace(seen.result, picture=None, notes=())).splitlines()
        assert max(map(len, lines)) <= min(columns, 120)
        assert lines == [line.rstrip() for line in lines]

    def test_in_a_wide_terminal_every_number_has_its_interval(self, three, monkeypatch):
        monkeypatch.setenv("COLUMNS", "120")
        for (job, metric), (heading, _) in result._TABLES.items():
            _, rows = cells_of(str(three.result), heading)
            assert list(rows) == list(judging.SCORES)
            for score, cells in rows.items():
                for one, cell in zip(three.result.networks, cells, strict=True):
                    found = getattr(one, job)
                    if score not in found.scores:
                        assert cell == "-"
                        continue
                    numbers = [float(number) for number in re.findall(r"\d\.\d+", cell)]
                    interval = found.interval(score, metric)
                    assert numbers == pytest.approx([interval.value, interval.low, interval.high], abs=5.1e-4)

    def test_in_a_narrow_one_half_of_its_width(self, three, monkeypatch):
        monkeypatch.setenv("COLUMNS", "80")
        _, rows = cells_of(str(three.result), result._TABLES["errors", "aurc"][0])
        value, half = (float(number) for number in re.findall(r"\d\.\d+", rows["margin"][0]))
        found = three.result.networks[0].errors.interval("margin", "aurc")
        assert (value, half) == pytest.approx((found.value, (found.high - found.low) / 2), abs=5.1e-5)

    def test_a_single_network_has_a_single_table(self, alone, monkeypatch):
        monkeypatch.setenv("COLUMNS", "120")
        (one,) = alone.result.networks
        text = str(alone.result)
        assert "errors: AUROC         errors: AURC             novelties: AUROC" in text
        for score in judging.SCORES:
            shown = re.search(rf"^{score} +(\d\.\d+) .*\]  (\d\.\d+) .*\]  (\d\.\d+) ", text, re.MULTILINE)
            expected = [one.errors.interval(score).value, one.errors.interval(score, "aurc").value]
            expected.append(one.novelties.interval(score).value)
            assert [float(number) for number in shown.groups()] == pytest.approx(expected, abs=5.1e-4)

    def test_accuracy_and_errors(self, seen, monkeypatch):
        monkeypatch.setenv("COLUMNS", "120")
        text = str(seen.result)
        for view in seen.views:
            wrong = int((view.test.predicted != view.test.labels).sum())
            assert f"{wrong:,} of 1,323" in text
            assert f"{1 - wrong / 1323:.3f} [" in text

    def test_the_finding_counts_the_least_trusted(self, seen):
        bank = vicinal.Bank(seen.plain.train.vectors, seen.plain.train.labels)
        near = bank.nearest(seen.plain.test.vectors, judging.K)
        trust = vicinal.distance(bank, seen.plain.test.vectors, seen.plain.test.predicted, k=judging.K)
        least = sorted(range(len(near)), key=lambda row: trust.log_odds[row])[:5]
        wrong = sum(seen.plain.test.predicted[row] != seen.digits.test_labels[row] for row in least)
        first = {0: "None", 5: "All"}.get(wrong, str(wrong))
        assert seen.result.finding.startswith(f"{first} ")

    @pytest.mark.parametrize(
        ("wrong", "words"),
        [
            (0, "None of the 5 predictions that their neighbours trust least are wrong"),
            (1, "1 of the 5 predictions that their neighbours trust least is wrong"),
            (5, "All 5 predictions that their neighbours trust least are wrong"),
        ],
    )
    def test_none_one_and_all(self, wrong, words):
        ranks = np.arange(1000.0)
        trust = vicinal.Trust("distance", ranks, ranks)
        correct = np.arange(1000) >= wrong
        judged = SimpleNamespace(trusts={"distance": trust}, errors=SimpleNamespace(errors=1000 - wrong, n=1000))
        view = SimpleNamespace(test=SimpleNamespace(correct=correct))
        assert (
            result.found_in(judged, view)
            == f"{words}; of all 1,000, {1000 - wrong:,} are ({(1000 - wrong) / 10:.1f}%)."
        )

    def test_differences_that_could_be_chance_are_called_so(self, alone):
        for p, said in ((0.049, False), (0.05, True)):
            verdicts = tuple(replace(one, found=replace(one.found, p=p)) for one in alone.result.verdicts)
            assert ("too few images" in str(replace(alone.result, verdicts=verdicts))) is said

    def test_it_ends_in_the_picture(self, seen):
        assert str(seen.result).endswith(f"\npicture: {seen.out}")
        for note in seen.result.notes:
            assert f"\nnote: {note}\n" in str(seen.result)

    def test_json_says_the_same(self, seen):
        found = json.loads(json.dumps(tables.plain(seen.result.to_json()), allow_nan=False))
        assert list(found["networks"]) == [one.name for one in seen.views]
        for one, rows in zip(seen.result.networks, found["networks"].values(), strict=True):
            assert rows["wrong"] == one.errors.errors
            assert (
                rows["accuracy"]["value"]
                == 1 - rows["wrong"] / rows["predictions"]
                == pytest.approx(one.errors.accuracy.value)
            )
            for job in ("errors", "novelties"):
                shown = {(row["score"], row["metric"]): row["value"] for row in rows[job]}
                for place, interval in getattr(one, job).intervals.items():
                    assert shown[place] == (None if math.isnan(interval.value) else interval.value)
        assert found["picture"] == str(seen.out)
        assert [verdict["p"] for verdict in found["verdicts"]] == [one.found.p for one in seen.result.verdicts]


class TestPicture:
    def every(self, figure, kind):
        """The lines of all panels by what is said of them: (heading of the panel, name)."""
        return {
            (axes.get_title(loc="left"), line.get_gid().partition(":")[2], place): line
            for place, axes in enumerate(figure.findobj(lambda one: hasattr(one, "lines")))
            for line in axes.lines
            if (line.get_gid() or "").startswith(kind)
        }

    def test_it_is_legible(self, seen):
        assert_legible(seen.figure)

    def test_it_is_the_file(self, seen):
        from PIL import Image

        with Image.open(seen.out) as shown:
            assert shown.size == tuple(map(int, seen.figure.canvas.get_width_height()))
            assert shown.width == 1600

    def test_every_interval_stands_at_its_value(self, seen):
        dots = list(self.every(seen.figure, "dot").items())
        expected = [
            (one.name, score, getattr(one, job).interval(score).value)
            for job in ("errors", "novelties")
            for one in seen.result.networks
            for score in getattr(one, job).scores
        ]
        assert len(dots) == len(expected)
        for ((network, score, _), dot), (name, wanted, value) in zip(dots, expected, strict=True):
            assert (network, score) == (name, wanted)
            assert dot.get_xdata()[0] == (value if value >= 0.8 else 0.8)
            assert dot.get_marker() == ("o" if value >= 0.8 else "<")

    def test_accuracies_stand_beside_the_errors(self, seen):
        panels = [axes for axes in seen.figure.axes if any((line.get_gid() or "")[:4] == "dot:" for line in axes.lines)]
        shown = [(axes.get_title(loc="left"), axes.get_title(loc="right")) for axes in panels]
        errors = [(one.name, f"accuracy {one.test.correct.mean():.3f}") for one in seen.views]
        assert shown == [*errors, *((one.name, "") for one in seen.views)]

    def test_the_curves_end_in_the_share_of_errors(self, seen):
        curves = self.every(seen.figure, "curve")
        assert sorted(name for _, name, _ in curves) == sorted(judging.SCORES)
        for curve in curves.values():
            assert curve.get_ydata()[-1] == pytest.approx(1 - seen.plain.test.correct.mean())

    def test_the_least_trusted_stand_beside_their_neighbours(self, seen):
        (gallery,) = (
            axes for axes in seen.figure.findobj(lambda one: hasattr(one, "images")) if getattr(axes, "images", None)
        )
        pixels = {image.get_gid(): np.asarray(image.get_array()) for image in gallery.images}
        rows = [int(name.split(":")[1]) for name in pixels if name.startswith("query")]
        assert rows == plots.least_trusted(seen.result.networks[0].trusts["distance"], 5).tolist()
        for row in rows:
            np.testing.assert_array_equal(pixels[f"query:{row}"], seen.digits.test[row, ..., 0])
            near = oracle.nearest(seen.plain.train.vectors, seen.plain.test.vectors[row], 8)
            for column, (_, index) in enumerate(near):
                np.testing.assert_array_equal(pixels[f"neighbor:{row}:{column}"], seen.digits.train[index, ..., 0])
        words = [text.get_text() for text in gallery.texts]
        predicted = [f"“{seen.plain.test.predicted[row]}”" for row in rows]
        assert [word for word in words if word.startswith("“")] == predicted


class TestRefused:
    """Before anything is trained, and without a trace."""

    @pytest.fixture(autouse=True)
    def nothing_is_trained(self, monkeypatch, tmp_path):
        def never(*arguments):
            raise AssertionError("trained")

        monkeypatch.setattr(demo, "learn", never)
        monkeypatch.chdir(tmp_path)
        yield
        assert [one.name for one in tmp_path.iterdir()] in ([], ["folder.png"])

    @pytest.mark.parametrize(
        ("out", "kind", "words"),
        [
            ("demo.gif", InputError, ".png, .pdf, .svg, .jpg, got '.gif'"),
            ("demo", InputError, "expected a file that ends in"),
            ("no/demo.png", FileError, "expected an existing folder no; create it first"),
            ("folder.png", FileError, "expected a file to write, got a folder"),
        ],
    )
    def test_a_place_that_cannot_hold_a_picture(self, out, kind, words, tmp_path):
        if out == "folder.png":
            Path(out).mkdir()
        with pytest.raises(kind, match=re.escape(words)):
            demo.run(out)

    def test_a_folder_that_cannot_be_written(self, monkeypatch, capsys):
        def refuse(*, dir):
            raise PermissionError(13, "Permission denied", f"{dir}/tmp")

        monkeypatch.setattr("tempfile.TemporaryFile", refuse)
        with pytest.raises(WriteError):
            demo.run("demo.png")
        assert main(["demo"]) == 2
        said = "vicinal: demo.png: expected a folder that can be written, got: Permission denied\n"
        assert capsys.readouterr() == ("", said)

    @pytest.mark.skipif(not Path("/proc/self").exists(), reason="a folder in which nobody can write, on Linux only")
    def test_a_real_folder_that_cannot_be_written(self):
        with pytest.raises(WriteError, match="expected a folder that can be written"):
            demo.run("/proc/demo.png")

    @pytest.mark.parametrize("seed", [-1, 2**32, 1.5])
    def test_a_seed_that_is_none(self, seed):
        with pytest.raises(InputError, match="seed"):
            demo.run("demo.png", seed=seed)


def test_without_extras_it_runs_without_a_warning_and_says_what_is_missing(tmp_path):
    script = "\n".join(
        [
            "import sys",
            "class Missing:",
            "    def find_spec(self, name, path=None, target=None):",
            "        if name in ('torch', 'matplotlib'):",
            "            raise ModuleNotFoundError(name)",
            "sys.meta_path.insert(0, Missing())",
            "from vicinal.demo import judging",
            "judging._SAMPLES = 20",
            "from vicinal.cli import main",
            "raise SystemExit(main(['demo', '--json']))",
        ]
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["picture"] is None
    assert [note.partition("install it with: ")[2] for note in found["notes"]] == [
        "pip install 'vicinal[torch]'",
        "pip install 'vicinal[plots]'",
    ]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_in_full_the_three_networks_are_alike_in_accuracy(tmp_path, seed):
    found = demo.run(tmp_path / "demo.svg", seed=seed)
    accuracies = [one.errors.accuracy.value for one in found.networks]
    assert min(accuracies) > 0.92
    assert max(accuracies) - min(accuracies) < 0.03
