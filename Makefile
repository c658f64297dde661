# Everything a developer runs. `make` alone lists the targets. PYTHON chooses the interpreter (3.11 or newer).

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: help demo test lint format oracles bench quality clean
.DEFAULT_GOAL := help

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | awk -F '\t' '{ printf "  make %-8s %s\n", $$1, $$2 }'

demo: $(INSTALLED) ## index the bundled sample home, search it, open what is found, ask the same over MCP
	@$(BIN)/python demo/run.py

test: lint ## everything that CI runs: lint, types, tests
	$(BIN)/python -m pytest -n 3 --dist worksteal

lint: $(INSTALLED) ## check style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(INSTALLED) ## put the source into its format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

oracles: $(INSTALLED) ## hold the MCP server against the protocol's own tools; they come from PyPI and npm
	@$(BIN)/python oracles/run.py

bench: $(INSTALLED) ## measure over HOME_DIR, a home full of session files; with PAGE=docs/performance.md rewrite its tables
	@test -n "$(HOME_DIR)" || { echo "make bench HOME_DIR=DIR: a home folder that holds .claude or .codex" >&2; exit 2; }
	@work=$$(mktemp -d) && trap 'rm -rf "$$work"' EXIT \
	  && $(BIN)/python bench/history.py --home "$(HOME_DIR)" --store "$$work/store" > "$$work/history.json" \
	  && $(BIN)/python bench/mcp.py --store "$$work/store" > "$$work/mcp.json" \
	  && $(BIN)/python bench/tables.py "$$work/history.json" "$$work/mcp.json" $(if $(PAGE),--page "$(PAGE)")

quality: $(INSTALLED) ## measure what is found, over HOME_DIR and the real sessions of REAL_DIR; rewrites the tables of docs/quality.md
	@test -n "$(HOME_DIR)" || { echo "make quality HOME_DIR=DIR [REAL_DIR=DIR]: home folders that hold .claude or .codex" >&2; exit 2; }
	$(BIN)/python bench/quality --home "$(HOME_DIR)" $(if $(REAL_DIR),--real "$(REAL_DIR)") --levers --page docs/quality.md

clean: ## remove what the other targets made
	rm -rf $(VENV) .demo .oracles .mypy_cache .ruff_cache .hypothesis build dist
	find src tests bench demo -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "outcrop needs Python 3.11 or newer; try make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@
