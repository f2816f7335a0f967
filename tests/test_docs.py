"""The documentation's examples run, and its figures are those of the committed results."""

from __future__ import annotations

import doctest
import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

import layouts

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", re.M | re.S)


@pytest.fixture(scope="module")
def data_root(tmp_path_factory):
    """The data sets that the pages load, small but in the official layouts, and a folder called pets."""
    root = tmp_path_factory.mktemp("data")
    layouts.cifar100(root, n=300)
    layouts.mnist(root, "fashion-mnist", n=30)
    layouts.arrays(root, "pets")
    return root


@pytest.mark.filterwarnings("ignore:`isinstance.treespec, LeafSpec:FutureWarning")  # Lightning's own, of torch's
@pytest.mark.filterwarnings("ignore::lightning.pytorch.utilities.warnings.PossibleUserWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_run_in_order_and_print_what_it_says(page, tmp_path, monkeypatch, capsys, data_root):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VICINAL_DATA", str(data_root))
    layouts.arrays(tmp_path / "my", "pets")
    names: dict[str, object] = {"__name__": page.stem}
    for code, printed in BLOCK.findall(page.read_text()):
        if code.startswith(">>>"):
            example = doctest.DocTestParser().get_doctest(code, names, page.name, str(page), 0)
            result = doctest.DocTestRunner().run(example, clear_globs=False)
            assert not result.failed, capsys.readouterr().out
            names.update(example.globs)
            continue
        exec(compile(code, str(page), "exec"), names)
        output = capsys.readouterr().out
        if printed:
            assert output == printed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_links_of_a_page_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.fixture
def benchmark(monkeypatch):
    """A benchmark as a module."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")

    def load(name):
        spec = importlib.util.spec_from_file_location(f"benchmark_of_{name}", ROOT / "benchmarks" / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules.pop("environment", None)
        return module

    return load


def test_the_tables_of_speed_are_those_of_the_committed_run(benchmark):
    module = benchmark("search")
    tables = module.tables(json.loads(module.RESULTS.read_text()))
    assert tables["search"] in (ROOT / "README.md").read_text()
    for table in tables.values():
        assert table in (ROOT / "docs" / "speed.md").read_text()


def test_the_table_of_whitening_is_that_of_the_committed_run(benchmark):
    module = benchmark("whitening")
    assert module.table(json.loads(module.RESULTS.read_text())) in (ROOT / "docs" / "data.md").read_text()
