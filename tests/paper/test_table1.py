"""Table 1's cells, from the networks' own files by NumPy and scikit-learn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from paper_oracle import Plain
from vicinal.paper.networks import Entry, Networks
from vicinal.paper.table1 import ROWS, table1
from vicinal.paper.views import Views


@pytest.fixture(scope="module")
def result(views):
    return table1(views)


@pytest.fixture(scope="module")
def table(result):
    return result.tables[0]


def plain(networks, method, seed):
    return Plain(networks, Entry(networks.edition.sources[0], method, seed))


def test_a_column_for_each_way_of_training_and_a_row_for_each_score(table):
    assert [column.name for column in table.columns] == ["Reg", "Dist", "AT", "MCD"]
    shown = [row for row in ROWS if table.cell(row, "digits, Reg")]
    assert set(ROWS) - set(shown) <= {"cleanlab"}
    lost = {row for row in shown if table.cell(row, "digits, MCD") is None}
    assert lost == {"max_logit", "energy"}  # averaged probabilities have no logits


@pytest.mark.parametrize(("title", "method"), [("Reg", "reg"), ("Dist", "distance"), ("AT", "adversarial")])
def test_scores_that_choose_nothing(table, networks, title, method):
    both = [plain(networks, method, seed) for seed in (0, 1)]
    assert table.columns[["Reg", "Dist", "AT"].index(title)].accuracy.values == pytest.approx(
        tuple(one.right.mean() for one in both), abs=1e-12
    )
    of_a_class = len(both[0].points) // 8
    for row, ranks in (
        ("margin", [one.margin() for one in both]),
        ("entropy", [one.entropy() for one in both]),
        ("energy", [one.energy() for one in both]),
        ("max_logit", [one.logits.max(axis=1) for one in both]),
        ("as_published", [one.as_published(of_a_class) for one in both]),
    ):
        expected = [roc_auc_score(one.right, rank) for one, rank in zip(both, ranks, strict=True)]
        assert table.cell(row, f"digits, {title}").value.values == pytest.approx(tuple(expected), abs=2e-4)


def test_distance_is_at_the_k_that_the_validation_points_chose(table, networks, views):
    entry = Entry(networks.edition.sources[0], "distance", 1)
    seen = networks.embeddings(entry, "validation")
    held = Plain(networks, entry, seen)
    by_k = {k: roc_auc_score(held.right, held.distance(k)) for k in networks.edition.ks}
    k = max(by_k, key=by_k.get)
    assert views.judged(entry).chosen.ks["distance"] == k
    test = Plain(networks, entry)
    expected = roc_auc_score(test.right, test.distance(k))
    assert table.cell("distance", "digits, Dist").value.values[1] == pytest.approx(expected, abs=1e-12)


def test_gains_are_over_the_better_of_margin_and_entropy(table):
    for column in table.columns:
        rivals = [table.cell(row, column).value.values for row in ("margin", "entropy")]
        best = np.max(rivals, axis=0)
        for row in ("distance", "fused", "trust_ratio"):
            cell = table.cell(row, column)
            assert cell.gain.mean == pytest.approx(np.mean(np.array(cell.value.values) - best))
        assert table.cell("margin", column).gain is None


def test_aurc_and_augrc_stand_beside(table):
    beside = table.cell("distance", "digits, Reg").beside
    assert set(beside) == {"aurc", "augrc"}
    assert 0 < beside["augrc"] < beside["aurc"] < 0.5


def test_findings_say_what_the_cells_say(result, table):
    for finding in result.findings:
        row = finding.what.split()[0]
        assert finding.found == table.cell(row, finding.where).gain
    assert len(result.findings) == 12


def test_the_papers_numbers_stand_beside_those_of_its_data(trained, edition):
    known = replace(edition, sources=(replace(edition.sources[0], paper="cifar100"),))
    table = table1(Views(Networks(trained, known))).tables[0]
    shown = {row: table.cell(row, "digits, Dist").published for row in ("margin", "distance", "as_published", "fused")}
    assert shown == {"margin": 0.834, "distance": 0.853, "as_published": 0.853, "fused": None}
    assert table.columns[1].published == 0.6
    assert {table.cell("distance", column).beside_paper for column in table.columns} <= {"better", "equal", "worse"}


def test_without_the_data_mc_dropout_is_left_out(copied, edition, monkeypatch):
    networks = Networks(copied, edition)
    monkeypatch.setattr(networks, "lacking", lambda name: "nowhere")
    assert [column.name for column in table1(Views(networks)).tables[0].columns] == ["Reg", "Dist", "AT"]


def test_what_is_in_the_cache_is_not_computed_again(views, networks, edition, monkeypatch):
    table1(views)
    monkeypatch.setattr("vicinal.paper.views.of_neighbors", None)
    monkeypatch.setattr("vicinal.paper.views._average", None)
    again = table1(Views(Networks(networks.folder.parent, edition)))
    assert again.tables == table1(views).tables
