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


def test_the_sentence_about_smaller_banks_has_the_figures_of_the_run():
    found = results("fusion")
    thin, full = found["smaller_bank"]["mean"], found["networks"]["cifar100_resnet20"]["halves"]["mean"]
    said = " ".join(PAGE.split())
    assert f"gives {thin['distance']:.3f} for distance in place of {full['distance']:.3f}" in said
    assert f"and {thin['fused']:.3f} fused in place of {full['fused']:.3f}" in said
    leads = found["networks"]["cifar100_densenet_4bit"]["leads"]
    assert f"{leads['margin']} for margin, {leads['entropy']} for entropy and {leads['fused']} fused" in said


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
        wanted = scores["n = 5,000"]
        assert wanted["lost"] <= found["wanted_points"] or wanted["lost"] <= wanted["least"] + 0.5
    for peers in found["mapie"].values():
        kept = {name: one["kept"] for name, one in peers.items()}
        assert kept["vicinal"] == max(kept.values())
