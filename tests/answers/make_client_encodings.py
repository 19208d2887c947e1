"""Asks a PostgreSQL what clients of several encodings are sent: ``python -m tests.answers.make_client_encodings DSN``.

Writes ``tests/answers/client_encodings.json``: by encoding, statements in its bytes and what answers them, as
``told`` reads it. ``tests/server/test_client_encodings.py`` asks the same of our server.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Final

import psycopg
from psycopg import pq

from tests.support.paths import ROOT

ANSWERS: Final = ROOT / "tests" / "answers" / "client_encodings.json"
STATEMENTS: Final[dict[str, tuple[bytes, ...]]] = {
    "LATIN1": (
        b"SELECT '\xe9' AS \"\xfc\", length('\xe9\xe9'), pg_client_encoding()",
        b"SELECT chr(1103)",
        b"SELECT '\xe9' AS a, chr(8364) || 'x'",
        b"SELECT 1 AS \"\xe9\" FROM nosuch_\xe9",
        b"SELECT '\xe9'::int",
        b"SELECT ARRAY['\xe9', 'x'], ROW('\xe9', 1), '{\"\xe9\": 1}'::json, '\xe9'::bytea",
        b"DO $$ BEGIN RAISE NOTICE '\xe9 %', 1; END $$",
        b"DO $$ BEGIN RAISE NOTICE '%', chr(1103); END $$",
        b"DO $$ BEGIN RAISE EXCEPTION '%', chr(1103); END $$",
        b"SET client_encoding = nosuch",
        b"SET client_encoding = mule_internal",
        b"SET NAMES 'iso 8859-9'",
        b"SELECT '\xfd', ascii('\xfd')",
        b"SELECT convert_from('\\x81', 'WIN1252')",
        b"SELECT convert_from('\\x8120', 'SJIS')",
        b"RESET client_encoding",
        b"SELECT '\xe9'",
    ),
    "WIN1252": (b"SELECT '\x80 \x99', ascii('\x80'), chr(8364)", b"SELECT '\x81'", b"SELECT chr(129)"),
    "SJIS": (
        b"SELECT '\x83\x5c', length('\x83\x5c')",
        b"SELECT '\x83'",
        b"SELECT '\x87\x40\xfa\x40', 'a\x5cb' AS \"\x83\x5c\"",
        b"SELECT '\xf0\x40'",
        b"SELECT chr(162)",
    ),
    "EUC_JP": (b"SELECT '\xa1\xc1\x8e\xb1\x8f\xa2\xc3', ascii('\xa1\xc1')", b"SELECT '\x8f\xa1'", b"SELECT chr(162)"),
    "EUC_KR": (b"SELECT '\xa4\xd4\xa4\xa1\xb0\xa1', length('\xa4\xd4\xa4\xa1')", b"SELECT chr(44034)"),
    "BIG5": (b"SELECT '\xa1\x40\xf9\xd6', ascii('\xf9\xd6')", b"SELECT chr(8364)"),
    "GB18030": (b"SELECT '\x81\x30\x81\x30\xa2\xe3', ascii('\x81\x30\x81\x30')", b"SELECT '\x81\x30'"),
    "UHC": (b"SELECT '\xc9\xa1\x81\x41', ascii('\xc9\xa1')", b"SELECT '\x8d\x20'"),
    "KOI8R": (b"SELECT '\xc1', ascii('\xc1')", b"SELECT chr(233)"),
}  # fmt: skip


def told(connection: psycopg.Connection[Any], statement: bytes) -> list[Any]:
    """What answers a statement: [names, values] or [SQLSTATE, message, detail], in hex where it is not ASCII; and the
    notices."""
    notices: list[str] = []
    connection.pgconn.notice_handler = lambda result: notices.append(
        _shown(result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY)) or ""
    )
    result = connection.pgconn.exec_(statement)
    fields = pq.DiagnosticField
    if result.status == pq.ExecStatus.FATAL_ERROR:
        kinds = fields.SQLSTATE, fields.MESSAGE_PRIMARY, fields.MESSAGE_DETAIL
        return [[_shown(result.error_field(kind)) for kind in kinds], notices]
    names = [_shown(result.fname(i)) for i in range(result.nfields)]
    values = [_shown(result.get_value(0, i)) for i in range(result.nfields)] if result.ntuples else []
    return [names, values, notices]


def _shown(raw: bytes | None) -> str | None:
    if raw is None:
        return None
    return raw.decode() if raw.isascii() else f"\\x{raw.hex()}"


def answers(dsn: str) -> dict[str, list[list[Any]]]:
    """By encoding, what answers the statements, one after the other in one session."""
    found = {}
    for encoding, statements in STATEMENTS.items():
        with psycopg.connect(dsn, autocommit=True, client_encoding=encoding) as connection:
            found[encoding] = [told(connection, statement) for statement in statements]
    return found


if __name__ == "__main__":
    ANSWERS.write_text(json.dumps(answers(sys.argv[1]), indent=1) + "\n")
