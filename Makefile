# `make demo` runs the main job, `make test` passes the tests; each does all set-up itself.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test chaos bench lint wheel clean

demo: $(VENV)/ready
	$(BIN)/python data/demo.py

test: $(VENV)/ready
	$(BIN)/pytest -q -n auto

# Hundreds of kills and races; minutes, not seconds.
chaos: $(VENV)/ready
	$(BIN)/pytest -q -m chaos -s

bench: $(VENV)/ready
	$(BIN)/python bench/run.py $(NAMES)

lint: $(VENV)/lint-ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python

# Builds the wheel, installs it alone beside PyPI's `validators`, and runs it.
wheel: $(VENV)/lint-ready
	$(BIN)/python tests/wheel_check.py

$(VENV)/ready: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, PYTHON=$(PYTHON) is " + sys.version)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --disable-pip-version-check -r requirements.lock
	$(BIN)/pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

$(VENV)/lint-ready: $(VENV)/ready requirements-lint.lock
	$(BIN)/pip install -q --disable-pip-version-check -r requirements-lint.lock
	touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis demo
