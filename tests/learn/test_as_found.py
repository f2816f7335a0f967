"""A module that was borrowed comes back as it went, whatever was done to it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from vicinal.errors import InputError
from vicinal.learn.as_found import as_found, device_of, kept_random_state, usable_device


class Stubborn(nn.Module):
    """Does not let its mode be changed, as some models freeze their normalization."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(3)

    def train(self, mode: bool = True) -> Stubborn:
        raise AssertionError("called")

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x)


class Broken(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        raise RuntimeError("half way")


def test_modes_buffers_and_random_state_come_back() -> None:
    model = nn.Sequential(nn.Linear(3, 3), Stubborn(), nn.Dropout())
    model[2].training = False
    modes = [part.training for part in model.modules()]
    buffers = {name: value.clone() for name, value in model.named_buffers()}
    objects = [id(value) for value in (*model.parameters(), *model.buffers())]
    state = torch.random.get_rng_state()
    with as_found(model) as device:
        assert device == torch.device("cpu")
        assert not any(part.training for part in model.modules())
        model[1].norm.running_mean += 1
        model[1].norm.num_batches_tracked = torch.tensor(7)
        torch.rand(3)
    assert [part.training for part in model.modules()] == modes
    assert [id(value) for value in (*model.parameters(), *model.buffers())] == objects
    for name, value in model.named_buffers():
        assert torch.equal(value, buffers[name]), name
    assert torch.equal(torch.random.get_rng_state(), state)


def test_after_an_error_too() -> None:
    model = nn.Sequential(nn.BatchNorm1d(3), Broken())

    def fail() -> None:
        with as_found(model):
            model[0].running_mean += 1
            model[1](torch.rand(1, 4))

    with pytest.raises(RuntimeError, match="half way"):
        fail()
    assert all(part.training for part in model.modules())
    assert not model[0].running_mean.any()


def test_a_move_to_another_device_is_undone_to_the_same_storages() -> None:
    """The device ``meta`` stands in for a GPU: it has no values, so that only the old storages can bring them back."""
    model = nn.Linear(3, 2)
    model.weight.grad = torch.ones(2, 3)
    places, values = model.weight.data_ptr(), model.weight.detach().clone()
    with as_found(model, device="meta") as device:
        assert device.type == "meta"
        assert model.weight.device.type == "meta"
    assert model.weight.data_ptr() == places
    assert torch.equal(model.weight, values)
    assert torch.equal(model.weight.grad, torch.ones(2, 3))


def test_a_model_on_two_devices_is_not_moved() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2, device="meta"))
    with (
        pytest.raises(InputError, match="device: expected none, as the model lies on cpu and meta"),
        as_found(model, device="cpu"),
    ):
        pass


def test_a_module_of_nothing_is_on_the_cpu() -> None:
    assert device_of(nn.ReLU()) == torch.device("cpu")
    assert device_of(nn.Linear(1, 1, device="meta")) == torch.device("meta")


def test_the_random_state_alone() -> None:
    torch.manual_seed(3)
    wanted = torch.rand(2)
    torch.manual_seed(3)
    with kept_random_state():
        torch.manual_seed(99)
    assert torch.equal(torch.rand(2), wanted)


@pytest.mark.parametrize("device", ["gpu", "cpu:x", "", "cuda:99", 1.5])
def test_a_device_that_is_not_there_is_refused(device: object) -> None:
    with pytest.raises(InputError, match="device: expected one that torch can use here, such as cpu, got"):
        usable_device(device)


def test_a_device_that_is_there_is_given() -> None:
    assert usable_device("cpu") == usable_device(torch.device("cpu")) == torch.device("cpu")
