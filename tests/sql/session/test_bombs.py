"""Calls that would take for ever, or all memory: each ends soon after its timeout, and nobody waits for it.

The long form, behind FRESHET_BOMBS=1, runs more of them.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ivm.errors import SqlError
from tests.support.readers import PATIENCE, until_idle
from tests.support.sessions import Client, Server

TIMEOUT = 0.2
SLACK = 5.0
"""Seconds after its timeout in which a statement ends, and that another session waits at most. The machine is shared:
what holds the interpreter's lock takes ten times as long."""
BOMBS = [
    "repeat('a', 1000000) || 'b' ~ '^(a+)+$'",
    r"repeat('a', 300) || i ~ '(a*)(a*)(a*)(a*)\1\2\3b'",
    "repeat('a', 1000000) LIKE '%a%a%a%a%a%b'",
    "regexp_count(repeat('a', 1000000), '(a|b)')",
    "regexp_replace(repeat('a', 1000000), '(a|b)', '\\1\\1', 'g')",
    "to_char(1, repeat('9', 20000))",
    "to_char(now(), repeat('YYYY', 1000000))",
    "ln(repeat('9', 100000)::numeric)",
    "power(repeat('9', 100000)::numeric, 0.01)",
    "sqrt(repeat('9', 100000)::numeric)",
    "log(repeat('9', 100000)::numeric)",
    "factorial(30000)",
    "repeat('9', 60000)::numeric * repeat('9', 60000)::numeric",
    "gcd(repeat('9', 100000)::numeric, repeat('7', 99999)::numeric)",
    "encode(repeat('x', 10000000)::bytea, 'escape')",
    "encode(repeat('x', 10000000)::bytea, 'base64')",
    "decode(repeat('QUJD', 1000000), 'base64')",
    "format('%*s', 2147483647, 'x')",
    "format('%1000000000s', 'x')",
    "repeat('x', 2147483647)",
    "lpad('x', 1000000000)",
    "replace(repeat('a', 1000000), 'a', repeat('b', 10000))",
    "array_fill(1, ARRAY[134217728])",
    "array_fill(1, ARRAY[10000, 10000])",
    "(repeat('1', 10000000)::varbit << 5)",
    "jsonb_path_query_first(('[' || repeat('1,', 200000) || '1]')::jsonb, '$[*] ? (@ > 2)')",
    "to_tsvector(repeat('hello world foo bar ', 100000))",
    "'x' SIMILAR TO repeat('(a|b)*', 1500)",
    "concat_ws(repeat(',', 1000000), VARIADIC array_fill('x'::text, ARRAY[2000]))",
]
MORE = [
    "initcap(repeat('abc ', 5000000))",
    "string_to_array(repeat('a,', 5000000), ',')",
    "array_position(string_to_array(repeat('a,', 5000000), ','), 'b')",
    "ts_headline(repeat('hello world foo bar ', 200000), 'foo & bar')",
    "ts_rank(to_tsvector(repeat('a b c ', 100000)), to_tsquery('a & b & c'))",
    "unistr(repeat('\\0061', 2000000))",
    "jsonb_pretty(('[' || repeat('1,', 1000000) || '1]')::jsonb)",
    "exp(5999::numeric(100, 50))",
    "2::numeric ^ 400000",
    "substring(repeat('ab', 5000) similar '%#\"a%#\"%' escape '#')",
    "array_fill(1, ARRAY[2000000]) @> array_fill(1, ARRAY[1000000])",
    "md5(repeat('a', 100000000))",
]
LONG = os.environ.get("FRESHET_BOMBS") == "1"


class Other:
    """Another session, which asks all the time; ``worst``: how long it has waited at most, in seconds."""

    def __init__(self, client: Client) -> None:
        self.client, self.worst = client, 0.0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.wait(0.01):
            begun = time.monotonic()
            self.client.rows("SELECT 1")
            self.worst = max(self.worst, time.monotonic() - begun)

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()


@pytest.fixture
def other(server: Server) -> Iterator[Other]:
    client = server.client()
    other = Other(client)
    yield other
    other.stop()
    client.close()


@pytest.mark.parametrize("bomb", BOMBS + MORE * LONG)
def test_it_ends_soon_and_nobody_waits(client: Client, other: Other, bomb: str) -> None:
    """With a result, an error of its own, or that of the timeout."""
    client.run(f"SET statement_timeout = '{TIMEOUT * 1000:.0f}ms'")
    begun = time.monotonic()
    try:
        client.rows(f"SELECT length(({bomb})::text) FROM generate_series(1, 3) i")
    except SqlError as error:
        assert error.sqlstate in {"57014", "54000", "54001", "53200", "22003"}, error  # noqa: PT017
    assert time.monotonic() - begun < TIMEOUT + SLACK
    assert other.worst < SLACK


@pytest.mark.parametrize(
    ("call", "sqlstate", "message"),
    [
        ("'1e1000000'::numeric", "22003", "value overflows numeric format"),
        ("'1e131072'::numeric", "22003", "value overflows numeric format"),
        ("factorial(100000)", "22003", "value overflows numeric format"),
        ("repeat('x', 2000000000)", "54000", "requested length too large"),
        ("lpad('x', 1100000000)", "54000", "requested length too large"),
        ("format('%*s', 2147483647, 'x')", "54000", "out of memory"),
        ("array_fill(1, ARRAY[200000000])", "54000", "array size exceeds the maximum allowed (134217727)"),
    ],
)
def test_limits_have_postgresqls_sqlstate(client: Client, call: str, sqlstate: str, message: str) -> None:
    """What is too large for a value."""
    with pytest.raises(SqlError) as info:
        client.rows(f"SELECT {call}")
    assert (info.value.sqlstate, info.value.message) == (sqlstate, message)


def test_a_view_gets_the_error_and_the_commit_stands(tmp_path: Path) -> None:
    """A row with which a view's expression would not end is an error of that view; the others go on."""
    server = Server(tmp_path)
    client = server.client()
    client.run("CREATE TABLE t (id int PRIMARY KEY, s text)")
    client.run("CREATE MATERIALIZED VIEW fine AS SELECT id FROM t WHERE s ~ '^(a+)+$'")
    client.run(r"CREATE MATERIALIZED VIEW bad AS SELECT id FROM t WHERE s ~ '(a*)(a*)(a*)(a*)\1\2\3b'")
    client.run("CREATE MATERIALIZED VIEW n AS SELECT count(*) FROM t")
    client.run("INSERT INTO t VALUES (1, repeat('a', 38) || 'b')")
    assert client.rows("SELECT count(*) FROM fine") == [("0",)]
    client.run("INSERT INTO t VALUES (2, repeat('a', 300)), (3, 'aaa')")
    assert client.rows("SELECT id FROM fine ORDER BY 1") == [("2",), ("3",)]
    assert client.rows("SELECT * FROM n") == [("3",)]
    with pytest.raises(SqlError) as info:
        client.rows("SELECT * FROM bad")
    assert info.value.sqlstate == "54001"
    assert client.rows("SELECT count(*) FROM freshet.view_errors") != [("0",)]
    client.run("DELETE FROM t WHERE id = 2")
    assert client.rows("SELECT * FROM bad") == [("1",)]
    client.close()
    server.close()


def test_a_query_in_a_dataflow_ends_too(tmp_path: Path) -> None:
    """Its operators look at the query's own cancel, in the middle of a block of rows."""
    others = set(threading.enumerate())  # of the servers of other modules
    server = Server(tmp_path)
    client = server.client()
    client.run(f"SET statement_timeout = '{TIMEOUT * 1000:.0f}ms'")
    with pytest.raises(SqlError):
        client.rows("SELECT count(DISTINCT repeat('x', 100000) || g) FROM generate_series(1, 100000) g")
    until_idle(others)
    client.close()
    server.close()


def resident() -> int:
    """The process's memory, in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20


GREEDY = {
    "copies of a shared value": "SELECT length(x) FROM (SELECT string_agg(v, '') x FROM "
    "(SELECT repeat('ab', 1000000) v FROM generate_series(1, 1500)) q) r",
    "interned values": "SELECT md5(g::text) FROM generate_series(1, 5000000) g ORDER BY 1 OFFSET 4999990",
}


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads Linux's account of memory")
@pytest.mark.parametrize("name", GREEDY)
def test_what_was_stopped_takes_no_more_memory(client: Client, name: str) -> None:
    """It ends, not only its answer."""
    client.run("SET statement_timeout = '500ms'")
    before = resident()
    assert client.state(GREEDY[name]) in {"57014", "54000", "53200"}
    until_idle()
    until = time.monotonic() + PATIENCE
    while resident() >= before + 400:  # it is given back soon
        assert time.monotonic() < until
        time.sleep(0.1)
