"""The server for the crash tests: with a disk that forgets unsynced bytes, and with frequent background work.

    python -m tests.support.crash_server [--forgetful] [--hurry] -- <server.py's own flags>

``--forgetful``: bytes of the commit log reach the folder only when they are synced, and each sync takes a while, so
that a kill can precede it. ``--hurry``: commits move into the store, checkpoints are made and the log is cut many times
a second, so that a kill can interrupt one of them.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from random import Random

import server
from sql.engine.persist import Tuning
from storage.checkpoint import Pace
from storage.files import ForgetfulFiles


class SlowForgetfulFiles(ForgetfulFiles):
    """A sync takes up to 15 ms before anything is on disk."""

    def __init__(self) -> None:
        super().__init__()
        self._random = Random()

    def check_sync(self) -> None:
        super().check_sync()
        time.sleep(self._random.random() * 0.015)


def main() -> None:
    place = sys.argv.index("--")
    own, flags = sys.argv[1:place], sys.argv[place + 1 :]
    tuning = Tuning()
    if "--hurry" in own:
        pace = Pace(rows=200, seconds=0.03, checkpoint_rows=400, checkpoint_seconds=0.15, fold_seconds=0.5)
        tuning = Tuning(pace=pace, segment_bytes=1 << 15)
    if "--forgetful" in own:
        tuning = Tuning(SlowForgetfulFiles(), tuning.pace, tuning.segment_bytes)
    asyncio.run(server.run(server.arguments(flags), tuning))
    os._exit(0)


if __name__ == "__main__":
    main()
