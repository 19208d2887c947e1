"""Runs: sorting, merging, an executor's work on a batch, and the rows of a load from batches to a file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivm.errors import SqlError
from ivm.rows import Words
from ivm.words import INT4, INT8, TEXT
from storage.dictionary import Dictionary
from storage.load.collector import Few, KeyOrder, RowCollector, SortedLoad
from storage.load.columnar import ColumnDecoder
from storage.load.columns import LoadColumn
from storage.load.executor import (
    CHUNK_ROWS,
    ENTRIES,
    ROWS,
    Encoding,
    partitioner,
    read_entries,
    read_run,
    reports_of,
    sorter,
)
from storage.load.rejects import Reject
from storage.sorted_rows import Run, is_ascending, merged, sorted_run

SECRET = b"0123456789abcdef"
WORD = st.sampled_from([-(2**63), -1, 0, 1, 2, 7, 2**63 - 1])
PLAIN = KeyOrder((0, 1), 2)


def counted(*runs: Run) -> Counter[tuple[int, ...]]:
    found: Counter[tuple[int, ...]] = Counter()
    for run in runs:
        for row, times in zip(run.rows.tolist(), run.times.tolist(), strict=True):
            found[tuple(row)] += times
    return found


def rows_of(rows: list[tuple[int, ...]], width: int) -> Words:
    return np.array(rows, np.int64).reshape(len(rows), width)


@st.composite
def runs(draw: st.DrawFn) -> list[Run]:
    width = draw(st.integers(1, 3))
    found = []
    for _ in range(draw(st.integers(1, 5))):
        rows = draw(st.lists(st.tuples(*[WORD] * width), max_size=20))
        counts = draw(st.none() | st.lists(st.integers(1, 3), min_size=len(rows), max_size=len(rows)))
        found.append(Run(rows_of(rows, width), None if counts is None else np.array(counts, np.int64)))
    return found


@given(runs(), st.integers(1, 30))
def test_runs_are_sorted_and_merged(given: list[Run], size: int) -> None:
    sorted_ = [sorted_run(*run) for run in given]
    for run, made in zip(given, sorted_, strict=True):
        assert is_ascending(made.rows)
        assert counted(made) == counted(run)
    pieces = list(merged(sorted_, size))
    assert counted(*pieces) == counted(*given)
    if pieces:
        assert is_ascending(np.concatenate([piece.rows for piece in pieces]))


@given(st.lists(st.tuples(WORD, WORD), max_size=12))
def test_ascending_rows_are_known(rows: list[tuple[int, int]]) -> None:
    assert is_ascending(rows_of(rows, 2)) == (rows == sorted(set(rows)))


def test_pieces_of_a_merge_are_of_about_one_size() -> None:
    """Even if the first word hardly varies, or runs do not overlap: no piece exceeds twice the requested size."""
    random = np.random.default_rng(1)
    low = np.stack([random.integers(0, 3, 50_000), random.permutation(50_000)], axis=1)
    apart = [np.stack([np.arange(k, k + 10_000), np.zeros(10_000, np.int64)], axis=1) for k in range(0, 50_000, 10_000)]
    for parts in ([low[k::7] for k in range(7)], apart):
        pieces = [len(piece.rows) for piece in merged([sorted_run(rows) for rows in parts], 4_000)]
        assert sum(pieces) == 50_000
        assert max(pieces) < 8_000


def test_rows_without_columns_are_counted() -> None:
    none = np.zeros((5, 0), np.int64)
    assert counted(sorted_run(none)) == {(): 5}


# -- on executors -----------------------------------------------------------------------------------------------------


def batches_of(count: int) -> list[pa.RecordBatch]:
    names = [f"n{i % 40}" if i % 7 else None for i in range(count)]
    return [pa.record_batch([pa.array(names), pa.array([i // 2 for i in range(count)], pa.int32())], ["t", "n"])]


COLUMNS = (LoadColumn("t", TEXT), LoadColumn("n", INT4, nullable=False))


def test_records_of_equal_rows_meet_and_become_runs(tmp_path: Path) -> None:
    encoding = Encoding(COLUMNS, SECRET, places=5)
    half = partitioner(encoding, ColumnDecoder(COLUMNS))
    records = [record for _ in range(2) for batch in half(batches_of(1000)) for record in batch.to_pylist()]
    assert {record["port"] for record in records} == {ROWS, ENTRIES}
    assert {record["place"] for record in records} == set(range(5))
    texts: list[str] = []
    for place in range(5):
        mine = pa.RecordBatch.from_pylist([r for r in records if r["place"] == place])
        texts += [row["data"] for batch in sorter(str(tmp_path))([mine]) for row in batch.to_pylist()]
    reports = reports_of(texts)
    runs = [read_run(tmp_path, report, 3) for report in reports if report.rows]
    assert all(is_ascending(run.rows) for run in runs)
    assert len(set().union(*(counted(run) for run in runs))) == sum(len(run.rows) for run in runs), "each at one place"
    assert sum(run.times.sum() for run in runs) == 2000
    entries = [entry for report in reports if report.entries for batch in read_entries(tmp_path, report)
               for entry in batch.to_pylist()]  # fmt: skip
    dictionary = Dictionary(SECRET)
    assert sorted(entry["value"] for entry in entries) == sorted(f"n{i}".encode() for i in range(40))
    assert all(dictionary.intern([entry["value"]]).tolist() == [entry["id"]] for entry in entries)
    assert not any(report.clash for report in reports)


def test_an_id_that_stands_for_two_values_is_told(tmp_path: Path) -> None:
    encoding = Encoding(COLUMNS, SECRET, places=3, id_bits=8)
    half = partitioner(encoding, ColumnDecoder(COLUMNS))
    (batch,) = batches_of(1000)
    parts = [batch.filter(pa.array([i % 2 == k for i in range(1000)])) for k in range(2)]
    records = [record for part in parts for batch in half([part]) for record in batch.to_pylist()]
    mine = pa.RecordBatch.from_pylist(records)
    texts = [row["data"] for batch in sorter(str(tmp_path))([mine]) for row in batch.to_pylist()]
    assert any(report.clash for report in reports_of(texts))


def test_rejects_are_notes(tmp_path: Path) -> None:
    columns = (LoadColumn("n", INT4),)
    encoding = Encoding(columns, SECRET, places=3, most=5)
    given = [pa.record_batch([pa.array([1, 2**40, 3])], ["n"])]
    records = [r for batch in partitioner(encoding, ColumnDecoder(columns))(given) for r in batch.to_pylist()]
    found = [row["data"] for batch in sorter(str(tmp_path))([pa.RecordBatch.from_pylist(records)])
             for row in batch.to_pylist()]  # fmt: skip
    rejects = [reject for report in reports_of(found) for reject in report.rejects]
    assert [(type(reject), reject.sqlstate) for reject in rejects] == [(Reject, "22003")]


def test_a_chunk_is_not_much_larger_than_it_should_be() -> None:
    columns = (LoadColumn("n", INT8, nullable=False),)
    batch = pa.record_batch([pa.array(np.arange(CHUNK_ROWS // 2 + 1))], ["n"])
    found = list(partitioner(Encoding(columns, SECRET, 4), ColumnDecoder(columns))([batch] * 5))
    assert len(found) == 3


# -- in the server ----------------------------------------------------------------------------------------------------


def collected(folder: Path | None, order: KeyOrder, parts: list[Run]) -> Few | SortedLoad:
    collector = RowCollector(folder, order, limit=10, run=16)
    for part in parts:
        collector.add(*part)
    return collector.finish()


@given(st.lists(st.lists(st.tuples(WORD, WORD), min_size=1, max_size=30), min_size=1, max_size=6), st.booleans())
def test_all_rows_come_out_as_often_as_they_came(
    tmp_path_factory: pytest.TempPathFactory, parts: list[list[tuple[int, int]]], turned: bool
) -> None:
    folder = tmp_path_factory.mktemp("data") / "loads"
    order = KeyOrder((1, 0), 1) if turned else PLAIN
    rows = [rows_of(part, 2) for part in parts]
    found = collected(folder, order, [Run(part) for part in rows])
    expected = counted(*map(Run, rows))
    assert counted(Run(found.whole())) == expected
    assert found.count == expected.total()
    if isinstance(found, SortedLoad):
        assert is_ascending(found.rows[:, list(order.words)])
        assert found.batch.rows.tolist() == found.rows[:, list(order.words)].tolist()
        assert counted(Run(found.rows), found.more) == expected
        keys = Counter(row[1] for row in set(expected))
        assert (found.twice is not None) == (turned and max(keys.values()) > 1)
        found.file.check()
        assert [path.name for path in folder.iterdir()] == [found.file.path.name], "runs have no names"


def test_few_rows_stay_in_memory_and_many_without_a_folder(tmp_path: Path) -> None:
    few = [Run(rows_of([(3, 1), (1, 1), (3, 1)], 2))]
    assert collected(tmp_path / "loads", PLAIN, few).whole().tolist() == [[3, 1], [1, 1], [3, 1]]
    assert not (tmp_path / "loads").exists()
    many = [Run(rows_of([(i, 0)], 2), np.array([2])) for i in range(30)]
    assert isinstance(collected(None, PLAIN, many), Few)
    assert collected(None, PLAIN, many).count == 60


def test_a_cancel_leaves_no_file(tmp_path: Path) -> None:
    collector = RowCollector(tmp_path / "loads", PLAIN, limit=10, run=16)
    collector.add(rows_of([(i, 0) for i in range(40)], 2))

    def check() -> None:
        raise SqlError("57014", "canceling statement due to user request")

    with pytest.raises(SqlError, match="canceling"):
        collector.finish(check)
    assert list((tmp_path / "loads").iterdir()) == []
