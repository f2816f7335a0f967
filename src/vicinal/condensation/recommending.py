"""How many neighbours to ask a condensed bank for, found without any test data."""

from __future__ import annotations

import numpy as np

from vicinal import score
from vicinal.bank import Bank
from vicinal.checks import Floats

__all__ = ["CHOICES", "recommended_k"]

CHOICES = (1, 2, 3, 5, 10, 20, 50, 100, 200)
_K = 50  # of the whole bank: the default of the distance score
_MOST = 2000  # points that are looked at
_PAIRS = 2_000_000_000  # distances that are taken for it, so fewer points of a bank of more than a million


def recommended_k(bank: Bank, small: Bank, seed: int = 0) -> int:
    """The k with which a condensed bank ranks the whole bank's own points most as that ranks them.

    Of at most 2,000 points (200 of ten million) that are not in the condensed bank, the log-odds of the own class and
    of its strongest rival are taken from the whole bank, each point left out, at k = 50; from the condensed bank at
    each of ``CHOICES`` and at its size, if that is smaller. The k with the largest rank correlation (Spearman) wins,
    the largest of equals.

    Where no point is left to look at, it is 50, or the size of the condensed bank.

    Example:
        >>> bank = Bank([[0.0], [0.2], [0.3], [4.0], [9.0]], labels=[7, 7, 7, 7, 8])
        >>> recommended_k(bank, bank.take([1, 3, 4]))
        3
    """
    places = np.flatnonzero(~np.isin(bank.rows, small.rows))
    places = np.sort(np.random.default_rng(seed).permutation(places)[: min(_MOST, _PAIRS // len(bank))])
    usual = min(_K, len(small))
    if not len(places) or len(bank.classes) < 2:
        return usual
    asked = bank.take(bank.rows[places])
    vectors, labels = asked.vectors, asked.labels
    whole = score.distance(bank, vectors, labels, k=min(_K, len(bank) - 1), exclude_self=asked.rows)
    assert whole.rival is not None
    wanted = np.concatenate([whole.log_odds, whole.rival.log_odds])
    likeness = {}
    for k in sorted({usual, *(k for k in CHOICES if k <= len(small))}):
        found = [score.distance(small, vectors, said, k=k).log_odds for said in (labels, whole.rival.labels)]
        likeness[k] = _rank_correlation(wanted, np.concatenate(found))
    return max(likeness, key=lambda k: (likeness[k], k))


def _rank_correlation(first: Floats, second: Floats) -> float:
    from scipy.stats import rankdata

    ranks = [rankdata(one) - (len(one) + 1) / 2 for one in (first, second)]
    spread = np.sqrt((ranks[0] ** 2).sum() * (ranks[1] ** 2).sum())
    return float((ranks[0] * ranks[1]).sum() / spread) if spread else 0.0
