# The whole developer interface. Everything runs in an environment of its own; nothing else is touched.
#   make demo     install, then train, score and explain on real film reviews
#   make test     lint, types, tests, browser tests
#   make figures  compute, draw and check every figure, into figures/
#   make verify   run every theorem;  make mutants: break the formulas, see which claims notice
#   make fuzz     a million hostile inputs, up to an hour;  make crash: six hundred kills (see docs/reliability.md)
#   make bench    beside fastText, scikit-learn, LIME and SHAP; writes docs/benchmarks.md;  also bench-quick, bench-margins
#   make test-lowest   the core tests with the oldest libraries allowed;  make audit: known vulnerabilities
#   make wheel    build a release twice, compare, try it in a new environment, say how large it is;  also wheel-quick
#   make changes  the news of the next release
#   make screenshots   every view of the page at three widths, light and dark, into build/screenshots
#   make docs     this documentation as a site, into build/docs; theorems and figures are run on the way
#   make lint types format coverage clean
#   make PYTHON=python3.12 VENV=.venv312 test     with another Python, in another environment

PYTHON ?= python3
VENV ?= .venv
BENCH := $(VENV)-bench
LOWEST := $(VENV)-lowest
RELEASE := $(VENV)-release
DOCS := $(VENV)-docs
QUICK := build/bench-quick
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

# The tests start many processes, which need not compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: verify mutants fuzz crash demo test lint types format coverage bench bench-quick bench-margins figures clean check-python
.PHONY: test-lowest audit wheel wheel-quick changes release-notes docs screenshots

demo: $(VENV)/.demo
	$(BIN)/keytokens demo

figures: $(VENV)/.plot
	$(BIN)/keytokens figure --all -o figures

test: lint types $(VENV)/.dev
	$(BIN)/python -m pytest -q -n 2 --dist loadfile

lint: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(VENV)/.dev
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

coverage: $(VENV)/.dev
	$(BIN)/python -m pytest -q -n 2 --dist loadfile --cov --cov-report=term-missing:skip-covered

# Peers in text, then the page docs/benchmarks.md: about half an hour on two quiet cores. KEYTOKENS_DATA names the data.
bench: $(BENCH)/.ready
	$(BENCH)/bin/python -m benchmarks.machine
	$(BENCH)/bin/python -m benchmarks.evaluation
	$(BENCH)/bin/python -m benchmarks.explaining
	$(BENCH)/bin/python -m benchmarks.faithfulness
	$(BENCH)/bin/python -m benchmarks.speed
	$(BENCH)/bin/python -m benchmarks.scaling
	$(BENCH)/bin/python -m benchmarks.accuracy
	$(BENCH)/bin/python -m benchmarks.frontier --folds 2
	$(BENCH)/bin/python -m benchmarks.small
	$(BENCH)/bin/python -m benchmarks.autotune
	$(BENCH)/bin/python -m benchmarks.page

# The same on a few texts, into build/: it shows that everything runs, and its figures mean nothing.
bench-quick: $(BENCH)/.ready
	$(BENCH)/bin/python -m benchmarks.machine --output $(QUICK)
	$(BENCH)/bin/python -m benchmarks.evaluation --quick --output $(QUICK)
	$(BENCH)/bin/python -m benchmarks.explaining --quick --output $(QUICK)
	$(BENCH)/bin/python -m benchmarks.speed --quick --output $(QUICK)
	$(BENCH)/bin/python -m benchmarks.scaling --quick --output $(QUICK)
	$(BENCH)/bin/python -m benchmarks.accuracy --quick --output $(QUICK)
	$(BENCH)/bin/python -m benchmarks.page --results $(QUICK) --output $(QUICK)/benchmarks.md

# Solvers, descents and bags of vectors beside their own peers; needs PyTorch.
bench-margins: $(BENCH)/.margins
	$(BENCH)/bin/python -m benchmarks.svm
	$(BENCH)/bin/python -m benchmarks.matrix
	$(BENCH)/bin/python -m benchmarks.descents
	$(BENCH)/bin/python -m benchmarks.bags

# What a prediction or a proof depends on, and the commands; pages and figures are left to the newest libraries.
test-lowest: $(LOWEST)/.ready
	$(LOWEST)/bin/python -m pytest -q -n 2 --dist loadfile tests/base tests/io tests/text tests/model \
	  tests/training tests/proof tests/estimators tests/app/cli tests/lab/svm tests/lab/descent tests/test_supply.py

# Needs the network. Says so where the advisory service is not reachable, and then fails.
audit: $(VENV)/.dev $(RELEASE)/.audit
	$(RELEASE)/bin/python tools/audit.py $(BIN)/python

wheel: $(RELEASE)/.ready
	$(RELEASE)/bin/python tools/wheel.py dist

# Half a minute: the wheel alone is tried, and nothing is measured.
wheel-quick: $(RELEASE)/.ready
	$(RELEASE)/bin/python tools/wheel.py dist --quick

screenshots: $(VENV)/.dev
	PYTHONPATH=. $(BIN)/python tools/screenshots.py

changes: $(BIN)/python
	$(BIN)/python tools/changes.py

release-notes: $(BIN)/python
	$(BIN)/python tools/changes.py --release

# Offline once its environment stands. Warnings are errors.
docs: $(DOCS)/.ready
	rm -rf build/docs
	OMP_NUM_THREADS=1 $(DOCS)/bin/sphinx-build -q -n -W --keep-going -E -b html -d build/doctrees docs build/docs
	@echo "docs: build/docs/index.html, $$(find build/docs -name '*.html' | wc -l) pages"

verify: $(VENV)/.dev
	$(BIN)/keytokens verify

mutants: $(VENV)/.dev
	$(BIN)/python -W ignore -m tests.lab.claims.mutants

fuzz: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz --inputs 1000000 --seed 2

crash: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.crash --kills 600

clean:
	rm -rf $(VENV) $(BENCH) $(LOWEST) $(RELEASE) $(DOCS) dist build .pytest_cache .mypy_cache .ruff_cache .coverage keytokens-demo figures docs/generated

check-python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "make: $(PYTHON) is missing or older than 3.11; install Python 3.11 or newer, or name one: make PYTHON=python3.12 ..." >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "make: $(PYTHON) has no venv module; install it (Debian: apt install python3-venv)" >&2; exit 2; }

$(BIN)/python:
	@$(MAKE) --no-print-directory check-python
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade "pip>=25.1"

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(PIP) install --editable ".[demo]"
	@touch $@

$(VENV)/.plot: pyproject.toml | $(BIN)/python
	$(PIP) install --editable ".[plot]"
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(PIP) install --editable ".[all]" --group dev
	@touch $@ $(VENV)/.demo $(VENV)/.plot

$(BENCH)/.ready: pyproject.toml benchmarks/requirements.txt
	@$(MAKE) --no-print-directory check-python
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip --quiet --disable-pip-version-check install --editable . -r benchmarks/requirements.txt
	@touch $@

$(LOWEST)/.ready: pyproject.toml
	@$(MAKE) --no-print-directory check-python
	$(PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python -m pip --quiet --disable-pip-version-check install uv
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct --editable ".[all]" --group test
	@touch $@

$(RELEASE)/.ready: pyproject.toml
	@$(MAKE) --no-print-directory check-python
	$(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip --quiet --disable-pip-version-check install "hatchling>=1.26"
	@touch $@

$(RELEASE)/.audit: $(RELEASE)/.ready
	$(RELEASE)/bin/python -m pip --quiet --disable-pip-version-check install pip-audit
	@touch $@

$(DOCS)/.ready: pyproject.toml
	@$(MAKE) --no-print-directory check-python
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip --quiet --disable-pip-version-check install --upgrade "pip>=25.1"
	$(DOCS)/bin/python -m pip --quiet --disable-pip-version-check install --editable ".[all]" --group docs
	@touch $@

$(BENCH)/.margins: benchmarks/requirements-margins.txt $(BENCH)/.ready
	$(BENCH)/bin/python -m pip --quiet --disable-pip-version-check install -r benchmarks/requirements-margins.txt
	@touch $@
