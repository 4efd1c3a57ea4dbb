# make demo   the main job end to end: trace, fuse, prove, cost, emit, run, compare, print
# make test   the test suite          (ARGS="-k name" passes arguments on to pytest)
# make slow   tests that take long, the rest of families of which make test takes a few, and more
#             examples of those of Hypothesis
# make torch  torch for the tests that need it, which are skipped without (a CPU build will do)
# make browser  what the explorer's tests need beside Chromium, without which they are skipped
# make targets  compile many programs for four GPU targets and record what they became (4 minutes)
# make prove  the thorough profile: 20,000 random programs, 100,000 checked steps (ARGS="--seed 1")
# make docs   the documentation site, in build/docs: strict, and without the network
# make pages  write the lists of the pages of docs that are made from code
# make pictures  draw the pictures of the documents again
# make notebooks  run the sources in notebooks/ and write the .ipynb beside them (NAMES="03 07")
# make check-notebooks  run them, write nothing, fail where a notebook is not what its source gives
# make lint   ruff        make types   mypy --strict        make clean   remove what make made
#
# The first use makes .venv and installs into it; stamp files in .venv remember what is there.

PYTHON ?= python3
EXAMPLE ?= attention
ARGS ?=
NAMES ?=

VENV := .venv
BIN := $(VENV)/bin
# CI imports a part of what it installs: what it does not import need not be compiled.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check $(if $(CI),--no-compile) -c constraints.txt
CONFIG := pyproject.toml constraints.txt
PROFILE := $(if $(CI),--hypothesis-profile=ci)
# worksteal: each worker begins with files of its own, so that what a file shares is made once
PARALLEL := -n auto --maxprocesses 8 --dist worksteal

# hundreds of processes import the package: they compile it once
unexport PYTHONDONTWRITEBYTECODE

.PHONY: notebooks check-notebooks targets help demo test slow prove docs pages pictures lint types install dev \
        torch browser clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^# \{0,1\}//p;/^$$/q' Makefile

demo: $(VENV)/.installed
	$(BIN)/blockbuster demo $(EXAMPLE)

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest $(PARALLEL) -m "not slow" $(PROFILE) $(ARGS)

slow: $(VENV)/.installed-test
	$(BIN)/python -m pytest $(PARALLEL) -m "slow or property" --hypothesis-profile=slow $(ARGS)

prove: $(VENV)/.installed
	$(BIN)/python -m bench.thorough $(ARGS)

notebooks: $(VENV)/.installed-notebooks
	$(BIN)/python notebooks/build.py $(NAMES)

check-notebooks: $(VENV)/.installed-notebooks
	$(BIN)/python notebooks/build.py --check $(NAMES)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

targets: $(VENV)/.installed
	$(BIN)/python -m bench.targets --out tests/golden/targets.json

# --fresh-env: pages depend on code and on results, whose changes Sphinx does not see
docs: $(VENV)/.installed-docs
	rm -rf build/docs build/gallery
	$(BIN)/python -m sphinx --quiet --fresh-env --fail-on-warning --keep-going -c docs . build/docs
	@echo "wrote build/docs/index.html"

pages: $(VENV)/.installed-docs
	$(BIN)/python docs/filled_in.py

pictures: $(VENV)/.installed-docs
	$(BIN)/python docs/draw_pictures.py

install: $(VENV)/.installed
dev: $(VENV)/.installed-dev
torch: $(VENV)/.installed-torch
browser: $(VENV)/.installed-browser

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.created:
	@command -v $(PYTHON) >/dev/null || { \
	  echo "make: '$(PYTHON)' was not found; install Python 3.11 or newer, or name one:" \
	       "make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "make: Blockbuster needs Python 3.11 or newer, and '$(PYTHON)' is $$($(PYTHON) --version 2>&1);" \
	       "name another one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "make: '$(PYTHON)' has no venv module; install it (on Debian and Ubuntu: apt install python3-venv)" \
	       >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.installed: $(VENV)/.created $(CONFIG)
	$(INSTALL) -e .
	@touch $@

$(VENV)/.installed-test: $(VENV)/.created $(CONFIG)
	$(INSTALL) -e '.[test]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-dev: $(VENV)/.created $(CONFIG)
	$(INSTALL) -e '.[dev]'
	@touch $@ $(VENV)/.installed-test $(VENV)/.installed

$(VENV)/.installed-docs: $(VENV)/.created $(CONFIG)
	$(INSTALL) -e '.[docs]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-notebooks: $(VENV)/.created $(CONFIG)
	$(INSTALL) -e '.[draw,notebooks]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-torch: $(VENV)/.created $(CONFIG)
	$(INSTALL) -e '.[torch]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-browser: $(VENV)/.created $(CONFIG)
	$(INSTALL) -e '.[browser]'
	@touch $@ $(VENV)/.installed
