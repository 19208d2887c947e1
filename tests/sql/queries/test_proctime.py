"""JOIN … FOR SYSTEM_TIME AS OF PROCTIME() from SQL, against a model that replays the history, over restarts too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.programs.histories import InProcess, Refused
from tests.programs.proctime_histories import JOIN, Played


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    inside = InProcess(tmp_path_factory.mktemp("proctime"))
    yield inside
    inside.end()


@pytest.mark.parametrize("seed", range(12))
def test_histories(database: InProcess, seed: int) -> None:
    Played(database, seed).run(14)


def test_what_is_kept_goes_with_the_view(tmp_path: Path) -> None:
    """A view that is dropped and created again starts anew, over restarts too."""
    inside = InProcess(tmp_path)
    run = inside.execute
    run("CREATE TABLE o (k int, v int); CREATE TABLE p (k int, w int)")
    run("INSERT INTO p VALUES (1, 10); INSERT INTO o VALUES (1, 0)")
    run(f"CREATE MATERIALIZED VIEW met AS SELECT o.k, o.v, p.w FROM o {JOIN}")
    run("UPDATE p SET w = 20")
    persistence = inside.server.coordinator.engine.persistence
    assert persistence is not None
    persistence.flush()
    inside.restart()
    assert run("SELECT * FROM met") == [(1, 0, 10)]
    run("DROP MATERIALIZED VIEW met")
    run(f"CREATE MATERIALIZED VIEW met AS SELECT o.k, o.v, p.w FROM o {JOIN}")
    inside.restart()
    assert run("SELECT * FROM met") == [(1, 0, 20)]
    inside.end()


def test_explain_and_verify(database: InProcess) -> None:
    """EXPLAIN before creation; VERIFY reads the recorded matches, and reports a row that does not follow from them."""
    run = database.execute
    run("CREATE TABLE o (k int, v int); CREATE TABLE p (k int, w int)")
    query = f"SELECT o.k, sum(p.w) AS w FROM o LEFT {JOIN} GROUP BY o.k"
    try:
        plan = [line for (line,) in run(f"EXPLAIN CREATE MATERIALIZED VIEW x AS {query}")]
        assert any("Lock what is there at each row's commit" in line for line in plan)
        run("INSERT INTO p VALUES (1, 10), (1, 11), (NULL, 1)")
        run("INSERT INTO o VALUES (1, 0), (1, 0), (2, 0), (NULL, 0)")
        run(f"CREATE MATERIALIZED VIEW x AS {query}")
        run("UPDATE p SET w = 20; INSERT INTO o VALUES (1, 3); DELETE FROM o WHERE k = 2")
        assert sorted(run("SELECT * FROM x"), key=str) == [(1, 82), (None, None)]
        assert run("VERIFY MATERIALIZED VIEW x") == []
    finally:
        run("DROP TABLE o, p CASCADE")


@pytest.mark.parametrize(
    ("statement", "sqlstate"),
    [
        (f"SELECT * FROM o {JOIN}", "0A000"),
        (f"CREATE VIEW x AS SELECT o.v FROM o {JOIN}; SELECT * FROM x", "0A000"),
        (f"BEGIN; CREATE MATERIALIZED VIEW x AS SELECT o.v FROM o {JOIN}", "25001"),
        ("CREATE MATERIALIZED VIEW x AS SELECT 1 FROM o RIGHT " + JOIN, "0A000"),
        ("CREATE MATERIALIZED VIEW x AS SELECT 1 FROM o FOR SYSTEM_TIME AS OF PROCTIME()", "0A000"),
        (f"CREATE MATERIALIZED VIEW x AS SELECT 1 FROM o LEFT {JOIN} AND p.w > o.v", "0A000"),
        (
            "CREATE MATERIALIZED VIEW x AS WITH RECURSIVE r(k) AS (SELECT 1 UNION SELECT p.w FROM r "
            "JOIN p FOR SYSTEM_TIME AS OF PROCTIME() ON r.k = p.k) SELECT * FROM r", "0A000",
        ),
        ("ALTER TABLE o ADD COLUMN x int", "0A000"),
        (f"CREATE MATERIALIZED VIEW x AS SELECT (SELECT count(*) FROM o {JOIN}) AS n", "0A000"),
        (f"CREATE MATERIALIZED VIEW x AS SELECT 1 FROM o WHERE EXISTS (SELECT 1 FROM o {JOIN})", "0A000"),
        (f"EXPLAIN CREATE VIEW x AS SELECT o.v FROM o {JOIN}", "0A000"),
        (f"CREATE MATERIALIZED VIEW x AS SELECT 1 FROM o LEFT {JOIN.replace('o.k = p.k', 'false')}", "0A000"),
        ("CREATE MATERIALIZED VIEW x AS SELECT 1 FROM o JOIN p FOR SYSTEM_TIME AS OF now() ON o.k = p.k", "0A000"),
        ("CREATE MATERIALIZED VIEW x AS SELECT 1 FROM o JOIN p FOR SYSTEM_TIME AS OF PROCTIME() ON o.k = 'a'", "22P02"),
    ],
)  # fmt: skip
def test_what_is_refused(database: InProcess, statement: str, sqlstate: str) -> None:
    run = database.execute
    run("CREATE TABLE o (k int, v int); CREATE TABLE p (k int, w int)")
    run(f"CREATE MATERIALIZED VIEW kept AS SELECT o.k, o.v, p.w FROM o {JOIN}")
    try:
        with pytest.raises(Refused) as refused:
            run(statement)
        assert refused.value.sqlstate == sqlstate
    finally:
        run("ROLLBACK")
        run("DROP TABLE o, p CASCADE")
