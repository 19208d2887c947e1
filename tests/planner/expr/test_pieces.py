"""Functions of long texts and bytes work by pieces, and give what they would give in one go."""

from __future__ import annotations

import base64
import hashlib
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivm.errors import SqlError
from ivm.stops import stoppable
from ivm.words import BYTEA
from planner.expr.functions import pieces
from planner.expr.functions.text import bytes as of_bytes
from planner.expr.functions.text import encoding, string
from storage.encodings.encoding import CODECS as OTHERS
from storage.encodings.encoding import encoding_named
from storage.types.text import parse_datum

TEXTS = st.text("aab =ä€𝄞\n", max_size=60)
PARTS = st.text("aab =ä€𝄞\n", max_size=9)
BYTES = st.binary(max_size=60)
NUMBERS = st.integers(-12, 70)


@pytest.fixture(autouse=True, scope="module")
def short() -> Any:
    """Everything is long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "PIECE", 4)
        patch.setattr(encoding, "_LINES", 57)
        yield


@given(TEXTS, PARTS, PARTS)
def test_searching_and_replacing(value: str, old: str, new: str) -> None:
    assert string.strpos(value, old) == value.find(old) + 1
    assert string.replace(value, old, new) == (value.replace(old, new) if old else value)
    for field in (*range(-9, 0), *range(1, 9)):
        split = value.split(old) if old else [value]
        at = field - 1 if field > 0 else len(split) + field
        assert string.split_part(value, old, field) == (split[at] if 0 <= at < len(split) else "")
    table = {ord(c): new[i] if i < len(new) else None for i, c in reversed(list(enumerate(old)))}
    assert string.translate(value, old, new) == value.translate(table)
    assert (string.ltrim(value, old), string.rtrim(value, old), string.btrim(value, old)) == (
        (value.lstrip(old), value.rstrip(old), value.strip(old)) if old else (value,) * 3
    )


@given(TEXTS, TEXTS, NUMBERS, NUMBERS)
def test_cutting_and_joining(value: str, other: str, start: int, count: int) -> None:
    assert string.left(value, count) == value[:count]
    assert string.right(value, count) == (value[max(len(value) - count, 0) :] if count >= 0 else value[-count:])
    assert string.substring_from(value, start) == value[max(start - 1, 0) :]
    if count >= 0:
        assert string.substring(value, start, count) == value[max(start - 1, 0) : max(start - 1 + count, 0)]
    assert string.concatenate(value, other) == value + other
    assert string.all_together(value, other, value) == value + other + value
    assert string.reverse(value) == value[::-1]
    assert string.repeat(value, count) == value * count
    padding = (other * 80)[: max(count - len(value), 0)] if other else ""
    assert string.lpad(value, count, other) == (padding + value if padding else value[: max(count, 0)])
    assert string.rpad(value, count, other) == (value + padding if padding else value[: max(count, 0)])
    if start > 0:
        assert string.overlay(value, other, start, 3) == value[: start - 1] + other + value[start + 2 :]


@given(st.text(max_size=40))
def test_letters(value: str) -> None:
    assert string.upper(value) == "".join(map(string._upper, value))
    assert string.lower(value) == "".join(c.lower()[0] for c in value)
    assert string.octet_length(value) == len(value.encode())
    assert string.md5(value) == hashlib.md5(value.encode()).hexdigest()


@given(BYTES, st.integers(0, 400))
def test_bytes(value: bytes, more: int) -> None:
    value += random.Random(more).randbytes(more)
    assert string.md5_bytes(value) == hashlib.md5(value).hexdigest()
    assert string.digest("sha512", pieces.pieces(value)) == hashlib.sha512(value).digest()
    assert of_bytes.bit_count(value) == int.from_bytes(value, "big").bit_count()
    if value:
        assert of_bytes.set_byte(value, len(value) // 2, 7)[len(value) // 2] == 7
    text = base64.b64encode(value).decode()
    assert encoding.encode(value, "hex") == value.hex()
    assert encoding.encode(value, "base64") == "\n".join(text[i : i + 76] for i in range(0, len(text), 76))
    for form in ("hex", "base64", "escape"):
        assert encoding.decode(encoding.encode(value, form), form) == value
    spread = " ".join(encoding.encode(value, "hex"))
    assert encoding.decode(spread, "hex") == value


CODECS = st.sampled_from(["UTF8", "LATIN1", "WIN1252", "SJIS", "GB18030", "EUC_JP", "BIG5", "SQL_ASCII"])


def written(text: str, name: str) -> bytes:
    """The bytes of a text, in one go."""
    return encoding_named(name).bytes_of(text) if name in OTHERS else text.encode()


def read(raw: bytes, name: str) -> str:
    """The text of bytes, in one go."""
    return encoding_named(name).text_of(raw) if name in OTHERS else raw.decode()


@given(st.text("aä€日本𝄞ｱ", max_size=30), CODECS)
def test_encodings(value: str, name: str) -> None:
    """Letters of several bytes are cut, too."""
    try:
        raw = written(value, name)
    except (SqlError, UnicodeEncodeError):
        with pytest.raises(SqlError, match="no equivalent"):
            of_bytes.convert_to(value, name)
        return
    assert of_bytes.convert_to(value, name) == raw
    assert of_bytes.convert_from(raw, name) == read(raw, name)
    assert of_bytes.length_in(raw, name) == len(read(raw, name))


@given(st.binary(max_size=12), CODECS)
def test_bytes_in_no_encoding(value: bytes, name: str) -> None:
    try:
        expected = None if b"\0" in value else read(value, name)
    except (SqlError, UnicodeDecodeError):
        expected = None
    if expected is not None:
        assert of_bytes.convert_from(value, name) == expected
    else:
        with pytest.raises(SqlError, match=r"invalid byte sequence|no equivalent"):
            of_bytes.convert_from(value, name)


@given(st.text("abx\\0127ä", max_size=30))
def test_escapes_are_read_as_in_one_go(text: str) -> None:
    try:
        expected = parse_datum(BYTEA, text)
    except SqlError:
        with pytest.raises(SqlError, match="invalid input syntax"):
            encoding.decode(text, "escape")
    else:
        assert encoding.decode(text, "escape") == expected


@given(st.text("abcA0+/= \n*", max_size=30))
def test_base64_is_read_as_in_one_go(text: str) -> None:
    plain = "".join(text.split())
    try:
        expected = None if "*" in plain else base64.b64decode(plain, validate=True)
    except ValueError:
        expected = None
    if expected is not None:
        assert encoding.decode(text, "base64") == expected
    else:
        with pytest.raises(SqlError, match="base64"):
            encoding.decode(text, "base64")


class After:
    """Set after so many questions."""

    def __init__(self, left: int) -> None:
        self.left = left

    def is_set(self) -> bool:
        self.left -= 1
        return self.left < 0


LONG = "abcdefghij" * 50
CALLS: dict[str, Callable[[], object]] = {
    "upper": lambda: string.upper(LONG),
    "octet_length": lambda: string.octet_length("ä" * 500),
    "btrim": lambda: string.btrim(" " * 500),
    "lpad": lambda: string.lpad("x", 500, "yz"),
    "substring": lambda: string.substring_from(LONG, 3),
    "strpos": lambda: string.strpos(LONG, "x"),
    "replace": lambda: string.replace(LONG, "bc", "xy"),
    "translate": lambda: string.translate(LONG, "abc", "xyz"),
    "reverse": lambda: string.reverse(LONG),
    "repeat": lambda: string.repeat("xy", 500),
    "||": lambda: string.concatenate(LONG, LONG),
    "md5": lambda: string.md5(LONG),
    "encode hex": lambda: encoding.encode(LONG.encode(), "hex"),
    "encode base64": lambda: encoding.encode(LONG.encode() * 9, "base64"),
    "encode escape": lambda: encoding.encode(LONG.encode(), "escape"),
    "decode hex": lambda: encoding.decode("ab" * 500, "hex"),
    "decode base64": lambda: encoding.decode("abcd" * 500, "base64"),
    "split_part": lambda: string.split_part(LONG, "x", 2),
}


@pytest.mark.parametrize("name", CALLS)
def test_each_can_be_ended(name: str) -> None:
    with pytest.raises(SqlError) as caught, stoppable(After(3)):
        CALLS[name]()
    assert caught.value.sqlstate == "57014"
