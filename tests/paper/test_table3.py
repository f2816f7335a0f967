"""Table 3's cells: known against novel inputs, by NumPy and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from paper_oracle import Plain
from vicinal.paper.networks import Entry, Networks
from vicinal.paper.table3 import table3
from vicinal.paper.views import Views


@pytest.fixture(scope="module")
def result(views):
    return table3(views)


def test_known_against_novel(result, networks, views):
    (table,) = result.tables
    expected = {row: [] for row in ("margin", "entropy", "energy", "distance", "kth_distance")}
    for seed in (0, 1):
        entry = Entry(networks.edition.sources[0], "adversarial", seed)
        novel = networks.network(entry).embed(networks.data("digits-8-9").test.images)
        sides = Plain(networks, entry), Plain(networks, entry, novel)
        known = np.repeat([1, 0], [len(side.vectors) for side in sides])
        ks = views.judged(entry).chosen.ks
        ranks = {
            "margin": [side.margin() for side in sides],
            "entropy": [side.entropy() for side in sides],
            "energy": [side.energy() for side in sides],
            "distance": [side.distance(ks["distance"]) for side in sides],
            "kth_distance": [-farthest(side, ks["kth_distance"]) for side in sides],
        }
        for row, rank in ranks.items():
            expected[row].append(roc_auc_score(known, np.concatenate(rank)))
    for row, values in expected.items():
        cell = table.cell(row, "digits known, 8 and 9 novel, AT")
        assert cell.value.values == pytest.approx(tuple(values), abs=1e-6), row


def farthest(side, k):
    return np.sort(side.gaps(), axis=1)[:, k - 1]


def test_accuracy_means_nothing_here(result):
    assert {column.accuracy for column in result.tables[0].columns} == {None}


def test_novel_data_that_are_missing_leave_a_note(copied, edition, monkeypatch):
    networks = Networks(copied, edition)
    monkeypatch.setattr(networks, "lacking", lambda name: "get it" if name == "digits-8-9" else "")
    result = table3(Views(networks))
    assert result.tables[0].columns == ()
    assert result.notes == ("digits-8-9: get it",)
