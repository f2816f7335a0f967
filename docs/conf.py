"""How Sphinx builds the documentation."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

project = "vicinal"
author = "the vicinal authors"
release = importlib.metadata.version("vicinal")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
highlight_language = "none"  # of what does not say otherwise: tables and formulas in docstrings
html_title = f"vicinal {release}"
html_show_copyright = False
exclude_patterns = ["_build"]
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


def _as_written(app, what, name, obj, options, lines) -> None:  # type: ignore[no-untyped-def]
    """Show docstrings as they are written: indented formulas and tables literally, and |x| as a length.

    reStructuredText would flow the first together, and take the second for a substitution.
    """
    shown: list[str] = []
    above, literal = "", None  # the last line of the paragraph before; how far a literal block is indented
    for number, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if literal is not None and line.strip() and indent < literal:
            literal = None
        starts = bool(line.strip()) and number > 0 and not lines[number - 1].strip()
        deeper = indent > len(above) - len(above.lstrip())
        if literal is None and starts and deeper and not above.lstrip().startswith(("..", ":", "- ", "* ", ">>>")):
            literal = indent
            shown += [above[: len(above) - len(above.lstrip())] + "::", ""]
        plain = literal is None and not line.lstrip().startswith((">>>", "..."))
        shown.append(line.replace("|", r"\|") if plain else line)
        if line.strip() and literal is None:
            above = line
    lines[:] = shown


def _skip_foreign(app, what, name, obj, skip, options) -> bool:  # type: ignore[no-untyped-def]
    """Leave out what scikit-learn adds to its estimators."""
    return skip or (name.startswith("set_") and name.endswith("_request"))


def setup(app) -> None:  # type: ignore[no-untyped-def]
    """Called by Sphinx."""
    _write_reference()
    app.connect("autodoc-process-docstring", _as_written)
    app.connect("autodoc-skip-member", _skip_foreign)
