PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
KERNELS := src/tacit/kernels
JS_TESTS = $(wildcard js/test/*.test.js)
# A process per file, two at a time; by itself node leaves one core idle.
JS_AT_ONCE := --test-concurrency=2
# Bytecode is written even where the environment forbids it: without, each worker and each process that a test starts
# compiles the whole tree again. A worker that runs dry takes over half of what the others still have to do; one more
# of them than two cores uses the time in which others wait for a browser, a server or a database.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q
AT_ONCE := -n 3 --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help install demo test test-all test-spark test-pages test-faults test-wheel lint bench bench-load bench-scale papers docs js test-js graph kind release wheels site clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' Makefile

install: $(VENV)/.installed $(VENV)/.kernels ## make .venv with every dependency, and compile the C core

$(VENV)/.installed: pyproject.toml constraints.txt setup.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "tacit needs Python 3.11 or newer; '$(PYTHON)' is not. Try: make PYTHON=python3.12 install" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make virtual environments. On Debian or Ubuntu: apt install python3-venv" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@echo "installing into $(VENV)"
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check \
	  -c constraints.txt -e '.[cli,central,pandas,arrow,analytics,collector,postgres,shuffle,spark,dev]'
	@touch $@

$(VENV)/.kernels: $(VENV)/.installed $(KERNELS)/build.py $(wildcard $(KERNELS)/*.c $(KERNELS)/*.h)
	@$(BIN)/python -P $(KERNELS)/build.py
	@touch $@

demo: install ## a collector, 100,000 made-up respondents over HTTP, and a dashboard to look at
	@$(BIN)/tacit demo

test: install ## everything that is fast, in Python and in JavaScript
	@$(BIN)/python tools/ensure_chromium.py
	@$(PYTEST) $(AT_ONCE) -m "not slow"
	@$(MAKE) --no-print-directory test-js

test-all: install ## everything, slow tests and all paper numbers included
	@$(BIN)/python tools/ensure_chromium.py
	@$(PYTEST) $(AT_ONCE)
	@$(MAKE) --no-print-directory test-js

test-spark: install ## separate executors, Spark Connect and faults, and slow tests of Spark but for the grid of kinds
	@command -v java >/dev/null || { echo "no Java: the tests of Spark clusters are skipped"; exit 0; }; \
	  $(PYTEST) -m "slow" -k "not test_every_kind" tests/unit/distributed

test-pages: install ## the slow tests of the pages, in a real browser
	@$(BIN)/python tools/ensure_chromium.py
	@$(PYTEST) $(AT_ONCE) -m slow --ignore=tests/browser/test_wheel.py tests/browser

test-faults: install ## the slow tests of kills, faults of disks and databases, and attacks on a collector
	@$(PYTEST) $(AT_ONCE) -m slow tests/service -k "kill or fault or lose or lost or twice or attack"

test-wheel: install ## a wheel in a clean environment serves a survey that a browser answers
	@$(BIN)/python tools/ensure_chromium.py
	@$(PYTEST) tests/browser/test_wheel.py

test-js: install ## the JavaScript tests alone
	@$(if $(JS_TESTS),"$$($(BIN)/python tools/find_node.py)" --test $(JS_AT_ONCE) $(JS_TESTS),echo "no JavaScript tests")

js: install ## bundle the JavaScript client for pages: js/dist/tacit.js and modules of kinds
	@$(BIN)/python tools/bundle_js.py

lint: install ## style, types, layers and the tree itself
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/pyright
	@$(BIN)/lint-imports --no-cache --no-logo
	@$(BIN)/python tools/check_tree.py

bench: install ## the benchmarks
	@$(BIN)/python benchmarks/run.py

bench-load: install ## the collector under load
	@$(BIN)/python benchmarks/load.py
	@$(BIN)/python benchmarks/steps.py --write
	@$(BIN)/python benchmarks/capacity.py --write

bench-scale: install ## report files at scale: benchmarks/SCALE.md
	@$(BIN)/python benchmarks/scale.py

papers: install ## the numbers printed in papers, slow ones included; build/papers/index.html shows both
	@$(PYTEST) $(AT_ONCE) -m "papers or slow" tests/papers

docs: install ## run the examples in the README and in docs
	@$(PYTEST) $(wildcard README.md docs)

release: install ## wheels, source distribution, bill of materials and checksums in dist/, and a try of the wheel
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[oidc,release]'
	@$(BIN)/python tools/release.py

wheels: ## after `make release`: everything that a container needs, in dist/wheels
	@ls dist/*.whl >/dev/null 2>&1 || { echo "first: make release" >&2; exit 1; }
	@rm -rf dist/wheels
	@$(BIN)/python -m pip download --quiet --disable-pip-version-check -c constraints.txt -d dist/wheels \
	  --only-binary=:all: --python-version 3.11 --implementation cp $(addprefix --platform manylinux,_2_34_x86_64 _2_28_x86_64 _2_17_x86_64 2014_x86_64) \
	  "$$(ls dist/tacit-*manylinux*.whl)[cli,collector,analytics,postgres,shuffle,oidc]"

site: install ## the documentation as a site in build/site; every link is checked
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[site]'
	@$(BIN)/python tools/make_site.py

graph: install ## draw the rooms of the package and what they import: docs/rooms.svg
	@$(BIN)/python tools/make_graph.py

kind: install ## what a kind still lacks of the checklist in CONTRIBUTING.md: make kind KIND=grr
	@$(BIN)/python tools/check_kind.py $(KIND)

clean: ## remove what these targets made, .venv included
	@rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@rm -rf .venv-bench benchmarks/*.so js/dist src/tacit/dashboard/bundle src/*.egg-info $(KERNELS)/*.so
	@find src tests tools benchmarks examples -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
