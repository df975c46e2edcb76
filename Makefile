# Every verb of the project; `make help` prints them.
PYTHON ?= python3
PORT   ?= 8000
BIN    := .venv/bin
# Tests of one database only: make test DATABASES=sqlite
DATABASES ?= sqlite,postgresql
# Clients are generated in an environment of their own, those for TypeScript where npm is.
NPM := tests/sdk/npm/node_modules
# npm tries for minutes by default, without a word, where there is no registry to reach.
NPM_GIVES_UP := --fetch-retries=1 --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=2000 --fetch-timeout=15000
# What pages load in a browser, bundled where npm is.
FRONTEND := app/web/frontend
ASSETS   := app/web/static/dist

.DEFAULT_GOAL := help
.PHONY: help run .port-is-free test test-all .test-tools faults soak check contract sdk clients fix openapi bench migrate lock clean assets screenshots snapshots tasks audit fuzz dist

help: ## print this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/; s/\$$\(PORT\)/$(PORT)/' | expand -t 12

run: .port-is-free .venv/runtime ## set up, migrate, seed and serve on http://127.0.0.1:$(PORT) with SQLite
	@test -e $(ASSETS)/licences.txt || echo "bundling the scripts and fonts of the pages with npm ..."
	@$(MAKE) --no-print-directory --silent $(ASSETS)/licences.txt 2> /dev/null || \
	  echo "npm is missing or reaches no registry: the pages work, without scripts and in the fonts of the system"
	$(BIN)/vmsizes migrate
	$(BIN)/vmsizes ingest seeds
	VMSIZES_PORT=$(PORT) $(BIN)/vmsizes serve

.port-is-free:
	@$(PYTHON) -c "import socket; s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); \
	s.bind(('127.0.0.1', $(PORT)))" 2> /dev/null || \
	  { echo "port $(PORT) is taken; choose another: make run PORT=$$(($(PORT) + 1))" >&2; exit 1; }

test: .test-tools ## run the quick tests on SQLite and on PostgreSQL (DATABASES=sqlite for one)
	VMSIZES_TEST_DATABASES=$(DATABASES) $(BIN)/python -m tests --quick $(ARGS)

test-all: .test-tools ## run also the tests that take seconds, as CI does (20 minutes; ARGS=--slow for every case)
	VMSIZES_TEST_DATABASES=$(DATABASES) $(BIN)/python -m tests $(ARGS)

.test-tools: .venv/dev .venv/sdk/ready
	@if command -v npm > /dev/null; then $(MAKE) --no-print-directory $(NPM)/.quick || \
	  echo "npm reaches no registry: clients for TypeScript are not tried (those tests say so)"; fi
	@$(MAKE) --no-print-directory --silent $(ASSETS)/licences.txt 2> /dev/null || \
	  echo "npm is missing or reaches no registry: pages are tried without scripts, and not by axe"

faults: .venv/dev ## run all fault tests on both databases, also the slow ones that make test leaves out
	VMSIZES_TEST_DATABASES=$(DATABASES) $(BIN)/pytest -q --slow tests/faults $(ARGS)

soak: .venv/dev ## serve under load with ingests, restarts and faults for 10 minutes (ARGS="--minutes 2")
	$(BIN)/python -m benchmarks.soak $(ARGS)

check: .venv/dev ## lint, types, import contracts, migrations, OpenAPI documents, documentation in step (a minute)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m benchmarks.accuracy --check
	VMSIZES_TEST_DATABASES=sqlite $(BIN)/pytest -q tests/test_tree.py tests/test_migrations.py \
	  tests/api/openapi/test_drift.py tests/docs/test_completeness.py

contract: .venv/dev .venv/sdk/ready $(NPM)/.all ## lint, score, diff and fuzz the OpenAPI document (2 minutes)
	$(BIN)/python -m tests.sdk contract $(ARGS)
	VMSIZES_TEST_DATABASES=sqlite $(BIN)/pytest -q --slow tests/sdk/test_gates.py tests/sdk/test_packages.py

sdk: .venv/dev .venv/sdk/ready .venv/sdk/go $(NPM)/.all ## generate, compile and use clients in 11 ways (2 minutes; ARGS=--json)
	$(BIN)/python -m tests.sdk clients $(ARGS)

audit: .venv/dev .venv/audit/ready ## known vulnerabilities, licences, bill of materials (build/sbom.cdx.json), Kubernetes files
	$(BIN)/python -m tests.audit $(ARGS)

dist: .venv/dev .venv/audit/ready $(ASSETS)/licences.txt ## build wheel, data package, bill of materials and checksums into dist/ (a minute)
	$(BIN)/python -m tests.release

fuzz: .venv/dev ## 20 minutes of hostile files, pages, forms and calls of tools (ARGS="--minutes 60 --database postgresql")
	$(BIN)/python -m tests.fuzz $(ARGS)

assets: $(ASSETS)/licences.txt ## bundle the scripts and fonts of the pages (npm)

tasks: .venv/dev $(ASSETS)/licences.txt ## do twenty tasks in Chromium, on desktop and phone: clicks, seconds, right answers
	VMSIZES_TEST_DATABASES=sqlite $(BIN)/python -m tests.browser.tasks

screenshots: .venv/dev $(ASSETS)/licences.txt ## write every page, light and dark, on phone and desktop, to build/screenshots
	VMSIZES_TEST_DATABASES=sqlite $(BIN)/python -m tests.browser

snapshots: .venv/dev $(ASSETS)/licences.txt ## keep how the main pages look now, which a test compares (ARGS=search for some)
	VMSIZES_TEST_DATABASES=sqlite $(BIN)/python -m tests.browser.snapshots $(ARGS)

clients: .venv/dev .venv/sdk/ready $(NPM)/.quick ## build the Python and TypeScript clients into build/clients
	$(BIN)/python -m tests.sdk packages $(ARGS)

fix: .venv/dev ## format and apply the safe lint fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

openapi: .venv/dev ## write the OpenAPI documents in docs/ again
	$(BIN)/python -m tests.api.openapi

bench: .venv/dev .venv/bench/ready ## paired benchmarks, needs wrk (about half an hour; make bench ARGS=--quick: 12 minutes)
	$(BIN)/python -m benchmarks $(ARGS)

migrate: .venv/runtime ## bring the database at VMSIZES_DATABASE_URL to the newest schema
	$(BIN)/vmsizes migrate

lock: .venv/dev ## resolve the dependencies again into the hash-locked files
	$(BIN)/uv pip compile pyproject.toml --extra mcp --group build --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-header --upgrade --quiet -o requirements.lock
	$(BIN)/uv pip compile pyproject.toml --extra mcp --extra otel --group build --group dev -c requirements.lock --universal \
	  --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --upgrade --quiet -o requirements-dev.lock
	$(BIN)/uv pip compile benchmarks/requirements.in --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-header --upgrade --quiet -o benchmarks/requirements.lock
	for tools in requirements go; do \
	  $(BIN)/uv pip compile tests/sdk/$$tools.in --universal --python-version 3.11 --generate-hashes \
	    --no-emit-index-url --no-header --upgrade --quiet -o tests/sdk/$$tools.lock; done
	$(BIN)/uv pip compile tests/audit/requirements.in --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-header --upgrade --quiet -o tests/audit/requirements.lock

clean: ## remove the environment, caches and the local database
	rm -rf .venv build $(NPM) $(FRONTEND)/node_modules $(ASSETS) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis dist vmsizes.db*

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/runtime: requirements.lock pyproject.toml | .venv/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.venv/dev: requirements-dev.lock .venv/runtime
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

# Peers that are measured beside the project have an environment of their own.
.venv/bench/ready: benchmarks/requirements.lock | .venv/bin/python
	$(PYTHON) -m venv .venv/bench
	.venv/bench/bin/pip install --quiet --disable-pip-version-check --require-hashes -r benchmarks/requirements.lock
	@touch $@

# Tools that read the OpenAPI document: generators and the fuzzer, the Go compiler, and those of npm.
.venv/sdk/ready: tests/sdk/requirements.lock | .venv/bin/python
	$(PYTHON) -m venv .venv/sdk
	.venv/sdk/bin/pip install --quiet --disable-pip-version-check --require-hashes -r tests/sdk/requirements.lock
	@touch $@

.venv/audit/ready: tests/audit/requirements.lock | .venv/bin/python
	$(PYTHON) -m venv .venv/audit
	.venv/audit/bin/pip install --quiet --disable-pip-version-check --require-hashes -r tests/audit/requirements.lock
	@touch $@

.venv/sdk/go: tests/sdk/go.lock .venv/sdk/ready
	.venv/sdk/bin/pip install --quiet --disable-pip-version-check --require-hashes -r tests/sdk/go.lock
	@touch $@

$(NPM)/.quick: tests/sdk/npm/package-lock.json
	npm ci --prefix tests/sdk/npm --ignore-scripts --silent --omit=dev
	@touch $@

$(FRONTEND)/node_modules/.ready: $(FRONTEND)/package-lock.json
	npm ci --prefix $(FRONTEND) --ignore-scripts --silent $(NPM_GIVES_UP)
	@touch $@

$(ASSETS)/licences.txt: $(FRONTEND)/node_modules/.ready $(FRONTEND)/build.mjs $(wildcard $(FRONTEND)/src/*.js)
	node $(FRONTEND)/build.mjs

$(NPM)/.all: tests/sdk/npm/package-lock.json
	npm ci --prefix tests/sdk/npm --ignore-scripts --silent
	@touch $@ $(NPM)/.quick
