"""Imports go one way: a table of layers, and the import graph read from the source."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import vicinal

SOURCE = Path(vicinal.__file__).parent

# A module or package imports only what stands in an earlier line.
LAYERS = (
    {"errors", "pages"},
    {"checks"},
    {"store", "progress", "guarantee", "compiled", "origin"},
    {"values", "search", "metrics", "data"},
    {"bank_file", "mass", "held_out"},
    {"stream"},
    {"bank"},
    {"score", "density", "evaluation"},
    {"condensation"},
    {"scoring", "estimator", "selective", "novelty", "ensemble", "plots", "tables", "learn"},
    {"explain", "guard"},
    {"demo"},
    {"paper"},
    {"cli"},
    {"__main__", "__init__"},
)
# ... but for these, and only inside a function: one call from a model of torch to arrays.
UPWARD = {("values", "learn")}
# Who may ask for a network; whoever else needs torch gets arrays.
TRAINERS = {"__init__", "values", "guard", "demo", "paper", "cli"}


def rank(place: str) -> int:
    """The line that a module or package stands in."""
    return next(line for line, places in enumerate(LAYERS) if place in places)


def imports():
    """Each import in the package: (place, imported place or outside module, whether it is inside a function, file)."""
    for file in sorted(SOURCE.rglob("*.py")):
        place = file.relative_to(SOURCE).parts[0].removesuffix(".py")
        tree = ast.parse(file.read_text())
        inside = {
            inner
            for outer in ast.walk(tree)
            if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)) or _is_for_types(outer)
            for inner in ast.walk(outer)
        }
        for node in ast.walk(tree):
            for name in _names(node):
                yield place, name, node in inside, file.name


def _is_for_types(node) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _names(node) -> list[str]:
    if isinstance(node, ast.Import):
        return [name.name for name in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    assert node.level == 0, "imports name their module in full"
    module = node.module or ""
    return [f"{module}.{name.name}" if _is_module(f"{module}.{name.name}") else module for name in node.names]


def _is_module(name: str) -> bool:
    path = SOURCE.joinpath(*name.split(".")[1:])
    return name.startswith("vicinal.") and (path.is_dir() or path.with_suffix(".py").is_file())


INSIDE = [
    (place, name.split(".")[1], lazy, file)
    for place, name, lazy, file in imports()
    if name.startswith("vicinal.") and place != name.split(".")[1]
]


def test_every_module_stands_in_the_table_once():
    places = {path.name.removesuffix(".py") for path in SOURCE.iterdir() if path.suffix == ".py" or path.is_dir()}
    places -= {"__pycache__", "py.typed"}
    listed = [place for places in LAYERS for place in places]
    assert places <= set(listed)
    assert len(listed) == len(set(listed))


def test_imports_go_one_way():
    for place, other, lazy, file in INSIDE:
        if place == "__init__" or ((place, other) in UPWARD and lazy):
            continue
        assert rank(other) < rank(place), f"{place} ({file}) imports {other}"


def test_the_three_jobs_do_not_know_each_other():
    jobs = {"selective", "novelty", "ensemble"}
    assert not [(place, other) for place, other, *_ in INSIDE if place in jobs and other in jobs - {place}]


def test_torch_is_imported_while_learning_only():
    for place, name, lazy, file in imports():
        if name.split(".")[0] == "torch":
            assert place == "learn" or (place in TRAINERS and lazy), f"{place} ({file}) imports torch"
    for place, other, lazy, file in INSIDE:
        if other == "learn":
            assert (place in TRAINERS, lazy) == (True, True), f"{place} ({file}) imports learn"


def test_there_is_no_cycle_of_modules():
    graph: dict[str, set[str]] = {}
    for file in SOURCE.rglob("*.py"):
        module = ".".join(("vicinal", *file.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
        tree = ast.parse(file.read_text())
        graph[module] = {name for node in tree.body for name in _names(node) if name.startswith("vicinal")}
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join((*path, module))
        if module in done or module not in graph:
            return
        for other in graph[module]:
            visit(other, (*path, module))
        done.add(module)

    for module in graph:
        visit(module, ())


def loaded(code: str) -> set[str]:
    """The top-level modules that a fresh process has loaded after some code."""
    script = f"import sys\n{code}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_a_table_of_names_and_nothing_else():
    assert not loaded("import vicinal; dir(vicinal)") & {"numpy", "numba", "scipy", "sklearn", "torch", "typer", "rich"}


def test_scores_and_files_load_neither_torch_nor_scikit_learn(tmp_path):
    code = f"""
import vicinal
bank = vicinal.Bank([[0.0], [1.0]], [0, 1])
bank.save({str(tmp_path / "bank.safetensors")!r})
vicinal.Bank.load({str(tmp_path / "bank.safetensors")!r})
vicinal.distance(bank, [[0.2]], [0], k=1)
vicinal.margin([[1.0, 2.0]])
vicinal.evaluate(None, {{"a": [3, 2, 1, 0]}}, correct=[1, 0, 1, 0], samples=10)
"""
    assert not loaded(code) & {"torch", "sklearn", "pandas", "matplotlib", "pyarrow", "typer"}


def test_the_public_names_are_few_sorted_and_there():
    names = vicinal.__all__
    assert len(names) <= 25
    assert names == sorted(names, key=str.lower)
    assert set(names) == set(vicinal._HOMES)
    assert set(names) <= set(dir(vicinal))
    for name in names:
        assert getattr(vicinal, name).__name__ == name
        assert getattr(vicinal, name).__doc__


WITHOUT_TORCH = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
from vicinal import *
import vicinal
print(len(vicinal.__all__), "Network" in dir(vicinal))
try:
    vicinal.Network
except vicinal.VicinalError as error:
    print(error)
"""


def test_without_torch_all_but_the_network_is_there():
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        f"{len(vicinal.__all__) - 1} False",
        "vicinal.Network needs torch; install it with: pip install 'vicinal[torch]'",
    ]


def test_no_public_name_is_also_a_module():
    """Importing the module would put it in the place of the name."""
    assert not {name for name in vicinal.__all__ if _is_module(f"vicinal.{name}")}


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'vicinal' has no attribute 'trust'"):
        _ = vicinal.trust


def test_what_type_checkers_see_is_what_there_is():
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    seen = {
        name.name: node.module
        for block in tree.body
        if _is_for_types(block)
        for node in block.body
        for name in node.names
    }
    assert seen == {name: f"vicinal.{home}" for name, home in vicinal._HOMES.items()}
