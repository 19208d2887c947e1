"""ALTER TABLE rewrites a table while the views over it stay: the same nodes, which do nothing."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from random import Random

import pytest

from ivm.errors import SqlError
from sql.engine.persist import Tuning
from storage.checkpoint import Pace
from tests.support.profiles import scaled
from tests.support.sessions import Client, Server

VIEWS = (
    "same AS SELECT * FROM t",
    "part AS SELECT a FROM t WHERE a < 5",
    "failing AS SELECT k, 12 / (a + 20) AS a FROM t",
    "once AS SELECT DISTINCT a FROM t",
    "grouped AS SELECT a, count(*) AS n, max(k) AS m, string_agg(s, ',' ORDER BY k) AS l FROM t GROUP BY a",
    "joined AS SELECT t.k, u.a, x.a AS b FROM t JOIN u ON t.k = u.k JOIN t x ON x.k = u.a",
    "pair AS SELECT t.k, u.a FROM t LEFT JOIN u ON t.a = u.k",
    "without AS SELECT k FROM t WHERE NOT EXISTS (SELECT FROM u WHERE u.k = t.k)",
    "reach AS WITH RECURSIVE r(k) AS (SELECT k FROM u UNION SELECT t.a FROM r JOIN t ON t.k = r.k) SELECT * FROM r",
    "walk AS WITH RECURSIVE r(k, a) AS (SELECT k, a FROM t UNION SELECT r.k, t.a FROM r JOIN t ON t.k = r.a)"
    " SELECT * FROM r",
    "top AS SELECT k, a, s FROM t ORDER BY a, k LIMIT 3",
    "ranked AS SELECT k, a, row_number() OVER (PARTITION BY a ORDER BY k) AS n, lag(k) OVER (ORDER BY k) AS p FROM t",
    "family AS SELECT k, a FROM p",
    "below AS SELECT p.k, t.s FROM p JOIN t USING (k)",
    "whole AS SELECT t AS x FROM t",
    "over AS SELECT n, count(*) AS c FROM grouped GROUP BY n",
    "above AS SELECT x.k, y.n FROM same x JOIN grouped y USING (a)",
    "called AS SELECT k, twice(a) AS d FROM t",
    "looked AS SELECT k, most() AS m FROM u",
)
SLOW = Tuning(pace=Pace(seconds=600))


def _names(views: tuple[str, ...]) -> list[str]:
    return [view.split(" ")[0] for view in views]


def _set_up(client: Client, views: tuple[str, ...]) -> None:
    client.run("CREATE TABLE t (k int PRIMARY KEY, a int, s text, UNIQUE (s))")
    client.run("CREATE TABLE u (k int NOT NULL, a int)")
    client.run("CREATE TABLE p (k int, a int); CREATE TABLE c (x text) INHERITS (p)")
    client.run("CREATE FUNCTION twice(int) RETURNS int LANGUAGE sql AS 'SELECT 2 * $1'")
    client.run("CREATE FUNCTION most() RETURNS int LANGUAGE sql AS 'SELECT max(a) FROM t'")
    client.run("INSERT INTO t VALUES (1, 1, 'x'), (2, 2, NULL), (3, NULL, 'y'), (4, 1, 'z'), (5, 6, 'w')")
    client.run("INSERT INTO u VALUES (1, 2), (2, 3), (4, NULL), (6, 1), (1, 2)")
    client.run("INSERT INTO p VALUES (1, 2), (1, 2), (2, NULL); INSERT INTO c VALUES (3, 2, 'c')")
    client.run("CREATE INDEX ON t (a)")
    for view in views:
        client.run(f"CREATE MATERIALIZED VIEW {view}")


def _change(client: Client, random: Random) -> None:
    table, k, a = random.choice("ttupc"), random.randint(0, 9), random.choice((0, 1, 2, 3, 4, 5, 6, "NULL"))
    match random.randint(0, 3):
        case 0 | 1 if table == "t":
            client.run(f"INSERT INTO t VALUES ({k}, {a}) ON CONFLICT DO NOTHING")
        case 0 | 1:
            client.run(f"INSERT INTO {table} VALUES ({k}, {a}), ({k}, {a})")
        case 2:
            client.run(f"DELETE FROM {table} WHERE k = {k} OR a = 0")
        case _:
            client.run(f"UPDATE {table} SET a = {a} WHERE k > {k}")


def _alter(client: Client, random: Random, number: int) -> None:
    """A change after which the table still has all that views read."""
    table = random.choice("ttup")
    kind = random.choice(("int DEFAULT 7", "text", "float8 DEFAULT random()", "bool NOT NULL DEFAULT true", "serial"))
    kind = "date DEFAULT now()" if (table, kind) == ("p", "serial") else kind  # refused where others inherit
    more = random.choice(("", "", f", ADD COLUMN y{number} text DEFAULT 'y'", ", ALTER a SET DEFAULT 3"))
    client.run(f"ALTER TABLE {table} ADD COLUMN x{number} {kind}{more}")
    if random.random() < 0.3:
        client.run(f"UPDATE {table} SET x{number} = DEFAULT WHERE k > {random.randint(0, 6)}")


def _look(client: Client, views: list[str]) -> list[object]:
    found: list[object] = []
    for view in views:
        found.append(client.sorted(f"SELECT * FROM {view}"))
        assert client.rows(f"VERIFY MATERIALIZED VIEW {view}") == [], view
    return found


def _ids(server: Server) -> dict[str, int]:
    relations = server.coordinator.engine.catalog.relations.values()
    return {r.name: r.id for r in relations if r.definition is not None and r.name != "whole"}


def _in_a_block(client: Client, other: Client, random: Random, views: list[str], number: int) -> None:
    """With a change of its own before and after, others' commits in between, and savepoints."""
    client.run("BEGIN")
    for step in range(random.randint(1, 5)):
        client.run(f"SAVEPOINT s{step}")
        match random.randint(0, 4):
            case 0 | 1:
                _alter(client, random, 100 * number + step)
            case 2:
                _change(client, random)
            case 3:
                other.run(f"INSERT INTO apart VALUES ({step})")
            case _:
                client.run(f"CREATE MATERIALIZED VIEW m{step} AS SELECT k, count(*) AS n FROM t GROUP BY k")
                _look(client, [f"m{step}"])
                client.run(f"DROP MATERIALIZED VIEW m{step}")
        if random.random() < 0.3:
            client.run(f"ROLLBACK TO s{step}")
        if random.random() < 0.5:
            for view in views:
                text = f"SELECT * FROM {view}"
                assert client.sorted(text) == client.sorted(text), view
            _compare(client, views)
    client.run(random.choice(("COMMIT", "COMMIT", "ROLLBACK")))


def _compare(client: Client, views: list[str]) -> None:
    """Each view with its recompute, inside of a block, where VERIFY is refused."""
    for view in views:
        definition = client.rows(f"SELECT pg_get_viewdef('{view}'::regclass)")[0][0]
        assert definition is not None
        text = definition.rstrip().rstrip(";")
        assert client.sorted(f"SELECT * FROM {view}") == client.sorted(f"SELECT * FROM ({text}) AS again"), view


@pytest.mark.parametrize("seed", range(scaled(4)))
def test_random_histories(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    server = Server(tmp_path / "data", tuning=SLOW if seed % 2 else None)
    client, other = server.client(), server.client()
    views = tuple(v for v in VIEWS if random.random() < 0.6 or v.startswith(("grouped", "same")))
    names = _names(views)
    _set_up(client, views)
    client.run("CREATE TABLE apart (n int)")
    ids, seen, killed = _ids(server), {}, False
    for step in range(12):
        match random.randint(0, 3):
            case 0:
                _alter(client, random, step)
            case 1:
                _in_a_block(client, other, random, names, step + 1)
            case _:
                _change(client, random)
        found = _look(client, names)
        assert _ids(server) == ids
        seen[server.coordinator.engine.published.epoch] = found
        if random.random() < 0.15:
            if killed or random.random() < 0.5:
                server.restart()
            else:
                killed = True  # once: the store has not heard yet that the views were filled again
                shutil.copytree(server.folder, tmp_path / f"killed{step}")
                server.close()
                server = Server(tmp_path / f"killed{step}", tuning=server.tuning)
            client, other = server.client(), server.client()
            until = time.monotonic() + 60
            while server.coordinator.engine.failures and time.monotonic() < until:
                time.sleep(0.01)
            assert _look(client, names) == found
        for at, expected in seen.items():
            for view, rows in zip(names, expected, strict=True):
                assert view == "whole" or client.sorted(f"SELECT * FROM {view} AS OF {at}") == rows, (view, at)
    server.close()


def test_the_views_do_nothing(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    client = server.client()
    views = tuple(view for view in VIEWS if not view.startswith("whole"))
    _set_up(client, views)
    client.run("INSERT INTO t SELECT i, i % 100, 's' || i FROM generate_series(10, 5000) i")
    client.run("CREATE TABLE alone AS SELECT * FROM t")
    client.run("ALTER TABLE alone ADD PRIMARY KEY (k), ADD UNIQUE (s); CREATE INDEX ON alone (a)")
    engine, ids = server.coordinator.engine, _ids(server)
    stored, dataflow = engine.renderer.stored, engine.dataflow
    found = [stored[ids[name]].installed for name in _names(views)]
    kept = {n: dataflow.operator(n) for i in found if i is not None for n in i.nodes}
    before = dataflow.counters
    client.run("ALTER TABLE alone ADD COLUMN x int DEFAULT 3")
    between = dataflow.counters
    client.run("ALTER TABLE t ADD COLUMN x int DEFAULT 3")
    plain, work = between - before, dataflow.counters - between
    assert (work.matches, work.history) == (plain.matches, plain.history), (plain, work)
    assert _ids(server) == ids
    now = dataflow.nodes()
    gone = [n for n, operator in kept.items() if n not in now or now[n][1] is not operator]
    assert len(gone) == 1  # the table's own Input
    client.run("UPDATE t SET x = 4, a = a + 1 WHERE k % 50 = 3; DELETE FROM t WHERE k % 60 = 0")
    _look(client, _names(views))
    client.run(f"DROP MATERIALIZED VIEW {', '.join(_names(views))} CASCADE")
    client.run("DROP TABLE t, u, p, c, alone CASCADE")
    assert not dataflow.nodes()
    server.close()


@pytest.mark.parametrize(
    ("change", "stays"),
    [
        ("ADD COLUMN x int", True), ("ADD COLUMN x serial, ADD UNIQUE (x)", True), ("ADD PRIMARY KEY (k)", True),
        ("ALTER a SET NOT NULL", False), ("ALTER k DROP NOT NULL", False), ("DROP COLUMN s", False),
        ("ALTER s TYPE varchar(9)", False), ("ADD COLUMN x int, DROP COLUMN s", False),
    ],
)  # fmt: skip
def test_what_views_outlast(tmp_path: Path, change: str, *, stays: bool) -> None:
    server = Server(tmp_path / "data")
    client = server.client()
    client.run("CREATE TABLE t (k int NOT NULL, a int, s text); INSERT INTO t VALUES (1, 2, 'x'), (2, 2, 'y')")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n, max(k) AS m FROM t GROUP BY a")
    ids = _ids(server)
    client.run(f"ALTER TABLE t {change}")
    assert (_ids(server) == ids) is stays
    client.run("INSERT INTO t (k, a) VALUES (3, 2), (4, 1)")
    assert _look(client, ["v"]) == [[("1", "1", "4"), ("2", "3", "3")]]
    server.close()


def test_subscriptions_and_cursors_go_on(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    client, reader = server.client(), server.client()
    client.run("CREATE TABLE t (k int PRIMARY KEY, a int); INSERT INTO t VALUES (1, 2)")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a")
    reader.run("BEGIN; DECLARE c CURSOR FOR SUBSCRIBE v")
    assert [row[1:] for row in reader.rows("FETCH ALL c WITH (timeout = '20s')")] == [("1", "2", "1")]
    client.run("ALTER TABLE t ADD COLUMN x text DEFAULT 'x'")
    client.run("INSERT INTO t VALUES (2, 2, 'y')")
    found = sorted(row[1:] for row in reader.rows("FETCH ALL c WITH (timeout = '20s')"))
    assert found == [("-1", "2", "1"), ("1", "2", "2")]
    server.close()


def test_a_view_of_whole_rows_has_the_new_column(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    client = server.client()
    client.run("CREATE TABLE t (k int PRIMARY KEY, a int); INSERT INTO t VALUES (1, 2)")
    client.run("CREATE MATERIALIZED VIEW whole AS SELECT t AS x, t.* FROM t")
    client.run("CREATE MATERIALIZED VIEW padded AS SELECT t AS x FROM (VALUES (1), (5)) v (k) LEFT JOIN t USING (k)")
    client.run("CREATE VIEW plain AS SELECT row_to_json(t) AS x FROM t")
    client.run("ALTER TABLE t ADD COLUMN z int DEFAULT 3")
    client.run("INSERT INTO t VALUES (2, 3, 4)")
    assert client.sorted("SELECT * FROM whole") == [("(1,2,3)", "1", "2"), ("(2,3,4)", "2", "3")]
    assert client.sorted("SELECT * FROM padded") == [("(1,2,3)",), (None,)]
    assert client.sorted("SELECT * FROM plain") == [('{"k":1,"a":2,"z":3}',), ('{"k":2,"a":3,"z":4}',)]
    server.restart()
    assert server.client().sorted("SELECT * FROM whole") == [("(1,2,3)", "1", "2"), ("(2,3,4)", "2", "3")]
    server.close()


def test_a_step_that_does_not_end_is_undone(tmp_path: Path) -> None:
    """Also where an earlier change of the table stays in the transaction."""
    server = Server(tmp_path / "data")
    client = server.client()
    step = "SELECT 1 UNION ALL SELECT y FROM r JOIN e ON e.x = r.n"
    client.run("CREATE TABLE e (x int, y int); INSERT INTO e VALUES (1, 2), (2, 3)")
    client.run(f"CREATE MATERIALIZED VIEW r AS WITH RECURSIVE r(n) AS ({step}) SELECT * FROM r")
    client.run("CREATE MATERIALIZED VIEW total AS SELECT sum(n) AS n FROM r")
    client.run("CREATE MATERIALIZED VIEW pairs AS SELECT a.x, b.y FROM e a JOIN e b ON a.x = b.y")
    server.coordinator.engine.watch.seconds = 0.3
    views = ["r", "total", "pairs"]
    before = [client.sorted(f"SELECT * FROM {view}") for view in views]
    for first, end in (("SELECT 1", "ROLLBACK"), ("ALTER TABLE e ADD COLUMN q int DEFAULT 1", "COMMIT")):
        client.run("BEGIN")
        client.run(first)
        client.run("SAVEPOINT a; ALTER TABLE e ADD COLUMN z int DEFAULT 1; INSERT INTO e VALUES (3, 1)")
        assert client.state("SELECT count(*) FROM r") == "54001"
        client.run("ROLLBACK TO a")
        assert [client.sorted(f"SELECT * FROM {view}") for view in views] == before
        client.run("INSERT INTO e VALUES (2, 9); DELETE FROM e WHERE y = 9")
        client.run(end)
        assert _look(client, views) == before
    client.run("INSERT INTO e VALUES (3, 4)")
    server.restart()
    assert server.client().sorted("SELECT * FROM total") == [("10",)]
    server.close()


def test_a_subscription_to_a_query_over_the_table_ends(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    client, reader = server.client(), server.client()
    client.run("CREATE TABLE e (x int); INSERT INTO e VALUES (1)")
    reader.run("BEGIN; DECLARE c CURSOR FOR SUBSCRIBE (SELECT x + 1 AS x FROM e)")
    assert [row[1:] for row in reader.rows("FETCH ALL c WITH (timeout = '20s')")] == [("1", "2")]
    nodes = len(server.coordinator.engine.dataflow.nodes())
    client.run("ALTER TABLE e ADD COLUMN y int DEFAULT 1")
    client.run("INSERT INTO e VALUES (5, 6)")
    with pytest.raises(SqlError, match="what was subscribed to has been dropped or altered"):
        _fetch_on(reader)
    reader.run("ROLLBACK")
    reader.close()
    until = time.monotonic() + 20
    while len(server.coordinator.engine.dataflow.nodes()) >= nodes and time.monotonic() < until:
        client.run("INSERT INTO e VALUES (7, 8)")
        time.sleep(0.05)
    assert len(server.coordinator.engine.dataflow.nodes()) < nodes
    server.close()


def _fetch_on(reader: Client) -> None:
    """What was committed before a subscription ended comes first."""
    for _ in range(20):
        reader.rows("FETCH ALL c WITH (timeout = '1s')")
