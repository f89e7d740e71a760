# Every target sets up what it needs first; `make help` lists them.
SHELL := /bin/sh
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	command -v $$p >/dev/null && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
RUN := .venv/bin/python
UV := .venv/bin/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --quiet \
	--no-emit-index-url --no-emit-find-links --no-annotate
LOCKS := deploy/locks
# tests/conftest.py says what is run first, and what on one worker.
WORKERS := -n 2 --dist loadgroup --no-loadscope-reorder
# Some machines switch bytecode off: hundreds of child processes of the tests would compile all sources.
export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-slow test-long storm soak check format lint types layers fresh rules containers golden references pictures coverage compose-dry \
	bench-kernels bench-balance bench-engine bench-model bench-tables papers papers-large papers-quick lock jars-lock wheel clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:
	@[ -n "$(PYTHON)" ] || { echo "Python 3.11 or later is needed; PYTHON=... names one" >&2; exit 1; }
	@exec $(PYTHON) deploy/bootstrap.py

demo: setup ## Run an example: a real Kafka, a real Spark, a summary
	@exec .venv/bin/unskew demo $(ARGS)

test: setup ## All tests but the slow and the long ones
	@exec $(RUN) -m pytest $(WORKERS) -m "not slow and not long" $(ARGS)

test-slow: setup ## Whole processes, restarts, and more cases of what `make test` shows
	@exec $(RUN) -m pytest $(WORKERS) -m "slow and not long" $(ARGS)

test-long: setup ## What takes longer still: whole images, compose, clusters, every grouping with every operator
	@exec $(RUN) -m pytest -m long $(ARGS)

storm: setup ## Kill, cut off and damage jobs for some minutes; compare with an oracle: ARGS="--minutes 10"
	@exec $(RUN) -m tests.storm $(ARGS)

soak: setup ## One long run, by default of 10,000,000 records in 500 batches: memory and files must stay bounded
	@exec $(RUN) -m tests.storm.soak $(ARGS)

check: lint types layers fresh rules containers ## What CI checks beside the tests

lint: setup
	@.venv/bin/ruff format --check --quiet . && .venv/bin/ruff check --quiet .

types: setup
	@.venv/bin/mypy --no-error-summary

layers: setup
	@.venv/bin/lint-imports --no-logo 2>&1 | tail -n 5; .venv/bin/lint-imports >/dev/null

fresh: setup
	@.venv/bin/unskew schema --check && $(RUN) -m docs.reference.metrics --check && $(RUN) deploy/prometheus_rule.py --check && \
	$(RUN) -m docs.reference.configuration --check && $(RUN) -m docs.reference.groupings --check && $(RUN) -m docs.reference.counts --check && \
	$(RUN) -m dashboards --check

rules: # only where promtool is: no package index has it
	@! command -v promtool >/dev/null || out=$$(promtool check rules deploy/prometheus/rules/*.yml && \
	cd deploy/prometheus && promtool test rules tests/*.yml) || { echo "$$out" >&2; exit 1; }

containers: setup
	@.venv/bin/hadolint deploy/Dockerfile && for profile in "" job demo; do GRAFANA_ADMIN_PASSWORD=check \
	COMPOSE_PROFILES=$$profile .venv/bin/docker-compose --env-file .env.example config -q || exit 1; done

format: setup ## Format the code
	@.venv/bin/ruff format . && .venv/bin/ruff check --fix .

golden: setup ## Write the golden files again; review them as a diff
	@$(RUN) -m pytest -q tests/grouping/simulation/test_golden.py --golden

references: setup ## Regenerate the schema, pages, dashboards and manifests that follow from code
	@.venv/bin/unskew schema --output config/schema.json && $(RUN) -m docs.reference.metrics && $(RUN) -m docs.reference.configuration && \
	$(RUN) -m docs.reference.groupings && $(RUN) -m docs.reference.counts && $(RUN) -m dashboards && $(RUN) deploy/prometheus_rule.py

pictures: setup ## Take the pictures in docs/images of the live page and of the demo again: needs Chromium
	@$(RUN) -m docs.reference.screenshots && .venv/bin/unskew demo --png docs/images/before-after.png

coverage: setup ## Tests with coverage of config and grouping
	@$(RUN) -m coverage run -m pytest -q -m "not slow and not long and not spark and not e2e" && \
	$(RUN) -m coverage combine -q && $(RUN) -m coverage report

compose-dry: setup ## What docker-compose.yml starts, natively: no engine needed
	@exec $(RUN) -m tests.compose.dry $(ARGS)

bench-kernels: setup ## Routing rates of every grouping, as ratios
	@exec $(RUN) -m benchmarks.kernels $(ARGS)

bench-balance: setup ## Balance and state of every grouping over the papers' settings (long)
	@exec $(RUN) -m benchmarks.balance $(ARGS)

bench-engine: setup ## What the streaming engine costs and brings, on a real Kafka and Spark (long)
	@exec $(RUN) -m benchmarks.engine $(ARGS)

bench-model: setup ## The cost model of `compare` against the batches that bench-engine measured
	@exec $(RUN) -m benchmarks.model $(ARGS)

papers: setup ## The five papers re-measured, into docs/papers.md: what has changed, under an hour for all
	@exec $(RUN) -m benchmarks.papers $(ARGS)

papers-large: setup ## The papers' figures whose streams take gigabytes, into docs/papers.md
	@exec $(RUN) -m benchmarks.papers --large --only "*full size*" $(ARGS)

papers-quick: setup ## The papers' figures that have a band, in shorter streams; fails when one leaves it
	@exec $(RUN) -m benchmarks.papers --quick $(ARGS)

bench-tables: setup ## Writers of a partitioned table: time, files and balance, against what users write instead (long)
	@exec $(RUN) -m benchmarks.table_writers $(ARGS)

lock: setup ## Pin the packages again
	$(UV) $(LOCKS)/build.in -o $(LOCKS)/build.txt
	$(UV) pyproject.toml -c $(LOCKS)/build.txt -o $(LOCKS)/runtime.txt
	$(UV) pyproject.toml --extra plot -c $(LOCKS)/runtime.txt -o $(LOCKS)/plot.txt
	$(UV) pyproject.toml --extra jre -c $(LOCKS)/runtime.txt -o $(LOCKS)/jre.txt
	$(UV) pyproject.toml --extra plot --group dev -c $(LOCKS)/plot.txt -c $(LOCKS)/build.txt -o $(LOCKS)/dev.txt
	cd $(LOCKS)/editor && npm install --package-lock-only --omit-lockfile-registry-resolved --ignore-scripts --no-audit --no-fund

jars-lock: setup ## Pin the JVM artifacts again
	@exec $(RUN) deploy/lock_jars.py

wheel: setup ## Build the wheel into dist/
	@exec $(RUN) -m hatchling build -t wheel

clean: ## Remove what the set-up and the tests made
	rm -rf .venv .cache dist build .hypothesis .ruff_cache .import_linter_cache
