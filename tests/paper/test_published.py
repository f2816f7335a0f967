"""The paper's numbers, against the rows of its tables as they stand in its LaTeX."""

from __future__ import annotations

import re

import pytest

from vicinal.paper import published
from vicinal.paper.published import METHODS, TABLES

TABLE1 = r"""
Margin & 0.828 & 0.834 & 0.844 & 0.836 & 0.804 & 0.775 & 0.812 & 0.804 & 0.904 & 0.896 & 0.909 \\ \hline
Entropy & 0.833 & 0.837 & 0.851 & 0.833 & 0.806 & 0.786 & 0.816 & 0.810 & 0.916 & 0.907 & 0.918 \\ \hline
Distance & 0.789 & \textbf{0.853} & 0.843 & 0.726 & 0.798 & 0.824 & \textbf{0.863} & 0.671 & 0.916 & \textbf{0.925} & \textbf{0.925} \\ \hline
"""  # noqa: E501
TABLE2 = r"""
Max margin & 0.840 & 0.846 & 0.856 & 0.802 & 0.792 & 0.814 & 0.909 & 0.901 & 0.911 \\ \hline
Entropy & 0.844 & 0.839 & 0.857 & 0.807 & 0.798 & 0.816 & 0.918 & 0.912 & 0.920 \\ \hline
Distance (1) & 0.775 & 0.863 & 0.862 & 0.815 & 0.834 & \textbf{0.866} & 0.916 & 0.924 & 0.926 \\ \hline
Distance (2) & 0.876 & 0.872 & \textbf{0.879 } & 0.833 & 0.832 & 0.859 & 0.918 & \textbf{0.929} & 0.927 \\ \hline
"""
TABLE3 = r"""
Margin & .808 & .849 & .860 & .912 & .922 & .985 \\ \hline
Entropy & .810 & .857 & .870 & .917 & .933 & .992 \\ \hline
Distance & .798 & .870 & \textbf{.901} & .904 & .934 & \textbf{.996} \\ \hline
"""
SHAPES = {  # data sets in the order of the columns, each with how many columns it has; our names of the rows
    "table1": (TABLE1, {"cifar100": 4, "stl10": 4, "svhn": 3}, ("margin", "entropy", "distance")),
    "table2": (TABLE2, {"cifar100": 3, "stl10": 3, "svhn": 3}, ("margin", "entropy", "own", "hybrid")),
    "table3": (TABLE3, {"stl10, novel svhn": 3, "svhn, novel stl10": 3}, ("margin", "entropy", "distance")),
}


@pytest.mark.parametrize("name", SHAPES)
def test_every_number_stands_where_it_stands_in_the_paper(name):
    tex, datasets, rows = SHAPES[name]
    lines = tex.strip().splitlines()
    assert len(lines) == len(rows)
    found = 0
    for row, line in zip(rows, lines, strict=True):
        numbers = iter(map(float, re.findall(r"\d?\.\d{3}", line)))
        for data, width in datasets.items():
            for method in list(METHODS)[:width]:
                assert published.published(name, data, row, method) == next(numbers)
                found += 1
        assert next(numbers, None) is None
    ours = [number for data in TABLES[name].values() for row in data.values() for number in row if number is not None]
    assert len(ours) == found


def test_where_the_paper_has_no_number_there_is_none():
    assert published.published("table1", "svhn", "distance", "mcd") is None
    assert published.published("table1", None, "distance", "reg") is None
    assert published.published("table1", "svhn", "fused", "reg") is None


def test_accuracies():
    assert published.ACCURACIES == {"cifar100": 0.600, "stl10": 0.705, "svhn": 0.935}
