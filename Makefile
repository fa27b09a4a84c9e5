# make install      set up: .venv with everything that the command needs
# make quickstart   set up, then run the main job: a study of two objectives and two languages
# make docs         set up, then build the documentation as a site in build/site
# make test         set up, then format check, lint, types and tests
# make test-slurm   as root on Debian: the tests on a real Slurm of one node (docs/slurm.md), 10 minutes
PYTHON ?= python3
VENV ?= .venv
RUN ?= runs/quickstart
BIN := $(VENV)/bin
# what an older processor computes a little differently, once more as on one
NUMERIC := tests/test_golden_losses.py tests/test_nearest.py tests/test_roberta.py::test_losses_equal_the_plain_ones
export HF_HUB_OFFLINE := 1
export HF_HUB_DISABLE_TELEMETRY := 1

.PHONY: install quickstart test tests tests-numeric test-slurm lint format docs clean

install: $(VENV)/installed

quickstart: $(VENV)/installed
	$(BIN)/synthlang study quickstart --out $(RUN)

# all at once, since tests also wait for processes and each other part needs one processor
test: $(VENV)/installed-dev
	$(MAKE) --no-print-directory -j3 lint tests tests-numeric

# empty is unset: where nothing may be kept, each process of the tests would compile every module anew
tests tests-numeric: export PYTHONDONTWRITEBYTECODE :=
tests: $(VENV)/installed-dev
	$(BIN)/python -m pytest -n auto --dist worksteal

tests-numeric: $(VENV)/installed-dev
	ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=AVX2 $(BIN)/python -m pytest -p no:cacheprovider $(NUMERIC)

test-slurm: $(VENV)/installed-dev
	SYNTHLANG_TEST_SLURM=1 $(BIN)/python -m pytest -rs tests/test_study_slurm_cluster.py

lint: $(VENV)/installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict -f .ci/mkdocs.yml
	@echo "the site is build/site/index.html"

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed: make PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt -e .
	touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt -e '.[dev,docs,parse]'
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache *.egg-info
