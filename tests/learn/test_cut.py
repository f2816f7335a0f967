"""Modules cut in two: together the parts are the module, or the cut is refused with the reason."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from vicinal.learn.cut import UncutError, cut, uncut
from vicinal.learn.networks import build


def is_random(layer: nn.Module) -> bool:
    return isinstance(layer, nn.Dropout) and layer.p > 0


def ready(module: nn.Module) -> nn.Module:
    """As MC dropout prepares it."""
    module.eval()
    for layer in module.modules():
        if is_random(layer):
            layer.training = True
    return module


class Net(nn.Module):
    """Two linear layers and a dropout, put together in ``forward`` as a test wants it."""

    def __init__(self, forward: Any) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second, self.drop = nn.Linear(4, 4), nn.Linear(4, 4), nn.Dropout(0.5)
        self.scale = nn.Parameter(torch.tensor(3.0))
        self.way = forward

    def forward(self, x: Tensor, *, loud: bool = False) -> Any:
        return self.way(self, x) * (2 if loud else 1)


CUTTABLE = {
    "straight": (lambda net, x: net.second(net.drop(net.first(x))), ("first",)),
    "skip": (lambda net, x: x + net.second(net.drop(net.first(x))), ("first",)),
    "beside": (lambda net, x: net.drop(net.first(x)) + net.second(x), ("first", "second")),
    "weights": (lambda net, x: net.drop(net.first(x) * net.scale) + net.scale, ("first",)),
    "first of all": (lambda net, x: net.second(net.first(net.drop(x))), ()),
    "in place after": (lambda net, x: net.drop(net.first(x)).add_(net.second(x)), ("first", "second")),
    "in place on what is kept": (lambda net, x: kept_in_place(net, x), ("first",)),
}


def kept_in_place(net: Net, x: Tensor) -> Tensor:
    hidden = net.first(x)
    return hidden.mul_(net.drop(hidden))


@pytest.mark.parametrize("name", CUTTABLE)
def test_the_parts_together_are_the_module(name: str) -> None:
    forward, once = CUTTABLE[name]
    net, x = ready(Net(forward)), torch.randn(5, 4)
    parts = cut(net, is_random, x)
    assert parts.once == once
    assert parts.folds
    kept = parts.before(x)
    for seed in range(3):  # what is kept serves again and again
        torch.manual_seed(seed)
        wanted = net(x)
        torch.manual_seed(seed)
        torch.testing.assert_close(parts.run(kept), wanted)
    torch.manual_seed(9)
    wanted = net(torch.cat([x, x, x]))
    torch.manual_seed(9)
    torch.testing.assert_close(parts.run(kept, 3), wanted)


@pytest.mark.parametrize("name", ["cifar100", "digits"])
def test_our_own_networks_are_cut_before_their_first_dropout(name: str) -> None:
    network = ready(build(name, 3, width=0.125))
    x = torch.randn(2, *network.images.shape)
    parts = cut(network, is_random, x)
    torch.manual_seed(1)
    wanted = network(x)
    torch.manual_seed(1)
    found = parts.run(parts.before(x))
    torch.testing.assert_close(tuple(found), tuple(wanted))
    assert type(found) is type(wanted)
    assert "features.stage1" in parts.once or "features.conv1" in parts.once or name == "digits"


class Wrapped(nn.Module):
    """Gives what a style makes of the output of a network."""

    def __init__(self, style: Any) -> None:
        super().__init__()
        self.net, self.style = Net(lambda net, x: net.second(net.drop(net.first(x)))), style

    def forward(self, x: Tensor) -> Any:
        return self.style(self.net(x))


@pytest.mark.parametrize(
    "style",
    [
        lambda out: {"logits": out, "temperature": 2.0},
        lambda out: (out, [out.argmax(1), None]),
        lambda out: {"logits": [out, 7]},
    ],
)
def test_outputs_of_any_kind_are_compared_part_by_part(style: Any) -> None:
    module, x = ready(Wrapped(style)), torch.randn(3, 4)
    parts = cut(module, is_random, x)
    assert parts.once == ("net.first",)
    torch.manual_seed(2)
    wanted = module(x)
    torch.manual_seed(2)
    torch.testing.assert_close(parts.run(parts.before(x)), wanted)


def test_an_output_that_differs_in_one_part_is_refused() -> None:
    calls = []

    def style(out: Tensor) -> Any:
        calls.append(1)
        return {"logits": out, "calls": len(calls)}

    with pytest.raises(UncutError, match="its traced parts do not give what it gives itself"):
        cut(ready(Wrapped(style)), is_random, torch.randn(3, 4))


def draws_elsewhere(net: Net, x: Tensor) -> Tensor:
    return net.drop(net.first(x) + torch.randn_like(x))


def changes_what_was_read(net: Net, x: Tensor) -> Tensor:
    """What does not depend on the dropout would run before it, and change what it reads."""
    hidden = net.first(x)
    noise = net.drop(hidden)
    return hidden.add_(1) + noise


def changes_what_came_before(net: Net, x: Tensor) -> Tensor:
    """What runs early in the module reads what a later step has changed in place."""
    hidden = net.first(x)
    noise = functional.relu(net.drop(hidden), inplace=False)
    noise = noise + hidden.mul_(net.drop(hidden))
    return noise + net.second(hidden)


@pytest.mark.parametrize(
    ("forward", "says"),
    [
        (lambda net, x: net.drop(x) if float(x.sum()) > 0 else x, "it cannot be traced"),
        (lambda net, x: net.second(net.first(x)), "no dropout layer runs in its forward pass"),
        (draws_elsewhere, "it draws random numbers outside its dropout layers"),
        (changes_what_was_read, "its traced parts do not give what it gives itself"),
        (changes_what_came_before, "its traced parts do not give what it gives itself"),
        (lambda net, x: net.drop(net.missing(x)), r"it cannot be traced \(AttributeError: "),
    ],
)
def test_a_cut_that_would_be_wrong_is_refused(forward: Any, says: str) -> None:
    with pytest.raises(UncutError, match=says):
        cut(ready(Net(forward)), is_random, torch.rand(3, 4))


def test_a_value_between_the_parts_without_rows_does_not_fold() -> None:
    net = ready(Net(lambda net, x: net.drop(net.first(x)) + net.first(x).mean()))
    x = torch.randn(3, 4)
    parts = cut(net, is_random, x)
    assert not parts.folds
    torch.manual_seed(0)
    wanted = net(x)
    torch.manual_seed(0)
    torch.testing.assert_close(parts.run(parts.before(x)), wanted)


def test_other_arguments_keep_their_defaults() -> None:
    net, x = ready(Net(lambda net, x: net.drop(net.first(x)))), torch.randn(2, 4)
    parts = cut(net, is_random, x)
    torch.manual_seed(0)
    wanted = net(x)
    torch.manual_seed(0)
    assert torch.equal(parts.run(parts.before(x)), wanted)


def test_uncut_runs_the_whole_and_keeps_the_images() -> None:
    net = ready(Net(lambda net, x: net.drop(x.mul_(2))))
    x = torch.ones(2, 4)
    parts = uncut(net)
    for _ in range(2):
        assert set(parts.run(parts.before(x)).unique().tolist()) <= {0.0, 4.0}
    assert torch.equal(x, torch.ones(2, 4))
