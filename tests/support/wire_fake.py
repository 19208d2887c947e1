"""A session for tests of the wire: a few canned statements, with the transaction rules of a real one.

Statements (after ``$n`` is replaced): ``select <ints and 'texts'>``, ``rows <n>``, ``fail``, ``crash``, ``notice``,
``set <name> <value>``, ``begin``, ``commit``, ``sleep``, ``copy t from stdin``, ``copy t to stdout``, ``copy drip to
stdout`` (endless rows), the empty string.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Callable, Sequence

import numpy as np

from ivm.errors import SqlError
from ivm.rows import RowSet
from ivm.words import INT4, INT8, TEXT, ColumnType, SqlType
from sql.catalog.catalog import TableColumn
from sql.pgwire.copy import CopyParser
from sql.pgwire.copy_out import CopyRows
from sql.pgwire.run_request import Begun, RunRequest
from sql.statements.queries import OutputColumn
from sql.statements.results import (
    CommandResult,
    CopyInResult,
    CopyOutResult,
    EmptyResult,
    Inbox,
    Notice,
    Result,
    RowsResult,
)
from sql.statements.statements import CopyOptions
from storage.dictionary import Dictionary
from storage.types.text_style import DEFAULT_STYLE

DICTIONARY = Dictionary(b"0" * 16)
BACKENDS = itertools.count(1)
COLUMNS = (TableColumn("a", INT4), TableColumn("b", TEXT))


class FakeSession:
    """``copied``: the rows of the last COPY IN; ``log``: the calls, in order."""

    def __init__(self, user: str = "u", database: str = "d", parameters: dict[str, str] | None = None) -> None:
        self.user, self.database, self.parameters = user, database, parameters or {}
        self.backend_id = next(BACKENDS)
        self.signalled: Callable[[bool], None] | None = None
        self.inbox = Inbox()
        self.notices: list[Notice] = []
        application = self.parameters.get("application_name", "")
        self.parameter_changes: list[tuple[str, str]] = [("application_name", application)]
        self.transaction_status = "I"
        self.text_style = DEFAULT_STYLE
        self.implicit = False
        self.statements: dict[str, tuple[str, tuple[int, ...]]] = {}
        self.portals: dict[str, tuple[str, tuple[int, ...], int]] = {}
        self.cancelled = asyncio.Event()
        self.closed = False
        self.copied: list[tuple[int, int]] = []
        self.log: list[str] = []

    def connected(self, client: tuple[str, int], server: tuple[str, int]) -> None:
        self.addresses = client, server

    async def simple(self, text: str) -> AsyncIterator[Result]:
        parts = [part.strip() for part in text.rstrip().rstrip(";").split(";")]
        if parts == [""]:
            yield EmptyResult()
            return
        for part in parts:
            yield await self.run(part)

    async def run(self, text: str, limit: int = 0, start: int = 0, formats: tuple[int, ...] = ()) -> Result:
        word, _, rest = text.strip().partition(" ")
        self.log.append(text)
        if self.transaction_status == "E" and word not in ("commit", "rollback"):
            raise SqlError("25P02", "current transaction is aborted, commands ignored until end of transaction block")
        match word:
            case "":
                return EmptyResult()
            case "begin":
                self.transaction_status = "T"
                return CommandResult("BEGIN")
            case "commit" | "rollback":
                tag = "ROLLBACK" if self.transaction_status == "E" else word.upper()
                self.transaction_status = "I"
                return CommandResult(tag)
            case "fail":
                raise SqlError("42P01", 'relation "x" does not exist', hint="create it", position=6)
            case "crash":
                raise ZeroDivisionError("oops")
            case "notice":
                self.notices.append(Notice("NOTICE", "00000", rest or "hello"))
                return CommandResult("NOTICE")
            case "set":
                name, value = rest.split()
                self.parameter_changes.append((name, value))
                return CommandResult("SET")
            case "sleep":
                await asyncio.wait_for(self.cancelled.wait(), 10)
                self.cancelled.clear()
                raise SqlError("57014", "canceling statement due to user request")
            case "copy":
                return self.copy(rest)
            case "rows":
                count = int(rest)
                end = min(count, start + limit) if limit > 0 else count
                words = np.arange(start, end, dtype=np.int64).reshape(-1, 1)
                rows = RowSet(words, (ColumnType(INT8, False),))
                columns = (OutputColumn("n", INT8),)
                return RowsResult(columns, rows, f"SELECT {end - start}", DICTIONARY, end < count, formats=formats)
            case "select":
                return self.select(rest, formats)
            case _:
                raise SqlError("42601", f'syntax error at or near "{word}"', position=1)

    def select(self, text: str, formats: tuple[int, ...]) -> RowsResult:
        columns = self.shape("select " + text)
        words = []
        for item in re.findall(r"'[^']*'|-?\d+", text):
            words.append(DICTIONARY.intern_one(item[1:-1].encode()) if item[0] == "'" else int(item))
        rows = RowSet(np.array([words], np.int64), tuple(ColumnType(c.type, False) for c in columns))
        return RowsResult(columns, rows, "SELECT 1", DICTIONARY, formats=formats)

    @staticmethod
    def shape(text: str) -> tuple[OutputColumn, ...] | None:
        word, _, rest = text.partition(" ")
        if word == "rows":
            return (OutputColumn("n", INT8),)
        if word != "select":
            return None
        kinds = [TEXT if item[0] == "'" else INT4 for item in re.findall(r"'[^']*'|\$\d+|-?\d+", rest)]
        return tuple(OutputColumn("?column?", kind) for kind in kinds)

    def copy(self, rest: str) -> CopyInResult | CopyOutResult:
        match rest:
            case "t from stdin":
                return CopyInResult(2, 0, FakeReceiver(self))
            case "t to stdout":
                return CopyOutResult(2, 0, copy_rows(), lambda: "COPY 3")
            case "drip to stdout":
                return CopyOutResult(1, 0, self.drip(), lambda: "COPY 0")
            case _:
                raise SqlError("42601", f'syntax error at or near "{rest}"', position=6)

    async def drip(self) -> AsyncIterator[bytes]:
        while not self.cancelled.is_set():
            yield b"tick\n"
            await asyncio.sleep(0.005)
        raise SqlError("57014", "canceling statement due to user request")

    async def parse(self, name: str, text: str, parameter_oids: Sequence[int]) -> None:
        self.statements[name] = (text, tuple(parameter_oids))

    def describe_statement(self, name: str) -> tuple[tuple[SqlType, ...], tuple[OutputColumn, ...] | None]:
        text, _ = self.statements[name]
        return tuple(INT4 for _ in re.findall(r"\$\d+", text)), self.shape(text)

    async def bind(
        self,
        portal: str,
        statement: str,
        parameters: Sequence[bytes | None],
        formats: Sequence[int],
        result_formats: Sequence[int],
    ) -> None:
        if statement not in self.statements:
            raise SqlError("26000", f'prepared statement "{statement}" does not exist')
        text = self.statements[statement][0]
        for i, value in enumerate(parameters):
            assert value is not None
            binary = bool(formats) and formats[i if len(formats) > 1 else 0] == 1
            shown = str(int.from_bytes(value, "big", signed=True)) if binary else value.decode()
            text = text.replace(f"${i + 1}", shown)
        self.portals[portal] = (text, tuple(result_formats), 0)

    def describe_portal(self, name: str) -> tuple[OutputColumn, ...] | None:
        return self.shape(self.portals[name][0])

    async def execute(self, portal: str, max_rows: int, final: bool = False) -> Result:
        text, formats, at = self.portals[portal]
        if self.transaction_status == "I":
            self.implicit = True
        result = await self.run(text, max_rows, at, formats)
        if isinstance(result, RowsResult):
            self.portals[portal] = (text, formats, at + len(result.rows))
        return result

    def runs_whole(self, statement: str) -> bool:
        return False

    def answer_text(self, text: str) -> bytes | Begun | None:
        return None

    def answer(self, request: RunRequest) -> bytes | Begun | None:
        return None

    def close_statement(self, name: str) -> None:
        self.statements.pop(name, None)

    def close_portal(self, name: str) -> None:
        self.portals.pop(name, None)

    async def sync(self) -> None:
        self.log.append("sync")
        self.implicit = False

    async def fail(self) -> None:
        if self.transaction_status == "T":
            self.transaction_status = "E"

    async def cancel(self) -> None:
        self.cancelled.set()

    async def close(self) -> None:
        self.closed = True


class FakeReceiver:
    def __init__(self, session: FakeSession) -> None:
        self.session = session
        self.parser = CopyParser("t", COLUMNS, CopyOptions(), DICTIONARY)

    async def feed(self, data: bytes) -> None:
        self.parser.feed(data)
        self.parser.parse()

    async def finish(self) -> CommandResult:
        (a, b), count = self.parser.finish()
        self.session.copied = list(zip(a.words.tolist(), DICTIONARY.lookup(b.words), strict=True))
        return CommandResult(f"COPY {count}")


async def copy_rows() -> AsyncIterator[bytes]:
    yield CopyRows.of([b"1\tone\n", b"2\ttwo\n"])
    yield b"3\tthree\n"
