# What a newcomer types. `make demo`: install and run the main job. `make test`: every test.
#
# PYTHON   the interpreter to make the virtual environment with
# VENV     where it is

PYTHON ?= python3
VENV   ?= .venv

python := $(VENV)/bin/python
# Which build directory setup.py uses: one a Python version.
tag     = $(shell $(python) -c 'import sys; print("cp%d%d" % sys.version_info[:2] + sys.abiflags)')
build   = build/$(tag)
run     = PYTHONPATH=python $(python)

.PHONY: demo test build c-tests python-tests stubs lint check check-static check-warnings check-asan check-faults check-fuzz check-poisoned check-threads check-wheel fuzz fuzz-build bench clean

demo: $(VENV)/.demo
	cd / && $(abspath $(python)) -m cuda_core.demo

# Not editable: the demo runs what a user would have installed.
$(VENV)/.demo: $(VENV)/.venv pyproject.toml meson.build $(shell git ls-files core bindings emulator python 2>/dev/null)
	$(python) -m pip install --quiet --upgrade '.[cu13]'
	touch $@

$(VENV)/.venv:
	$(PYTHON) -m venv $(VENV) || { echo "$(PYTHON) cannot make virtual environments; on Debian: apt-get install python3-venv python3-dev" >&2; exit 1; }
	$(python) -m pip install --quiet --upgrade pip
	touch $@

$(VENV)/.tools: $(VENV)/.venv tools/requirements-test.txt
	$(python) -m pip install --quiet -r tools/requirements-test.txt
	touch $@

test: build c-tests stubs lint python-tests

build: $(VENV)/.tools
	$(python) setup.py build_ext --inplace -Dwerror=true

# Not built again: meson would take the system's ninja, and one of another version builds everything anew.
c-tests: build
	$(VENV)/bin/meson test -C $(build) --no-rebuild --print-errorlogs

python-tests: build
	$(run) -m pytest

stubs: build
	$(run) -m mypy python/cuda_core
	MYPYPATH=python:. $(run) -m mypy setup.py tools/*.py examples
	MYPYPATH=python $(run) -m mypy.stubtest cuda_core --mypy-config-file pyproject.toml --allowlist tools/stubtest-allowlist.txt

lint: $(VENV)/.tools
	$(python) -m ruff check .
	$(python) -m ruff format --check .
	$(python) tools/check_layers.py

check: test check-static check-warnings check-asan check-wheel

# ruff, mypy, the layers, and gcc's analyzer over bindings/; each must first report a fault planted for it.
check-static: build
	MYPYPATH=python:. $(python) tools/static.py $(build)

# A build with the other compiler, warnings as errors; optimisation off, since only the warnings matter.
check-warnings: $(VENV)/.tools
	CC=clang $(python) tools/meson_build.py build/clang -Dwerror=true --buildtype=debug

# The C tests and tests/python under AddressSanitizer and UndefinedBehaviorSanitizer; ASAN_TESTS=: these Python tests only.
ASAN_TESTS ?= tests/python

check-asan: $(VENV)/.tools
	$(python) tools/meson_build.py build/asan -Db_sanitize=address,undefined -Db_lundef=false --buildtype=debugoptimized
	$(python) tools/sanitize.py build/asan $(ASAN_TESTS)

# libFuzzer's targets, with clang: `make fuzz MINUTES=10 TARGET=ptx`, and a seeded minute over all of them.
MINUTES ?= 10
TARGET  ?=

fuzz-build: $(VENV)/.tools
	CC=clang $(python) tools/meson_build.py build/fuzz -Dfuzz=true -Dcore_tests=false \
	    -Db_sanitize=address,undefined -Db_lundef=false --buildtype=debugoptimized

fuzz: fuzz-build
	$(python) tests/fuzz/run.py build/fuzz $(MINUTES) $(TARGET)

check-fuzz: fuzz-build
	$(python) tests/fuzz/run.py build/fuzz check

# Leaving the process in every way, fork, multiprocessing, signals; TIMES=n: that often.
check-ends: build
	for i in $$(seq $${TIMES:-1}); do \
	    $(run) -m pytest -q --figures "ends of life" tests/isolated/test_exit.py tests/isolated/test_fork.py tests/isolated/test_signals.py || exit 1; \
	done

# Every driver call and every allocation fails once; FAULTS="--stride 50 --kinds calls" is quicker.
FAULTS ?=

check-faults: build
	$(run) tests/isolated/fault_sweep.py $(FAULTS)

# Objects shared by eight threads, each scenario for so long.
SECONDS ?= 10

check-threads: build
	$(run) tests/isolated/threads.py --seconds $(SECONDS)

# Contexts that a kernel has poisoned; about a minute.
check-poisoned: build
	$(VENV)/bin/meson test -C $(build) --no-rebuild --print-errorlogs core-poisoned
	$(run) -m pytest -q --figures "poisoned contexts" tests/isolated/test_poisoned.py

# What pip makes of the tree, in an environment that has no CUDA toolkit of its own.
check-wheel: $(VENV)/.tools
	$(python) tools/check_wheel.py

bench: build
	$(run) benchmarks/launch.py
	$(run) benchmarks/emulator.py

clean:
	rm -rf build $(VENV) python/cuda_core/*.so
