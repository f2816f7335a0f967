"""All commands, in the order in which ``vicinal --help`` lists them: importing a module registers its commands."""

# ruff: isort: skip_file
from vicinal.cli.app import app
from vicinal.cli import demo, data, train, bank, score, evaluate, explain, fit, decide, novelty, ensemble

__all__ = [
    "app",
    "bank",
    "data",
    "decide",
    "demo",
    "ensemble",
    "evaluate",
    "explain",
    "fit",
    "novelty",
    "score",
    "train",
]
