"""The attack against foolbox, a step on a linear model against its closed form, and what both must leave alone."""

from __future__ import annotations

from typing import Any

import lightning
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, softplus
from torch.utils.data import DataLoader, TensorDataset

from vicinal.errors import InputError, ShapeError
from vicinal.learn.adversarial import adversarial_backward, perturb, ramp
from vicinal.learn.networks import build


def images(n: int = 8, seed: int = 0) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    return torch.rand(n, 1, 8, 8, generator=random), torch.arange(n) % 4


class Logits(nn.Module):
    """A network of ours that gives its logits alone, as foolbox needs it."""

    def __init__(self) -> None:
        super().__init__()
        self.network = build("digits", 4, width=0.25, dropout=0.0, seed=3)

    def forward(self, x: Tensor) -> Tensor:
        return self.network(x).logits


def gradient_of_loss(network: nn.Module, x: Tensor, labels: Tensor) -> Tensor:
    leaf = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(cross_entropy(network(leaf), labels), leaf)
    return gradient


# --- the attack


@pytest.mark.filterwarnings("ignore:Please import `gaussian_filter`:DeprecationWarning")  # as foolbox is imported
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5])
def test_it_is_foolboxs_fast_gradient_sign_method(epsilon: float) -> None:
    import foolbox

    network = Logits().eval()
    x, labels = images()
    attack = foolbox.attacks.LinfFastGradientAttack(random_start=False)
    theirs, _, _ = attack(foolbox.PyTorchModel(network, bounds=(0, 1), device="cpu"), x, labels, epsilons=epsilon)
    ours = perturb(x, gradient_of_loss(network, x, labels), epsilon, low=0.0, high=1.0)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)
    assert (ours - x).abs().max() == pytest.approx(epsilon, abs=1e-6)


@given(st.integers(0, 1000), st.floats(0, 2))
def test_every_coordinate_moves_by_epsilon_uphill_or_stays(seed: int, epsilon: float) -> None:
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(3, 5, generator=random, dtype=torch.float64)
    gradient = torch.randint(-1, 2, (3, 5), generator=random).double() * torch.rand(3, 5, generator=random)
    moved = perturb(x, gradient, epsilon)
    torch.testing.assert_close(moved - x, epsilon * torch.sign(gradient), atol=1e-12, rtol=0)
    assert torch.equal(moved[gradient == 0], x[gradient == 0])


def test_bounds_may_differ_by_channel() -> None:
    x, gradient = torch.zeros(2, 3, 2, 2), torch.ones(2, 3, 2, 2)
    high = torch.tensor([0.05, 0.2, 0.0]).view(3, 1, 1)
    moved = perturb(x, gradient, 0.1, high=high)
    torch.testing.assert_close(moved[0, :, 0, 0], torch.tensor([0.05, 0.1, 0.0]))
    torch.testing.assert_close(perturb(x, -gradient, 0.1, low=-high)[1, :, 1, 1], torch.tensor([-0.05, -0.1, 0.0]))


def test_the_images_are_not_changed() -> None:
    x, gradient = images()[0], torch.ones(8, 1, 8, 8)
    before = x.clone()
    perturb(x, gradient, 0.1)
    assert torch.equal(x, before)


# --- a step


def linear(weight: float = 1.0) -> tuple[nn.Linear, Tensor, Tensor, Any]:
    torch.manual_seed(0)
    network = nn.Linear(6, 2).double()
    x, labels = torch.randn(7, 6, dtype=torch.float64), torch.arange(7) % 2
    return network, x, labels, adversarial_backward(network, x, labels, 0.1, weight=weight)


def mean_loss_and_gradient(w: np.ndarray, b: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[float, Any, Any]:
    """Of logistic regression, in NumPy: mean of log(1 + exp(-m)) with m the margin of the right class."""
    logits = x @ w.T + b
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    p = odds / odds.sum(axis=1, keepdims=True)
    slope = (p - np.eye(2)[y]) / len(x)
    return float(-np.log(p[np.arange(len(x)), y]).mean()), slope.T @ x, slope.sum(axis=0)


@pytest.mark.parametrize("weight", [1.0, 0.5, 0.0, 3.0])
def test_one_step_on_a_linear_model_is_its_closed_form(weight: float) -> None:
    """The gradient at x of a two-class linear model is p(other) (w_other - w_right): its sign does not depend on x."""
    network, x, labels, found = linear(weight)
    w, b, y = network.weight.detach().numpy(), network.bias.detach().numpy(), labels.numpy()
    moved = x.numpy() + 0.1 * np.sign(w[1 - y] - w[y])
    clean, of_w, of_b = mean_loss_and_gradient(w, b, x.numpy(), y)
    other, of_w_moved, of_b_moved = mean_loss_and_gradient(w, b, moved, y)
    assert found.clean.item() == pytest.approx(clean, rel=1e-12)
    assert found.adversarial.item() == pytest.approx(other, rel=1e-12)
    assert found.total.item() == pytest.approx((clean + weight * other) / (1 + weight), rel=1e-12)
    np.testing.assert_allclose(network.weight.grad, (of_w + weight * of_w_moved) / (1 + weight), rtol=1e-9)
    np.testing.assert_allclose(network.bias.grad, (of_b + weight * of_b_moved) / (1 + weight), rtol=1e-9)
    np.testing.assert_allclose(found.logits, x.numpy() @ w.T + b, rtol=1e-12)


def test_the_loss_of_a_linear_model_grows_by_epsilon_times_the_l1_length() -> None:
    """Goodfellow et al. 2015, section 5: every margin shrinks by epsilon * |w_right - w_other|_1."""
    network, x, labels, found = linear()
    w = network.weight.detach()
    logits = x @ w.T + network.bias.detach()
    margins = (logits[:, 0] - logits[:, 1]) * (1 - 2 * labels)
    wanted = softplus(-(margins - 0.1 * (w[0] - w[1]).abs().sum())).mean()
    assert found.adversarial.item() == pytest.approx(wanted.item(), rel=1e-12)


def test_one_backward_pass_of_the_clean_loss_serves_parameters_and_inputs() -> None:
    """Two passes forward and two back in all; the gradient is that of the mean of both losses."""
    network, passes = Logits().train(), []
    x, labels = images()
    network.register_forward_hook(lambda *_: passes.append("forward"))

    def backward(loss: Tensor) -> None:
        passes.append("back")
        loss.backward()

    adversarial_backward(network, x, labels, 0.1, backward=backward)
    assert passes == ["forward", "back", "forward", "back"]
    found = [parameter.grad.clone() for parameter in network.parameters()]
    network.zero_grad()
    moved = perturb(x, gradient_of_loss(network, x, labels), 0.1)
    ((cross_entropy(network(x), labels) + cross_entropy(network(moved), labels)) / 2).backward()
    for gradient, parameter in zip(found, network.parameters(), strict=True):
        torch.testing.assert_close(gradient, parameter.grad, rtol=1e-4, atol=1e-7)


def test_gradients_add_to_those_that_are_there_and_the_images_are_left_alone() -> None:
    network, _, _, _ = linear()
    x, labels = torch.randn(5, 6, dtype=torch.float64), torch.arange(5) % 2
    before = x.clone()
    network.zero_grad()
    adversarial_backward(network, x, labels, 0.1)
    once = network.weight.grad.clone()
    adversarial_backward(network, x, labels, 0.1)
    torch.testing.assert_close(network.weight.grad, 2 * once)
    assert torch.equal(x, before)
    assert not x.requires_grad


def test_epsilon_0_is_the_plain_loss() -> None:
    network = Logits().eval()
    x, labels = images()
    found = adversarial_backward(network, x, labels, 0.0)
    assert torch.equal(found.clean, found.adversarial)
    gradients = [parameter.grad.clone() for parameter in network.parameters()]
    network.zero_grad()
    cross_entropy(network(x), labels).backward()
    for gradient, parameter in zip(gradients, network.parameters(), strict=True):
        torch.testing.assert_close(gradient, parameter.grad)


def test_adversaries_stay_in_the_valid_range() -> None:
    seen = []
    network = Logits()
    network.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].detach()))
    x, labels = images()
    adversarial_backward(network, x, labels, 0.7, low=0.0, high=1.0)
    assert torch.equal(seen[0], x)
    assert seen[1].min() == 0
    assert seen[1].max() == 1


def test_the_networks_outputs_may_be_of_any_of_the_usual_kinds() -> None:
    x, labels = images()
    of_output = adversarial_backward(build("digits", 4, dropout=0.0, seed=3, width=0.25), x, labels, 0.1)
    of_tensor = adversarial_backward(Logits(), x, labels, 0.1)
    assert torch.equal(of_output.total, of_tensor.total)


class Module(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net, self.automatic_optimization = Logits(), False

    def training_step(self, batch: tuple[Tensor, Tensor], _: int) -> None:
        optimizer = self.optimizers()
        optimizer.zero_grad()
        adversarial_backward(self.net, *batch, 0.1, backward=self.manual_backward)
        optimizer.step()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


@pytest.mark.filterwarnings("ignore::FutureWarning")  # Lightning's own, of torch's
@pytest.mark.filterwarnings("ignore::lightning.pytorch.utilities.warnings.PossibleUserWarning")
def test_in_a_lightning_module_it_ends_where_a_plain_loop_ends(tmp_path: Any) -> None:
    module, plain = Module(), Logits()
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = lightning.Trainer(
        max_epochs=2, accelerator="cpu", enable_model_summary=False, default_root_dir=tmp_path, **quiet
    )
    batches = DataLoader(TensorDataset(*images()), batch_size=4)
    trainer.fit(module, batches)
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1)
    for _ in range(2):
        for x, labels in batches:
            optimizer.zero_grad()
            adversarial_backward(plain, x, labels, 0.1)
            optimizer.step()
    for theirs, mine in zip(module.net.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(theirs, mine)


# --- the ramp


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 5))
def test_the_ramp_grows_in_equal_strides_and_stays(progress: float, over: float, epsilon: float) -> None:
    found = ramp(epsilon, progress, over=over)
    wanted = epsilon if progress >= over else epsilon * progress / over
    assert found == pytest.approx(wanted)
    assert found <= epsilon
    assert ramp(epsilon, 1.0, over=over) == epsilon


# --- what is refused


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"epsilon": -0.1}, InputError, "epsilon: expected a finite number of at least 0, got -0.1"),
        ({"epsilon": float("nan")}, InputError, "epsilon: expected a finite number of at least 0, got nan"),
        ({"weight": -1}, InputError, "weight: expected a finite number of at least 0, got -1"),
        ({"images": torch.zeros(2, 6, dtype=torch.uint8)}, InputError, "images: expected floats.* got torch.uint8"),
        ({"low": 1.0, "high": 0.0}, InputError, "low, high: expected a valid range, got a low above its high"),
        ({"network": nn.Flatten(0)}, InputError, r"network: expected logits \(n, c\).* got shape \(12,\)"),
    ],
)
def test_what_it_cannot_take_is_refused(change: dict[str, Any], error: type[Exception], says: str) -> None:
    sound = {"network": nn.Linear(6, 2), "images": torch.zeros(2, 6), "labels": torch.tensor([0, 1]), "epsilon": 0.1}
    with pytest.raises(error, match=says):
        adversarial_backward(**{**sound, **change})


def test_logits_that_do_not_depend_on_the_images_are_refused() -> None:
    class Constant(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.logits = nn.Parameter(torch.zeros(2))

        def forward(self, x: Tensor) -> Tensor:
            return self.logits.expand(len(x), 2)

    with pytest.raises(InputError, match="network: expected logits that depend on the images, got none that do"):
        adversarial_backward(Constant(), torch.zeros(3, 6), torch.tensor([0, 1, 0]), 0.1)


def test_a_gradient_of_another_shape_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"gradient: expected shape \(2, 3\), as the images, got \(3, 2\)"):
        perturb(torch.zeros(2, 3), torch.zeros(3, 2), 0.1)


@pytest.mark.parametrize(("progress", "over"), [(-0.1, 0.5), (1.1, 0.5), (0.5, 1.5)])
def test_a_ramp_outside_the_run_is_refused(progress: float, over: float) -> None:
    with pytest.raises(InputError, match=r"expected a number in \[0, 1\]"):
        ramp(0.1, progress, over=over)
