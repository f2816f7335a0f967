"""Finding the nearest training points: one protocol, several ways to keep it.

    Points ──▶ BruteSearch ──▶ nearest(queries, k) ──▶ Found (distances, places)

``protocol`` says what a search offers; ``points`` is what it looks through; ``brute`` looks at every point, exactly, on
all cores; ``kernels`` and ``weighing`` are its compiled loops; ``threads`` shares the cores out. A search knows places
(rows of the segments) and class codes; the bank turns them into the user's rows and labels.
"""

from __future__ import annotations

from vicinal.search.brute import BruteSearch
from vicinal.search.points import Points
from vicinal.search.protocol import Found, Masses, Search

__all__ = ["BruteSearch", "Found", "Masses", "Points", "Search"]
