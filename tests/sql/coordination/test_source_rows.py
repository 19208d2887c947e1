"""Sources without Spark: JSON decoders, files, upserts by key against an oracle, each batch applied once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ivm.errors import SqlError
from ivm.rows import Words, pack
from ivm.words import BOOL, INT4, NUMERIC, TEXT, Kind, SqlType
from planner.expr.context import Context
from sql.catalog.connection import Connection
from sql.coordination.prepared import StaleError
from sql.coordination.transaction import Extent, Transaction
from sql.session.ingest import SourceBatch, ingest, target_of
from sql.session.source_progress import SourceProgress
from sql.session.source_streams import file_format
from storage.dictionary import Dictionary
from storage.load.columnar import ColumnDecoder
from storage.load.columns import LoadColumn, load_schema
from storage.load.source import ColumnBlock
from storage.streams.arrived import arrived_rows
from storage.streams.encoded import ENTRY, ROW, encoder, stream_schema
from storage.streams.files import FilesDecoder
from storage.streams.json_rows import JsonRows, Messages
from storage.streams.systems import encoded_columns, kafka_options
from storage.types.codec import decode
from tests.support.sessions import Client, Server

SECRET = b"0123456789abcdef"
ID, NAME, PRICE = LoadColumn("id", INT4), LoadColumn("name", TEXT), LoadColumn("price", NUMERIC)


def datums(
    blocks: Sequence[ColumnBlock], columns: Sequence[LoadColumn], dictionary: Dictionary
) -> list[tuple[object, ...]]:
    """Blocks' rows as Python values; under an envelope with the flag at the end."""
    found: list[tuple[object, ...]] = []
    for block in blocks:
        types = [*(c.type for c in columns), *([BOOL] if len(block.vectors) > len(columns) else [])]
        parts = [decode(t, v, dictionary) for t, v in zip(types, block.vectors, strict=True)]
        found += list(zip(*parts, strict=True))
    return found


def of_json(rows: JsonRows, *values: str | None, keys: Sequence[str | None] | None = None) -> list[tuple[object, ...]]:
    dictionary = Dictionary(SECRET)
    return datums([rows.block(values, keys, dictionary)], rows.columns, dictionary)


def refused(rows: JsonRows, *values: str | None, keys: Sequence[str | None] | None = None) -> str:
    with pytest.raises(SqlError) as raised:
        of_json(rows, *values, keys=keys)
    return raised.value.sqlstate


def test_the_stream_of_an_executor() -> None:
    columns = [LoadColumn("t", TEXT), LoadColumn("n", INT4, nullable=False)]
    batches = [
        pa.record_batch([pa.array(["a", None, "b"]), pa.array([1, 2, 3], pa.int32())], ["t", "n"]),
        pa.record_batch([pa.array(["b"]), pa.array([3], pa.int32())], ["t", "n"]),
    ]
    found = list(encoder(columns, ColumnDecoder(tuple(columns)), SECRET)(batches))
    assert all(batch.schema == stream_schema(columns) for batch in found)
    table = pa.Table.from_batches(found).to_pylist()
    assert [row["part"] for row in table] == [ROW] * 3 + [ENTRY] * 2 + [ROW]
    a, b = Dictionary(SECRET).intern([b"a", b"b"]).tolist()
    assert {(row["w0"], row["value"]) for row in table if row["part"] == ENTRY} == {(a, b"a"), (b, b"b")}
    assert [(row["w0"], row["w1"], row["w2"]) for row in table if row["part"] == ROW] == [
        (a, 1, 0),
        (0, 2, 1),
        (b, 3, 0),
        (b, 3, 0),
    ]


def test_an_objects_members_are_columns_and_numbers_keep_their_digits() -> None:
    columns = (
        ID, NAME, PRICE, LoadColumn("data", SqlType(Kind.JSONB)), LoadColumn("tags", SqlType(Kind.ARRAY, element=TEXT)),
        LoadColumn("yes", BOOL),
    )  # fmt: skip
    text = '{"id": 7, "price": 1.230000000000000000000001, "data": {"a": [1.10, null]}, "yes": true'
    text += ', "tags": ["x,\\"", null]}'
    (row,) = of_json(JsonRows(columns), text)
    assert row[:2] == (7, None)
    assert str(row[2]) == "1.230000000000000000000001"
    assert "1.10" in str(row[3])
    assert row[5] is True
    assert 'x,"' in str(row[4])


def test_json_that_is_no_row_is_an_error_with_its_state() -> None:
    rows = JsonRows((ID, NAME))
    assert refused(rows, "{") == "22P02"
    assert refused(rows, "[1]") == "22023"
    assert refused(rows, '{"id": NaN}') == "22P02"
    assert refused(rows, '{"id": "x"}') == "22P02"
    assert refused(rows, '{"id": 99999999999}') == "22003"
    assert refused(rows, '{"id": 1, "other": 2}') == "42703"
    assert refused(rows, None) == "22023"
    assert refused(JsonRows((LoadColumn("id", INT4, False),)), "{}") == "23502"
    assert of_json(JsonRows((ID, NAME), listed=True), '{"id": 1, "other": 2}') == [(1, None)]


def test_upsert_messages_take_their_keys_row_away_when_they_have_no_value() -> None:
    rows = JsonRows((ID, NAME), (0,))
    found = of_json(
        rows, '{"id": 1, "name": "a"}', None, '{"id": 3}', None, keys=[None, '{"id": 1}', None, "4"]
    )  # fmt: skip
    assert found == [(1, "a", False), (1, None, True), (3, None, True), (4, None, True)]
    assert refused(rows, None, keys=[None]) == "22023"


def test_debezium_events_become_the_rows_that_their_keys_have_then() -> None:
    rows = JsonRows((ID, NAME), (0,), debezium=True)
    a, b, c = ({"id": i, "name": n} for i, n in ((1, "a"), (1, "b"), (2, "b")))
    events = [
        {"op": "r", "before": None, "after": a},
        {"payload": {"op": "u", "before": a, "after": b}, "schema": {}},
        {"op": "u", "before": b, "after": c, "source": {"table": "t"}},
        {"op": "d", "before": c, "after": None},
    ]
    found = of_json(rows, *map(json.dumps, events), None)
    assert found == [(1, "a", False), (1, "b", False), (1, None, True), (2, "b", False), (2, None, True)]
    for event in ({"op": "t"}, {"op": "c", "after": None}, {"op": "d", "before": None}, {}):
        assert refused(rows, json.dumps(event)) == "22023"


def test_kafkas_messages_and_options() -> None:
    batch = pa.record_batch({"value": ['{"id": 1, "name": "x"}', None], "key": ["1", "1"]})
    dictionary = Dictionary(SECRET)
    decoder = Messages(JsonRows((ID, NAME), (0,)))
    assert datums(list(decoder([batch], dictionary)), (ID, NAME), dictionary) == [(1, "x", False), (1, None, True)]
    given = {"brokers": "h:9092", "topic": "t", "kafka.security.protocol": "SSL"}
    assert kafka_options(given, 10) == {
        "kafka.bootstrap.servers": "h:9092", "subscribe": "t", "startingOffsets": "earliest", "failOnDataLoss": "true",
        "maxOffsetsPerTrigger": "10", "kafka.security.protocol": "SSL",
    }  # fmt: skip
    assert kafka_options({**given, "start": "latest"}, None)["startingOffsets"] == "latest"


def files(format_: str, **options: str | bool) -> Connection:
    """A source FROM FILES with these options."""
    return Connection("files", (("format", format_), *options.items()), (), (), "none", 1)


def read(path: Path, files: Connection, rows: JsonRows, folder: Path) -> list[tuple[object, ...]]:
    """Reads through the executor's stream, as the server receives it."""
    decoder = FilesDecoder(file_format(files, rows), "t", (folder.resolve(),), rows)
    columns = encoded_columns(rows)
    encode = encoder(columns, decoder, SECRET)
    batches = list(encode([pa.record_batch({"path": [f"file:{path}"]})]))
    dictionary = Dictionary(SECRET)
    words = arrived_rows(pa.Table.from_batches(batches, stream_schema(columns)), columns, dictionary)
    assert words is not None
    from ivm.rows import unpack

    vectors = unpack(words, load_schema(columns))
    return list(zip(*(decode(c.type, v, dictionary) for c, v in zip(columns, vectors, strict=True)), strict=True))


def test_files_of_every_format_give_the_same_rows(tmp_path: Path) -> None:
    rows = [(1, "ä"), (2, None), (3, "x, y")]
    (tmp_path / "h.csv").write_text('name,id\nä,1\n,2\n"x, y",3\n')
    (tmp_path / "p.csv").write_text("1;ä\n2;\n3;x, y\n")
    (tmp_path / "j.json").write_text('{"id":1,"name":"ä"}\n\n{"id":2}\n{"name":"x, y","id":3}\n')
    pq.write_table(pa.table({"name": [n for _, n in rows], "id": pa.array([i for i, _ in rows], pa.int32())}),
                   tmp_path / "q.parquet")  # fmt: skip
    plain = JsonRows((ID, NAME))
    formats = {
        "h.csv": files("csv", header=True), "p.csv": files("csv", delimiter=";"),
        "j.json": files("json"), "q.parquet": files("parquet"),
    }  # fmt: skip
    for name, format_ in formats.items():
        assert read(tmp_path / name, format_, plain, tmp_path) == rows, name
        keyed = read(tmp_path / name, format_, JsonRows((ID, NAME), (0,)), tmp_path)
        assert keyed == [(*row, row[1] is None) for row in rows], name


AS_COPY = {
    "quotes.csv": b'\xef\xbb\xbf1,"a\nb"\r\n2,""\r\n3,\r\n4,a"b"c\r\n5,"say ""hi"""',
    "missing.csv": b"1,a\n\n2,b\n",
    "more.csv": b"1,a\n2,b,c\n",
    "bytes.csv": b"1,a\n2,\xff\n",
    "range.csv": b"1,a\n99999999999,b\n",
    "values.json": b'{"id": "1", "name": {"x": 1.0, "a": [true, null]}}\r\n \n{"name": false, "id": 2}\n{"id": null}\n',
    "other.json": b'{"id": 1}\n{"id": 2, "more": 3}\n',
    "half.json": b'{"id": 1, "name": "\\ud800"}\n',
    "list.json": b"[1]\n",
    "bad.json": b'{"id": 1}\n{"id": NaN}\n',
}
"""Files that readers of csv and JSON differ about."""


def told(error: BaseException | None) -> tuple[str, str, str]:
    """An error's message and position, without the file's name."""
    assert isinstance(error, SqlError)
    return error.sqlstate, error.message, str(error.detail).partition("line ")[2]


def by_copy(client: Client, path: Path) -> object:
    client.run("DROP TABLE IF EXISTS t")
    client.run("CREATE TABLE t (id int, name text)")
    try:
        client.run(f"COPY t FROM '{path}' (FORMAT {path.suffix[1:]})")
    except SqlError as error:
        return told(error)
    return client.sorted("SELECT * FROM t")


def by_source(path: Path) -> object:
    try:
        rows = read(path, files(path.suffix[1:]), JsonRows((ID, NAME)), path.parent)
    except RuntimeError as error:
        return told(error.__cause__)
    return sorted((tuple(None if v is None else str(v) for v in row) for row in rows), key=repr)


@pytest.mark.parametrize("name", AS_COPY)
def test_a_source_makes_of_a_file_what_copy_makes_of_it(served: Client, folder: Path, name: str) -> None:
    (folder / name).write_bytes(AS_COPY[name])
    assert by_source(folder / name) == by_copy(served, folder / name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[Client]:
    """A server that allows COPY from the folder."""
    server = Server(tmp_path_factory.mktemp("data"), (folder,), hosts=("*",))
    yield server.client()
    server.close()


def test_a_file_that_does_not_fit_is_an_error_that_names_it(tmp_path: Path) -> None:
    rows = JsonRows((ID, NAME))

    def error(name: str, content: str, format_: Connection) -> SqlError:
        path = tmp_path / name
        path.write_text(content)
        with pytest.raises(RuntimeError) as raised:
            read(path, format_, rows, tmp_path)
        assert isinstance(raised.value.__cause__, SqlError)
        return raised.value.__cause__

    header = files("csv", header=True)
    bad = error("a.csv", "id,name\n1,x\nzwei,y\n", header)
    assert (bad.sqlstate, "a.csv" in str(bad.detail)) == ("22P02", True)
    assert error("b.csv", "id,other\n1,x\n", header).sqlstate == "42703"
    assert error("c.csv", "id,name\n1,x,y\n", header).sqlstate == "22P04"
    assert error("d.json", '{"id":1}\nnot json\n', files("json")).sqlstate == "22P02"
    assert error("e.parquet", "not parquet", files("parquet")).sqlstate == "22P04"
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "link.csv").symlink_to(tmp_path / "a.csv")
    with pytest.raises(RuntimeError) as raised:
        read(tmp_path / "inside" / "link.csv", header, rows, tmp_path / "inside")
    assert "42501" in str(raised.value)
    (tmp_path / "empty.csv").write_text("")
    assert read(tmp_path / "empty.csv", files("csv"), rows, tmp_path) == []


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    server = Server(tmp_path, hosts=("*",))
    yield server.client()
    server.close()


def give(client: Client, source: str, query: str, number: int, rows: list[tuple[object, ...]]) -> SourceProgress:
    """Gives a batch as a source does; with an envelope, each row ends in a flag."""
    from storage.types.codec import encode

    coordinator = client.server.coordinator

    async def work() -> SourceProgress:
        catalog = coordinator.engine.published.catalog
        target = target_of(catalog.names["public", source], catalog)
        columns = encoded_columns(target.rows)
        dictionary = coordinator.engine.dictionary
        vectors = [encode(c.type, [row[i] for row in rows], dictionary) for i, c in enumerate(columns)]
        words: Words = pack(vectors, load_schema(columns), len(rows))
        context = Context(dictionary, hold=dictionary.generation)
        transaction = Transaction(coordinator.jobs, 0, Extent.STATEMENT)
        batch = SourceBatch(query, number, words)
        return await transaction.write(lambda writer: ingest(writer, coordinator.keys, context, target, batch))

    return client.server.run(work())


def test_a_batch_that_comes_again_changes_nothing_also_after_a_restart(client: Client) -> None:
    client.run("CREATE TABLE t (id int, name text)")
    client.run("CREATE SOURCE s FROM RATE INTO t")
    assert give(client, "s", "q", 0, [(1, "a"), (1, "a")]).rows == 2
    assert give(client, "s", "q", 0, [(1, "a"), (1, "a")]).rows == 2
    assert give(client, "s", "q", 1, [(2, "b")]).batch == 1
    client.server.restart()
    client = client.server.client()
    assert give(client, "s", "q", 1, [(2, "b")]).rows == 3
    assert client.sorted("SELECT * FROM t") == [("1", "a"), ("1", "a"), ("2", "b")]
    assert client.rows("SELECT query, batch, rows, position FROM s") == [("q", "1", "3", None)]
    for query, number in (("q", 3), ("other", 2), ("other", 0)):
        with pytest.raises(SqlError) as raised:
            give(client, "s", query, number, [(9, "z")])
        assert raised.value.sqlstate == "55000"
    assert client.rows("SELECT count(*) FROM t") == [("3",)]


def test_a_batch_that_breaks_a_constraint_leaves_no_row_and_no_note(client: Client) -> None:
    client.run("CREATE TABLE t (id int PRIMARY KEY, name text CHECK (name <> 'bad'))")
    client.run("CREATE SOURCE s FROM RATE INTO t")
    for rows, state in (([(1, "a"), (1, "b")], "23505"), ([(1, "a"), (2, "bad")], "23514")):
        with pytest.raises(SqlError) as raised:
            give(client, "s", "q", 0, rows)
        assert raised.value.sqlstate == state
    assert client.rows("SELECT count(*) FROM t") == [("0",)]
    assert client.rows("SELECT count(*) FROM s") == [("0",)]
    give(client, "s", "q", 0, [(1, "a")])
    assert client.rows("SELECT * FROM t") == [("1", "a")]


def test_a_batch_of_a_source_or_table_that_is_another_now_is_not_taken(client: Client) -> None:
    client.run("CREATE TABLE t (id int, name text)")
    client.run("CREATE SOURCE s FROM RATE INTO t")
    coordinator = client.server.coordinator
    catalog = coordinator.engine.published.catalog
    target = target_of(catalog.names["public", "s"], catalog)
    client.run("ALTER TABLE t ADD COLUMN more int DEFAULT 5")

    async def work() -> None:
        transaction = Transaction(coordinator.jobs, 0, Extent.STATEMENT)
        context = Context(coordinator.engine.dictionary)
        batch = SourceBatch("q", 0, np.zeros((0, 3), np.int64))
        await transaction.write(lambda writer: ingest(writer, coordinator.keys, context, target, batch))

    with pytest.raises(StaleError):
        client.server.run(work())
    give(client, "s", "q", 0, [(1, "a", 7)])
    assert client.rows("SELECT * FROM t") == [("1", "a", "7")]
    client.run("ALTER SOURCE s PAUSE")
    with pytest.raises(StaleError):
        client.server.run(work())


@pytest.mark.parametrize("seed", range(4))
def test_upserts_leave_the_last_row_of_each_key(client: Client, seed: int) -> None:
    random = Random(seed)
    client.run("CREATE TABLE t (k numeric NOT NULL, g text NOT NULL, v int NOT NULL, UNIQUE (g, k))")
    client.run("CREATE SOURCE s FROM RATE INTO t WITH (ENVELOPE UPSERT, KEY = (k, g))")
    client.run("CREATE MATERIALIZED VIEW sums AS SELECT g, sum(v) AS s FROM t GROUP BY g")
    expected: dict[tuple[float, str], int] = {}
    from decimal import Decimal

    for number in range(12):
        rows: list[tuple[object, ...]] = []
        for _ in range(random.choice((0, 1, 5, 200))):
            key = Decimal(random.choice(("1", "1.0", "2", "3.50", "3.5", "10"))), random.choice("ab")
            if random.random() < 0.3:
                rows.append((*key, None, True))
                expected.pop((float(key[0]), key[1]), None)
            else:
                value = random.randrange(3)
                rows.append((*key, value, False))
                expected[float(key[0]), key[1]] = value
        give(client, "s", "q", number, rows)
        found = {(float(k), g): int(v) for k, g, v in client.rows("SELECT * FROM t")}  # type: ignore[arg-type]
        assert found == expected
    wanted = {g: sum(v for (_, h), v in expected.items() if h == g) for _, g in expected}
    assert dict(client.rows("SELECT * FROM sums")) == {g: str(s) for g, s in wanted.items()}


def test_upserts_keep_constraints_and_act_on_foreign_keys(client: Client) -> None:
    client.run("CREATE TABLE p (id int PRIMARY KEY, u int UNIQUE, n int NOT NULL)")
    client.run("CREATE TABLE c (p int REFERENCES p ON DELETE CASCADE)")
    client.run("CREATE SOURCE s FROM RATE INTO p WITH (ENVELOPE UPSERT)")
    give(client, "s", "q", 0, [(1, 1, 1, False), (2, 2, 2, False)])
    client.run("INSERT INTO c VALUES (1), (2)")
    bad: list[tuple[list[tuple[object, ...]], str]] = [
        ([(1, 2, 1, False)], "23505"), ([(1, 5, None, False)], "23502"), ([(None, 5, 1, False)], "23502"),
    ]  # fmt: skip
    for rows, state in bad:
        with pytest.raises(SqlError) as raised:
            give(client, "s", "q", 1, rows)
        assert raised.value.sqlstate == state
    give(client, "s", "q", 1, [(1, None, None, True), (2, 1, 3, False), (7, None, None, True)])
    assert client.rows("SELECT * FROM p") == [("2", "1", "3")]
    assert client.rows("SELECT * FROM c") == [("2",)]


def test_statements_about_sources_say_what_is_wrong_with_them(client: Client, tmp_path: Path) -> None:
    client.run("CREATE TABLE t (id int, name text)")
    client.run("CREATE TABLE k (id int PRIMARY KEY, name text)")
    client.run("CREATE VIEW v AS SELECT 1 AS x")
    client.run("CREATE TEMP TABLE gone (id int)")
    states = {
        "CREATE SOURCE s FROM FILES (PATH '/etc', FORMAT csv) INTO t": "42501",
        "CREATE SOURCE s FROM FILES (FORMAT csv) INTO t": "42601",
        "CREATE SOURCE s FROM RATE (ROWS_PER_SECOND 'x') INTO t": "22023",
        "CREATE SOURCE s FROM RATE (ROWS_PER_SECOND 0) INTO t": "22023",
        "CREATE SOURCE s FROM RATE (SPEED 1) INTO t": "42601",
        "CREATE SOURCE s FROM RATE (ROWS_PER_SECOND 1, rows_per_second 2) INTO t": "42601",
        "CREATE SOURCE s FROM PIPES INTO t": "42601",
        "CREATE SOURCE s FROM RATE INTO nowhere": "42P01",
        "CREATE SOURCE s FROM RATE INTO v": "42809",
        "CREATE SOURCE s FROM RATE INTO gone": "42809",
        "CREATE SOURCE s FROM RATE INTO t (id, other)": "42703",
        "CREATE SOURCE s FROM RATE INTO t (id, id)": "42701",
        "CREATE SOURCE s FROM RATE INTO t WITH (ENVELOPE UPSERT)": "42P10",
        "CREATE SOURCE s FROM RATE INTO t WITH (ENVELOPE UPSERT, KEY = (id))": "42P10",
        "CREATE SOURCE s FROM RATE INTO k (name) WITH (ENVELOPE UPSERT)": "42703",
        "CREATE SOURCE s FROM RATE INTO k WITH (ENVELOPE AVRO)": "0A000",
        "CREATE SOURCE s FROM RATE INTO k WITH (ENVELOPE DEBEZIUM)": "42601",
        "CREATE SOURCE s FROM RATE INTO k WITH (KEY = (id))": "42601",
        "CREATE SOURCE s FROM RATE INTO k WITH (TRIGGER = '1 ms')": "22023",
        "CREATE SOURCE s FROM RATE INTO k WITH (TRIGGER = 'soon')": "22007",
        "CREATE SOURCE s FROM RATE INTO k WITH (SPEED = 1)": "42601",
        "CREATE SOURCE s FROM JDBC (URL 'jdbc:postgresql://h/d', TABLE 'z') INTO k": "42601",
        "CREATE SOURCE s FROM JDBC (URL 'jdbc:derby:/etc/db', TABLE 'z', POLL 'id') INTO k": "42501",
        "CREATE SOURCE s FROM JDBC (URL 'jdbc:derby:shop;create=true', TABLE 'z', POLL 'id') INTO k": "0A000",
        "CREATE SOURCE s FROM JDBC (URL 'jdbc:sqlite:/etc/db', TABLE 'z', POLL 'id') INTO k": "0A000",
        "CREATE SOURCE k FROM RATE INTO t": "42P07",
        "CREATE SOURCE nowhere.s FROM RATE INTO t": "3F000",
        "ALTER SOURCE s PAUSE": "42P01",
        "ALTER SOURCE k PAUSE": "42809",
        "ALTER SOURCE s STOP": "42601",
    }
    for text, state in states.items():
        assert client.state(text) == state, text
    client.run("ALTER SOURCE IF EXISTS s PAUSE")
    client.run("CREATE SOURCE s FROM RATE (ROWS_PER_SECOND = 5) INTO t WITH (TRIGGER '2 seconds')")
    client.run("CREATE SOURCE IF NOT EXISTS s FROM RATE INTO t")
    made = client.server.coordinator.engine.catalog.names["public", "s"]
    assert made.connection == Connection("rate", (("rows_per_second", "5"),), trigger=2_000_000)
    client.run("BEGIN; ALTER SOURCE s PAUSE; ROLLBACK")
    assert client.server.coordinator.engine.catalog.names["public", "s"] == made
    client.run("ALTER SOURCE s RENAME TO renamed")
    assert client.state("DROP TABLE t") == "2BP01"
    client.run("DROP SOURCE renamed")
    client.run("DROP TABLE t")
