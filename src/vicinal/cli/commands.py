"""All commands, in the order in which ``vicinal --help`` lists them: importing a module registers its commands."""

# ruff: isort: skip_file
from vicinal.cli.app import app
from vicinal.cli import (
    demo,
    data,
    train,
    bank,
    condense,
    score,
    evaluate,
    explain,
    diagnose,
    calibrate,
    fit,
    decide,
    novelty,
    ensemble,
    reproduce,
)

__all__ = [
    "app",
    "bank",
    "calibrate",
    "condense",
    "data",
    "decide",
    "demo",
    "diagnose",
    "ensemble",
    "evaluate",
    "explain",
    "fit",
    "novelty",
    "reproduce",
    "score",
    "train",
]
