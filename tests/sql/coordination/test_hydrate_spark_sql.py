"""CREATE MATERIALIZED VIEW … WITH (HYDRATE = …) as users see it. ``tests.support.spark_fake`` stands in for Spark's
exchange, except in the last test."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ivm.errors import SqlError
from ivm.graph import NodeId
from planner.distributed import file_store, hydration
from planner.distributed import hydration_choice as hydrate_by
from planner.distributed.hydration_choice import Hydrate
from planner.physical.nodes import Plan, Scope
from storage.spark.blocks import IdsClashError
from storage.spark.session import SparkSession, SparkSettings
from tests.sql.coordination.test_hydration import VIEWS, change, filled
from tests.support.sessions import Client, Server
from tests.support.spark_fake import FakeSpark
from tests.support.spark_local import Lent

QUERIES = VIEWS | {
    "windows": "SELECT id, sum(x) OVER (PARTITION BY k) AS s, row_number() OVER (PARTITION BY k ORDER BY id) FROM t",
    "latest": "SELECT DISTINCT ON (k) k, id, x FROM t ORDER BY k, x DESC, id",
    "asof": "SELECT t.id, u.name FROM t ASOF LEFT JOIN u ON t.k >= u.k",
    "sorted": "SELECT max(name) AS last, string_agg(name, ',' ORDER BY name DESC) AS names FROM u",
    "three": "SELECT a.id, b.id AS other, u.name FROM t a JOIN t b ON a.k = b.x JOIN u ON u.k = b.k",
    "counting": "WITH RECURSIVE c(n) AS (SELECT DISTINCT k FROM t UNION ALL SELECT n + 1 FROM c WHERE n < 9) "
    "SELECT n, count(*) AS times FROM c GROUP BY n",
    "least": "WITH MUTUALLY RECURSIVE l (a int, b int) AS (SELECT a, min(b) FROM (SELECT id AS a, id AS b FROM t "
    "UNION ALL SELECT t.k, l.b FROM l JOIN t ON l.a = t.id) AS u GROUP BY a) SELECT a, b FROM l",
    "limited": "WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT 4) a (x int) AS (SELECT k FROM t UNION ALL "
    "SELECT x + 1 FROM b), b (x int) AS (SELECT DISTINCT x FROM a) SELECT x, count(*) AS n FROM a GROUP BY x",
    "nested": "WITH MUTUALLY RECURSIVE o (x int) AS (SELECT DISTINCT k FROM t UNION SELECT y FROM (WITH MUTUALLY "
    "RECURSIVE i (y int) AS (SELECT x + 1 FROM o WHERE x < 9 UNION SELECT y + 2 FROM i WHERE y < 12) SELECT y FROM i) "
    "AS n WHERE y < 12) SELECT x FROM o",
    "endless": "WITH MUTUALLY RECURSIVE (ERROR AT RECURSION LIMIT 5) a (x int) AS (SELECT id FROM t UNION SELECT x + 1 "
    "FROM a) SELECT x FROM a",
    "empty": "SELECT count(*) AS n, sum(x) AS s FROM t WHERE x > 1000",
}


@pytest.fixture
def spark(server: Server, tmp_path: Path) -> FakeSpark:
    fake = FakeSpark(tmp_path)
    server.coordinator.spark._session = fake  # type: ignore[assignment]
    return fake


@pytest.fixture
def pair(server: Server) -> Iterator[tuple[Client, Client]]:
    with filled(server, "i % 5 + 1") as clients:
        yield clients


def outcome(client: Client, query: str) -> object:
    try:
        return sorted(client.rows(query), key=str)
    except SqlError as error:
        return error.sqlstate


def recomputed(client: Client, query: str) -> bool:
    """Whether the view equals the query's result, or fails as the query does."""
    return outcome(client, "SELECT * FROM v") == outcome(client, query)


@pytest.mark.parametrize("name", QUERIES)
def test_what_is_committed_meanwhile_is_in_the_view(
    server: Server, spark: FakeSpark, pair: tuple[Client, Client], name: str
) -> None:
    """Commits arrive while Spark works, and afterwards; at each the view equals the query's result."""
    a, b = pair
    rng, serial = random.Random(name), iter(range(1000, 2000))
    spark.before_stage = lambda: change(b, rng, serial)
    a.run(f"CREATE MATERIALIZED VIEW v WITH (HYDRATE = spark) AS {QUERIES[name]}")
    assert spark.jobs
    assert b.rows("SELECT view FROM freshet.hydrations") == []
    for _ in range(6):
        assert recomputed(b, QUERIES[name])
        change(b, rng, serial)
    assert server.coordinator.engine.dataflow.held is False


def test_people_see_who_computes_a_view_and_cancel_it(
    server: Server, spark: FakeSpark, pair: tuple[Client, Client]
) -> None:
    a, b = pair
    seen: list[tuple[str | None, ...]] = []
    stages = iter(range(10))

    def look() -> None:
        stage = next(stages)
        for _ in range(100):
            seen.extend(b.rows("SELECT view, phase, by, step, updates > 0 FROM freshet.hydrations"))
            if stage < 2 or "Join" in (seen[-1][3] or ""):
                break
            time.sleep(0.05)
        if stage == 2:
            b.run("SELECT pg_cancel_backend(pid) FROM freshet.hydrations")

    spark.before_stage = look
    assert a.state(f"CREATE MATERIALIZED VIEW v WITH (HYDRATE = spark) AS {QUERIES['three']}") == "57014"
    assert seen[0] == ("v", "hydrating", "spark", "read", "t")
    assert "Join" in (seen[-1][3] or "")
    assert next(stages) == 3
    assert b.state("SELECT * FROM v") == "42P01"
    assert spark.settings.shared is not None
    for _ in range(100):
        if not list(spark.settings.shared.iterdir()):
            break
        time.sleep(0.05)
    else:
        raise AssertionError("something stays in the shared folder")
    assert server.coordinator.engine.dataflow.held is False


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("WITH (HYDRATE = local)", "hydrated by local (as asked for)"),
        ("WITH (RETAIN HISTORY FOR '1h', hydrate 'spark')", "hydrated by spark (as asked for)"),
        ("WITH (HYDRATE = auto)", "hydrated by local (auto: 60 rows, about 0 s here, 10 s by Spark)"),
        ("", None),
    ],
)
def test_explain_says_who_and_why(
    spark: FakeSpark, pair: tuple[Client, Client], written: str, says: str | None
) -> None:
    a, _ = pair
    spark.settings = SparkSettings("local[2]")
    lines = [row[0] for row in a.rows(f"EXPLAIN CREATE MATERIALIZED VIEW v {written} AS {QUERIES['grouped']}")]
    assert (lines[-1] == says) if says is not None else not any("hydrated" in (line or "") for line in lines)


def test_large_views_are_sparks_on_a_cluster(
    spark: FakeSpark, pair: tuple[Client, Client], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    a, _ = pair
    monkeypatch.setattr(hydrate_by, "LOCAL_SECONDS", 1e6)
    spark.settings = SparkSettings("spark://nowhere:7077", tmp_path)
    a.run(f"CREATE MATERIALIZED VIEW v AS {QUERIES['grouped']}")
    assert spark.jobs == 1
    (*_, last) = a.rows(f"EXPLAIN CREATE MATERIALIZED VIEW w AS {QUERIES['grouped']}")
    assert last == ("hydrated by spark (auto: 60 rows, about 60 s here, 10 s by Spark)",)
    (*_, last) = a.rows(f"EXPLAIN CREATE MATERIALIZED VIEW w WITH (HYDRATE = auto) AS {QUERIES['sorted']}")
    assert last == ("hydrated by local (auto: 6 rows, about 6 s here, 10 s by Spark)",)
    (*_, last) = a.rows(f"EXPLAIN CREATE MATERIALIZED VIEW w WITH (HYDRATE = auto) AS {QUERIES['counting']}")
    assert last == ("hydrated by spark (auto: a recursive view over 60 rows, about 60 s here, 15 s by Spark)",)


PLAIN = Plan((), (), (), (), NodeId(0), None, ())
LOOP = replace(PLAIN, scopes=(Scope(None),))


@pytest.mark.parametrize(
    ("plan", "rows", "master", "limit", "by"),
    [
        (PLAIN, 10**7, "local[2]", 0, Hydrate.LOCAL),
        (PLAIN, 10**9, "local[2]", 0, Hydrate.LOCAL),
        (PLAIN, 10**7, "local[16]", 0, Hydrate.LOCAL),
        (PLAIN, 10**8, "local[16]", 0, Hydrate.SPARK),
        (LOOP, 5 * 10**7, "local[16]", 0, Hydrate.LOCAL),
        (LOOP, 10**9, "local[16]", 0, Hydrate.SPARK),
        (PLAIN, 10**8, "spark://a:7077,b:7077", 0, Hydrate.SPARK),
        (PLAIN, 10**7, "local[2]", 4 << 30, Hydrate.LOCAL),
        (PLAIN, 10**7, "local[2]", 1 << 30, Hydrate.SPARK),
        (PLAIN, 10**7, "local", 1 << 30, Hydrate.SPARK),
    ],
)
def test_who_is_chosen_follows_from_rows_cores_and_memory(
    plan: Plan, rows: int, master: str, limit: int, by: Hydrate
) -> None:
    assert hydrate_by.choose(None, plan, rows, master, limit).by is by


def refusals() -> list[tuple[str, str]]:
    view = "CREATE MATERIALIZED VIEW v WITH (HYDRATE = spark) AS"
    return [
        ("22023", "CREATE MATERIALIZED VIEW v WITH (HYDRATE = duck) AS SELECT k FROM t"),
        ("22023", "CREATE VIEW v WITH (HYDRATE = spark) AS SELECT k FROM t"),
        ("0A000", "CREATE TABLE v WITH (HYDRATE = spark) AS SELECT k FROM t"),
        ("25001", f"BEGIN; {view} SELECT k FROM t"),
        ("0A000", f"{view} SELECT t.id, u.name FROM t JOIN u FOR SYSTEM_TIME AS OF PROCTIME() ON t.k = u.k"),
    ]


@pytest.mark.parametrize(("state", "text"), refusals())
def test_what_cannot_be_is_refused(spark: FakeSpark, pair: tuple[Client, Client], state: str, text: str) -> None:
    a, b = pair
    assert a.state(text) == state
    a.run("ROLLBACK")
    assert b.state("SELECT * FROM v") == "42P01"
    assert not spark.jobs


def test_rounds_with_little_to_do_share_a_job(spark: FakeSpark, pair: tuple[Client, Client]) -> None:
    """Reachability along a chain: 60 rounds of two steps."""
    a, _ = pair
    a.run("CREATE TABLE chain (src int, dst int)")
    a.run("INSERT INTO chain SELECT i, i + 1 FROM generate_series(1, 60) i")
    before = file_store.cache.read
    a.run("CREATE MATERIALIZED VIEW ends WITH (HYDRATE = spark) AS WITH RECURSIVE r (n) AS (SELECT 1 UNION "
          "SELECT dst FROM r JOIN chain ON src = n) SELECT n FROM r")  # fmt: skip
    assert a.rows("SELECT count(*) FROM ends") == [("61",)]
    assert spark.jobs < 20
    assert file_store.cache.read == before, "who has run a part's last step has what it left"


@pytest.mark.parametrize("name", ["grouped", "counting"])
def test_a_spark_that_dies_is_one_error(spark: FakeSpark, pair: tuple[Client, Client], name: str) -> None:
    """Whatever Spark is asked next fails too."""
    a, b = pair

    def refused(*_: object) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    def die() -> None:
        spark.removeTag = spark.range = spark.parquet = refused  # type: ignore[method-assign, assignment]
        refused()

    spark.before_stage = die
    assert a.state(f"CREATE MATERIALIZED VIEW v WITH (HYDRATE = spark) AS {QUERIES[name]}") == "58000"
    assert b.state("SELECT * FROM v") == "42P01"
    assert spark.settings.shared is not None
    assert list(spark.settings.shared.iterdir()) == []


def test_ids_that_clash_leave_the_view_to_the_server(
    spark: FakeSpark, pair: tuple[Client, Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, _ = pair

    def clash(*_: object) -> None:
        raise IdsClashError

    monkeypatch.setattr(hydration, "take_into", lambda dictionary: clash)
    a.run(f"CREATE MATERIALIZED VIEW v WITH (HYDRATE = spark) AS {QUERIES['texts']}")
    assert recomputed(a, QUERIES["texts"])
    assert any("clash" in notice.message for notice in a.session.notices)


def test_spark_itself_does_the_same(server: Server, pair: tuple[Client, Client], local_spark: SparkSession) -> None:
    """Real frames: words in both directions, and values that executors intern."""
    a, _ = pair
    server.coordinator.spark._session = Lent(local_spark, local_spark.settings)  # type: ignore[assignment]
    server.start(a.work(f"CREATE MATERIALIZED VIEW v WITH (HYDRATE = spark) AS {QUERIES['texts']}")).result(300)
    a.run("INSERT INTO u VALUES (5, 'five')")
    assert recomputed(a, QUERIES["texts"])
    assert local_spark.running
