# `make help` lists the targets. Two environments share .venv: venv is enough for run and test, venv-all holds everything.
.PHONY: help venv venv-all run test test-rest test-all test-network test-times lint docs fuzz kernels-table kernels-diff bench clean
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
# An environment that forbids byte code makes each start of rocmend compile its modules and parse its entries: a second, not 0.2.
export PYTHONDONTWRITEBYTECODE :=
LEAN := .venv/.ready
ALL := .venv/.ready-all
# What is there stays: a full environment serves the targets that need only a lean one.
READY := $(if $(wildcard $(ALL)),$(ALL),$(LEAN))
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# In their order: by the number of tests a file of one long test would come last, and leave the other process idle.
PYTEST = $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -q

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: $(READY) ## prepare .venv for run and test (150 MB; tests that need torch are skipped)

venv-all: $(ALL) ## prepare .venv for everything: torch, Triton, MLX, compilers, lint, docs, fuzz (3.2 GB)

$(LEAN) $(ALL): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("rocmend needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv .venv
	$(PIP) -e '.[$(if $(filter $(ALL),$@),dev,test)]'
	touch $(LEAN) $@

# check leaves with 1 where it has findings: that is a result, not a failure.
run: $(READY) ## check this machine and two captured ones, port an example; HTML reports in reports/
	@mkdir -p reports
	@$(BIN)/rocmend check -o reports/this-machine.html || [ $$? -eq 1 ]
	@$(BIN)/rocmend demo strix-halo -o reports/strix-halo.html || [ $$? -eq 1 ]
	@$(BIN)/rocmend demo rx-5600-xt -o reports/rx-5600-xt.html || [ $$? -eq 1 ]
	@$(BIN)/rocmend check src/rocmend/examples/cuda/warp-attention --target gfx1151 --no-probe -o reports/ported-example.html || [ $$? -eq 1 ]

test: $(READY) ## run the fast tier of the tests
	$(PYTEST) --tier fast

test-rest: $(ALL) ## run the tests that are not in the fast tier
	$(PYTEST) --tier rest

test-all: $(ALL) ## run all tests: test and test-rest
	$(PYTEST) --tier all

test-network: $(ALL) ## run the tests that download packages or start containers; these wait much and need one process
	$(BIN)/python -m pytest -q -m "(network or container) and not large" \
	  $$(grep -rlE 'mark\.(network|container)' tests --include='*.py')

test-times: $(READY) ## run the fast tier and print what its folders, files and tests cost
	$(PYTEST) --tier fast --times

lint: $(ALL) ## ruff, mypy, import directions, knowledge entries
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/rocmend kb lint

docs: $(ALL) ## build the documentation
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

fuzz: $(ALL) ## give 20,000 mutated inputs to each reader of what a stranger may have written
	$(BIN)/python -m fuzz

# leaves with 1 where it has findings: they stand in the table.
kernels-table: $(ALL) ## compile every kernel for eleven gfx targets and write the table that is a page of the documentation
	$(BIN)/rocmend kernels compile --fetch-triton 3.7.0
	@$(BIN)/rocmend kernels compile --subset table --write docs/reference/kernels-compiled.json || [ $$? -eq 1 ]

kernels-diff: $(ALL) ## compile a part of the kernels and compare with that table
	$(BIN)/rocmend kernels compile --subset fast --diff docs/reference/kernels-compiled.json

bench: $(READY) ## time doctor and wheel inspect
	$(BIN)/python benchmarks/doctor.py
	$(BIN)/python benchmarks/wheel_inspect.py

clean: ## remove .venv and what was built
	rm -rf .venv reports docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
