"""Encodings against what PostgreSQL 15 made of every character and of every byte sequence."""

from __future__ import annotations

import json
from functools import cache

import pytest

from ivm.errors import SqlError
from storage.encodings.encoding import CODECS, encoding_named
from storage.encodings.names import NAMES, name_of
from tests.answers.make_encodings import ANSWERS, characters, digest, sequences

KNOWN = json.loads(ANSWERS.read_text())


def read(name: str, raw: bytes) -> str:
    try:
        return "=" + encoding_named(name).text_of(raw)
    except SqlError as error:
        return f"{error.sqlstate} {error.message}"


def written(name: str, character: str) -> bytes | None:
    try:
        return encoding_named(name).bytes_of(character)
    except SqlError:
        return None


@pytest.mark.parametrize("name", CODECS)
def test_every_byte_sequence_is_read_as_by_postgres(name: str) -> None:
    assert digest(read(name, raw) for raw in sequences(name)) == KNOWN[name]["read"]


@cache
def all_written(name: str) -> list[bytes | None]:
    return [written(name, character) for character in characters(name)]


@pytest.mark.parametrize("name", CODECS)
def test_every_character_is_written_as_by_postgres(name: str) -> None:
    found = all_written(name)
    assert sum(raw is not None for raw in found) == KNOWN[name]["has"]
    assert digest(found) == KNOWN[name]["written"]


@pytest.mark.parametrize("name", CODECS)
def test_a_text_of_all_characters_is_its_characters_one_by_one(name: str) -> None:
    encoding = encoding_named(name)
    pairs = [(c, raw) for c, raw in zip(characters(name), all_written(name), strict=True) if raw is not None]
    text, raw = "".join(f"{c}x" for c, _ in pairs), b"".join(raw + b"x" for _, raw in pairs)
    assert encoding.bytes_of(text) == raw
    for start in range(0, len(pairs), 100):
        part = pairs[start : start + 100]
        one_by_one = [read(name, raw) for _, raw in part]
        if all(found[0] == "=" for found in one_by_one):
            text = "x".join(found[1:] for found in one_by_one)
            assert encoding.text_of(b"x".join(raw for _, raw in part)) == text


def test_characters_of_two_code_points_are_written_as_one() -> None:
    assert encoding_named("EUC_JIS_2004").bytes_of("か\u309ax\x80") == b"\xa4\xf7x\x80"
    assert encoding_named("SHIFT_JIS_2004").text_of(b"\x82\xf5\\") == "か\u309a\\"


@pytest.mark.parametrize(
    ("name", "raw", "state", "shown"),
    [
        ("LATIN1", b"a\0", "22021", "0x00"),
        ("SJIS", b"a\x81 b", "22021", "0x81 0x20"),
        ("SJIS", b"a\x81", "22021", "0x81"),
        ("EUC_JP", b"\x8f\xa1", "22021", "0x8f 0xa1"),
        ("WIN1252", b"\xe9\x81", "22P05", "0x81"),
    ],
)
def test_errors_name_the_bytes(name: str, raw: bytes, state: str, shown: str) -> None:
    with pytest.raises(SqlError) as caught:
        encoding_named(name).text_of(raw)
    if state == "22021":
        assert caught.value.message == f'invalid byte sequence for encoding "{name}": {shown}'
    else:
        message = f'character with byte sequence {shown} in encoding "{name}" has no equivalent in encoding "UTF8"'
        assert caught.value.message == message
    assert caught.value.sqlstate == state


def test_names_are_found_in_any_spelling() -> None:
    assert all(name_of(name) == name for name in NAMES)
    spelled = ("utf-8", "Unicode", "windows-1252", "WIN", "ISO 8859-1", "iso_8859_5", "win932", "shift_jis", "tcvn")
    assert [name_of(text) for text in spelled] == [
        "UTF8", "UTF8", "WIN1252", "WIN1251", "LATIN1", "ISO_8859_5", "SJIS", "SJIS", "WIN1258",
    ]  # fmt: skip
    assert name_of("foo") is name_of("é") is name_of("") is None
