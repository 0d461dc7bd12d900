# Run `make demo` or `make test` in a new clone; both need Python 3.11+ and git. They create a virtual environment in $(VENV)
# with the interpreter PYTHON.
PYTHON ?= python3
VENV ?= .venv
FUZZ_SECONDS ?= 180
DOCUMENTS ?= 1000000
DIRECTORIES ?= examples tests
# One more than there are cores: tests wait for processes and servers.
WORKERS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1) + 1)))
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help demo test search runners fuzz agreement faults soak docs bench record doubling lock clean

help: ## list these commands
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

demo: $(VENV)/.demo ## place examples/repo, lose its primary data centre, show what moves and why
	@$(BIN)/python examples/demo.py

# Tests that need a missing program are skipped and listed at the end; GITSCHED_REQUIRE_ALL=1 fails instead. mypy uses one core, and runs
# beside the tests, which are compiled once before their workers start.
test: $(VENV)/.dev ## ruff, mypy, import-linter and every test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	@directory=$$(.ci/scratch) && { \
		$(BIN)/mypy > "$$directory/mypy.txt" 2>&1 & mypy=$$!; status=0; \
		PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --collect-only -qq > /dev/null 2>&1 || true; \
		$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -rs --no-fold-skipped --basetemp="$$directory/tests" || status=$$?; \
		wait $$mypy || { cat "$$directory/mypy.txt" >&2; status=1; }; \
		if [ $$status = 0 ]; then rm -rf "$$directory" & else echo "the files of the tests, perhaps in memory, are in $$directory until you remove it" >&2; fi; \
		exit $$status; }

search: $(VENV)/.dev ## look for counterexamples of the tested properties for a long time, with random examples
	HYPOTHESIS_PROFILE=deep $(BIN)/python -m pytest -n auto --dist worksteal -m "hypothesis or search"

runners: $(VENV)/.runners ## run the pipelines of docs/ci.md in real runners: act, and gitlab-ci-local, which needs npm and rsync
	GITSCHED_RUNNERS=$(VENV)/node_modules/.bin $(BIN)/python -m pytest -q -m runners tests/pipelines

fuzz: $(VENV)/.fuzz ## look for inputs that break a promise, FUZZ_SECONDS for each target; prints counts
	GITSCHED_FUZZ_SIZE=250000 GITSCHED_FUZZ_CASES=5000 $(BIN)/python -m pytest -q tests/fuzz
	$(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS)
	GITSCHED_FUZZ_SIZE=250000 GITSCHED_FUZZ_CASES=5000 $(BIN)/python -m pytest -q tests/fuzz

agreement: $(VENV)/.dev ## compare the two YAML parsers on DOCUMENTS mutations of the manifests below DIRECTORIES
	$(BIN)/python -m tests.fuzz.yaml_agreement --documents $(DOCUMENTS) $(DIRECTORIES)

faults: $(VENV)/.dev ## let every call of a run fail or end its process, and race with git gc; prints counts, takes hours
	$(BIN)/python -m tests.faults.stages
	$(BIN)/python -m tests.faults.gc_races
	$(BIN)/python -m tests.faults.syscalls --per-call 20
	$(BIN)/python -m tests.faults

soak: $(VENV)/.dev ## watch a local source, one that pushes and a URL for ten minutes; check memory, open files and lag
	$(BIN)/python -m tests.faults.soak

docs: $(VENV)/.docs ## build the documentation in build/site; a broken link fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --site-dir build/site

bench: $(VENV)/.dev ## time and memory per stage and command, compared with git and PyYAML
	$(BIN)/python -m benchmarks

record: $(VENV)/.dev ## measure a small repository and keep the figures of this commit in build/benchmarks
	@mkdir -p build/benchmarks
	$(BIN)/python -m benchmarks --manifests 200 --clusters 40 --policies 8 --rounds 2 --json >build/benchmarks/.new
	@mv build/benchmarks/.new build/benchmarks/$$(git rev-parse HEAD).json

doubling: $(VENV)/.dev ## double one dimension of the input after the other, print how the time grows, and fail unless it is linear
	$(BIN)/python -m benchmarks.doubling

# Dependencies as pyproject.toml allows them, and the tools that build and describe a release. The versions in the files stay where they still fit;
# `make lock UPGRADE=--upgrade` takes the newest ones.
LOCK = UV_CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes $(UPGRADE)

lock: $(VENV)/.lock ## write requirements/*.txt: every dependency with its version and hashes
	$(LOCK) --output-file requirements/run.txt pyproject.toml
	$(LOCK) --output-file requirements/build.txt requirements/build.in
	$(LOCK) --output-file requirements/release.txt requirements/release.in

clean: ## remove the files of these commands
	rm -rf $(VENV) .demo build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .fuzz

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "gitsched needs Python 3.11 or newer: make PYTHON=python3.12 ..." >&2; exit 1; }
	@command -v git >/dev/null || { echo "gitsched needs git" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(PIP) install -e .
	@touch $@

$(VENV)/.dev: pyproject.toml .ci/install_helm.py | $(BIN)/python
	$(PIP) install -e '.[dev]'
	-$(BIN)/python .ci/install_helm.py $(BIN)
	@touch $@ $(VENV)/.demo

$(VENV)/.runners: pyproject.toml $(VENV)/.dev
	$(PIP) install -e '.[runners]'
	npm install --silent --no-save --prefix $(VENV) gitlab-ci-local@4.58.0
	@touch $@

# Without atheris, which has no wheel for every Python, inputs are mutated at random.
$(VENV)/.fuzz: pyproject.toml $(VENV)/.dev
	-$(PIP) install -e '.[fuzz]'
	@touch $@

$(VENV)/.lock: pyproject.toml | $(BIN)/python
	$(PIP) install -e '.[lock]'
	@touch $@ $(VENV)/.demo

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(PIP) install -e '.[docs]'
	@touch $@ $(VENV)/.demo
