"""Distilled prototypes: points and weights fitted by gradient to say of the bank's points what the whole bank says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vicinal.bank_file import HEAVIEST, LIGHTEST
from vicinal.checks import Floats, Integers, Vectors
from vicinal.compiled import compiled
from vicinal.condensation.means import k_means
from vicinal.condensation.task import Kept, Task
from vicinal.mass import log_weights
from vicinal.progress import track
from vicinal.search import BruteSearch, Points
from vicinal.search.exact import ExactSearch
from vicinal.search.protocol import Codes
from vicinal.search.threads import spread

__all__ = ["Lesson", "Prototypes", "distilled"]

_K = 50  # neighbours in the whole bank that a point is told by
_NEAR = 5, 100  # prototypes that a point is told by: a twentieth of all, but at least and at most so many
_OWN = 0.5  # how far a point's own class is believed, beside its neighbours
_BATCH, _PART = 512, 128  # points in a step, and those that one thread looks at
_PASSES, _STEPS = 6, 300  # at least so many, of all points and of batches
_RATE = 0.05  # of a step, of the distance from a point to its centre
_WARM = 0.1  # of the steps, in which the rate rises
_FADE = 0.9, 0.99  # of the averages of the slopes and of their squares (Adam, Kingma and Ba 2015)
_FEW = 2**22  # products for a part below which threads do not pay
_LEAST = 1e-30  # of the usual distance: the slopes of nearer ones leave float32's range
_TINY = 1e-3  # of the usual distance: nearer is taken as this near


def distilled(task: Task) -> Kept:
    """Prototypes that tell the bank's own points apart as the whole bank does, with fewer of them.

    For a point x_i of class y_i, left out of the bank, let q_c be the share of class c in the weight of its 50 nearest
    (Eq. 1 for every class c), and with prototypes z_j of class c_j and weights w_j

        p_c(x) = Σ_{c_j = c} w_j exp(-|x - z_j|) / Σ_j w_j exp(-|x - z_j|)     over the prototypes nearest to x,

    a twentieth of all, at least 5 and at most 100. Then z and log w minimise the mean of -Σ_c t_c log p_c(x_i), where
    t = (q + e_{y_i}) / 2 also believes the class of the point itself, by Adam from class-wise k-means on. A centre
    alone is nearer to a query than the points that it stands for are, and more so where they spread: the weights and
    the places learn to make up for that. The classes do not keep their masses, therefore; all of them together do.
    """
    start = k_means(task)
    if len(start.places) == len(task.codes) or len(task.keep) == 1:
        return start
    assert start.vectors is not None
    assert start.weights is not None
    logs = np.log(start.weights) if task.weighted else np.zeros(len(start.weights))
    vectors = task.whole
    centre = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    moved, reach = start.vectors - centre, _reach(vectors, start.vectors)
    if reach < _LEAST or not np.isfinite(np.einsum("ij,ij->i", moved, moved)).all():
        return start  # every point lies on a prototype, or beyond float32's range
    prototypes = Prototypes(moved, logs, task.codes[start.places], len(task.keep), reach)
    prototypes.learn(_lesson(task, vectors, centre), task.generator(-1 % 2**32), weighted=task.weighted)
    weights = np.exp(prototypes.logs - prototypes.logs.max())
    weights *= task.masses.sum() / weights.sum()
    return Kept(start.places, prototypes.vectors + centre, np.clip(weights, LIGHTEST, HEAVIEST))


@dataclass(frozen=True, eq=False)
class Lesson:
    """What the prototypes are to say of n points.

    Attributes:
        vectors: (n, d), around the mean of all.
        codes: (n, s), classes of which something is said; one may come several times.
        shares: (n, s), how much each of these counts; a row adds up to 1.
        masses: (n,), how much each point counts; 1 in the mean.
    """

    vectors: Vectors
    codes: Codes
    shares: npt.NDArray[np.float32]
    masses: Floats

    def part(self, rows: Integers) -> tuple[Vectors, Codes, npt.NDArray[np.float32], Floats]:
        """Some of the points."""
        return self.vectors[rows], self.codes[rows], self.shares[rows], self.masses[rows]


def _lesson(task: Task, vectors: Vectors, centre: Vectors) -> Lesson:
    """Of every point: the classes of its neighbours in the bank without it, by their weight, and its own class."""
    n = len(task.codes)
    search = ExactSearch(Points.of(vectors, task.codes.astype(np.int64), task.masses))
    found = search.nearest(vectors, min(_K, n - 1), exclude=np.arange(n))
    logs = log_weights(found.distances, "exp", task.masses[found.places])
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    shares *= (1 - _OWN) / shares.sum(axis=1, keepdims=True)
    codes = np.column_stack([task.codes, task.codes[found.places]]).astype(np.int32)
    shares = np.column_stack([np.full(n, _OWN), shares]).astype(np.float32)
    return Lesson(vectors - centre, codes, shares, task.masses / task.masses.mean())


def _reach(vectors: Vectors, kept: Vectors) -> float:
    """The mean distance from a point to the nearest that is kept."""
    search = BruteSearch(Points.of(kept, np.zeros(len(kept), np.int64)))
    return float(search.nearest(vectors, 1).distances.mean())


@dataclass(frozen=True, eq=False)
class Prototypes:
    """Points that are moved, and the logarithms of their weights.

    Attributes:
        vectors: (m, d).
        logs: (m,).
        codes: (m,), the class of each.
        classes: how many there are.
        reach: the mean distance from a point of the bank to the nearest prototype at the start: the scale of steps.
    """

    vectors: Vectors
    logs: Floats
    codes: Codes
    classes: int
    reach: float

    def learn(self, lesson: Lesson, generator: np.random.Generator, *, weighted: bool = True) -> None:
        """Move, a batch of points at a time; the order is drawn."""
        n = len(lesson.vectors)
        batches = -(-n // _BATCH)
        steps = batches * max(_PASSES, -(-_STEPS // batches))
        pace = _RATE * self.reach / float(np.sqrt(self.vectors.shape[1]))
        places, logs = _Averages.of(self.vectors), _Averages.of(self.logs)
        losses = [float("nan")]
        for step in track(range(steps), "distilling", note=lambda: f"loss {losses[-1]:.4f}"):
            if step % batches == 0:
                order = generator.permutation(n)
            rows = order[step % batches * _BATCH :][:_BATCH]
            loss, to_places, to_logs = self.slopes(lesson, rows)
            losses.append(loss)
            rate = min(1.0, (step + 1) / (_WARM * steps)) * (1 - step / steps)
            places.follow(self.vectors, to_places, pace * rate, step)
            if weighted:
                logs.follow(self.logs, to_logs, _RATE * rate, step)

    @property
    def near(self) -> int:
        """How many prototypes, the nearest, a point is told by."""
        m = len(self.logs)
        return min(m, max(_NEAR[0], min(_NEAR[1], m // 20)))

    def slopes(self, lesson: Lesson, rows: Integers) -> tuple[float, Vectors, Floats]:
        """The mean loss of some points, and its gradient by places (m, d) and by logarithms of weights (m,)."""
        half = np.einsum("ij,ij->i", self.vectors, self.vectors) / 2
        near, tiny = self.near, _TINY * self.reach

        def work(some: Integers, halt: object) -> tuple[float, Vectors, Floats, Floats]:
            part = lesson.part(some)
            gaps = half - part[0] @ self.vectors.T
            pull, sums, to_logs = np.zeros_like(self.vectors), np.zeros(len(half)), np.zeros(len(half))
            loss = _tell(*part, gaps, near, self.logs, self.codes, self.classes, tiny, pull, sums, to_logs)
            return loss, pull, sums, to_logs

        parts = [rows[start : start + _PART] for start in range(0, len(rows), _PART)]
        alone = self.vectors.size * _PART < _FEW
        found = [work(part, None) for part in parts] if alone else spread(work, parts)
        loss, pull, sums, to_logs = (sum(part[1:], start=part[0]) for part in zip(*found, strict=True))
        pull -= sums.astype(np.float32)[:, None] * self.vectors
        return loss / len(rows), pull / np.float32(len(rows)), to_logs / len(rows)


@dataclass(frozen=True, eq=False)
class _Averages:
    """The fading means of slopes and of their squares, by which Adam chooses its steps."""

    means: npt.NDArray[np.floating]
    squares: npt.NDArray[np.floating]

    @classmethod
    def of(cls, moved: npt.NDArray[np.floating]) -> _Averages:
        return cls(np.zeros_like(moved), np.zeros_like(moved))

    def follow(self, moved: npt.NDArray[np.floating], slopes: npt.NDArray[np.floating], rate: float, step: int) -> None:
        """One step down, in place."""
        for mean, fade, new in ((self.means, _FADE[0], slopes), (self.squares, _FADE[1], slopes * slopes)):
            mean *= fade
            mean += (1 - fade) * new
        least, fair = [1 - fade ** (step + 1) for fade in _FADE], np.finfo(moved.dtype).tiny
        moved -= rate / least[0] * self.means / (np.sqrt(self.squares / least[1]) + fair)


@compiled()
def _tell(  # type: ignore[no-untyped-def]
    vectors, codes, shares, masses, gaps, near, logs, classes_of, classes, tiny, pull, sums, to_logs
):
    """Add up the loss and its slopes over some points.

    With r_j the part of prototype j in all the weight around a point, and s_j its part in the weight of its class c,
    the slope of -Σ t_c log p_c by log w_j is r_j - t_c s_j; by z_j it is that times (x - z_j) / |x - z_j|, of which
    ``pull`` takes the part of x and ``sums`` the factor of z_j.
    """
    m = len(logs)
    nearest, weights, distances = np.empty(m, np.int64), np.empty(m), np.empty(m)
    told, said = np.zeros(classes), np.zeros(classes)
    loss = 0.0
    for i in range(len(vectors)):
        bar = np.partition(gaps[i], near - 1)[near - 1]
        square = np.float64((vectors[i] * vectors[i]).sum())
        told[:], said[:] = 0.0, 0.0
        count, top = 0, -np.inf
        for j in range(m):
            if gaps[i, j] <= bar:
                nearest[count] = j
                distances[count] = max(np.sqrt(max(square + 2 * np.float64(gaps[i, j]), 0.0)), tiny)
                weights[count] = logs[j] - distances[count]
                top = max(top, weights[count])
                count += 1
        total = wanted = 0.0
        for q in range(count):
            weights[q] = np.exp(weights[q] - top)
            total += weights[q]
            said[classes_of[nearest[q]]] += weights[q]
        for s in range(codes.shape[1]):
            if said[codes[i, s]] > 0:
                told[codes[i, s]] += shares[i, s]
                wanted += shares[i, s]
        if wanted == 0:
            continue  # none of its classes is near
        for c in range(classes):
            if told[c] > 0:
                loss -= masses[i] * told[c] / wanted * np.log(said[c] / total)
        for q in range(count):
            j = nearest[q]
            c = classes_of[j]
            own = told[c] / wanted * weights[q] / said[c] if said[c] > 0 else 0.0
            slope = masses[i] * (weights[q] / total - own)
            to_logs[j] += slope
            force = np.float32(slope / distances[q])
            sums[j] += force
            for column in range(vectors.shape[1]):
                pull[j, column] += force * vectors[i, column]
    return loss
