"""What a run is fed with depends on the seed and the number of the step alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from vicinal.errors import InputError
from vicinal.learn.batches import PairBatches
from vicinal.learn.feed import Batch, feed
from vicinal.learn.recipe import OneCycle, Recipe

CPU = torch.device("cpu")
LABELS = np.arange(53) % 5


def fed(method: str = "distance", *, start: int = 0, total: int = 23, seed: int = 3, batch: int = 10) -> list[Batch]:
    recipe = Recipe(name="r", network="svhn", schedule=OneCycle(0.1), steps=total, batch=batch, method=method)
    return list(feed(LABELS, recipe, seed=seed, start=start, total=total, device=CPU))


def same(first: list[Batch], second: list[Batch]) -> bool:
    def equal(a: torch.Tensor | None, b: torch.Tensor | None) -> bool:
        return a is b or (a is not None and b is not None and torch.equal(a, b))

    return len(first) == len(second) and all(
        a.step == b.step and equal(a.rows, b.rows) and equal(a.pairs, b.pairs)
        for a, b in zip(first, second, strict=True)
    )


@settings(max_examples=30, deadline=None)
@given(start=st.integers(0, 22), method=st.sampled_from(["reg", "distance", "adversarial"]))
def test_a_run_can_start_anywhere(start: int, method: str) -> None:
    assert same(fed(method, start=start), fed(method)[start:])


@pytest.mark.parametrize("method", ["reg", "distance"])
def test_every_epoch_repeats_no_point_and_all_come_up(method: str) -> None:
    batches = fed(method, total=50)
    assert [batch.step for batch in batches] == list(range(50))
    for epoch in range(10):
        rows = torch.cat([batch.rows for batch in batches[5 * epoch : 5 * epoch + 5]])
        assert len(rows.unique()) == 50
    assert len(torch.cat([batch.rows for batch in batches]).unique()) == len(LABELS)


def test_pairs_come_with_the_distance_method_alone_and_fit_their_batch() -> None:
    assert all(batch.pairs is None for batch in fed("reg"))
    for batch in fed("distance"):
        assert batch.pairs is not None
        assert sorted(batch.pairs.flatten().tolist()) == list(range(10))
        labels = torch.as_tensor(LABELS)[batch.rows][batch.pairs]
        assert 2 * int((labels[:, 0] == labels[:, 1]).sum()) >= 2  # 20 % of ten points


def test_seeds_differ_and_repeat() -> None:
    assert same(fed(seed=1), fed(seed=1))
    assert not same(fed(seed=1), fed(seed=2))


def test_pairs_are_not_those_of_the_epoch_before() -> None:
    batches = fed("distance", total=10)
    assert not torch.equal(
        torch.cat([one.pairs for one in batches[:5]]),  # type: ignore[misc]
        torch.cat([one.pairs for one in batches[5:]]),  # type: ignore[misc]
    )


def test_reg_batches_are_the_samplers_own() -> None:
    rows = torch.stack([batch.rows for batch in fed("reg", total=10)])
    sampler = PairBatches(LABELS, 10, share=0.0, seed=3)
    np.testing.assert_array_equal(rows.numpy(), np.concatenate([sampler.epoch(0), sampler.epoch(1)]))


def test_what_cannot_work_is_refused_before_the_first_batch() -> None:
    recipe = Recipe(name="r", network="svhn", schedule=OneCycle(0.1), steps=2, batch=4, method="distance")
    with pytest.raises(InputError, match="got one of class 7"):
        feed(np.array([0, 0, 1, 1, 7]), recipe, seed=0, start=0, total=2, device=CPU)
    with pytest.raises(InputError, match="at most 3, all the points there are, got 4"):
        feed(np.array([0, 0, 1]), recipe.change(method="reg"), seed=0, start=0, total=2, device=CPU)
