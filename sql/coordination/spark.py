"""The server's one Spark session, shared by everything that needs Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sql.engine.engine import Engine
from sql.engine.scratch import remove_scratch, scratch_folder
from storage.spark.session import SparkSession, SparkSettings


class SharedSpark:
    """Creates the session on first use. ``given``: the server's settings; None for the defaults."""

    def __init__(self, engine: Engine, given: SparkSettings | None) -> None:
        self._engine = engine
        self._given = given
        self._session: SparkSession | None = None
        self._lender: SharedSpark | None = None

    def borrow(self, lender: SharedSpark) -> None:
        """Use the session of another database, which also ends it."""
        self._lender = lender

    def session(self) -> SparkSession:
        """The server's Spark session."""
        if self._lender is not None:
            return self._lender.session()
        if self._session is None:
            self._session = SparkSession(self.settings())
        return self._session

    @property
    def shared(self) -> Path | None:
        """The folder that executors share with this server, and perhaps with other servers; None if there is none."""
        return None if self._given is None else self._given.shared

    def settings(self) -> SparkSettings:
        """The settings of the session, with a folder of this server's own: inside the shared one, else in its data."""
        settings = self._given or SparkSettings()
        scratch = scratch_folder(self._engine, settings)
        if scratch is None:
            return settings
        scratch.mkdir(parents=True, exist_ok=True)
        return replace(settings, shared=scratch)

    def stop(self) -> None:
        """Stop Spark and remove its temporary files. No effect if it was never started."""
        if self._session is not None:
            self._session.stop()
            remove_scratch(self._engine, self._given)
