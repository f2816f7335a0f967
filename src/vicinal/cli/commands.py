"""All commands, in the order in which ``vicinal --help`` lists them: importing a module registers its commands."""

# ruff: isort: skip_file
from vicinal.cli.app import app
from vicinal.cli import demo, data, train, bank, score, evaluate, explain

__all__ = ["app", "bank", "data", "demo", "evaluate", "explain", "score", "train"]
