# Two commands for newcomers, both from a fresh clone with Python 3.11+ and git: `make demo` and `make test`.
# Their environment is made on the way, in $(VENV); PYTHON chooses the interpreter it is made with.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help demo test docs bench clean

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

demo: $(VENV)/.demo ## place examples/repo, take its primary data centre down, watch it move
	$(BIN)/python examples/demo.py

# Tests that need a program this machine lacks are skipped, and named in the last lines; GITSCHED_REQUIRE_ALL=1 fails instead.
test: $(VENV)/.dev ## ruff, mypy, import-linter and every test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n auto --dist worksteal -rs --no-fold-skipped

docs: $(VENV)/.docs ## the documentation as a site in build/site; a link that leads nowhere fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --site-dir build/site

bench: $(VENV)/.dev ## time and memory per stage, beside git and PyYAML on the same input
	$(BIN)/python -m benchmarks

clean: ## remove what these commands made
	rm -rf $(VENV) .demo build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "gitsched needs Python 3.11 or newer: make PYTHON=python3.12 ..." >&2; exit 1; }
	@command -v git >/dev/null || { echo "gitsched needs git" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(PIP) install -e .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(PIP) install -e '.[dev]'
	@touch $@ $(VENV)/.demo

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(PIP) install -e '.[docs]'
	@touch $@ $(VENV)/.demo
