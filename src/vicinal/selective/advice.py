"""What a diagnosis says: its numbers, each with what to compare it with, and what to do about them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from vicinal.metrics import Comparison

if TYPE_CHECKING:
    from vicinal.selective.diagnosis import Diagnosis

__all__ = ["lines", "sentences"]

_WIDTH = 110
_NAME = 52  # columns


def lines(found: Diagnosis) -> list[str]:
    """The numbers under three headings, and the advice."""
    wrong = "" if found.errors is None else f", {found.errors:,} of their predictions wrong"
    looked = "" if found.checked == found.bank else f", {found.checked:,} of them looked at"
    advice = [textwrap.fill(one, _WIDTH, initial_indent="  - ", subsequent_indent="    ") for one in sentences(found)]
    return [
        f"{found.inputs:,} held-out inputs{wrong}; a bank of {found.bank:,} points{looked}; k = {found.k}",
        *_section("does distance tell wrong predictions from right ones?", _ranking(found)),
        *_section("do neighbours tell the classes apart?", _embedding(found)),
        *_section("are the data clean?", _data(found)),
        *(["what to do", *advice] if advice else []),
    ]


def _section(heading: str, rows: Iterator[tuple[str, str]]) -> list[str]:
    shown = [f"  {name:{_NAME}}{value}" for name, value in rows]
    return [heading, *shown] if shown else []


def _ranking(found: Diagnosis) -> Iterator[tuple[str, str]]:
    for name, interval in found.auroc.items():
        what = "fused (fitted on other rows)" if name == "fused" else name
        yield f"AUROC of {what}", f"{interval.value:.3f} [{interval.low:.3f}, {interval.high:.3f}]"
    if found.lead is not None:
        yield "distance less margin", _led(found.lead)
    if found.fused_lead is not None:
        yield f"fused less {_better(found)}", _led(found.fused_lead)
    if found.by_k:
        yield "AUROC of distance by k", ", ".join(f"{k}: {value:.3f}" for k, value in found.by_k.items())
        yield "recommended k", str(found.recommended_k)


def _embedding(found: Diagnosis) -> Iterator[tuple[str, str]]:
    rounded = found.saturated_float32 - found.saturated
    more = f" ({found.saturated_float32:.1%} if computed in float32)" if rounded > 0.0005 else ""
    yield "predictions whose D is exactly 0 or 1", f"{found.saturated:.1%}{more}"
    if found.purity:
        worst = min(found.purity, key=lambda label: found.purity[label])
        mean = float(np.mean(list(found.purity.values())))
        yield (
            "neighbours of a bank point that are of its class",
            f"{mean:.1%}; least for class {worst}: {found.purity[worst]:.1%}",
        )
    yield "neighbours that effectively count", f"{found.effective:.1f} of {found.k}"
    yield "hubness (skewness; 0 to 2 is usual)", f"{found.hubness:.2f}"


def _data(found: Diagnosis) -> Iterator[tuple[str, str]]:
    yield "held-out inputs that lie on a bank point", f"{len(found.duplicates):,}{_named(found.duplicates)}"
    yield (
        "bank labels that the neighbours contradict",
        f"{len(found.suspects):,} of {found.checked:,}{_named(found.suspects)}",
    )


def _named(rows: object) -> str:
    numbers = np.asarray(rows)
    if not len(numbers):
        return ""
    return f" (rows {', '.join(map(str, numbers[:5]))}{', ...' if len(numbers) > 5 else ''})"


def _led(lead: Comparison) -> str:
    return f"{lead.difference:+.3f} [{lead.low:+.3f}, {lead.high:+.3f}]"


def _better(found: Diagnosis) -> str:
    assert found.lead is not None
    return "distance" if found.lead.difference > 0 else "margin"


def sentences(found: Diagnosis) -> list[str]:
    """The advice."""
    return [*_on_score(found), *_on_k(found), *_on_embedding(found), *_on_data(found)]


def _on_score(found: Diagnosis) -> Iterator[str]:
    if found.lead is None:
        yield (
            "Whether distance beats softmax cannot be told: that takes logits, labels, and at least ten right and ten "
            "wrong predictions that are not in the bank."
        )
        return
    gap = abs(found.lead.difference)
    if found.lead.low > 0:
        yield f"Distance ranks better than the softmax's margin here, by {gap:.3f} AUROC."
    elif found.lead.high < 0:
        yield f"Distance alone ranks worse than the softmax's margin here, by {gap:.3f} AUROC."
    else:
        yield "Distance and the softmax's margin rank equally well here, as far as these inputs tell."
    if found.fused_lead is None:
        yield "Whether a fusion of both is better still cannot be told from so few inputs."
        return
    better, more = _better(found), found.fused_lead.difference
    if found.fused_lead.low > 0:
        yield f"Rank by the fusion of both (vicinal.selective.Fusion): it is {more:.3f} above {better} alone."
    elif found.fused_lead.high < 0:
        yield f"Rank by {better} alone: the fusion of both is {-more:.3f} below it."
    else:
        yield (
            f"The fusion of both is not shown to differ from {better} alone ({more:+.3f}); more held-out inputs could "
            "tell."
        )


def _on_k(found: Diagnosis) -> Iterator[str]:
    if found.recommended_k != found.k:
        k = found.recommended_k
        yield f"Take k = {k}: AUROC {found.by_k[k]:.3f} against {found.by_k[found.k]:.3f} of k = {found.k}."
    elif not found.by_k and found.smallest <= found.k:
        yield (
            f"The smallest class has {found.smallest} points, so that {found.k} neighbours are never all of one class. "
            f"Take a k below {found.smallest}."
        )


def _on_embedding(found: Diagnosis) -> Iterator[str]:
    if found.saturated > 0.5:
        yield (
            f"For {found.saturated:.0%} of the predictions D is exactly 0 or 1, and tells them apart no more: rank by "
            "the log-odds. The network may have memorised its training points; more weight decay lowers this share."
        )
    if found.effective < 3 and found.k >= 10:
        yield (
            f"The distances of a prediction's neighbours differ by so much that only {found.effective:.1f} of them "
            "effectively count: a larger k will change little."
        )
    if found.hubness > 5:
        yield "A few bank points are neighbours of very many: hubs. Compare with scores on unit vectors."
    poor = _poor(found)
    if poor:
        named = ", ".join(map(str, poor[:5])) + (", ..." if len(poor) > 5 else "")
        yield (
            f"Points of class {named} lie mostly among others: distance will refuse many predictions of "
            f"{'these classes' if len(poor) > 1 else 'this class'}, right ones too."
        )


def _poor(found: Diagnosis) -> list[int]:
    """Classes less than half as pure as the mean, the worst first."""
    if not found.purity:
        return []
    bar = float(np.mean(list(found.purity.values()))) / 2
    poor = [label for label, purity in found.purity.items() if purity < bar]
    return sorted(poor, key=lambda label: found.purity[label])


def _on_data(found: Diagnosis) -> Iterator[str]:
    many, share = len(found.duplicates), len(found.duplicates) / found.inputs
    if share > 0.01:
        yield (
            f"{share:.1%} of the held-out inputs lie exactly on bank points: the splits overlap. Hold out others; the "
            "AUROCs above leave these out, but inputs that nearly repeat bank points may remain."
        )
    elif many:
        yield f"Look at the {many} held-out inputs that lie exactly on bank points; the AUROCs above leave them out."
    if len(found.suspects):
        first, label = int(found.suspects[0]), int(found.suspected[0])
        rest = "" if found.checked == found.bank else f" To look at all of the bank, pass most={found.bank}."
        yield (
            f"Look at the bank labels that their neighbours contradict nine to one or more: first row {first}, whose "
            f"neighbours are of class {label}.{rest}"
        )
