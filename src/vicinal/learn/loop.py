"""The training loop: tensors in, a trained module out, and a checkpoint at every stage in between."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from vicinal import checks, progress
from vicinal.checks import Integers
from vicinal.errors import DivergedError, InputError, ShapeError
from vicinal.learn import checkpoint
from vicinal.learn.as_found import as_found, device_of, kept_random_state
from vicinal.learn.augment import crop_and_flip
from vicinal.learn.checkpoint import Checkpoint
from vicinal.learn.feed import Batch, feed
from vicinal.learn.journal import Journal
from vicinal.learn.recipe import Recipe
from vicinal.learn.steps import STEPS, Forward

__all__ = ["CHECKPOINT", "LOG", "Fitted", "Pace", "fit", "scored"]

CHECKPOINT = "checkpoint.safetensors"
LOG = "log.jsonl"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pace:
    """How often a run stops to look at itself, in steps; each is rounded up to a multiple of ``log``.

    Attributes:
        log: steps between lines of the log; also between looks for a loss that is no number.
        checkpoint: steps between checkpoints.
        validation: steps between validations; 0 for one, at the end.
    """

    log: int = 100
    checkpoint: int = 1000
    validation: int = 0

    def __post_init__(self) -> None:
        checks.whole(self.log, "log", low=1)
        checks.whole(self.checkpoint, "checkpoint", low=1)
        checks.whole(self.validation, "validation", low=0)

    def due(self, step: int, every: int, total: int) -> bool:
        """Whether something that happens every so many steps happens after this one, a multiple of ``log``."""
        return step == total or (every > 0 and step // every > (step - self.log) // every)


@dataclass(frozen=True)
class Fitted:
    """A finished run.

    Attributes:
        steps: how many steps it took.
        said: the last line of the log: step, mean loss and accuracy since the line before (with dropout and whatever
            else is on while training), rate, and where there are validation points their loss and accuracy.
        rate_factor: 1, halved by each restart after a divergence.
        seconds: how long it took, interruptions left out.
    """

    steps: int
    said: Mapping[str, Any]
    rate_factor: float
    seconds: float


def fit(
    module: nn.Module,
    images: Any,
    labels: Any,
    recipe: Recipe,
    *,
    seed: int = 0,
    validation: tuple[Any, Any] | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    retries: int = 0,
    device: str | torch.device = "cpu",
    pace: Pace | None = None,
) -> Fitted:
    """Train a module as a recipe says; it is changed in place, and left on the device in evaluation mode.

    A run is decided by module, data, recipe and seed: killed at any moment and resumed, it ends in the same bits (on
    the same machine, with as many threads). The caller's random state is left as it was.

    Args:
        module: its forward pass gives ``(logits, embedding)``.
        images: (n, c, h, w), floats, preprocessed.
        labels: (n,), classes counted from 0.
        recipe: how to train.
        seed: decides the order of the points, the pairs, dropout and augmentation.
        validation: images and labels to validate on, of the same kind.
        folder: where checkpoints and the log (``log.jsonl``) go; it exists. None: nowhere.
        resume: go on from the checkpoint in the folder, if there is one.
        retries: how often a run that diverges goes back to its last good checkpoint, to go on at half the rate.
        device: where to train; module and data are moved there once.
        pace: how often to log, to write a checkpoint and to validate.

    Raises:
        DivergedError: when the loss is no number, retries used up; it names the step and the last good checkpoint.
        InputError: before the first step, for data or a checkpoint that do not go with the recipe.
        WriteError: when the disk is full; it names the step, and the checkpoint before it is whole.

    Example:
        >>> from vicinal.learn.networks import build
        >>> from vicinal.learn.recipe import OneCycle
        >>> recipe = Recipe(name="mine", network="digits", schedule=OneCycle(0.1), epochs=2, batch=10)
        >>> fit(build("digits", 2), torch.randn(50, 1, 8, 8), torch.arange(50) % 2, recipe).steps
        10
    """
    place = torch.device(device)
    checks.whole(retries, "retries", low=0)
    with kept_random_state(place):
        torch.manual_seed(checks.whole(seed, "seed", low=0))
        points = _Points.on(place, images, labels, "images")
        apart = None if validation is None else _Points.on(place, *validation, "validation images")
        run = _Run(module.to(place), points, apart, recipe, seed, folder, pace or Pace())
        run.begin(resume=resume)
        while True:
            try:
                return run.finish()
            except _NoNumberError as fault:
                run.back_off(fault.step, retries)


def scored(network: nn.Module, images: Tensor, labels: Tensor, *, batch: int = 500) -> dict[str, float]:
    """Mean cross entropy and accuracy on labelled images; the network is left as it was found."""
    loss = torch.zeros((), dtype=torch.float64, device=images.device)
    right = torch.zeros((), dtype=torch.int64, device=images.device)
    with as_found(network), torch.inference_mode():
        for some, wanted in zip(torch.split(images, batch), torch.split(labels, batch), strict=True):
            logits = network(some)[0].float()
            loss += nn.functional.cross_entropy(logits, wanted, reduction="sum")
            right += (logits.argmax(1) == wanted).sum()
    return {"loss": float(loss) / len(labels), "accuracy": int(right) / len(labels)}


class _NoNumberError(Exception):
    """The loss of a step, or what it made of the weights, is NaN or infinite."""

    def __init__(self, step: int) -> None:
        super().__init__(step)
        self.step = step


class _Run:
    """A training run between two steps."""

    def __init__(
        self,
        module: nn.Module,
        points: _Points,
        apart: _Points | None,
        recipe: Recipe,
        seed: int,
        folder: str | Path | None,
        pace: Pace,
    ) -> None:
        self.module, self.recipe, self.pace = module, recipe, pace
        self.points, self.apart, self.seed = points, apart, seed
        self.folder = None if folder is None else Path(folder)
        self.total = recipe.total_steps(len(points.known))
        self.network = Forward(module, recipe.precision)
        self.optimizer = _optimizer(module, recipe)
        self.window = _Window(pace.log, points.images.device)
        self.facts = {"recipe": recipe.to_json(), "seed": seed, "points": points.digest()}
        self.step, self.factor, self.seconds = 0, 1.0, 0.0
        self.said: dict[str, Any] = {}

    def begin(self, *, resume: bool) -> None:
        """Stand at the last checkpoint, or at the beginning; refuse what cannot work."""
        for part in (self.points, self.apart):
            if part is not None:
                part.refuse_strangers(self.module)
        self.batches()
        path = None if self.folder is None else self.folder / CHECKPOINT
        if path is not None and path.exists():
            if not resume:
                raise InputError(
                    f"{path}: expected no run in this folder, got one; resume it, or choose another folder"
                )
            saved = checkpoint.read(path)
            _refuse_another(path, saved.facts, self.facts, self.recipe)
            self.restore(saved)
        self.journal = Journal(None if self.folder is None else self.folder / LOG, step=self.step)
        self.good = self.taken()

    def finish(self) -> Fitted:
        """The loop."""
        begun = time.perf_counter() - self.seconds
        take_step = STEPS[self.recipe.method]
        self.module.train()
        for step, rows, pairs in progress.track(self.batches(), "training", self.total - self.step, note=self.note):
            rate = self.factor * self.recipe.rate(step, self.total)
            for group in self.optimizer.param_groups:
                group["lr"] = rate
            self.optimizer.zero_grad(set_to_none=True)
            images, labels = self.augmented(self.points.images[rows]), self.points.labels[rows]
            loss, logits = take_step(self.network, images, labels, pairs, self.recipe, step / self.total)
            self.optimizer.step()
            self.window.add(loss, logits, labels)
            self.step = step + 1
            if self.step % self.pace.log == 0 or self.step == self.total:
                self.seconds = time.perf_counter() - begun
                self.look(rate)
        self.module.eval()
        return Fitted(self.step, self.said, self.factor, self.seconds)

    def batches(self) -> Iterator[Batch]:
        """The steps that are left."""
        device = self.points.images.device
        return feed(self.points.known, self.recipe, seed=self.seed, start=self.step, total=self.total, device=device)

    def augmented(self, images: Tensor) -> Tensor:
        """Shifted and mirrored as the recipe says, by torch's own generator of the device."""
        if not (self.recipe.crop or self.recipe.flip):
            return images
        generator = torch.default_generator
        if images.device.type == "cuda":
            generator = torch.cuda.default_generators[images.device.index or 0]
        return crop_and_flip(images, generator, padding=self.recipe.crop, flip=self.recipe.flip)

    def look(self, rate: float) -> None:
        """Log, validate and write a checkpoint, as far as they are due; the only place that waits for a GPU."""
        loss, accuracy = self.window.read(self.step)
        self.said = {"step": self.step, "loss": loss, "accuracy": accuracy, "rate": rate}
        if self.apart is not None and self.pace.due(self.step, self.pace.validation, self.total):
            self.said["validation"] = scored(self.module, self.apart.images, self.apart.labels)
        due = self.pace.due(self.step, self.pace.checkpoint, self.total)
        if due and not all(bool(value.isfinite().all()) for value in self.module.state_dict().values()):
            raise _NoNumberError(self.step)
        self.journal.write(**self.said, seconds=round(self.seconds, 3))
        if due:
            self.good = self.taken()
            if self.folder is not None:
                checkpoint.write(self.folder / CHECKPOINT, self.good)

    def note(self) -> str:
        """How it goes, for the progress bar."""
        if not self.said:
            return ""
        return f"loss {self.said['loss']:.3f}, accuracy {self.said['accuracy']:.3f}, rate {self.said['rate']:.2g}"

    def taken(self) -> Checkpoint:
        """The run as it stands."""
        facts = {**self.facts, "factor": self.factor, "seconds": self.seconds, "said": self.said}
        return checkpoint.take(self.step, self.module, self.optimizer, **facts)

    def restore(self, saved: Checkpoint) -> None:
        """Stand where a checkpoint was taken."""
        checkpoint.restore(saved, self.module, self.optimizer)
        self.step, self.factor = saved.step, saved.facts["factor"]
        self.seconds, self.said = saved.facts["seconds"], dict(saved.facts["said"])

    def back_off(self, step: int, retries: int) -> None:
        """After a loss that is no number: back to the last good checkpoint at half the rate, or give up."""
        where = f"the last good checkpoint is that of step {self.good.step}"
        where += "" if self.folder is None or self.good.step == 0 else f", in {self.folder}"
        factor = self.factor / 2
        if factor < 0.5**retries:
            raise DivergedError(
                f"training: expected a finite loss, got none at step {step} of {self.total}; {where}; lower the rate, "
                "add a warm-up, or allow retries at half the rate"
            )
        _log.warning("the loss is no number at step %d; %s: from there at %g times the rate", step, where, factor)
        self.window.clear()
        self.restore(self.good)
        self.factor = factor
        self.journal.rewind(self.step)


@dataclass(frozen=True, eq=False)
class _Points:
    """Labelled images on the device, and their labels on the CPU as well."""

    images: Tensor
    labels: Tensor
    known: Integers
    name: str

    @classmethod
    def on(cls, device: torch.device, images: Any, labels: Any, name: str) -> _Points:
        pixels = torch.as_tensor(images)
        if not pixels.is_floating_point():
            raise ShapeError(f"{name}: expected floats, preprocessed, of shape (n, c, h, w), got {pixels.dtype}")
        known = checks.labels(labels, f"labels of the {name}", rows=len(pixels), of="image")
        if len(known) == 0:
            raise ShapeError(f"{name}: expected at least one, got none")
        return cls(pixels.to(device, torch.float32), torch.as_tensor(known, device=device), known, name)

    def refuse_strangers(self, module: nn.Module) -> None:
        """Run the module on one image, to see that images and labels go with it."""
        with as_found(module), torch.inference_mode():
            logits = module(self.images[:1])[0]
        wrong = np.flatnonzero((self.known < 0) | (self.known >= logits.shape[1]))
        if wrong.size:
            raise InputError(
                f"labels of the {self.name}: expected classes from 0 to {logits.shape[1] - 1}, got "
                f"{self.known[wrong[0]]} at row {wrong[0]} ({wrong.size} such rows)"
            )

    def digest(self) -> str:
        digest = hashlib.sha256(f"{tuple(self.images.shape)}".encode())
        digest.update(self.images.cpu().contiguous().numpy().data)
        digest.update(np.ascontiguousarray(self.known).data)
        return digest.hexdigest()


class _Window:
    """Losses and hits since the last look, kept on the device so that no step waits for it."""

    def __init__(self, size: int, device: torch.device) -> None:
        self.losses = torch.zeros(size, device=device)
        self.right = torch.zeros((), dtype=torch.int64, device=device)
        self.clear()

    def clear(self) -> None:
        self.steps = self.points = 0
        self.right.zero_()

    def add(self, loss: Tensor, logits: Tensor, labels: Tensor) -> None:
        self.losses[self.steps] = loss.detach()
        self.right += (logits.detach().argmax(1) == labels).sum()
        self.steps += 1
        self.points += len(labels)

    def read(self, step: int) -> tuple[float, float]:
        """Mean loss and accuracy, and a fresh start; a loss that is no number is told with its step."""
        losses = self.losses[: self.steps].cpu()
        wrong = (~losses.isfinite()).nonzero()
        if len(wrong):
            raise _NoNumberError(step - self.steps + int(wrong[0]) + 1)
        found = float(losses.double().mean()), int(self.right) / self.points
        self.clear()
        return found


def _optimizer(module: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """Weights decay; biases and norms, which have one dimension, do not."""
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    groups = [
        {"params": [one for one in trained if one.ndim > 1], "weight_decay": recipe.weight_decay},
        {"params": [one for one in trained if one.ndim <= 1], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    fused = device_of(module).type == "cuda"
    if recipe.optimizer == "adam":
        return torch.optim.Adam(groups, lr=1.0, fused=fused)
    return torch.optim.SGD(groups, lr=1.0, momentum=recipe.momentum, fused=fused)


def _refuse_another(path: Path, saved: Mapping[str, Any], facts: Mapping[str, Any], recipe: Recipe) -> None:
    differences = recipe.differences(Recipe.from_json(saved["recipe"]))
    if saved["seed"] != facts["seed"]:
        differences.append(f"seed: {facts['seed']}, not {saved['seed']}")
    if saved["points"] != facts["points"]:
        differences.append("other images or labels")
    if differences:
        raise InputError(
            f"{path}: expected the run that it is a checkpoint of, got another ({'; '.join(differences)}); "
            "resume with the same recipe, seed and data, or choose another folder"
        )
