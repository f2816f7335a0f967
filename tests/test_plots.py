"""The pictures show what was computed, whole and legible, and touch nothing that is the user's."""

from __future__ import annotations

import base64
import io
import itertools
import re
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import oracle
import vicinal
from legible import assert_legible
from vicinal import plots
from vicinal.errors import InputError, ShapeError
from vicinal.metrics import Interval


def slow_curve(scores, correct):
    """(coverage, risk) at every distinct score, the highest first, by counting."""
    points = []
    for threshold in sorted(set(scores), reverse=True):
        taken = [right for score, right in zip(scores, correct, strict=True) if score >= threshold]
        points.append((len(taken) / len(scores), taken.count(False) / len(taken)))
    return points


def lines_of(axes, kind):
    return {line.get_gid().split(":", 1)[1]: line for line in axes.lines if (line.get_gid() or "").startswith(kind)}


@pytest.fixture
def world():
    noise = np.random.default_rng(5)
    bank = vicinal.Bank(noise.normal(size=(40, 3)), noise.integers(0, 4, 40))
    queries, predicted = noise.normal(size=(7, 3)).astype(np.float32), noise.integers(0, 4, 7)
    images = noise.integers(0, 256, (47, 6, 6, 1), np.uint8)
    return bank, queries, predicted, images[:7], images[7:]


class TestAssertLegible:
    """The checker of the tests below fails where it should."""

    def test_two_texts_at_one_place(self):
        figure = plots.figure(4, 3)
        figure.text(0.3, 0.5, "one")
        figure.text(0.31, 0.5, "two")
        with pytest.raises(AssertionError, match="overlaps"):
            assert_legible(figure)

    def test_a_text_that_leaves(self):
        figure = plots.figure(4, 3)
        figure.text(0.95, 0.5, "too long for this place")
        with pytest.raises(AssertionError, match="too long"):
            assert_legible(figure)


class TestRiskCoverage:
    @settings(max_examples=15, deadline=None)
    @given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=30))
    def test_the_lines_are_the_curves(self, rows):
        scores = {"first": [float(score) for score, _ in rows], "second": [float(-score) for score, _ in rows]}
        correct = [right for _, right in rows]
        figure = plots.risk_coverage(scores, correct, columns=1)
        for axes, (name, values) in zip(figure.axes, scores.items(), strict=True):
            expected = slow_curve(values, correct)
            shown = lines_of(axes, "curve")[name].get_xydata()
            np.testing.assert_allclose(shown[1:], expected, atol=1e-12)
            assert tuple(shown[0]) == (0.0, expected[0][1])
            (behind,) = lines_of(axes, "behind").items()
            assert behind[0] != name
            np.testing.assert_allclose(behind[1].get_xydata()[1:], slow_curve(scores[behind[0]], correct), atol=1e-12)

    def test_the_area_and_the_level_of_chance(self):
        scores, correct = [0.9, 0.8, 0.7, 0.6], [True, False, True, False]
        (axes,) = plots.risk_coverage({"trust_ratio": scores}, correct).axes
        x, y = lines_of(axes, "curve")["trust_ratio"].get_data()
        assert axes.get_title(loc="right") == f"AURC {np.trapezoid(y, x):.4f}"
        assert axes.get_title(loc="left") == "trust ratio"
        (chance,) = [line for line in axes.lines if line.get_gid() == "chance"]
        assert set(chance.get_ydata()) == {0.5}

    def test_a_trust_is_ranked_by_its_log_odds(self, world):
        bank, queries, predicted, _, _ = world
        trust, correct = vicinal.distance(bank, queries, predicted, k=1), [True, False] * 3 + [True]
        assert len(np.unique(trust.confidence)) < len(trust)  # it saturates, so that it would draw another curve
        (axes,) = plots.risk_coverage({"distance": trust}, correct).axes
        expected = slow_curve(list(trust.log_odds), correct)
        np.testing.assert_allclose(lines_of(axes, "curve")["distance"].get_xydata()[1:], expected)

    @pytest.mark.parametrize("start", [0.0, 0.5])
    def test_whatever_is_in_sight_fits(self, start):
        noise = np.random.default_rng(0)
        correct = noise.random(400) < 0.9
        scores = {"good": correct + noise.normal(size=400), "bad": noise.normal(size=400) - correct}
        axes = plots.risk_coverage(scores, correct, start=start).axes[0]
        assert axes.get_xlim() == (start, 1.0)
        for line in (*lines_of(axes, "curve").values(), *lines_of(axes, "behind").values()):
            x, y = line.get_data()
            assert y[x >= max(start, 0.05)].max() < axes.get_ylim()[1]

    def test_it_is_legible(self):
        noise = np.random.default_rng(1)
        correct = noise.random(300) < 0.8
        scores = {name: correct + noise.normal(size=300) for name in ("distance", "top_two_gap", "energy", "m", "n")}
        assert_legible(plots.risk_coverage(scores, correct, columns=2, start=0.5))
        assert_legible(plots.risk_coverage(scores, correct, columns=4))
        assert_legible(plots.risk_coverage({"one": scores["m"]}, correct))

    @pytest.mark.parametrize("correct", [[True, False, True], [False] * 3, [True] * 3])
    def test_the_line_of_chance_is_named_once(self, correct):
        figure = plots.risk_coverage({"one": [3.0, 2.0, 1.0], "two": [1.0, 2.0, 3.0]}, correct)
        ((words,), others) = (list(axes.texts) for axes in figure.axes)
        assert (words.get_text(), others) == ("in random order", [])
        assert words.xy == (0.0, pytest.approx(correct.count(False) / 3))
        assert_legible(figure)

    def test_no_errors_at_all(self):
        (axes,) = plots.risk_coverage({"one": [3, 2, 1]}, [1, 1, 1]).axes
        assert axes.get_ylim()[1] > 0

    @pytest.mark.parametrize(
        ("scores", "options", "words"),
        [
            ({}, {}, "at least one"),
            ({"one": [1.0, 2.0]}, {}, "expected 3"),
            ({"one": [1.0, 2.0, np.nan]}, {}, "finite"),
            ({"one": [1.0, 2.0, 3.0]}, {"start": 1.0}, "start"),
            ({"one": [1.0, 2.0, 3.0]}, {"columns": 0}, "columns"),
        ],
    )
    def test_what_cannot_be_drawn_is_refused(self, scores, options, words):
        with pytest.raises(InputError, match=words):
            plots.risk_coverage(scores, [True, False, True], **options)


class TestGallery:
    def tiles(self, figure):
        """The pixels of each image by its name."""
        return {image.get_gid(): np.asarray(image.get_array()) for image in figure.axes[0].images}

    def frames(self, figure):
        return {frame.get_gid(): frame.get_edgecolor() for frame in figure.axes[0].patches}

    def test_it_shows_the_least_trusted_and_their_neighbours(self, world):
        bank, queries, predicted, images, bank_images = world
        trust = vicinal.distance(bank, queries, predicted, k=6)
        log_odds = [
            oracle.share_and_log_odds(bank.vectors, bank.labels, query, label, 6)[1]
            for query, label in zip(queries, predicted, strict=True)
        ]
        least = sorted(range(7), key=log_odds.__getitem__)[:3]
        expected = {f"query:{row}": images[row, ..., 0] for row in least}
        for row in least:
            for column, (_, index) in enumerate(oracle.nearest(bank.vectors, queries[row], 4)):
                expected[f"neighbor:{row}:{column}"] = bank_images[index, ..., 0]
        shown = self.tiles(plots.neighbor_gallery(images, bank_images, trust, count=3, shown=4))
        assert list(shown) == [
            name for row in least for name in (f"query:{row}", *(f"neighbor:{row}:{column}" for column in range(4)))
        ]
        for name, pixels in expected.items():
            np.testing.assert_array_equal(shown[name], pixels)

    def test_frames_and_words_tell_who_agrees(self, world):
        from matplotlib.colors import to_rgba

        bank, queries, predicted, images, bank_images = world
        trust = vicinal.distance(bank, queries, predicted, k=5)
        truth = np.where(np.arange(7) == 2, predicted, (predicted + 1) % 4)
        names = {0: "ant", 1: "bee", 2: "cat", 3: "dog"}
        figure = plots.neighbor_gallery(images, bank_images, trust, labels=truth, rows=[2, 4], names=names)
        frames, words = self.frames(figure), [text.get_text() for text in figure.axes[0].texts]
        assert frames["query:2"] == to_rgba(plots.AGREES)
        assert frames["query:4"] == to_rgba(plots.CONTRADICTS)
        for row, column in itertools.product((2, 4), range(5)):
            agrees = bank.labels[trust.neighbors.indices[row, column]] == predicted[row]
            expected = plots.AGREES if agrees else plots.CONTRADICTS
            assert frames[f"neighbor:{row}:{column}"] == to_rgba(expected)
        assert f"wrong: it is {names[int(truth[4])]}" in words
        assert words.count("right") == 1
        listed = [word for word in words if word in names.values()]
        assert listed == [names[int(label)] for row in (2, 4) for label in trust.neighbors.labels[row]]

    def test_distances_are_those_of_the_vectors(self, world):
        bank, queries, predicted, images, bank_images = world
        trust = vicinal.distance(bank, queries, predicted, k=3)
        figure = plots.neighbor_gallery(images, bank_images, trust, rows=[6])
        numbers = [text.get_text() for text in figure.axes[0].texts if re.fullmatch(r"\d+\.\d+", text.get_text())]
        expected = [distance for distance, _ in oracle.nearest(bank.vectors, queries[6], 3)]
        np.testing.assert_allclose(np.array(numbers, float), expected, atol=0.005 * max(expected))  # three digits
        assert len({len(number.partition(".")[2]) for number in numbers}) == 1

    def test_rows_keep_their_numbers_when_some_are_removed(self, world):
        bank, queries, predicted, images, bank_images = world
        first = int(bank.nearest(queries[:1], 1).indices[0, 0])
        smaller = bank.remove([first])
        trust = vicinal.distance(smaller, queries, predicted, k=2)
        shown = self.tiles(plots.neighbor_gallery(images, bank_images, trust, rows=[0]))
        expected = [index for _, index in oracle.nearest(bank.vectors, queries[0], 3) if index != first]
        np.testing.assert_array_equal(shown["neighbor:0:0"], bank_images[expected[0], ..., 0])

    def test_a_score_without_a_prediction(self, world):
        bank, queries, _, images, bank_images = world
        figure = plots.neighbor_gallery(images, bank_images, vicinal.kth_distance(bank, queries, k=3), rows=[1])
        assert len(set(self.frames(figure).values())) == 1
        assert figure.axes[0].texts[0].get_text() == "input"
        assert not [text for text in figure.axes[0].texts if "predicted" in text.get_text()]

    def test_colours_and_oblong_images(self, world):
        bank, queries, predicted, _, _ = world
        images = np.random.default_rng(0).integers(0, 256, (40, 4, 8, 3), np.uint8)
        trust = vicinal.distance(bank, queries, predicted, k=2)
        figure = plots.neighbor_gallery(images[:7], images, trust, rows=[0])
        figure.canvas.draw()
        shown = figure.axes[0].images[0].get_window_extent()
        assert shown.width / shown.height == pytest.approx(2)  # in pixels of the picture, too
        frame = figure.axes[0].patches[0].get_window_extent()
        assert frame.width == pytest.approx(frame.height, rel=0.01)
        assert self.tiles(figure)["query:0"].shape == (4, 8, 3)

    def test_in_a_part_of_a_figure_images_keep_their_shape(self, world):
        bank, queries, predicted, images, bank_images = world
        _, part = plots.figure(7, 9).subfigures(1, 2)
        plots.draw_neighbor_gallery(part, images, bank_images, vicinal.distance(bank, queries, predicted, k=4))
        part.figure.canvas.draw()
        for image in part.axes[0].images:
            box = image.get_window_extent()
            assert box.width == pytest.approx(box.height)

    def test_alone_it_has_a_margin(self, world):
        bank, queries, predicted, images, bank_images = world
        figure = plots.neighbor_gallery(images, bank_images, vicinal.distance(bank, queries, predicted, k=8))
        figure.canvas.draw()
        seen = [patch.get_window_extent() for patch in figure.axes[0].patches]
        width, height = figure.canvas.get_width_height()
        assert min(box.x0 for box in seen) >= 20
        assert max(box.x1 for box in seen) <= width - 20
        assert min(box.y0 for box in seen) >= 20
        assert max(box.y1 for box in seen) <= height - 20

    @pytest.mark.parametrize("words", ["7", "aquarium fish", "a very long name of a class of things"])
    @pytest.mark.parametrize("shown", [1, 8])
    def test_it_is_legible(self, world, words, shown):
        bank, queries, predicted, images, bank_images = world
        trust = vicinal.distance(bank, queries, predicted, k=8)
        names = dict.fromkeys(range(4), words)
        truth = (predicted + 1) % 4
        figure = plots.neighbor_gallery(images, bank_images, trust, labels=truth, names=names, shown=shown)
        assert_legible(figure)

    def test_a_confidence_is_never_rounded_to_certainty(self, world):
        bank, queries, predicted, images, bank_images = world
        far = vicinal.Bank(bank.vectors * 10, bank.labels)
        trust = vicinal.distance(far, queries * 10, predicted, k=40)
        figure = plots.neighbor_gallery(images, bank_images, trust, count=7)
        said = [text.get_text() for text in figure.axes[0].texts if text.get_text().startswith("confidence")]
        for words, value in zip(said, np.sort(trust.confidence), strict=True):
            assert words != "confidence 0.00" or value == 0
            assert words != "confidence 1.00" or value == 1
        assert "confidence < 0.01" in said

    def test_nor_is_a_certainty_of_nearly_one(self):
        bank = vicinal.Bank([[0.0], [5.5]], [0, 1])
        images = np.zeros((2, 4, 4), np.uint8)
        figure = plots.neighbor_gallery(images[:1], images, vicinal.distance(bank, [[0.0]], [0], k=2))
        assert "confidence > 0.99" in [text.get_text() for text in figure.axes[0].texts]

    def test_a_name_can_be_blank(self, world):
        bank, queries, predicted, images, bank_images = world
        names = dict.fromkeys(range(4), " ")
        figure = plots.neighbor_gallery(
            images, bank_images, vicinal.distance(bank, queries, predicted, k=3), names=names
        )
        assert_legible(figure)

    @pytest.mark.parametrize(
        ("change", "kind", "words"),
        [
            ({"images": slice(0, 6)}, ShapeError, "images and trust"),
            ({"bank_images": slice(0, 20)}, ShapeError, "each row of the bank"),
            ({"rows": [7]}, InputError, "from 0 to 6"),
            ({"rows": []}, ShapeError, "at least one"),
            ({"count": 0}, InputError, "count"),
            ({"shown": 0}, InputError, "shown"),
            ({"labels": [0, 1]}, ShapeError, "expected 7"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, world, change, kind, words):
        bank, queries, predicted, images, bank_images = world
        trust = vicinal.distance(bank, queries, predicted, k=30)
        images = images[change.pop("images", slice(None))]
        bank_images = bank_images[change.pop("bank_images", slice(None))]
        with pytest.raises(kind, match=words):
            plots.neighbor_gallery(images, bank_images, trust, **change)

    def test_a_score_that_knows_no_neighbours_is_refused(self, world):
        with pytest.raises(InputError, match="'margin'"):
            plots.neighbor_gallery(world[3], world[4], vicinal.margin([[1.0, 2.0]] * 7))


class TestIntervals:
    QUESTIONS = {  # noqa: RUF012
        "errors": {"distance": Interval(0.91, 0.88, 0.94), "top_two_gap": Interval(0.6, 0.5, 0.7)},
        "novelties": {"distance": Interval(0.87, 0.86, 0.88)},
    }

    def test_dots_and_lines_stand_at_the_values(self):
        figure = plots.intervals(self.QUESTIONS)
        for axes, (question, scores) in zip(figure.axes, self.QUESTIONS.items(), strict=True):
            assert axes.get_title(loc="left") == question
            dots = lines_of(axes, "dot")
            assert {name: dot.get_xdata()[0] for name, dot in dots.items()} == {
                name: one.value for name, one in scores.items()
            }
            spans = [tuple(line.get_xdata()) for line in axes.lines if len(line.get_xdata()) == 2]
            assert spans == [(one.low, one.high) for one in scores.values()]
        names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
        assert names == ["distance", "top two gap"]

    def test_what_lies_below_the_start_is_an_arrow_with_its_number(self):
        figure = plots.intervals(self.QUESTIONS, start=0.8)
        dots = lines_of(figure.axes[0], "dot")
        assert (dots["top_two_gap"].get_marker(), dots["top_two_gap"].get_xdata()[0]) == ("<", 0.8)
        assert dots["distance"].get_marker() == "o"
        assert "0.600" in [text.get_text() for text in figure.axes[0].texts]
        assert figure.axes[0].get_xlim()[0] < 0.8

    def test_an_aside_stands_beside_its_question(self):
        figure = plots.intervals(self.QUESTIONS, asides={"novelties": "accuracy 0.912"})
        assert [axes.get_title(loc="right") for axes in figure.axes] == ["", "accuracy 0.912"]
        assert_legible(figure)

    def test_undefined_ones_are_left_out(self):
        nothing = Interval(*[float("nan")] * 3)
        figure = plots.intervals({"errors": {"one": nothing, "two": Interval(0.5, 0.4, 0.6)}})
        assert list(lines_of(figure.axes[0], "dot")) == ["two"]
        assert not lines_of(plots.intervals({"errors": {"one": nothing}}).axes[0], "dot")

    @pytest.mark.parametrize("start", [None, 0.8])
    @pytest.mark.parametrize("count", [1, 2, 4])
    def test_it_is_legible(self, start, count):
        questions = {f"question {number}": self.QUESTIONS["errors"] for number in range(count)}
        assert_legible(plots.intervals(questions, start=start))

    @pytest.mark.parametrize(
        ("questions", "words"), [({}, "at least one"), ({"a": {}}, "at least one"), ({**QUESTIONS, "c": {"x": 1}}, "x")]
    )
    def test_what_cannot_be_drawn_is_refused(self, questions, words):
        with pytest.raises(InputError, match=words):
            plots.intervals(questions)


class TestColours:
    """For readers who see little contrast, or not all colours."""

    def luminance(self, colour):
        """Relative luminance as WCAG 2 defines it."""
        from matplotlib.colors import to_rgb

        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour)]
        return float(np.dot([0.2126, 0.7152, 0.0722], linear))

    def contrast(self, colour):
        """With white paper."""
        return 1.05 / (self.luminance(colour) + 0.05)

    def test_contrast_is_that_of_the_standard(self):
        assert self.contrast("white") == 1
        assert self.contrast("black") == pytest.approx(21)
        assert self.contrast("#767676") == pytest.approx(4.54, abs=0.005)  # the lightest grey that passes for words

    def test_all_words_stand_out_from_the_paper(self, world):
        bank, queries, predicted, images, bank_images = world
        trust = vicinal.distance(bank, queries, predicted, k=8)
        drawn = [
            plots.neighbor_gallery(images, bank_images, trust, labels=predicted),
            plots.risk_coverage({"one": [3, 2, 1]}, [1, 0, 1]),
            plots.intervals(TestIntervals.QUESTIONS, asides={"errors": "few"}),
        ]
        for figure in drawn:
            assert figure.get_facecolor() == (1, 1, 1, 1)
            for text in figure.findobj(lambda one: hasattr(one, "get_text")):
                assert self.contrast(text.get_color()) >= 4.5, text.get_text()

    def test_lines_that_matter_stand_out_from_the_paper(self):
        drawn = [plots.risk_coverage({"one": [3, 2, 1]}, [1, 0, 1]), plots.intervals(TestIntervals.QUESTIONS)]
        for line in (line for figure in drawn for axes in figure.axes for line in axes.lines):
            strength = line.get_alpha() or 1
            from matplotlib.colors import to_rgb

            seen = [1 - strength * (1 - part) for part in to_rgb(line.get_color())]
            assert self.contrast(seen) >= 3

    # What is left of linear red, green and blue, after Machado, Oliveira and Fernandes 2009, severity 1.
    SIGHTS = {  # noqa: RUF012
        "protanopia": [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]],
        "deuteranopia": [[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]],
        "tritanopia": [[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]],
    }

    def seen(self, colour, sight):
        """A colour as CIELAB, as this sight leaves it."""
        from matplotlib.colors import to_rgb

        rgb = np.array(to_rgb(colour))
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        linear = np.clip(np.array(self.SIGHTS[sight]) @ linear, 0, 1)
        to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
        x, y, z = np.cbrt(to_xyz @ linear / [0.9505, 1.0, 1.089])
        return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])

    def distance(self, first, second, sight):
        return float(np.linalg.norm(self.seen(first, sight) - self.seen(second, sight)))

    @pytest.mark.parametrize("sight", SIGHTS)
    def test_agreement_and_contradiction_differ_in_every_sight(self, sight):
        assert self.distance(plots.AGREES, plots.CONTRADICTS, sight) > 40

    def test_red_and_green_would_not(self):
        assert self.distance("#7f7f00", "#a86a00", "deuteranopia") < 40

    def test_what_a_colour_says_is_also_said_in_words(self, world):
        bank, queries, predicted, images, bank_images = world
        trust = vicinal.distance(bank, queries, predicted, k=8)
        figure = plots.neighbor_gallery(images, bank_images, trust, labels=predicted, count=7)
        weights = {"normal" if near == said else "bold" for near in trust.neighbors.labels[0] for said in predicted[:1]}
        assert weights == {"normal", "bold"}  # both are there to be told apart
        for text in figure.axes[0].texts:
            if re.fullmatch(r"\d", text.get_text()):
                assert (text.get_color() == plots.CONTRADICTS) == (text.get_weight() == "bold")


class TestSave:
    def picture(self):
        return plots.risk_coverage({"one": [3, 2, 1]}, [1, 0, 1])

    @pytest.mark.parametrize(
        ("ending", "magic"), [("png", b"\x89PNG"), ("PDF", b"%PDF"), ("svg", b"<?xml"), ("jpg", b"\xff\xd8")]
    )
    def test_the_ending_says_the_format(self, tmp_path, ending, magic):
        plots.save(self.picture(), tmp_path / f"picture.{ending}")
        assert (tmp_path / f"picture.{ending}").read_bytes().startswith(magic)

    @pytest.mark.parametrize("ending", plots.FORMATS)
    def test_two_pictures_of_the_same_are_the_same_bytes(self, tmp_path, ending, monkeypatch):
        for day in (1, 2):
            monkeypatch.setenv("SOURCE_DATE_EPOCH", str(86_400 * day))  # the time, where matplotlib would write one
            plots.save(self.picture(), tmp_path / f"{day}.{ending}")
        assert (tmp_path / f"1.{ending}").read_bytes() == (tmp_path / f"2.{ending}").read_bytes()

    def test_an_svg_says_all_its_words_and_draws_them_without_fonts(self, tmp_path):
        plots.save(self.picture(), tmp_path / "picture.svg")
        text = (tmp_path / "picture.svg").read_text()
        root = ElementTree.fromstring(text)
        assert root.get("viewBox") == f"0 0 {72 * 3.7:g} {72 * 2.9:g}"
        assert not list(root.iter("{http://www.w3.org/2000/svg}text"))
        for words in ("one", "AURC", "share accepted"):
            assert re.search(f"<!-- {words}.* -->", text)

    def test_images_in_a_drawing_can_be_enlarged(self, tmp_path, world):
        bank, queries, predicted, images, bank_images = world
        trust = vicinal.distance(bank, queries, predicted, k=2)
        plots.save(plots.neighbor_gallery(images, bank_images, trust, count=1), tmp_path / "picture.svg")
        root = ElementTree.parse(tmp_path / "picture.svg").getroot()
        (found,) = root.iter("{http://www.w3.org/2000/svg}image")
        inside = Image.open(io.BytesIO(base64.b64decode(found.get("{http://www.w3.org/1999/xlink}href").split(",")[1])))
        assert inside.width / (float(found.get("width")) / 72) == pytest.approx(300, rel=0.01)

    def test_a_failure_leaves_the_old_picture_whole(self, tmp_path):
        target = tmp_path / "picture.png"
        target.write_bytes(b"old")
        broken = self.picture()
        broken.axes[0].set_title("$\\nonsense{$")
        with pytest.raises(ValueError, match="nonsense"):
            plots.save(broken, target)
        assert target.read_bytes() == b"old"
        assert list(tmp_path.iterdir()) == [target]

    def test_an_unknown_ending_is_refused(self, tmp_path):
        with pytest.raises(InputError, match="'png'"):
            plots.save(self.picture(), tmp_path / "picture.pgn")


def test_neither_pyplot_nor_its_settings_are_touched(tmp_path):
    script = """
import sys
import matplotlib
before = matplotlib.rcParams.copy()  # dict(...) of it would ask for the backend, and so import pyplot
from vicinal import plots
from vicinal.metrics import Interval
plots.risk_coverage({"one": [3, 2, 1]}, [1, 0, 1]).canvas.draw()
plots.save(plots.intervals({"errors": {"one": Interval(0.5, 0.4, 0.6)}}), sys.argv[1])
assert "matplotlib.pyplot" not in sys.modules
assert matplotlib.rcParams.copy() == before
"""
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "picture.svg")], check=True)


def test_importing_it_does_not_import_matplotlib():
    script = "import sys, vicinal.plots; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
