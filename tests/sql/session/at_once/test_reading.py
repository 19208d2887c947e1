"""Reads of one row by its key, answered at once: byte for byte what the way of all queries answers, and never more."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from typing import cast

import pytest

from ivm.errors import SqlError
from sql.pgwire import messages_frontend as front
from sql.pgwire.protocol import Phase, ServerProtocol
from sql.pgwire.run_request import MOST_PARAMETERS, run_request
from tests.support.sessions import Server
from tests.support.wires import RUN, Wire, bind


@pytest.fixture
def wire(server: Server) -> Iterator[Wire]:
    client = server.client()
    wire = Wire(client)
    wire.run("CREATE SCHEMA own; SET search_path = own")
    yield wire
    with suppress(SqlError):
        wire.run("ROLLBACK")
    wire.run("RESET ROLE; DROP SCHEMA own CASCADE")
    client.close()


def test_every_answer_is_that_of_the_other_way_under_changes(wire: Wire) -> None:
    rng = random.Random(7)
    wire.run("CREATE TABLE t (k int PRIMARY KEY, b bigint, s text, n numeric(8,2), d date, x float8, o bool)")
    wire.run(
        "INSERT INTO t VALUES (1, 1, 'one', 1.5, '2026-01-01', 0.1, true), (2, NULL, NULL, NULL, NULL, NULL, NULL)"
    )
    wire.run("CREATE MATERIALIZED VIEW v AS SELECT s, count(*) AS n, max(b) AS b FROM t WHERE s <> '' GROUP BY s")
    wire.run("CREATE INDEX ON v (s)")
    wire.parse("t", "SELECT * FROM t WHERE k = $1")
    wire.parse("v", "SELECT n, b, s FROM v WHERE s = $1")
    hits = dict.fromkeys(("t", "v"), 0)
    for _ in range(60):
        k = rng.randint(-3, 12)
        s = rng.choice(["NULL", "'one'", "'ü'", "''", f"'{'x' * rng.randint(1, 90)}'"])
        b = rng.choice(["NULL", "0", "-9223372036854775808", "9223372036854775807"])
        if rng.random() < 0.3:
            wire.run(f"DELETE FROM t WHERE k = {k}")
        else:
            wire.run(
                f"INSERT INTO t VALUES ({k}, {b}, {s}, {rng.choice(['NULL', '-0.01', '999999.99'])}, "
                f"{rng.choice(['NULL', '-infinity'.join(chr(39) * 2)])}, 'NaN', {rng.choice(['NULL', 'false'])}) "
                "ON CONFLICT (k) DO UPDATE SET s = excluded.s, b = excluded.b, n = excluded.n, d = excluded.d"
            )
        for key in (k, k + 1, 2**31 - 1, -(2**31)):
            for form, value in (
                (0, b"%d" % key),
                (1, key.to_bytes(4, "big", signed=True)),
                (None, b" +0%d " % abs(key)),
            ):
                results = rng.choice([(), (0,), (1,), (1, 0, 1, 0, 1, 0, 1)])
                described, most = rng.random() < 0.5, rng.choice([0, 1, 2])
                hits["t"] += (
                    wire.both(bind("t", value, form=form, results=results, describe=described, max_rows=most))
                    is not None
                )
        for value in (b"one", "ü".encode(), b"", b"never seen"):
            hits["v"] += (
                wire.both(bind("v", value, form=rng.choice([0, 1, None]), results=rng.choice([(), (1,)]))) is not None
            )
    assert hits["t"] > 60 * 8, hits
    assert hits["v"] > 60 * 3, hits


@pytest.mark.parametrize("type_", ["smallint", "int", "bigint", "uuid", "text", "varchar(8)", "char(8)"])
def test_keys_of_each_type(wire: Wire, type_: str) -> None:
    numbers = ["0", "-32768", "32767", "1"]
    texts = ["a", "b  ", "", "ü"] if type_ != "uuid" else [f"00000000-0000-0000-0000-00000000000{i}" for i in range(4)]
    values = numbers if type_ in ("smallint", "int", "bigint") else texts
    wire.run(f"CREATE TABLE t (k {type_} PRIMARY KEY, v text)")
    for value in values:
        wire.run(f"INSERT INTO t VALUES ('{value}', 'row of {value}')")
    wire.parse("q", "SELECT v, k FROM t WHERE k = $1")
    wire.all_ways(bind("q", values[0].encode()))
    found = [wire.both(bind("q", value.encode(), describe=True)) for value in (*values, values[0] + "  ", values[0])]
    assert any(found) == (type_ not in ("varchar(8)", "char(8)")), "those are compared after a cast"
    for bad in (b"x", b"32768", b"1_0", b"", b"\xff", b"99999999999999999999"):
        wire.both(bind("q", bad))
        wire.both(bind("q", values[0].encode()))


def test_duplicates_and_the_rows_of_a_key_that_is_not_unique_go_the_other_way(wire: Wire) -> None:
    wire.run("CREATE TABLE t (k int, v text); CREATE INDEX ON t (k)")
    wire.run("INSERT INTO t VALUES (1, 'a'), (1, 'b'), (2, 'twice'), (2, 'twice'), (3, 'once'), (NULL, 'none')")
    wire.parse("q", "SELECT v FROM t WHERE k = $1")
    wire.all_ways(bind("q", b"3"))
    assert [wire.both(bind("q", key)) is not None for key in (b"1", b"2", b"3", b"4")] == [False, False, True, True]
    wire.run("DELETE FROM t WHERE v = 'b'; DELETE FROM t WHERE k = 3")
    assert b"a" in (wire.both(bind("q", b"1")) or b"")
    assert b"SELECT 0" in (wire.both(bind("q", b"3")) or b"")
    assert wire.both(bind("q", None)) is None


def test_what_a_statement_means_is_asked_again_when_it_may_have_changed(wire: Wire) -> None:
    wire.run("CREATE TABLE t (k int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 10)")
    wire.run("CREATE SCHEMA other; CREATE TABLE other.t (k int PRIMARY KEY, v int); INSERT INTO other.t VALUES (1, 20)")
    wire.parse("q", "SELECT v FROM t WHERE k = $1")
    wire.all_ways(bind("q", b"1"))
    assert b"10" in (wire.both(bind("q", b"1")) or b"")
    wire.run("SET search_path = other")
    assert b"10" not in wire.all_ways(bind("q", b"1"))
    assert b"20" in (wire.both(bind("q", b"1")) or b"")
    wire.run("SET search_path = own; ALTER TABLE own.t RENAME COLUMN v TO w")
    assert wire.at_once(bind("q", b"1")) is None
    assert b"42703" in wire.all_ways(bind("q", b"1"))
    wire.run("ALTER TABLE own.t RENAME COLUMN w TO v; ALTER TABLE own.t ALTER COLUMN v TYPE bigint")
    assert wire.at_once(bind("q", b"1")) is None
    assert b"0A000" in wire.all_ways(bind("q", b"1"))
    wire.run("DROP TABLE own.t; DEALLOCATE q")
    assert wire.at_once(bind("q", b"1")) is None
    assert b"26000" in wire.all_ways(bind("q", b"1"))
    wire.run("DROP SCHEMA other CASCADE")


def test_settings_of_text_forms_are_followed(wire: Wire) -> None:
    wire.run("CREATE TABLE t (k int PRIMARY KEY, d timestamptz, b bytea, f float8)")
    wire.run("INSERT INTO t VALUES (1, '2026-07-01 12:00Z', '\\x00ff', 0.1)")
    wire.parse("q", "SELECT * FROM t WHERE k = $1")
    seen = set()
    for setting in ("timezone = 'UTC'", "timezone = 'Asia/Tokyo'", "datestyle = 'German'", "bytea_output = 'escape'",
                    "extra_float_digits = 0", "extra_float_digits = -5"):  # fmt: skip
        wire.run(f"SET {setting}")
        wire.all_ways(bind("q", b"1"))
        seen.add(wire.both(bind("q", b"1")))
    assert None not in seen
    assert len(seen) == 4


def test_rights_and_policies_are_asked(wire: Wire) -> None:
    wire.run("CREATE ROLE reader; CREATE TABLE t (k int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'secret')")
    wire.run("GRANT SELECT ON t TO reader; GRANT USAGE ON SCHEMA own TO reader; SET ROLE reader")
    wire.parse("q", "SELECT v FROM t WHERE k = $1")
    wire.all_ways(bind("q", b"1"))
    assert b"secret" in (wire.both(bind("q", b"1")) or b"")
    wire.run("RESET ROLE; REVOKE SELECT ON t FROM reader; SET ROLE reader")
    assert wire.at_once(bind("q", b"1")) is None
    assert b"42501" in wire.all_ways(bind("q", b"1"))
    wire.run("RESET ROLE; GRANT SELECT ON t TO reader; ALTER TABLE t ENABLE ROW LEVEL SECURITY; SET ROLE reader")
    assert b"secret" not in wire.all_ways(bind("q", b"1"))
    assert b"secret" not in (wire.both(bind("q", b"1")) or b"")
    wire.run("RESET ROLE; DROP OWNED BY reader; DROP ROLE reader")


def test_what_is_to_be_told_first_goes_the_other_way(wire: Wire) -> None:
    client = wire.client
    wire.run("CREATE TABLE t (k int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'old')")
    wire.parse("q", "SELECT v FROM t WHERE k = $1")
    wire.all_ways(bind("q", b"1"))
    assert wire.both(bind("q", b"1"))
    wire.run("BEGIN; UPDATE t SET v = 'new'")
    assert b"new" in (wire.both(bind("q", b"1")) or b"")
    client.error("SELECT 1/0")
    assert wire.at_once(bind("q", b"1")) is None
    assert b"25P02" in wire.all_ways(bind("q", b"1"))
    wire.run("ROLLBACK")
    assert b"old" in (wire.both(bind("q", b"1")) or b"")
    wire.run("LISTEN c")
    other = client.server.client()
    other.run("NOTIFY c, 'hello'")
    assert wire.at_once(bind("q", b"1")) is None
    assert b"hello" in wire.all_ways(bind("q", b"1"))
    other.close()
    half = front.Parse("", "SELECT 1").encode()
    assert wire.all_ways(half) == b""
    assert wire.at_once(bind("q", b"1")) is None, "a pipeline that has begun is not cut"
    assert wire.all_ways(bind("q", b"1")).startswith(b"1\0\0\0\x04")


def test_a_view_that_fails_says_so(wire: Wire) -> None:
    wire.run("CREATE TABLE t (k int PRIMARY KEY, d int); INSERT INTO t VALUES (1, 1)")
    wire.run("CREATE MATERIALIZED VIEW v AS SELECT k, 10 / d AS q FROM t; CREATE INDEX ON v (k)")
    wire.parse("q", "SELECT q FROM v WHERE k = $1")
    wire.all_ways(bind("q", b"1"))
    assert wire.both(bind("q", b"1"))
    wire.run("INSERT INTO t VALUES (2, 0)")
    assert wire.at_once(bind("q", b"1")) is None
    assert b"22012" in wire.all_ways(bind("q", b"1"))
    wire.run("DELETE FROM t WHERE k = 2")
    wire.both(bind("q", b"1"))
    assert b"10" in wire.all_ways(bind("q", b"1"))


def test_what_is_shown_of_the_session(wire: Wire) -> None:
    wire.run("CREATE TABLE t (k int PRIMARY KEY); INSERT INTO t VALUES (1)")
    wire.parse("q", "SELECT k FROM t WHERE k = $1")
    wire.all_ways(bind("q", b"1"))
    wire.run("SELECT 'between'")
    assert wire.at_once(bind("q", b"1"))
    other = wire.client.server.client()
    shown = other.rows(f"SELECT query, state FROM pg_stat_activity WHERE pid = {wire.client.session.backend_id}")
    other.close()
    assert shown == [("SELECT k FROM t WHERE k = $1", "idle")]


@pytest.mark.parametrize("seed", range(4))
def test_bytes_that_are_no_such_pipeline_are_left_to_the_protocol(seed: int) -> None:
    rng = random.Random(seed)
    values = [(), (b"12",), (b"12", None), (b"", b"a", b"x" * 300)][seed]
    good = bind("name", *values, form=1, results=(0, 1), describe=seed % 2 == 0, max_rows=seed)
    found = run_request(good)
    assert found is not None
    assert (found.statement, found.values, found.forms, found.result_formats) == ("name", values, (1,), (0, 1))
    assert (found.described, found.max_rows) == (seed % 2 == 0, seed)
    assert run_request(good + good) is None
    assert run_request(front.Bind("p", "name", (), (b"1",), ()).encode() + RUN) is None
    assert run_request(bind("name", *[b"1"] * (MOST_PARAMETERS + 1))) is None
    for cut in range(len(good)):
        assert run_request(good[:cut]) is None
    for _ in range(20_000):
        data = bytearray(good)
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] = rng.choice((0, 1, 255, rng.randrange(256)))
        request = run_request(bytes(data))
        if request is None:
            continue
        protocol = ServerProtocol()
        protocol.phase = Phase.QUERIES
        protocol.receive(bytes(data))
        message = cast("front.Bind", protocol.next_message()) if request.result_formats is not None else None
        if message is not None:
            assert message.portal == ""
            assert message.parameters == request.values
            assert message.formats == request.forms
            assert message.result_formats == request.result_formats
