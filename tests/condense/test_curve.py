"""The curve of what condensing costs: its figures, its file, and its picture."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import binomtest

from legible import assert_legible
from scenarios import clustered
from vicinal import Bank, Embeddings, condense, distance, metrics, plots
from vicinal.condensation import METHODS, CondensationCurve, condensation_curve
from vicinal.errors import FileError, InputError

WORLD = clustered(700)
BANK = WORLD.take(np.arange(400))
_REST = WORLD.take(np.arange(400, 700))
ASKED = Embeddings(_REST.vectors, labels=_REST.labels, predicted=np.where(np.arange(300) % 5, _REST.labels, 0))


@pytest.fixture(scope="module")
def curve():
    return condensation_curve(BANK, ASKED, ["medoids", "random"], [0.2, 0.05], samples=100, seed=3, coverage=0.7)


def test_every_figure_is_that_of_the_metrics(curve):
    assert [(one.method, one.share) for one in curve.points] == [
        ("whole bank", 1.0),
        *[(method, share) for method in ("medoids", "random") for share in (0.05, 0.2)],
    ]
    whole = distance(BANK, ASKED.vectors, ASKED.predicted).log_odds
    for point in curve.points:
        small = BANK if point is curve.whole else condense(BANK, point.method, point.share, seed=3).bank
        odds = distance(small, ASKED.vectors, ASKED.predicted, k=point.k).log_odds
        right, same = ASKED.correct, {"samples": 100, "seed": 3}
        assert point.size == len(small)
        assert point.auroc == metrics.interval("auroc", odds, right, **same)
        assert point.risk == metrics.interval("risk_at_coverage", odds, right, coverage=0.7, **same)
        assert point.auroc_change == metrics.compare("auroc", odds, whole, right, **same)
        assert point.risk_change == metrics.compare("risk_at_coverage", odds, whole, right, coverage=0.7, **same)
        hits = small.nearest(ASKED.vectors, 1).labels[:, 0] == ASKED.labels
        exact = binomtest(int(hits.sum()), 300).proportion_ci(method="exact")
        assert (point.accuracy.value, *np.round([point.accuracy.low, point.accuracy.high], 9)) == (
            hits.mean(),
            *np.round([exact.low, exact.high], 9),
        )
    assert (curve.n, curve.errors) == (300, int((~ASKED.correct).sum()))


def test_each_bank_is_asked_for_the_k_it_recommends_unless_one_is_given(curve):
    assert curve.whole.k == 50
    assert [one.k for one in curve.points[1:]] == [
        condense(BANK, one.method, one.share, seed=3).k for one in curve.points[1:]
    ]
    given = condensation_curve(BANK, ASKED, ["random"], [0.02, 0.2], k=30, samples=10)
    assert [one.k for one in given.points] == [30, 8, 30]


def test_it_comes_back_from_its_file_and_its_json_is_plain(curve, tmp_path):
    curve.save(tmp_path / "curve.json")
    assert CondensationCurve.load(tmp_path / "curve.json") == curve
    assert json.loads(json.dumps(curve.to_json(), allow_nan=False)) == curve.to_json()
    (tmp_path / "other.json").write_text('{"format": "vicinal.evaluation"}')
    with pytest.raises(FileError, match=r"expected a vicinal\.condensation file"):
        CondensationCurve.load(tmp_path / "other.json")
    (tmp_path / "half.json").write_text(json.dumps({**curve.to_json(), "points": [{"method": "random"}]}))
    with pytest.raises(FileError, match=r"expected a whole vicinal\.condensation file"):
        CondensationCurve.load(tmp_path / "half.json")


def test_without_errors_the_auroc_is_undefined_and_all_else_is_there(tmp_path):
    sure = Embeddings(ASKED.vectors, labels=ASKED.labels, predicted=ASKED.labels)
    found = condensation_curve(BANK, sure, ["random"], [0.1], samples=10)
    assert np.isnan(found.whole.auroc.value)
    assert found.whole.risk.value == 0.0
    assert found.to_json()["points"][0]["auroc"] == {"value": None, "low": None, "high": None}
    found.save(tmp_path / "curve.json")
    assert str(CondensationCurve.load(tmp_path / "curve.json")) == str(found)


def test_words_and_rows_hold_every_point(curve):
    lines = str(curve).splitlines()
    assert lines[0] == f"300 predictions, {curve.errors} of them wrong; 95% intervals"
    assert [line.split("  ")[0] for line in lines[2:]] == [point.method for point in curve.points]
    assert len(curve.table().rows) == len(curve.rows()) == 5
    assert curve.rows()[3]["auroc_change_low"] == curve.points[3].auroc_change.low


def test_what_cannot_be_is_refused():
    with pytest.raises(InputError, match="embeddings: expected labels and predictions"):
        condensation_curve(BANK, Embeddings(ASKED.vectors, labels=ASKED.labels))
    with pytest.raises(InputError, match="methods: expected one of"):
        condensation_curve(BANK, ASKED, ["best"])
    with pytest.raises(InputError, match=r"shares: expected a number in \(0, 1\]"):
        condensation_curve(BANK, ASKED, ["random"], [0.0])
    with pytest.raises(InputError, match="expected at least one of each"):
        condensation_curve(BANK, ASKED, [], [0.1])


class TestPicture:
    def test_each_panel_draws_its_own_method_before_all_others(self, curve):
        figure = plots.condensation(curve, "risk")
        for axes, method in zip(figure.axes, curve.methods, strict=True):
            lines = {line.get_gid(): line for line in axes.lines}
            own = curve.of(method)
            np.testing.assert_array_equal(lines[f"curve:{method}"].get_xdata(), [one.share for one in own])
            np.testing.assert_array_equal(lines[f"curve:{method}"].get_ydata(), [one.risk.value for one in own])
            assert set(lines["whole"].get_ydata()) == {curve.whole.risk.value}
            assert len([gid for gid in lines if gid.startswith("behind:")]) == 1

    @pytest.mark.parametrize("what", ["auroc", "risk", "accuracy"])
    def test_every_word_can_be_read(self, curve, what):
        assert_legible(plots.condensation(curve, what))
        assert_legible(plots.condensation(curve, what, columns=1))

    def test_one_share_is_enough(self):
        one = condensation_curve(BANK, ASKED, list(METHODS)[-3:], [0.05], samples=10)
        assert_legible(plots.condensation(one))

    def test_an_unknown_metric_is_refused(self, curve):
        with pytest.raises(InputError, match="what: expected one of"):
            plots.condensation(curve, "ece")


def test_a_bank_of_one_class_condenses_and_is_judged():
    bank = Bank(BANK.vectors, np.zeros(400, int))
    assert condensation_curve(bank, ASKED, list(METHODS), [0.05], samples=5).whole.size == 400
