"""EXCLUDE constraints: conflicts, their messages, deferred checks, ON CONFLICT, ALTER TABLE, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest

from ivm.errors import Subject
from ivm.rows import Words
from ivm.trace.trace import Version
from tests.support.sessions import Client, Server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    client = server.client()
    client.run("DROP TABLE IF EXISTS t, other")
    client.run("CREATE TABLE t (id int PRIMARY KEY, room int, during int4range, name text, p point, net inet)")
    yield client
    client.close()


def test_two_rows_must_not_overlap(client: Client) -> None:
    client.run("ALTER TABLE t ADD EXCLUDE USING gist (room WITH =, during WITH &&)")
    client.run("INSERT INTO t VALUES (1, 101, '[1,5)'), (2, 101, '[5,9)'), (3, 102, '[1,9)'), (4, NULL, '[1,9)')")
    client.run("INSERT INTO t VALUES (5, 101)")
    error = client.error("INSERT INTO t VALUES (6, 101, '[20,30)'), (7, 101, '[8,10]'), (8, 101, '[1,2)')")
    assert error.sqlstate == "23P01"
    assert error.subject == Subject("public", "t", constraint="t_room_during_excl")
    assert error.message == 'conflicting key value violates exclusion constraint "t_room_during_excl"'
    assert error.detail == "Key (room, during)=(101, [8,11)) conflicts with existing key (room, during)=(101, [5,9))."
    client.run("INSERT INTO t VALUES (6, 101, 'empty'), (7, 101, 'empty'), (8, 101, '[9,9]')")
    assert client.state("INSERT INTO t VALUES (9, 103, '[1,5)'), (10, 103, '[4,6)')") == "23P01"
    assert client.state("UPDATE t SET room = 101 WHERE id = 3") == "23P01"
    client.run("UPDATE t SET during = int4range(lower(during) + 1, upper(during) + 1) WHERE id IN (1, 2, 8)")
    client.run("UPDATE t SET during = '[2,7)', name = 'longer' WHERE id = 1 AND false")
    client.run("DELETE FROM t WHERE id = 2")
    client.run("UPDATE t SET during = '[2,10)' WHERE id = 1")
    assert client.state("INSERT INTO t VALUES (9, 101, '(,3)')") == "23P01"


def test_other_operators(client: Client) -> None:
    client.run("ALTER TABLE t ADD EXCLUDE USING gist (room WITH =, name WITH <>), ADD EXCLUDE USING gist (p WITH ~=)")
    client.run("ALTER TABLE t ADD EXCLUDE USING spgist (net WITH &&), ADD EXCLUDE (id WITH =)")
    client.run("INSERT INTO t (id, room, name) VALUES (1, 1, 'lion'), (2, 1, 'lion'), (3, 2, 'zebra'), (4, 1, NULL)")
    error = client.error("INSERT INTO t (id, room, name) VALUES (5, 1, 'zebra')")
    assert error.detail == "Key (room, name)=(1, zebra) conflicts with existing key (room, name)=(1, lion)."
    client.run("INSERT INTO t (id, p) VALUES (5, '(1,2)'), (6, '(1,3)')")
    assert client.state("INSERT INTO t (id, p) VALUES (7, '(1.0000001,2)')") == "23P01"
    client.run("INSERT INTO t (id, net) VALUES (7, '10.1.0.0/16'), (8, '10.2.3.4'), (9, 'fe80::/64')")
    error = client.error("INSERT INTO t (id, net) VALUES (10, '10.1.2.0/24')")
    assert error.detail == "Key (net)=(10.1.2.0/24) conflicts with existing key (net)=(10.1.0.0/16)."
    assert client.state("INSERT INTO t (id, net) VALUES (10, '10.0.0.0/8')") == "23P01"
    assert client.state("INSERT INTO t (id, net) VALUES (10, 'fe80::1')") == "23P01"


def test_expressions_and_predicates(client: Client) -> None:
    client.run("ALTER TABLE t ADD EXCLUDE USING gist (lower(name) WITH =, during WITH &&) WHERE (room > 0 AND id > 2)")
    client.run("INSERT INTO t VALUES (1, 1, '[1,5)', 'A'), (2, 1, '[1,5)', 'a')")
    client.run("INSERT INTO t VALUES (3, 0, '[1,5)', 'a'), (4, 1, '[1,5)', 'A')")
    error = client.error("UPDATE t SET room = 1 WHERE id = 3")
    key = "(lower(name), during)=(a, [1,5))"
    assert error.detail == f"Key {key} conflicts with existing key {key}."
    client.run("UPDATE t SET room = 1 - room WHERE id > 2")
    assert client.state("INSERT INTO t VALUES (5, 1, '[2,3)', 'a')") == "23P01"


def test_existing_rows_are_checked(client: Client) -> None:
    client.run("INSERT INTO t VALUES (1, 1, '[1,5)'), (2, 1, '[3,9)')")
    error = client.error("ALTER TABLE t ADD CONSTRAINT x EXCLUDE USING gist (during WITH &&)")
    assert (error.sqlstate, error.message) == ("23P01", 'could not create exclusion constraint "x"')
    assert error.detail == "Key (during)=([1,5)) conflicts with key (during)=([3,9))."
    client.run("ALTER TABLE t ADD CONSTRAINT x EXCLUDE USING gist (during WITH &&) WHERE (id > 1)")
    assert client.state("INSERT INTO t VALUES (3, 1, '[4,5)')") == "23P01"
    client.run("ALTER TABLE t ALTER id TYPE bigint")
    assert client.state("INSERT INTO t VALUES (3, 1, '[4,5)')") == "23P01"
    client.run("ALTER TABLE t DROP CONSTRAINT x")
    client.run("INSERT INTO t VALUES (3, 1, '[4,5)')")
    client.run("CREATE TABLE other (a int, EXCLUDE USING btree (a WITH =))")
    client.run("INSERT INTO other VALUES (1)")
    assert client.state("INSERT INTO other VALUES (1)") == "23P01"
    client.run("ALTER TABLE other DROP COLUMN a")


def test_deferred_checks(client: Client) -> None:
    client.run("ALTER TABLE t ADD CONSTRAINT d EXCLUDE USING gist (during WITH &&) DEFERRABLE INITIALLY DEFERRED")
    client.run("BEGIN")
    client.run("INSERT INTO t VALUES (1, 1, '[1,5)'), (2, 1, '[3,9)')")
    client.run("UPDATE t SET during = '[5,9)' WHERE id = 2")
    client.run("COMMIT")
    client.run("BEGIN")
    client.run("INSERT INTO t VALUES (3, 1, '[3,9)')")
    client.run("SAVEPOINT s")
    assert client.state("SET CONSTRAINTS d IMMEDIATE") == "23P01"
    client.run("ROLLBACK TO s")
    client.run("DELETE FROM t WHERE id = 3")
    client.run("SET CONSTRAINTS d IMMEDIATE")
    assert client.state("INSERT INTO t VALUES (3, 1, '[3,9)')") == "23P01"
    client.run("ROLLBACK")
    client.run("BEGIN")
    client.run("INSERT INTO t VALUES (3, 1, '[3,9)')")
    assert client.state("COMMIT") == "23P01"
    assert client.rows("SELECT count(*) FROM t") == [("2",)]
    assert client.state("INSERT INTO t VALUES (3) ON CONFLICT DO NOTHING") == "55000"
    assert client.run("INSERT INTO t SELECT 3 WHERE false ON CONFLICT DO NOTHING") == "INSERT 0 0"


def test_on_conflict(client: Client) -> None:
    client.run("ALTER TABLE t ADD CONSTRAINT x EXCLUDE USING gist (during WITH &&)")
    rows = "(1, 1, '[1,5)'), (2, 1, '[4,9)'), (3, 1, '[8,10)'), (3, 1, '[20,30)'), (4, 1, '[40,50)'), (4, 1, NULL)"
    assert client.run(f"INSERT INTO t VALUES {rows} ON CONFLICT DO NOTHING") == "INSERT 0 3"
    assert client.sorted("SELECT id, during FROM t") == [("1", "[1,5)"), ("3", "[8,10)"), ("4", "[40,50)")]
    assert client.run("INSERT INTO t VALUES (9, 1, '[2,3)') ON CONFLICT ON CONSTRAINT x DO NOTHING") == "INSERT 0 0"
    assert client.state("INSERT INTO t VALUES (1, 1, '[99,100)') ON CONFLICT ON CONSTRAINT x DO NOTHING") == "23505"
    assert client.state("INSERT INTO t VALUES (9, 1, '[2,3)') ON CONFLICT (id) DO NOTHING") == "23P01"
    assert client.state("INSERT INTO t VALUES (9, 1, '[2,3)') ON CONFLICT (during) DO NOTHING") == "42P10"
    error = client.error("INSERT INTO t VALUES (9, 1, '[2,3)') ON CONFLICT ON CONSTRAINT x DO UPDATE SET room = 2")
    assert error.sqlstate == "42809"
    assert error.message == "ON CONFLICT DO UPDATE not supported with exclusion constraints"


@pytest.mark.parametrize(
    ("text", "state", "message"),
    [
        ("USING gist (during WITH @>)", "42809", "operator @>(anyrange,anyrange) is not commutative"),
        ("USING gist (room WITH <)", "42809", "operator <(integer,integer) is not commutative"),
        ("(room WITH <>)", "42809", 'operator <>(integer,integer) is not a member of operator family "integer_ops"'),
        ("(during WITH &&)", "42809", 'operator &&(anyrange,anyrange) is not a member of operator family "range_ops"'),
        ("USING gist (room WITH &&)", "42883", "operator does not exist: integer && integer"),
        ("USING gin (room WITH =)", "0A000", 'access method "gin" does not support exclusion constraints'),
        ("USING hash (room WITH =, id WITH =)", "0A000", 'access method "hash" does not support multicolumn indexes'),
        ("USING gist (missing WITH =)", "42703", 'column "missing" named in key does not exist'),
        ("USING gist ((random()) WITH =)", "42P17", "functions in index expression must be marked IMMUTABLE"),
        ("USING gist (during WITH &&) NOT VALID", "0A000", "EXCLUDE constraints cannot be marked NOT VALID"),
        ("USING gist (during &&)", "42601", 'syntax error at or near "&&"'),
    ],
)
def test_what_is_refused(client: Client, text: str, state: str, message: str) -> None:
    error = client.error(f"ALTER TABLE t ADD EXCLUDE {text}")
    assert (error.sqlstate, error.message) == (state, message)


def test_how_they_are_shown(client: Client) -> None:
    client.run("ALTER TABLE t ADD EXCLUDE USING gist (room WITH =, during WITH &&) WHERE (room > 2) DEFERRABLE")
    query = "SELECT conname, contype, conkey, conexclop, pg_get_constraintdef(oid), pg_get_constraintdef(oid, true)"
    assert client.rows(f"{query} FROM pg_constraint WHERE conrelid = 't'::regclass AND contype = 'x'") == [(
        "t_room_during_excl", "x", "{2,3}", "{96,3888}",
        "EXCLUDE USING gist (room WITH =, during WITH &&) WHERE ((room > 2)) DEFERRABLE",
        "EXCLUDE USING gist (room WITH =, during WITH &&) WHERE (room > 2) DEFERRABLE",
    )]  # fmt: skip
    flags = "SELECT indisexclusion, indisunique, indimmediate FROM pg_index"
    assert client.rows(f"{flags} WHERE indexrelid = 't_room_during_excl'::regclass") == [("t", "f", "f")]
    client.run("CREATE TABLE other (LIKE t INCLUDING INDEXES)")
    assert "other_room_during_excl" in str(client.rows("SELECT conname FROM pg_constraint WHERE contype = 'x'"))
    error = client.error("DROP INDEX t_room_during_excl")
    assert error.sqlstate == "2BP01"


def test_random_histories(client: Client) -> None:
    """Each statement is taken or refused as a comparison of all pairs of rows says."""
    random = Random(3)
    client.run("ALTER TABLE t ADD EXCLUDE USING gist (room WITH =, during WITH &&) WHERE (id % 5 > 0)")
    held: dict[int, tuple[int | None, tuple[int, int] | None]] = {}

    def clash(rows: dict[int, tuple[int | None, tuple[int, int] | None]]) -> bool:
        known = [(r, d) for i, (r, d) in rows.items() if i % 5 and r is not None and d is not None and d[0] < d[1]]
        return any(
            known[i][0] == known[j][0] and known[i][1][0] < known[j][1][1] and known[j][1][0] < known[i][1][1]
            for i in range(len(known))
            for j in range(i)
        )

    def drawn() -> tuple[int | None, tuple[int, int] | None]:
        low = random.randint(0, 150)
        return random.choice((None, 1, 2)), random.choice((None, *[(low, low + random.randint(0, 4))] * 8))

    def text(value: tuple[int | None, tuple[int, int] | None]) -> str:
        room, during = value
        range_ = "NULL" if during is None else f"int4range({during[0]}, {during[1]})"
        return f"{'NULL' if room is None else room}, {range_}"

    refused = 0
    for step in range(400):
        after = dict(held)
        if random.random() < 0.6:
            count = 90 if step % 50 == 49 else random.choice((1, 1, 3))
            new = {1000 * (step + 1) + i: drawn() for i in range(count)}
            after |= new
            statement = "INSERT INTO t VALUES " + ", ".join(f"({i}, {text(v)})" for i, v in new.items())
        elif held and random.random() < 0.6:
            chosen, value = random.choice(list(held)), drawn()
            after[chosen] = value
            statement = f"UPDATE t SET (room, during) = ({text(value)}) WHERE id = {chosen}"
        elif held:
            chosen = random.choice(list(held))
            del after[chosen]
            statement = f"DELETE FROM t WHERE id = {chosen}"
        else:
            continue
        if clash(after):
            refused += 1
            assert client.state(statement) == "23P01", statement
        else:
            client.run(statement)
            held = after
    assert refused > 20
    assert client.rows("SELECT count(*) FROM t") == [(str(len(held)),)]


def test_a_check_searches_and_does_not_scan(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    client.run("ALTER TABLE t ADD EXCLUDE USING gist (room WITH =, during WITH &&)")
    client.run("INSERT INTO t SELECT i, 1, int4range(i, i + 1) FROM generate_series(1, 20000) i")
    client.run("INSERT INTO t VALUES (0, 1, '(,1)'), (30000, 1, '[20001,)')")
    read: list[int] = []
    between = Version.between

    def counted(version: Version, lows: Words, highs: Words, at: int) -> tuple[Words, Words, Words]:
        found = between(version, lows, highs, at)
        assert len(lows) <= 129
        read.append(len(found[0]))
        return found

    monkeypatch.setattr(Version, "between", counted)
    monkeypatch.setattr(Version, "rows_at", lambda *_: np.zeros(1) / 0)
    client.run("INSERT INTO t VALUES (40000, 2, '[500,600)')")
    assert client.state("INSERT INTO t VALUES (40001, 1, '[500,502)')") == "23P01"
    client.run("UPDATE t SET during = '[700,700]', name = 'x' WHERE id = 700")
    client.run("UPDATE t SET during = '[800,800]', room = 1 WHERE id = 800")
    client.run("UPDATE t SET room = 3 WHERE id = 900")
    assert read
    assert max(read) <= 50


def test_conflicts_are_found_after_a_restart(tmp_path: Path) -> None:
    server = Server(tmp_path)
    client = server.client()
    client.run("CREATE TABLE t (r numrange, EXCLUDE USING gist (r WITH &&))")
    client.run("INSERT INTO t VALUES ('[1.5,2.5)'), ('[2.50,3]')")
    client.close()
    server.close()
    server = Server(tmp_path)
    client = server.client()
    assert client.state("INSERT INTO t VALUES ('[3.0,4)')") == "23P01"
    client.run("INSERT INTO t VALUES ('(3.0,4)')")
    client.close()
    server.close()
