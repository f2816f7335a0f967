"""Each fast layer against the slow one it stands for: the same function, the same gradient, the same distribution."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from vicinal.learn import blocks
from vicinal.learn.blocks import Dropout, EluPool, in_pieces

SHAPES = st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(2, 7), st.integers(2, 7))


def some(shape: tuple[int, ...], seed: int = 0, *, channels_last: bool = False) -> Tensor:
    values = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return values.contiguous(memory_format=torch.channels_last) if channels_last else values


def with_gradient(function: nn.Module, values: Tensor) -> tuple[Tensor, Tensor]:
    """The output, and the gradient of a sum in which every number of it counts differently."""
    leaf = values.clone().requires_grad_()
    out = function(leaf)
    (out * torch.arange(1, out.numel() + 1, dtype=out.dtype).view(out.shape)).sum().backward()
    return out.detach(), leaf.grad


@given(SHAPES, st.integers(0, 1000), st.booleans())
def test_pooling_before_the_elu_is_pooling_after_it(shape: tuple[int, ...], seed: int, channels_last: bool) -> None:
    values = some(shape, seed, channels_last=channels_last)
    fast, slow = (with_gradient(layer, values) for layer in (EluPool(), nn.Sequential(nn.ELU(), nn.MaxPool2d(2))))
    torch.testing.assert_close(fast[0], slow[0], rtol=1e-14, atol=0)  # the last bit is another for some vector widths
    torch.testing.assert_close(fast[1], slow[1], rtol=1e-12, atol=0)


@given(SHAPES, st.integers(0, 1000), st.floats(0.05, 0.95), st.booleans())
def test_with_dropout_in_between_it_is_still_the_same(
    shape: tuple[int, ...], seed: int, p: float, channels_last: bool
) -> None:
    """``pool(dropout(elu(z)))`` with the very mask that was drawn."""
    values = some(shape, seed, channels_last=channels_last)
    torch.manual_seed(seed)
    mask = Dropout(p)(torch.ones_like(values))

    class Slow(nn.Module):
        def forward(self, z: Tensor) -> Tensor:
            return functional.max_pool2d(functional.elu(z) * mask, 2)

    torch.manual_seed(seed)
    fast = with_gradient(EluPool(p), values)
    slow = with_gradient(Slow(), values)
    torch.testing.assert_close(fast[0], slow[0], rtol=1e-14, atol=0)
    torch.testing.assert_close(fast[1], slow[1], rtol=1e-12, atol=0)


def test_the_random_bits_are_those_of_splitmix() -> None:
    words = np.empty(5, np.uint64)
    blocks._split_mix(np.uint64(1234567), 0, words)
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert words.tolist() == [*published, 16408922859458223821]
    later = np.empty(2, np.uint64)
    blocks._split_mix(np.uint64(1234567), 3, later)
    assert later.tolist() == words[3:].tolist()


@given(SHAPES, st.integers(0, 1000), st.floats(0.05, 0.95), st.booleans())
def test_one_loop_draws_drops_and_pools_as_three_do(
    shape: tuple[int, ...], seed: int, p: float, channels_last: bool
) -> None:
    values, layer = some(shape, seed, channels_last=channels_last).float(), EluPool(p)
    values[0, 0, 0, 0] = torch.nan
    found = []
    for gradient in (True, False):
        torch.manual_seed(seed)
        with torch.set_grad_enabled(gradient):
            found.append(layer(values.requires_grad_()).detach())
    torch.testing.assert_close(*found, rtol=0, atol=0, equal_nan=True)
    assert found[0].stride() == found[1].stride() or found[0].numel() < 2


def test_one_loop_is_what_a_prediction_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(blocks, "_pooled", lambda values, first: seen.append(first) or functional.max_pool2d(values, 2))
    values = some((2, 4, 6, 6), channels_last=True).float()
    with torch.no_grad():
        EluPool(0.25)(values)
    assert seen == [2**14 - 2**15]
    EluPool(0.25)(values.requires_grad_())
    assert len(seen) == 1


def test_in_evaluation_mode_nothing_is_dropped() -> None:
    values = some((2, 3, 4, 4))
    assert torch.equal(EluPool(0.5).eval()(values), EluPool().eval()(values))
    assert torch.equal(Dropout(0.5).eval()(values), values)
    assert torch.equal(Dropout(0.0)(values), values)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_the_share_dropped_is_that_of_torch_and_the_mean_stays(p: float) -> None:
    torch.manual_seed(1)
    count = 200_000
    ours, theirs = (layer(torch.ones(count)) for layer in (Dropout(p), nn.Dropout(p)))
    deviation = (p * (1 - p) / count) ** 0.5
    for found in (ours, theirs):
        assert float((found == 0).double().mean()) == pytest.approx(p, abs=4 * deviation)
    kept = ours[ours > 0].unique()
    assert len(kept) == 1
    assert kept.item() == pytest.approx(1 / (1 - p), rel=1e-4)


def test_neighbours_are_dropped_independently() -> None:
    """Four values share the bits of one number: no two of them must look alike."""
    torch.manual_seed(2)
    dropped = (Dropout(0.5)(torch.ones(400_000)) == 0).view(-1, 8).double()
    correlations = np.corrcoef(dropped.numpy().T) - np.eye(8)
    assert np.abs(correlations).max() < 4 / 50_000**0.5
    twins = (Dropout(0.5)(torch.ones(2, 1000)) == 0).double()
    assert abs(float((twins[0] == twins[1]).double().mean()) - 0.5) < 0.1


@given(st.integers(1, 40), st.integers(0, 100), st.sampled_from([torch.float32, torch.float64, torch.bfloat16]))
def test_any_number_of_values_of_any_kind_is_dropped_or_scaled(count: int, seed: int, kind: torch.dtype) -> None:
    torch.manual_seed(seed)
    layer, values = Dropout(0.25), torch.arange(1, count + 1).to(kind)
    found = layer(values)
    assert found.dtype == kind
    scaled = values * torch.tensor(layer.scale, dtype=torch.float64).to(kind)
    assert all(value in (0, wanted) for value, wanted in zip(found.tolist(), scaled.tolist(), strict=True))


def test_the_seed_decides_and_the_memory_format_is_kept() -> None:
    values = some((2, 3, 4, 4), channels_last=True)
    torch.manual_seed(5)
    first = Dropout(0.5)(values)
    assert first.is_contiguous(memory_format=torch.channels_last)
    torch.manual_seed(5)
    assert torch.equal(Dropout(0.5)(values), first)
    assert not torch.equal(Dropout(0.5)(values), first)


def test_the_gradient_of_dropout_is_its_mask() -> None:
    torch.manual_seed(0)
    values = torch.randn(50, requires_grad=True)
    out = Dropout(0.5)(values)
    out.sum().backward()
    torch.testing.assert_close(values.grad, torch.where(out == 0, 0.0, 2.0))


@given(st.integers(1, 12), st.integers(1, 40), st.integers(1, 50))
def test_in_pieces_is_as_a_whole(rows: int, largest: int, piece: int) -> None:
    values, sizes = some((rows, 3)), []

    def function(part: Tensor) -> Tensor:
        sizes.append(len(part))
        return part.exp()

    before = blocks.PIECE
    blocks.PIECE = piece
    try:
        found = in_pieces(function, values, largest)
    finally:
        blocks.PIECE = before
    assert torch.equal(found, values.exp())
    assert max(sizes) == min(rows, max(1, piece // largest))
    assert sum(sizes) == rows


def test_layers_in_pieces_have_the_same_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    values = some((7, 3, 6, 6))
    convolution = nn.Conv2d(3, 4, 3, padding=1).double()
    found = []
    for piece in (2**20, 300):
        monkeypatch.setattr(blocks, "PIECE", piece)
        convolution.zero_grad()
        parts = blocks.InPieces(OrderedDict(conv=convolution, pool=EluPool()), 4 * 36)
        out, gradient = with_gradient(parts, values)
        found.append((out, gradient, convolution.weight.grad.clone()))
    for whole, pieces in zip(*found, strict=True):
        torch.testing.assert_close(pieces, whole, rtol=1e-10, atol=1e-10)
