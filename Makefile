# Two commands for a start: `make demo` and `make test`. Both set up what they need in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-client8 check soak bench build clean

demo: $(READY)
	$(BIN)/tailboard demo -o report.html

test: check tests/vega/node_modules
	$(BIN)/python -m pytest

# The Vega versions of Kibana. Without npm the tests that draw panels are skipped, and say so.
tests/vega/node_modules: tests/vega/package-lock.json
	@if command -v npm >/dev/null; then npm ci --prefix tests/vega --silent --no-audit --no-fund && touch $@; else echo "npm is not here: the tests that draw Kibana's panels will be skipped"; fi

# The store with the other major of the client: all of the contract, and what a user sees of failures.
test-client8: .venv8/.ready
	.venv8/bin/python -m pytest tests/store/test_contract.py tests/store/test_queries_doc.py tests/store/test_elastic.py tests/doubles -k "not killed and not at_once and not survived and not third and not correction"

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

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[raw,report,dev]'
	touch $(READY)

.venv8/.ready: pyproject.toml
	$(PYTHON) -m venv .venv8
	.venv8/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[raw,report,dev]' 'elasticsearch>=8.15,<9'
	touch .venv8/.ready

clean:
	rm -rf $(VENV) .venv8 tests/vega/node_modules report.html tailboard.db* build *.egg-info
