"""Several networks side by side: one process each, and on a CPU one thread each.

Two networks of one thread each are done long before one network of two threads has been trained twice. Every process
runs this module with a job in a file, so that it works from any script, notebook or shell.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from vicinal import checks, progress, store
from vicinal.errors import InputError, VicinalError
from vicinal.learn.recipe import Recipe

__all__ = ["Job", "Outcome", "train_many"]

_log = logging.getLogger(__name__)
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True)
class Job:
    """One network to train; the fields are the arguments of :func:`vicinal.learn.train.train_dataset`.

    Example:
        >>> Job("cifar100", out="runs/dist-0", recipe="compact", method="distance").seed
        0
    """

    dataset: str
    out: str | Path
    recipe: str | Recipe = "compact"
    method: str | None = None
    seed: int = 0
    device: str = "cpu"
    resume: bool = False
    retries: int = 0
    validation: float = 0.1
    root: str | Path | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain words and numbers, for a file."""
        said = {one.name: getattr(self, one.name) for one in fields(self)}
        said = {name: str(value) if isinstance(value, Path) else value for name, value in said.items()}
        return said | {"recipe": self.recipe if isinstance(self.recipe, str) else self.recipe.to_json()}

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> Job:
        """The job that ``to_json`` wrote."""
        recipe = said["recipe"]
        return cls(**{**said, "recipe": recipe if isinstance(recipe, str) else Recipe.from_json(recipe)})


@dataclass(frozen=True)
class Outcome:
    """How a job ended.

    Attributes:
        job: the job.
        error: None where the network stands in ``job.out``; else what went wrong, in a line.
    """

    job: Job
    error: str | None = None


def train_many(jobs: Sequence[Job], *, processes: int | None = None, threads: int = 1) -> tuple[Outcome, ...]:
    """Train several networks at the same time; one that fails does not stop the others.

    Args:
        jobs: what to train, each into a folder of its own.
        processes: how many at a time; left out, one a core, or one in all where a job is for a GPU.
        threads: how many threads each has on the CPU.

    Returns:
        One outcome for each job, in the order of the jobs; look at ``outcome.error``. Failures are logged too. A job
        that failed can be given again with ``resume=True``.
    """
    _refuse_shared_folders(jobs)
    at_once = _cores(jobs) if processes is None else checks.whole(processes, "processes", low=1)
    checks.whole(threads, "threads", low=1)
    outcomes: dict[int, Outcome] = {}
    crew = _Crew(threads)
    with ThreadPoolExecutor(at_once) as pool:
        futures = {pool.submit(crew.run, job): number for number, job in enumerate(jobs)}
        try:
            for future in progress.track(as_completed(futures), "training networks", len(jobs)):
                outcome = outcomes[futures[future]] = future.result()
                if outcome.error is not None:
                    _log.error("%s: %s", outcome.job.out, outcome.error)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            crew.stop()
            raise
    return tuple(outcomes[number] for number in range(len(jobs)))


class _Crew:
    """Runs jobs, each in a process of its own, and can stop them all."""

    def __init__(self, threads: int) -> None:
        self._environment = {**os.environ, **dict.fromkeys(_THREADS, str(threads))}
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False

    def run(self, job: Job) -> Outcome:
        if self._stopped:
            return Outcome(job, "stopped before it began")
        with tempfile.TemporaryDirectory(prefix="vicinal-job-") as folder:
            path = Path(folder) / "job.json"
            store.write_json(path, job.to_json())
            command = [sys.executable, "-m", __name__, str(path)]
            process = subprocess.Popen(
                command, env=self._environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
            )
            self._running.add(process)
            _, said = process.communicate()
            self._running.discard(process)
        return Outcome(job, _error(process.returncode, said))

    def stop(self) -> None:
        self._stopped = True
        for process in tuple(self._running):
            process.terminate()


def _error(code: int, said: str) -> str | None:
    if code == 0:
        return None
    lines = [line for line in said.splitlines() if line.strip()]
    what = lines[-1] if lines else "it said nothing"
    if code < 0:
        return f"killed by signal {-code}; {what}"
    return what if code == 2 else f"{what} (exit {code})"


def _cores(jobs: Sequence[Job]) -> int:
    if any(job.device != "cpu" for job in jobs):
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, len(jobs)))


def _refuse_shared_folders(jobs: Sequence[Job]) -> None:
    if not jobs:
        raise InputError("jobs: expected at least one, got none")
    places = [Path(job.out).resolve() for job in jobs]
    shared = next((place for place in places if places.count(place) > 1), None)
    if shared is not None:
        raise InputError(f"jobs: expected a folder for each, got {shared} twice")


def _work(arguments: Sequence[str]) -> int:
    """The main function of a process: one job, from a file; a refusal is one line and exit 2."""
    import torch

    from vicinal.learn.train import train_dataset

    torch.set_num_threads(int(os.environ.get(_THREADS[0], "1")))
    try:
        job = Job.from_json(store.read_json(arguments[0]))
        train_dataset(**{one.name: getattr(job, one.name) for one in fields(job)})
    except VicinalError as error:
        sys.stderr.write(f"{' '.join(str(error).split())}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(_work(sys.argv[1:]))
