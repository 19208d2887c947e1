"""A sink goes on when its view, or one below it, is replaced: its files get the difference."""

from __future__ import annotations

from pathlib import Path

from sql.engine.persist import Tuning
from storage.checkpoint import Pace
from tests.support.sessions import Server
from tests.support.sink_reader import changes, contents
from tests.support.sink_states import as_read, caught_up


def test_a_sink_goes_on_when_its_view_is_replaced(tmp_path: Path) -> None:
    hurry = Tuning(pace=Pace(seconds=0.02, fold_seconds=0.02, checkpoint_seconds=0.5))
    (tmp_path / "out").mkdir()
    server = Server(tmp_path / "data", places=(str(tmp_path / "out"),), tuning=hurry)
    client = server.client()
    client.run("CREATE TABLE t (a int, b text)")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT a + 1 AS a, b FROM t")
    client.run("CREATE MATERIALIZED VIEW w AS SELECT b, count(*) AS n FROM v GROUP BY b")
    client.run("CREATE SINK k FROM v INTO 'v'")
    client.run("CREATE SINK kw FROM w INTO 'w'")
    epochs = []
    caught_up(client)
    caught_up(client, "kw")

    def note(statement: str) -> None:
        client.run(statement)
        epochs.append(server.coordinator.engine.published.epoch)

    note("INSERT INTO t SELECT i, i % 3 FROM generate_series(1, 10) i")
    caught_up(client)
    for condition in ("a < 6", "b <> '1'"):
        note(f"CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT a + 1 AS a, b FROM t WHERE {condition}")
        caught_up(client)
        note("INSERT INTO t VALUES (3, '1'), (8, '7')")
        server.restart()
        client = server.client()
    caught_up(client)
    caught_up(client, "kw")
    found, over = changes(tmp_path / "out" / "v"), changes(tmp_path / "out" / "w")
    for at in epochs:
        assert contents(found, at) == as_read(client, "v", {"a": "int", "b": "text"}, at), at
        assert contents(over, at) == as_read(client, "w", {"b": "text", "n": "bigint"}, at), at
    replaced = {e for e, _, _ in found} & set(epochs[1::2])
    assert len(replaced) == 2
    assert sum(e == epochs[1] for e, _, _ in found) == 5  # the rows that left
    for statement in ("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT a, b, 1 AS more FROM t",
                      "BEGIN; CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT a + 2 AS a, b FROM t"):  # fmt: skip
        assert client.state(statement) == "0A000"
    client.run("ROLLBACK")
    server.close()
