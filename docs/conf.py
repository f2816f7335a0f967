"""How Sphinx builds the documentation."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

project = "vicinal"
author = "the vicinal authors"
release = importlib.metadata.version("vicinal")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = f"vicinal {release}"
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
suppress_warnings = ["myst.xref_missing", "ref.python"]  # types name parts such as n, which several classes have

REFERENCE = {
    "values": "Values",
    "bank": "The bank",
    "score": "Scores",
    "metrics": "Metrics",
    "evaluation": "Evaluation",
    "selective": "Refusing predictions",
    "guarantee": "Promises for finitely many rows",
    "novelty": "Novelty",
    "density": "Densities",
    "ensemble": "Ensembles",
    "guard": "The guard",
    "estimator": "The scikit-learn face",
    "learn.embed": "Any torch model",
    "search": "Search",
    "plots": "Plots",
    "checks": "Checks",
    "errors": "Errors",
    "store": "Files",
}


def _write_reference() -> None:
    """One page a module, generated from its docstrings."""
    folder = Path(__file__).parent / "reference"
    folder.mkdir(exist_ok=True)
    for module, title in REFERENCE.items():
        page = f"# {title}\n\n```{{eval-rst}}\n.. automodule:: vicinal.{module}\n   :members:\n```\n"
        (folder / f"{module}.md").write_text(page)
    names = "\n".join(REFERENCE)
    (folder / "index.md").write_text(f"# Reference\n\n```{{toctree}}\n{names}\n```\n")


def _escape_bars(app, what, name, obj, options, lines) -> None:  # type: ignore[no-untyped-def]
    """Docstrings write lengths as |x|, which reStructuredText would take for a substitution."""
    lines[:] = [line if line.lstrip().startswith((">>>", "...")) else line.replace("|", r"\|") for line in lines]


def _skip_foreign(app, what, name, obj, skip, options) -> bool:  # type: ignore[no-untyped-def]
    """Leave out what scikit-learn adds to its estimators."""
    return skip or (name.startswith("set_") and name.endswith("_request"))


def setup(app) -> None:  # type: ignore[no-untyped-def]
    """Called by Sphinx."""
    _write_reference()
    app.connect("autodoc-process-docstring", _escape_bars)
    app.connect("autodoc-skip-member", _skip_foreign)
