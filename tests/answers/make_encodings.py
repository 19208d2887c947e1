"""Asks a PostgreSQL for every character of its encodings: ``python -m tests.answers.make_encodings DSN``.

Writes ``storage/encodings/differences.json``, in which the server's encodings differ from Python's codecs, and
``tests/answers/encodings.json``: for each encoding digests of what its bytes mean and of how characters are written,
as ``tests/storage/encodings/test_encodings.py`` computes them too, and messages.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any, Final

import psycopg

from storage.encodings.differences import FILE
from storage.encodings.encoding import CODECS
from storage.encodings.forms import form_of
from storage.encodings.names import most_bytes
from tests.support.paths import ROOT

ANSWERS: Final = ROOT / "tests" / "answers" / "encodings.json"
_BLOCKS: Final = (range(0x80, 0xD800), range(0xE000, 0x10000), range(0x20000, 0x2FA20))
"""Which characters are tried: those that encodings of more than a byte have."""
_FUNCTIONS: Final = """
create or replace function pg_temp.written(code int, e text) returns bytea language plpgsql as $$
begin return convert_to(chr(code), e); exception when others then return null; end $$;
create or replace function pg_temp.read(b bytea, e text) returns text language plpgsql as $$
begin return '=' || convert_from(b, e); exception when others then return sqlstate || ' ' || sqlerrm; end $$;
"""


def characters(name: str) -> list[str]:
    """The characters that are written in an encoding."""
    blocks = _BLOCKS if most_bytes(name) > 1 else (range(0x80, 0x2600),)
    return [chr(code) for block in blocks for code in block]


def sequences(name: str) -> Iterator[bytes]:
    """The bytes that are read in an encoding: all of one, of two where characters may have two, and some of three."""
    yield from (bytes([byte]) for byte in range(1, 256))
    if most_bytes(name) > 1:
        yield from map(bytes, product(range(128, 256), range(1, 256)))
    if name.startswith("EUC_J"):
        yield from map(bytes, product((0x8F,), range(0xA1, 0xFF), range(0xA1, 0xFF)))
    if name == "GB18030":
        yield from map(bytes, product((0x81, 0x84, 0x90, 0xE3, 0xFF), range(0x30, 0x3A), range(0x81, 0xFF), b"059"))


def digest(items: Iterable[object]) -> str:
    """A digest of answers, in their order."""
    whole = hashlib.sha256()
    for item in items:
        whole.update(repr(item).encode())
    return whole.hexdigest()[:16]


def main(dsn: str) -> None:
    answers: dict[str, dict[str, Any]] = {}
    differences: dict[str, dict[str, Any]] = {}
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(_FUNCTIONS)
        for name, codec in CODECS.items():
            tried, codes = list(sequences(name)), characters(name)
            read = _column(connection, "pg_temp.read", tried, "bytea", name)
            written = _column(connection, "pg_temp.written", list(map(ord, codes)), "int", name)
            answers[name] = {
                "read": digest(read),
                "written": digest(written),
                "has": sum(b is not None for b in written),
            }
            found = _differences(
                name, codec, dict(zip(tried, read, strict=True)), dict(zip(codes, written, strict=True))
            )
            if found:
                differences[name] = found
            print(name, answers[name], {key: len(value) for key, value in found.items()})
    text = "".join(c if c.isprintable() or c == "\n" else f"\\u{ord(c):04x}" for c in _json(differences))
    FILE.write_text(text, encoding="utf-8")
    ANSWERS.write_text(_json(answers))


def _json(found: dict[str, dict[str, Any]]) -> str:
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def _column(connection: psycopg.Connection[Any], function: str, items: list[Any], type_: str, name: str) -> list[Any]:
    query = f"SELECT {function}(x, %s) FROM unnest(%s::{type_}[]) WITH ORDINALITY AS u(x, at) ORDER BY at"
    return [row[0] for row in connection.execute(query, (name, items))]


def _differences(name: str, codec: str, read: dict[bytes, str], written: dict[str, bytes | None]) -> dict[str, Any]:
    form = form_of(name).character
    other_read: dict[bytes, str | None] = {}
    for raw, answer in read.items():
        if raw[0] > 0x7F and form.fullmatch(raw):
            theirs, ours = answer[1:] if answer[0] == "=" else None, _tried(raw.decode, codec)
            if theirs != ours:
                other_read[raw] = theirs
    other_written = {c: raw for c, raw in written.items() if raw != _tried(c.encode, codec)}
    absent = [raw for raw, character in other_read.items() if character is None]
    implied = {raw.decode(codec) for raw in absent}
    both = {raw: c for raw, c in other_read.items() if c is not None and other_written.get(c) == raw}
    found: dict[str, Any] = {
        "both": _runs(both),
        "read": _runs({raw: c for raw, c in other_read.items() if c is not None and raw not in both}),
        "write": _runs({raw: c for c, raw in other_written.items() if raw is not None and raw not in both}),
        "absent": {first: len(run) for first, run in _runs(dict.fromkeys(absent, "-")).items()},
    }  # fmt: skip
    spelled_out = name == "EUC_KR"
    found["unwritten"] = "".join(
        c for c, raw in other_written.items() if raw is None and c not in implied
        and not (spelled_out and len(c.encode(codec)) > 2)
    )  # fmt: skip
    return {key: value for key, value in found.items() if value}


def _tried(convert: Any, codec: str) -> Any:
    try:
        return convert(codec)
    except UnicodeError:
        return None


def _runs(known: dict[bytes, str]) -> dict[str, str]:
    """Characters by the bytes of the first of a run, whose last byte is counted up."""
    runs: dict[str, str] = {}
    first, last = b"", b""
    for raw in sorted(known):
        if raw[:-1] != last[:-1] or not last or raw[-1] != last[-1] + 1:
            first = raw
        last = raw
        runs[first.hex()] = runs.get(first.hex(), "") + known[raw]
    return runs


if __name__ == "__main__":
    main(sys.argv[1])
