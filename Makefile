# Everything a fresh machine needs is Python 3.11 or newer, pip and make.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# The server of the release line before, for the tests that need two versions side by side.
OLD_VENV = .venv-2.5
OLD_SERVER = cpersona==2.5.12

.PHONY: demo test lint docs bench clean

demo: $(VENV)/.demo
	$(BIN)/python -m examples.demo

test: $(VENV)/.test $(OLD_VENV)/.done lint
	$(BIN)/python -m coverage erase
	CPERSONA_CLI_TEST_OLD_SERVER=$(CURDIR)/$(OLD_VENV)/bin/python $(BIN)/python -m pytest -n auto --dist loadgroup --cov --cov-report=
	$(BIN)/python -m coverage report

lint: $(VENV)/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.test
	PYTHONPATH=tests $(BIN)/python -m support.docs

bench: $(VENV)/.test
	$(BIN)/python -m benchmarks.startup

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[demo]'
	touch $@

$(VENV)/.test: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	touch $@

$(OLD_VENV)/.done:
	$(PYTHON) -m venv $(OLD_VENV)
	$(OLD_VENV)/bin/python -m pip install --quiet --disable-pip-version-check '$(OLD_SERVER)'
	touch $@

clean:
	rm -rf $(VENV) $(OLD_VENV) .coverage* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
