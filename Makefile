# Everything runs in one environment, .venv in this checkout: made on first use, updated when pyproject.toml or the pinned
# versions change. Needs Python 3.11+ (make PYTHON=... to name one) and nothing else.

VENV  := .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed

# More arguments for what is run: make test ARGS="-k fiba", make demo ARGS="--help"
ARGS ?=

# Processes that run tests. Each keeps what it has compiled in memory: about 3 GB by the end.
WORKERS ?= 2

# Compiled operators survive here between runs: the first run compiles for some minutes, the next ones do not. The demo uses the
# cache of whoever runs it, so that a job that is tried after it starts at once.
test bench spark-versions: export SLIDEWISE_CACHE_DIR ?= $(CURDIR)/.cache/slidewise

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test bench lint check format types spark-versions lock environment clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

demo: $(STAMP) ## a month of flights as a Spark stream, checked against the batch answer
	$(BIN)/slidewise demo $(ARGS)

test: lint ## lint, types and all tests
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(ARGS)

bench: $(STAMP) ## all benchmarks at their short sizes, and bench-results/report.html; full sizes: .venv/bin/slidewise bench
	$(BIN)/slidewise bench --quick --report $(ARGS)

lint: check types ## ruff and the type checker

check: $(STAMP)
	$(BIN)/ruff check .

types: $(STAMP)
	$(BIN)/python -m mypy

format: $(STAMP) ## format the code
	$(BIN)/ruff format src tests

spark-versions: $(STAMP) ## the Spark tests on other PySpark versions, each in an environment of its own
	scripts/spark_versions.sh $(ARGS)

environment: $(STAMP) ## only set .venv up

$(STAMP): pyproject.toml requirements/dev.lock scripts/environment.sh
	@scripts/environment.sh $@

lock: $(STAMP) ## pin the versions that are installed now
	@{ echo "# The versions that are developed and tested with, for pip's -c. Regenerate with: make lock"; \
	   $(BIN)/python -m pip freeze --exclude-editable; } > requirements/dev.lock.new
	@mv requirements/dev.lock.new requirements/dev.lock
	@touch $(STAMP)

clean: ## remove the environment, the caches and what runs left behind
	rm -rf $(VENV) .venv-* .cache .ruff_cache .hypothesis build dist spark-warehouse metastore_db derby.log
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
