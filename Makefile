# Every target sets up what it needs. `make demo` and `make test` need Python 3.11+ only.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN := $(VENV)/.run-installed
DEV := $(VENV)/.dev-installed

.DEFAULT_GOAL := help
.PHONY: help demo test slow check e2e bench lock crds clean

help:  ## Show the targets
	@grep -E '^[a-z0-9]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

demo: $(RUN)  ## Run a slice of a real trace through the operator on the embedded cluster
	$(BIN)/lstqueue demo $(ARGS)

test: $(DEV)  ## Run the quick tests
	$(BIN)/pytest -n auto $(ARGS)

slow: $(DEV)  ## Run all of what the quick tests sample: more cases, and every kind of trouble at every write
	HYPOTHESIS_PROFILE=thorough $(BIN)/pytest -n auto --timeout=600 -m "slow or hypothesis" $(ARGS)

check: $(DEV)  ## Lint, types, import contracts, generated files in date
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/lstqueue crd --check
	$(BIN)/python hack/check_locks.py

e2e: $(DEV)  ## Build (once, cached outside the checkout) and test on a real control plane; needs Go
	$(BIN)/python hack/controlplane/build.py
	$(BIN)/pytest tests/e2e $(ARGS)

bench: $(DEV)  ## Measure; docs/performance.md records the figures
	$(BIN)/pytest tests/benchmark -s --timeout=900 $(ARGS)

crds: $(DEV)  ## Write crds/*.yaml from the models
	$(BIN)/lstqueue crd --write

lock: $(DEV)  ## Pin the dependencies again, with hashes
	$(BIN)/uv pip compile -q --universal --generate-hashes --python-version 3.11 --no-header -o requirements/run.txt pyproject.toml
	$(BIN)/uv pip compile -q --universal --generate-hashes --python-version 3.11 --no-header -o requirements/build.txt requirements/build.in
	$(BIN)/uv pip compile -q --universal --generate-hashes --python-version 3.11 --no-header -o requirements/dev.txt requirements/dev.in

clean:  ## Remove the environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("lstqueue needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Name another with make PYTHON=...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

$(RUN): requirements/run.txt pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements/run.txt
	$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements/build.txt
	$(BIN)/pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(DEV): $(RUN) requirements/dev.txt
	$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@touch $@
