# Needs python3 (>= 3.11) and make; everything else is installed into .venv.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/installed

.PHONY: run test test-all lint table clean

run: $(INSTALLED)  ## play the quickstart; writes a picture of regret and violation
	$(BIN)/python examples/quickstart.py

test: lint  ## lint, types, tests, doctests and examples
	$(BIN)/python -m pytest -m "not slow"

test-all: lint  ## the same, with the long statistical checks
	$(BIN)/python -m pytest

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

table: $(INSTALLED)  ## the paper's methods on the paper's experiment; rewrites docs/paper_table.md
	$(BIN)/python -m benchmarks.paper_table

$(INSTALLED): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@

clean:
	rm -rf .venv out .jax_cache .pytest_cache .ruff_cache .hypothesis
