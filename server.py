"""Freshet's server: flags → databases → serve."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import os
import signal
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from ivm import workers
from ivm.errors import SqlError
from ivm.system_memory import bound_pools
from sql.settings.flags import arguments

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from sql.engine.persist import Tuning
    from storage.spark.session import SparkSettings

END_SECONDS = 4.5
"""Seconds for an orderly end after SIGTERM. Whatever is not in the store by then is in the log."""


def spark_settings(options: argparse.Namespace) -> SparkSettings:
    """Spark's settings from the flags. SqlError 22023."""
    from storage.spark.session import SparkSettings

    shared = options.spark_shared
    if shared is not None:
        shared.mkdir(parents=True, exist_ok=True)
    return SparkSettings(options.spark, shared and shared.resolve(), memory=f"{options.spark_memory >> 20}m")


def audit_to(path: Path) -> None:
    """Append the audit log to a file that only its owner reads."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    lines = logging.FileHandler(path, encoding="utf-8")
    lines.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    audit = logging.getLogger("freshet.audit")
    audit.addHandler(lines)
    audit.setLevel(logging.INFO)
    audit.propagate = False


def say(text: str) -> None:
    """Print a line on stderr, in one piece: other threads log there too."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


async def run(options: argparse.Namespace, tuning: Tuning | None = None) -> None:
    """Serve until SIGTERM or SIGINT. ``tuning``: for crash tests, which inject a disk."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))  # a start may be interrupted anywhere, as by a kill
    spark = spark_settings(options)
    say("freshet: starting")
    from sql.admission.start import check_start

    password = check_start(options)
    gc.disable()  # what modules hold is not garbage
    from sql.cluster.cluster import Cluster, Opening
    from sql.pgwire.listener import serve
    from sql.session.door import admit, open_gate
    from sql.session.sources import Sources
    from sql.session.warm import load, warm
    from storage.outbound import Outbound

    gc.enable()
    workers.use(options.workers)
    await warm(say)
    load()
    files = tuple(path.resolve() for path in options.files)
    opening = Opening(
        options.data, options.memory, files, lambda text: say(f"freshet: {text}"), tuning, options.python, spark,
        tuple(options.sinks), options.safe_mode, Outbound.of(options.allow_host),
    )  # fmt: skip
    cluster = await Cluster.open(opening, options.max_connections)
    gate = await open_gate(cluster, options, password, lambda text: say(f"freshet: {text}"))
    cluster.on_open(Sources)
    try:
        server = await serve(partial(admit, cluster), options.host, options.port, gate)
    except OSError as error:
        where = f"{options.host}:{options.port}"
        hint = "Another server may use it: --port gives this one another." if error.errno == errno.EADDRINUSE else None
        raise SqlError(
            "55006", f"cannot listen on {where}: {os.strerror(error.errno or errno.EINVAL)}", hint=hint
        ) from error
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    loop.add_signal_handler(signal.SIGHUP, gate.reload)
    gc.collect()
    gc.freeze()  # exclude the objects that exist now from garbage collection
    say(f"ready on {options.host}:{server.port}")
    await ended.wait()
    force = threading.Timer(END_SECONDS, lambda: os._exit(0))
    force.daemon = True
    force.start()
    await server.close()
    try:
        await cluster.close()
    except SqlError as error:
        say(f"freshet: {error.message}")


def main() -> None:
    """The console script ``freshet``."""
    options = arguments()
    logging.basicConfig(level=logging.WARNING, format="freshet: %(message)s", stream=sys.stderr)
    try:
        if options.audit is not None:
            audit_to(options.audit)
        bound_pools()
        asyncio.run(run(options))
    except SqlError as error:
        for line in (error.message, error.detail, error.hint):
            if line:
                say(f"freshet: {line}")
        _end(1)
    except OSError as error:
        say(f"freshet: {error}")
        _end(1)
    _end(0)


def _end(status: int) -> NoReturn:
    """End at once: a thread that is still running a long query would delay an orderly exit, and libraries would report
    what they have not given back."""
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
