# `make train` trains an example, `make test` runs all checks, `make docs` builds the documentation,
# `make results` writes measured numbers into the pages.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN ?= runs/first
# Pusher-v4 needs MuJoCo 2.3.7, which has no wheels for Python 3.12 and newer.
TASKS := $(shell $(PYTHON) -c 'import sys; print("paper" if sys.version_info < (3, 12) else "mujoco")' 2>/dev/null)

# Tests pass NumPy arrays where JAX arrays are declared; other checks are as strict as in src.
LOOSER := $(addprefix --disable-error-code=,arg-type call-arg call-overload misc operator return-value attr-defined comparison-overlap union-attr no-untyped-call truthy-function) --no-warn-unused-ignores

.PHONY: train test test-slow soak lint results docs bench clean

# NC-LQL auto on HalfCheetah; run again to continue.
train: $(VENV)/.run
	@export LANGEVINRL_RESUME="make train"; if [ -e $(RUN)/config.json ]; then $(BIN)/langevinrl resume $(RUN); else \
		$(BIN)/langevinrl train nclql-auto --env HalfCheetah-v4 --iterations 40000 \
			--eval-every 2000 --eval-episodes 5 --checkpoint-every 10000 --out $(RUN); fi

test: $(VENV)/.dev lint
	$(BIN)/pytest -n 2 --dist loadgroup

test-slow: $(VENV)/.dev
	$(BIN)/pytest -m slow

# Endurance tests: kills, signals, load; writes results/reliability.
soak: $(VENV)/.dev
	$(BIN)/python experiments/soak.py $(SOAK)

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy tests $(LOOSER)

# Tables, sentences and figures of README, docs and results, from the files under results.
results: $(VENV)/.dev
	$(BIN)/python experiments/make_results.py

# The documentation; warnings are errors, and the build needs no network.
docs: $(VENV)/.docs
	$(BIN)/sphinx-build -W --keep-going -q -d docs/_build/doctrees docs docs/_build/html
	@echo docs/_build/html/index.html

bench: $(VENV)/.run
	$(BIN)/langevinrl bench

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache docs/_build docs/_generated $(RUN)
	find . -name __pycache__ -prune -exec rm -rf {} +
	rm -rf src/*.egg-info

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
		|| { echo "langevinrl needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[plots,$(TASKS)]'
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

$(VENV)/.docs: $(VENV)/.run
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@touch $@

# For tests of clusters, tuning and exports, which are skipped without it.
$(VENV)/.clusters: $(VENV)/.dev
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[ray,slurm,tune,stablehlo,onnx]'
	@touch $@

# For tests of trackers and videos, which are skipped without it.
$(VENV)/.trackers: $(VENV)/.dev
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[tensorboard,wandb,mlflow,video]'
	@touch $@
