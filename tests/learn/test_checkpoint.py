"""Checkpoints: what goes in comes out, bit for bit, and the file is there whole or not at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from vicinal import store
from vicinal.errors import FileError
from vicinal.learn import checkpoint


def model(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    parts = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ELU(), nn.Dropout(0.5), nn.Flatten(), nn.Linear(16, 3)
    )
    return parts.to(memory_format=torch.channels_last)


def optimizers(parts: nn.Module) -> list[torch.optim.Optimizer]:
    return [
        torch.optim.SGD(parts.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01),
        torch.optim.SGD(parts.parameters(), lr=0.1),
        torch.optim.Adam(parts.parameters(), lr=0.1),
    ]


def advance(parts: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> None:
    """Steps whose input and dropout come from torch's generator."""
    for _ in range(steps):
        optimizer.zero_grad()
        parts(torch.randn(5, 3, 4, 4)).square().sum().backward()
        optimizer.step()


def everything(parts: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    return dict(checkpoint.take(0, parts, optimizer).arrays)


@pytest.mark.parametrize("which", range(3))
def test_a_run_goes_on_in_the_same_bits(tmp_path: Path, which: int) -> None:
    parts = model()
    optimizer = optimizers(parts)[which]
    advance(parts, optimizer, 3)
    path = tmp_path / "c.safetensors"
    checkpoint.write(path, checkpoint.take(3, parts, optimizer, seed=5, nested={"a": [1, 2.5]}))
    advance(parts, optimizer, 4)
    wanted = everything(parts, optimizer)

    other = model(seed=1)
    again = optimizers(other)[which]
    saved = checkpoint.read(path)
    assert (saved.step, saved.facts) == (3, {"seed": 5, "nested": {"a": [1, 2.5]}})
    checkpoint.restore(saved, other, again)
    assert other[0].weight.is_contiguous(memory_format=torch.channels_last)
    advance(other, again, 4)
    found = everything(other, again)
    assert found.keys() == wanted.keys()
    for name in wanted:
        np.testing.assert_array_equal(found[name], wanted[name], err_msg=name)
        assert found[name].shape == wanted[name].shape


def test_it_is_an_ordinary_safetensors_file(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    parts = model()
    optimizer = optimizers(parts)[0]
    advance(parts, optimizer, 1)
    checkpoint.write(tmp_path / "c.safetensors", checkpoint.take(1, parts, optimizer))
    arrays = load_file(tmp_path / "c.safetensors")
    np.testing.assert_array_equal(arrays["model.0.weight"], parts[0].weight.detach().numpy())
    np.testing.assert_array_equal(
        arrays["optimizer.1.momentum_buffer"], optimizer.state[parts[0].bias]["momentum_buffer"]
    )


def test_what_was_taken_does_not_change_with_the_model() -> None:
    parts = model()
    optimizer = optimizers(parts)[0]
    taken = checkpoint.take(0, parts, optimizer)
    before = taken.arrays["model.0.weight"].copy()
    advance(parts, optimizer, 1)
    np.testing.assert_array_equal(taken.arrays["model.0.weight"], before)
    checkpoint.restore(taken, parts, optimizer)
    advance(parts, optimizer, 1)
    np.testing.assert_array_equal(taken.arrays["model.0.weight"], before)


def test_a_momentum_that_was_not_there_yet_is_forgotten() -> None:
    parts = model()
    optimizer = optimizers(parts)[0]
    fresh = checkpoint.take(0, parts, optimizer)
    advance(parts, optimizer, 2)
    first = everything(parts, optimizer)
    checkpoint.restore(fresh, parts, optimizer)
    advance(parts, optimizer, 2)
    for name, value in everything(parts, optimizer).items():
        np.testing.assert_array_equal(value, first[name], err_msg=name)


def test_leftovers_of_a_killed_write_are_cleared_away(tmp_path: Path) -> None:
    parts = model()
    path = tmp_path / "c.safetensors"
    checkpoint.write(path, checkpoint.take(1, parts, optimizers(parts)[0]))
    (tmp_path / ".c.safetensors.abc.part").write_bytes(b"half")
    (tmp_path / ".d.safetensors.abc.part").write_bytes(b"of another file")
    checkpoint.read(path)
    assert sorted(file.name for file in tmp_path.iterdir()) == [".d.safetensors.abc.part", "c.safetensors"]


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    with pytest.raises(FileError, match="expected a file, got nothing there"):
        checkpoint.read(path)
    store.write_arrays(path, {"a": np.ones(2)}, form="vicinal.bank", version=1, facts={})
    with pytest.raises(FileError, match=r"expected a vicinal\.checkpoint file, got 'vicinal\.bank'"):
        checkpoint.read(path)
    parts = model()
    checkpoint.write(path, checkpoint.take(1, parts, optimizers(parts)[0]))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(FileError, match="cut short"):
        checkpoint.read(path)


FULL_DISK = """
import resource, sys
import torch
from vicinal.errors import WriteError
from vicinal.learn import checkpoint

model = torch.nn.Linear(300, 300)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
checkpoint.write(sys.argv[1], checkpoint.take(1, model, optimizer))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    checkpoint.write(sys.argv[1], checkpoint.take(2, model, optimizer))
except WriteError as error:
    print(error)
"""


def test_no_room_names_the_step_and_leaves_the_one_before_whole(tmp_path: Path) -> None:
    """The kernel refuses the write in the middle of the file, in a process of its own."""
    path = tmp_path / "c.safetensors"
    command = [sys.executable, "-c", FULL_DISK, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("stopped at step 2: no checkpoint could be written: ")
    assert "File too large; what was there before is whole; make room and resume" in done.stdout
    assert checkpoint.read(path).step == 1
    assert [file.name for file in tmp_path.iterdir()] == ["c.safetensors"]
    assert path.stat().st_size > 100_000
