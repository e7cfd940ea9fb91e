# Needs python3 (>= 3.11) and make; everything else is installed into .venv.
PYTHON ?= python3
BIN := .venv/bin
RUNTIME := .venv/runtime
INSTALLED := .venv/installed

TESTS ?=
WORKERS ?= $(shell getconf _NPROCESSORS_ONLN)

.PHONY: size docs run reproduce quick heavy test tests test-all lint hooks browser table bench release-check clean

run: $(RUNTIME)  ## the paper's experiment in small; ends with the path of a report
	$(BIN)/cocoax reproduce --quick --resume --out out/quick --workers $(WORKERS)

reproduce: $(RUNTIME)  ## the paper's experiment, whole
	$(BIN)/cocoax reproduce --resume --workers $(WORKERS)

quick: lint  ## lint, types, and one case of every test but the heavy ones; TESTS=tests/domains for a part
	$(BIN)/python -m pytest --quick $(TESTS)

heavy: $(INSTALLED)  ## measure again which tests are too heavy for `make quick`; rewrites tests/tools/heavy.txt
	JAX_COMPILATION_CACHE_DIR=$$(mktemp -d) $(BIN)/python -m pytest -m "not slow" --record-heavy

test: $(INSTALLED) browser  ## lint, types, tests, doctests and examples; compiled for speed of compilation
	@$(MAKE) --no-print-directory --jobs=2 lint tests

tests:
	$(BIN)/python -m pytest -m "not slow"

test-all: lint browser  ## the same with the long statistical checks, compiled as for users
	XLA_FLAGS= $(BIN)/python -m pytest

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/pyright

hooks: $(INSTALLED)  ## lint before every commit
	$(BIN)/pre-commit install

browser:  ## Chromium, in which the tests open reports; where it cannot be had, those tests are skipped
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || \
	  (apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium) >/dev/null 2>&1 || \
	  echo "NOTICE: no Chromium, and apt-get cannot install it: tests that open reports will be skipped"

docs: $(INSTALLED)  ## the documentation site, site/index.html; runs every example and tutorial that has changed
	$(BIN)/python -m docsite

table: $(INSTALLED)  ## the paper's methods on the paper's experiment; rewrites docs/paper_table.md
	$(BIN)/python -m benchmarks.paper_table

bench: $(INSTALLED)  ## all speeds on the CPU, as ratios; rewrites docs/benchmarks.md (a GPU: python -m benchmarks --device gpu)
	$(BIN)/python -m benchmarks --write-docs

$(RUNTIME): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[lab,cluster]"
	touch $@

$(INSTALLED): $(RUNTIME)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@

size: $(INSTALLED)  ## how large the code is: lines, public names, named numbers and modules with one importer, by package
	@$(BIN)/python -m benchmarks.size

release-check:  ## wheel and sdist, twice; empty environments of each Python that is here; TESTS=tests/games for tests too
	$(PYTHON) -m release $(if $(TESTS),--tests $(TESTS))

clean:
	rm -rf .venv out site .jax_cache .pytest_cache .ruff_cache .hypothesis
