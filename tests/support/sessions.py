"""A coordinator without sockets, driven from plain test functions: one event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from ivm.errors import SqlError
from sql.coordination.coordinator import Coordinator
from sql.coordination.depth import allow_depth
from sql.engine.persist import Tuning
from sql.session.session import Session
from sql.statements.results import CommandResult, CopyInResult, CopyOutResult, Notice, Result, RowsResult
from storage.outbound import Outbound, Reach
from storage.secrets import Secrets
from storage.spark.session import SparkSession, SparkSettings
from storage.types.text import format_text
from storage.types.text_style import DEFAULT_STYLE, TextStyle
from tests.support.spark_local import Lent

OPEN: Final[set[Server]] = set()
"""All servers that are not closed."""
T = TypeVar("T")
Row = tuple[str | None, ...]


class Server:
    """A coordinator over a data folder; ``restart`` closes it in an orderly way and opens it again.

    ``lent``: a Spark to use, which outlives the server. ``patience``: the timeout of every operation, in seconds.
    """

    def __init__(
        self,
        folder: Path,
        files: tuple[Path, ...] = (),
        python: bool = False,
        memory: int = 256 << 20,
        places: tuple[str, ...] = (),
        tuning: Tuning | None = None,
        spark: SparkSettings | None = None,
        lent: SparkSession | None = None,
        patience: float = 240,
        safe: bool = False,
        hosts: tuple[str, ...] = (),
    ) -> None:
        self.folder, self.files, self.python, self.memory = folder, files, python, memory
        self.places, self.tuning, self.lent, self.patience = places, tuning, lent, patience
        self.safe, self.hosts = safe, Outbound.of(hosts)
        self.spark = spark if lent is None else replace(lent.settings, shared=None)
        allow_depth()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.coordinator = self.run(self._open())
        OPEN.add(self)

    async def _open(self) -> Coordinator:
        coordinator = await Coordinator.open(
            self.folder,
            self.memory,
            self.files,
            python=self.python,
            places=self.places,
            tuning=self.tuning,
            spark=self.spark,
            safe=self.safe,
        )
        coordinator.reach = Reach(self.files, self.hosts)
        coordinator.secrets = Secrets(self.folder / "secrets")
        if self.lent is not None:
            coordinator.spark._session = cast("SparkSession", Lent(self.lent, coordinator.spark.settings()))
        return coordinator

    def run(self, work: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout or self.patience)

    def start(self, work: Coroutine[Any, Any, T]) -> Any:
        """Start work beside the test; its future."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def client(self, user: str = "me", **parameters: str) -> Client:
        async def open_session() -> Session:
            return Session(self.coordinator, user, "db", parameters)

        return Client(self, self.run(open_session()))

    def restart(self) -> None:
        self.run(self.coordinator.close())
        self.coordinator = self.run(self._open())

    def close(self) -> None:
        self.run(self._shut())
        OPEN.discard(self)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _shut(self) -> None:
        await self.coordinator.close()


def close_those_in(folder: Path) -> None:
    """Close the servers that a test has left behind: they would go on working, and end the process when their folder
    goes. One that cannot be closed was left so on purpose."""
    for server in [server for server in OPEN if server.folder.is_relative_to(folder)]:
        OPEN.discard(server)
        with suppress(Exception):
            server.patience = 10
            server.close()


class Client:
    """One session. ``rows`` returns values as Postgres's text."""

    def __init__(self, server: Server, session: Session) -> None:
        self.server, self.session = server, session

    def results(self, text: str, copy: bytes | None = None) -> list[Result]:
        return self.server.run(self.work(text, copy))

    async def work(self, text: str, copy: bytes | None = None) -> list[Result]:
        """Run a text as the listener does: results in order, COPY fed, an error passed to ``fail``."""
        found: list[Result] = []
        try:
            async for result in self.session.simple(text):
                if isinstance(result, CopyInResult):
                    await result.receiver.feed(copy or b"")
                    found.append(await result.receiver.finish())
                else:
                    found.append(result)
        except SqlError:
            await self.session.fail()
            raise
        return found

    def run(self, text: str, copy: bytes | None = None) -> str:
        """The last result's tag."""
        last = self.results(text, copy)[-1]
        assert isinstance(last, CommandResult | RowsResult), last
        return last.tag

    def rows(self, text: str) -> list[Row]:
        last = self.results(text)[-1]
        assert isinstance(last, RowsResult), last
        return text_rows(last)

    def sorted(self, text: str) -> list[Row]:
        return sorted(self.rows(text), key=repr)

    def error(self, text: str) -> SqlError:
        try:
            self.results(text)
        except SqlError as error:
            return error
        raise AssertionError(f"no error: {text}")

    def state(self, text: str) -> str:
        """The SQLSTATE with which a text fails."""
        return self.error(text).sqlstate

    def copy_out(self, text: str) -> list[str]:
        async def collect() -> list[str]:
            lines: list[str] = []
            async for result in self.session.simple(text):
                assert isinstance(result, CopyOutResult)
                async for chunk in result.data:
                    lines += bytes(chunk).decode().splitlines()
            return lines

        return self.server.run(collect())

    def notices(self) -> list[Notice]:
        found = list(self.session.notices)
        self.session.notices.clear()
        return found

    def close(self) -> None:
        self.server.run(self.session.close())


def text_rows(result: RowsResult, style: TextStyle = DEFAULT_STYLE) -> list[Row]:
    """Rows as text, None for NULL."""
    if not len(result.rows.schema):
        return [()] * len(result.rows)
    columns = [
        format_text(column.type, vector, result.dictionary, style)
        for column, vector in zip(result.rows.schema[: len(result.columns)], result.rows.columns(), strict=False)
    ]
    return [tuple(None if v is None else bytes(v).decode() for v in row) for row in zip(*columns, strict=True)]
