"""Random messages of a client: right ones, in any order, and some that are damaged (``tests.programs.wire_fuzz``)."""

from __future__ import annotations

import random
import struct
from typing import Final

from sql.pgwire import messages_frontend as front
from sql.pgwire import messages_opening as opening

SETUP: Final = (
    "CREATE TABLE t (a int PRIMARY KEY, b text); CREATE TABLE u (a int, b text);"
    "INSERT INTO t SELECT i, 'x' || i FROM generate_series(1, 50) i;"
    "CREATE MATERIALIZED VIEW m AS SELECT b, count(*) AS n FROM u GROUP BY b"
)
TEXTS: Final = (
    "SELECT 1", "SELECT $1::int + 1", "SELECT * FROM t WHERE a = $1", "SELECT * FROM t", "SELECT $1::text, $2::bytea",
    "SELECT generate_series(1, 300)", "SELECT 1; SELECT 2", "", ";;", "SELECT", "SELECT 1/0", "SELECT * FROM nothing",
    "BEGIN", "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT s", "ROLLBACK TO s", "INSERT INTO u VALUES ($1, $2)",
    "INSERT INTO u VALUES (1, 'a') RETURNING *", "DELETE FROM u WHERE a = 1", "UPDATE u SET b = 'z' WHERE a = $1",
    "COPY u FROM STDIN", "COPY u FROM STDIN (FORMAT binary)", "COPY u FROM STDIN (FORMAT csv, HEADER)",
    "COPY t TO STDOUT", "COPY t TO STDOUT (FORMAT binary)", "COPY (SELECT 1) TO STDOUT; SELECT 2",
    "DECLARE c CURSOR FOR SELECT * FROM t", "FETCH 2 FROM c", "FETCH ALL c", "MOVE c", "CLOSE ALL", "LISTEN x",
    "NOTIFY x, 'y'", "UNLISTEN *", "PREPARE q AS SELECT 1", "EXECUTE q", "DEALLOCATE ALL", "DISCARD ALL", "SHOW ALL",
    "SET client_encoding = 'UTF8'", "SET statement_timeout = '2s'", "SET search_path = x, public", "RESET ALL",
    "SELECT repeat('x', 20000)", "SELECT array_agg(a) FROM t", "SELECT NULL, '', 'a\\b'", "VALUES (1), (2)",
    "CREATE TEMP TABLE tt (a int)", "DROP TABLE tt", "SELECT * FROM m", "EXPLAIN SELECT * FROM t", "DO 'BEGIN END'",
    "SELECT 1 \u00e9", "select 'unterminated", "BEGIN; SELECT 1/0",
    "SELECT current_setting('server_version')", "SELECT pg_backend_pid(), now()",
)  # fmt: skip
NAMES: Final = ("", "", "s1", "s2", "q", "c", "\u00fc", "x" * 70)
OIDS: Final = (0, 16, 17, 20, 21, 23, 25, 26, 700, 701, 1007, 1043, 1082, 1114, 1184, 1700, 2950, 3802, 99999)
CODES: Final = b"BCDEFHPQSXcdfp\0\x01RZvN~"


class Messages:
    """Draws from one generator."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def flight(self) -> list[bytes]:
        """What a client sends before it waits."""
        return [self.message() for _ in range(self.rng.randint(1, 12))]

    def message(self) -> bytes:
        made = self._right()
        return self._damaged(made) if self.rng.random() < 0.06 else made

    def _right(self) -> bytes:
        rng = self.rng
        match rng.choices(
            ("query", "parse", "bind", "describe", "execute", "close", "sync", "flush", "data", "done", "fail",
             "password", "call", "terminate"),
            (20, 14, 16, 8, 16, 5, 8, 3, 8, 3, 2, 1, 1, 0.2),
        )[0]:  # fmt: skip
            case "query":
                return front.Query(rng.choice(TEXTS)).encode()
            case "parse":
                oids = tuple(rng.choice(OIDS) for _ in range(rng.choice((0, 0, 1, 2, 3))))
                return front.Parse(rng.choice(NAMES), rng.choice(TEXTS), oids).encode()
            case "bind":
                values = tuple(self._value() for _ in range(rng.choice((0, 0, 1, 1, 2, 3))))
                formats = tuple(rng.choice((0, 0, 1, 1, 2)) for _ in range(rng.choice((0, 1, len(values)))))
                results = tuple(rng.choice((0, 1)) for _ in range(rng.choice((0, 0, 1, 2))))
                return front.Bind(rng.choice(NAMES), rng.choice(NAMES), formats, values, results).encode()
            case "describe":
                return front.Describe(rng.choice("SP"), rng.choice(NAMES)).encode()
            case "execute":
                return front.Execute(rng.choice(NAMES), rng.choice((0, 0, 1, 7, 2**31 - 1))).encode()
            case "close":
                return front.Close(rng.choice("SP"), rng.choice(NAMES)).encode()
            case "sync":
                return front.Sync().encode()
            case "flush":
                return front.Flush().encode()
            case "data":
                return front.CopyData(self._copied()).encode()
            case "done":
                return front.CopyDone().encode()
            case "fail":
                return front.CopyFail("enough").encode()
            case "password":
                return front.Password(rng.randbytes(rng.randint(0, 40))).encode()
            case "call":
                return front.FunctionCall(rng.randbytes(rng.randint(0, 40))).encode()
            case _:
                return front.Terminate().encode()

    def _value(self) -> bytes | None:
        rng = self.rng
        return rng.choice((
            None, b"", b"1", b"42", b"-7", b"abc", b"\\x00ff", b"\0\0\0\x05", b"\xff\xfe", "\u00e9".encode(), b"{1,2}",
            rng.randbytes(rng.randint(0, 20)), b"9" * 40,
        ))  # fmt: skip

    def _copied(self) -> bytes:
        rng = self.rng
        return rng.choice((
            b"1\ta\n", b"2\tb\n3\tc\n", b"1", b"\\.\n", b"x\ty\n", b"a,b\n1,2\n", b"PGCOPY\n\xff\r\n\0" + b"\0" * 8,
            b"\0\x02\0\0\0\x04\0\0\0\x01\0\0\0\x01a", b"\xff\xff", rng.randbytes(rng.randint(0, 60)), b"",
        ))  # fmt: skip

    def _damaged(self, data: bytes) -> bytes:
        """Another byte, another length, another kind, cut off, or nothing but noise."""
        rng, changed = self.rng, bytearray(data)
        match rng.randrange(7):
            case 0 | 1:
                for _ in range(rng.randint(1, 3)):
                    place = rng.randrange(5, len(changed)) if len(changed) > 5 and rng.random() < 0.8 else 0
                    changed[place] = rng.randrange(256)
            case 2:
                changed[1:5] = struct.pack("!i", rng.choice((0, 3, 4, 5, -1, 2**31 - 1, 1 << 30, rng.randint(4, 99))))
            case 3:
                changed[0] = rng.choice(CODES)
            case 4:
                body = bytes(changed[5 : rng.randint(5, len(changed))])
                changed[:] = changed[:1] + struct.pack("!i", len(body) + 4) + body
            case 5:
                changed[:] = bytes(changed[: rng.randint(1, len(changed))])
            case _:
                changed[:] = rng.randbytes(rng.randint(1, 30))
        return bytes(changed)

    def opening(self) -> bytes:
        """What a connection begins with: mostly a right start."""
        rng = self.rng
        right = opening.Startup(
            rng.choice((0, 0, 2)), (("user", "me"), ("options", "-c statement_timeout=2s"))
        ).encode()
        if rng.random() < 0.85:
            return right
        return rng.choice((
            opening.EncryptionRequest(opening.SSL_REQUEST_CODE).encode() + right,
            opening.EncryptionRequest(opening.GSS_REQUEST_CODE).encode(), right[: rng.randrange(len(right))],
            opening.CancelRequest(rng.randrange(100), rng.randbytes(4)).encode(), rng.randbytes(rng.randint(1, 40)),
            struct.pack("!ii", rng.choice((0, 7, 8, 10_001, -5)), 196608) + b"user\0",
            opening.Startup(0, (("user", "me"), ("options", "-c work_mem=x"), ("replication", "true"))).encode(),
        ))  # fmt: skip
