"""Finding the nearest training points: one protocol, several ways to keep it.

    Points ──▶ Choice ──▶ a search ──▶ nearest(queries, k) ──▶ Found (distances, places)

``protocol`` says what a search offers, ``points`` is what it looks through, and ``choice`` says which to take:

    brute          looks at every point, on all cores
    exact          proves most points too far by shadows of them (shadows, sifting, worth); the same answer
    approximate    looks where neighbours mostly are, by a share of them that it has measured
    device         looks at every point on a device of torch; the same answer

``kernels`` and ``weighing`` are compiled loops; ``dots`` multiplies numbers of 8 bits, ``picking`` picks large values
out; ``shifting`` makes queries ready for products; ``threads`` shares the cores out. A search knows places (rows of the
segments) and class codes; the bank turns them into the user's rows and labels.
"""

from __future__ import annotations

from vicinal.search.brute import BruteSearch
from vicinal.search.choice import Choice, Name
from vicinal.search.points import Points
from vicinal.search.protocol import Found, Masses, Search

__all__ = ["BruteSearch", "Choice", "Found", "Masses", "Name", "Points", "Search"]
