"""Costs: what is timed, what is counted, and what follows from it. No test looks at how long anything took."""

from __future__ import annotations

import pytest

from vicinal.paper import costs as module
from vicinal.paper.costs import FORWARD, costs, held
from vicinal.paper.results import Estimate


@pytest.fixture(scope="module")
def result(views):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_ROUNDS", 2)
        return costs(views)


def test_every_score_stands_beside_the_forward_pass(result):
    predicting, training, _ = result.tables
    assert {FORWARD, "MC dropout", "margin", "distance", "distance, 5% of the bank"} <= set(predicting.rows)
    assert training.rows == ("Reg", "Dist", "AT")
    assert training.cell("Reg", "times Reg, digits").value.mean == 1
    assert all(cell.value.n == 2 and cell.value.mean > 0 for cell in predicting.cells)


def test_operations_are_counted(result):
    counted = result.tables[2]
    assert counted.cell("distance", "MFLOP, digits").value.mean == pytest.approx(2 * 120 * 64 / 1e6)
    assert counted.cell("distance, 5% of the bank", "MFLOP, digits").value.mean == pytest.approx(2 * 8 * 64 / 1e6)


def test_operations_of_the_network_by_hand(result, networks, edition):
    """Two for each weight of a convolution at each place of its output, and of a linear layer once."""
    import torch

    from vicinal.paper.networks import Entry

    network, total = networks.network(Entry(edition.sources[0], "reg", 0)), 0

    def count(layer, inputs, output):
        nonlocal total
        places = output.shape[2] * output.shape[3] if output.ndim == 4 else 1
        total += 2 * layer.weight.numel() * places

    for layer in network.module.modules():
        if isinstance(layer, (torch.nn.Conv2d, torch.nn.Linear)):
            layer.register_forward_hook(count)
    network.embed(networks.data("digits").test.images[:1])
    assert total > 0
    assert result.tables[2].cell(FORWARD, "MFLOP, digits").value.mean == pytest.approx(total / 1e6)


def test_the_papers_example_is_arithmetic(result):
    one = result.findings[-1]
    assert one.where == "by arithmetic"
    assert one.found.mean == pytest.approx(2 * 50_000 * 1024 / 1e6)
    assert one.outcome == "not confirmed"


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [(0.2, 0.9, "confirmed"), (1.1, 1.3, "not confirmed"), (0.9, 1.1, "not settled"), (-2, -1, "not confirmed")],
)
def test_a_figure_that_ought_to_lie_between_two_others(low, high, outcome):
    found = held("so", "there", Estimate((low + high) / 2, None, low, high, (low, high)), 0, 1, "below 1")
    assert found.outcome == outcome


def test_without_the_data_nothing_is_timed(views, monkeypatch):
    monkeypatch.setattr(views.networks, "lacking", lambda name: "nowhere")
    found = costs(views)
    assert [table.columns for table in found.tables] == [(), (), ()]
    assert len(found.findings) == 1
