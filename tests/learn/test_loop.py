"""The training loop against loops written out by hand, and its interruptions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from vicinal.errors import DivergedError, InputError, ShapeError, WriteError
from vicinal.learn import checkpoint, loop
from vicinal.learn.feed import feed
from vicinal.learn.journal import read_journal
from vicinal.learn.loop import CHECKPOINT, LOG, Fitted, Pace, fit, scored
from vicinal.learn.networks import Output, build
from vicinal.learn.recipe import OneCycle, Piecewise, Recipe
from vicinal.learn.steps import Forward

N, D, C = 60, 6, 3
MINE = Recipe(name="mine", network="digits", schedule=OneCycle(0.2), epochs=4, batch=10, weight_decay=0.05)


class Plain(nn.Module):
    """A linear classifier that is its own embedding."""

    def __init__(self, dimension: int = D) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(5)
        self.head = nn.Linear(dimension, C)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)

    def forward(self, images: Tensor) -> Output:
        logits = self.head(images.flatten(1))
        return Output(logits, logits)


def points(n: int = N, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % C
    return torch.randn(n, D, 1, 1, generator=generator) + labels[:, None, None, None], labels


def images(n: int = N) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(n, 1, 8, 8, generator=generator), torch.arange(n) % C


def state(module: nn.Module) -> dict[str, np.ndarray[Any, Any]]:
    return {name: value.numpy().copy() for name, value in module.state_dict().items()}


def assert_same(first: nn.Module, second: nn.Module) -> None:
    one, other = state(first), state(second)
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


# --- the arithmetic, against float64 loops written out


def by_hand(recipe: Recipe, seed: int, backward: Callable[..., None]) -> Plain:
    """The run in float64, with the update rules written out."""
    torch.manual_seed(seed)
    module, (x, y) = Plain().double(), points()
    x, total = x.double(), recipe.total_steps(N)
    first = {name: torch.zeros_like(value) for name, value in module.named_parameters()}
    second = {name: torch.zeros_like(value) for name, value in module.named_parameters()}
    batches = feed(y.numpy(), recipe, seed=seed, start=0, total=total, device=torch.device("cpu"))
    for step, rows, pairs in batches:
        for parameter in module.parameters():
            parameter.grad = None
        backward(module, x[rows], y[rows], pairs, step / total)
        rate = recipe.rate(step, total)
        for name, parameter in module.named_parameters():
            assert parameter.grad is not None
            gradient = parameter.grad + (recipe.weight_decay if name == "head.weight" else 0.0) * parameter.detach()
            with torch.no_grad():
                if recipe.optimizer == "sgd":
                    first[name] = recipe.momentum * first[name] + gradient
                    parameter -= rate * first[name]
                else:
                    first[name] = 0.9 * first[name] + 0.1 * gradient
                    second[name] = 0.999 * second[name] + 0.001 * gradient**2
                    mean = first[name] / (1 - 0.9 ** (step + 1))
                    parameter -= rate * mean / ((second[name] / (1 - 0.999 ** (step + 1))).sqrt() + 1e-8)
    return module


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    return -(logits.log_softmax(1)[torch.arange(len(labels)), labels]).mean()


def reg(module: Plain, x: Tensor, y: Tensor, pairs: Tensor | None, done: float) -> None:
    cross_entropy(module(x).logits, y).backward()


def spread(embedding: Tensor, y: Tensor, pairs: Tensor) -> Tensor:
    terms = []
    for i, j in pairs.tolist():
        apart = (embedding[i] - embedding[j]).norm()
        terms.append(apart if y[i] == y[j] else torch.clamp(25.0 - apart, min=0))
    return torch.stack(terms).mean()


def distance(module: Plain, x: Tensor, y: Tensor, pairs: Tensor, done: float) -> None:
    output = module(x)
    (cross_entropy(output.logits, y) + 0.2 * spread(output.embedding, y, pairs)).backward()


def adversarial(module: Plain, x: Tensor, y: Tensor, pairs: Tensor | None, done: float) -> None:
    epsilon = 0.1 * min(1.0, done / 0.5)
    clean = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(cross_entropy(module(clean).logits, y), clean)
    moved = (x + epsilon * gradient.sign()).clamp(-1, 2)
    ((cross_entropy(module(x).logits, y) + cross_entropy(module(moved).logits, y)) / 2).backward()


def both(module: Plain, x: Tensor, y: Tensor, pairs: Tensor, done: float) -> None:
    (0.2 * spread(module(x).embedding, y, pairs)).backward()
    adversarial(module, x, y, None, done)


BY_HAND = [("reg", reg), ("distance", distance), ("adversarial", adversarial), ("both", both)]


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize(("method", "backward"), BY_HAND)
def test_a_run_is_the_run_written_out(method: str, backward: Callable[..., None], optimizer: str) -> None:
    peak = 0.02 if optimizer == "sgd" else 0.05
    recipe = MINE.change(
        method=method, optimizer=optimizer, schedule=OneCycle(peak), epsilon_ramp=0.5, clip=(-1.0, 2.0), epochs=3
    )
    module, (x, y) = Plain(), points()
    before = state(module)["head.weight"]
    fit(module, x, y, recipe, seed=4)
    wanted = by_hand(recipe, 4, backward)
    assert np.abs(state(module)["head.weight"] - before).max() > 0.05
    for name, value in state(wanted).items():
        np.testing.assert_allclose(state(module)[name], value, atol=2e-5, err_msg=name)


def test_piecewise_rates_are_those_of_the_steps(tmp_path: Path) -> None:
    recipe = MINE.change(schedule=Piecewise((3, 7), (0.1, 0.01)), epochs=None)
    fit(Plain(), *points(), recipe, folder=tmp_path, pace=Pace(log=1))
    assert [line["rate"] for line in read_journal(tmp_path / LOG)] == [0.1] * 3 + [0.01] * 4


def test_no_weight_decay_on_what_has_one_dimension() -> None:
    module = build("resnet", C, shape=(1, 8, 8), width=0.25)
    with torch.no_grad():
        module.stem.norm.weight.fill_(7.0)
        module.classifier.bias.fill_(7.0)
        module.stem.conv.weight.fill_(7.0)
    recipe = MINE.change(weight_decay=1.0, schedule=Piecewise((1,), (0.01,)), epochs=None)
    dead = torch.zeros(N, 1, 8, 8)
    fit(module, dead, images()[1], recipe)
    assert float(module.stem.norm.weight.detach().min()) > 6.99
    assert float(module.stem.conv.weight.detach().max()) == pytest.approx(7.0 - 0.07, abs=1e-4)


# --- what it tells


def test_the_log_holds_loss_accuracy_rate_and_validation(tmp_path: Path) -> None:
    held_out = points(30, seed=9)
    module = Plain()
    recipe = MINE.change(epochs=4.5)
    fitted = fit(module, *points(), recipe, folder=tmp_path, validation=held_out, pace=Pace(4, 100, 10))
    lines = read_journal(tmp_path / LOG)
    assert [line["step"] for line in lines] == [4, 8, 12, 16, 20, 24, 27]
    assert [line["step"] for line in lines if "validation" in line] == [12, 20, 27]
    assert lines[-1] == {**fitted.said, "seconds": lines[-1]["seconds"]}
    assert fitted.steps == 27
    assert fitted.said["validation"] == scored(module, *held_out)
    assert lines[0]["loss"] > 1.5 * lines[-1]["loss"]
    assert lines[0]["accuracy"] < lines[-1]["accuracy"]
    assert [line["seconds"] for line in lines] == sorted(line["seconds"] for line in lines)
    assert fitted.seconds >= lines[-1]["seconds"] - 1e-3


def test_loss_and_accuracy_of_a_line_are_means_over_its_steps(tmp_path: Path) -> None:
    recipe = MINE.change(schedule=OneCycle(1e-9), weight_decay=0.0, epochs=1)
    fit(Plain(), *points(), recipe, folder=tmp_path, pace=Pace(log=6))
    whole = scored(Plain(), *points())
    (line,) = read_journal(tmp_path / LOG)
    assert line["loss"] == pytest.approx(whole["loss"], rel=1e-5)
    assert line["accuracy"] == pytest.approx(whole["accuracy"])


def test_scored_against_numpy() -> None:
    module, (x, y) = Plain(), points()
    found = scored(module, x, y, batch=7)
    with torch.no_grad():
        logits = module(x).logits.double().numpy()
    wanted = np.log(np.exp(logits).sum(1)) - logits[np.arange(N), y]
    assert found["loss"] == pytest.approx(wanted.mean(), rel=1e-6)
    assert found["accuracy"] == pytest.approx((logits.argmax(1) == y.numpy()).mean())
    assert module.training


@pytest.mark.parametrize(
    ("step", "every", "due"), [(100, 100, True), (200, 300, False), (300, 250, True), (30, 0, False), (1000, 0, True)]
)
def test_pace(step: int, every: int, due: bool) -> None:
    assert Pace(log=100).due(step, every, total=1000) is due


@pytest.mark.parametrize("numbers", [(0, 1, 1), (1, 0, 1), (1, 1, -1), (1.5, 1, 1)])
def test_a_pace_that_makes_no_sense_is_refused(numbers: tuple[Any, Any, Any]) -> None:
    with pytest.raises(InputError, match="expected a whole number"):
        Pace(*numbers)


def test_progress_tells_how_it_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    def track(items: Any, what: str, total: int, *, note: Callable[[], str]) -> Any:
        assert (what, total) == ("training", 24)
        for item in items:
            said.append(note())
            yield item

    monkeypatch.setattr(loop.progress, "track", track)
    fit(Plain(), *points(), MINE, pace=Pace(log=20))
    assert said[19] == ""
    assert said[20].startswith("loss 0.")
    assert "accuracy" in said[20]
    assert said[20].endswith("rate 0.025")


# --- what decides it


def network() -> nn.Module:
    return build("digits", C, width=0.25, seed=2)


BUSY = MINE.change(method="distance", crop=2, flip=True, schedule=OneCycle(0.01), margin=2.0)


def test_the_seed_decides_everything_and_the_caller_s_random_state_is_left_alone() -> None:
    ends = []
    for caller in (1, 2):
        torch.manual_seed(caller)
        before = torch.random.get_rng_state()
        module = network()
        fit(module, *images(), BUSY, seed=6)
        assert torch.equal(before, torch.random.get_rng_state())
        ends.append(module)
    assert_same(*ends)
    other = network()
    fit(other, *images(), BUSY, seed=7)
    assert not np.array_equal(state(other)["classifier.weight"], state(ends[0])["classifier.weight"])


def test_logging_validation_and_checkpoints_do_not_change_the_run(tmp_path: Path) -> None:
    plain, watched = network(), network()
    fit(plain, *images(), BUSY, seed=6)
    fit(watched, *images(), BUSY, seed=6, validation=images(12), folder=tmp_path, pace=Pace(1, 2, 3))
    assert_same(plain, watched)


def test_augmentation_moves_the_images(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Tensor] = []

    class Watching(Plain):
        def forward(self, images: Tensor) -> Output:
            if self.training:
                seen.append(images.clone())
            return super().forward(images)

    x = torch.arange(64.0).reshape(1, 1, 8, 8).repeat(N, 1, 1, 1)
    fit(Watching(64), x / 64, images()[1], MINE.change(crop=2, flip=True, epochs=1))
    shown = torch.cat(seen)
    assert len(shown.flatten(1).unique(dim=0)) > 20
    fit(Watching(64), x / 64, images()[1], MINE.change(epochs=1))
    assert len(torch.cat(seen[6:]).flatten(1).unique(dim=0)) == 1


def test_bfloat16_keeps_float32_weights_and_comes_close() -> None:
    single, half = network(), network()
    recipe = MINE.change(dropout=0, schedule=OneCycle(0.01), epochs=1)
    one = fit(single, *images(), recipe)
    two = fit(half, *images(), recipe.change(precision="bfloat16"))
    assert half.classifier.weight.dtype == torch.float32
    assert one.said["loss"] != two.said["loss"]
    assert one.said["loss"] == pytest.approx(two.said["loss"], rel=0.05)


@pytest.mark.parametrize("method", ["distance", "adversarial"])
def test_bfloat16_works_with_every_method(method: str) -> None:
    fitted = fit(network(), *images(), MINE.change(method=method, precision="bfloat16", schedule=OneCycle(0.01)))
    assert fitted.said["loss"] < 20


def test_forward_is_float32_whatever_runs_inside() -> None:
    inside = Forward(network(), "bfloat16")
    output = inside.eval()(images()[0])
    assert output.logits.dtype == output.embedding.dtype == torch.float32
    assert torch.equal(output.logits, output.logits.bfloat16().float())


# --- going on


class Stopped(Exception):
    pass


def stop_after(monkeypatch: pytest.MonkeyPatch, lines: int) -> None:
    """Let so many lines of the log be written, then fail."""
    write, done = loop.Journal.write, []

    def stopping(self: Any, **line: Any) -> None:
        if len(done) == lines:
            monkeypatch.setattr(loop.Journal, "write", write)
            raise Stopped
        done.append(line)
        write(self, **line)

    monkeypatch.setattr(loop.Journal, "write", stopping)


@pytest.mark.parametrize(
    ("recipe", "make"),
    [
        (BUSY, network),
        (BUSY.change(optimizer="adam", method="adversarial", epsilon_ramp=0.5), network),
        (BUSY.change(method="reg", precision="bfloat16"), network),
        (BUSY.change(momentum=0.0, method="reg"), lambda: build("resnet", C, shape=(1, 8, 8), width=0.25)),
    ],
)
def test_a_run_that_stops_anywhere_goes_on_to_the_same_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recipe: Recipe, make: Callable[[], nn.Module]
) -> None:
    pace = Pace(log=1, checkpoint=5, validation=4)
    wanted = make()
    fit(wanted, *images(), recipe, seed=3, folder=tmp_path, validation=images(9), pace=pace)
    lines = read_journal(tmp_path / LOG)
    (tmp_path / CHECKPOINT).unlink()
    found = make()
    for stop in (0, 3, 9, 14):
        stop_after(monkeypatch, stop)
        with pytest.raises(Stopped):
            fit(make(), *images(), recipe, seed=3, folder=tmp_path, validation=images(9), pace=pace, resume=True)
    fitted = fit(found, *images(), recipe, seed=3, folder=tmp_path, validation=images(9), pace=pace, resume=True)
    assert_same(wanted, found)
    again = read_journal(tmp_path / LOG)
    for line in (*lines, *again):
        line.pop("seconds")
    assert again == lines
    assert fitted.said == lines[-1]


def test_a_finished_run_resumes_to_its_end_at_once(tmp_path: Path) -> None:
    first, second = network(), network()
    one = fit(first, *images(), BUSY, folder=tmp_path)
    two = fit(second, *images(), BUSY, folder=tmp_path, resume=True)
    assert_same(first, second)
    assert one.said == two.said
    assert not second.training


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"recipe": BUSY.change(weight_decay=0.5, crop=1)}, "weight_decay: 0.5, not 0.05; crop: 1, not 2"),
        ({"seed": 8}, "seed: 8, not 0"),
        ({"images": images()[0] + 1}, "other images or labels"),
        ({"labels": images()[1].flip(0)}, "other images or labels"),
    ],
)
def test_another_run_does_not_resume(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    fit(network(), *images(), BUSY, folder=tmp_path)
    given = {"images": images()[0], "labels": images()[1], "recipe": BUSY, **changes}
    with pytest.raises(InputError, match=f"expected the run that it is a checkpoint of, got another .{message}"):
        fit(network(), **given, folder=tmp_path, resume=True)
    with pytest.raises(InputError, match="expected no run in this folder, got one; resume it"):
        fit(network(), *images(), BUSY, folder=tmp_path)


def test_a_recipe_by_another_name_is_the_same_run(tmp_path: Path) -> None:
    fit(network(), *images(), BUSY, folder=tmp_path)
    fit(network(), *images(), BUSY.change(name="other"), folder=tmp_path, resume=True)


def test_no_room_for_a_checkpoint_stops_with_the_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = checkpoint.store.write_arrays

    def full(path: Path, *arguments: Any, **options: Any) -> None:
        if Path(path).exists():
            raise WriteError(f"{path}: expected to write it, got: No space left on device")
        write(path, *arguments, **options)

    monkeypatch.setattr(checkpoint.store, "write_arrays", full)
    with pytest.raises(WriteError, match=r"stopped at step 8: no checkpoint could be written.*No space left.*resume"):
        fit(network(), *images(), BUSY, folder=tmp_path, pace=Pace(4, 4))
    assert checkpoint.read(tmp_path / CHECKPOINT).step == 4


# --- divergence


class Fragile(nn.Module):
    """One weight that every step raises by the rate; beyond the limit the loss is no number."""

    def __init__(self, limit: float) -> None:
        super().__init__()
        self.weight, self.limit = nn.Parameter(torch.zeros(())), limit

    def forward(self, images: Tensor) -> Output:
        up = self.weight + torch.where(self.weight > self.limit, torch.nan, 0.0)
        logits = torch.stack((up * 1e-3, torch.zeros_like(up))).expand(len(images), 2)
        return Output(logits, logits)


def constant(rate: float, steps: int) -> Recipe:
    """The gradient of Fragile is -0.5e-3 for label 0, so a rate of 2000 is one a step."""
    return MINE.change(schedule=Piecewise((steps,), (2000 * rate,)), epochs=None, momentum=0.0)


ZEROS = (torch.zeros(N, 1, 1, 1), torch.zeros(N, dtype=torch.int64))


def test_divergence_names_the_step_and_the_last_good_checkpoint(tmp_path: Path) -> None:
    message = (
        r"got none at step 18 of 40; the last good checkpoint is that of step 10, in .*; lower the rate, add a "
        "warm-up, or allow retries at half the rate"
    )
    with pytest.raises(DivergedError, match=message):
        fit(Fragile(16.5), *ZEROS, constant(1, 40), folder=tmp_path, pace=Pace(5, 10))
    assert checkpoint.read(tmp_path / CHECKPOINT).step == 10
    assert [line["step"] for line in read_journal(tmp_path / LOG)] == [5, 10, 15]


def test_divergence_before_any_checkpoint() -> None:
    with pytest.raises(DivergedError, match="at step 4 of 40; the last good checkpoint is that of step 0; lower"):
        fit(Fragile(2.5), *ZEROS, constant(1, 40))


def test_divergence_is_retried_from_the_last_good_checkpoint_at_half_the_rate(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Ten steps of 1 are good; ten more of 1 or of a half pass the limit, ten of a quarter do not."""
    module = Fragile(13.2)
    fitted = fit(module, *ZEROS, constant(1, 20), folder=tmp_path, pace=Pace(5, 10), retries=2)
    assert fitted.rate_factor == 0.25
    assert module.weight.item() == pytest.approx(12.5, rel=1e-2)
    lines = read_journal(tmp_path / LOG)
    assert [line["step"] for line in lines] == [5, 10, 15, 20]
    assert [line["rate"] for line in lines] == [2000.0, 2000.0, 500.0, 500.0]
    said = [message.split(";")[0] for message in caplog.messages]
    assert said == ["the loss is no number at step 15", "the loss is no number at step 18"]
    assert "the last good checkpoint is that of step 10, in " in caplog.messages[0]
    assert caplog.messages[1].endswith("from there at 0.25 times the rate")


def test_retries_are_counted() -> None:
    with pytest.raises(DivergedError, match="at step 18 of 20; the last good checkpoint is that of step 10; lower"):
        fit(Fragile(13.2), *ZEROS, constant(1, 20), pace=Pace(5, 10), retries=1)


def test_a_run_at_half_the_rate_goes_on_at_half_the_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pace, recipe = Pace(5, 10), constant(1, 26)
    whole = Fragile(18.5)
    assert fit(whole, *ZEROS, recipe, pace=pace, retries=1).rate_factor == 0.5
    stop_after(monkeypatch, 6)  # 5, 10, 15; then from 10 at half the rate 15, 20, 25
    with pytest.raises(Stopped):
        fit(Fragile(18.5), *ZEROS, recipe, folder=tmp_path, pace=pace, retries=1)
    assert checkpoint.read(tmp_path / CHECKPOINT).facts["factor"] == 0.5
    module = Fragile(18.5)
    fitted = fit(module, *ZEROS, recipe, folder=tmp_path, pace=pace, retries=1, resume=True)
    assert fitted.rate_factor == 0.5
    assert module.weight.item() == whole.weight.item()


def test_weights_that_are_no_numbers_are_no_good_checkpoint(tmp_path: Path) -> None:
    class Poisoned(Fragile):
        """The loss stays a number, the weight does not."""

        def forward(self, images: Tensor) -> Output:
            if self.training and self.weight.item() > 6.5:
                with torch.no_grad():
                    self.weight.fill_(torch.inf)
            logits = torch.zeros(len(images), 2) + self.weight.nan_to_num(0, 0, 0) * 1e-3 * torch.tensor([1.0, 0.0])
            return Output(logits, logits)

    with pytest.raises(DivergedError, match="at step 10 of 40; the last good checkpoint is that of step 5"):
        fit(Poisoned(0), *ZEROS, constant(1, 40), folder=tmp_path, pace=Pace(5, 5))
    assert checkpoint.read(tmp_path / CHECKPOINT).step == 5


# --- refusals


@pytest.mark.parametrize(
    ("x", "y", "changes", "error", "message"),
    [
        (images()[0], images()[1] + 1, {}, InputError, "classes from 0 to 2, got 3 at row 2 .20 such rows"),
        (images()[0], images()[1] - 1, {}, InputError, "classes from 0 to 2, got -1 at row 0 .20 such rows"),
        (images()[0], images()[1][:-1], {}, ShapeError, "expected 60, one for each image, got 59"),
        (images()[0][:, :, :4], images()[1], {}, ShapeError, r"expected shape \(n, 1, 8, 8\)"),
        (images()[0].int(), images()[1], {}, ShapeError, "expected floats, preprocessed, .* got torch.int32"),
        (images()[0][:0], images()[1][:0], {}, ShapeError, "images: expected at least one, got none"),
        (images()[0], images()[1], {"batch": 61}, InputError, "at most 60, all the points there are, got 61"),
        (images()[0], torch.arange(60) // 59, {"method": "distance"}, InputError, "got one of class 1"),
    ],
)
def test_what_cannot_work_is_refused_before_the_first_step(
    x: Tensor, y: Tensor, changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    module = network()
    before = state(module)
    with pytest.raises(error, match=message):
        fit(module, x, y, MINE.change(**changes))
    for name, value in state(module).items():
        np.testing.assert_array_equal(value, before[name])


def test_validation_points_are_looked_at_too() -> None:
    with pytest.raises(InputError, match="labels of the validation images: expected classes from 0 to 2, got 9"):
        fit(network(), *images(), MINE, validation=(images()[0][:2], [0, 9]))


@pytest.mark.parametrize(("options", "message"), [({"seed": -1}, "seed"), ({"retries": -1}, "retries")])
def test_counts_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"{message}: expected a whole number"):
        fit(network(), *images(), MINE, **options)


# --- on a GPU


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("method", ["reg", "distance", "adversarial"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_on_a_gpu_no_step_waits(monkeypatch: pytest.MonkeyPatch, method: str, optimizer: str) -> None:
    """torch itself raises where a step would wait for the device; a look, and a new epoch, may."""
    recipe = BUSY.change(method=method, optimizer=optimizer, dropout=0, epochs=1, schedule=OneCycle(1e-3))
    look, begin = loop._Run.look, loop._Run.begin

    def quiet(act: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            torch.cuda.set_sync_debug_mode(0)
            try:
                return act(*arguments, **options)
            finally:
                torch.cuda.set_sync_debug_mode(2)

        return wrapped

    monkeypatch.setattr(loop._Run, "look", quiet(look))
    monkeypatch.setattr(loop._Run, "begin", quiet(begin))
    monkeypatch.setattr("vicinal.learn.feed._pairs", quiet(__import__("vicinal.learn.feed", fromlist=["x"])._pairs))
    module = network()
    try:
        fitted: Fitted = fit(module, *images(), recipe, device="cuda")
    finally:
        torch.cuda.set_sync_debug_mode(0)
    other = network()
    on_cpu = fit(other, *images(), recipe.change(crop=0, flip=False))
    assert np.isfinite(fitted.said["loss"])
    assert np.isfinite(on_cpu.said["loss"])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_gpu_and_a_cpu_agree() -> None:
    recipe = MINE.change(dropout=0, schedule=OneCycle(0.01), epochs=1)
    one, two = Plain(), Plain()
    fit(one, *points(), recipe)
    fit(two, *points(), recipe, device="cuda")
    np.testing.assert_allclose(state(one)["head.weight"], state(two.cpu())["head.weight"], atol=1e-4)
