# Two commands for a start: `make demo` and `make test`. Both set up what they need in .venv.
# The markers that choose tests are listed in pyproject.toml.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TRIED := $(VENV)/.tried
READY := $(VENV)/.ready
# Programs that tests start need not be compiled each time, wherever that was asked for.
export PYTHONDONTWRITEBYTECODE :=
# A test that hangs fails by name with what it was doing: once CI was ended by its limit, and nobody knew why.
HANGS := -o faulthandler_timeout=300 -o faulthandler_exit_on_timeout=true
# One more than there are cores, as tests also wait; four at most.
SPREAD := -n $(shell cores=$$(nproc 2>/dev/null || echo 2); echo $$((cores < 4 ? cores + 1 : 4))) --dist worksteal $(HANGS)

.PHONY: demo test test-all test-numpy test-real oldest check soak bench bench-trend build wheel audit clean

# What a user needs, and no more: what tests need takes twice as long to install.
demo: $(TRIED)
	$(BIN)/tailboard demo -o report.html

test: check tests/vega/node_modules
	$(BIN)/python -m pytest $(SPREAD) -m "not slow and not soak"

# All of the above and the slow tests: what decides.
test-all: check tests/vega/node_modules
	TAILBOARD_ALL=1 $(BIN)/python -m pytest $(SPREAD) -m "not soak"

# The Vega versions of Kibana. Without npm the tests that draw panels are skipped, and say so.
tests/vega/node_modules: tests/vega/package-lock.json
	@if command -v npm >/dev/null; then npm ci --prefix tests/vega --silent --no-audit --no-fund && touch $@; else echo "npm is not here: the tests that draw Kibana's panels will be skipped"; fi

# Readers and questions without the loops in C: what is installed where there is no compiler.
test-numpy: $(READY)
	TAILBOARD_NUMPY=1 $(BIN)/python -m pytest $(SPREAD) -m "not slow and not soak" tests/read tests/query tests/any tests/test_kernel.py

# The store on the other major, 8.19, as a double and as a real node of Maven Central: its contract, faults, kills.
test-real: $(READY)
	$(BIN)/python -m tests.real.node $(BIN)/python -m pytest $(SPREAD) -m "contract and not ordeal and not slow and not soak" -k "not sqlite" tests/store tests/any tests/real

# The quick tests with the oldest libraries that pyproject.toml allows. test_start counts imports, which are those of the newest.
oldest: .venv-oldest/.ready tests/vega/node_modules
	.venv-oldest/bin/python -m pytest $(SPREAD) -m "not slow and not soak" --ignore tests/cli/test_start.py

.venv-oldest/.ready: pyproject.toml .ci/oldest.py
	$(PYTHON) -m venv .venv-oldest
	$(PYTHON) .ci/oldest.py pyproject.toml > .venv-oldest/requirements.txt
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check --requirement .venv-oldest/requirements.txt
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m tools.build --check

soak: $(READY)
	TAILBOARD_SOAK=1 $(BIN)/python -m pytest -o addopts='--strict-markers -q --import-mode=importlib'

bench: $(READY)
	$(BIN)/python -m pip install --quiet pandas
	$(BIN)/python benchmarks/run.py

# Change points of `trend` beside Apache Otava's.
bench-trend: $(READY) .venv-otava/.ready
	$(BIN)/python benchmarks/verdicts_trend.py

.venv-otava/.ready:
	$(PYTHON) -m venv .venv-otava
	.venv-otava/bin/python -m pip install --quiet --disable-pip-version-check apache-otava==0.8.0
	touch $@

build: $(READY)
	$(BIN)/python -m tools.build

# The wheel, used as somebody does who has no checkout.
wheel: $(READY)
	.ci/wheel $(CURDIR)/$(BIN)/python

# Known vulnerabilities, and a bill of materials in build/. AUDIT=--strict: what could not be looked up is an error, too.
audit: $(READY) .venv-audit/.ready
	.venv-audit/bin/python .ci/audit.py $(VENV) build/sbom.cdx.json $(AUDIT)

.venv-audit/.ready: .ci/audit-requirements.txt
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/python -m pip install --quiet --disable-pip-version-check --requirement .ci/audit-requirements.txt
	touch $@

# Where there is a compiler the loops in C are built into the checkout; all works without them.
$(TRIED): pyproject.toml hatch_build.py ingest/core/kernel.c
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[fast]'
	touch $(TRIED)

$(READY): $(TRIED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[fast,dev]'
	touch $(READY)

clean:
	rm -rf ingest/core/_kernel.abi3.so $(VENV) .venv-audit .venv-oldest .venv-otava tests/vega/node_modules report.html demo.db* tailboard.db* build *.egg-info
