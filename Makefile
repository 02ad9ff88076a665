# Everything a clone needs: `make demo` to see it work, `make test` to check it, `make help` for the rest.
#   PYTHON=python3.12   interpreter for the virtual environments (after `make clean` if one exists)
#   ARGS="-k loss"      more arguments for pytest
#   SEED=123            first seed of `make fuzz` (from the clock), for SECONDS=120, or CASES=1 to see one case
#   SANITIZE_CXX=g++-13 GCC to use for `make sanitize` (g++)

PYTHON ?= python3
ARGS ?=
SHELL = /bin/sh

VENV = .venv
SANITIZE = .venv-sanitize

# A change in these rebuilds the kernels. Python edits need no reinstall: the install is editable.
BUILD_INPUTS = pyproject.toml CMakeLists.txt $(wildcard kernels/*)

# The build tools live in the environment (no build isolation), so that they too are held to the constraints and
# a changed kernel recompiles alone.
BUILD_TOOLS = scikit-build-core nanobind cmake ninja

PIP = -m pip --disable-pip-version-check --quiet
CHECK = sh scripts/check_prerequisites.sh "$(PYTHON)"

# Threads that wait for each other give way: on a busy machine spinning ones take ten times as long (tests: conftest.py).
fuzz: export OMP_WAIT_POLICY = passive

# Targets share one environment and one build folder.
.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: help demo test test-long test-all fuzz lint bench docs sanitize clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

# With `make -C`, where the user stands is another folder: paths are then complete, so that they can be copied.
HERE := $(if $(filter-out $(CURDIR),$(PWD)),$(CURDIR)/)
demo: $(VENV)/run.stamp ## Install and run `cardboost demo`
	@"$(HERE)$(VENV)/bin/cardboost" demo --out "$(HERE)cardboost-demo"

test: $(VENV)/test.stamp ## Run the quick tests (four to five minutes)
	$(VENV)/bin/python -m pytest -n 2 -m "not long" $(ARGS)

# pytest exits with 5 when it selects no test, which is no failure here: a misspelt marker already is one.
test-long: $(VENV)/test.stamp ## Run the long tests (ten minutes or more)
	$(VENV)/bin/python -m pytest -n 2 -m long $(ARGS) || [ $$? -eq 5 ]

test-all: test test-long ## Run the quick tests, then the long ones

fuzz: $(VENV)/test.stamp ## Hold random fits to all laws (SEED=, SECONDS=, CASES=)
	PYTHONPATH=tests $(VENV)/bin/python -m fuzz $(if $(SEED),--seed $(SEED)) \
	    $(if $(SECONDS),--seconds $(SECONDS)) $(if $(CASES),--cases $(CASES))

lint: $(VENV)/dev.stamp ## Check style (ruff) and types (mypy)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/python -m mypy

bench: $(VENV)/bench.stamp ## Run benchmarks/*.py against the peers (one: BENCH=fit_speed)
	@set -e; found=; \
	for file in benchmarks/$(or $(BENCH),*).py; do \
	    case "$$file" in benchmarks/_*) continue ;; esac; \
	    [ -f "$$file" ] || continue; \
	    found=yes; echo "== $$file"; $(VENV)/bin/python "$$file"; \
	done; \
	[ -n "$$found" ] || { echo "cardboost: there is no benchmark benchmarks/$(or $(BENCH),*).py." >&2; exit 1; }

docs: ## Say where the documentation is
	@echo "The documentation is the Markdown in docs/ and needs no building."

# The sanitizers' runtimes must be loaded before Python, and libstdc++ with them so that they see C++ exceptions.
# Python never frees everything at exit: leaks are not reported.
sanitize: $(SANITIZE)/test.stamp ## Run tests/kernels under the address and undefined-behaviour sanitizers
	@[ -d tests/kernels ] || { echo "cardboost: there is no tests/kernels to run." >&2; exit 1; }
	@set -e; preload=; \
	for name in libasan.so libubsan.so libstdc++.so; do \
	    library=$$($(or $(SANITIZE_CXX),g++) -print-file-name=$$name); \
	    [ -e "$$library" ] || { echo "cardboost: g++ has no $$name; install GCC's sanitizer runtimes." >&2; exit 1; }; \
	    preload="$$preload $$library"; \
	done; \
	echo "$(SANITIZE)/bin/python -m pytest tests/kernels $(ARGS)"; \
	LD_PRELOAD="$$preload" ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	    $(SANITIZE)/bin/python -m pytest tests/kernels $(ARGS)

clean: ## Remove the environments, the build and every cache
	rm -rf $(VENV) $(SANITIZE) build dist cardboost-demo
	rm -rf .pytest_cache .hypothesis .mypy_cache .ruff_cache
	find $(wildcard src tests benchmarks examples) -name __pycache__ -type d -prune -exec rm -rf {} +

# Environments. Each ignores itself in Git, so that no tool takes its contents for ours.
$(VENV)/made.stamp $(SANITIZE)/made.stamp: constraints/test.txt
	@$(CHECK)
	$(PYTHON) -m venv $(@D)
	@echo '*' > $(@D)/.gitignore
	$(@D)/bin/python $(PIP) install -c constraints/test.txt $(BUILD_TOOLS)
	@touch $@

# Installs. A larger extra contains the smaller ones, so it marks them as done too.
INSTALL = $(VENV)/bin/python $(PIP) install --no-build-isolation --config-settings=build-dir=build/editable

$(VENV)/run.stamp: $(VENV)/made.stamp $(BUILD_INPUTS)
	@$(CHECK)
	$(INSTALL) -c constraints/test.txt -e '.[cli]'
	@touch $@

$(VENV)/test.stamp: $(VENV)/made.stamp $(BUILD_INPUTS)
	@$(CHECK)
	$(INSTALL) -c constraints/test.txt -e '.[test]'
	@touch $(VENV)/run.stamp $@

$(VENV)/dev.stamp: $(VENV)/made.stamp $(BUILD_INPUTS)
	@$(CHECK)
	$(INSTALL) -c constraints/test.txt -e '.[dev]'
	@touch $(VENV)/run.stamp $(VENV)/test.stamp $@

$(VENV)/bench.stamp: $(VENV)/made.stamp $(BUILD_INPUTS) constraints/bench.txt
	@$(CHECK)
	$(INSTALL) -c constraints/bench.txt -e '.[bench]'
	@touch $(VENV)/run.stamp $@

$(SANITIZE)/test.stamp: $(SANITIZE)/made.stamp $(BUILD_INPUTS)
	@$(CHECK)
	CXX=$(or $(SANITIZE_CXX),g++) $(SANITIZE)/bin/python $(PIP) install --no-build-isolation -c constraints/test.txt \
	    --config-settings=build-dir=build/sanitize --config-settings=cmake.build-type=RelWithDebInfo \
	    --config-settings=cmake.define.CARDBOOST_SANITIZE=ON -e '.[test]'
	@touch $@
