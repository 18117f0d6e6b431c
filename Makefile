# make run         the first page: out/index.html, the headline and the examples of the README (a minute)
# make setup       a virtual environment in .venv with the `selftrain` command, `selftrain explore` included
# make report      the figures of the paper in their quick version: out/report/index.html (some minutes)
# make paper       every figure of the paper in full, the page of the documentation from it, and its other pictures
# make check       linters, types, and the fast tests
# make test        linters, types, and every test
# make bench       the speed of the engines against other ways: docs/benchmarks.md (half an hour, quiet machine)
# make bench-check measures again, and names what became slower than on that page
# make coverage    the lines of src that neither a test nor a benchmark reaches (three quarters of an hour)
# make wheel       wheel and source archive in dist/
# make wheel-check the same, checked, and the wheel run in an environment of its own
# make docs        the documentation as a site: out/docs/index.html
# make browser     what the tests of the page need: Chromium and its driver, axe-core
# make robustness  thousands of random problems, each confirmed or refused

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --quiet --disable-pip-version-check
READY  := $(VENV)/.ready
PAGE   := $(VENV)/.ready-for-explore
TESTED := $(VENV)/.ready-for-tests
WARM   := $(VENV)/.warm
WORKERS ?= 2
CONSTRAINTS ?= constraints.txt
AXE    := 4.11.1
MAIN_RESULTS := heuristics relative-error ablation annealing cosine

.PHONY: setup run report paper check fast test lint format docs bench bench-check coverage wheel wheel-check browser robustness clean

setup: $(WARM)

run: $(READY)
	@$(BIN)/python -m pages.first README.md --out out

# The main results, which need no simulation, come first: the page has them after a minute.
report: $(READY)
	$(BIN)/selftrain paper run $(MAIN_RESULTS) --quick --out out/report
	$(BIN)/selftrain paper run --quick --out out/report

paper: $(READY)
	$(PIP) install --constraint $(CONSTRAINTS) mlxtend
	$(BIN)/selftrain paper run --quick --out out/quick
	$(BIN)/selftrain paper run --out out/paper
	$(BIN)/python -m pages.paper_pages out/paper docs out/quick
	$(BIN)/python -m pages.pictures docs

check: $(TESTED)
	@$(MAKE) --no-print-directory --jobs 2 --output-sync lint fast

fast: $(TESTED)
	$(BIN)/python -m pytest tests -m "not slow" -n $(WORKERS) --dist worksteal --durations 5

# Kernels are compiled next to the linters, so that two processes of the tests do not both do it.
test: $(TESTED) browser
	@$(MAKE) --no-print-directory --jobs 2 --output-sync lint $(WARM)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadscope

lint: $(TESTED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo >/dev/null || $(BIN)/lint-imports --no-logo
	$(BIN)/mypy

format: $(TESTED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(TESTED)
	$(PIP) install --constraint $(CONSTRAINTS) --group docs
	$(BIN)/python -m sphinx -W --keep-going -q docs out/docs
	@echo "the documentation is in out/docs/index.html"

bench: $(TESTED)
	$(BIN)/python -m benchmarks all --out docs

bench-check: $(TESTED)
	$(BIN)/python -m benchmarks check --against docs/benchmarks.json

coverage: $(TESTED) browser
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadscope --cov --cov-report=
	mkdir -p out/bench
	$(BIN)/python -m coverage run -m benchmarks all --out out/bench
	$(BIN)/python -m coverage combine --append --quiet
	$(BIN)/python -m coverage report

wheel: $(READY)
	$(PIP) install --constraint $(CONSTRAINTS) build
	rm -rf dist
	$(BIN)/python -m build --outdir dist

# Outside the clone, so that nothing but the wheel can be imported.
wheel-check: wheel
	$(PIP) install --constraint $(CONSTRAINTS) twine
	$(BIN)/python -m twine check --strict dist/*
	rm -rf build/wheel && $(PYTHON) -m venv build/wheel
	build/wheel/bin/python -m pip --quiet install dist/*.whl
	cd build/wheel && bin/selftrain --version
	cd build/wheel && bin/selftrain solve --alpha-l 0.5 --alpha-u 2 --rho 0.4 --delta 0.5625 --steps 16 --json >/dev/null
	cd build/wheel && ! bin/python -c 'import benchmarks' 2>/dev/null

robustness: $(READY)
	$(BIN)/python -m benchmarks robustness --docs docs/numerics-evidence.md

browser: $(VENV)/axe/node_modules/axe-core/package.json
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null \
	  || { apt-get -qq update && apt-get -qq install -y chromium chromium-driver >/dev/null; } \
	  || { echo "the tests of the page need chromium and chromedriver on the path"; exit 1; }

$(VENV)/axe/node_modules/axe-core/package.json: | $(BIN)/python
	npm install --silent --no-package-lock --prefix $(VENV)/axe axe-core@$(AXE)

clean:
	rm -rf $(VENV) out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "selftrain needs Python 3.11 or newer: make PYTHON=python3.11 ..."; exit 1; }
	@echo "Creating $(VENV) with $(PYTHON)."
	@$(PYTHON) -m venv $(VENV)

# pip would compile all modules, on one core. What pip says is the progress of the first minute.
$(READY): pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	@echo "Installing selftrain and the packages it needs into $(VENV), once (200 MB)."
	@$(BIN)/python -m pip --disable-pip-version-check install --no-compile --constraint $(CONSTRAINTS) --editable .
	@echo "Compiling their modules."
	-@$(BIN)/python -m compileall -qq -j 0 -x '/tests?/' $(VENV)/lib src
	@touch $@

$(PAGE): $(READY)
	$(PIP) install --no-compile --constraint $(CONSTRAINTS) --editable '.[explore]'
	@touch $@

$(WARM): $(PAGE)
	$(BIN)/selftrain warmup
	@touch $@

# `--group` needs pip 25.1; Python 3.11 brings an older one.
$(TESTED): $(PAGE)
	$(PIP) install --upgrade pip
	$(PIP) install --constraint $(CONSTRAINTS) --group dev
	@touch $@
