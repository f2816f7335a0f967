"""Checkpoints: a training run between two steps, as one safetensors file that is there whole or not at all.

Tensors are arrays in the file (``model.*``, ``optimizer.<parameter>.*``, ``random.*``); the step, the recipe and the
like are facts in its header. No pickle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from vicinal import store
from vicinal.errors import WriteError

__all__ = ["Checkpoint", "read", "restore", "take", "write"]

FORMAT = "vicinal.checkpoint"
VERSION = 1


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A run between two steps.

    Attributes:
        step: how many steps are done.
        arrays: the tensors of the model and of the optimizer, and the states of the random generators.
        facts: what else is needed to go on, as plain JSON.
    """

    step: int
    arrays: Mapping[str, npt.NDArray[Any]]
    facts: Mapping[str, Any]


def take(step: int, model: nn.Module, optimizer: torch.optim.Optimizer, **facts: Any) -> Checkpoint:
    """Copy all that a run needs to go on from here.

    Example:
        >>> model = nn.Linear(2, 1)
        >>> taken = take(7, model, torch.optim.SGD(model.parameters(), lr=0.1), seed=3)
        >>> sorted(taken.arrays)
        ['model.bias', 'model.weight', 'random.cpu']
    """
    arrays = {f"model.{name}": _copied(value) for name, value in model.state_dict().items()}
    for number, state in optimizer.state_dict()["state"].items():
        for name, value in state.items():
            if value is not None:
                arrays[f"optimizer.{number}.{name}"] = _copied(value)
    for name, value in _random_states().items():
        arrays[f"random.{name}"] = value.numpy().copy()
    return Checkpoint(step, arrays, facts)


def restore(saved: Checkpoint, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Put model, optimizer and torch's random generators where they were."""
    model.load_state_dict(_tensors(saved, "model."))
    state: dict[int, dict[str, Tensor]] = {}
    trained = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for key, value in _tensors(saved, "optimizer.").items():
        number, name = key.split(".", 1)
        state.setdefault(int(number), {})[name] = _laid_out_like(trained[int(number)], value)
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    generators = _tensors(saved, "random.")
    torch.random.set_rng_state(generators.pop("cpu"))
    for name, value in generators.items() if torch.cuda.is_available() else ():
        torch.cuda.set_rng_state(value, int(name.removeprefix("cuda.")))


def write(path: str | Path, saved: Checkpoint) -> None:
    """Write a checkpoint in place of the one that is there, which stays whole until this one is.

    Raises:
        WriteError: if the disk is full or the like; the message names the step.
    """
    scalars = sorted(name for name, array in saved.arrays.items() if array.ndim == 0)
    facts = {"step": saved.step, "scalars": scalars, "run": dict(saved.facts)}
    arrays = {name: np.atleast_1d(array) for name, array in saved.arrays.items()}
    try:
        store.write_arrays(path, arrays, form=FORMAT, version=VERSION, facts=facts)
    except WriteError as error:
        said = f"stopped at step {saved.step}: no checkpoint could be written: {error}; make room and resume"
        raise WriteError(said) from error


def read(path: str | Path) -> Checkpoint:
    """Read a checkpoint, and clear away what a killed ``write`` may have left beside it."""
    file = Path(path)
    for leftover in file.parent.glob(f".{file.name}.*.part"):
        leftover.unlink()
    arrays, facts = store.read_arrays(file, form=FORMAT, version=VERSION, needs=("random.cpu",), may=None)
    scalars = set(facts["scalars"])
    copies = {name: np.array(value).reshape(() if name in scalars else value.shape) for name, value in arrays.items()}
    return Checkpoint(facts["step"], copies, facts["run"])


def _copied(value: Tensor) -> npt.NDArray[Any]:
    return value.detach().cpu().numpy().copy()


def _laid_out_like(parameter: Tensor, value: Tensor) -> Tensor:
    """The same values in the memory order of the parameter, on which the last bits of a step may depend."""
    if value.shape != parameter.shape:
        return value
    return torch.empty_like(parameter, device="cpu", requires_grad=False).copy_(value)


def _tensors(saved: Checkpoint, prefix: str) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): torch.from_numpy(array.copy())
        for name, array in saved.arrays.items()
        if name.startswith(prefix)
    }


def _random_states() -> dict[str, Tensor]:
    states = {"cpu": torch.random.get_rng_state()}
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        states |= {f"cuda.{number}": state for number, state in enumerate(torch.cuda.get_rng_state_all())}
    return states
