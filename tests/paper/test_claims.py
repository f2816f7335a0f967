"""The claims of the text: cells against NumPy, outcomes against their rule."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from paper_oracle import Plain
from vicinal.paper import banks
from vicinal.paper.claims import claims
from vicinal.paper.networks import Entry, Networks
from vicinal.paper.results import Difference
from vicinal.paper.views import Views


@pytest.fixture(scope="module")
def result(views):
    return claims(views)


def plain(networks, method, seed):
    return Plain(networks, Entry(networks.edition.sources[0], method, seed))


def values(networks, method, **how):
    both = [plain(networks, method, seed) for seed in (0, 1)]
    return tuple(roc_auc_score(one.right, one.distance(**how)) for one in both)


def test_numbers_of_neighbours(result, networks):
    for k in (5, 20, 50):
        cell = result.tables[0].cell(str(k), "digits, Dist")
        assert cell.value.values == pytest.approx(values(networks, "distance", k=k), abs=1e-9)
    assert result.tables[0].cell("50", "digits, Dist").gain is None


def test_kernels_at_as_many_neighbours_as_a_class_has_points(result, networks):
    of_a_class = 120 // 8
    for kernel in ("exp", "count", "inverse"):
        cell = result.tables[1].cell(kernel, "digits, Reg")
        slack = 1e-3 if kernel == "count" else 1e-9  # equal counts may differ in their last bit
        assert cell.value.values == pytest.approx(values(networks, "reg", k=of_a_class, kernel=kernel), abs=slack)


def test_scaling_divides_by_the_mean_distance_to_the_neighbours(result, networks):
    expected = []
    for seed in (0, 1):
        one = plain(networks, "adversarial", seed)
        near = np.sort(one.gaps(), axis=1)[:, :15]
        expected.append(roc_auc_score(one.right, one.distance(15, factor=1 / near.mean())))
    assert result.tables[1].cell("scaled", "digits, AT").value.values == pytest.approx(tuple(expected), abs=1e-6)


def test_smaller_banks_stand_beside_the_whole_one(result, views, networks):
    entry = Entry(networks.edition.sources[0], "reg", 1)
    cell = result.tables[2].cell("5 %", "digits, Reg")
    small = banks.condensed(networks.bank(entry))
    assert len(small) == 8  # every class keeps one
    one = Plain(networks, entry)
    one.points, one.labels = np.array(small.vectors), np.array(small.labels)
    weighed = one.gaps() - np.log(small.weights)  # each counts as many as it stands for
    ranks = [
        np.logaddexp.reduce(-near[one.labels == y]) - np.logaddexp.reduce(-near[one.labels != y])
        for near, y in zip(weighed, one.predicted, strict=True)
    ]
    assert cell.value.values[1] == pytest.approx(roc_auc_score(one.right, ranks), abs=0.02)  # all 8, not the nearest 5
    assert result.tables[2].cell("all", "digits, Reg").gain is None


def test_settings_of_the_distance_loss_and_both_losses_at_once(result, views, networks):
    source = networks.edition.sources[0]

    def auroc(entry):
        judged = views.judged(entry)
        return roc_auc_score(judged.right, judged.rank("distance"))

    base = auroc(Entry(source, "distance", 0))
    (setting,) = [one for one in result.findings if "alpha 0.1" in one.what]
    assert setting.found.mean == pytest.approx(auroc(Entry(source, "distance", 0, "alpha-0.1")) - base)
    together = [one for one in result.findings if "together" in one.what]
    both = auroc(Entry(source, "both", 0))
    assert [one.found.mean for one in together] == pytest.approx(
        [both - base, both - auroc(Entry(source, "adversarial", 0))]
    )


def test_every_claim_has_an_outcome_of_its_own_rule(result):
    for one in result.findings:
        low, high = one.found.low, one.found.high
        if one.wanted == "interval below 0":
            assert (one.outcome == "confirmed") is (high < 0)
            assert (one.outcome == "not confirmed") is (low > 0)
        if one.wanted.startswith("interval above -"):
            assert (one.outcome == "confirmed") is (low >= -0.002)
        if one.wanted.startswith("within") and "neighbours" not in one.what:
            margin = float(one.wanted.split()[1])
            assert (one.outcome == "confirmed") is (-margin <= low and high <= margin)


def test_k_matters_little_only_if_no_k_does(result, views, monkeypatch):
    wide = Difference(0.3, 0.2, 0.4, 0.0, 2)
    monkeypatch.setattr("vicinal.paper.claims._gaps", lambda panel, rows: [Difference(0, 0, 0, 1, 2), wide])
    one = claims(views).findings[0]
    assert (one.outcome, one.found) == ("not confirmed", wide)


def test_networks_that_are_missing_leave_their_claims_out(copied, edition):
    import shutil

    shutil.rmtree(copied / "quick" / "digits-both-0")
    found = claims(Views(Networks(copied, edition)))
    assert not [one for one in found.findings if "together" in one.what]
    assert [one for one in found.findings if "alpha 0.1" in one.what]
