"""The commit log and its records: durability on a disk that loses unsynced data, torn tails, damage, truncation."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ivm.errors import SqlError
from storage.files import DiskError, ForgetfulFiles, RealFiles, lock_folder
from storage.log import CommitLog
from storage.record import NO_ENTRIES, CommitRecord, Entries, RelationUpdate, decode_record, encode_record
from tests.support.profiles import scaled


def filled(folder: Path, records: list[list[bytes]], segment_bytes: int = 1 << 20) -> CommitLog:
    """A log in which each list was one sync."""
    log = CommitLog.open(folder, segment_bytes=segment_bytes)
    for group in records:
        for record in group:
            log.append(record)
        log.sync()
    return log


def replayed(folder: Path) -> list[bytes]:
    log = CommitLog.open(folder)
    found = list(log.replay())
    assert [sequence for sequence, _ in found] == list(range(log.first, log.last + 1))
    return [record for _, record in found]


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.log"))


def test_what_is_synced_comes_back(tmp_path: Path) -> None:
    log = CommitLog.open(tmp_path)
    assert (log.first, log.last, log.durable, log.sync()) == (1, 0, 0, 0)
    assert [log.append(b"a"), log.append(b"bb")] == [1, 2]
    assert (log.last, log.durable) == (2, 0)
    assert list(log.replay()) == []
    assert log.sync() == 2
    assert log.append(b"\0" * 5000) == 3
    log.close()
    log = CommitLog.open(tmp_path)
    assert list(log.replay()) == [(1, b"a"), (2, b"bb"), (3, b"\0" * 5000)]
    assert list(log.replay(after=2)) == [(3, b"\0" * 5000)]
    assert log.append(b"d") == 4
    log.close()
    assert replayed(tmp_path)[3] == b"d"


def test_segments_roll_and_are_cut_whole(tmp_path: Path) -> None:
    log = filled(tmp_path, [[b"x" * 100] * 2] * 10, segment_bytes=600)
    names = [path.name for path in segments(tmp_path)]
    assert len(names) > 2
    assert names[0] == f"{1:020d}.log"
    assert replayed(tmp_path) == [b"x" * 100] * 20
    log.cut(0)
    assert len(segments(tmp_path)) == len(names)
    second = int(names[1][:-4])
    log.cut(second - 2)
    assert log.first == 1
    log.cut(second - 1)
    assert log.first == second
    assert [sequence for sequence, _ in log.replay(after=15)] == [16, 17, 18, 19, 20]
    log.cut(20)
    assert len(segments(tmp_path)) == 1
    assert log.append(b"next") == 21
    log.close()
    assert replayed(tmp_path)[-1] == b"next"


def test_many_threads_append_while_one_syncs(tmp_path: Path) -> None:
    log = CommitLog.open(tmp_path, segment_bytes=4096)
    given_out: list[int] = []
    done = threading.Event()

    def append(worker: int) -> None:
        given_out.extend(log.append(bytes([worker]) * 10) for _ in range(200))

    def sync() -> None:
        while not done.is_set():
            log.sync()

    syncer = threading.Thread(target=sync)
    workers = [threading.Thread(target=append, args=(i,)) for i in range(3)]
    for thread in (syncer, *workers):
        thread.start()
    for thread in workers:
        thread.join()
    done.set()
    syncer.join()
    log.close()
    assert sorted(given_out) == list(range(1, 601))
    assert sorted(replayed(tmp_path)) == sorted(bytes([i]) * 10 for i in range(3) for _ in range(200))


@pytest.mark.parametrize("state", ["53100", "58030"])
def test_after_a_failed_write_or_sync_a_new_segment_is_begun(tmp_path: Path, state: str) -> None:
    """What was not acknowledged is gone, also if it has reached the disk: it is appended again."""
    files = ForgetfulFiles()
    log = CommitLog.open(tmp_path, files)
    log.append(b"a")
    log.sync()
    for _ in range(2):
        setattr(files, "full" if state == "53100" else "fail_sync", True)
        assert log.append(b"b") == 2
        with pytest.raises(DiskError) as caught:
            log.sync()
        assert caught.value.sqlstate == state
        assert (log.durable, log.last) == (1, 1)
        log.cut(1)
    with (tmp_path / f"{1:020d}.log").open("ab") as real:  # as if a part of it had been written
        real.write(b"\0" * 300)
    files.full = files.fail_sync = False
    assert log.sync() == 1
    assert log.append(b"c") == 2
    assert log.sync() == 2
    assert [path.name for path in sorted(tmp_path.iterdir())] == [f"{1:020d}.log", f"{2:020d}.log"]
    assert log.append(b"d") == 3
    assert log.sync() == 3
    files.kill()
    assert replayed(tmp_path) == [b"a", b"c", b"d"]


def test_a_log_whose_first_write_fails(tmp_path: Path) -> None:
    files = ForgetfulFiles()
    log = CommitLog.open(tmp_path, files)
    for flag in ("full", "fail_sync"):
        setattr(files, flag, True)
        log.append(b"x")
        with pytest.raises(DiskError):
            log.sync()
        setattr(files, flag, False)
    log.append(b"y")
    assert log.sync() == 1
    log.append(b"z")
    files.fail_sync = True
    with pytest.raises(DiskError):
        log.sync()
    files.fail_sync = False
    log.append(b"z")
    assert log.sync() == 2
    files.kill()
    assert replayed(tmp_path) == [b"y", b"z"]


@pytest.mark.parametrize("seed", range(40))
def test_power_cuts_lose_nothing_that_was_synced(tmp_path: Path, seed: int) -> None:
    """Histories of appends, syncs, truncations and power cuts at any file operation, continued by each restart."""
    random = Random(seed)
    synced: list[bytes] = []
    first = 1
    for _ in range(6):
        files = ForgetfulFiles()
        log = CommitLog.open(tmp_path, files, segment_bytes=300)
        found = dict(log.replay())
        for sequence in range(first, len(synced) + 1):
            assert found[sequence] == synced[sequence - 1], "an acknowledged record is there, unchanged"
        assert log.first <= first
        synced = [found.get(sequence, b"") for sequence in range(1, log.last + 1)]
        waiting: list[bytes] = []
        lives = random.randint(0, 12)
        try:
            for _ in range(40):
                match random.randint(0, 5):
                    case 0 | 1 | 2:
                        waiting.append(random.randbytes(random.randint(1, 80)))
                        assert log.append(waiting[-1]) == len(synced) + len(waiting)
                    case 3 | 4:
                        files.fail_sync = files.syncs >= lives
                        log.sync()
                        synced += waiting
                        waiting = []
                    case _:
                        first = max(first, random.randint(1, len(synced) + 1))
                        log.cut(first - 1)
        except (DiskError, OSError):
            pass
        files.kill(random)


@pytest.mark.parametrize("last", [b"last record" * 3, b"\0" * 3000])
def test_a_torn_tail_is_cut_at_every_length(tmp_path: Path, last: bytes) -> None:
    filled(tmp_path, [[b"first"], [b"second", b"third"], [last]]).close()
    (path,) = segments(tmp_path)
    data = path.read_bytes()
    start = len(data) - len(last) - 36
    for size in [*range(start, len(data), 1 + len(last) // 100)]:
        path.write_bytes(data[:size])
        assert replayed(tmp_path) == [b"first", b"second", b"third"]
        assert path.read_bytes() == data[:start], "what was torn is gone, so that new records follow good ones"


def test_a_torn_tail_with_unwritten_sectors_is_cut(tmp_path: Path) -> None:
    filled(tmp_path, [[b"first"], [b"\0" * 3000]]).close()
    (path,) = segments(tmp_path)
    data = path.read_bytes()
    for start, end in ((512, 1024), (2048, len(data)), (len(data) - 3036, 1024)):
        path.write_bytes(data[:start] + bytes(end - start) + data[end:])
        assert replayed(tmp_path) == [b"first"]


def test_every_flipped_byte_is_damage_that_is_named(tmp_path: Path) -> None:
    """No flipped byte gives a shorter or different history, neither in the middle nor in the last group."""
    groups = [[b"first"], [b"second" * 20, b"third"], [b"\0" * 700], [b"last"]]
    folder = tmp_path / "log"
    filled(folder, groups, segment_bytes=400).close()
    copy = tmp_path / "copy"
    for path in segments(folder):
        data = path.read_bytes()
        for offset in range(0, len(data), 3):
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(folder, copy)
            damaged = copy / path.name
            damaged.write_bytes(data[:offset] + bytes([data[offset] ^ 0x41]) + data[offset + 1 :])
            with pytest.raises(SqlError) as raised:
                replayed(copy)
            assert raised.value.sqlstate == "XX001"
            assert str(damaged) in raised.value.message
            assert "byte " in raised.value.message


def test_a_missing_segment_is_damage(tmp_path: Path) -> None:
    folder, copy = tmp_path / "log", tmp_path / "copy"
    filled(folder, [[b"x" * 300]] * 4, segment_bytes=400).close()
    paths = segments(folder)
    assert len(paths) == 4
    for path in paths[1:]:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy)
        (copy / path.name).unlink()
        with pytest.raises(SqlError, match="missing"):
            CommitLog.open(copy)


def test_a_kill_between_two_segments(tmp_path: Path) -> None:
    """The new segment exists, without its header or groups; the old one has no end mark, or half of one."""
    filled(tmp_path, [[b"x" * 300]], segment_bytes=400).close()
    (old,) = segments(tmp_path)
    before = old.read_bytes()
    filled(tmp_path, [[b"y" * 300]], segment_bytes=400).close()
    new = segments(tmp_path)[1]
    after, head = old.read_bytes(), new.read_bytes()[:32]
    for end in (before, before + after[len(before) : len(before) + 10], after):
        for start in (b"", bytes(32), head):
            if end == after and start != head:
                continue
            old.write_bytes(end)
            new.write_bytes(start)
            log = CommitLog.open(tmp_path, segment_bytes=400)
            assert (log.last, log.append(b"again"), log.sync()) == (1, 2, 2)
            log.close()
            assert replayed(tmp_path) == [b"x" * 300, b"again"]
            for path in segments(tmp_path)[1:]:
                path.unlink()


def test_one_process_at_a_time(tmp_path: Path) -> None:
    lock_folder(tmp_path)
    with pytest.raises(SqlError) as raised:
        lock_folder(tmp_path)
    assert raised.value.sqlstate == "55006"


def test_real_files_keep_the_contract(tmp_path: Path) -> None:
    files = RealFiles()
    files.make_folder(tmp_path / "a" / "b")
    file = files.create(tmp_path / "a" / "b" / "f")
    file.write(b"one")
    file.sync()
    file.close()
    with pytest.raises(FileExistsError):
        files.create(tmp_path / "a" / "b" / "f")
    file = files.append(tmp_path / "a" / "b" / "f")
    file.write(b"two")
    file.close()
    files.sync_folder(tmp_path / "a" / "b")
    assert files.read(tmp_path / "a" / "b" / "f") == b"onetwo"
    files.truncate(tmp_path / "a" / "b" / "f", 4)
    assert files.read(tmp_path / "a" / "b" / "f") == b"onet"
    files.remove(tmp_path / "a" / "b" / "f")
    assert files.names(tmp_path / "a" / "b") == []


words = st.integers(-(2**63), 2**63 - 1)


@st.composite
def updates(draw: st.DrawFn) -> RelationUpdate:
    shape = draw(st.tuples(st.integers(0, 5), st.integers(0, 4)))
    rows = draw(hnp.arrays(np.int64, shape, elements=words))
    alike = draw(st.booleans())
    diffs = np.full(shape[0], draw(words)) if alike else draw(hnp.arrays(np.int64, shape[0], elements=words))
    return RelationUpdate(draw(words), rows, diffs.astype(np.int64))


@st.composite
def some_entries(draw: st.DrawFn) -> Entries:
    values = draw(st.lists(st.binary(max_size=9), max_size=4))
    ids = np.array(draw(st.lists(words, min_size=len(values), max_size=len(values))), np.int64)
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int64)
    return Entries(ids, np.frombuffer(b"".join(values), np.uint8), offsets)


records = st.builds(
    CommitRecord, words, st.lists(updates(), max_size=3).map(tuple), some_entries(), st.none() | st.binary(),
    st.none() | st.text(),
)  # fmt: skip


def assert_same(left: CommitRecord, right: CommitRecord) -> None:
    assert (left.epoch, left.catalog, left.load) == (right.epoch, right.catalog, right.load)
    for mine, yours in zip(left.updates, right.updates, strict=True):
        assert mine.relation == yours.relation
        assert mine.rows.shape == yours.rows.shape
        assert (mine.rows == yours.rows).all()
        assert (mine.diffs == yours.diffs).all()
    for one, other in zip(left.entries, right.entries, strict=True):
        assert (one == other).all()


@settings(max_examples=scaled(150))
@given(records)
@example(CommitRecord(0))
@example(CommitRecord(5, (RelationUpdate(1, np.zeros((2, 1), np.int64), np.array([1, -1])),), NO_ENTRIES, b"", ""))
def test_records_round_trip(record: CommitRecord) -> None:
    assert_same(decode_record(encode_record(record)), record)


@settings(max_examples=scaled(150))
@given(record=records, at=st.floats(0, 1, exclude_max=True), mask=st.integers(1, 255), cut=st.booleans())
def test_damaged_records_are_told(record: CommitRecord, at: float, mask: int, cut: bool) -> None:
    data = bytearray(encode_record(record))
    place = int(at * len(data))
    if cut:
        del data[place:]
    else:
        data[place] ^= mask
    with pytest.raises(SqlError) as raised:
        decode_record(bytes(data))
    assert raised.value.sqlstate == "XX001"


@settings(max_examples=scaled(150))
@given(st.binary(max_size=200))
def test_any_bytes_are_a_record_or_an_error(data: bytes) -> None:
    with pytest.raises(SqlError):
        decode_record(data)


@settings(max_examples=scaled(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(records, min_size=1, max_size=3), max_size=4))
def test_records_through_the_log(tmp_path: Path, groups: list[list[CommitRecord]]) -> None:
    shutil.rmtree(tmp_path)
    filled(tmp_path, [[encode_record(record) for record in group] for group in groups]).close()
    found = [decode_record(data) for data in replayed(tmp_path)]
    for mine, yours in zip(found, [record for group in groups for record in group], strict=True):
        assert_same(mine, yours)
