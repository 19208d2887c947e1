"""The load under which servers are killed: clients that know exactly which state to expect afterwards.

Each client owns its rows (by the column ``client``) and its relations (by name). So after a crash its state is the
result of its acknowledged transactions, or of these and the one transaction that was not answered: nothing else.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

import psycopg

Connection = psycopg.Connection[tuple[Any, ...]]
State = dict[str, Counter[tuple[Any, ...]]]
"""A client's rows, by table; under "relations" the names of its relations."""

ACCOUNTS: Final = 20
SETUP: Final = (
    "CREATE TABLE accounts (id int PRIMARY KEY, owner text NOT NULL, amount bigint NOT NULL)",
    "CREATE TABLE moves (client int, n int, a int, b int, amount bigint, PRIMARY KEY (client, n))",
    "CREATE TABLE bag (client int, n int, v int, note text)",
    "CREATE TABLE kv (client int, k int, v numeric, note text, PRIMARY KEY (client, k))",
    "CREATE TABLE edges (client int, a int, b int)",
    "CREATE TABLE scraps (client int, k int, note text, PRIMARY KEY (client, k)) WITH (RETAIN HISTORY FOR '1 s')",
    f"INSERT INTO accounts SELECT i, 'owner ' || i % 3, 1000 FROM generate_series(1, {ACCOUNTS}) i",
)
VIEWS: Final = {
    "v_bag": "SELECT client, count(*) AS n, sum(v) AS s, max(note) AS m FROM bag GROUP BY client",
    "v_moves": "SELECT a.owner, b.owner AS other, count(*) AS n, sum(m.amount) AS s FROM moves m"
    " JOIN accounts a ON a.id = m.a JOIN accounts b ON b.id = m.b GROUP BY a.owner, b.owner",
    "v_total": "SELECT sum(amount) AS total, count(*) AS n FROM accounts",
    "v_reach": "WITH RECURSIVE r(n) AS (SELECT 0 UNION SELECT e.b FROM r JOIN edges e ON e.a = r.n) SELECT n FROM r",
    "v_kv": "SELECT k.note, count(b.n) AS n, min(k.v) AS low FROM kv k LEFT JOIN bag b"
    " ON b.client = k.client AND b.n = k.k GROUP BY k.note",
    "v_scraps": "SELECT client, upper(note) AS loud, count(*) AS n FROM scraps GROUP BY client, upper(note)",
}
OWNED: Final = {
    "moves": "n, a, b, amount",
    "bag": "n, v, note",
    "kv": "k, v::float8, note",
    "edges": "a, b",
    "scraps": "k, note",
}


@dataclass
class Change:
    """One transaction: its statements, and the client's state after it."""

    run: Callable[[Connection], None]
    after: State
    ddl: bool = False


@dataclass
class Client:
    """``state``: the acknowledged state; ``pending``: the state if the unanswered transaction was committed."""

    number: int
    random: Random
    state: State = field(default_factory=lambda: {name: Counter() for name in (*OWNED, "relations")})
    pending: State | None = None
    next: int = 0
    acknowledged: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    ddl_done: threading.Event = field(default_factory=threading.Event)

    def load(self, port: int, stop: threading.Event) -> None:
        """Run transactions until the server is gone, or ``stop``."""
        try:
            with psycopg.connect(f"host=127.0.0.1 port={port} user=u dbname=postgres", autocommit=True) as connection:
                while not stop.is_set():
                    self.one(connection)
        except psycopg.Rollback:
            pass  # killed while a transaction was rolled back
        except psycopg.Error as error:
            if error.sqlstate is not None and not error.sqlstate.startswith("57"):
                raise

    def one(self, connection: Connection) -> None:
        """Run one transaction; SQLSTATEs such as 40001 leave the state unchanged."""
        change = self.change()
        self.pending = change.after
        try:
            change.run(connection)
        except psycopg.Error as error:
            if error.sqlstate is None or connection.closed:
                raise
            self.refused[f"{error.sqlstate} {str(error).splitlines()[0]}"] += 1
            self.pending = None
            return
        self.state, self.pending = change.after, None
        self.acknowledged += 1
        if change.ddl:
            self.ddl_done.set()

    def change(self) -> Change:
        """A random transaction."""
        kinds = [self._insert] * 5 + [
            self._many,
            self._copy,
            self._update,
            self._edge,
            self._edge,
            self._key,
            self._scrap,
            self._scrap,
        ] * 2
        kinds += [self._transaction] * 4 + [self._rolled_back, self._define, self._define_in_transaction]
        return self.random.choice(kinds)()

    def _after(self) -> State:
        return {name: rows.copy() for name, rows in self.state.items()}

    def _rows(self, count: int) -> list[tuple[int, int, str]]:
        self.next += 1
        row = self.random.randint
        return [(self.next, row(-5, 50), f"note {self.next}.{row(0, 3)} é") for _ in range(count)]

    def _insert(self) -> Change:
        after, rows = self._after(), self._rows(1)
        after["bag"].update(rows)
        text = "INSERT INTO bag VALUES (%s, %s, %s, %s)"
        return Change(lambda c: _do(c, text, (self.number, *rows[0])), after)

    def _many(self) -> Change:
        after, rows = self._after(), self._rows(self.random.randint(2, 40))
        after["bag"].update(rows)
        text = "INSERT INTO bag SELECT %s, * FROM unnest(%s::int[], %s::int[], %s::text[])"
        columns = [list(column) for column in zip(*rows, strict=True)]
        return Change(lambda c: _do(c, text, (self.number, *columns)), after)

    def _copy(self) -> Change:
        after, rows = self._after(), self._rows(self.random.randint(10, 600))
        after["bag"].update(rows)

        def run(connection: Connection) -> None:
            with connection.cursor() as cursor, cursor.copy("COPY bag FROM STDIN") as copy:
                for row in rows:
                    copy.write_row((self.number, *row))

        return Change(run, after)

    def _update(self) -> Change:
        after = self._after()
        kept = self.random.randint(0, 5)
        delete = self.random.random() < 0.4
        bag: Counter[tuple[Any, ...]] = Counter()
        for (n, v, note), count in after["bag"].items():
            if n % 6 != kept:
                bag[n, v, note] += count
            elif not delete:
                bag[n, v + 1, note] += count
        after["bag"] = bag
        text = "DELETE FROM bag" if delete else "UPDATE bag SET v = v + 1"
        return Change(lambda c: _do(c, f"{text} WHERE client = %s AND n %% 6 = %s", (self.number, kept)), after)

    def _key(self) -> Change:
        after = self._after()
        key = self.random.randint(0, 30)
        found = [row for row in after["kv"] if row[0] == key]
        value, note = self.random.randint(0, 1000) / 4, f"k{self.random.randint(0, 5)}"
        if not found:
            text, parameters = "INSERT INTO kv (v, note, client, k) VALUES (%s, %s, %s, %s)", (value, note)
            after["kv"][key, value, note] += 1
        elif self.random.random() < 0.3:
            text, parameters = "DELETE FROM kv WHERE client = %s AND k = %s", ()
            del after["kv"][found[0]]
        else:
            text, parameters = "UPDATE kv SET v = %s, note = %s WHERE client = %s AND k = %s", (value, note)
            del after["kv"][found[0]]
            after["kv"][key, value, note] += 1
        return Change(lambda c: _do(c, text, (*parameters, self.number, key)), after)

    def _edge(self) -> Change:
        after = self._after()
        if after["edges"] and self.random.random() < 0.45:
            edge = self.random.choice(sorted(after["edges"]))
            del after["edges"][edge]
            return Change(
                lambda c: _do(c, "DELETE FROM edges WHERE client = %s AND a = %s AND b = %s", (self.number, *edge)),
                after,
            )
        a, b = self.random.randint(0, 12), self.random.randint(0, 12)
        after["edges"][a, b] += 1
        return Change(lambda c: _do(c, "INSERT INTO edges VALUES (%s, %s, %s)", (self.number, a, b)), after)

    def _scrap(self) -> Change:
        """Insert new texts that are soon unreferenced, so that VACUUM has something to remove."""
        after = self._after()
        self.next += 1
        low = self.random.randint(0, 20)
        kept = [row for row in after["scraps"] if not low <= row[0] < low + 5]
        rows = [(k, f"scrap {self.number}.{self.next}.{k}") for k in range(low, low + 5)]
        if self.random.random() < 0.3 and kept:
            rows = [(k, self.random.choice(kept)[1]) for k in range(low, low + 5)]
        after["scraps"] = Counter([*kept, *rows])
        text = (
            "INSERT INTO scraps SELECT %s, * FROM unnest(%s::int[], %s::text[])"
            " ON CONFLICT (client, k) DO UPDATE SET note = EXCLUDED.note"
        )
        return Change(
            lambda c: _do(c, text, (self.number, *(list(column) for column in zip(*rows, strict=True)))), after
        )

    def _transaction(self) -> Change:
        parts = [self._move, self._insert, self._many, self._key, self._edge, self._update, self._copy]
        return self._together([self._move, *self.random.choices(parts, k=self.random.randint(0, 4))])

    def _together(self, kinds: list[Callable[[], Change]], roll_back: bool = False) -> Change:
        before, changes = self.state, []
        try:
            for kind in kinds:
                changes.append(kind())
                self.state = changes[-1].after
        finally:
            self.state = before

        def run(connection: Connection) -> None:
            with connection.transaction():
                for change in changes:
                    change.run(connection)
                if roll_back:
                    raise psycopg.Rollback

        return Change(run, before if roll_back else changes[-1].after, any(c.ddl for c in changes))

    def _rolled_back(self) -> Change:
        return self._together([self._move, self._copy, self._key, self._define], roll_back=True)

    def _move(self) -> Change:
        after = self._after()
        self.next += 1
        a, b = self.random.sample(range(1, ACCOUNTS + 1), 2)
        move = (self.next, a, b, self.random.randint(1, 50))
        after["moves"][move] += 1

        def run(connection: Connection) -> None:
            _do(connection, "UPDATE accounts SET amount = amount - %s WHERE id = %s", (move[3], a))
            _do(connection, "INSERT INTO moves VALUES (%s, %s, %s, %s, %s)", (self.number, *move))
            _do(connection, "UPDATE accounts SET amount = amount + %s WHERE id = %s", (move[3], b))

        return Change(run, after)

    def _define_in_transaction(self) -> Change:
        return self._together([self._insert, self._define, self._move])

    def _define(self) -> Change:
        """Create a table with rows, a view and a materialized view over them, or drop earlier ones."""
        after = self._after()
        names = sorted(name for (name,) in after["relations"] if name.startswith("own_t"))
        if len(names) > 2 or (names and self.random.random() < 0.4):
            table = self.random.choice(names)
            for prefix in ("own_t", "own_v", "own_m"):
                after["relations"].pop((table.replace("own_t", prefix),), None)
            return Change(lambda c: _do(c, f"DROP TABLE {table} CASCADE", None), after, ddl=True)
        self.next += 1
        number = self.next
        suffix = f"_{self.number}_{number}"
        kinds = ["own_t", "own_v", "own_m"][: self.random.randint(1, 3)]
        after["relations"].update((kind + suffix,) for kind in kinds)

        def run(connection: Connection) -> None:
            texts = [
                f"CREATE TABLE own_t{suffix} (a int, t text)",
                f"INSERT INTO own_t{suffix} SELECT i, 'own ' || i % 7 FROM generate_series(1, {number % 40}) i",
                f"CREATE VIEW own_v{suffix} AS SELECT t, count(*) AS n FROM own_t{suffix} GROUP BY t",
                f"CREATE MATERIALIZED VIEW own_m{suffix} AS SELECT b.n, b.v, o.n AS o FROM bag b"
                f" JOIN own_v{suffix} o ON o.n = b.v WHERE b.client = {self.number}",
            ]
            with connection.transaction():
                for text in texts[: len(kinds) + 1]:
                    _do(connection, text, None)

        return Change(run, after, ddl=True)


def _do(connection: Connection, text: str, parameters: tuple[Any, ...] | None) -> None:
    connection.execute(text, parameters)  # type: ignore[call-overload]


@dataclass
class Vacuumer:
    """Sweeps the dictionary all the time, and reads older rows through a cursor."""

    random: Random
    wrong: list[str] = field(default_factory=list)

    def load(self, port: int, stop: threading.Event) -> None:
        """Run VACUUM repeatedly until the server is gone."""
        try:
            with psycopg.connect(f"host=127.0.0.1 port={port} user=u dbname=postgres", autocommit=True) as connection:
                while not stop.is_set():
                    self.one(connection)
        except psycopg.Error as error:
            if error.sqlstate is not None and not error.sqlstate.startswith("57"):
                raise

    def one(self, connection: Connection) -> None:
        connection.execute("DECLARE c CURSOR WITH HOLD FOR SELECT client, k, note, note || '!' FROM scraps")
        connection.execute(self.random.choice(("VACUUM", "VACUUM", "VACUUM FULL")))
        for client, _, note, louder in connection.execute("FETCH ALL FROM c").fetchall():
            assert note.startswith("scrap "), (client, note)
            assert louder == note + "!"
        connection.execute("CLOSE c")
        if self.random.random() < 0.5:
            connection.execute("VACUUM")
        time.sleep(self.random.choice((0, 0.05, 0.2)))


def wait_until_filled(connection: Connection) -> None:
    """A server is ready before its views are: reading one waits, but not AS OF a time."""
    for name in ("v_bag", "v_reach"):
        connection.execute(f"SELECT count(*) FROM {name}".encode())


@dataclass
class Prober:
    """Reads while others write: what a query saw at an epoch must never change."""

    seen: list[tuple[int, str, list[tuple[Any, ...]]]] = field(default_factory=list)
    newest: int = 0
    turn: int = 0
    wrong: list[str] = field(default_factory=list)

    def load(self, port: int, stop: threading.Event) -> None:
        """Read until the server is gone."""
        try:
            with psycopg.connect(f"host=127.0.0.1 port={port} user=u dbname=postgres", autocommit=True) as connection:
                wait_until_filled(connection)
                while not stop.is_set():
                    self.one(connection)
                    time.sleep(0.05)
        except psycopg.Error as error:
            if error.sqlstate is not None and not error.sqlstate.startswith("57"):
                raise

    def one(self, connection: Connection) -> None:
        """Record the current epoch, and the contents of some relations at it, or at the wall clock's present."""
        epoch = self._now(connection)
        if self.turn % 3 == 2:
            epoch = max(epoch, time.time_ns() // 1000 - 1)
        self.turn += 1
        for query in ("SELECT * FROM v_bag", "SELECT * FROM accounts", "SELECT * FROM v_reach"):
            rows = sorted(connection.execute(f"{query} AS OF {epoch}").fetchall())
            self.seen.append((epoch, query, rows))

    def _now(self, connection: Connection) -> int:
        (row,) = connection.execute("SELECT mz_now()").fetchall()
        epoch = int(row[0])
        if epoch < self.newest:
            self.wrong.append(f"mz_now() went back from {self.newest} to {epoch}")
        self.newest = epoch
        return epoch

    def check(self, connection: Connection) -> list[str]:
        """The recorded reads whose results have changed."""
        self._now(connection)
        wait_until_filled(connection)
        wrong, self.wrong = self.wrong, []
        for epoch, query, rows in self.seen:
            try:
                found = sorted(connection.execute(f"{query} AS OF {epoch}").fetchall())
            except psycopg.Error as error:
                wrong.append(f"{query} AS OF {epoch}: {error}")
                if connection.closed:
                    break
                continue
            if found != rows:
                wrong.append(f"{query} AS OF {epoch} gave {rows}, now {found}")
        return wrong
