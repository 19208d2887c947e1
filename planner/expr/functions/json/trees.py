"""json and jsonb under one interface, for the functions that both types have.

A *document* is a value inside a datum: a Python value of ``storage.types.text_json`` for jsonb, its text for json.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final, Protocol

from ivm.words import JSON, JSONB, Kind, SqlType
from storage.types.json_spans import array_texts, decoded, member_texts
from storage.types.text_json import format_json, load_json

ABSENT: Final = object()
"""What a path that leads nowhere finds."""
_KINDS: Final = {"{": "object", "[": "array", '"': "string", "t": "boolean", "f": "boolean", "n": "null"}


_INDEX: Final = re.compile(r"\s*([+-]?[0-9]+)\Z")


def index_of(key: str) -> int | None:
    """The array index that a step of a path is; None where it is none."""
    found = _INDEX.match(key)
    index = int(found[1]) if found else None
    return index if index is not None and -(2**31) <= index < 2**31 else None


class Tree(Protocol):
    """What the documents of a type consist of."""

    type: SqlType
    prefix: str
    """How the names of the type's functions begin."""

    def load(self, datum: str) -> Any:
        """The document of a whole datum."""
        ...

    def datum(self, document: Any) -> str:
        """A document as a datum of the type."""
        ...

    def text(self, document: Any) -> str | None:
        """A document as SQL's text: a string's characters, NULL for null."""
        ...

    def kind(self, document: Any) -> str:
        """object, array, string, number, boolean or null."""
        ...

    def items(self, document: Any) -> list[Any]:
        """The elements of an array."""
        ...

    def pairs(self, document: Any) -> list[tuple[str, Any]]:
        """The keys and values of an object, in the type's order."""
        ...

    def member(self, document: Any, key: str) -> Any:
        """An object's value of a key, ``ABSENT`` without it."""
        ...


class _JsonTree:
    type = JSON
    prefix = "json"

    def load(self, datum: str) -> str:
        return datum.strip(" \t\n\r")

    def datum(self, document: str) -> str:
        return document

    def text(self, document: str) -> str | None:
        if document[0] == '"':
            return decoded(document)
        return None if document == "null" else document

    def kind(self, document: str) -> str:
        return _KINDS.get(document[0], "number")

    def items(self, document: str) -> list[str]:
        return array_texts(document)

    def pairs(self, document: str) -> list[tuple[str, str]]:
        return member_texts(document)

    def member(self, document: str, key: str) -> Any:
        return dict(member_texts(document)).get(key, ABSENT)


class _JsonbTree:
    type = JSONB
    prefix = "jsonb"

    def load(self, datum: str) -> Any:
        return load_json(datum)

    def datum(self, document: Any) -> str:
        return format_json(document)

    def text(self, document: Any) -> str | None:
        if document is None or isinstance(document, str):
            return document
        return format_json(document)

    def kind(self, document: Any) -> str:
        return kind_of(document)

    def items(self, document: list[Any]) -> list[Any]:
        return document

    def pairs(self, document: dict[str, Any]) -> list[tuple[str, Any]]:
        return list(document.items())

    def member(self, document: dict[str, Any], key: str) -> Any:
        return document.get(key, ABSENT)


JSON_TREE: Final[Tree] = _JsonTree()
JSONB_TREE: Final[Tree] = _JsonbTree()
TREES: Final = (JSON_TREE, JSONB_TREE)


def tree_of(type_: SqlType) -> Tree:
    """The tree of type json or jsonb."""
    return JSON_TREE if type_.kind is Kind.JSON else JSONB_TREE


def kind_of(value: Any) -> str:
    """The kind of a jsonb value, as ``jsonb_typeof`` names it."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case Decimal():
            return "number"
        case list():
            return "array"
        case _:
            return "object"
