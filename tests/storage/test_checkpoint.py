"""The applier and recovery: after a kill, store plus log hold what was acknowledged, once; the log is truncated."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from ivm.errors import SqlError
from ivm.words import INT8, ColumnType
from storage.checkpoint import Applier, Pace, recover
from storage.duck import Store
from storage.files import FatalStorageError, ForgetfulFiles
from storage.log import CommitLog
from storage.record import CommitRecord, Entries, RelationUpdate, encode_record
from storage.stored import History, StoredRelation, WriteBatch
from tests.support.paths import ROOT

EAGER = Pace(rows=50, seconds=0.01, transaction=200, checkpoint_rows=100, checkpoint_seconds=0.05, fold_seconds=0.0)
LAZY = Pace(rows=10**9, seconds=10**6, checkpoint_rows=10**9, checkpoint_seconds=10**6)


def commit_rows(epoch: int) -> list[tuple[int, int]]:
    """The rows that commit ``epoch`` inserts; it deletes those of the previous commit."""
    return [(epoch, i) for i in range(Random(epoch).randint(1, 5))]


def updates_of(epoch: int) -> RelationUpdate:
    added, removed = commit_rows(epoch), commit_rows(epoch - 1) if epoch % 3 and epoch > 1 else []
    diffs = [1] * len(added) + [-1] * len(removed)
    return RelationUpdate(1, np.array(added + removed, np.int64), np.array(diffs, np.int64))


def entry_of(epoch: int) -> Entries:
    value = f"value {epoch}".encode()
    return Entries(np.array([2 * epoch + 1]), np.frombuffer(value, np.uint8), np.array([0, len(value)]))


def record_of(epoch: int) -> CommitRecord:
    return CommitRecord(epoch, (updates_of(epoch),), entry_of(epoch), f"catalog {epoch}".encode(), f"load {epoch}")


def batch_of(epoch: int, sequence: int) -> WriteBatch:
    update = updates_of(epoch)
    view = History(np.array([[epoch]]), np.array([epoch]), np.array([1]))
    histories = {1: History(update.rows, np.full(len(update.rows), epoch), update.diffs), 2: view}
    loads = {epoch: f"load {epoch}"}
    return WriteBatch(epoch, sequence, histories, entry_of(epoch), f"catalog {epoch}".encode(), loads=loads)


def expected_rows(epoch: int) -> Counter[tuple[int, ...]]:
    rows: Counter[tuple[int, ...]] = Counter()
    for at in range(1, epoch + 1):
        for row, diff in zip(updates_of(at).rows.tolist(), updates_of(at).diffs.tolist(), strict=True):
            rows[tuple(row)] += diff
    return +rows


class Errors(list[Exception]):
    def __call__(self, error: Exception) -> None:
        self.append(error)


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it never came to pass"
        time.sleep(0.005)


def run(log: CommitLog, applier: Applier, first: int, last: int) -> None:
    for epoch in range(first, last + 1):
        sequence = log.append(encode_record(record_of(epoch)))
        log.sync()
        applier.submit(batch_of(epoch, sequence))


def check_recovered(folder: Path, at_least: int, log: CommitLog | None = None) -> int:
    """Checks that store plus log give every commit up to some epoch exactly once. Returns that epoch."""
    store = Store.open(folder)
    found = recover(store, log or CommitLog.open(folder / "log"))
    assert found.last_epoch >= at_least
    rows: Counter[tuple[int, ...]] = Counter()
    values = [found.entries.ids]
    if 1 in found.relations:
        content, diffs = found.rows(1)
        rows.update({tuple(row): int(diff) for row, diff in zip(content.tolist(), diffs, strict=True)})
        assert len(found.rows(2)[0]) == found.high_water, "views move with the tables"
        assert found.catalog == f"catalog {found.high_water}".encode()
    for _, record in found.tail:
        for row, diff in zip(record.updates[0].rows.tolist(), record.updates[0].diffs.tolist(), strict=True):
            rows[tuple(row)] += diff
        values.append(record.entries.ids)
    assert [record.epoch for _, record in found.tail] == list(range(found.high_water + 1, found.last_epoch + 1))
    assert +rows == expected_rows(found.last_epoch)
    assert sorted(np.concatenate(values)) == [2 * epoch + 1 for epoch in range(1, found.last_epoch + 1)]
    assert found.loads == {epoch: f"load {epoch}" for epoch in range(1, found.last_epoch + 1)}
    store.close()
    return found.last_epoch


def test_a_restart_is_the_store_and_then_the_log(tmp_path: Path) -> None:
    store, log, errors = Store.open(tmp_path), CommitLog.open(tmp_path / "log"), Errors()
    applier = Applier(store, log, errors, pace=LAZY)
    run(log, applier, 1, 10)
    applier.flush()
    assert applier.high_water == 10
    run(log, applier, 11, 15)
    assert applier.waiting > 0
    applier.close(flush=False)
    assert store.high_water() == 10
    log.close()
    store.close()
    assert check_recovered(tmp_path, 15) == 15
    assert not errors


def large_batch(epoch: int, size: int) -> WriteBatch:
    """A commit with a value of so many bytes."""
    value = np.full(size, epoch, np.uint8)
    return replace(batch_of(epoch, epoch), entries=Entries(np.array([2 * epoch + 1]), value, np.array([0, size])))


def test_an_applied_batch_is_not_held(tmp_path: Path) -> None:
    store, log, errors = Store.open(tmp_path), CommitLog.open(tmp_path / "log"), Errors()
    applier = Applier(store, log, errors, pace=LAZY)
    batch = large_batch(1, 1 << 20)
    value = weakref.ref(batch.entries.data)
    applier.submit(batch)
    applier.flush()
    del batch
    assert value() is None
    applier.close(flush=False)
    log.close()
    store.close()
    assert not errors


def test_values_count_towards_a_checkpoint(tmp_path: Path) -> None:
    """By their bytes: DuckDB holds them until then."""
    store, log, errors = Store.open(tmp_path), CommitLog.open(tmp_path / "log"), Errors()
    applier = Applier(store, log, errors, pace=replace(LAZY, checkpoint_rows=1000))
    applier.submit(large_batch(1, 10_000))
    applier.flush()
    assert applier._unchecked > 0
    applier.submit(large_batch(2, 100_000))
    applier.flush()
    assert applier._unchecked == 0
    applier.close(flush=False)
    log.close()
    store.close()
    assert not errors


def test_the_log_is_cut_behind_a_checkpoint(tmp_path: Path) -> None:
    store, log, errors = Store.open(tmp_path), CommitLog.open(tmp_path / "log", segment_bytes=2000), Errors()
    applier = Applier(store, log, errors, pace=EAGER)
    run(log, applier, 1, 100)
    applier.close()
    assert (store.high_water(), store.log_sequence()) == (100, 100)
    assert log.first > 80, "only the newest segment is left"
    log.close()
    store.close()
    assert check_recovered(tmp_path, 100) == 100
    assert not errors


def test_it_applies_by_itself_and_lets_history_go(tmp_path: Path) -> None:
    store, log, errors = Store.open(tmp_path), CommitLog.open(tmp_path / "log"), Errors()
    retained = 10
    applier = Applier(store, log, errors, lambda relation, high: high - retained if relation == 1 else 0, EAGER)
    run(log, applier, 1, 60)
    eventually(lambda: applier.high_water == 60)
    applier.flush()
    assert store.since(1) == 50
    assert store.since(2) == 0
    rows, _ = store.rows(1, 50)
    assert sorted(map(tuple, rows.tolist())) == sorted(expected_rows(50))
    with pytest.raises(SqlError):
        store.rows(1, 49)
    applier.close()
    store.close()
    assert not errors


def test_history_that_cannot_go_holds_nothing_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, log, errors = Store.open(tmp_path), CommitLog.open(tmp_path / "log", segment_bytes=2000), Errors()
    refusal = SqlError("53200", "the store is out of memory")

    def forget(relation: int, before: int) -> None:
        raise refusal

    monkeypatch.setattr(store, "forget", forget)
    applier = Applier(store, log, errors, lambda _, high: high, EAGER)
    run(log, applier, 1, 60)
    applier.close()
    assert store.log_sequence() == 60
    assert log.first > 40
    assert set(errors) == {refusal}
    store.close()


def test_room_and_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is reported, commits wait, and nothing is lost once there is space; too many block the caller."""
    store, log, errors = Store.open(tmp_path), CommitLog.open(tmp_path / "log"), Errors()
    real = store.apply
    full = SqlError("53100", "the disk is full")
    failing = True

    def apply(batch: WriteBatch) -> bool:
        if failing:
            raise full
        return real(batch)

    monkeypatch.setattr(store, "apply", apply)
    applier = Applier(store, log, errors, pace=Pace(rows=1, room=20, seconds=0.01, retry_seconds=0.01))
    assert applier.wait_for_room(0)
    run(log, applier, 1, 15)
    with pytest.raises(SqlError, match="disk is full"):
        applier.flush()
    assert not applier.wait_for_room(0.02)
    failing = False
    assert applier.wait_for_room(10)
    applier.flush(checkpoint=True)
    assert store.high_water() == 15
    assert set(errors) == {full}
    applier.close()
    store.close()


def test_what_a_view_has_from_the_start_holds_nobody_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows a view starts with, commits wait only for rows of other commits."""
    store, log, errors = Store.open(tmp_path), CommitLog.open(tmp_path / "log"), Errors()
    full = SqlError("53100", "the disk is full")

    def refuse(batch: WriteBatch) -> bool:
        raise full

    applier = Applier(store, log, errors, pace=Pace(rows=1, room=20, seconds=0.01, retry_seconds=0.01))
    rows = np.arange(1000).reshape(-1, 1)
    contents = History(rows, np.full(1000, 1), np.ones(1000, np.int64))
    with monkeypatch.context() as patch:
        patch.setattr(store, "apply", refuse)
        applier.submit(WriteBatch(1, 1, {1: contents}, created=(StoredRelation(1, (ColumnType(INT8, False),)),)))
        assert applier.waiting == 1000
        assert applier.wait_for_room(0)
        applier.submit(WriteBatch(2, 2, {1: History(rows + 1000, contents.epochs + 1, contents.diffs)}))
        assert not applier.wait_for_room(0.02)
    assert applier.wait_for_room(10)
    applier.flush()
    assert applier.waiting == 0
    assert len(store.rows(1, 2)[0]) == 2000
    applier.close(flush=False)
    store.close()
    log.close()


def test_what_the_applier_cannot_survive_reaches_everyone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, log, errors = Store.open(tmp_path), CommitLog.open(tmp_path / "log"), Errors()
    cause = FatalStorageError("gone")

    def apply(batch: WriteBatch) -> bool:
        raise cause

    monkeypatch.setattr(store, "apply", apply)
    applier = Applier(store, log, errors, pace=EAGER)
    applier.submit(batch_of(1, 1))
    eventually(lambda: errors == [cause])
    for call in (applier.flush, applier.wait_for_room, lambda: applier.submit(batch_of(2, 2))):
        with pytest.raises(FatalStorageError, match="gone"):
            call()
    applier.close()
    store.close()


def test_a_log_that_does_not_fit_the_store_is_told(tmp_path: Path) -> None:
    store, log, errors = Store.open(tmp_path), CommitLog.open(tmp_path / "log"), Errors()
    applier = Applier(store, log, errors, pace=EAGER)
    run(log, applier, 1, 5)
    applier.close()
    log.close()
    with pytest.raises(SqlError) as raised:
        recover(store, CommitLog.open(tmp_path / "another"))
    assert raised.value.sqlstate == "XX001"
    store.close()
    (tmp_path / "store.duckdb").unlink()
    later = CommitLog.open(tmp_path / "log", segment_bytes=10)
    later.append(encode_record(record_of(6)))
    later.sync()
    later.cut(5)
    store = Store.open(tmp_path)
    with pytest.raises(SqlError, match="records 6 to 6, but the store ends at record 0"):
        recover(store, later)
    store.close()


CHILD = """
import sys
from pathlib import Path
from storage.checkpoint import Applier, recover
from storage.duck import Store
from storage.files import ForgetfulFiles, lock_folder
from storage.log import CommitLog
from tests.storage.test_checkpoint import EAGER, batch_of, encode_record, record_of

folder = Path(sys.argv[1])
lock_folder(folder)
store = Store.open(folder)
log = CommitLog.open(folder / "log", ForgetfulFiles(), segment_bytes=3000)
found = recover(store, log)
applier = Applier(store, log, print, lambda relation, high: high - 20, EAGER)
for sequence, record in found.tail:
    applier.submit(batch_of(record.epoch, sequence))
epoch = found.last_epoch
while True:
    epoch += 1
    sequence = log.append(encode_record(record_of(epoch)))
    if epoch % 3 == 0:
        log.sync()
        for late in range(2, -1, -1):
            applier.submit(batch_of(epoch - late, sequence - late)) if epoch - late > found.last_epoch else None
        print(epoch, flush=True)
"""


def test_kills_under_load(tmp_path: Path) -> None:
    """kill -9 at random moments, on a disk that loses unsynced data: nothing is lost or duplicated."""
    random, acknowledged = Random(7), 0
    for _ in range(4):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert child.stdout is not None
        first = child.stdout.readline()
        time.sleep(random.uniform(0.0, 0.4))
        os.kill(child.pid, signal.SIGKILL)
        lines = [line for line in (first + child.stdout.read()).splitlines(keepends=True) if line.endswith("\n")]
        child.wait()
        child.stdout.close()
        assert int(lines[-1]) > acknowledged
        acknowledged = check_recovered(tmp_path, int(lines[-1]))


def test_a_power_cut_takes_only_what_was_not_synced(tmp_path: Path) -> None:
    files = ForgetfulFiles()
    store, log, errors = Store.open(tmp_path), CommitLog.open(tmp_path / "log", files), Errors()
    applier = Applier(store, log, errors, pace=LAZY)
    run(log, applier, 1, 7)
    log.append(encode_record(record_of(8)))
    files.kill()
    applier.close(flush=False)
    store.close()
    assert check_recovered(tmp_path, 7) == 7
