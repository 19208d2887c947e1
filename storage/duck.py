"""The DuckDB door: one file with the catalog, the dictionary and the rows of tables and views, as words.

Each relation has ``base_<id>`` (words, diff: the rows as of the relation's ``since``) and ``updates_<id>`` (words,
epoch, diff: later changes). A view's error rows are a relation too (``errors_of``). ``apply`` advances everything in
one transaction. The *high water* is the epoch up to which the store is complete. SQL text contains only ids and
generated column names; values are passed through Arrow or as parameters.

DuckDB only stores, sums and groups int64 columns. It never evaluates a user's expression, since its semantics are not
Postgres's. Its own write-ahead log may silently lose flipped bytes, so ours is cut only after ``checkpoint`` has
emptied it.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa
from duckdb import DuckDBPyConnection

from ivm.errors import SqlError
from ivm.rows import Words
from ivm.words import row_width
from storage import undo
from storage.arrow_words import binary_of, column_words, entries_of, matrix_words, table_of
from storage.files import FatalStorageError, disk_error
from storage.lags import Lags
from storage.readable import label
from storage.record import Entries, SequenceMark
from storage.row_file import slices
from storage.store_tables import FEW, SETTINGS, TABLES, Kept, grouped_by, not_kept, outside, separated, word_names
from storage.stored import NO_WORDS, History, Lag, StoredRelation, WriteBatch, errors_of, owner_of

__all__ = ["History", "Store", "StoredRelation", "WriteBatch"]

FORMAT: Final = 2
WITHOUT_ERRORS: Final = 1
"""The format before this one: it lacks the views' error rows, until ``upgrade`` adds them."""
_FILE: Final = "store.duckdb"
_FOLD_AT_LEAST: Final = 100_000
_PART: Final = 1 << 16
_UNCLEAR: Final = (duckdb.FatalException, duckdb.InternalException, duckdb.IOException)
"""After one of these errors it is unknown whether the commit happened."""
APPLIED_ROWS: Final = 1 << 20
"""Rows copied to DuckDB at a time."""


class Store:
    """One DuckDB file. Thread-safe: writers are serialized, readers see a snapshot.

    Raises 53200 if DuckDB runs out of memory, 53100 for a full disk, XX001 for a damaged file, FatalStorageError if the
    file's state is no longer known.
    """

    def __init__(self, folder: Path, memory_bytes: int, threads: int) -> None:
        self._path = folder / _FILE
        self._memory_bytes = memory_bytes
        self._threads = threads
        self._writing = threading.RLock()
        self._gate = threading.Condition()
        self._readers = 0
        self.format = FORMAT
        self._lags = Lags()
        self._closed = False
        self._connect()

    @classmethod
    def open(cls, folder: Path, memory_bytes: int = 1 << 30, threads: int = 1) -> Store:
        """Opens or creates the store of a data folder. DuckDB uses at most ``memory_bytes`` (at least 64 MiB)."""
        temporary = folder / "temp"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True, mode=0o700)
        return cls(folder, memory_bytes, threads)

    def close(self) -> None:
        """Waits for readers and closes. What was applied is durable even without it."""
        with self._writing, self._gate:
            self._gate.wait_for(lambda: self._readers == 0)
            if not self._closed:
                self._disconnect()

    @property
    def secret(self) -> bytes:
        """The database's own 16 random bytes, the key of the dictionary's hash."""
        return self._secret

    def high_water(self) -> int:
        """The epoch up to which everything has been applied, initially 0."""
        return self._high_water

    def committed(self) -> int:
        """The high water that a new reader sees; ``high_water`` may be ahead while a transaction commits."""
        with self._reading() as cursor:
            return int(_one(cursor, "SELECT high_water FROM state")[0])

    def log_sequence(self) -> int:
        """The last log record applied, initially 0."""
        return self._log_sequence

    def relations(self) -> dict[int, int]:
        """The relations kept, with their widths in words."""
        return {id_: kept.width for id_, kept in self._relations.items()}

    def since(self, relation: int) -> int:
        """The oldest epoch at which the relation can be read. 42P01 if it is not kept."""
        return self._kept(relation).since

    def catalog(self) -> bytes | None:
        """The catalog as of the high water."""
        with self._reading() as cursor:
            value = _one(cursor, "SELECT catalog FROM state")[0]
        return None if value is None else bytes(value)

    def loads(self) -> dict[int, str]:
        """What is known of each commit's loads, by epoch."""
        with self._reading() as cursor:
            return {int(epoch): str(load) for load, epoch in cursor.execute("SELECT load, epoch FROM loads").fetchall()}

    def lags(self, view: int) -> bool:
        """Whether a view lags, as a new reader sees it."""
        with self._reading() as cursor:
            return cursor.execute("SELECT 1 FROM lagging WHERE id = ?", [view]).fetchone() is not None

    @property
    def lagging(self) -> Mapping[int, Lag]:
        """The views whose contents have not caught up with the high water, by id."""
        return self._lags.known

    def begin_lag(self, views: Iterable[int]) -> None:
        """These views lag from now on, if they do not yet."""

        def work() -> None:
            for view in views:
                self._lags.begin(self._connection.execute, view, self._high_water)

        self._transact(work)

    def lag_is_slow(self, view: int) -> None:
        """Note that filling a view takes long."""
        self._transact(lambda: self._lags.is_slow(self._connection.execute, view))

    def sequences(self) -> tuple[SequenceMark, ...]:
        """The position of every sequence as of the high water."""
        with self._reading() as cursor:
            found = cursor.execute("SELECT storage, value, called FROM sequences").fetchall()
        return tuple(SequenceMark(int(storage), int(value), bool(called)) for storage, value, called in found)

    def dictionary(self) -> Entries:
        """All dictionary entries."""
        with self._reading() as cursor:
            table = cursor.sql("SELECT id, value FROM dictionary").to_arrow_table()
        return entries_of(table)

    def rows(self, relation: int, epoch: int | None = None) -> tuple[Words, Words]:
        """The rows at an epoch (by default the high water): int64[n, width], distinct, unordered; diffs int64[n] != 0.

        Raises 22023 for an epoch outside [since, high water].
        """
        with self._reading() as cursor:
            return self._rows(cursor, relation, epoch)

    def _rows(self, cursor: DuckDBPyConnection, relation: int, epoch: int | None) -> tuple[Words, Words]:
        kept, epoch = self._readable(cursor, relation, epoch)
        words = word_names(kept.width)
        table = cursor.sql(
            f"SELECT {separated(words)} sum(diff)::BIGINT AS diff FROM "
            f"(SELECT * FROM base_{relation} UNION ALL "
            f"SELECT {separated(words)} diff FROM updates_{relation} WHERE epoch <= ?) "
            f"{grouped_by(words)} HAVING sum(diff) <> 0",
            params=[epoch],
        ).to_arrow_table()
        return matrix_words(table, words), column_words(table, "diff")

    def words(self, relation: int) -> Iterator[Words]:
        """All stored words of a relation, history included, in chunks; nothing if it is not kept."""
        with self._reading() as cursor:
            found = cursor.execute("SELECT width FROM relations WHERE id = ?", [relation]).fetchall()
            names = word_names(int(found[0][0])) if found else []
            if not names:
                return
            columns = ", ".join(names)
            query = f"SELECT {columns} FROM base_{relation} UNION ALL SELECT {columns} FROM updates_{relation}"
            for batch in cursor.sql(query).to_arrow_reader(_PART):
                for column in batch.columns:
                    yield np.asarray(column.to_numpy(zero_copy_only=False), np.int64)

    def range_updates(self, relation: int, after: int, upto: int) -> History:
        """The updates with after < epoch <= upto, ordered by epoch.

        Raises 22023 if either bound lies outside [since, high water].
        """
        with self._reading() as cursor:
            kept, _ = self._readable(cursor, relation, after)
            self._readable(cursor, relation, upto)
            words = word_names(kept.width)
            table = cursor.sql(
                f"SELECT * FROM updates_{relation} WHERE epoch > ? AND epoch <= ? ORDER BY epoch", params=[after, upto]
            ).to_arrow_table()
        return History(matrix_words(table, words), column_words(table, "epoch"), column_words(table, "diff"))

    def changes(self, relation: int, after: int | None, upto: int, order: Sequence[str] = ()) -> Iterator[History]:
        """The updates with after < epoch <= upto, or with ``after`` None the rows at ``upto``, in chunks.

        Each row occurs once per epoch, with its diff. Sorted by epoch, then by ``order``, then by diff. ``order``:
        words (w0, w1, …) or expressions of them with integers. Raises 22023 if either bound lies outside [since, high
        water]. An iterator that is not advanced delays checkpoints, nothing else.
        """
        with self._reading() as cursor:
            kept, _ = self._readable(cursor, relation, upto)
            words = word_names(kept.width)
            listed = ", ".join(words)
            summed, sorting = "sum(diff)::BIGINT AS diff", ", ".join(["epoch", *order, "diff"])
            if after is None:
                after_base = f"SELECT {listed}, diff FROM updates_{relation} WHERE epoch <= ?"
                source = f"(SELECT {listed}, diff FROM base_{relation} UNION ALL {after_base})"
                query = f"SELECT {listed}, {int(upto)}::BIGINT AS epoch, {summed} FROM {source} GROUP BY {listed}"
                given = [upto]
            else:
                self._readable(cursor, relation, after)
                source = f"updates_{relation} WHERE epoch > ? AND epoch <= ?"
                query = f"SELECT {listed}, epoch, {summed} FROM {source} GROUP BY {listed}, epoch"
                given = [after, upto]
            # a snapshot without an order needs no sort: it has one epoch
            ordered = f" ORDER BY {sorting}" if order or after is not None else ""
            for batch in cursor.sql(f"{query} HAVING sum(diff) <> 0{ordered}", params=given).to_arrow_reader(_PART):
                table = pa.Table.from_batches([batch])
                yield History(matrix_words(table, words), column_words(table, "epoch"), column_words(table, "diff"))

    def create_relation(self, relation: int, width: int) -> None:
        """Keeps a relation with rows of ``width`` words. A no-op if it is kept already."""
        if relation not in self._relations:
            self._transact(lambda: self._create(relation, width))

    def drop_relation(self, relation: int) -> None:
        """Drops a relation and its history. A no-op if it is not kept."""
        self._transact(lambda: self._drop(relation))

    def errors(self, view: int, epoch: int) -> Words:
        """The ids of a view's error rows at an epoch. Raises 22023 if they are not known that far back."""
        with self._reading() as cursor:
            if not cursor.execute("SELECT 1 FROM relations WHERE id = ?", [errors_of(view)]).fetchall():
                return NO_WORDS
            rows, _ = self._rows(cursor, errors_of(view), epoch)
        return np.ascontiguousarray(rows[:, 0])

    def upgrade(self, errors: Mapping[int, Words]) -> None:
        """Brings a store of the format before up to this one. ``errors``: the error rows of each view at the high
        water; they are not known at any earlier epoch."""

        def work() -> None:
            for view, ids in errors.items():
                relation = errors_of(view)
                self._create(relation, 1)
                self._insert(f"base_{relation}", {"w0": ids, "diff": np.ones(len(ids), np.int64)})
                self._fold(relation, self._high_water, whole=False)
            self._connection.execute("UPDATE state SET format = ?", [FORMAT])

        if self.format != FORMAT:
            self._transact(work)
            self.format = FORMAT

    def apply(self, batch: WriteBatch) -> bool:
        """Applies a batch in one transaction. False if the store has it already.

        Idempotent: updates at or below the high water are skipped, so a batch may overlap what was applied before. An
        update of an unknown relation creates it, at the width of its rows.
        """
        with self._writing:
            if batch.high_water <= self._high_water:
                return False
            self._transact(lambda: self._apply(batch), batch.high_water)
            return True

    def forget(self, relation: int, before: int, whole: bool = False) -> None:
        """Drops history: afterwards the relation can only be read at ``before`` and later.

        A no-op if the relation is not kept, since it may have been dropped meanwhile. ``whole``: also removes cancelled
        rows from the base.

        Cost: the updates folded, and at times the whole base (amortised over as many folded rows). Raises 22023 for an
        epoch above the high water.
        """
        with self._writing:
            kept = self._relations.get(relation)
            if kept is None:
                return
            if before > self._high_water:
                raise outside(relation, before, kept.since, self._high_water)
            if before > kept.since or (whole and kept.folded):
                self._transact(lambda: self._fold(relation, max(before, kept.since), whole))

    def checkpoint(self) -> int:
        """Moves DuckDB's write-ahead log into its file, verifies that, and returns the log sequence that the file
        contains.

        The commit log may be cut up to there. Returns 0 if readers kept DuckDB's log from being emptied.
        """
        with self._writing, _translated():
            sequence = self._log_sequence
            self._save_metadata()
            try:
                self._connection.execute("CHECKPOINT")
            except duckdb.TransactionException:  # a reader is active: retry later
                undo.forget(self._path)
                return 0
            undo.forget(self._path)
            wal = self._path.with_name(_FILE + ".wal")
            emptied = not wal.exists() or wal.stat().st_size == 0
            held = _one(self._connection, "SELECT log_sequence FROM state")[0]
            return sequence if emptied and held == sequence else 0

    def _save_metadata(self) -> None:
        size = int(_one(self._connection, "SELECT block_size FROM pragma_database_size()")[0])
        blocks = self._connection.execute("SELECT DISTINCT block_id FROM pragma_metadata_info()").fetchall()
        undo.save(self._path, self._descriptor, [int(row[0]) for row in blocks], size)

    def _disconnect(self) -> None:
        self._connection.close()
        os.close(self._descriptor)

    def _connect(self) -> None:
        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": f"{max(self._memory_bytes, 64 << 20)}B",
            "threads": str(self._threads),
            "temp_directory": str(self._path.parent / "temp"),
        }
        with _translated(f"{self._path}: "):
            undo.restore(self._path)
            self._connection = duckdb.connect(str(self._path), config=config)
            self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            self._connection.execute("PRAGMA disable_checkpoint_on_shutdown")  # a torn one could not be undone
            for setting in SETTINGS:
                self._connection.execute(f"SET {setting}")
            for table in TABLES:
                self._connection.execute(table)
            if _one(self._connection, "SELECT count(*) FROM state")[0] == 0:
                self._connection.execute("INSERT INTO state VALUES (?, ?, 0, 0, NULL)", [FORMAT, os.urandom(16)])
            self._load_state()

    def _load_state(self) -> None:
        found, secret, high_water, sequence = _one(
            self._connection, "SELECT format, secret, high_water, log_sequence FROM state"
        )
        if found not in (FORMAT, WITHOUT_ERRORS):
            raise SqlError("XX001", f"{self._path} has format {found}; this server reads format {FORMAT}",
                           hint="Start the server version that wrote it.")  # fmt: skip
        self.format = int(found)
        self._secret: bytes = bytes(secret)
        self._high_water: int = int(high_water)
        self._log_sequence: int = int(sequence)
        rows = self._connection.execute("SELECT id, width, since, folded FROM relations").fetchall()
        self._relations = {int(row[0]): Kept(*map(int, row[1:])) for row in rows}
        self._lags.load(self._connection.execute)

    @contextmanager
    def _reading(self) -> Iterator[DuckDBPyConnection]:
        """A cursor in its own transaction: all its reads see one snapshot."""
        with self._gate:
            self._readers += 1
        try:
            with _translated():
                if self._closed:
                    raise SqlError("53100", "the store is closed until there is room on the disk")
                cursor = self._connection.cursor()
                try:
                    cursor.begin()
                    yield cursor
                finally:
                    cursor.close()
        finally:
            with self._gate:
                self._readers -= 1
                self._gate.notify_all()

    def _readable(self, cursor: DuckDBPyConnection, relation: int, epoch: int | None) -> tuple[Kept, int]:
        """The relation in the cursor's snapshot, and the epoch to read at, validated."""
        rows = cursor.execute("SELECT width, since, folded FROM relations WHERE id = ?", [relation]).fetchall()
        if not rows:
            raise not_kept(relation)
        high_water = int(_one(cursor, "SELECT high_water FROM state")[0])
        kept = Kept(*rows[0])
        if epoch is not None and not kept.since <= epoch <= high_water:
            raise outside(relation, epoch, kept.since, high_water)
        return kept, high_water if epoch is None else epoch

    def _kept(self, relation: int) -> Kept:
        kept = self._relations.get(relation)
        if kept is None:
            raise not_kept(relation)
        return kept

    def _transact(self, work: Callable[[], None], target: int | None = None) -> None:
        """Runs ``work`` in a transaction. ``target``: the high water that shows whether a commit of unknown outcome
        happened."""
        with self._writing, _translated():
            if self._closed:
                self._reopen(RuntimeError("a full disk"))
            before = dict(self._relations), self._high_water, self._log_sequence, self._lags.known
            try:
                self._connection.execute("BEGIN")
                work()
                self._connection.execute("COMMIT")
            except BaseException as error:
                if isinstance(error, _UNCLEAR) or _of_disk(error) is not None:
                    self._reopen(error)
                    if target is None or self._high_water < target:
                        raise
                    return
                self._relations, self._high_water, self._log_sequence, self._lags.known = before
                try:
                    self._connection.execute("ROLLBACK")
                except duckdb.Error:  # DuckDB has ended the transaction by itself
                    self._reopen(error)
                raise

    def _reopen(self, cause: BaseException) -> None:
        """Reopens the file after a commit of unknown outcome; the state it holds is the truth. 53100, 58030: the disk
        does not let it; the next use tries again."""
        with self._gate:
            self._gate.wait_for(lambda: self._readers == 0)
            try:
                if not self._closed:
                    self._closed = True
                    self._disconnect()
                self._connect()
                self._closed = False
            except (duckdb.Error, SqlError, OSError) as error:
                if isinstance(error, SqlError) and error.sqlstate in ("53100", "58030"):
                    raise
                raise FatalStorageError(f"the store cannot be reopened after {cause}: {error}") from error

    def _apply(self, batch: WriteBatch) -> None:
        for relation in batch.created:
            self._drop(relation.id)
            self._create(relation.id, row_width(relation.schema))
            label(self._connection.execute, relation)
        known = {i: self._lags.known[i].epoch for i in batch.caught_up if i in self._lags.known}
        for id_, history in batch.relations.items():
            if id_ not in batch.dropped:
                self._create(id_, history.rows.shape[1])
                self._insert_updates(id_, history, known.get(owner_of(id_), self._high_water))
        for id_, epoch in batch.emptied:
            self._empty(id_, epoch, known.get(owner_of(id_), self._high_water))
        for id_ in batch.dropped:
            self._drop(id_)
        for id_ in batch.lagging:
            self._lags.begin(self._connection.execute, id_, 0)
        for id_ in (*batch.caught_up, *batch.dropped):
            self._lags.end(self._connection.execute, id_)
        if len(batch.leaving):
            self._connection.register("leaving", table_of({"id": batch.leaving}))
            self._connection.execute("DELETE FROM dictionary WHERE id IN (SELECT id FROM leaving)")
            self._connection.unregister("leaving")
        if len(batch.entries.ids):
            self._insert("dictionary", {"id": batch.entries.ids, "value": binary_of(batch.entries)})
        if batch.loads:
            self._connection.executemany("DELETE FROM loads WHERE epoch = ?", [[epoch] for epoch in batch.loads])
            told = [[text, epoch] for epoch, text in batch.loads.items() if text is not None]
            if told:
                self._connection.executemany("INSERT INTO loads VALUES (?, ?)", told)
        if batch.sequences:
            self._connection.executemany("DELETE FROM sequences WHERE storage = ?", [[m[0]] for m in batch.sequences])
            self._connection.executemany("INSERT INTO sequences VALUES (?, ?, ?)", [list(m) for m in batch.sequences])
        if batch.catalog is not None:
            self._connection.execute("UPDATE state SET catalog = ?", [batch.catalog])
        ends = [batch.high_water, batch.log_sequence]
        self._connection.execute("UPDATE state SET high_water = ?, log_sequence = ?", ends)
        self._high_water, self._log_sequence = batch.high_water, batch.log_sequence

    def _insert_updates(self, relation: int, history: History, after: int) -> None:
        """Insert the updates of epochs ``after`` the given one."""
        rows, epochs, diffs = history
        assert rows.shape == (len(epochs), self._relations[relation].width), "rows as wide as the relation"
        assert len(diffs) == len(epochs), "one diff for each row"
        if len(epochs) and int(epochs.min()) <= after:
            new = epochs > after
            rows, epochs, diffs = rows[new], epochs[new], diffs[new]
        if len(epochs):
            for part in slices(len(epochs), APPLIED_ROWS):
                some = rows[part]
                columns = {f"w{i}": some[:, i] for i in range(some.shape[1])}
                self._insert(f"updates_{relation}", columns | {"epoch": epochs[part], "diff": diffs[part]})

    def _empty(self, relation: int, epoch: int, after: int) -> None:
        """Retracts, at an epoch ``after`` the given one, what a relation had before it."""
        if relation not in self._relations or epoch <= after:
            return
        words = word_names(self._relations[relation].width)
        listed = separated(words)
        self._connection.execute(
            f"INSERT INTO updates_{relation} SELECT {listed} ?::BIGINT AS epoch, (-sum(diff))::BIGINT AS diff FROM "
            f"(SELECT * FROM base_{relation} UNION ALL "
            f"SELECT {listed} diff FROM updates_{relation} WHERE epoch < ?) {grouped_by(words)} HAVING sum(diff) <> 0",
            [epoch, epoch],
        )

    def _insert(self, table: str, columns: Mapping[str, Words | pa.Array]) -> None:
        self._connection.register("incoming", table_of(columns))
        self._connection.execute(f"INSERT INTO {table} SELECT * FROM incoming")
        self._connection.unregister("incoming")

    def _create(self, relation: int, width: int) -> None:
        if relation in self._relations:
            return
        words = separated([f"{word} BIGINT" for word in word_names(width)])
        self._connection.execute(f"CREATE TABLE base_{relation} ({words} diff BIGINT)")
        self._connection.execute(f"CREATE TABLE updates_{relation} ({words} epoch BIGINT, diff BIGINT)")
        self._connection.execute("INSERT INTO relations VALUES (?, ?, 0, 0)", [relation, width])
        self._relations = self._relations | {relation: Kept(width, 0, 0)}

    def _drop(self, relation: int) -> None:
        if relation not in self._relations:
            return
        self._connection.execute(f"DROP VIEW IF EXISTS readable.r{int(relation)}")
        self._connection.execute(f"DROP TABLE base_{relation}")
        self._connection.execute(f"DROP TABLE updates_{relation}")
        self._connection.execute("DELETE FROM relations WHERE id = ?", [relation])
        self._connection.execute("DELETE FROM readable.names WHERE relation = ?", [relation])
        self._relations = {id_: kept for id_, kept in self._relations.items() if id_ != relation}

    def _fold(self, relation: int, before: int, whole: bool) -> None:
        """Few updates, none of them a retraction, are moved as they are: the base is summed when it is read."""
        kept = self._relations[relation]
        words = word_names(kept.width)
        summed = f"SELECT {separated(words)} sum(diff)::BIGINT AS diff FROM"
        grouped = f"{grouped_by(words)} HAVING sum(diff) <> 0"
        execute = self._connection.execute
        part, folded = f"updates_{relation} WHERE epoch <= ?", kept.folded
        ((count, least),) = execute(f"SELECT count(*), min(diff) FROM {part}", [before]).fetchall()
        if count or (whole and folded):
            as_is = 0 < count <= FEW and least > 0
            source = f"SELECT {separated(words)} diff FROM {part}" if as_is else f"{summed} {part} {grouped}"
            inserted = int(execute(f"INSERT INTO base_{relation} {source}", [before]).fetchall()[0][0])
            execute(f"DELETE FROM {part}", [before])
            size = int(_one(self._connection, f"SELECT count(*) FROM base_{relation}")[0])
            folded = folded + inserted if size > inserted else 0
            if folded > (0 if whole else max(_FOLD_AT_LEAST, size // 2)):
                execute(f"CREATE TABLE folding AS {summed} base_{relation} {grouped}")
                execute(f"DELETE FROM base_{relation}")
                execute(f"INSERT INTO base_{relation} SELECT * FROM folding")
                execute("DROP TABLE folding")
                folded = 0
        execute("UPDATE relations SET since = ?, folded = ? WHERE id = ?", [before, folded, relation])
        self._relations = self._relations | {relation: Kept(kept.width, before, folded)}


@contextmanager
def _translated(where: str = "") -> Iterator[None]:
    """Translates DuckDB's errors to what a user sees. A broken invariant of ours remains FatalStorageError."""
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise SqlError("53200", "the store is out of memory", detail=_first_line(error),
                       hint="Give the server more with --memory.") from error  # fmt: skip
    except duckdb.IOException as error:
        text = _first_line(error)
        _raise_disk(error, where)
        if "lock" in text.lower():
            raise SqlError("55006", f"{where}in use by another program", detail=text,
                           hint="Close the other DuckDB client, or stop the other server.") from error  # fmt: skip
        raise SqlError("XX001", f"{where}the store cannot be read or written", detail=text) from error
    except OSError as error:
        raise disk_error(error, f"{where}the store cannot be written") from error
    except duckdb.SerializationException as error:
        raise SqlError("XX001", f"{where}the store is damaged", detail=_first_line(error)) from error
    except duckdb.Error as error:
        _raise_disk(error, where)
        if "orrupt" in str(error):
            raise SqlError("XX001", f"{where}the store is damaged", detail=_first_line(error),
                           hint="Restore the data folder from a backup.") from error  # fmt: skip
        raise FatalStorageError(f"{where}the store failed: {error}") from error


def _of_disk(error: BaseException) -> str | None:
    """The state of an error of DuckDB that a full disk, or one that fails, has caused."""
    text = str(error) if isinstance(error, duckdb.Error) else ""
    return "53100" if "No space left" in text else "58030" if "Input/output error" in text else None


def _raise_disk(error: duckdb.Error, where: str) -> None:
    state = _of_disk(error)
    if state is not None:
        what = "is full" if state == "53100" else "fails"
        raise SqlError(state, f"{where}the disk {what}", detail=_first_line(error)) from error


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]


def _one(cursor: DuckDBPyConnection, query: str) -> tuple[Any, ...]:
    (row,) = cursor.execute(query).fetchall()  # read to the end: DuckDB 2 refuses sql() while a result is open
    return tuple(row)
