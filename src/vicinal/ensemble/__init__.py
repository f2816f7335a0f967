"""Ensembles: several networks decide together, on plain arrays.

    Member            one network: its softmax outputs on some inputs, and how sure it is of each prediction
    Ensemble          members over the same classes, their inputs and columns brought in line
    combine           the five rules: average, majority, weighted, confidence_vote, dictator
    pair              the paper's hybrid: two members judged in the embedding of one
    judge             how far to trust what the ensemble says: softmax, own, hybrid, summed
    accuracy_by_size  accuracy against the number of members, over groups drawn at random

Networks may differ in all but the classes: where they embed, how their columns are ordered, which inputs they saw.
"""

from vicinal.ensemble.evidence import judge
from vicinal.ensemble.members import Ensemble, Member, pair
from vicinal.ensemble.rules import RULES, Combined, combine
from vicinal.ensemble.sizes import Growth, Line, accuracy_by_size

__all__ = [
    "RULES",
    "Combined",
    "Ensemble",
    "Growth",
    "Line",
    "Member",
    "accuracy_by_size",
    "combine",
    "judge",
    "pair",
]
