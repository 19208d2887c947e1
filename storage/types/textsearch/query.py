"""Type tsquery. A datum is a ``Query``."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from ivm.words import TEXT, Kind, SqlType
from storage.types.definition import BytesPart, FormatPart, FromBytesPart, Inside, TypeDefinition
from storage.types.text_style import TextStyle
from storage.types.textsearch.lexemes import checked
from storage.types.textsearch.nodes import Node, Operation, Operator, Query, Term, joined
from storage.types.textsearch.query_text import MOST_DISTANCE, QueryReader, as_written, format_query, operands

_CODES: Final[dict[Operator, int]] = {"!": 1, "&": 2, "|": 3, "<->": 4}
_OPERATORS: Final = {code: operator for operator, code in _CODES.items()}


def _parse(type_: SqlType, text: str, style: TextStyle, inside: Inside[str]) -> Query:
    return Query(QueryReader(text, as_written).read())


def _write(type_: SqlType, datum: Query, style: TextStyle, part: FormatPart) -> str:
    return "" if datum.root is None else format_query(datum.root)


def _item(node: Node, part: BytesPart) -> bytes:
    if isinstance(node, Term):
        return struct.pack("BBB", 1, node.weights, node.prefix) + part(TEXT, node.lexeme) + b"\0"
    distance = struct.pack(">H", node.distance) if node.operator == "<->" else b""
    return struct.pack("BB", 2, _CODES[node.operator]) + distance


def _send(type_: SqlType, datum: Query, part: BytesPart) -> bytes:
    sent = [_item(node, part) for node in datum.items()]
    return struct.pack(">i", len(sent)) + b"".join(sent)


class _Items:
    """Reads the items of the binary form."""

    def __init__(self, data: bytes, part: FromBytesPart) -> None:
        self.data = data
        self.part = part
        self.at = 4
        self.left = struct.unpack_from(">i", data)[0]

    def read(self) -> Node:
        """One node with its operands. Raises ValueError and IndexError."""
        self.left -= 1
        kind, code = self.data[self.at], self.data[self.at + 1]
        if kind == 1:
            end = self.data.index(b"\0", self.at + 3)
            lexeme, prefix = self.part(TEXT, self.data[self.at + 3 : end]), self.data[self.at + 2]
            if code > 15 or not lexeme:
                raise ValueError
            self.at = end + 1
            return Term(checked(lexeme), code, bool(prefix))
        operator, distance = _OPERATORS.get(code), 0
        if kind != 2 or operator is None:
            raise ValueError
        self.at += 2
        if operator == "<->":
            (distance,) = struct.unpack_from(">H", self.data, self.at)
            self.at += 2
            if distance > MOST_DISTANCE:
                raise ValueError
        right = self.read()
        return Operation("!", right) if operator == "!" else joined(operator, self.read(), right, distance)


def _unpack(type_: SqlType, data: bytes, part: FromBytesPart) -> Query:
    found = _Items(data, part)
    root = found.read() if found.left else None
    if found.left or found.at != len(data):
        raise ValueError
    return Query(root)


def _receive(type_: SqlType, data: bytes, inside: Inside[bytes]) -> Query:
    try:
        return _unpack(type_, data, inside.read)
    except RecursionError:
        raise ValueError from None


@cache
def _crc_table() -> tuple[int, ...]:
    def entry(number: int) -> int:
        for _ in range(8):
            number = number >> 1 ^ (0xEDB88320 if number & 1 else 0)
        return number

    return tuple(entry(n) for n in range(256))


def _crc(data: bytes) -> int:
    """The checksum by which Postgres compares lexemes first: CRC-32's table, shifted the other way."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _crc_table()[crc >> 24 ^ byte] ^ (crc << 8 & 0xFFFFFFFF)
    return crc ^ 0xFFFFFFFF


def order_of_operator(operator: Operator) -> int:
    """An operator's number: the greatest comes first."""
    return _CODES[operator]


def order_of_term(term: Term) -> bytes:
    """A term's place among others."""
    lexeme = term.lexeme.encode()
    return struct.pack(">I", 0x7FFFFFFF - _signed(_crc(lexeme))) + lexeme + b"\0"


def _order(node: Node) -> bytes:
    """A node's place among others: operators first, each comparison but that of lexemes from the greatest down."""
    if isinstance(node, Term):
        return b"\1" + order_of_term(node)
    parts = b"".join(map(_order, operands(node)))
    return struct.pack("BB", 0, 255 - _CODES[node.operator]) + parts + struct.pack(">H", 0xFFFF - node.distance)


def _signed(number: int) -> int:
    return number - (1 << 32) if number >> 31 else number


def _key(type_: SqlType, datum: Query, part: BytesPart) -> bytes:
    """As Postgres compares queries: by the number of items, by their size in memory, then the trees."""
    nodes = datum.items()
    size = sum(12 + (len(n.lexeme.encode()) + 1 if isinstance(n, Term) else 0) for n in nodes)
    return struct.pack(">II", len(nodes), size) + (b"" if datum.root is None else _order(datum.root))


def _plain(node: Node) -> Node:
    if isinstance(node, Term):
        return Term(node.lexeme)
    left = None if node.left is None else _plain(node.left)
    return Operation(node.operator, _plain(node.right), left, node.distance)


def _canonical(type_: SqlType, datum: Query, part: Callable[[SqlType, Any], Any]) -> Query:
    """Weights and prefix marks make no difference to ``=``."""
    return Query(None if datum.root is None else _plain(datum.root))


DEFINITION: Final = TypeDefinition(
    Kind.TSQUERY, "tsquery",
    "3615 tsquery -1 f b U f 0 3645 ts - i p 0",
    "3612:tsqueryin 3613:tsqueryout 3641:tsqueryrecv 3640:tsquerysend",
    _parse, _write, _send, _receive, _send, _unpack, key=_key, canonical=_canonical,
)  # fmt: skip
