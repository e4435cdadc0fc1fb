# What a newcomer runs: `make demo` and `make test`. Both set up what they need.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Run three tests at a time on two cores, because many of them wait for a program. The tests of one
# file stay together; tests/conftest.py says which files run first.
PARALLEL := --numprocesses=$(shell echo $$((3 * $$(nproc 2>/dev/null || echo 2) / 2))) --dist=loadfile --no-loadscope-reorder

.PHONY: help setup demo quick test check format snapshots soak bench system node page clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(READY) ## make .venv and install bridle with everything its tests need

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("bridle needs Python 3.11 or newer: make PYTHON=python3.12 setup" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable . --group dev
	@touch $(READY)

system: ## install the system packages that tests need, if possible
	@PATH="$(BIN):$$PATH" scripts/system-packages ripgrep bubblewrap chromium tmux zsh fish

node: ## install the npm packages that tests need into .cache/node and .cache/web
	@scripts/node-packages
	@scripts/build-page packages

page: ## build the page (web/) into src/bridle/server/page
	@scripts/build-page

demo: setup ## a scripted model fixes a failing test with the real tools; no key needed
	@$(BIN)/bridle demo

quick: setup ## run the tests that start no program, no browser and no screen
	@env -u PYTHONDONTWRITEBYTECODE $(BIN)/python scripts/run-tests $(PARALLEL) --hypothesis-profile=quick -m "not (process or browser or database or screen or slow)"

# With PYTHONDONTWRITEBYTECODE set, each process would compile every test again.
test: setup system node ## run all tests
	@env -u PYTHONDONTWRITEBYTECODE $(BIN)/python scripts/run-tests $(PARALLEL)

check: setup format ## format, lint, types, layers, and then all tests
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@$(MAKE) --no-print-directory test

format: setup
	$(BIN)/ruff format --check .

snapshots: setup ## accept how the terminal's screens look now (tests/tui/snapshots)
	@SNAPSHOTS=renew $(BIN)/python -m pytest tests/tui/test_snapshots.py
	@git status --short -- tests/tui/snapshots

soak: setup system node ## run the long seeded tests; `make test` runs a tenth of each
	@env -u PYTHONDONTWRITEBYTECODE BRIDLE_SOAK=1 $(BIN)/python scripts/run-tests $(PARALLEL) --timeout=3600

bench: setup ## compare speed and memory with similar libraries
	@$(BIN)/python -m bench

clean: ## remove everything that these targets created
	rm -rf $(VENV) .cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache bench/.envs dist
