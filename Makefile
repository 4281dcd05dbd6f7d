# Every target works from a bare clone on Debian 12 with git, make, Python 3.11 and python3-venv.
# `make` alone lists them. ONCE=1 is accepted by `make run`: end when done.

PYTHON ?= python3
PY := .venv/bin/python
WORKERS ?= 2
SPHINX := $(PY) -m sphinx --fail-on-warning --keep-going --nitpicky --quiet --jobs 2

# Python must read and write UTF-8 wherever make was called; a user's own settings must not leak in.
export PYTHONUTF8 := 1
unexport PYTHONPATH PYTHONHOME PYTHONUNBUFFERED PYTHONSTARTUP

.DEFAULT_GOAL := help
.PHONY: help venv dev run fleet quick test check format references soak bench docs picture dist lock clean debian suite

help: ## list these targets
	@grep -hE '^[a-z]+:.*## ' Makefile | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 20

venv: ## build .venv with the `ouvrage` command in it
	@$(PYTHON) tools/venv.py run

dev:
	@$(PYTHON) tools/venv.py dev

run: venv ## one piece of work under two offers of a platform here: what did a finished epoch cost on each?
	@sh tools/debian.sh run
	@$(PY) examples/digits/hosts.py --out out

fleet: venv ## the same work as a tenant's on two nodes of a real Slurm, brought up here and ended again (root; five minutes)
	@sh tools/debian.sh fleet
	@$(PY) examples/digits/fleet.py --out out

quick: dev ## format, lint, layers and the fast tests (two minutes at most)
	@$(PY) tools/check.py quick
	@$(PY) -m pytest -q -n $(WORKERS) -m "not soak and not slow" tests

test: dev debian ## everything that must hold: the checks, then the whole suite; what CI calls
	@$(PY) tools/check.py all
	@$(MAKE) --no-print-directory suite

suite:
	@$(PY) tools/suite.py $(WORKERS)

check: dev ## format, lint, types, layers, documentation, generated pages up to date, house rules
	@$(PY) tools/check.py all
	@$(PY) -m pytest -q tests/house

format: dev ## put the code into the form that `make check` expects
	@$(PY) -m ruff check --fix --quiet . ; $(PY) -m ruff format --quiet .

references: dev ## write the generated pages of docs/reference anew
	@$(PY) tools/cli_reference.py
	@$(PY) tools/facts_reference.py
	@$(PY) tools/health_reference.py
	@$(PY) tools/laws_reference.py
	@$(PY) tools/openapi_reference.py

soak: dev debian ## the long tests: every kill, every law at length, every property on new examples
	@sh tools/debian.sh soak
	@OUVRAGE_RANDOM=1 $(PY) -m pytest -q -m "soak or property" --durations=10 tests

bench: dev ## measure speed and overhead; WRITE=1 keeps the result in docs/reference/benchmarks.md
	@$(PY) -m bench $(if $(WRITE),--write)

docs: dev ## build the documentation into docs/_build/html
	@$(SPHINX) -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

picture: ## take the README's picture from out/report.html, which `make run` wrote (needs Chromium)
	@sh tools/picture.sh

dist: venv ## a wheel and the single file dist/ouvrage.pyz
	@$(PY) -m hatchling build -t wheel
	@$(PY) tools/pyz.py

debian:
	@sh tools/debian.sh test

lock: ## pin the newest versions that fit requirements/*.in, with the hashes of every file offered
	@PYTHON=$(PYTHON) sh tools/lock.sh

clean: ## remove everything that these targets made
	@rm -rf .venv .tools build dist out docs/_build .cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
