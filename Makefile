# One short command per chore. Each sets up what it needs in .venv, once.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq install -c constraints.txt
export PYTHONWARNINGS ?=

.PHONY: help demo test test-slow lint bench docs clean
help:           ## this list
	@grep -hE '^[a-z-]+: .*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

.venv/.made:
	@$(PYTHON) -c 'import sys; sys.exit("vicinal needs Python 3.10 or newer; run: make PYTHON=python3.x ...") if sys.version_info < (3, 10) else 0'
	@$(PYTHON) -m venv .venv
	@touch $@

.venv/.demo: .venv/.made pyproject.toml constraints.txt
	@echo "setting up .venv (once; a minute or two)"
	@$(PIP) -e '.[torch,plots]'
	@touch $@

.venv/.dev: .venv/.demo
	@echo "setting up the tools for tests (once; a minute or two)"
	@$(PIP) -e '.[dev]'
	@touch $@

demo: .venv/.demo  ## train small networks on digits and ask which of their predictions to trust
	@$(BIN)/vicinal demo --out demo.png

test: .venv/.dev  ## the tests, with coverage
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=2 $(BIN)/pytest -q -n 2 -m "not slow" --cov --cov-report=term:skip-covered --cov-fail-under=95

test-slow: .venv/.dev  ## the tests that take minutes
	@$(BIN)/pytest -q -m slow

lint: .venv/.dev  ## format, style and types
	@$(BIN)/ruff format --check . && $(BIN)/ruff check . && $(BIN)/mypy

bench: .venv/.dev  ## measure, and compare with the committed figures
	@$(BIN)/python benchmarks/search.py --compare

docs: .venv/.dev  ## the documentation, into docs/_build/html
	@$(BIN)/sphinx-build -q -W -b html docs docs/_build/html && echo "docs/_build/html/index.html"

clean:          ## remove .venv and every cache
	@rm -rf .venv build docs/_build docs/reference .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage*
