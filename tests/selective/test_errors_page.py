"""The figures on the page about refusing predictions are those of the committed runs, and hold what the page says."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")


def results(name):
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))


@pytest.fixture
def benchmark_of(monkeypatch):
    """Imports a benchmark by name, as its script would be."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")

    def load(name):
        spec = importlib.util.spec_from_file_location(f"benchmark_of_{name}", ROOT / "benchmarks" / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        for other in ("environment", "published"):
            sys.modules.pop(other, None)
        return module

    return load


@pytest.mark.parametrize("name", ["fusion", "selective"])
def test_the_tables_are_those_of_the_committed_run(name, benchmark_of):
    for table in benchmark_of(name).tables(results(name)).values():
        assert table in PAGE


def test_the_sentences_about_smaller_banks_have_the_figures_of_the_run():
    found, said = results("fusion"), " ".join(PAGE.split())
    lead = found["networks"]["cifar100_densenet_4bit"]["leads"]
    assert f"{lead['margin']} for margin, {lead['entropy']} for entropy and {lead['fused']} fused" in said
    over = {
        name: {one["bank"]: round(one["mean"]["fused"] - one["mean"]["margin"], 3) for one in banks}
        for name, banks in found["banks"].items()
    }
    dense, res = over["cifar100_densenet_4bit"], over["cifar100_resnet20"]
    assert f"{lead['fused'] - lead['margin']:.3f} above margin, where 10,000 points give {dense[10_000]} here" in said
    assert f"from {res[10_000]} above margin with 10,000 points to {res[50_000]} with 50,000" in said
    assert list(res.values()) == sorted(res.values())


def test_the_sentences_about_what_a_threshold_costs_have_the_figures_of_the_run():
    found, said = results("selective"), " ".join(PAGE.split())
    strict = [one["n = 5,000"] for one in found["ours"].values()]
    others = [one for one in strict if one["lost"] > 3]
    assert f"{len(strict) - len(others)} of the {len(strict)} lose no more than 3 points" in said
    assert "lose at most 0.6 more than the least" in said
    assert max(one["lost"] - one["least"] for one in others) <= 0.6
    least = [one["least"] for one in others]
    assert f"which is itself {min(least):.1f} to {max(least):.1f} points there" in said
    most = max(one["n = 5,000, delta = 10 %"]["lost"] for one in found["ours"].values())
    assert f"At a delta of 10 % none loses more than {most:.1f}" in said


def test_the_least_loss_rests_on_the_power_of_the_best_test(benchmark_of):
    # against draws: the test that rejects the highest likelihood ratios, its bar set where it rejects delta
    power = benchmark_of("selective")._power
    n, share, rate, more, delta = 400, 0.5, 0.02, 0.06, 0.05
    generator = np.random.default_rng(0)

    def ratios(true):
        rows = generator.binomial(n, share, 200_000)
        errors = generator.binomial(rows, true)
        return errors * np.log(rate / more) + (rows - errors) * np.log((1 - rate) / (1 - more))

    bar = np.quantile(ratios(more), 1 - delta)
    assert power(n, share, rate, more, delta) == pytest.approx((ratios(rate) > bar).mean(), abs=0.01)
    assert power(n, share, more, more, delta) == delta


def test_nobody_who_keeps_the_promise_loses_less_than_the_least(benchmark_of):
    # one exact test at the best place that can be known beforehand, for every place: all lose more in the mean
    module = benchmark_of("selective")
    chance = np.linspace(0, 0.2, 4000)  # of an error: a risk of 5 % at a half
    wrong = np.random.default_rng(0).random(4000) < chance
    one = module.Population.of(-np.arange(4000.0), ~wrong)
    least, n = module.least(one, 1000, 0.05), 1000
    lost = []
    for place in range(100, one.best, 20):
        power = module._power(n, place / 4000, float(one.risks[place - 1]), module.RISK, 0.05)
        lost.append(100 * (one.best - power * place) / 4000)
    assert 1 < least < min(lost)
    assert least > 0.3 * min(lost)


def test_the_promise_failed_no_more_often_than_promised_in_the_committed_run():
    found = results("selective")
    for scores in found["ours"].values():
        for one in scores.values():
            assert one["failed"] <= one["delta"]
            assert one["lost_at_least_0"] >= one["least"]
        assert scores["n = 5,000, delta = 10 %"]["lost"] <= found["wanted_points"]
    for peers in found["mapie"].values():
        kept = {name: one["kept"] for name, one in peers.items()}
        assert kept["vicinal"] == max(kept.values())
