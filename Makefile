# What a newcomer runs: `make demo` and `make test`. Both set up what they need.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Three tests on two cores, since many of them wait for a program; a file's tests stay together,
# and tests/conftest.py says which files come first.
PARALLEL := --numprocesses=$(shell echo $$((3 * $$(nproc 2>/dev/null || echo 2) / 2))) --dist=loadfile --no-loadscope-reorder

.PHONY: help setup demo test check format snapshots soak bench system node page clean

help: ## show what can be made
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(READY) ## make .venv and install bridle with everything its tests need

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("bridle needs Python 3.11 or newer: make PYTHON=python3.12 setup" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable . --group dev
	@touch $(READY)

system: ## install the system packages that tests need, where that is possible
	@PATH="$(BIN):$$PATH" scripts/system-packages ripgrep bubblewrap chromium tmux zsh fish

node: ## install the npm packages that tests need into .cache/node and .cache/web
	@scripts/node-packages
	@scripts/build-page packages

page: ## build the page (web/) into src/bridle/server/page
	@scripts/build-page

demo: setup ## a scripted model mends a failing test with the real tools; no key needed
	@$(BIN)/bridle demo

# Where bytecode may not be kept, each of the processes would compile every test anew.
test: setup system node ## run all tests
	@env -u PYTHONDONTWRITEBYTECODE $(BIN)/python scripts/run-tests $(PARALLEL)

check: setup format ## format, lint, types, layers, and then all tests
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@$(MAKE) --no-print-directory test

format: setup
	$(BIN)/ruff format --check .

snapshots: setup ## keep the screens of the terminal as they look now (tests/tui/snapshots)
	@SNAPSHOTS=renew $(BIN)/python -m pytest tests/tui/test_snapshots.py
	@git status --short -- tests/tui/snapshots

soak: setup system node ## the long seeded runs, of which `make test` takes a tenth
	@env -u PYTHONDONTWRITEBYTECODE BRIDLE_SOAK=1 $(BIN)/python scripts/run-tests $(PARALLEL) --timeout=3600

bench: setup ## compare with peers on the same work, in one run
	@$(BIN)/python -m bench

clean: ## remove what was made
	rm -rf $(VENV) .cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache bench/.envs dist
