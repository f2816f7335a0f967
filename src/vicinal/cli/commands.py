"""All commands, in the order in which ``vicinal --help`` lists them: importing a module registers its commands."""

# ruff: isort: skip_file
from vicinal.cli.app import app
from vicinal.cli import demo, bank, score, evaluate, explain

__all__ = ["app", "bank", "demo", "evaluate", "explain", "score"]
