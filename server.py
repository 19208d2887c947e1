"""Freshet's server: flags → coordinator → serve."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import re
import signal
import sys
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ivm import workers
from ivm.errors import SqlError

if TYPE_CHECKING:
    from sql.engine.persist import Tuning
    from storage.spark.session import SparkSettings

UNITS = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "kb": 10**3, "mb": 10**6, "gb": 10**9}
END_SECONDS = 4.5
"""Seconds for an orderly end after SIGTERM. Whatever is not in the store by then is in the log."""


def parse_bytes(text: str) -> int:
    """Bytes, or a number with a unit: 4GiB, 512MiB, 2GB."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text.lower())
    if match is None or match[2] not in UNITS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size: write bytes, or for example 4GiB")
    return int(float(match[1]) * UNITS[match[2]])


def parse_workers(text: str) -> int:
    """A number of threads, 1 to 64."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 64:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of workers: write 1 to 64")
    return int(text)


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="freshet", description="A SQL server that keeps views up to date.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=7432, help="port, 0 for any free one (default: %(default)s)")
    parser.add_argument("--data", type=Path, default=Path("freshet-data"), help="data folder (default: ./freshet-data)")
    parser.add_argument("--memory", type=parse_bytes, default=None,
                        help="memory for the store, and for all intermediate results, e.g. 4GiB")  # fmt: skip
    parser.add_argument("--files", type=Path, action="append", default=[], metavar="DIR",
                        help="a folder that COPY … FROM 'path' may read; may be given several times")  # fmt: skip
    parser.add_argument("--sinks", action="append", default=[], metavar="DIR|URI",
                        help="a folder, or the beginning of an object store's URIs, that CREATE SINK and COPY … TO "
                             "may write under; may be given several times")  # fmt: skip
    parser.add_argument("--workers", type=parse_workers, default=1,
                        help="threads that share large pieces of a step (default: %(default)s)")  # fmt: skip
    parser.add_argument("--python", action="store_true", help="let clients create aggregates in Python: any code")
    parser.add_argument("--spark", default="local[*]", metavar="URL",
                        help="local[*], spark://HOST:PORT or sc://HOST:PORT (default: %(default)s)")  # fmt: skip
    parser.add_argument("--spark-shared", type=Path, metavar="DIR",
                        help="a folder that this server and the executors of spark:// or sc:// share")  # fmt: skip
    parser.add_argument("--spark-memory", type=parse_bytes, default="1GiB",
                        help="memory of Spark's driver, and of each executor (default: %(default)s)")  # fmt: skip
    return parser.parse_args(given)


def spark_settings(options: argparse.Namespace) -> SparkSettings:
    """Spark's settings from the flags. SqlError 22023."""
    from storage.spark.session import SparkSettings

    shared = options.spark_shared
    if shared is not None:
        shared.mkdir(parents=True, exist_ok=True)
    return SparkSettings(options.spark, shared and shared.resolve(), memory=f"{options.spark_memory >> 20}m")


def say(text: str) -> None:
    """Print a line on stderr."""
    print(text, file=sys.stderr, flush=True)


async def run(options: argparse.Namespace, tuning: Tuning | None = None) -> None:
    """Serve until SIGTERM or SIGINT. ``tuning``: for crash tests, which inject a disk."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))  # a start may be interrupted anywhere, as by a kill
    spark = spark_settings(options)
    say("freshet: starting")
    gc.disable()  # what modules hold is not garbage
    from sql.coordination.coordinator import Coordinator
    from sql.pgwire.listener import serve
    from sql.session.session import Session
    from sql.session.sources import Sources
    from sql.session.warm import warm

    gc.enable()
    workers.use(options.workers)
    await warm(say)
    files = tuple(path.resolve() for path in options.files)
    coordinator = await Coordinator.open(
        options.data, options.memory, files, lambda text: say(f"freshet: {text}"), tuning, options.python, spark,
        tuple(options.sinks),
    )  # fmt: skip
    Sources(coordinator)
    server = await serve(partial(Session, coordinator), options.host, options.port)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    gc.collect()
    gc.freeze()  # exclude the objects that exist now from garbage collection
    say(f"ready on {options.host}:{server.port}")
    await ended.wait()
    force = threading.Timer(END_SECONDS, lambda: os._exit(0))
    force.daemon = True
    force.start()
    await server.close()
    try:
        await coordinator.close()
    except SqlError as error:
        say(f"freshet: {error.message}")


def main() -> None:
    """The console script ``freshet``."""
    options = arguments()
    logging.basicConfig(level=logging.WARNING, format="freshet: %(message)s", stream=sys.stderr)
    try:
        asyncio.run(run(options))
    except SqlError as error:
        for line in (error.message, error.detail, error.hint):
            if line:
                say(f"freshet: {line}")
        sys.exit(1)
    except OSError as error:
        say(f"freshet: {error}")
        sys.exit(1)
    sys.stderr.flush()
    os._exit(0)  # a thread that is still running a long query would delay an orderly exit


if __name__ == "__main__":
    main()
