# make venv   prepares .venv with everything
# make run    checks this machine and two captured ones, ports and proves an example, and leaves HTML reports in reports/
# make test   runs the tests
# make fuzz   gives 20,000 mutated inputs to each reader of what a stranger may have written (python -m fuzz --help: more)
# make kernels-table  compiles every kernel for nine gfx targets and writes the table that is a page of the documentation
.PHONY: venv run test lint docs fuzz kernels-table kernels-diff bench clean
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready

venv: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("rocmend needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,lint,docs,fuzz,torch,triton,mlx,compile]'
	touch $(STAMP)

# check leaves with 1 where it has findings: that is a result, not a failure.
run: $(STAMP)
	@mkdir -p reports
	@$(BIN)/rocmend check -o reports/this-machine.html || [ $$? -eq 1 ]
	@$(BIN)/rocmend demo strix-halo -o reports/strix-halo.html || [ $$? -eq 1 ]
	@$(BIN)/rocmend demo rx-5600-xt -o reports/rx-5600-xt.html || [ $$? -eq 1 ]
	@$(BIN)/rocmend check src/rocmend/examples/cuda/warp-attention --target gfx1151 --no-probe -o reports/ported-example.html || [ $$? -eq 1 ]

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadfile -q

lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/rocmend kb lint

docs: $(STAMP)
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

fuzz: $(STAMP)
	$(BIN)/python -m fuzz

# leaves with 1 where it has findings: they stand in the table.
kernels-table: $(STAMP)
	$(BIN)/rocmend kernels compile --fetch-triton 3.7.0
	@$(BIN)/rocmend kernels compile --subset table --write docs/reference/kernels-compiled.json || [ $$? -eq 1 ]

kernels-diff: $(STAMP)
	$(BIN)/rocmend kernels compile --subset fast --diff docs/reference/kernels-compiled.json

bench: $(STAMP)
	$(BIN)/python benchmarks/doctor.py
	$(BIN)/python benchmarks/wheel_inspect.py

clean:
	rm -rf .venv reports docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
