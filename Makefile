PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check --no-input
LOCK_VENV := .cache/lock
PYTEST_ARGS ?=

# A stamp is newer than the lock it installed, so a second `make run` installs nothing.
RUNTIME := $(VENV)/.runtime-installed
DEV := $(VENV)/.dev-installed

.DEFAULT_GOAL := help
.PHONY: help setup run demo test lint format bench bench-labels screenshots mutants lock

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(DEV) ## Install everything, the test tools too, into .venv

run: $(RUNTIME) ## Start the Hub on this machine
	@$(BIN)/python manage.py run

demo: $(RUNTIME) ## Run the whole loop on synthetic comments and print every command
	@$(BIN)/python -m examples.demo

test: lint ## Check style, types and imports, then run every test
	@$(BIN)/python -m pytest -n auto $(PYTEST_ARGS)

lint: $(DEV) ## Check style, types and imports
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo

format: $(DEV) ## Rewrite the code in the house format
	@$(BIN)/ruff check --quiet --fix .
	@$(BIN)/ruff format .

bench: $(RUNTIME) ## Measure the numbers that the design promises
	@$(BIN)/python -m benchmarks

bench-labels: $(RUNTIME) ## Measure how well the offline labeler agrees with people: LABEL_DATA=directory
	@$(BIN)/python -m benchmarks.bench_labels $(LABEL_DATA)

screenshots: $(DEV) ## Make the pictures in docs/screenshots again
	@$(BIN)/python -m pytest -q tests/browser/screenshots.py

mutants: $(DEV) ## Break the rules of the core on purpose and see which breaks no test notices
	@$(BIN)/mutmut run
	@$(BIN)/mutmut results

lock: ## Choose newer versions of what we depend on: make lock UPGRADE=--upgrade
	@$(PYTHON) -m venv $(LOCK_VENV)
	@$(LOCK_VENV)/bin/python -m pip -qq --disable-pip-version-check install --upgrade uv
	@$(call compile,runtime,build)
	@$(call compile,dev,dev,--constraint requirements/runtime.lock)

# $(call compile,name,dependency group,more options)
compile = $(LOCK_VENV)/bin/uv pip compile --quiet pyproject.toml --extra hub --group $(2) --output-file requirements/$(1).lock \
	--universal --python-version 3.11 --generate-hashes --no-emit-index-url --custom-compile-command "make lock" $(UPGRADE) $(3)

# $(call install,name): what the lock names, exactly, and then the project itself, which is built with what the lock brought.
define install
	@echo "Installing the $(1) packages into $(VENV) ..."
	@$(PIP) install --no-compile --no-deps --require-hashes --requirement requirements/$(1).lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
endef

$(RUNTIME): requirements/runtime.lock pyproject.toml | $(BIN)/python
	$(call install,runtime)
	@touch $@

$(DEV): requirements/dev.lock requirements/runtime.lock pyproject.toml | $(BIN)/python
	$(call install,dev)
	@touch $(RUNTIME) $@

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "There is no '$(PYTHON)'. Install Python 3.11 or newer, or name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Hub Learning needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1). Name another: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "'$(PYTHON)' cannot make virtual environments. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }
