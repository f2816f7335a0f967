"""Fewer points that stand for a whole bank.

    bank ──▶ condense(bank, method, share) ──▶ Condensed (bank, indices, k)

``condense`` shares a number of points out to the classes and asks a method which ones, or which new ones; one module is
one method, and ``methods`` is their table. ``masses`` counts how many points each kept one stands for, so that the sums
in Eq. 1 stay those of the whole bank. ``recommending`` says how many neighbours to ask a condensed bank for.
``condensation_curve`` measures what condensing costs, as data.
"""

from vicinal.condensation.condensing import Condensed, condense
from vicinal.condensation.curve import WHOLE, CondensationCurve, CurvePoint, condensation_curve
from vicinal.condensation.methods import METHODS

__all__ = ["METHODS", "WHOLE", "CondensationCurve", "Condensed", "CurvePoint", "condensation_curve", "condense"]
