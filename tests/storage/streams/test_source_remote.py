"""How a batch of Spark Connect reaches the server: offers and answers in a folder, without Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ivm.errors import SqlError
from ivm.words import INT4, TEXT
from storage.dictionary import Dictionary
from storage.load.columnar import ColumnDecoder
from storage.load.columns import LoadColumn
from storage.load.source import Decode
from storage.streams.arrived import arrived_rows
from storage.streams.remote import OPEN, REFUSED, TAKEN, Handover, RunFolder, run_remote
from tests.support.source_waits import until

SECRET = b"0123456789abcdef"
COLUMNS = (LoadColumn("id", INT4), LoadColumn("name", TEXT))


@dataclass(frozen=True)
class Rows:
    """A frame of one or more partitions of (id, name)."""

    parts: tuple[tuple[tuple[object, ...], ...], ...]

    def coalesce(self, count: int) -> Rows:
        assert count == 1
        return Rows((tuple(row for part in self.parts for row in part),))

    def mapInArrow(self, function: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: str) -> Any:  # noqa: N802
        return Encoded([list(function(iter([_batch(part)]))) for part in self.parts])


def _batch(rows: Sequence[tuple[object, ...]]) -> pa.RecordBatch:
    ids, names = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays([pa.array(ids, pa.int64()), pa.array(names, pa.string())], ["c0", "c1"])


@dataclass(frozen=True)
class Encoded:
    parts: list[list[pa.RecordBatch]]

    @property
    def write(self) -> Encoded:
        return self

    def parquet(self, uri: str) -> None:
        folder = Path(urlparse(uri).path)
        folder.mkdir(parents=True)
        for i, batches in enumerate(self.parts):
            pq.write_table(pa.Table.from_batches(batches), folder / f"part-{i:05}-x.c000.parquet")


@dataclass(frozen=True)
class Typed:
    """The stream of the test: ids are 32 bits in the table."""

    columns: tuple[LoadColumn, ...] = COLUMNS

    @property
    def decode(self) -> Decode:
        return ColumnDecoder(self.columns)

    def check(self) -> None:
        pass

    def frame(self, session: Any) -> Any:
        return session

    def batch(self, frame: Any) -> Any:
        return frame


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / OPEN).touch()
    return tmp_path


ROWS = Rows((((1, "a"), (2, "b")), ((3, "a"),)))


def hand_over(folder: Path, rows: Rows, errors: list[BaseException]) -> threading.Thread:
    def work() -> None:
        try:
            Handover(Typed(), SECRET, folder)(rows, 7)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def offered(inbox: RunFolder) -> dict[str, Any]:
    found = until(inbox.offer, lambda offer: offer is not None, 20)
    assert found is not None
    return found


def test_a_batch_is_offered_taken_and_done(folder: Path) -> None:
    errors: list[BaseException] = []
    thread = hand_over(folder, ROWS, errors)
    inbox = RunFolder(folder, Typed())
    offer = offered(inbox)
    assert offer["number"] == 7
    dictionary = Dictionary(SECRET)
    rows = arrived_rows(inbox.rows(offer), COLUMNS, dictionary)
    assert rows is not None
    assert rows[:, 0].tolist() == [1, 2, 3]
    assert thread.is_alive(), "Spark waits for the answer"
    inbox.answer(offer, TAKEN)
    thread.join(20)
    assert not errors
    assert inbox.offer() is None, "it has its answer"


def test_a_batch_that_is_refused_is_not_done(folder: Path) -> None:
    errors: list[BaseException] = []
    thread = hand_over(folder, ROWS, errors)
    inbox = RunFolder(folder, Typed())
    inbox.answer(offered(inbox), REFUSED)
    thread.join(20)
    assert isinstance(errors[0], InterruptedError)


def test_ids_that_clash_have_the_batch_encoded_by_one_task(folder: Path) -> None:
    errors: list[BaseException] = []
    thread = hand_over(folder, ROWS, errors)
    inbox = RunFolder(folder, Typed())
    offer = offered(inbox)
    assert len(list((folder / offer["name"]).glob("part-*"))) == 2
    inbox.rows(offer)
    table = inbox.alone(offer, threading.Event())
    assert table.num_rows == 3 + 2, "rows, and the names once"
    inbox.answer(offer, TAKEN)
    thread.join(20)
    assert not errors


def test_an_executors_error_is_the_batchs(folder: Path) -> None:
    errors: list[BaseException] = []
    thread = hand_over(folder, Rows((((1 << 40, "a"),),)), errors)
    with pytest.raises(SqlError) as raised:
        offered(RunFolder(folder, Typed()))
    assert raised.value.sqlstate == "22003"
    thread.join(20)
    assert isinstance(errors[0], InterruptedError)


def test_a_run_that_nobody_wants_any_more_ends(folder: Path) -> None:
    errors: list[BaseException] = []
    thread = hand_over(folder, ROWS, errors)
    offered(RunFolder(folder, Typed()))
    (folder / OPEN).unlink()
    thread.join(20)
    assert isinstance(errors[0], InterruptedError)
    assert not folder.exists(), "nothing is left behind"


@dataclass
class Query:
    """A streaming query of one batch on a thread."""

    rows: Rows
    each: Callable[[Any, int], None] = lambda batch, number: None
    failed: list[BaseException] = field(default_factory=list)
    thread: threading.Thread | None = None

    @property
    def writeStream(self) -> Query:  # noqa: N802
        return self

    def foreachBatch(self, each: Callable[[Any, int], None]) -> Query:  # noqa: N802
        self.each = each
        return self

    def option(self, name: str, value: str) -> Query:
        return self

    def trigger(self, processingTime: str) -> Query:  # noqa: N803
        return self

    def start(self) -> Query:
        def work() -> None:
            try:
                self.each(self.rows, 0)
            except BaseException as error:
                self.failed.append(error)

        self.thread = threading.Thread(target=work)
        self.thread.start()
        return self

    def stop(self) -> None:
        assert self.thread is not None
        self.thread.join(20)
        assert not self.thread.is_alive(), "what waits for an answer has ended"

    @property
    def isActive(self) -> bool:  # noqa: N802
        return True

    @property
    def status(self) -> dict[str, object]:
        return {"isDataAvailable": False, "message": "Waiting for data"}


class ChangedError(Exception):
    """The table has changed."""


@pytest.mark.parametrize("fails", [False, True])
def test_a_run_takes_batches_until_it_is_stopped(tmp_path: Path, fails: bool) -> None:
    checkpoint, shared, stop = tmp_path / "checkpoint", tmp_path / "shared", threading.Event()
    for path in (checkpoint / "offsets", shared):
        path.mkdir(parents=True)
    (checkpoint / "metadata").write_text('{"id": "q"}')
    query, taken = Query(ROWS), []

    def take(arrived: Any) -> None:
        if fails:
            raise ChangedError
        taken.append((arrived.query, arrived.number, arrived.rows.num_rows))

    def look(behind: bool) -> None:
        if taken and query.thread is not None and not query.thread.is_alive():
            stop.set()

    def work() -> None:
        run_remote(query, Typed(), SECRET, checkpoint, 100_000, take, look, stop, shared)

    if fails:
        with pytest.raises(ChangedError):
            work()
        assert isinstance(query.failed[0], InterruptedError)
    else:
        work()
        assert taken == [("q", 0, 3 + 3)]
        assert not query.failed
    assert not list(shared.iterdir())
