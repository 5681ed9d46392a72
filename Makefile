# Two commands for a start: `make demo` and `make test`. Both set up what they need in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# One more than there are cores, as tests also wait; four at most.
SPREAD := -n $(shell cores=$$(nproc 2>/dev/null || echo 2); echo $$((cores < 4 ? cores + 1 : 4))) --dist worksteal

.PHONY: demo test test-client8 check soak bench build audit clean

demo: $(READY)
	$(BIN)/tailboard demo -o report.html

test: check tests/vega/node_modules
	$(BIN)/python -m pytest $(SPREAD)

# The Vega versions of Kibana. Without npm the tests that draw panels are skipped, and say so.
tests/vega/node_modules: tests/vega/package-lock.json
	@if command -v npm >/dev/null; then npm ci --prefix tests/vega --silent --no-audit --no-fund && touch $@; else echo "npm is not here: the tests that draw Kibana's panels will be skipped"; fi

# The store with the other major of the client: all of the contract, and what a user sees of failures.
test-client8: .venv8/.ready
	.venv8/bin/python -m pytest $(SPREAD) tests/store/test_contract.py tests/store/test_queries_doc.py tests/store/test_elastic.py tests/store/test_coarsening.py tests/store/test_export.py tests/doubles -k "not killed and not at_once and not survived and not third and not correction"

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/tailboard build --check

soak: $(READY)
	TAILBOARD_SOAK=1 $(BIN)/python -m pytest -o addopts='--strict-markers -q --import-mode=importlib'

bench: $(READY)
	$(BIN)/python -m pip install --quiet pandas
	$(BIN)/python benchmarks/run.py

build: $(READY)
	$(BIN)/tailboard build

# Known vulnerabilities, and a bill of materials in build/. AUDIT=--strict: what could not be looked up is an error, too.
audit: $(READY) .venv-audit/.ready
	.venv-audit/bin/python .ci/audit.py $(VENV) build/sbom.cdx.json $(AUDIT)

.venv-audit/.ready: .ci/audit-requirements.txt
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/python -m pip install --quiet --disable-pip-version-check --requirement .ci/audit-requirements.txt
	touch $@

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[raw,report,serve,dev]'
	touch $(READY)

.venv8/.ready: pyproject.toml
	$(PYTHON) -m venv .venv8
	.venv8/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[raw,report,serve,dev]' 'elasticsearch>=8.15,<9'
	touch .venv8/.ready

clean:
	rm -rf $(VENV) .venv8 .venv-audit tests/vega/node_modules report.html tailboard.db* build *.egg-info
