"""Changes of one row in blocks, answered at once: answers and states are those of a second server, which does not."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator

import pytest

import sql.coordination.thread
from planner.expr.context import Context
from sql.dml.one_row import RowUpdate, _holds
from sql.pgwire import messages_frontend as front
from sql.pgwire.run_request import Begun
from sql.session.reads import Reads
from tests.support.sessions import Server
from tests.support.wires import Wire, bind

TABLES = """
CREATE TABLE t (k int PRIMARY KEY, b bigint NOT NULL, s text, n numeric(8,2), c char(4), o bool);
CREATE TABLE u (k text PRIMARY KEY, v int UNIQUE, w int);
CREATE TABLE chk (k int PRIMARY KEY, v int CHECK (v > 0), d date);
CREATE TABLE parent (k int PRIMARY KEY, v int);
CREATE TABLE child (k int PRIMARY KEY, p int REFERENCES parent ON DELETE CASCADE);
CREATE TABLE bag (x int, y text DEFAULT 'none', z timestamptz DEFAULT now());
CREATE TABLE counted (id serial PRIMARY KEY, v int NOT NULL);
CREATE TABLE made (k int PRIMARY KEY, v int, w int GENERATED ALWAYS AS (v * 2) STORED);
CREATE TABLE part (k int PRIMARY KEY, v int, w int);
CREATE UNIQUE INDEX ON part (w) WHERE v > 0;
CREATE TABLE two (a int, b int, v int, PRIMARY KEY (a, b));
CREATE MATERIALIZED VIEW sums AS SELECT s, count(*) AS n, sum(b) AS b FROM t GROUP BY s;
CREATE MATERIALIZED VIEW joined AS SELECT t.k, u.w FROM t JOIN u ON t.k = u.v
"""
RELATIONS = ("t", "u", "chk", "parent", "child", "counted", "made", "two", "part", "sums", "joined")
STATEMENTS = {
    "ut": ("UPDATE t SET b = b + $1, s = $2 WHERE k = $3", "bsk"),
    "ut2": ("UPDATE t SET b = $1, n = b, o = NOT o WHERE k = $2 AND b > 0", "bk"),
    "ut3": ("UPDATE t SET b = 10 / $1 WHERE k = $2", "bk"),
    "utc": ("UPDATE t SET c = $1 WHERE k = $2", "sk"),
    "utk": ("UPDATE t SET k = $1 WHERE k = $2", "kk"),
    "dt": ("DELETE FROM t WHERE k = $1", "k"),
    "dt2": ("DELETE FROM t WHERE k = $1 AND s = $2", "ks"),
    "it": ("INSERT INTO t VALUES ($1, $2, $3, 1.005, 'ab', NULL)", "kbs"),
    "it2": ("INSERT INTO t (b, k) VALUES ($1, $2 + 1)", "bk"),
    "iu": ("INSERT INTO u VALUES ($1, $2, $2)", "sk"),
    "uu": ("UPDATE u SET w = w + 1 WHERE k = $1", "s"),
    "uu2": ("UPDATE u SET v = $1 WHERE k = $2", "ks"),
    "du": ("DELETE FROM u WHERE k = $1", "s"),
    "ichk": ("INSERT INTO chk VALUES ($1, $2, '2026-01-01')", "kb"),
    "uchk": ("UPDATE chk SET v = v - $1 WHERE k = $2", "bk"),
    "ip": ("INSERT INTO parent VALUES ($1, 1)", "k"),
    "ic": ("INSERT INTO child VALUES ($1, $2)", "kk"),
    "dp": ("DELETE FROM parent WHERE k = $1", "k"),
    "up": ("UPDATE parent SET v = v + 1 WHERE k = $1", "k"),
    "ib": ("INSERT INTO bag (x) VALUES ($1)", "k"),
    "icount": ("INSERT INTO counted (v) VALUES ($1)", "k"),
    "im": ("INSERT INTO made VALUES ($1, $2)", "kb"),
    "um": ("UPDATE made SET v = $1 WHERE k = $2", "bk"),
    "ipart": ("INSERT INTO part VALUES ($1, 0, 1)", "k"),
    "upart": ("UPDATE part SET v = 1 WHERE k = $1", "k"),
    "i2": ("INSERT INTO two VALUES ($1, $2, 1)", "kk"),
    "u2": ("UPDATE two SET v = v + 1 WHERE a = $1 AND b = $2", "kk"),
    "ret": ("UPDATE t SET b = b + 1 WHERE k = $1 RETURNING k, b, s", "k"),
    "st": ("SELECT * FROM t WHERE k = $1", "k"),
    "su": ("SELECT w, v FROM u WHERE k = $1", "s"),
    "ssum": ("SELECT n, b FROM sums WHERE s = $1", "s"),
    "all": ("UPDATE t SET b = b + 1 WHERE b > $1", "b"),
}  # fmt: skip
AT_ONCE = ("ut", "ut2", "utc", "dt", "dt2", "it", "it2", "iu", "uu", "du", "ichk", "ip", "ib", "icount",
           "st", "su")  # fmt: skip


class Pair:
    """The same session in two servers. ``quick``: where what can be is answered at once."""

    def __init__(self, quick: Wire, usual: Wire) -> None:
        self.quick, self.usual = quick, usual
        self.hits: Counter[str] = Counter()

    def send(self, name: str, data: bytes) -> bytes:
        answer = self.quick.at_once(data)
        self.hits[name] += answer is not None
        found = self.quick.whole(data) if answer is None else answer
        assert found == self.usual.all_ways(data), name
        return found

    def run(self, text: str) -> None:
        for wire in (self.quick, self.usual):
            wire.run(text)

    def parse(self, name: str, text: str) -> None:
        for wire in (self.quick, self.usual):
            wire.parse(name, text)

    def same(self) -> None:
        """Both have the same rows, and their views are what a recompute makes of them."""
        for name in RELATIONS:
            found = [sorted(w.client.rows(f"SELECT * FROM {name}"), key=str) for w in (self.quick, self.usual)]
            assert found[0] == found[1], name
        for view in ("sums", "joined"):
            assert self.quick.client.rows(f"VERIFY MATERIALIZED VIEW {view}") == []


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    servers = [Server(tmp_path_factory.mktemp("data")) for _ in range(2)]
    quick, usual = (Wire(server.client()) for server in servers)
    pair = Pair(quick, usual)
    pair.run(TABLES)
    for name, (text, _) in STATEMENTS.items():
        pair.parse(name, text)
    for name in ("BEGIN", "COMMIT", "ROLLBACK"):
        pair.parse(name, name)
    yield pair
    for server in servers:
        server.close()


def _value(rng: random.Random, kind: str) -> bytes | None:
    if rng.random() < 0.06:
        return None
    if kind == "k":
        return str(rng.randint(1, 6)).encode()
    if kind == "b":
        return str(rng.choice([0, 1, 5, -3, 2**62, 2**63 - 1])).encode()
    return rng.choice([b"a", b"b", b"", "ü".encode(), b"long text with spaces   "])


@pytest.mark.parametrize("level", ["read committed", "serializable"])
@pytest.mark.parametrize("seed", range(3))
def test_every_answer_is_that_of_the_way_of_all(pair: Pair, level: str, seed: int) -> None:
    rng = random.Random(seed)
    pair.run(f"SET default_transaction_isolation = '{level}'")
    begun = pair.hits["BEGIN"]
    for _ in range(60):
        for _ in range(rng.randint(0, 4)):
            name = rng.choice(list(STATEMENTS))
            values = [_value(rng, kind) for kind in STATEMENTS[name][1]]
            pair.send(f"{name} alone", bind(name, *values, describe=rng.random() < 0.5))
        pair.send("BEGIN", bind("BEGIN", describe=rng.random() < 0.5))
        depth = 0
        for _ in range(rng.randint(1, 8)):
            name = rng.choice(list(STATEMENTS))
            values = [_value(rng, kind) for kind in STATEMENTS[name][1]]
            answer = pair.send(name, bind(name, *values, describe=rng.random() < 0.5))
            if b"SERROR" in answer:
                if not depth:
                    break
                pair.run("ROLLBACK TO SAVEPOINT s")
            elif rng.random() < 0.2:
                pair.run("SAVEPOINT s")
                depth += 1
            elif rng.random() < 0.1 and depth:
                pair.run("ROLLBACK TO SAVEPOINT s")
        pair.send("end", bind(rng.choice(["COMMIT", "COMMIT", "ROLLBACK"])))
        pair.same()
    pair.run("RESET default_transaction_isolation")
    assert pair.hits["BEGIN"] - begun > 50


def _text(name: str, rng: random.Random) -> bytes:
    """A Query message: the statement with values as constants."""
    text, kinds = STATEMENTS[name]
    for i, kind in reversed(tuple(enumerate(kinds, 1))):
        value = _value(rng, kind)
        quoted = "NULL" if value is None else value.decode() if kind in "kb" and name not in _OF_TEXTS else None
        text = text.replace(f"${i}", f"'{(value or b'').decode()}'" if quoted is None else quoted)
    return front.Query(text).encode()


_OF_TEXTS = ("iu", "uu2")
"""Whose first parameter of another kind is a text."""


@pytest.mark.parametrize("level", ["read committed", "serializable"])
@pytest.mark.parametrize("seed", range(3))
def test_every_text_is_answered_as_by_the_way_of_all(pair: Pair, level: str, seed: int) -> None:
    rng = random.Random(seed)
    pair.run(f"SET default_transaction_isolation = '{level}'")
    names = list(STATEMENTS)
    pair.run("DELETE FROM chk")
    for _ in range(60):
        for _ in range(rng.randint(0, 4)):
            name = rng.choice(names)
            pair.send(f"{name} text alone", _text(name, rng))
        pair.send("BEGIN text", front.Query("BEGIN").encode())
        for _ in range(rng.randint(1, 8)):
            name = rng.choice(names)
            if b"SERROR" in pair.send(f"{name} text", _text(name, rng)):
                break
        pair.send("end text", front.Query(rng.choice(["COMMIT", "END", "ROLLBACK"])).encode())
        pair.same()
    pair.run("RESET default_transaction_isolation")


def test_most_texts_were_answered_at_once(pair: Pair) -> None:
    names = [name for name in (*AT_ONCE, "BEGIN", "end") if not pair.hits[f"{name} text"]]
    assert [name for name in names if not pair.hits[f"{name} text alone"]] == []


def test_most_of_them_were_answered_at_once(pair: Pair) -> None:
    assert [name for name in AT_ONCE if not pair.hits[name]] == []
    assert [name for name in AT_ONCE if not pair.hits[f"{name} alone"]] == []


def test_a_commit_that_takes_long_is_waited_for(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql.coordination.thread, "HERE_SECONDS", -1.0)
    pair.run("DELETE FROM t; INSERT INTO t VALUES (1, 1)")
    for i in range(20):
        pair.send("slow", bind("ut", b"1", str(i).encode(), b"1", describe=i % 2 == 0))
        pair.send("slow", bind("it", b"1", b"1", b"taken"))
    assert pair.hits["slow"] > 15
    pair.same()


def test_what_another_has_locked_is_waited_for_at_once(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement that meets a lock runs twice: once up to the lock, once after it."""
    pair.run("DELETE FROM t; INSERT INTO t VALUES (1, 1), (2, 2)")
    wire, runs = pair.quick, []
    other = wire.client.server.client()
    pair.send("ut", bind("ut", b"1", b"x", b"2"))
    other.run("BEGIN; UPDATE t SET b = 7 WHERE k = 1")
    wire.run("BEGIN ISOLATION LEVEL READ COMMITTED")  # which does not wait for the other's commit to be durable
    assert wire.at_once(bind("ut", b"1", b"x", b"2")) is not None
    row_changed = RowUpdate.run
    monkeypatch.setattr(RowUpdate, "run", lambda *given: runs.append(None) or row_changed(*given))
    waiting = wire.client.server.start(_answer(wire, bind("ut", b"1", b"x", b"1")))
    _until_somebody_waits(wire)
    other.run("COMMIT")
    assert b"UPDATE 1" in waiting.result(30)
    assert len(runs) == 2
    wire.all_ways(bind("COMMIT"))
    assert other.rows("SELECT k, b, s FROM t ORDER BY k") == [("1", "8", "x"), ("2", "4", "x")]
    other.close()
    pair.usual.run("UPDATE t SET b = 8, s = 'x' WHERE k = 1; UPDATE t SET b = 4, s = 'x' WHERE k = 2")


@pytest.mark.parametrize("level", ["read committed", "serializable"])
@pytest.mark.parametrize(("setting", "meanwhile", "found"), [
    ("", "COMMIT", b"UPDATE 1"),
    ("", "ROLLBACK", b"UPDATE 1"),
    ("", "DELETE FROM t WHERE k = 1; COMMIT", b"UPDATE 0"),
    ("", "UPDATE t SET b = 9223372036854775807 WHERE k = 1; COMMIT", b"22003"),
    ("", "ALTER TABLE t ADD CHECK (b < 0) NOT VALID; COMMIT", b"23514"),
    ("", "", b"40P01"),
    ("", "SELECT pg_cancel_backend({})", b"57014"),
    ("lock_timeout = '50ms'", "", b"55P03"),
    ("statement_timeout = '50ms'", "", b"57014"),
    ("idle_in_transaction_session_timeout = '150ms'", "SELECT pg_sleep(0.4); COMMIT", b"UPDATE 1"),
])  # fmt: skip
def test_a_wait_ends_as_by_the_way_of_all(pair: Pair, level: str, setting: str, meanwhile: str, found: bytes) -> None:
    answers = []
    for wire in (pair.quick, pair.usual):
        wire.run("DELETE FROM t; INSERT INTO t VALUES (1, 1), (2, 2)")
        wire.all_ways(bind("ut", b"1", b"x", b"2"))
        wire.run(f"SET {setting}" if setting else "RESET ALL", f"BEGIN ISOLATION LEVEL {level}")
        wire.all_ways(bind("ut", b"1", b"x", b"2") if found == b"40P01" else bind("st", b"2"))
        other = wire.client.server.client()
        other.run("BEGIN; UPDATE t SET b = 7 WHERE k = 1")
        server, change = wire.client.server, bind("ut", b"1", b"x", b"1", describe=True)
        beside = server.start(other.work("UPDATE t SET b = 0 WHERE k = 2")) if found == b"40P01" else None
        if beside is not None:
            _until_somebody_waits(wire)
        waiting = server.start(_answer(wire, change, wire is pair.quick))
        if meanwhile:
            _until_somebody_waits(wire)
            for text in meanwhile.format(wire.client.session.backend_id).split("; "):
                other.run(text)
        answers.append(waiting.result(30))
        wire.run("ROLLBACK", "RESET ALL")
        if beside is not None:
            beside.result(30)
            other.run("ROLLBACK")
        if found == b"23514":
            wire.run("ALTER TABLE t DROP CONSTRAINT t_b_check")
        other.close()
    assert found in answers[0]
    assert answers[0] == answers[1] or found == b"40P01", "which tells of the sessions' numbers"


async def _answer(wire: Wire, data: bytes, quick: bool = True) -> bytes:
    """What ``Wire.whole`` and ``Wire.all_ways`` do."""
    wire.written.clear()
    request = wire.conversation.request_in(data) if quick else None
    wire.request = None if request is None else wire.conversation.answered_at_once(request)
    assert wire.request is None or isinstance(wire.request, Begun)
    if wire.request is None:
        wire.protocol.receive(data)
    await wire.conversation.run()
    return b"".join(wire.written)


def _until_somebody_waits(wire: Wire) -> None:
    async def waits() -> bool:
        return bool(wire.client.session.state.coordinator.jobs.waits.waited_for())

    while not wire.client.server.run(waits()):
        time.sleep(0.005)


@pytest.mark.parametrize("refusing", [
    "ALTER TABLE t ADD CHECK (b < 100)",
    "ALTER TABLE t ADD UNIQUE (b)",
    "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.s := ''fired''; RETURN NEW; END';"
    "CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f()",
    "ALTER TABLE t ALTER s SET NOT NULL",
])  # fmt: skip
def test_what_is_added_to_a_table_is_heeded(pair: Pair, refusing: str) -> None:
    pair.run("DELETE FROM t; INSERT INTO t (k, b, s) VALUES (1, 1, 'a'), (2, 2, 'b')")
    pair.send("ut", bind("ut", b"1", b"x", b"2"))
    pair.run("BEGIN")
    pair.send("ut", bind("ut", b"1", b"x", b"2"))
    pair.run("COMMIT")
    pair.run(refusing)
    for values in ((b"1", b"y", b"2"), (b"3", None, b"1"), (b"500", b"z", b"1")):
        pair.run("BEGIN")
        pair.send("ut", bind("ut", *values))
        pair.run("COMMIT")
        pair.same()
    pair.run("DROP TRIGGER IF EXISTS g ON t; DROP FUNCTION IF EXISTS f")
    pair.run(
        "ALTER TABLE t DROP CONSTRAINT IF EXISTS t_b_check, DROP CONSTRAINT IF EXISTS t_b_key, ALTER s DROP NOT NULL"
    )


def test_modes_and_rights_are_asked(pair: Pair) -> None:
    wire = pair.quick
    wire.run("DELETE FROM t; INSERT INTO t VALUES (1, 1); BEGIN READ ONLY")
    assert wire.at_once(bind("ut", b"1", b"x", b"1")) is None
    assert b"25006" in wire.all_ways(bind("ut", b"1", b"x", b"1"))
    wire.run("ROLLBACK; CREATE ROLE writer; GRANT UPDATE, SELECT ON t TO writer; SET ROLE writer")
    wire.all_ways(bind("ut", b"1", b"x", b"1"))
    wire.all_ways(bind("BEGIN"))
    assert wire.at_once(bind("ut", b"1", b"x", b"1")) is not None
    wire.run("ROLLBACK; RESET ROLE; REVOKE UPDATE ON t FROM writer; SET ROLE writer; BEGIN")
    assert wire.at_once(bind("ut", b"1", b"x", b"1")) is None
    assert b"42501" in wire.all_ways(bind("ut", b"1", b"x", b"1"))
    wire.run("ROLLBACK; RESET ROLE; DROP OWNED BY writer; DROP ROLE writer; DELETE FROM t")


def test_a_row_whose_foreign_key_needs_a_step_is_inserted_once(pair: Pair) -> None:
    wire = pair.quick
    wire.run("CREATE TABLE owner (k int PRIMARY KEY); INSERT INTO owner VALUES (1)")
    wire.run("CREATE TABLE owned (id serial PRIMARY KEY, k int REFERENCES owner)")
    wire.parse("owned", "INSERT INTO owned (k) VALUES ($1)")
    for many in (100, 300):
        wire.run(f"BEGIN; INSERT INTO owner SELECT {many} + i FROM generate_series(1, 100) i")
        assert b"INSERT 0 1" in wire.whole(bind("owned", b"1"))
        assert b"INSERT 0 1" in wire.whole(bind("owned", b"1"))
        wire.run("COMMIT")
    assert wire.client.rows("SELECT id FROM owned ORDER BY id") == [(str(i),) for i in range(1, 5)]
    wire.run("DROP TABLE owned, owner")


def test_a_portal_of_before_is_gone(pair: Pair) -> None:
    wire = pair.quick
    wire.run("DELETE FROM t; INSERT INTO t VALUES (1, 1); BEGIN")
    wire.all_ways(bind("ut", b"1", b"x", b"1"))
    wire.all_ways(front.Bind("", "st", (), (b"1",), ()).encode() + front.Sync().encode())
    assert wire.at_once(bind("ut", b"1", b"x", b"1")) is not None
    assert b"34000" in wire.all_ways(front.Execute("", 0).encode() + front.Sync().encode())
    wire.run("ROLLBACK")


@pytest.mark.parametrize("name", ["ut", "ut3", "same", "case"])
def test_a_formula_gives_what_the_evaluator_gives(pair: Pair, name: str) -> None:
    """On rows of extreme words, with every pattern of NULLs. What the formula does not cover it leaves."""
    wire = pair.quick
    wire.run("DELETE FROM t; INSERT INTO t VALUES (1, 1)")
    if name not in STATEMENTS:
        wire.parse(name, {"same": "UPDATE t SET b = $1, o = b > 5, n = NULL WHERE k = $2 AND (b <> $1 OR s = $3)",
                          "case": "UPDATE t SET b = CASE WHEN o THEN -b WHEN b % 2 = 0 THEN $1 ELSE coalesce(b, $1) END"
                                  " WHERE k = $2"}[name])  # fmt: skip
    kinds = STATEMENTS[name][1] if name in STATEMENTS else {"same": "bks", "case": "bk"}[name]
    for _ in range(2):
        wire.run("BEGIN")
        wire.all_ways(bind(name, *(b"1" if kind != "s" else b"a" for kind in kinds)))
        wire.run("ROLLBACK")
    prepared = wire.client.session.state.statements[name].prepared
    assert prepared is not None
    assert prepared.form is not None
    form = prepared.form[1]
    assert isinstance(form, RowUpdate)
    assert form.formula is not None
    rng, dictionary = random.Random(name), wire.client.session.state.coordinator.engine.dictionary
    words = (0, 1, -1, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 7, 100)
    texts = [dictionary.intern_one(text) for text in (b"", b"a", b"b", "ü".encode())]
    covered = 0
    for _ in range(3000):
        nulls = rng.randrange(64) & ~0b11
        row = [*rng.choices(words, k=2), rng.choice(texts), 2 * rng.randrange(1000), texts[0], rng.randrange(2)]
        row = [0 if nulls >> i & 1 else word for i, word in enumerate(row)] + [nulls]
        given = tuple(rng.choice((None, 0, 1, -1, 2**63 - 1, -(2**63))) if kind != "s" else rng.choice((None, "", "a"))
                      for kind in kinds)  # fmt: skip
        context = Context(dictionary, given)
        found = form.formula.run(row, given, dictionary)
        if found is None:
            continue
        covered += 1
        holds = _holds(form.tests, row, form.schema, context)
        assert bool(found) == holds
        assert not found or found == form._new(row, context)
    assert covered > 300


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata", "<+3>-3"])
def test_a_row_has_the_time_of_its_transaction(pair: Pair, zone: str) -> None:
    wire = pair.quick
    wire.run(
        "CREATE TABLE times (k int, a timestamptz, l timestamp, s timestamp(0), d date)", f"SET timezone = '{zone}'"
    )
    wire.parse("times", "INSERT INTO times VALUES ($1, now(), CURRENT_TIMESTAMP, now(), now())")
    wire.run("BEGIN")
    wire.all_ways(bind("times", b"1"))
    assert wire.at_once(bind("times", b"2")) is not None
    wire.run("COMMIT", "BEGIN")
    assert wire.at_once(bind("times", b"3")) is not None
    same = "a = now() AND l = now()::timestamp AND s = now()::timestamp(0) AND d = current_date"
    assert wire.client.rows(f"SELECT k FROM times WHERE {same}") == [("3",)]
    wire.run("ROLLBACK")
    assert wire.client.rows("SELECT count(DISTINCT (a, l, s, d)), count(*) FROM times") == [("1", "2")]
    wire.run("DROP TABLE times", "RESET timezone", "DEALLOCATE times")


def test_short_changes_need_no_context(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    wire = pair.quick
    wire.run("DELETE FROM t; INSERT INTO t VALUES (1, 1); CREATE TABLE log (k int, d bigint, m timestamp)")
    wire.parse("log", "INSERT INTO log VALUES ($1, $2, CURRENT_TIMESTAMP)")
    changes = (bind("ut", b"-1", b"x", b"1"), bind("log", b"1", b"-1"), bind("st", b"1"))
    wire.run("BEGIN")
    for change in changes:
        wire.all_ways(change)
        wire.whole(change)
    monkeypatch.setattr(Reads, "context", None)
    for change in changes:
        assert wire.at_once(change) is not None
    monkeypatch.undo()
    wire.run("ROLLBACK", "DROP TABLE log", "DEALLOCATE log")


@pytest.mark.parametrize("value", [b"7", b"-7", b"007", b" 7 ", b"+7", b"--7", b"7-", b"-", b"", b"1e1", "７".encode(),
                                   b"2147483647", b"2147483648", b"-2147483648", b"999999999", b"9" * 30])  # fmt: skip
def test_an_integer_is_what_it_is_by_the_way_of_all(pair: Pair, value: bytes) -> None:
    pair.run("DELETE FROM t; INSERT INTO t VALUES (7, 1), (-7, 1), (2147483647, 1), (999999999, 1)")
    for change in (bind("ut", value, b"x", b"7"), bind("ut", b"1", b"x", value)):
        pair.send("ut", change)
        pair.run("BEGIN")
        pair.send("ut", change)
        pair.run("ROLLBACK")
    pair.same()


@pytest.mark.parametrize("effect", [
    "pg_sleep(0.01)", "pg_notify('c', 'x')", "set_config('a.b', 'c', false)", "pg_advisory_xact_lock(1)",
    "setval('drawn', 7)", "nextval('drawn')", "random()",
])  # fmt: skip
def test_what_does_more_than_give_a_value_takes_the_way_of_all(pair: Pair, effect: str) -> None:
    wire = pair.quick
    wire.run("DELETE FROM t; INSERT INTO t VALUES (1, 1); CREATE SEQUENCE IF NOT EXISTS drawn")
    statements = {
        "add": (f"INSERT INTO t (b, k, s) VALUES (1, $1, {effect}::text)", b"2"),
        "change": (f"UPDATE t SET s = {effect}::text WHERE k = $1", b"1"),
        "read": (f"SELECT {effect}::text FROM t WHERE k = $1", b"1"),
    }
    wire.all_ways(bind("BEGIN"))
    at_once = []
    for name, (text, key) in statements.items():
        wire.parse(name, text)
        wire.all_ways(bind(name, b"99"))
        at_once += [name] if wire.at_once(bind(name, key)) is not None else []
        wire.run(f"DEALLOCATE {name}")
    wire.run("ROLLBACK")
    assert at_once == (["add"] if effect in {"nextval('drawn')", "random()"} else [])
