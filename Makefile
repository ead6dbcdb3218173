# Everything starts from a fresh clone: each target sets up what it needs, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
RECIPES := .venv-recipes/.ready
RESULTS := results
WORKERS ?= 2
# Which versions of what we need: those that were tested; empty for the newest there are.
CONSTRAINTS ?= -c constraints.txt -c constraints-docs.txt
NEWEST ?= python3.13

.PHONY: help setup reproduce evidence test test-fast test-portable test-newest test-slow docs bench dist licences recipes lint clean

help:
	@echo "make reproduce  the paper's experiments, into $(RESULTS)/ (a page and figures)"
	@echo "make evidence   the page and figures of the committed runs, and the numbers of docs/evidence.md"
	@echo "make test       lint, types and the test suite (about 8 minutes on two cores)"
	@echo "make test-fast  the science and one run of each command, in a minute"
	@echo "make test-portable  the numeric tests as other processors would run them"
	@echo "make test-newest    make test with $(NEWEST) and the newest versions of everything"
	@echo "make test-slow  what takes longer"
	@echo "make docs       the site, into site/: open site/index.html"
	@echo "make bench      this project and its peers, side by side"
	@echo "make recipes    an environment with PyTorch, for examples/recipes"
	@echo "make dist       the sdist and the wheel, into dist/"
	@echo "make licences   the licences of what we depend on, into docs/licences.md"
	@echo "make clean      remove what make created"

setup: $(READY)

# Tests and report come along, so that both README commands share one environment.
$(READY): pyproject.toml constraints.txt constraints-docs.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "movi needs Python 3.11 or newer, $(PYTHON) is %d.%d; try make PYTHON=python3.12" % sys.version_info[:2])'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(CONSTRAINTS) -e '.[agents,atari,gymnax,mujoco,onnx,ray,report,video,dev]'
	@touch $(READY)

reproduce: $(READY)
	$(BIN)/python -m paper compare --out $(RESULTS)
	$(BIN)/python -m paper assumption --further 3200 --out $(RESULTS)
	$(BIN)/python -m paper bounds --out $(RESULTS)
	$(BIN)/python -m paper averaging --out $(RESULTS)
	$(BIN)/movi sweep examples/cartpole.toml --out $(RESULTS)/deep
	$(BIN)/python -m paper report $(RESULTS)

evidence: $(READY)
	$(BIN)/python -m paper.evidence.zoo
	$(BIN)/python -m paper.evidence.publish $(RESULTS)/evidence/report.html
	$(BIN)/python -m pytest tests/paper/audit_evidence.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow"

# The science, and one run of each command.
FAST := $(addprefix tests/,test_targets.py test_values.py test_family.py test_momentum.py \
	test_schedules.py agents/test_tables_and_networks_agree.py mdp/test_exact.py mdp/test_methods.py \
	planning/test_schemes.py planning/test_solve.py planning/test_losses.py test_layers.py test_commands.py)

test-fast: $(READY)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow" $(FAST)

test-portable: $(READY)
	$(BIN)/python -m tests.portable --workers $(WORKERS)

test-newest:
	$(MAKE) test PYTHON=$(NEWEST) VENV=.venv-newest CONSTRAINTS=

test-slow: $(READY) $(RECIPES)
	$(BIN)/python -m pytest -m slow

# PyTorch and stable-baselines3, for the programs in examples/recipes.
recipes: $(RECIPES)

$(RECIPES): examples/recipes/requirements.txt
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r $< -e .
	@touch $@

# The site's tools are in an environment of their own, beside the package and what its notebooks need.
.venv-docs/.ready: pyproject.toml constraints.txt constraints-docs.txt
	test -x .venv-docs/bin/python || $(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check $(CONSTRAINTS) -e '.[gymnax,report,docs]'
	@touch $@

docs: .venv-docs/.ready
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/python -m mkdocs build --clean --quiet
	@echo "site/index.html"

bench: $(READY)
	$(BIN)/python benchmarks/run.py --out $(RESULTS)/bench.json

dist: $(READY)
	rm -rf dist
	$(BIN)/python -m build --outdir dist .

licences: $(READY)
	$(BIN)/python docs/making/licences.py

clean:
	rm -rf $(VENV) .venv-newest .venv-bench .venv-docs .venv-recipes .venv-sb3 .venv-sac site $(RESULTS) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
	find src -name '*.egg-info' -type d -prune -exec rm -rf {} +
