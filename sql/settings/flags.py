"""The command line."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Final

from sql.settings.limits import MOST_SESSIONS, RESERVED

UNITS: Final = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "kb": 10**3, "mb": 10**6, "gb": 10**9}


def parse_bytes(text: str) -> int:
    """Bytes, or a number with a unit: 4GiB, 512MiB, 2GB."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text.lower())
    if match is None or match[2] not in UNITS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size: write bytes, or for example 4GiB")
    return int(float(match[1]) * UNITS[match[2]])


def parse_port(text: str) -> int:
    """A port, 0 to 65535."""
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: write 0 to 65535")
    return int(text)


def parse_workers(text: str) -> int:
    """A number of threads, 1 to 64."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 64:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of workers: write 1 to 64")
    return int(text)


def parse_sessions(text: str) -> int:
    """A number of sessions."""
    if not text.isascii() or not text.isdigit() or not RESERVED < int(text) <= 262_143:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of sessions: write {RESERVED + 1} to 262143")
    return int(text)


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="freshet", description="A SQL server that keeps views up to date.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=parse_port, default=7432, help="port, 0 for any free one (default: %(default)s)")
    parser.add_argument("--data", type=Path, default=Path("freshet-data"), help="data folder (default: ./freshet-data)")
    parser.add_argument("--memory", type=parse_bytes, default=None,
                        help="memory for the store, and for all intermediate results, e.g. 4GiB")  # fmt: skip
    parser.add_argument("--files", type=Path, action="append", default=[], metavar="DIR",
                        help="a folder that COPY … FROM 'path' may read; may be given several times")  # fmt: skip
    parser.add_argument("--sinks", action="append", default=[], metavar="DIR|URI",
                        help="a folder, or the beginning of an object store's URIs, that CREATE SINK and COPY … TO "
                             "may write under; may be given several times")  # fmt: skip
    parser.add_argument("--allow-host", action="append", default=[], metavar="HOST[:PORT]",
                        help="a host, bucket, *.domain or network that COPY and sources may reach, * for all; may be "
                             "given several times")  # fmt: skip
    parser.add_argument("--max-connections", type=parse_sessions, default=MOST_SESSIONS, metavar="N",
                        help="sessions at a time, the last 3 for superusers (default: %(default)s)")  # fmt: skip
    parser.add_argument("--workers", type=parse_workers, default=1,
                        help="threads that share large pieces of a step (default: %(default)s)")  # fmt: skip
    parser.add_argument("--python", action="store_true", help="let clients create aggregates in Python: any code")
    parser.add_argument("--safe-mode", action="store_true", help="start without materialized views: they are down")
    parser.add_argument("--spark", default="local[*]", metavar="URL",
                        help="local[*], spark://HOST:PORT or sc://HOST:PORT (default: %(default)s)")  # fmt: skip
    parser.add_argument("--spark-shared", type=Path, metavar="DIR",
                        help="a folder that this server and the executors of spark:// or sc:// share")  # fmt: skip
    parser.add_argument("--spark-memory", type=parse_bytes, default="1GiB",
                        help="memory of Spark's driver, and of each executor (default: %(default)s)")  # fmt: skip
    _add_door(parser)
    return parser.parse_args(given)


def _add_door(parser: argparse.ArgumentParser) -> None:
    """Who gets in, and how."""
    parser.add_argument("--init-password-file", type=Path, metavar="FILE",
                        help="in a data folder without pg_hba.conf: the first superuser's password, on the file's "
                             "first line; the server then asks everybody for a password")  # fmt: skip
    parser.add_argument("--init-password", action="store_true", help="the same, asked for on the terminal")
    parser.add_argument("--tls-cert", type=Path, metavar="FILE", help="the server's certificate, and its chain, in PEM")
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="its private key, in PEM")
    parser.add_argument("--tls-client-ca", type=Path, metavar="FILE",
                        help="the authorities of clients' certificates, in PEM")  # fmt: skip
    parser.add_argument("--audit", type=Path, metavar="FILE",
                        help="append who was let in or refused, and changes of roles and privileges")  # fmt: skip
