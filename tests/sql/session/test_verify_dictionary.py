"""VERIFY DICTIONARY finds every kind of wrong id, and reports nothing if all are right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest

from ivm.rows import Vector, pack
from ivm.sweep import Sweep
from ivm.words import INT8, NUMERIC, TEXT, ColumnType
from storage.dictionary import Dictionary
from storage.dictionary_check import check_rows, check_stored, check_values
from tests.storage.test_dictionary import SECRET, packed
from tests.support.sessions import Server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "data")
    yield server
    server.close()


def test_nothing_is_wrong_with_a_database_in_use(server: Server) -> None:
    client = server.client()
    client.run("CREATE TABLE t (id int PRIMARY KEY, s text, n numeric) WITH (RETAIN HISTORY FOR '1 ms')")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT upper(s) AS s, sum(n), array_agg(id) FROM t GROUP BY upper(s)")
    for turn in range(3):
        client.run(f"INSERT INTO t SELECT i, 'name ' || i / 2, i * 1e30 FROM generate_series({turn}00, {turn}99) i")
        client.run("UPDATE t SET s = NULL, n = 0.5 WHERE id % 7 = 0")
        assert client.rows("VERIFY DICTIONARY") == []
        client.run("DELETE FROM t WHERE id % 3 = 0")
        client.run("VACUUM FULL")
        assert client.rows("VERIFY DICTIONARY") == []


def test_what_the_store_has_otherwise_is_shown(server: Server) -> None:
    client = server.client()
    client.run("CREATE TABLE t (s text)")
    client.run("INSERT INTO t VALUES ('a')")
    dictionary = server.coordinator.engine.dictionary
    persistence = server.coordinator.engine.persistence
    assert persistence is not None
    persistence.flush()
    dictionary.load(np.array([5]), *packed([b"a"]))
    assert client.rows("VERIFY DICTIONARY") == [("a second id of its value", "5", "\\x61")]


@pytest.mark.parametrize(("bits", "different"), [(6, 40), (9, 200), (63, 200)])
def test_ids_settled_by_rounds_are_right(bits: int, different: int) -> None:
    """With few bits, most values' first proposals collide; values leave, and the others keep their ids."""
    rnd, dictionary = Random(bits), Dictionary(SECRET, id_bits=bits)
    for turn in range(6):
        values = [b"%d" % rnd.randrange(different) for _ in range(60)]
        kept = dictionary.intern(values)
        assert list(check_values(dictionary)) == [], turn
        sweep = Sweep(dictionary.arena)
        sweep.begin()
        sweep.see(kept[::2])
        while sweep.condemn(1 << 20) is not None:
            pass
        assert list(check_values(dictionary)) == [], turn


def test_a_value_with_two_ids() -> None:
    dictionary = Dictionary(SECRET)
    (first,) = dictionary.intern([b"x"]).tolist()
    second = list(dictionary.arena.proposals(b"x", 2))[1]
    dictionary.drain_new()
    dictionary.load(np.array([second]), *packed([b"x"]))
    assert [(p.what, p.ident, p.value) for p in check_values(dictionary)] == [
        ("a second id of its value", second, b"x")
    ]
    assert first != second


def test_an_id_that_nothing_proposes() -> None:
    dictionary = Dictionary(SECRET)
    dictionary.load(np.array([77]), *packed([b"x"]))
    (problem,) = check_values(dictionary)
    assert (problem.what, problem.ident) == ("not what its value proposes: an earlier proposal is free", 77)


def test_what_is_stored() -> None:
    dictionary = Dictionary(SECRET)
    a, b = dictionary.intern([b"a", b"bb"]).tolist()
    data, offsets = packed([b"a", b"bb", b"gone"])
    assert list(check_stored(dictionary, (np.array([a, b, 99]), data, offsets))) == []
    found = list(check_stored(dictionary, (np.array([b, a, a]), *packed([b"bb", b"b", b"a"]))))
    assert [(p.what, p.ident, p.value) for p in found] == [
        ("stored more than once", a, None),
        ("stored with another value", a, b"b"),
    ]


def test_ids_in_rows() -> None:
    dictionary = Dictionary(SECRET)
    (a,) = dictionary.intern([b"a"]).tolist()
    schema = (ColumnType(TEXT), ColumnType(NUMERIC), ColumnType(INT8))
    texts = Vector(np.array([a, 0, 12345]), np.array([False, True, False]))
    numbers = Vector(np.array([4, 6, 54321]))
    rows = pack([texts, numbers, Vector(np.array([1, 3, 5]))], schema, 3)
    assert [p.ident for p in check_rows(dictionary, rows, schema)] == [12345, 54321]
    assert list(check_rows(dictionary, rows[:1], schema)) == []
