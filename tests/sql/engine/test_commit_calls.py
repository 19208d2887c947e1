"""What a commit of one row costs, in calls of functions: it does not grow with what the commit does not touch."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import FrameType

from sql.pgwire.run_request import Begun, RunRequest
from tests.support.sessions import Client, Server

MOST_CALLS = 320
MOST_FILES = 90


async def _counted(client: Client, key: int) -> Counter[str]:
    """The calls by their files of a prepared INSERT that is answered at once, on the event loop's thread; none: it was
    not."""
    calls, session = Counter[str](), client.session

    def count(frame: FrameType, event: str, given: object) -> None:
        del given
        if event == "call":
            calls[frame.f_code.co_filename] += 1

    session.state.notices.clear()
    session.state.parameter_changes.clear()  # a listener has told its client
    values = str(key).encode(), b"%d" % (key % 3), None
    sys.setprofile(count)
    try:
        answer = session.answer(RunRequest("insert", (), values, b"\0\0", described=False, max_rows=0))
    finally:
        sys.setprofile(None)
    if isinstance(answer, bytes):
        return calls
    if isinstance(answer, Begun):
        await answer.result()
        await session.sync()
    else:
        await client.work(f"INSERT INTO t VALUES ({key}, {key % 3}, NULL)")
    return Counter()


def _cheapest(server: Server, client: Client, first: int) -> Counter[str]:
    """Of several commits: a slow disk leaves the end of one to the engine's thread."""
    found = [server.run(_counted(client, first + i)) for i in range(40)]
    return min(filter(None, found[5:]), key=Counter.total)


def test_a_commit_costs_as_many_calls_with_many_relations(tmp_path: Path) -> None:
    server = Server(tmp_path)
    client = server.client()
    client.run("CREATE TABLE t (id bigint PRIMARY KEY, g int, v int)")
    client.run("CREATE MATERIALIZED VIEW w AS SELECT g, count(*) AS n, sum(v) AS s FROM t GROUP BY g")
    server.run(client.session.parse("insert", "INSERT INTO t VALUES ($1, $2, $3)", []))
    few = _cheapest(server, client, 0)
    for i in range(20):
        client.run(f"CREATE TABLE other{i} (a int PRIMARY KEY)")
        client.run(f"CREATE MATERIALIZED VIEW view{i} AS SELECT a / 2 AS b, count(*) FROM other{i} GROUP BY 1")
    many = _cheapest(server, client, 100)
    assert many.total() <= few.total()
    assert few.total() <= MOST_CALLS, few.total()
    assert len(few) <= MOST_FILES, len(few)
    assert client.rows("SELECT count(*), (SELECT sum(n) FROM w) FROM t") == [("80", "80")]
    server.close()
