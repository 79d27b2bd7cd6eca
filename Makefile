# SPDX-License-Identifier: MIT
# Everything is installed into $(VENV); nothing outside it is touched.
PYTHON ?= python3
VENV   ?= .venv
# What is installed as torch, unless $(PYTHON) already has one. Add pip options to choose an index or a build.
TORCH  ?= torch==2.13.0
PYTEST_ARGS ?=
COUNT ?= 2000

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
.DEFAULT_GOAL := help
.PHONY: help setup demo test fuzz vendor docs lint types check tox clean
.DELETE_ON_ERROR:

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.base ## Make the virtual environment and install the package into it

demo: $(VENV)/.base ## Run overlapped AllGather-GEMM on 4 PEs of this CPU and draw its timeline
	$(BIN)/python examples/demo.py -n 4

test: $(VENV)/.extra-test ## Run all tests (PYTEST_ARGS="-k heap" to choose)
	$(BIN)/python -m pytest -n auto $(PYTEST_ARGS)

fuzz: $(VENV)/.extra-test ## Run COUNT (2000) random kernels, and broken IR texts
	$(BIN)/python -m tests.fuzz --count $(COUNT)

vendor: $(VENV)/.extra-vendor-tools ## Install vendors' compilers that run on any CPU: their tests are skipped without

lint: $(VENV)/.extra-dev ## Check style and formatting rules with ruff
	$(BIN)/ruff check .

docs: $(VENV)/.base ## Fill the generated parts of docs/
	$(BIN)/python docs/generate.py

types: $(VENV)/.extra-dev ## Check types with pyright
	$(BIN)/pyright --pythonpath $(BIN)/python

check: lint types test ## Run lint, types and test

tox: $(VENV)/.extra-dev ## Run the tests on every supported Triton
	$(BIN)/tox run $(TOX_ARGS)

clean: ## Remove the virtual environment and all caches
	rm -rf $(VENV) .tox .pytest_cache .ruff_cache .hypothesis build dist out *.egg-info

# A torch that $(PYTHON) already has is reused: it is large, and may be a vendor's build.
$(BIN)/python:
	@if $(PYTHON) -c 'import sys, importlib.util as u; sys.exit(u.find_spec("torch") is None)'; then \
		$(PYTHON) -m venv --system-site-packages $(VENV); \
	else \
		$(PYTHON) -m venv $(VENV) && echo "installing $(TORCH)" && $(PIP) $(TORCH); \
	fi

$(VENV)/.base: pyproject.toml $(BIN)/python
	@echo "installing triton-dist-sdk"
	@$(PIP) --editable .
	@touch $@

$(VENV)/.extra-%: $(VENV)/.base
	@echo "installing triton-dist-sdk[$*]"
	@$(PIP) --editable '.[$*]'
	@touch $@
