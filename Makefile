# distlearn: `make book` builds the book, `make test` passes the tests. Each sets up what it needs
# and re-runs only what changed; `make help` lists the rest.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMPS := $(VENV)/stamps
export PYTHONUTF8 = 1
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Hundreds of processes import the same modules, which the set-up leaves to them to compile: once.
export PYTHONDONTWRITEBYTECODE =

library   := $(shell find distlearn -type f -not -path '*/__pycache__/*' 2>/dev/null)
chapters  := $(shell find book -type f -not -path 'book/_build/*' -not -path '*/__pycache__/*' \
               -not -path '*/.ipynb_checkpoints/*' 2>/dev/null)
solutions := $(wildcard solutions/*.ipynb)
exercises := $(wildcard exercises/*.ipynb)
tests     := $(shell find tests -type f -not -path '*/__pycache__/*' 2>/dev/null)
page      := book/_build/html/index.html

.DEFAULT_GOAL := help
.PHONY: help setup book test lab check exercises browser bench clean distclean
.DELETE_ON_ERROR:

help:  ## list what make can do
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(STAMPS)/setup  ## create .venv with everything pinned in requirements.lock

# The lock is whole, so pip need not look what its packages want; Python compiles what it imports.
$(STAMPS)/setup: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: distlearn needs Python >= 3.11; $(PYTHON) is `$(PYTHON) --version 2>&1`. Try: make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "Setting up $(VENV) (once; a minute or two)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --no-deps --no-compile --requirement requirements.lock
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@mkdir -p $(VENV)/share/jupyter/lab/settings $(STAMPS)
	@cp book/jupyterlab-overrides.json $(VENV)/share/jupyter/lab/settings/overrides.json
	@touch $@

# What only contributors need: linters and the browser's driver.
$(STAMPS)/tools: $(STAMPS)/setup requirements-tools.lock
	@$(BIN)/python -m pip install --quiet --requirement requirements-tools.lock
	@touch $@

book: $(page)  ## build the executed HTML book and print its path
	@echo "The book: file://$(CURDIR)/$(page)"

# Chapters run again when the library they import has changed: book/_ext/distlearn_book.py. Styles and
# scripts reach pages that did not change only with --all.
$(page): $(STAMPS)/setup $(library) $(chapters) $(exercises)
	@$(BIN)/jupyter-book build book -W -n --keep-going $(if $(filter book/assets/%,$?),--all) $(BOOKFLAGS)
	@touch $@

test: $(STAMPS)/test $(STAMPS)/nbval  ## run pytest, and nbval on the solutions
	@echo "All tests pass (unchanged files are not tested again; 'make -B test' does)."

$(STAMPS)/test: $(STAMPS)/setup $(library) $(tests) $(solutions) $(exercises) $(chapters)
	@$(BIN)/python -m pytest -m "not browser" -p no:nbval --numprocesses 2 --dist worksteal
	@touch $@

$(STAMPS)/nbval: $(STAMPS)/setup $(library) $(solutions)
	@$(BIN)/python -m pytest --nbval-lax --numprocesses 2 --dist loadfile solutions
	@touch $@

lab: $(STAMPS)/setup $(if $(solutions),exercises)  ## open JupyterLab on the exercises and the chapters
	@$(BIN)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) \
	  --ServerApp.root_dir="$(CURDIR)" --LabApp.default_url=/lab/tree/exercises $(LABFLAGS)

exercises: $(STAMPS)/exercises  ## generate exercises/ from solutions/
$(STAMPS)/exercises: $(STAMPS)/setup $(solutions) $(library)
	@$(BIN)/distlearn release
	@touch $@

check: $(STAMPS)/tools  ## ruff, mypy --strict, import layers, exercises in step with solutions
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/distlearn release --check

browser: $(STAMPS)/tools $(page)  ## drive the built book in headless Chromium
	@$(BIN)/python -m pytest -m browser -p no:nbval --numprocesses 2 tests

bench: $(STAMPS)/setup  ## speed, as ratios against peers and floors
	@$(BIN)/python -m benchmarks

clean:  ## remove what was built, keep .venv
	@rm -rf book/_build build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@rm -f $(STAMPS)/test $(STAMPS)/nbval $(STAMPS)/exercises
	@find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +

distclean: clean  ## remove .venv as well
	@rm -rf $(VENV)
