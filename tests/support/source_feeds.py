"""Continuous data for tests that kill sources: files that arrive in folders, and a database whose rows appear over
time."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Final

from storage.spark.cluster import spark_home
from storage.spark.java import java_home
from storage.spark.session import SparkSettings
from tests.support.source_waits import drop_in

NOTES: Final = 7


def note(id_: int) -> str:
    """The row's value besides its id."""
    return f"note {id_ % NOTES}"


@dataclass
class Arrivals:
    """Writes files on a thread of its own, and knows the tables' final contents."""

    folder: Path
    random: Random
    ids: int = 0
    files: int = 0
    kv: dict[int, int] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        for name in ("bag", "kv"):
            (self.folder / name).mkdir(parents=True)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self.random.uniform(0.05, 0.8)):
            self.one()

    def one(self) -> None:
        """Write one more file in each folder."""
        self.files += 1
        count = self.random.randint(1, 200)
        lines = [f"{i},{note(i)}" for i in range(self.ids, self.ids + count)]
        self.ids += count
        drop_in(self.folder / "bag" / f"{self.files:06d}.csv", "\n".join(lines) + "\n")
        events = []
        for i in range(self.random.randint(1, 50)):
            k = self.random.randrange(100)
            if self.random.random() < 0.2:
                self.kv.pop(k, None)
                events.append(json.dumps({"k": k}))
            else:
                self.kv[k] = self.files * 1000 + i
                events.append(json.dumps({"k": k, "v": self.kv[k]}))
        drop_in(self.folder / "kv" / f"{self.files:06d}.json", "\n".join(events) + "\n")


@dataclass
class Derby:
    """A Derby database in a folder, which only one Java process can open. Its rows are written beforehand; its view
    ARRIVING shows each row from its own time on, ``PER_SECOND`` rows a second."""

    folder: Path
    begins: datetime = field(default_factory=lambda: datetime.now() + timedelta(seconds=20))

    PER_SECOND = 40
    SECONDS = 2 * 3600

    def make(self) -> None:
        """Create the database; takes a few seconds."""
        rows = self.folder.with_suffix(".csv")
        with rows.open("w") as file:
            for i in range(self.PER_SECOND * self.SECONDS):
                at = self.begins + timedelta(seconds=i / self.PER_SECOND)
                file.write(f"{i},{note(i)},{at:%Y-%m-%d %H:%M:%S.%f}\n")
        home = spark_home()
        jars = ":".join(map(str, home.glob("jars/derby*.jar")))
        java = java_home(SparkSettings().cache) / "bin" / "java"
        script = (
            f"CONNECT 'jdbc:derby:{self.folder};create=true';\n"
            "CREATE TABLE prepared (id BIGINT PRIMARY KEY, note VARCHAR(20), shown_at TIMESTAMP);\n"
            f"CALL SYSCS_UTIL.SYSCS_IMPORT_TABLE(NULL, 'PREPARED', '{rows}', NULL, NULL, NULL, 0);\n"
            "CREATE VIEW arriving AS SELECT id, note FROM prepared WHERE shown_at <= CURRENT_TIMESTAMP;\n"
            "SELECT COUNT(*) FROM prepared;\n"
        )
        command = [java, "-cp", jars, f"-Dderby.stream.error.file={self.folder}.log", "org.apache.derby.tools.ij"]
        done = subprocess.run(command, input=script, capture_output=True, text=True, check=True)
        assert str(self.PER_SECOND * self.SECONDS) in done.stdout, done.stdout
        rows.unlink()

    @property
    def shown(self) -> int:
        """The number of rows that the view shows now."""
        elapsed = (datetime.now() - self.begins).total_seconds()
        return 0 if elapsed < 0 else min(int(elapsed * self.PER_SECOND) + 1, self.PER_SECOND * self.SECONDS)

    def wait(self) -> None:
        """Wait until the view shows its first rows."""
        while not self.shown:
            time.sleep(0.1)
