"""MC dropout against the loop anyone would write, in distribution; what runs once; how the module is left."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor, nn

from vicinal.errors import InputError
from vicinal.learn.dropout import mc_dropout
from vicinal.learn.networks import build


def images(n: int = 4, shape: tuple[int, ...] = (6,), seed: int = 0) -> Tensor:
    return torch.randn(n, *shape, generator=torch.Generator().manual_seed(seed))


def plain() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Linear(6, 8),
        nn.ELU(),
        nn.Linear(8, 8),
        nn.Dropout(0.4),
        nn.ELU(),
        nn.Linear(8, 5),
        nn.Dropout(0.2),
        nn.ELU(),
    ).append(nn.Linear(5, 3))


class Branching(nn.Module):
    """Decides by the values which way to go, so that it cannot be traced."""

    def __init__(self) -> None:
        super().__init__()
        self.net = plain()

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x) if float(x.sum()) > -1e9 else x


def naive(module: nn.Module, x: Tensor, passes: int, seed: int) -> Tensor:
    """(passes, n, c): one whole pass after the other, with the dropout layers on and the rest off."""
    module.eval()
    for layer in module.modules():
        if isinstance(layer, nn.Dropout):
            layer.train()
    torch.manual_seed(seed)
    with torch.no_grad():
        found = torch.stack([logits(module(x)).softmax(1) for _ in range(passes)])
    module.eval()
    return found


def logits(output: Any) -> Tensor:
    return getattr(output, "logits", output)


# --- the numbers


def test_where_nothing_is_shared_it_is_the_naive_loop_mask_for_mask() -> None:
    module, x = Branching(), images()
    found = mc_dropout(module, x, passes=40, seed=7)
    torch.testing.assert_close(found.probabilities, naive(module, x, 40, 7).mean(0))


@pytest.mark.parametrize("make", [plain, lambda: build("digits", 3, width=0.125, dropout=2 / 3)])
def test_its_passes_are_distributed_like_those_of_the_naive_loop(make: Any) -> None:
    """Kolmogorov and Smirnov, for every class of an image: 600 passes one by one, and 600 copies in one pass."""
    module = make().eval()
    image = images(1) if isinstance(module, nn.Sequential) else images(1, (1, 8, 8))
    theirs = naive(module, image, 600, 5)[:, 0]
    ours = mc_dropout(module, image.expand(600, *image.shape[1:]), passes=1, seed=6, batch=7).probabilities
    for one in range(3):
        assert stats.ks_2samp(theirs[:, one], ours[:, one]).pvalue > 1e-3
    assert float(ours.std(0).min()) > 0


def test_the_mean_is_within_four_standard_errors_of_the_naive_one() -> None:
    module, x = build("cifar100", 10, width=0.125).eval(), images(3, (3, 32, 32))
    network = build("cifar100", 10, width=0.125, seed=3)
    network.classifier.weight.data *= 30  # so that it says something
    theirs = naive(network, x, 400, 0)
    ours = mc_dropout(network, x, passes=400, seed=1).probabilities
    pooled = (ours + theirs.mean(0)) / 2
    error = (pooled * (1 - pooled) * 2 / 400) ** 0.5  # no probabilities of this mean vary more
    assert bool(((ours - theirs.mean(0)).abs() < 4 * error).all())
    assert float(theirs.std(0).max()) > 0.01
    assert not torch.allclose(ours, module(x).logits.softmax(1).detach())


def test_embeddings_are_the_mean_of_what_the_last_layer_reads() -> None:
    network = build("digits", 3, width=0.125)
    x, seen = images(2, (1, 8, 8)), []
    found = mc_dropout(network, x, passes=300, seed=2)
    network.features.register_forward_hook(lambda *hooked: seen.append(hooked[2].flatten(1)))
    naive(network, x, 300, 4)
    theirs = torch.stack(seen)
    error = theirs.std(0) * (2 / 300) ** 0.5
    assert bool(((found.embeddings - theirs.mean(0)).abs() <= 4.5 * error + 1e-6).all())


def test_embeddings_of_other_modules_are_the_input_of_the_last_linear_layer() -> None:
    module, x = plain(), images()
    found = mc_dropout(module, x, passes=1, seed=3)
    torch.testing.assert_close(module[-1](found.embeddings).softmax(1).detach(), found.probabilities)


def test_a_module_without_a_linear_layer_has_no_embeddings() -> None:
    module = nn.Sequential(nn.Conv2d(1, 3, 3), nn.Dropout(0.5), nn.Conv2d(3, 2, 6), nn.Flatten())
    found = mc_dropout(module, images(2, (1, 8, 8)), passes=3)
    assert found.embeddings is None
    assert found.probabilities.shape == (2, 2)


@pytest.mark.parametrize(("n", "batch", "passes"), [(1, 100, 7), (5, 2, 3), (5, 3, 4), (3, 100, 1), (7, 7, 2)])
def test_any_batch_gives_every_image_every_pass(n: int, batch: int, passes: int) -> None:
    """A dropout of (nearly) nothing makes every pass the plain prediction."""
    module, x = plain(), images(n)
    for layer in module:
        if isinstance(layer, nn.Dropout):
            layer.p = 1e-12
    found = mc_dropout(module, x, passes=passes, batch=batch)
    with torch.no_grad():
        torch.testing.assert_close(found.probabilities, module.eval()(x).softmax(1))
    assert found.passes == passes


def test_the_seed_decides_and_another_draws_others() -> None:
    module, x = plain(), images()
    first = mc_dropout(module, x, passes=5, seed=1)
    assert torch.equal(mc_dropout(module, x, passes=5, seed=1).probabilities, first.probabilities)
    assert not torch.equal(mc_dropout(module, x, passes=5, seed=2).probabilities, first.probabilities)


# --- what runs once


def test_what_comes_before_the_first_dropout_runs_once_for_a_hundred_passes() -> None:
    """Of the paper's network: three convolutions once, seven in every pass (100 images, so nothing is folded)."""
    network, x, runs = build("cifar100", 100, width=0.03125).eval(), images(4, (3, 32, 32)), Counter()
    found = mc_dropout(network, x, passes=100, batch=4)
    assert [name.rpartition(".")[2] for name in found.once] == ["images", "stage1", "conv2", "elu2", "conv3"]
    for name, layer in network.named_modules():
        if isinstance(layer, nn.Conv2d):
            layer.register_forward_hook(lambda *_, name=name: runs.update([name]))
    mc_dropout(network, x, passes=100, batch=4)
    extra = 8  # when the cut is tried out
    for number in range(1, 11):
        (count,) = (count for name, count in runs.items() if name.endswith(f"conv{number}"))
        assert count <= 1 + extra if number <= 3 else 100 <= count <= 100 + extra


def test_a_few_images_run_several_passes_at_once() -> None:
    module, sizes = plain(), []
    module[-1].register_forward_hook(lambda *hooked: sizes.append(len(hooked[2])))
    mc_dropout(module, images(4), passes=50, batch=100)
    assert sizes[-2:] == [100, 100]


# --- modules of all kinds


class Styled(nn.Module):
    def __init__(self, style: Any) -> None:
        super().__init__()
        self.net, self.style = plain(), style

    def forward(self, x: Tensor) -> Any:
        return self.style(self.net(x))


@pytest.mark.parametrize("style", [lambda out: (out, None), lambda out: [out], lambda out: out])
def test_logits_may_be_wrapped(style: Any) -> None:
    found = mc_dropout(Styled(style), images(), passes=4, seed=1)
    assert torch.equal(found.probabilities, mc_dropout(plain(), images(), passes=4, seed=1).probabilities)


def test_a_module_that_cannot_be_cut_runs_whole_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        found = mc_dropout(Branching(), images(), passes=2)
    assert found.once == ()
    assert found.note.startswith("plain passes: it cannot be traced (")
    assert "MC dropout runs the whole of Branching in every pass: it cannot be traced" in caplog.text
    assert repr(found).endswith(f"2 passes, 0 layers once; {found.note})")


def test_batch_normalization_stays_as_it_is() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(6, 4), nn.Dropout(0.5), nn.BatchNorm1d(4), nn.Linear(4, 2)).train()
    module[2].running_mean += 3
    before = {name: value.clone() for name, value in module.state_dict().items()}
    found = mc_dropout(module, images(), passes=300, seed=0).probabilities
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name])
    theirs = naive(module, images(), 300, 1)
    assert bool(((found - theirs.mean(0)).abs() < 4 * theirs.std(0) * (2 / 300) ** 0.5).all())


def test_dropout_inside_a_transformer_is_on() -> None:
    """torch's fast path for such layers in evaluation mode would leave it out."""
    torch.manual_seed(0)

    class Tokens(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.5, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.head = nn.Linear(8, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.encoder(x)[:, 0])

    module, x = Tokens().eval(), images(3, (5, 8))
    found = {seed: mc_dropout(module, x, passes=1, seed=seed).probabilities for seed in (0, 1)}
    assert not torch.allclose(found[0], found[1])


# --- how it is left


def test_the_module_and_the_random_state_are_left_as_they_were() -> None:
    module = plain().train()
    module[1].eval()
    modes = [layer.training for layer in module.modules()]
    state = torch.random.get_rng_state()
    mc_dropout(module, images(), passes=3)
    assert [layer.training for layer in module.modules()] == modes
    assert torch.equal(torch.random.get_rng_state(), state)
    assert not any(layer._forward_hooks or layer._forward_pre_hooks for layer in module.modules())
    assert not mc_dropout(module, images(), passes=1).probabilities.requires_grad


def test_it_is_left_as_it_was_after_an_error_too() -> None:
    module = plain().train()
    with pytest.raises(RuntimeError):
        mc_dropout(module, images(2, (5,)), passes=2)
    assert all(layer.training for layer in module.modules())
    assert not any(layer._forward_hooks or layer._forward_pre_hooks for layer in module.modules())


# --- what is refused


class Unused(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.drop, self.head = nn.Dropout(0.5), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(x)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"passes": 0}, "passes: expected a whole number of at least 1, got 0"),
        ({"seed": -1}, "seed: expected a whole number of at least 0, got -1"),
        ({"batch": 0}, "batch: expected a whole number of at least 1, got 0"),
        ({"images": torch.zeros(0, 6)}, r"images: expected .* at least one image, got shape \(0, 6\)"),
        ({"images": torch.zeros(6)}, r"got shape \(6,\)"),
        ({"images": np.zeros((2, 6))}, "images: expected a tensor .* got ndarray"),
        ({"module": nn.Linear(6, 2)}, "expected a dropout layer with a probability above 0, got none, so that every"),
        ({"module": nn.Sequential(nn.Dropout(0.0), nn.Linear(6, 2))}, "got none, so that every pass would be the same"),
        ({"module": Unused()}, "expected a dropout layer to run in its forward pass, but none did"),
        ({"module": nn.Sequential(nn.Dropout(0.5), nn.Flatten(0))}, r"expected logits \(n, c\)"),
    ],
)
def test_what_it_cannot_take_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        mc_dropout(**{"module": plain(), "images": images(), **change})
