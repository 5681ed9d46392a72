# Two commands for a start: `make demo` and `make test`. Both set up what they need in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test check soak bench build clean

demo: $(READY)
	$(BIN)/tailboard demo -o report.html

test: check
	$(BIN)/python -m pytest

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
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[report,dev]'
	touch $(READY)

clean:
	rm -rf $(VENV) report.html tailboard.db* build *.egg-info
