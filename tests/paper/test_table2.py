"""Table 2's cells, from the networks' own files by NumPy and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from paper_oracle import Plain, plain_entropy
from vicinal.paper.networks import Entry
from vicinal.paper.pairs import partners
from vicinal.paper.scores import K
from vicinal.paper.table2 import table2

TITLES = {"Reg": "reg", "Dist": "distance", "AT": "adversarial"}


@pytest.fixture(scope="module")
def tables(views):
    return table2(views).tables


def plain(networks, method, seed):
    return Plain(networks, Entry(networks.edition.sources[0], method, seed))


def margin_of(shares, predicted):
    top = shares[np.arange(len(shares)), predicted]
    return np.log(top / (1 - top))


@pytest.mark.parametrize("pair", ["Reg in AT", "Dist in Reg", "AT in AT"])
def test_predictions_of_one_network_in_the_embedding_of_another(tables, networks, pair):
    first, second = pair.split(" in ")
    expected = {how: [] for how in ("margin", "softmax", "hybrid", "own", "summed")}
    for seed in (0, 1):
        one = plain(networks, TITLES[first], seed)
        other = plain(networks, TITLES[second], (seed + 1) % 2)
        # the sum asks each network how sure it is of the one prediction
        mine, theirs = one.distance(K, one.predicted), other.distance(K, one.predicted)
        shares = [1 / (1 + np.exp(-odds)) for odds in (mine, theirs)]
        ranks = {
            "margin": one.margin(),
            "softmax": margin_of((one.softmax + other.softmax) / 2, one.predicted),
            "hybrid": theirs,
            "summed": mine + theirs,
            "own": shares[0] + shares[1],
        }
        for how, rank in ranks.items():
            expected[how].append(roc_auc_score(one.right, rank))
    for how, values in expected.items():
        cell = tables[1].cell(pair, f"digits, {how}")
        slack = 5e-3 if how == "own" else 1e-6  # the mean of shares ties where both are 1 in float64
        assert cell.value.values == pytest.approx(tuple(values), abs=slack), how


def test_two_networks_of_a_kind(tables, networks):
    margins, entropies, sums, accuracies = [], [], [], []
    for seed in (0, 1):
        one, other = plain(networks, "distance", seed), plain(networks, "distance", 1 - seed)
        shares = (one.softmax + other.softmax) / 2
        predicted = shares.argmax(axis=1)
        labels = np.array(networks.embeddings(Entry(networks.edition.sources[0], "distance", 0), "test").labels)
        right = predicted == labels
        accuracies.append(right.mean())
        margins.append(roc_auc_score(right, margin_of(shares, predicted)))
        entropies.append(roc_auc_score(right, -plain_entropy(shares)))
        sums.append(roc_auc_score(right, one.distance(K, predicted) + other.distance(K, predicted)))
    (column,) = [column for column in tables[0].columns if column.name == "Dist"]
    assert column.accuracy.values == pytest.approx(tuple(accuracies))
    for row, values in (("margin", margins), ("entropy", entropies), ("summed", sums)):
        assert tables[0].cell(row, column).value.values == pytest.approx(tuple(values), abs=1e-6), row


def test_the_hybrid_of_the_paper_is_the_one_with_a_dist_network(tables):
    for name in TITLES:
        hybrid = tables[0].cell("hybrid", f"digits, {name}")
        assert hybrid.value == tables[1].cell(f"{name} in Dist", "digits, hybrid").value


def test_every_ordered_pair_is_there(tables):
    assert set(tables[1].rows) == {f"{one} in {other}" for one in TITLES for other in TITLES}


def test_partners_never_share_their_weights():
    source = object()
    reg = [Entry(source, "reg", seed) for seed in range(3)]
    dist = [Entry(source, "distance", seed) for seed in range(2)]
    assert [(one.seed, other.seed) for one, other in partners(reg, reg)] == [(0, 1), (1, 2), (2, 0)]
    assert [(one.seed, other.seed) for one, other in partners(reg, dist)] == [(0, 1), (1, 0)]
    assert partners(reg[:1], reg[:1]) == []
    assert partners(reg[:1], dist[:1]) == [(reg[0], dist[0])]
