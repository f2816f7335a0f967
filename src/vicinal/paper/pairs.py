"""Two networks: the predictions of one, or of both together, judged in the embeddings of one or of both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vicinal import score
from vicinal.checks import Floats
from vicinal.ensemble import Member, combine, judge
from vicinal.paper.networks import Entry
from vicinal.paper.remembering import Remembering
from vicinal.paper.scores import K
from vicinal.paper.views import Views
from vicinal.values import Embeddings, Trust

__all__ = ["HOW", "partners", "scores_of_one", "scores_of_two", "softmax"]

HOW = ("margin", "softmax", "hybrid", "own", "summed")


def partners(first: Sequence[Entry], second: Sequence[Entry]) -> list[tuple[Entry, Entry]]:
    """The i-th network of one kind with the next of the other, round and round: no two began with the same weights.

    One network of two kinds each makes a pair all the same; a kind of one network has no pair of its own.
    """
    n = min(len(first), len(second))
    found = [(first[i], second[(i + 1) % n]) for i in range(n)]
    return [pair for pair in found if pair[0] != pair[1]]


def scores_of_one(views: Views, predicts: Entry, embeds: Entry, view: str = "test") -> dict[str, Floats]:
    """Of the predictions of one network: its own margin, and what both networks say of them, each by log-odds.

    ``softmax`` the mean of both softmax outputs, ``hybrid`` the distance score in the embedding of the second, ``own``
    the mean of both distance scores, ``summed`` the sum of both log-odds.
    """

    def compute() -> dict[str, Floats]:
        members = _members(views, (predicts, embeds), view)
        predicted = members[0].predicted
        found = {how: judge(members, predicted, how, k=_k(members)).log_odds for how in ("softmax", "own", "summed")}
        hybrid = judge(members, predicted, "hybrid", embedding=embeds.name, k=_k(members))
        margin = score.margin(views.seen(predicts, view).logits)
        return {**found, "hybrid": hybrid.log_odds, "hybrid_share": hybrid.confidence, "margin": margin.log_odds}

    return views.kept(f"{predicts.name}--in--{embeds.name}--{view}", (predicts, embeds), compute)


def scores_of_two(views: Views, first: Entry, second: Entry) -> dict[str, Floats]:
    """Of the averaged softmax of two networks: its margin and entropy, and both distance scores together.

    ``right`` is 1 where the prediction is right.
    """

    def compute() -> dict[str, Floats]:
        members = _members(views, (first, second), "test")
        both = combine(members, "average")
        labels = views.seen(first, "test").labels
        return {
            "margin": judge(members, both.predicted, "softmax").log_odds,
            "entropy": score.entropy(probabilities=both.support).log_odds,
            **{how: judge(members, both.predicted, how, k=_k(members)).log_odds for how in ("own", "summed")},
            "right": (both.predicted == labels).astype(np.float64),
        }

    return views.kept(f"{first.name}--and--{second.name}--test", (first, second), compute)


def softmax(seen: Embeddings) -> Floats:
    """The softmax outputs of what a network says."""
    assert seen.logits is not None
    shifted = np.exp(seen.logits - seen.logits.max(axis=1, keepdims=True))
    found: Floats = shifted / shifted.sum(axis=1, keepdims=True)
    return found


def member(views: Views, entry: Entry, view: str, kind: str) -> Member:
    """A network as a member of an ensemble, with its margin, entropy and distance scores."""
    seen, scores = views.seen(entry, view), views.of_neighbors(entry, view)
    k = min(K, len(views.networks.bank(entry)))
    own = Trust("distance", scores[f"share {k}"], scores[f"distance {k}"], seen.predicted, probability=True)
    trusts = {"margin": score.margin(seen.logits), "entropy": score.entropy(seen.logits), "distance": own}
    return Member(entry.name, softmax(seen), seen.classes, kind=kind, scores=trusts)


def _members(views: Views, entries: tuple[Entry, Entry], view: str) -> list[Member]:
    found = []
    for entry in entries:
        seen, bank = views.seen(entry, view), Remembering(views.networks.bank(entry), K)
        found.append(Member(entry.name, softmax(seen), seen.classes, vectors=seen.vectors, bank=bank))
    return found


def _k(members: Sequence[Member]) -> int:
    return min(K, *(len(one.bank) for one in members if one.bank is not None))
