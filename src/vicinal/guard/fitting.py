"""What of a guard is fitted on held-out rows: score, calibration, thresholds; and which rows cannot be used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from vicinal import checks
from vicinal.bank import Bank
from vicinal.checks import Flags
from vicinal.errors import InputError
from vicinal.guard.scores import FUSED, NOVELTY, SCORES, NoveltyName, ScoreName, parts, refuse_missing, taken, trusted
from vicinal.held_out import FEW, HeldOut, caution
from vicinal.novelty import Triage
from vicinal.selective import METHODS, Calibration, Fusion, calibrate
from vicinal.selective.calibration import Method
from vicinal.values import Embeddings

__all__ = ["Fitted", "fit", "origin", "refuse_other_network"]

_FUSING = 3  # one row of so many fits the fusion; the others, which it has not seen, all the rest
_ORIGIN = ("fingerprint", "layer")  # facts of embeddings that tell one network's from another's


@dataclass(frozen=True, eq=False)
class Fitted:
    """What was fitted.

    Attributes:
        score: by which predictions are trusted.
        fusion: of the fused score.
        calibration: from the score to the probability of being right.
        triage: the thresholds.
        notes: what the reader should know; each has been warned of.
    """

    score: ScoreName
    fusion: Fusion | None
    calibration: Calibration
    triage: Triage
    notes: tuple[str, ...]


def fit(
    bank: Bank,
    held_out: Embeddings,
    *,
    k: int,
    score: ScoreName | None,
    novelty: NoveltyName,
    targets: Mapping[str, float],
    method: Method,
    seed: int,
) -> Fitted:
    """Fit all that a guard needs on held-out rows; see ``Guard.fit_arrays``."""
    correct = held_out.correct
    _refuse_unknown_classes(bank, held_out)
    method = checks.one_of(method, "method", METHODS)
    wanted = _wanted(score, held_out)
    novelty = checks.one_of(novelty, "novelty", NOVELTY)
    refuse_missing(held_out, wanted, novelty, "calibration")
    found = parts(bank, held_out, k)
    held = HeldOut.of([found["distance"]], correct)
    rows = np.flatnonzero(held.kept)
    wanted, notes = _affordable(wanted, len(rows))
    fusion = None
    if wanted == "fused":
        order = np.random.default_rng(seed).permutation(rows)
        first, rows = np.split(order, [len(order) // _FUSING])
        fusion = Fusion.fit({name: taken(found[name], first) for name in FUSED}, correct[first], seed=seed)
    trust = trusted(wanted, fusion, {name: taken(part, rows) for name, part in found.items()})
    calibration = calibrate(trust, correct[rows], method, seed=seed)
    triage = Triage.fit(taken(found[novelty], rows), trust, correct[rows], **targets)
    said = (held.notes, notes, () if fusion is None else fusion.notes, calibration.notes, triage.notes)
    return Fitted(wanted, fusion, calibration, triage, tuple(note for part in said for note in part))


def origin(*facts: Mapping[str, str]) -> dict[str, str]:
    """What some facts say of the network that they come from; the first that says it counts."""
    return {name: said[name] for said in reversed(facts) for name in _ORIGIN if name in said}


def refuse_other_network(ours: Mapping[str, str], theirs: Mapping[str, str], what: str) -> None:
    """Refuse embeddings that say that they come from another network, or from another layer."""
    for name in _ORIGIN:
        if name in ours and name in theirs and ours[name] != theirs[name]:
            raise InputError(
                f"{what}: expected embeddings of the network of the training points, with the {name} "
                f"{ours[name]:.32}, got {theirs[name]:.32}; embed them with that network, or fit a guard for this one"
            )


def _wanted(score: ScoreName | None, held_out: Embeddings) -> ScoreName:
    if score is None:
        return "distance" if held_out.logits is None else "fused"
    return checks.one_of(score, "score", SCORES)


def _affordable(wanted: ScoreName, rows: int) -> tuple[ScoreName, tuple[str, ...]]:
    """The score that so many rows can carry."""
    if wanted != "fused" or rows >= _FUSING * FEW:
        return wanted, ()
    said = (
        f"{rows} calibration rows are fewer than {_FUSING * FEW}, too few to fuse scores: the distance is taken alone"
    )
    return "distance", (caution(f"Guard.fit: {said}"),)


def _refuse_unknown_classes(bank: Bank, held_out: Embeddings) -> None:
    assert held_out.labels is not None
    unknown: Flags = ~np.isin(held_out.labels, bank.classes)
    if unknown.any():
        row = int(np.flatnonzero(unknown)[0])
        raise InputError(
            f"calibration: expected inputs of the {len(bank.classes)} classes of the bank, got label "
            f"{held_out.labels[row]} in row {row} ({int(unknown.sum())} such rows); leave inputs of other classes out"
        )
