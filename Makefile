# Freshet. `make demo` and `make test` set up everything they need in .venv; nothing else is installed.

SHELL := /bin/bash
VENV := .venv
PY := $(VENV)/bin/python
DEMO_FLAGS := $(if $(DEMO_EXIT),--exit) $(if $(LOAD),--load $(LOAD)) $(if $(PORT),--port $(PORT))

.PHONY: clients demo tpch test lint types layers images images-check bench rivals pictures server requirements cluster histories fuzz wire beside blocks checked joins proctime aggregates priorities laws extremes bombs isolation chaos crashes spark-kills spark-hydration sink-kills source-kills sqlglot clean

demo: $(VENV)/server.done $(if $(filter spark,$(LOAD)),$(VENV)/test.done)
	$(PY) -m examples.debian.demo $(DEMO_FLAGS)

# TPC-H's tables and its 22 queries as views: make tpch SCALE=1 ENGINE=spark FLAGS="--hydrate spark --rounds 20"
tpch: $(VENV)/test.done
	$(PY) -m examples.tpch.run --scale $(or $(SCALE),0.1) --engine $(or $(ENGINE),auto) $(FLAGS)

server: $(VENV)/server.done
	$(PY) server.py $(FLAGS)

# A Spark master and two workers on this machine until Ctrl-C; FLAGS=--connect adds a Spark Connect server.
cluster: $(VENV)/test.done
	$(PY) -m storage.spark.cluster $(FLAGS)

# In a process for each core and one more, four at most, or in WORKERS=n; 0 is one, in order.
test: $(VENV)/test.done
	$(PY) -m pytest --numprocesses $(or $(WORKERS),auto) --maxprocesses 4

lint: $(VENV)/test.done
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

types: $(VENV)/test.done
	$(VENV)/bin/mypy

layers: $(VENV)/test.done
	$(VENV)/bin/lint-imports

# Compiles the kernels that come with the sources (ivm/kernels/images/), after a change of one: those that have changed,
# or FLAGS=--anew all, into one file, which takes minutes.
images: $(VENV)/server.done
	$(PY) -m sql.session.images $(FLAGS)

# Fails if they are not those of the sources.
images-check: $(VENV)/server.done
	$(PY) -m sql.session.images --check

bench: $(VENV)/test.done
	$(PY) -m benchmarks.run $(if $(ONLY),--only $(ONLY))

# What `make bench` runs beside, apart from the project's own environment: pathway (BSL 1.1), for measuring only.
rivals: | $(PY)
	$(PY) -m venv .venv-rivals
	.venv-rivals/bin/python -m pip install --quiet --disable-pip-version-check pathway==0.33.0

# Draws docs/benchmarks/*.svg from the stored measurements; MEASURE=all (or fixpoints,latency,…) measures anew before.
pictures: $(VENV)/test.done
	$(PY) -m benchmarks.pictures $(if $(MEASURE),--measure $(MEASURE))

# The long forms: random histories against the oracle, laws over many examples, kills at random moments.
histories: $(VENV)/test.done
	$(PY) -m tests.programs.histories --count $(or $(COUNT),2000) $(if $(ASOF),--asof $(ASOF))

# Other projects' clients, each by its own code; what they could do goes into docs/reference/compatibility.md. Those from
# PyPI and npm are installed apart; Debian's are used if they are there. What cannot be had is written down as not run.
# Then clients' own test suites, some 20 minutes: make clients SUITES="asyncpg SQLAlchemy" PSYCOPG=/a/checkout
clients: $(VENV)/test.done .venv-clients/done
	$(PY) -m tests.clients.table; found=$$?; $(PY) -m tests.clients.suites $(SUITES) && exit $$found

.venv-clients/done: requirements/clients.txt requirements/clients.json | $(PY)
	$(PY) -m venv .venv-clients
	-.venv-clients/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/clients.txt
	mkdir -p .venv-clients/node && cp requirements/clients.json .venv-clients/node/package.json
	-cd .venv-clients/node && npm install --no-audit --no-fund --ignore-scripts --silent
	@touch $@

# Random statements over the whole grammar: none fails internally, ends a session or hangs.
fuzz: $(VENV)/test.done
	$(PY) -m tests.programs.fuzz --count $(or $(COUNT),1000000) --seed $(or $(SEED),0)

# Random messages, right ones and damaged: without sockets, then over sockets.
wire: $(VENV)/test.done
	$(PY) -m tests.programs.wire_fuzz --messages $(or $(COUNT),1000000) --seed $(or $(SEED),0)
	$(PY) -m tests.programs.wire_fuzz --messages $(or $(SOCKETS),100000) --seed $(or $(SEED),0) --sockets

# Random queries and histories beside a PostgreSQL with a database of collation C, which is emptied.
beside: $(VENV)/test.done
	$(PY) -m tests.programs.beside_postgres --dsn "$(DSN)" --count $(or $(COUNT),500)

# WITH MUTUALLY RECURSIVE: a thousand histories of nested blocks.
blocks: $(VENV)/test.done
	$(PY) -m tests.programs.histories --blocks --count $(or $(COUNT),1000) --steps 6 --shapes batch rows churn

# Kernels' tests with every address and index checked; they are compiled apart, which takes minutes.
checked: $(VENV)/test.done
	$(PY) -m tests.programs.checked --long

joins: $(VENV)/test.done
	$(PY) -m tests.programs.join_histories --count $(or $(COUNT),1000)
	$(PY) -m tests.programs.late_histories --count $(or $(COUNT),1000)

proctime: $(VENV)/test.done
	$(PY) -m tests.programs.proctime_histories --count $(or $(COUNT),1000)

aggregates: $(VENV)/test.done
	$(PY) -m tests.programs.model_aggregates --count $(or $(COUNT),1000)
	$(PY) -m tests.programs.user_aggregates --count $(or $(COUNT),1000)

priorities: $(VENV)/test.done
	$(PY) -m tests.programs.prioritised --count $(or $(COUNT),1000)

# Random queries in other words: one plan.
spellings: $(VENV)/test.done
	$(PY) -m tests.planner.transform.test_equal_plans 0 $(or $(COUNT),1000)

# What is asked enters recursions: against the same queries, whole.
demand: $(VENV)/test.done
	$(PY) -m tests.planner.transform.test_demand 0 $(or $(COUNT),1000)

# Transactions of several clients, searched for what LEVEL forbids ("read committed", serializable).
# Statements that would take gigabytes or for ever: make bombs COUNT=100
bombs: $(VENV)/test.done
	$(PY) -m tests.programs.bombs --count $(or $(COUNT),100)

isolation: $(VENV)/test.done
	$(PY) -m tests.programs.isolation --count $(or $(COUNT),20000) --level "$(or $(LEVEL),serializable)"

laws: $(VENV)/test.done
	HYPOTHESIS_PROFILE=long $(PY) -m pytest --timeout 3600 $$(grep -rlE --include="test_*.py" "^from (hypothesis|tests.support.profiles) " tests)

# Every function and cast over the extremes of its types.
extremes: $(VENV)/test.done
	HYPOTHESIS_PROFILE=long $(PY) -m pytest --timeout 3600 tests/planner/expr/test_function_extremes.py
	$(PY) -m tests.programs.extreme_views
	RESOLUTION=all $(PY) -m pytest tests/sql/bind/test_resolution.py

chaos: $(VENV)/test.done
	$(PY) -m tests.programs.chaos --count $(or $(COUNT),20)

# kill -9 of executors of a two-worker cluster, then of the server, during loads.
spark-kills: $(VENV)/test.done
	$(PY) -m tests.programs.spark_kills --executors $(or $(COUNT),50) --servers $(or $(SERVERS),20)

# Views hydrated by Spark on a cluster hold what the engine's own hydration gives, arrangement by arrangement: the demo's,
# W1, W3, W8, TPC-H's. NAMES="demo W1" for some of them; FLAGS="--shrink 10 --scale 0.01" for less data.
spark-hydration: $(VENV)/test.done
	$(PY) -m tests.programs.twin_hydration $(NAMES) $(FLAGS)

crashes: $(VENV)/test.done
	$(PY) -m tests.programs.crashes --kills $(or $(COUNT),100)

# kill -9 of the server while sinks write: every change is in their files once.
sink-kills: $(VENV)/test.done
	$(PY) -m tests.programs.sink_kills --kills $(or $(COUNT),50)

# kill -9 of the server, of Spark's Java and of its Python workers while data keeps coming: every row is there once.
source-kills: $(VENV)/test.done
	$(PY) -m tests.programs.source_kills --count $(or $(COUNT),100)

# The parser with the first and the last sqlglot that pyproject.toml allows, each in an environment of its own.
SQLGLOT := 30.0.0 30.30.0
sqlglot: $(VENV)/test.done
	for version in $(SQLGLOT); do \
	  $(PY) -m venv --clear .venv-sqlglot && \
	  .venv-sqlglot/bin/python -m pip install --quiet --disable-pip-version-check --no-deps sqlglot==$$version && \
	  export PYTHONPATH=$$(echo .venv-sqlglot/lib/python*/site-packages) && \
	  $(PY) -c "import sqlglot; assert sqlglot.__version__ == '$$version', sqlglot.__version__" && \
	  $(PY) -m pytest $$(find tests -name test_syntax.py -o -name test_parse.py -o -name test_bind.py) || exit 1; \
	done

$(PY):
	@for python in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11; do \
	  if command -v $$python >/dev/null && \
	     $$python -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    echo "making $(VENV) with $$python"; $$python -m venv $(VENV) && exit 0; fi; done; \
	echo "Freshet needs Python 3.11 or later with venv (Debian: apt install python3-venv); say which with PYTHON=..." >&2; exit 1

$(VENV)/server.done: requirements/server.txt | $(PY)
	$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/server.txt
	@touch $@

$(VENV)/test.done: requirements/test.txt | $(PY)
	$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/test.txt
	@touch $@

# Pins for every platform and Python, with hashes and without any address.
requirements: $(VENV)/test.done
	$(PY) -m pip install --quiet pip-tools
	for extra in "--extra demo --extra dev --extra spark -o requirements/test.txt" \
	             "--extra demo -c requirements/test.txt -o requirements/server.txt"; do \
	  $(VENV)/bin/pip-compile --quiet --generate-hashes --no-header --no-emit-index-url --no-emit-trusted-host \
	    --no-emit-find-links --strip-extras --allow-unsafe $$extra pyproject.toml; done

clean:
	rm -rf $(VENV) .venv-rivals .venv-clients .venv-sqlglot demo-data freshet-data build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
