"""The networks against the paper's own text: parameters counted from it, and a plain network built from it."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from vicinal.errors import InputError, ShapeError
from vicinal.learn import blocks
from vicinal.learn.networks import ConvNet, Output, ResNet, build, logits_of

# The paper, section "Experimental Setup", word for word.
CIFAR100 = r"""$C(192,5)\Rightarrow P(2)\Rightarrow C(192,1)\Rightarrow C(240,3) \Rightarrow P(2) \Rightarrow
C(240,1)\Rightarrow C(260,3) \Rightarrow P(2) \Rightarrow C(260,1)\Rightarrow C(280,2) \Rightarrow P(2) \Rightarrow
C(280,1)\Rightarrow C(300,2) \Rightarrow P(2) \Rightarrow C(300,1) \Rightarrow FC(100)$"""
SVHN = r"""$C(32,3)\Rightarrow C(32,3) \Rightarrow C(32,3) \Rightarrow P(2) \Rightarrow C(64,3)\Rightarrow
C(64,3)\Rightarrow C(64,3)\Rightarrow P(2) \Rightarrow C(128,3)\Rightarrow C(128,3)\Rightarrow C(128,3)\Rightarrow P(2)
\Rightarrow FC(128) \Rightarrow FC(10)$"""
DROPS = (
    0.1,
    0.2,
    0.3,
    0.4,
    0.5,
)  # "before each max pooling layer (excluding the first) and after the last convolution"


def layers(text: str) -> list[tuple[str, int, int]]:
    return [(kind, int(n), int(k or 0)) for kind, n, k in re.findall(r"\b(C|P|FC)\((\d+)(?:,(\d+))?\)", text)]


def counted(text: str, classes: int | None = None) -> int:
    """Weights and biases of every layer, by hand, for images of 3 x 32 x 32."""
    channels, size, total, found = 3, 32, 0, layers(text)
    for place, (kind, n, k) in enumerate(found):
        out = classes if classes is not None and place == len(found) - 1 else n
        if kind == "P":
            size //= 2
        else:
            inputs = channels * k * k if kind == "C" else channels * size * size
            total += inputs * out + out
            channels = out
            size = size if kind == "C" else 1
    return total


def plain(text: str, drops: tuple[float, ...]) -> nn.Sequential:
    """The same network layer by layer, with torch's own layers and torch's own padding that keeps the size."""
    parts: list[nn.Module] = []
    channels, size, found, left = 3, 32, layers(text), list(drops)
    for (kind, n, k), (after, _, _) in pairwise([*found, ("", 0, 0)]):
        if kind == "C":
            parts += [nn.Conv2d(channels, n, k, padding="same"), nn.ELU()]
            channels = n
            if left and ((after == "P" and size < 32) or after == "FC"):
                parts.append(nn.Dropout(left.pop(0)))
        elif kind == "P":
            parts.append(nn.MaxPool2d(2))
            size //= 2
        else:
            parts += [nn.Flatten(), nn.Linear(channels * size * size, n), *([nn.ELU()] if after else [])]
            channels, size = n, 1
    return nn.Sequential(*parts)


def images(n: int = 3, shape: tuple[int, int, int] = (3, 32, 32), seed: int = 0) -> Tensor:
    return torch.randn(n, *shape, generator=torch.Generator().manual_seed(seed))


def parameters(network: nn.Module) -> int:
    return sum(weights.numel() for weights in network.parameters())


@pytest.mark.parametrize(
    ("name", "text", "classes", "count"),
    [
        ("cifar100", CIFAR100, 100, 1_981_028),
        ("stl10", CIFAR100, 10, 1_953_938),
        ("svhn", SVHN, 10, 744_330),
    ],
)
def test_it_has_exactly_the_parameters_of_the_papers_text(name: str, text: str, classes: int, count: int) -> None:
    assert parameters(build(name, classes)) == counted(text, classes) == count


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@pytest.mark.parametrize(("name", "text", "drops"), [("cifar100", CIFAR100, DROPS), ("svhn", SVHN, ())])
def test_it_is_the_plain_network_of_the_papers_text(name: str, text: str, drops: tuple[float, ...]) -> None:
    """Every rewrite at once: the same logits, embedding and gradients as layer after layer."""
    network, other = build(name, layers(text)[-1][1], seed=4).eval(), plain(text, drops).eval()
    for mine, theirs in zip(network.parameters(), other.parameters(), strict=True):
        theirs.data = mine.detach().clone()
    x, labels = images(2), torch.tensor([1, 7])
    output = network(x)
    torch.testing.assert_close(output.logits, other(x), rtol=1e-4, atol=1e-5)
    before_classifier = other[:-1](x).flatten(1) if name == "svhn" else other[:-3](x).flatten(1)
    torch.testing.assert_close(output.embedding, before_classifier, rtol=1e-4, atol=1e-5)
    for one, logits in ((network, output.logits), (other, other(x))):
        cross_entropy(logits, labels).backward()
        assert all(weights.grad is not None for weights in one.parameters())
    for mine, theirs in zip(network.parameters(), other.parameters(), strict=True):
        scale = float(theirs.grad.abs().max())
        torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-3, atol=1e-4 * scale)


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
def test_dropout_stands_where_the_paper_puts_it() -> None:
    found = [layer.p for layer in build("cifar100", 100).modules() if isinstance(layer, nn.Dropout)]
    assert found == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
    assert [layer.p for layer in plain(CIFAR100, DROPS) if isinstance(layer, nn.Dropout)] == list(DROPS)
    halved = [layer.p for layer in build("cifar100", 100, dropout=0.5).modules() if isinstance(layer, nn.Dropout)]
    assert halved == pytest.approx([p / 2 for p in found])
    for name in ("svhn", "resnet"):
        assert not any(layer.p for layer in build(name, 10).modules() if isinstance(layer, nn.Dropout))


def test_while_training_it_drops_and_the_embedding_is_taken_before_the_last_dropout() -> None:
    network = build("cifar100", 10, width=0.125)
    x = images(4)
    torch.manual_seed(0)
    first, second = network(x), network(x)
    assert not torch.equal(first.logits, second.logits)
    still = build("cifar100", 10, width=0.125, dropout=0.0)
    still.drop.p = 0.5
    assert torch.equal(still(x).embedding, still(x).embedding)
    assert not torch.equal(still(x).logits, still(x).logits)


def test_pieces_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    network, x = build("cifar100", 10, width=0.25).eval(), images(5)
    whole = network(x)
    monkeypatch.setattr(blocks, "PIECE", 1)
    torch.testing.assert_close(network(x), whole, rtol=1e-5, atol=1e-6)


def test_an_image_gives_the_same_whatever_it_comes_with() -> None:
    for name in ("cifar100", "svhn", "resnet"):
        network, x = build(name, 10, width=0.25).eval(), images(6)
        torch.testing.assert_close(network(x[2:3]).embedding, network(x).embedding[2:3], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "width", "dimension"),
    [("cifar100", 1, 300), ("cifar100", 0.25, 76), ("svhn", 1, 128), ("svhn", 0.5, 128), ("resnet", 1, 64)],
)
def test_width_scales_kernels_and_keeps_full_layers(name: str, width: float, dimension: int) -> None:
    network = build(name, 10, width=width)
    assert network(images(1)).embedding.shape == (1, dimension)
    kernels = [layer.out_channels for layer in network.modules() if isinstance(layer, nn.Conv2d)]
    whole = [layer.out_channels for layer in build(name, 10).modules() if isinstance(layer, nn.Conv2d)]
    for few, many in zip(kernels, whole, strict=True):
        assert few % 4 == 0
        assert abs(few - width * many) <= 2


def test_the_residual_network_is_resnet_20() -> None:
    """272,474 parameters, as published for CIFAR-10 with convolutions as shortcuts (chenyaofo/pytorch-cifar-models)."""
    network = build("resnet", 10)
    assert parameters(network) == 272_474
    assert sum(isinstance(layer, nn.Conv2d) and layer.kernel_size == (3, 3) for layer in network.modules()) == 19
    maps = []
    network.blocks.register_forward_hook(lambda *found: maps.append(found[2]))
    output = network.eval()(images(2))
    torch.testing.assert_close(output.embedding, maps[0].mean((2, 3)))
    assert maps[0].shape == (2, 64, 8, 8)
    assert (maps[0] >= 0).all()


def test_a_residual_block_adds_what_entered() -> None:
    block = build("resnet", 10).blocks.block1_1.eval()
    nn.init.zeros_(block.second.conv.weight)
    x = images(2, (16, 8, 8))
    torch.testing.assert_close(block(x), x.relu())


def test_the_digits_network_takes_8_by_8() -> None:
    output = build("digits", 10)(images(2, (1, 8, 8)))
    assert (output.logits.shape, output.embedding.shape) == ((2, 10), (2, 64))


@pytest.mark.parametrize("name", ["cifar100", "svhn", "resnet"])
def test_fresh_weights_neither_swell_nor_shrink_and_the_first_loss_is_that_of_guessing(name: str) -> None:
    network = build(name, 10, dropout=0.0).train()
    output = network(images(16))
    assert float(cross_entropy(output.logits.detach(), torch.arange(16) % 10)) == pytest.approx(math.log(10), rel=0.05)
    assert 0.2 < float(output.embedding.detach().square().mean().sqrt()) < 3


def test_the_seed_alone_decides_the_weights() -> None:
    before = torch.random.get_rng_state()
    first, again, other = build("svhn", 10), build("svhn", 10), build("svhn", 10, seed=1)
    assert torch.equal(torch.random.get_rng_state(), before)
    state = first.state_dict()
    assert all(torch.equal(value, again.state_dict()[name]) for name, value in state.items())
    assert not torch.equal(state["classifier.weight"], other.state_dict()["classifier.weight"])


def test_other_image_sizes_and_colours() -> None:
    assert build("cifar100", 10, width=0.1, shape=(3, 96, 96))(images(1, (3, 96, 96))).embedding.shape == (1, 32 * 9)
    assert build("svhn", 10, width=0.25, shape=(1, 28, 28))(images(1, (1, 28, 28))).logits.shape == (1, 10)


@pytest.mark.parametrize(
    ("arguments", "options", "says"),
    [
        (("cifar", 10), {}, "name: expected one of .* got 'cifar'; did you mean 'cifar100'"),
        (("svhn", 1), {}, "classes: expected a whole number of at least 2, got 1"),
        (("svhn", 10), {"width": 0}, r"width: expected a number in \(0, 16\], got 0"),
        (("svhn", 10), {"dropout": 2}, r"dropout: expected a number in \[0, 1\.99\], got 2"),
        (("svhn", 10), {"dropout": -1}, "dropout: expected"),
        (("svhn", 10), {"seed": -1}, "seed: expected"),
        (("svhn", 10), {"shape": (3, 32)}, r"shape: expected channels, height and width of an image, got \(3, 32\)"),
        (("svhn", 10), {"shape": (3, 0, 32)}, r"shape \(height\): expected a whole number of at least 1, got 0"),
        (("cifar100", 10), {"shape": (3, 16, 16)}, r"expected larger images .* got \(3, 16, 16\), too small to pool"),
    ],
)
def test_networks_that_cannot_be_are_refused(arguments: Any, options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        build(*arguments, **options)


def test_images_it_was_not_made_for_are_refused() -> None:
    network = build("digits", 10)
    with pytest.raises(ShapeError, match=r"images: expected shape \(n, 1, 8, 8\), .* got \(2, 1, 9, 8\)"):
        network(images(2, (1, 9, 8)))
    with pytest.raises(ShapeError, match=r"got \(1, 8, 8\)"):
        network(images(2, (1, 8, 8))[0])
    with pytest.raises(InputError, match=r"images: expected floating-point numbers, got torch\.uint8"):
        network(torch.zeros(1, 1, 8, 8, dtype=torch.uint8))


def test_logits_are_found_in_the_usual_places() -> None:
    logits = torch.ones(2, 3)
    for output in (logits, Output(logits, torch.zeros(2, 1)), (logits, None), [logits]):
        assert logits_of(output) is logits


@pytest.mark.parametrize(
    ("output", "says"), [({"a": 1}, "got dict"), (torch.ones(3), r"got shape \(3,\)"), ((), "tuple")]
)
def test_outputs_without_logits_are_refused(output: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        logits_of(output)


def test_both_kinds_have_a_name() -> None:
    assert isinstance(build("cifar100", 5, width=0.1), ConvNet)
    assert isinstance(build("resnet", 5), ResNet)
