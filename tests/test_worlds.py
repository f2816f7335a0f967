"""Worlds whose optimum is known in closed form: distance and density must approach it as the bank grows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

from scenarios import TwoGaussians, TwoSpreads
from vicinal import metrics, score
from vicinal.bank import Bank
from vicinal.density import density
from vicinal.novelty import Detector
from vicinal.selective import calibrate, threshold_at


def test_the_closed_forms_are_what_sampling_gives():
    world, spreads = TwoGaussians(1.0, 3), TwoSpreads(2.0)
    vectors, labels = world.draw(200_000, 0)
    correct, best = world.predict(vectors) == labels, np.abs(vectors[:, 0])
    assert correct.mean() == pytest.approx(world.accuracy, abs=0.003)
    assert metrics.auroc(best, correct) == pytest.approx(world.auroc, abs=0.004)
    for t in (0.3, 1.0):
        assert (best > t).mean() == pytest.approx(world.coverage(t), abs=0.004)
        assert (~correct[best > t]).mean() == pytest.approx(world.risk(t), abs=0.004)
    assert metrics.ece(1 / (1 + np.exp(-world.log_odds(vectors))), correct) < 0.005
    known, novel = (-np.linalg.norm(draw(100_000, 0), axis=1) for draw in (spreads.known, spreads.novel))
    kind = np.arange(200_000) < 100_000
    assert metrics.auroc(np.concatenate([known, novel]), kind) == pytest.approx(spreads.auroc, abs=0.004)
    assert (novel < np.quantile(known, 0.1)).mean() == pytest.approx(spreads.detected(0.1), abs=0.01)


def test_distance_approaches_the_optimal_ranking_of_errors():
    world = TwoGaussians(1.0, 2)
    vectors, labels = world.draw(6000, 1)
    predicted = world.predict(vectors)
    correct = predicted == labels
    best = metrics.auroc(world.log_odds(vectors), correct)
    lost = {}
    for n, k in ((100, 10), (1000, 50), (20_000, 500)):
        trust = score.distance(Bank(*world.draw(n, 2)), vectors, predicted, k=k)
        lost[n] = best - metrics.auroc(trust.log_odds, correct)
    assert lost[100] > lost[1000] > lost[20_000]
    assert lost[20_000] < 0.005


def test_distance_approaches_the_optimal_risk_coverage_curve_and_probability():
    world = TwoGaussians(1.0, 2)
    vectors, labels = world.draw(6000, 3)
    predicted = world.predict(vectors)
    correct = predicted == labels
    trust = score.distance(Bank(*world.draw(20_000, 4)), vectors, predicted, k=500)
    curve = metrics.risk_coverage(trust.log_odds, correct)
    for t in (0.2, 0.6, 1.0, 1.4):
        risk = curve.risk[np.searchsorted(curve.coverage, world.coverage(t))]
        assert risk == pytest.approx(world.risk(t), abs=0.015)
    # k is far below n, so D is a local share of the class: the Bayes probability itself, without calibration
    bayes = 1 / (1 + np.exp(-world.log_odds(vectors)))
    assert np.abs(trust.confidence - bayes).mean() < 0.02
    assert np.abs(calibrate(trust, correct, "platt")(trust) - bayes).mean() < 0.02


def test_a_threshold_keeps_nearly_what_the_optimal_rule_keeps():
    world = TwoGaussians(1.6, 2)  # right in 94.5 %
    best = world.coverage(float(brentq(lambda t: world.risk(t) - 0.02, 0, 5)))
    vectors, labels = world.draw(5000, 5)
    predicted = world.predict(vectors)
    trust = score.distance(Bank(*world.draw(20_000, 6)), vectors, predicted, k=500)
    threshold = threshold_at(trust, predicted == labels, risk=0.02)
    fresh, truth = world.draw(20_000, 7)
    accepted = threshold.accept(score.distance(Bank(*world.draw(20_000, 6)), fresh, world.predict(fresh), k=500))
    assert (world.predict(fresh) != truth)[accepted].mean() < 0.02
    assert best - 0.06 < accepted.mean() < best + 0.01


def test_density_approaches_the_optimal_detector():
    world = TwoSpreads(3.0)
    inputs = np.concatenate([world.known(3000, 1), world.novel(3000, 1)])
    kind = np.arange(6000) < 3000
    best = metrics.auroc(-np.linalg.norm(inputs, axis=1), kind)
    found = {
        n: metrics.auroc(density(Bank(world.known(n, 2), np.zeros(n, int)), inputs, k=k).log_odds, kind)
        for n, k in ((20, 5), (20_000, 400))
    }
    assert found[20] < found[20_000]
    assert best - found[20_000] < 0.002


def test_a_detector_finds_what_the_optimal_one_finds_at_its_false_alarms():
    world = TwoSpreads(3.0)
    bank = Bank(world.known(5000, 3), np.zeros(5000, int))
    detector = Detector.fit(density(bank, world.known(4000, 4), k=200))
    alarms = detector.novel(density(bank, world.known(4000, 5), k=200), 0.05).mean()
    found = detector.novel(density(bank, world.novel(4000, 6), k=200), 0.05).mean()
    assert alarms == pytest.approx(0.05, abs=0.015)
    assert found == pytest.approx(world.detected(0.05), abs=0.03)
