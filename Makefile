# make setup       a virtual environment in .venv with the `selftrain` command
# make run         the quick report: out/index.html, the figures of the paper in their quick version
# make paper       every figure of the paper in full, the page of the documentation from it, and its other pictures
# make check       linters, types, and the fast tests
# make test        linters, types, and every test
# make bench       the speed of the engines, measured against other ways
# make docs        the documentation as a site: out/docs/index.html
# make browser     what the tests of the page need: Chromium and its driver, axe-core
# make robustness  thousands of random problems, each confirmed or refused

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --quiet --disable-pip-version-check
READY  := $(VENV)/.ready
TESTED := $(VENV)/.ready-for-tests
WARM   := $(VENV)/.warm
WORKERS ?= 2
AXE    := 4.11.1

.PHONY: setup run paper check test lint format docs bench browser robustness clean

setup: $(WARM)

run: $(READY)
	$(BIN)/python -m selftrain.report --out out

paper: $(READY)
	$(PIP) install --constraint constraints.txt mlxtend
	$(BIN)/selftrain paper run --quick --out out/quick
	$(BIN)/selftrain paper run --out out/paper
	$(BIN)/python -m selftrain.report.document out/paper docs out/quick
	$(BIN)/python -m selftrain.report.pictures docs

check: lint
	$(BIN)/python -m pytest tests -m "not slow" -n $(WORKERS) --dist loadscope --durations 5

test: lint browser
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadscope

lint: $(TESTED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo >/dev/null || $(BIN)/lint-imports --no-logo
	$(BIN)/mypy

format: $(TESTED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY)
	$(PIP) install --constraint constraints.txt --group docs
	$(BIN)/python -m sphinx -W --keep-going -q docs out/docs
	@echo "the documentation is in out/docs/index.html"

bench: $(READY)
	$(BIN)/selftrain bench theory
	$(BIN)/selftrain bench gradients
	$(BIN)/selftrain bench simulation
	$(BIN)/selftrain bench shape
	$(BIN)/selftrain bench sweep
	$(BIN)/selftrain bench estimator
	$(BIN)/selftrain bench memory

robustness: $(READY)
	$(BIN)/python benchmarks/robustness.py

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
	$(PYTHON) -m venv $(VENV)

$(READY): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --upgrade pip
	$(PIP) install --constraint constraints.txt --editable '.[explore]'
	@touch $@

$(WARM): $(READY)
	$(BIN)/selftrain warmup
	@touch $@

# `--group` needs pip 25.1; Python 3.11 brings an older one, hence the upgrade above.
$(TESTED): $(READY)
	$(PIP) install --constraint constraints.txt --group dev
	@touch $@
