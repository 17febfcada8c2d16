# For a machine with Python 3.11 and make; the rest is installed here. See CONTRIBUTING.md.
BIN := .venv/bin
QUICK := tests/unit tests/contract tests/crash tests/sim tests/test_tidy.py
SERVERS := tests/contract tests/integration tests/e2e tests/docs
SOAK := benchmarks/results/soak.json
.PHONY: demo check test soak lock

demo: .venv/ready
	.ci/java
	$(BIN)/headgate demo

check: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n logical $(QUICK)

test: .venv/ready       # servers are fetched with low priority while check runs; three workers, since tests also wait
	.ci/java
	nice $(BIN)/python -m tests.servers.fetch & fetch=$$!; \
	$(MAKE) check || { kill $$fetch 2>/dev/null; exit 1; }; wait $$fetch
	$(BIN)/pytest -n 3 --dist loadfile --backend=servers $(SERVERS)

soak: test              # what chance decides, 20 times each; the result is kept as JSON
	for part in crash sim; do $(BIN)/pytest -n logical --soak=$(SOAK) --part=$$part tests/$$part || exit 1; done
	for part in contract integration e2e; do $(BIN)/pytest --soak=$(SOAK) --part=$$part tests/$$part || exit 1; done
	$(BIN)/pytest --soak=$(SOAK) --part=servers --backend=servers tests/contract

lock:                   # after a change of dependencies; never by itself: a clone's file times mean nothing
	$(BIN)/uv pip compile -q pyproject.toml --all-extras --universal -p 3.11 -o constraints.txt \
	  --no-emit-index-url --no-emit-find-links --no-header --no-annotate

.venv/ready: pyproject.toml constraints.txt
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Headgate needs Python 3.11 or newer as python3; next: apt-get install python3 python3-venv" >&2; exit 1; }
	@python3 -m venv .venv || { echo "next: apt-get install python3-venv" >&2; exit 1; }
	@echo "installing Python packages into .venv (about 500 MB with PySpark, a minute or two)"
	@$(BIN)/pip install -q --disable-pip-version-check --use-pep517 -c constraints.txt -e '.[all,dev]'
	@touch $@
