"""The claims in the paper's text that are about accuracy, each measured: confirmed, or not. Those about time: costs.

Claims that something does not matter are held against a margin: the interval of the difference must lie within it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vicinal.paper import goals
from vicinal.paper.banks import APPROXIMATE, by_other_banks
from vicinal.paper.cells import Panel
from vicinal.paper.editions import METHODS, Source
from vicinal.paper.inference import Sample, difference, of_auroc
from vicinal.paper.networks import Entry
from vicinal.paper.published import METHODS as TITLES
from vicinal.paper.results import Difference, Finding, Outcome, Result, Table, outcome_within
from vicinal.paper.scores import KERNELS, K
from vicinal.paper.views import Judged, Views
from vicinal.progress import track

__all__ = ["LITTLE", "claims"]

LITTLE = 0.02  # AUROC by which settings that do not matter may differ
_WHOLE = "all"
_ONE = "one network of each setting: what training does by chance is not in the interval"


def claims(views: Views) -> Result:
    """What the paper says of its settings, and of smaller banks."""
    panels = [
        (source, method, judged)
        for source in views.edition.sources
        for method in METHODS
        if (judged := [views.judged(entry) for entry in views.networks.ready(source, method, source.networks)])
    ]
    tables, findings = [], []
    for make, title, rival in _PARTS:
        found = [make(views, *one) for one in track(panels, "claims")]
        tables.append(_table(title, rival, [panel for panel, _ in found]))
        findings += [finding for _, said in found for finding in said]
    findings += [*_settings(views), *_together(views)]
    return Result("claims", views.edition.name, tuple(tables), tuple(findings), notes=(_ONE,))


_Found = tuple[Panel, list[Finding]]


def _neighbors(views: Views, source: Source, method: str, judged: list[Judged]) -> _Found:
    """AUROC by the number of neighbours."""
    ks, base = _ks(judged[0]), str(_fixed(judged[0]))
    panel = _panel(source, method, judged, {f"distance {k}": str(k) for k in ks}, base)
    gaps = _gaps(panel, [str(k) for k in ks if str(k) != base])
    what = f"the number of neighbours, from {min(ks)} to {max(ks)}, matters little"
    return panel, [_within(what, panel, gaps, LITTLE)]


def _kernels(views: Views, source: Source, method: str, judged: list[Judged]) -> _Found:
    """AUROC by the weight of a neighbour."""
    panel = _panel(source, method, judged, {name: name for name in KERNELS}, "exp")
    said = [
        _within(f"{kernel} behaves like exp, as the weight of a neighbour", panel, _gaps(panel, [kernel]), LITTLE)
        for kernel in ("count", "inverse")
    ]
    return panel, [*said, *_worse("dividing distances by their mean makes it worse", panel, "scaled")]


def _banks(views: Views, source: Source, method: str, judged: list[Judged]) -> _Found:
    """AUROC by the bank."""
    ranks = []
    for one in judged:
        whole = one.rank("distance")
        assert whole is not None
        ranks.append({_WHOLE: whole, **by_other_banks(views, one.entry)})
    rights = [one.right for one in judged]
    panel = Panel.of(source.title, TITLES[method], ranks, rights, rivals=(_WHOLE,))
    said = [*_loses_nothing("5 % of the bank loses nothing (k-means, weighted)", panel, "5 %")]
    if APPROXIMATE in ranks[0]:
        gaps = _gaps(panel, [APPROXIMATE])
        said.append(_within("approximate search changes nothing", panel, gaps, goals.SMALLER_BANK))
    return panel, said


_PARTS = (
    (_neighbors, "Does the number of neighbours matter?", f"k = {K}, or the whole bank where it is smaller"),
    (_kernels, f"Does the weight of a neighbour matter? k = {K}, or the points of a class where they are fewer", "exp"),
    (_banks, "Does a smaller bank lose anything? k chosen on validation points", "the whole bank"),
)


def _table(title: str, rival: str, panels: Sequence[Panel]) -> Table:
    rows = tuple(dict.fromkeys(row for panel in panels for ranks in panel.ranks for row in ranks))
    cells = [cell for panel in panels for row in rows if (cell := panel.cell(row)) is not None]
    return Table(title, "AUROC", rows, tuple(panel.column for panel in panels), tuple(cells), rival)


def _panel(source: Source, method: str, judged: list[Judged], names: dict[str, str], rival: str) -> Panel:
    ranks = [{title: one.scores[name] for name, title in names.items()} for one in judged]
    return Panel.of(source.title, TITLES[method], ranks, [one.right for one in judged], rivals=(rival,))


def _fixed(judged: Judged) -> int:
    """K, or the largest number of neighbours there is."""
    ks = _ks(judged)
    return K if K in ks else max(ks)


def _ks(judged: Judged) -> list[int]:
    """The numbers of neighbours that there are scores of."""
    return sorted(int(name.removeprefix("distance ")) for name in judged.scores if name.startswith("distance "))


def _gaps(panel: Panel, rows: Sequence[str]) -> list[Difference]:
    return [gain for row in rows if (gain := panel.gain(row)) is not None]


def _within(what: str, panel: Panel, gaps: Sequence[Difference], margin: float) -> Finding:
    """Whether all differences lie within a margin; the largest is shown."""
    wanted = f"within {margin:g}"
    if not gaps:
        return Finding(what, panel.column.key, "not measured", wanted=wanted, why="too few right or wrong predictions")
    widest = max(gaps, key=lambda gap: abs(gap.mean))
    return Finding(what, panel.column.key, outcome_within(gaps, margin), widest, wanted)


def _worse(what: str, panel: Panel, row: str) -> Iterator[Finding]:
    gain = panel.gain(row)
    if gain is not None:
        yield Finding(what, panel.column.key, _outcome_below([gain]), gain, "interval below 0")


def _loses_nothing(what: str, panel: Panel, row: str) -> Iterator[Finding]:
    """Whether what is lost is surely no more than a trifle; what is gained does not count against it."""
    gain, least = panel.gain(row), -goals.SMALLER_BANK
    if gain is not None:
        outcome: Outcome = "not confirmed" if gain.high < least else "not settled"
        wanted = f"interval above {least:g}"
        yield Finding(what, panel.column.key, "confirmed" if gain.low >= least else outcome, gain, wanted)


def _outcome_below(gaps: Sequence[Difference]) -> Outcome:
    """Whether all differences are surely below 0, one surely is not, or neither."""
    if all(gap.verdict == "worse" for gap in gaps):
        return "confirmed"
    return "not confirmed" if any(gap.verdict == "better" for gap in gaps) else "not settled"


def _settings(views: Views) -> Iterator[Finding]:
    """The weight α and the margin m of the distance loss."""
    source = views.edition.sources[0]
    base = _sample(views, Entry(source, "distance", 0))
    for name in views.edition.variants:
        other = _sample(views, Entry(source, "distance", 0, name))
        if base is not None and other is not None:
            gap = difference([other], [base])
            what = f"distance loss with {name.replace('-', ' ')}: the setting matters little"
            outcome = outcome_within([gap], LITTLE)
            yield Finding(what, f"{source.title}, Dist", outcome, gap, f"within {LITTLE:g}", _ONE)


def _together(views: Views) -> Iterator[Finding]:
    """Distance loss and adversarial training at once."""
    source = views.edition.sources[0]
    both = _sample(views, Entry(source, "both", 0))
    for method in ("distance", "adversarial"):
        alone = _sample(views, Entry(source, method, 0))
        if both is not None and alone is not None:
            gap = difference([both], [alone])
            what = f"distance loss and adversarial training together are worse than {TITLES[method]} alone"
            yield Finding(what, source.title, _outcome_below([gap]), gap, "interval below 0", _ONE)


def _sample(views: Views, entry: Entry) -> Sample | None:
    """The AUROC of a network's distance score; None where it is not there."""
    if views.networks.obstacle(entry):
        return None
    judged = views.judged(entry)
    ranks = judged.rank("distance")
    return None if ranks is None else of_auroc(ranks, judged.right)
