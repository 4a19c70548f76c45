# Each target says what it does, redoes nothing that is fresh, and fails with one
# clear sentence. `make help` lists them.
PYTHON ?= python3
PORT ?= 8000
reseed: N ?= 20
mutants: N ?= 300
mutants: SEED ?= 1
BIN := .venv/bin
GRADER := .venv-grading/bin/python
COURSE ?= _build/course
JOBS ?= 2

# One thread for the linear algebra: results and timings then do not depend on cores.
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1
export MKL_NUM_THREADS := 1
export PYTHONDONTWRITEBYTECODE := 1

# Stored outputs are compared digit by digit where they were made: under the lock on
# Linux x86-64. Elsewhere the cells run and the verdicts decide.
NBVAL := $(if $(filter Linux-x86_64,$(shell uname -s)-$(shell uname -m)),--nbval,--nbval-lax)

.DEFAULT_GOAL := help
.PHONY: help environment grader serve site pdf slides reading check test units lint notebooks check-notebooks \
  check-coursework import lab ways live bench reseed mutants coursework grade \
  bench-coursework lock browsers weekly

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-16s %s\n", $$1, $$2}' Makefile

environment:  # create .venv from the hashed lock, unless it is fresh
	@$(PYTHON) tools/environment.py

grader:  # create .venv-grading from its own lock, unless it is fresh
	@$(PYTHON) tools/environment.py .venv-grading coursework/requirements.lock

serve: environment  ## build the site from stored outputs and serve it on PORT
	@$(BIN)/python -m tools.serve --port $(PORT)

site: environment  ## build the site from stored outputs into _build/html
	@$(BIN)/python -m tools.serve --build-only

pdf: environment site  ## print the book into _build: to read, and in full; EDITION=reader: one
	@$(BIN)/python -m tools.pdf $(if $(EDITION),--edition "$(EDITION)")

slides: environment site  ## slides of CHAPTER=4 into _build/slides, one file; alone: of each
	@$(BIN)/python -m tools.slides $(if $(CHAPTER),"$(CHAPTER)")

reading: environment site  ## measure how pages read beside their targets; PAGE=3: one, in detail
	@$(BIN)/python -m tools.reading $(if $(PAGE),"$(PAGE)")

check: environment  ## check PAGE=3: notebook, packages, browser; alone: what you changed
	@$(BIN)/python -m tools.check $(PAGE) --compare=$(NBVAL)

test: lint units check-notebooks check-coursework  ## everything a change must pass

lint: environment  ## style and types
	@echo "lint: ruff and mypy"
	@$(BIN)/ruff check --quiet . && $(BIN)/ruff format --quiet --check . && $(BIN)/mypy --no-error-summary

units: environment site  ## tests of lib, of the pipeline and of the site in a browser
	@echo "tests: lib, pipeline, site"
	@$(BIN)/python -m pytest -q -n 3 --dist loadfile -p no:nbval

check-notebooks: environment  ## execute every notebook and compare its stored outputs
	@echo "tests: notebooks, executed and compared ($(NBVAL))"
	@$(BIN)/python -m pytest -q -n 2 --dist loadfile $(NBVAL) --nbval-current-env --nbval-cell-timeout 300 chapters coursework/source

check-coursework: grader  ## grade simulated submissions with nbgrader
	@echo "tests: coursework, graded"
	@$(GRADER) -m pytest -q -n 3 --dist loadfile coursework/tests

notebooks: environment  ## execute the notebooks whose code changed, or of those one NB
	@$(BIN)/python -m tools.notebooks $(NB)

import: environment  ## bring cells edited in JupyterLab back: make import NB=chapters/x.ipynb
	@test -n "$(NB)" || { echo "error: say which notebook, as in: make import NB=chapters/1-softmax-expansion.ipynb"; exit 1; }
	@$(BIN)/python -m tools.notebooks --import $(NB)

lab: environment  ## open copies of the notebooks, or of CHAPTER=3; EDIT=1: the book's own
	@$(BIN)/python -m tools.lab $(CHAPTER) $(if $(EDIT),--edit)

ways: environment  ## every notebook alone with a small install, and what installs cost
	@$(BIN)/python -m tools.ways

live: environment  ## serve the site with a kernel behind its live pages on PORT
	@$(BIN)/python -m tools.live --port $(PORT) $(CHAPTER)

reseed: environment  ## run claims under N fresh seeds (20), of a PAGE or all; NEW=1: not yet run
	@$(BIN)/python -m tools.reseed $(N) $(if $(PAGE),--page $(PAGE)) $(if $(NEW),--new)

mutants: environment  ## which of N random mutants (300) of SEED the tests notice; CLAIMS=1: one for each claim, of PAGE
	@$(BIN)/python -m tools.mutants $(if $(CLAIMS),--claims $(if $(PAGE),--page "$(PAGE)"),$(N) --seed $(SEED)) --jobs $(JOBS)

bench: environment site  ## measure lib beside its peers and the limits of this machine
	@$(BIN)/python -m benchmarks && $(BIN)/python -m tools.paint

coursework: grader  ## problem sets of a term in COURSE: for students, for instructors
	@$(GRADER) -m tools.coursework --course "$(COURSE)" $(if $(SEED),--seed "$(SEED)") \
	  $(if $(REPLACE),--replace)

grade: grader  ## grade what was handed in for SET, in COURSE, with JOBS workers
	@test -n "$(SET)" || { echo "error: say which set, as in: make grade SET=problems-3"; exit 1; }
	@$(GRADER) -m tools.grading --course "$(COURSE)" --set "$(SET)" --jobs $(JOBS) \
	  $(if $(ISOLATION),--isolation $(ISOLATION))

bench-coursework: grader  ## 20 terms, 200 submissions twice, a run that is killed
	@$(GRADER) -m coursework.bench $(SET)

lock: environment  ## resolve the dependencies again into requirements.lock (needs uv)
	@command -v uv >/dev/null || { echo "error: make lock needs uv: pip install uv"; exit 1; }
	uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --extra dev \
	  --no-emit-index-url --no-annotate --custom-compile-command "make lock" \
	  --output-file requirements.lock pyproject.toml
	uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --extra grading \
	  --constraints requirements.lock \
	  --no-emit-index-url --no-annotate --custom-compile-command "make lock" \
	  --output-file coursework/requirements.lock pyproject.toml

browsers: environment site  ## the site in Firefox and in WebKit, which Debian has
	@echo "tests: pages, explorers, search and a live page in Firefox and WebKit"
	@$(BIN)/python -m pytest -q -m browsers tests/browsers

weekly: browsers grader  ## what takes long and seldom changes (and make ways); CI runs it once a week
	@echo "tests: what is marked slow"
	@$(BIN)/python -m pytest -q -n 2 --dist loadfile -m slow
	@$(GRADER) -m pytest -q -m slow coursework/tests
