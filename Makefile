# Two commands matter: `make demo` and `make test`. Both need only Python 3.11 or later, make and a network
# that reaches the package indexes; everything else is installed into .venv.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Where pip looks for wheels on disk. A torch wheel found there wins; otherwise uv picks the build for this
# machine (TORCH_BACKEND=auto for a GPU).
WHEELS ?= $(or $(UV_FIND_LINKS),$(PIP_FIND_LINKS))
TORCH_BACKEND ?= cpu
TORCH  := $(if $(wildcard $(addsuffix /torch-2.13.0+cpu*.whl,$(WHEELS))),$(addprefix --find-links ,$(WHEELS)),--torch-backend $(TORCH_BACKEND))
INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt $(TORCH)

# More than there are cores: many tests wait, for a broker, a worker or a browser.
TEST_PROCESSES ?= 3

# Each of the many processes that a test run or a demonstration starts would compile the project again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo services test pytest check lint benchmark faults reproduce base-weights docs docs-site constraints requirements release audit notebooks leakage memorization slow journeys images clean

help:  ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

$(BIN)/uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or later is needed; name one with make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "Python's venv module is missing: on Debian or Ubuntu install the package python3-venv."; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv

$(VENV)/.demo: $(BIN)/uv pyproject.toml platform/pyproject.toml constraints.txt
	@echo "Installing the site, the worker and the starter kit into $(VENV) ..."
	@$(INSTALL) --compile-bytecode -e '.[worker,kit]' -e ./platform hatchling
	@touch $@

$(VENV)/.test: $(BIN)/uv pyproject.toml platform/pyproject.toml constraints.txt
	@echo "Installing everything, with the test tools, into $(VENV) ..."
	@$(INSTALL) -e '.[worker,kit,docile,flower,leakage,parquet,wandb,dev]' -e './platform[sentry,otel]'
	@touch $@ $(VENV)/.demo

# All that builds the static documentation, which is far less than the demonstration needs.
$(VENV)/.docs: $(BIN)/uv pyproject.toml constraints.txt
	@$(INSTALL) -e '.[docs]'
	@touch $@

demo: $(VENV)/$(if $(SERVICES),.test,.demo)  ## train, submit, evaluate and print both leaderboards (DATA=<folder> for real receipts, SERVICES=1 on PostgreSQL, RabbitMQ and S3)
	@$(if $(SERVICES),$(BIN)/python -m tests.install && $(BIN)/python -m tests.services --) $(BIN)/python -m tests.demo.demo $(if $(SERVICES),--services) $(if $(DATA),--data "$(DATA)")

services: $(VENV)/.test  ## start PostgreSQL, Redis, RabbitMQ and an S3 server on this machine until Ctrl-C, and print how to use them
	@$(BIN)/python -m tests.install
	@$(BIN)/python -m tests.services

test: $(VENV)/.test  ## install what the tests need and run them, beside the linters
	@$(MAKE) --no-print-directory --jobs=2 lint pytest

pytest: $(VENV)/.test  ## install what the tests need, and run them
	@$(BIN)/python -m tests.install
	@$(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist loadgroup --no-loadscope-reorder -q

check: $(VENV)/.test  ## lint, and run the tests that `git diff` affects (SINCE=main: all changes since that branch left it)
	@$(MAKE) --no-print-directory lint
	@tests=$$($(BIN)/python -m tests.affected $(if $(SINCE),$$(git merge-base $(SINCE) HEAD))); test -z "$$tests" || $(BIN)/python -m pytest -n 2 --dist loadgroup --no-loadscope-reorder -q -m 'not e2e and not slow and not benchmark and not faults' $$tests || [ $$? -eq 5 ]

lint: $(VENV)/.test  ## ruff, mypy --strict and the import contracts
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .
	@$(BIN)/mypy
	@PYTHONPATH=platform:. $(BIN)/lint-imports

benchmark: $(VENV)/.test  ## speed and memory, as ratios against named references, written to docs/performance.md
	@$(BIN)/python -m pytest tests/benchmarks -m benchmark -q --performance docs/performance.md

faults: $(VENV)/.test  ## kill, stop and fill what a site depends on, count what was lost, and write docs/reliability.md
	@$(BIN)/python -m tests.install
	@$(BIN)/python -m pytest tests/faults -m faults -q --reliability docs/reliability.md

slow: $(VENV)/.test  ## the tests for which `make test` has no time
	@$(BIN)/python -m tests.install
	@$(BIN)/python -m pytest -n 2 --dist loadgroup --no-loadscope-reorder -q -m slow

journeys: $(VENV)/.test  ## whole paths in a browser: on a demonstration and on an empty public site, at both widths
	@$(BIN)/python -m tests.install
	@$(BIN)/python -m pytest tests/journeys -n 2 --dist loadgroup --no-loadscope-reorder -m 'e2e or slow' -q

reproduce: $(VENV)/.demo  ## train the papers' rows on a small task, those without outcomes (AGAIN=1: and those that other code made); write docs/reproduction.md, ablations.md, fewest-bytes.md, private-rows.md
	@OMP_NUM_THREADS=1 $(BIN)/python -m tests.studies $(if $(AGAIN),--again) reproduction
	@OMP_NUM_THREADS=1 $(BIN)/python -m tests.studies $(if $(AGAIN),--again) ablations
	@OMP_NUM_THREADS=1 $(BIN)/python -m tests.studies $(if $(AGAIN),--again) competition-tables
	@OMP_NUM_THREADS=1 $(BIN)/python -m tests.studies $(if $(AGAIN),--again) fewest-bytes
	@OMP_NUM_THREADS=1 $(BIN)/python -m tests.studies $(if $(AGAIN),--again) private-rows

leakage: $(VENV)/.test  ## attack the baselines of `make reproduce`, whose runs it uses or trains, and write docs/leakage.md
	@OMP_NUM_THREADS=1 $(BIN)/python -m tests.studies leakage

memorization: $(VENV)/.demo  ## train on providers that can be memorized, with and without privacy, and write docs/memorization.md
	@OMP_NUM_THREADS=1 $(BIN)/python -m tests.studies memorization

audit: $(VENV)/.demo  ## simulate audits with canaries, of honest and of faulty runs, and write docs/auditing.md
	@OMP_NUM_THREADS=1 $(BIN)/python -m tests.studies auditing

base-weights: $(VENV)/.demo  ## pre-train the tiny VT5 again, in place of the weights that ship with the kit (four minutes)
	@OMP_NUM_THREADS=1 $(BIN)/python -m tests.studies.tiny_vt5

docs: $(VENV)/.test  ## write the generated pages under docs/
	@$(BIN)/python -c 'from evaluator.errors.codes import catalog; print(catalog(), end="")' > docs/errors.md
	@$(BIN)/python manage.py leaderboard --columns > docs/columns.md
	@$(BIN)/python -c 'from evaluator.records.check_table import catalog; print(catalog(), end="")' > docs/checks.md
	@$(BIN)/python -m tests.studies published-settings
	@$(BIN)/python -m tests.studies pages
	@$(BIN)/python -c 'from tests.studies.settings_page import page; print(page(), end="")' > docs/settings.md

docs-site: $(VENV)/.docs  ## build the documents as a static site in var/docs-site, checking every link (PFL_SOURCE_URL: where links to code lead)
	@$(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --quiet -d var/docs-doctrees docs var/docs-site
	@echo "Open var/docs-site/index.html."

notebooks: $(VENV)/.test  ## run the kit's notebooks, and write their pages with what they print and draw
	@OMP_NUM_THREADS=1 $(BIN)/python -m tests.studies notebooks

constraints: $(BIN)/uv  ## renew the pins
	@$(BIN)/uv pip compile --quiet --no-header --no-annotate --python-version 3.11 --all-extras --no-emit-package pfl-docvqa-benchmark pyproject.toml platform/pyproject.toml --upgrade $(TORCH) -o constraints.txt.new
	@{ sed -n '/^#/p' constraints.txt; sed 's/^\(torch==[0-9.]*\)+.*/\1/; /^uv==/d' constraints.txt.new; } > constraints.txt.tmp
	@mv constraints.txt.tmp constraints.txt; rm constraints.txt.new
	@$(MAKE) --no-print-directory requirements

# Of the images, and of the audit in CI: the same versions with their hashes. torch has a build for each kind of
# machine, and psycopg2 is built from source.
IMAGE_PINS := $(BIN)/uv pip compile --quiet --no-header --no-annotate --python-version 3.11 --generate-hashes -c constraints.txt
requirements: $(BIN)/uv  ## renew what the images and CI's audit install, after a change of either pyproject.toml or of constraints.txt
	@$(IMAGE_PINS) docker/requirements/build.in -o docker/requirements/build.txt
	@$(IMAGE_PINS) .github/requirements/pip-audit.in -o .github/requirements/pip-audit.txt
	@$(IMAGE_PINS) --extra sentry --extra otel --no-emit-package psycopg2-binary --no-emit-package pfl-docvqa-benchmark platform/pyproject.toml docker/requirements/site.in -o docker/requirements/site.txt
	@$(IMAGE_PINS) --extra worker --no-emit-package torch $(TORCH) pyproject.toml -o docker/requirements/worker.txt
	@$(IMAGE_PINS) --extra kit --no-emit-package torch $(TORCH) pyproject.toml -o docker/requirements/kit.txt

release: $(VENV)/.test  ## build wheels, source distributions and bills of materials in dist/, and try them in empty environments (DRAFT=1 before the changelog names the version)
	@$(BIN)/python -m tests.release dist $(if $(DRAFT),--draft) --torch="$(TORCH)"

images: $(VENV)/.test  ## as root: build the images, start the compose file's services from them, take a run of each track to a rank, and write docs/images.md (DEBIAN=1 without a registry of images)
	@$(BIN)/python -m tests.images.build $(if $(DEBIAN),--debian) $(if $(findstring --find-links,$(TORCH)),--wheels $(WHEELS))
	@unshare --net --mount $(BIN)/python -m tests.images.run docs/images.md

clean:  ## remove what the demo and the tests made (not the virtual environment)
	@rm -rf var .mypy_cache .ruff_cache .hypothesis
