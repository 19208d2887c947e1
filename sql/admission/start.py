"""What a server's flags say of who may connect, read and checked before anything is opened."""

from __future__ import annotations

import argparse
import getpass
import sys
from pathlib import Path
from typing import Final

from ivm.errors import SqlError
from sql.admission.gate import Gate
from sql.admission.rules import FILE, is_loopback
from sql.admission.tls import TlsFiles
from sql.catalog.access import Access

FIRST_RULES: Final = """\
# Who may connect, from where, and what proves it. The first line that fits a client counts.
# TYPE   DATABASE  USER  ADDRESS       METHOD
host     all       all   127.0.0.0/8   scram-sha-256
host     all       all   ::1/128       scram-sha-256
hostssl  all       all   all           scram-sha-256
"""


def tls_files(options: argparse.Namespace) -> TlsFiles | None:
    """The files that were named; None for no TLS. SqlError 22023."""
    if options.tls_cert is None or options.tls_key is None:
        if any((options.tls_cert, options.tls_key, options.tls_client_ca)):
            raise SqlError("22023", "TLS needs both --tls-cert and --tls-key")
        return None
    return TlsFiles(options.tls_cert, options.tls_key, options.tls_client_ca)


def _password_in(file: Path) -> str:
    """A file's first line. SqlError F0000."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise SqlError("F0000", f'could not read the password file "{file}": {reason}') from None
    if not lines or not lines[0]:
        raise SqlError("F0000", f'password file "{file}" is empty')
    return lines[0]


def _asked_password() -> str:
    """A password from the terminal. SqlError 22023."""
    if not sys.stdin.isatty():
        hint = "Give --init-password-file FILE instead."
        raise SqlError("22023", "--init-password asks for the password on a terminal, and there is none", hint=hint)
    password = getpass.getpass("Enter the superuser's password: ")
    if not password:
        raise SqlError("22023", "the password is empty")
    if password != getpass.getpass("Enter it again: "):
        raise SqlError("22023", "the passwords did not match")
    return password


def asks_for_password(options: argparse.Namespace) -> bool:
    """Whether the flags say that the first superuser gets a password."""
    return options.init_password or options.init_password_file is not None


def check_start(options: argparse.Namespace) -> str | None:
    """Whether a server may start with these flags (``sql.settings.flags``): SqlError F0000 or 22023 if not. The first
    superuser's password, if it is to be set: in a folder without rules."""
    gate = Gate(
        options.data, Access, b"", lambda: 0, tls_files(options), elsewhere=not is_loopback(options.host)
    )  # fmt: skip
    asked = asks_for_password(options)
    gate.load(FIRST_RULES if asked else None)
    if not asked or (options.data / FILE).exists():
        return None
    return _asked_password() if options.init_password_file is None else _password_in(options.init_password_file)
