"""Distilled prototypes: the slopes are those of the loss, and they tell the bank's points as the bank does."""

from __future__ import annotations

import numpy as np
import pytest

from scenarios import clustered
from vicinal import condense
from vicinal.condensation import distilled
from vicinal.condensation.distilled import Lesson, Prototypes
from vicinal.condensation.task import Task


def slow_loss(lesson, vectors, logs, codes, near):
    """The mean of -Σ t_c log p_c, one point after the other."""
    losses = []
    for x, said, shares, mass in zip(lesson.vectors, lesson.codes, lesson.shares, lesson.masses, strict=True):
        gaps = np.linalg.norm(vectors.astype(float) - x, axis=1)
        nearest = np.argsort(gaps, kind="stable")[:near]
        weights = np.exp(logs[nearest] - gaps[nearest])
        present = {c: weights[codes[nearest] == c].sum() / weights.sum() for c in set(codes[nearest])}
        told = [(c, share) for c, share in zip(said, shares, strict=True) if c in present]
        wanted = sum(share for _, share in told)
        losses.append(-mass * sum(share / wanted * np.log(present[c]) for c, share in told) if told else 0.0)
    return np.mean(losses)


@pytest.fixture
def lesson():
    generator = np.random.default_rng(2)
    shares = generator.dirichlet(np.ones(4), 30).astype(np.float32)
    vectors = generator.normal(size=(30, 3)).astype(np.float32)
    return Lesson(vectors, generator.integers(0, 4, (30, 4)).astype(np.int32), shares, generator.uniform(0.5, 2, 30))


@pytest.fixture
def prototypes():
    generator = np.random.default_rng(3)
    vectors = generator.normal(size=(12, 3)).astype(np.float32)
    return Prototypes(vectors, generator.normal(size=12), (np.arange(12) % 4).astype(np.int32), 4, 1.0)


@pytest.mark.parametrize("near", [3, 7, 100])
def test_the_loss_and_its_slopes_are_those_of_a_slow_loop(lesson, prototypes, near, monkeypatch):
    monkeypatch.setattr(distilled, "_NEAR", (near, near))
    monkeypatch.setattr(distilled, "_PART", 8)
    loss, to_places, to_logs = prototypes.slopes(lesson, np.arange(30))

    def at(vectors, logs):
        return slow_loss(lesson, vectors, logs, prototypes.codes, near)

    step = 1e-5
    vectors, logs = prototypes.vectors.astype(float), prototypes.logs
    np.testing.assert_allclose(loss, at(vectors, logs), rtol=1e-5)
    for j in range(12):
        move = step * np.eye(12)[j]
        np.testing.assert_allclose(
            to_logs[j], (at(vectors, logs + move) - at(vectors, logs - move)) / 2 / step, atol=1e-5
        )
        for column in range(3):
            shift = np.outer(move, np.eye(3)[column])
            by_hand = (at(vectors + shift, logs) - at(vectors - shift, logs)) / 2 / step
            np.testing.assert_allclose(to_places[j, column], by_hand, atol=1e-5)


def test_the_lesson_is_what_the_bank_says_of_each_point_without_it():
    bank = clustered(80)
    weights = np.random.default_rng(0).uniform(0.5, 3, 80)
    task = Task(bank.vectors, bank.labels.astype(np.int32), weights, np.full(5, 2), 0)
    found = distilled._lesson(task, task.whole, np.zeros(8, np.float32))
    for i in (0, 17, 79):
        gaps = np.linalg.norm(bank.vectors.astype(float) - bank.vectors[i], axis=1)
        gaps[i] = np.inf
        nearest = np.argsort(gaps)[:50]
        mass = weights[nearest] * np.exp(-gaps[nearest])
        told = 0.5 * np.bincount(bank.labels[nearest], mass, 5) / mass.sum() + 0.5 * np.eye(5)[bank.labels[i]]
        np.testing.assert_allclose(np.bincount(found.codes[i], found.shares[i], 5), told, rtol=1e-5)
    np.testing.assert_allclose(found.masses, weights / weights.mean())


def test_learning_lowers_the_loss_below_that_of_the_centres_it_starts_from():
    bank = clustered(1000, classes=10)
    task = Task(bank.vectors, bank.labels.astype(np.int32), np.ones(1000), np.full(10, 1), 0)
    lesson = distilled._lesson(task, task.whole, np.zeros(8, np.float32))
    losses = {}
    for method in ("distilled", "k-means"):
        small = condense(bank, method, share=0.05).bank
        told = Prototypes(small.vectors, np.log(small.weights), small.labels.astype(np.int32), 10, 1.0)
        losses[method] = told.slopes(lesson, np.arange(1000))[0]
    assert losses["distilled"] < 0.95 * losses["k-means"]


@pytest.mark.parametrize(("size", "near"), [(3, 3), (50, 5), (500, 25), (2000, 100), (9000, 100)])
def test_a_point_is_told_by_a_twentieth_of_the_prototypes(size, near):
    places, codes = np.zeros((size, 1), np.float32), np.zeros(size, np.int32)
    assert Prototypes(places, np.zeros(size), codes, 1, 1.0).near == near


def test_without_weights_only_places_are_fitted():
    small = condense(clustered(500), "distilled", share=0.1, weighted=False)
    heavy = condense(clustered(500), "distilled", share=0.1)
    assert small.bank.vectors.tolist() != heavy.bank.vectors.tolist()


def test_prototypes_that_lie_on_points_stay_finite():
    bank = clustered(40)
    twice = bank.add(bank.vectors, bank.labels).add(bank.vectors, bank.labels)
    small = condense(twice, "distilled", share=1 / 3)
    assert np.isfinite(small.bank.vectors).all()
    assert np.isfinite(small.bank.weights).all()


def test_steps_are_those_of_adam(prototypes):
    import torch

    generator = np.random.default_rng(0)
    slopes = generator.normal(size=(5, 4, 3)).astype(np.float32)
    ours = np.zeros((4, 3), np.float32)
    theirs = torch.zeros((4, 3), requires_grad=True)
    peer = torch.optim.Adam([theirs], lr=0.1, betas=(0.9, 0.99), eps=0.0)
    averages = distilled._Averages.of(ours)
    for step, slope in enumerate(slopes):
        averages.follow(ours, slope, 0.1, step)
        theirs.grad = torch.from_numpy(slope)
        peer.step()
    np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-5)
