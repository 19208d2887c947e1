"""The store: batches in one transaction, idempotently; reads at a time; dropped history; typed views; the lockdown."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ivm.errors import SqlError
from ivm.rows import Vector, Words, pack
from ivm.words import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT8,
    INT4,
    INT8,
    NEGATIVE_INFINITY,
    POSITIVE_INFINITY,
    TEXT,
    TIMESTAMP,
    ColumnType,
    Kind,
    SqlType,
)
from storage.duck import Store
from storage.readable import label
from storage.record import NO_ENTRIES, Entries
from storage.stored import History, StoredRelation, WriteBatch
from tests.support.profiles import scaled


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(tmp_path)
    yield opened
    opened.close()


def history(*updates: tuple[tuple[int, ...], int, int]) -> History:
    """Makes a history from (row, epoch, diff)."""
    return History(
        np.array([u[0] for u in updates], np.int64).reshape(len(updates), -1),
        np.array([u[1] for u in updates], np.int64),
        np.array([u[2] for u in updates], np.int64),
    )


def contents(answer: tuple[Words, Words]) -> dict[tuple[int, ...], int]:
    rows, diffs = answer
    found = {tuple(row): int(diff) for row, diff in zip(rows.tolist(), diffs, strict=True)}
    assert len(found) == len(rows), "rows are distinct"
    return found


def entries(values: dict[int, bytes]) -> Entries:
    offsets = np.cumsum([0, *map(len, values.values())]).astype(np.int64)
    return Entries(np.array(list(values), np.int64), np.frombuffer(b"".join(values.values()), np.uint8), offsets)


def unpacked(found: Entries) -> dict[int, bytes]:
    return {int(id_): found.data[found.offsets[i] : found.offsets[i + 1]].tobytes() for i, id_ in enumerate(found.ids)}


def test_apply_and_read_in_time(store: Store) -> None:
    store.apply(WriteBatch(30, 3, {1: history(((1, 2), 10, 1), ((1, 2), 20, 1), ((3, 4), 20, 2), ((1, 2), 30, -2))}))
    assert contents(store.rows(1, 0)) == {}
    assert contents(store.rows(1, 10)) == {(1, 2): 1}
    assert contents(store.rows(1, 20)) == {(1, 2): 2, (3, 4): 2}
    assert contents(store.rows(1)) == {(3, 4): 2}
    found = store.range_updates(1, 10, 20)
    assert sorted(found.rows.tolist()) == [[1, 2], [3, 4]]
    assert found.epochs.tolist() == [20, 20]
    with pytest.raises(SqlError) as raised:
        store.rows(1, 31)
    assert raised.value.sqlstate == "22023"
    assert raised.value.detail == "It can be read from 0 to 30."


def test_everything_survives_a_reopening(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    secret = store.secret
    assert len(secret) == 16
    store.create_relation(7, 0)
    values = {3: b"abc", 5: b"", -7: bytes(range(256))}
    store.apply(WriteBatch(9, 4, {1: history(((1,), 9, 1))}, entries(values), b'{"a": 1}', loads={9: "load 'one'"}))
    store.apply(WriteBatch(10, 5, {7: History(np.zeros((2, 0), np.int64), np.array([10, 10]), np.array([1, 1]))}))
    store.close()
    store = Store.open(tmp_path)
    assert (store.secret, store.high_water(), store.log_sequence()) == (secret, 10, 5)
    assert store.catalog() == b'{"a": 1}'
    assert store.loads() == {9: "load 'one'"}
    assert unpacked(store.dictionary()) == values
    assert store.relations() == {7: 0, 1: 1}
    assert contents(store.rows(1)) == {(1,): 1}
    assert contents(store.rows(7)) == {(): 2}
    store.close()


def test_a_batch_is_applied_once(store: Store) -> None:
    batch = WriteBatch(20, 2, {1: history(((1,), 10, 1), ((2,), 20, 1))}, entries({1: b"x"}), b"one")
    assert store.apply(batch)
    assert not store.apply(batch)
    overlapping = WriteBatch(30, 3, {1: history(((1,), 10, 1), ((2,), 20, 1), ((2,), 30, 1))}, NO_ENTRIES, None)
    assert store.apply(overlapping)
    assert contents(store.rows(1)) == {(1,): 1, (2,): 2}
    assert store.catalog() == b"one"


def test_a_failed_batch_changes_nothing(store: Store) -> None:
    store.apply(WriteBatch(10, 1, {1: history(((1,), 10, 1))}))
    with pytest.raises(AssertionError):
        store.apply(WriteBatch(20, 2, {2: history(((5,), 20, 1)), 1: history(((1, 2), 20, 1))}, catalog=b"new"))
    assert (store.high_water(), store.log_sequence(), store.catalog()) == (10, 1, None)
    assert store.relations() == {1: 1}
    store.apply(WriteBatch(20, 2, {2: history(((5,), 20, 1))}))
    assert contents(store.rows(2)) == {(5,): 1}


def test_dropping_and_creating(store: Store) -> None:
    schema = (ColumnType(INT8, nullable=False),)
    store.apply(
        WriteBatch(10, 1, {1: history(((1,), 10, 1))}, created=(StoredRelation(1, schema), StoredRelation(2, schema)))
    )
    assert store.relations() == {1: 1, 2: 1}
    store.apply(WriteBatch(20, 2, {1: history(((2,), 15, 1))}, dropped=(1,)))
    assert store.relations() == {2: 1}
    with pytest.raises(SqlError):
        store.rows(1)
    store.drop_relation(2)
    store.drop_relation(2)
    assert store.relations() == {}
    store.forget(2, 0)
    store.forget(2, 1 << 40, whole=True)
    with pytest.raises(SqlError) as raised:
        store.since(2)
    assert raised.value.sqlstate == "42P01"


def test_forgetting_keeps_later_reads_and_refuses_older_ones(store: Store) -> None:
    store.apply(WriteBatch(30, 3, {1: history(((1,), 10, 1), ((2,), 20, 1), ((1,), 20, -1), ((3,), 30, 1))}))
    store.forget(1, 20)
    assert store.since(1) == 20
    assert contents(store.rows(1, 20)) == {(2,): 1}
    assert contents(store.rows(1, 30)) == {(2,): 1, (3,): 1}
    assert store.range_updates(1, 20, 30).rows.tolist() == [[3]]
    for read in (lambda: store.rows(1, 19), lambda: store.range_updates(1, 19, 30), lambda: store.forget(1, 31)):
        with pytest.raises(SqlError) as raised:
            read()
        assert raised.value.sqlstate == "22023"
    store.forget(1, 5)
    assert store.since(1) == 20


update = st.tuples(st.tuples(st.integers(0, 2), st.sampled_from([0, -(2**63), 2**63 - 1])), st.sampled_from([1, -1, 2]))


@settings(max_examples=scaled(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.lists(update, max_size=6), st.integers(0, 3)), min_size=1, max_size=5))
def test_history_against_counters(store: Store, steps: list[tuple[list[tuple[tuple[int, int], int]], int]]) -> None:
    relation = max(store.relations(), default=0) + 1
    store.create_relation(relation, 2)
    start = epoch = store.high_water()
    expected: dict[int, Counter[tuple[int, ...]]] = {epoch: Counter()}
    for updates, keep in steps:
        expected[epoch + 1] = Counter(expected[epoch])
        epoch += 1
        for row, diff in updates:
            expected[epoch][row] += diff
        if updates:
            store.apply(WriteBatch(epoch, epoch, {relation: history(*((row, epoch, diff) for row, diff in updates))}))
        else:
            store.apply(WriteBatch(epoch, epoch))
        store.forget(relation, max(start, epoch - keep))
        for at in range(max(store.since(relation), start), epoch + 1):
            assert contents(store.rows(relation, at)) == {row: n for row, n in expected[at].items() if n}


def statements_of(store: Store, work: Callable[[], None]) -> list[str]:
    """What DuckDB is told meanwhile."""
    told: list[str] = []

    class Listening:
        def execute(self, query: str, *given: object) -> object:
            told.append(query)
            return connection.execute(query, *given)

    connection, store._connection = store._connection, Listening()  # type: ignore[assignment]
    try:
        work()
    finally:
        store._connection = connection
    return told


def test_few_updates_without_retractions_are_folded_without_a_sum(store: Store) -> None:
    """GROUP BY of many words takes long, even of no rows."""
    store.apply(WriteBatch(10, 1, {1: history(((1,), 5, 1), ((1,), 6, 2), ((2,), 7, 1), ((3,), 9, 1))}))
    for before in (4, 8, 9):
        told = statements_of(store, partial(store.forget, 1, before))
        assert told
        assert not any("GROUP BY" in query for query in told)
        assert contents(store.rows(1, 10)) == {(1,): 3, (2,): 1, (3,): 1}
    store.apply(WriteBatch(20, 2, {1: history(((1,), 15, -3), ((4,), 15, 1), ((4,), 16, -1))}))
    assert any("GROUP BY" in query for query in statements_of(store, partial(store.forget, 1, 20)))
    assert contents(store.rows(1)) == {(2,): 1, (3,): 1}
    assert [(h.rows.tolist(), h.diffs.tolist()) for h in store.changes(1, None, 20, ["w0"])] == [([[2], [3]], [1, 1])]
    store.forget(1, 20, whole=True)
    with store._reading() as cursor:
        assert sorted(cursor.execute("SELECT * FROM base_1").fetchall()) == [(2, 1), (3, 1)]


def test_folding_consolidates_a_base_of_equal_rows(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.duck._FOLD_AT_LEAST", 4)
    for epoch in range(1, 40):
        store.apply(WriteBatch(epoch, epoch, {1: history(((7,), epoch, 1))}))
        store.forget(1, epoch)
        assert contents(store.rows(1)) == {(7,): epoch}
    with store._reading() as cursor:
        assert cursor.execute("SELECT count(*) FROM base_1").fetchone() < (12,)


def test_folding_consolidates_the_base(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.duck._FOLD_AT_LEAST", 4)
    for epoch in range(1, 40):
        store.apply(
            WriteBatch(epoch, epoch, {1: history(((epoch,), epoch, 1), ((epoch - 1,), epoch, -1 if epoch > 1 else 0))})
        )
        store.forget(1, epoch)
        assert contents(store.rows(1)) == {(epoch,): 1}
    with store._reading() as cursor:
        assert cursor.execute("SELECT count(*) FROM base_1").fetchone() < (12,)


def test_checkpoint_tells_what_the_file_holds(store: Store, tmp_path: Path) -> None:
    assert store.checkpoint() == 0
    store.apply(WriteBatch(10, 8, {1: history(((1,), 10, 1))}))
    assert store.checkpoint() == 8
    wal = tmp_path / "store.duckdb.wal"
    assert not wal.exists() or wal.stat().st_size == 0
    store.apply(WriteBatch(11, 9, {1: history(((1,), 11, 1))}))
    assert wal.stat().st_size > 0


def test_too_little_memory_is_53200_and_the_store_lives_on(tmp_path: Path) -> None:
    store = Store.open(tmp_path, 64 << 20)
    data = np.zeros(96 << 20, np.uint8)
    huge = Entries(np.array([1]), data, np.array([0, len(data)]))
    with pytest.raises(SqlError) as raised:
        store.apply(WriteBatch(10, 1, {1: history(((1,), 10, 1))}, huge))
    assert raised.value.sqlstate == "53200"
    assert store.high_water() == 0
    assert store.apply(WriteBatch(10, 1, {1: history(((1,), 10, 1))}))
    store.close()


def test_an_unclear_commit_is_looked_up(store: Store) -> None:
    """COMMIT raises FATAL, whether it happened or not: the store reopens the file and trusts it."""

    class Unclear:
        def __init__(self, real: duckdb.DuckDBPyConnection, happens: bool) -> None:
            self.real, self.happens = real, happens

        def __getattr__(self, name: str) -> object:
            return getattr(self.real, name)

        def execute(self, query: str, *arguments: object) -> object:
            if query == "COMMIT":
                self.real.execute("COMMIT" if self.happens else "ROLLBACK")
                raise duckdb.FatalException("FATAL Error: it is not known")
            return self.real.execute(query, *arguments)

    store._connection = Unclear(store._connection, happens=True)  # type: ignore[assignment]
    assert store.apply(WriteBatch(10, 1, {1: history(((1,), 10, 1))}))
    assert contents(store.rows(1)) == {(1,): 1}
    store._connection = Unclear(store._connection, happens=False)  # type: ignore[assignment]
    with pytest.raises(Exception, match="it is not known"):
        store.apply(WriteBatch(20, 2, {1: history(((1,), 20, 1)), 2: history(((1,), 20, 1))}))
    assert (store.high_water(), store.relations()) == (10, {1: 1})
    assert store.apply(WriteBatch(20, 2, {1: history(((1,), 20, 1))}))
    assert contents(store.rows(1)) == {(1,): 2}


def test_the_lockdown_holds(store: Store, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a\n1\n")
    array = pytest.importorskip("pyarrow").table({"a": [1]})
    assert len(array) == 1
    for statement in (
        f"SELECT * FROM read_csv('{tmp_path}/x.csv')",
        f"COPY (SELECT 1) TO '{tmp_path}/y.csv'",
        f"ATTACH '{tmp_path}/z.duckdb'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SET memory_limit = '100GB'",
        "SELECT * FROM array",
    ):
        with pytest.raises(duckdb.Error):
            store._connection.execute(statement)


def test_a_second_server_is_refused_and_damage_is_told(tmp_path: Path) -> None:
    (tmp_path / "store.duckdb").write_bytes(b"not a store" * 4000)
    with pytest.raises(SqlError) as raised:
        Store.open(tmp_path)
    assert raised.value.sqlstate == "XX001"
    assert "store.duckdb" in raised.value.message


def float_word(value: float) -> int:
    bits = int(np.float64(value).view(np.int64))
    return bits if bits >= 0 else bits ^ (2**63 - 1)


def test_typed_views_show_values(store: Store) -> None:
    types = (INT4, TEXT, DATE, TIMESTAMP, SqlType(Kind.NUMERIC, 10, 2), FLOAT8, BOOL, BYTEA)
    schema = tuple(ColumnType(t) for t in types)
    floats = [1.5, -0.1, 5e-324, -math.inf, math.nan]
    words = [
        [7, -8, 0, 1, 2],
        [11, 13, 15, 11, 11],
        [0, 9000, -9000, POSITIVE_INFINITY, NEGATIVE_INFINITY],
        [1, -1, 0, NEGATIVE_INFINITY, POSITIVE_INFINITY],
        [12345, -1, 0, 10**9, 2**63 - 1],
        [float_word(x) for x in floats],
        [0, 1, 0, 1, 0],
        [13, 13, 13, 13, 13],
    ]
    nulls = np.array([False, False, True, False, False])
    rows = pack([Vector(np.array(column), nulls) for column in words], schema, 5)
    values = {11: "zwölf".encode(), 13: b"o'hare", 15: b"unused"}
    relation = StoredRelation(16400, schema, 'odd "name"', tuple(f"col {i}" for i in range(8)))
    ends = np.array([5, 5, 5, 5, 5]), np.array([2, 1, 1, 1, 1])
    store.apply(WriteBatch(5, 1, {16400: History(rows, *ends)}, entries(values), created=(relation,)))
    with store._reading() as cursor:
        columns = "c0, c1, c2::VARCHAR, c3::VARCHAR, c4::VARCHAR, c5, c6, c7"
        found = cursor.execute(f"SELECT {columns} FROM readable.r16400 ORDER BY c0").fetchall()
        names = cursor.execute("SELECT * FROM readable.names ORDER BY 3").fetchall()
    assert names == [(16400, 'odd "name"', f"c{i}", f"col {i}") for i in range(8)]
    assert found[0] == (-8, "o'hare", "2024-08-22", "1999-12-31 23:59:59.999999", "-0.01", -0.1, True, b"o'hare")
    assert found[1] == (1, "zwölf", "infinity", "-infinity", "10000000.00", -math.inf, True, b"o'hare")
    assert math.isnan(found[2][5])
    assert found[2][4] is None, "NaN"
    assert (
        found[3]
        == found[4]
        == (7, "zwölf", "2000-01-01", "2000-01-01 00:00:00.000001", "123.45", 1.5, False, b"o'hare")
    )
    assert found[5] == (None,) * 8


def test_names_are_noted_at_once() -> None:
    statements: list[str] = []
    wide = StoredRelation(16401, (ColumnType(INT4),) * 200, "wide", tuple(f"col {i}" for i in range(200)))
    label(lambda statement, *_: statements.append(statement), wide)
    assert len(statements) == 2


def test_a_checkpoint_that_a_kill_cut_short_is_undone(tmp_path: Path) -> None:
    """DuckDB rewrites its metadata blocks in place: a torn one must not cost the file."""
    from storage import undo

    path = tmp_path / "store.duckdb"
    store = Store.open(tmp_path, 64 << 20)
    store.apply(WriteBatch(10, 8, {1: history(((1,), 10, 1))}))
    assert store.checkpoint() == 8
    store.apply(WriteBatch(11, 9, {1: history(((2,), 11, 1))}))
    store._save_metadata()
    store._disconnect()  # without a checkpoint, as after a kill: the header is the old one
    intact = path.read_bytes()
    with path.open("r+b") as file:
        file.seek(12_288)
        file.write(b"\7" * 5000)
    store = Store.open(tmp_path, 64 << 20)
    assert contents(store.rows(1)) == {(1,): 1, (2,): 1}
    assert store.checkpoint() == 9
    store.close()
    assert path.read_bytes()[:12_288] != intact[:12_288]
    assert not list(tmp_path.glob("*.undo*"))
    assert not undo.restore(path)


def test_an_undo_file_of_a_checkpoint_that_was_done_is_not_used(tmp_path: Path) -> None:
    store = Store.open(tmp_path, 64 << 20)
    store.apply(WriteBatch(10, 8, {1: history(((1,), 10, 1))}))
    store.checkpoint()
    store.apply(WriteBatch(11, 9, {1: history(((2,), 11, 1))}))
    store._save_metadata()
    store._connection.execute("CHECKPOINT")
    store._disconnect()
    store = Store.open(tmp_path, 64 << 20)
    assert contents(store.rows(1)) == {(1,): 1, (2,): 1}
    assert not list(tmp_path.glob("*.undo*"))
    store.close()


def test_a_reader_only_puts_a_checkpoint_off(store: Store) -> None:
    stop = threading.Event()
    failed: list[BaseException] = []

    def read() -> None:
        try:
            while not stop.is_set():
                store.rows(1)
        except BaseException as error:
            failed.append(error)

    store.create_relation(1, 1)
    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    done = 0
    for epoch in range(1, 80):
        store.apply(WriteBatch(epoch, epoch, {1: history(((epoch,), epoch, 1))}))
        done += store.checkpoint() > 0
    stop.set()
    for thread in threads:
        thread.join()
    assert failed == []
    assert store.checkpoint() == 79
