# On a fresh clone: `make demo`, `make test` and `make site`. Each makes its own environment.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test slow lint site clean

demo: $(VENV)/installed
	$(BIN)/proxlearn demo --out demo
	$(BIN)/proxlearn play --out demo/playground

test: $(VENV)/installed
	$(BIN)/pytest -n 2 --dist loadfile

slow: $(VENV)/installed
	$(BIN)/pytest -m slow

lint: $(VENV)/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

site: $(VENV)/installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) demo site
