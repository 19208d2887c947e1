"""The form of a type's definition: one object with everything that the layers below SQL's functions know of a type.

A type made this way is one file beside this one and one entry in ``storage.types.definitions``; its member of ``Kind``
says that it exists. Storage, text and binary forms, order, oids and ``pg_type`` follow from the definition, and so do
comparison operators, casts from and to strings, arrays, keys, indexes and COPY.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ivm.errors import SqlError
from ivm.words import Kind, SqlType
from storage.types.text_style import TextStyle

Form = TypeVar("Form", str, bytes)


@dataclass(frozen=True, slots=True)
class Inside(Generic[Form]):
    """How values inside another are read (a range's bounds): ``read`` their form, ``key`` to compare them."""

    read: Callable[[SqlType, Form], Any]
    key: Callable[[SqlType, Any], bytes]


FormatPart = Callable[[SqlType, Any], str]
BytesPart = Callable[[SqlType, Any], bytes]
FromBytesPart = Callable[[SqlType, bytes], Any]
Text = Callable[[SqlType, str, TextStyle, Inside[str]], Any]
Receiver = Callable[[SqlType, bytes, Inside[bytes]], Any]
Writer = Callable[[SqlType, Any, TextStyle, FormatPart], str]
Packer = Callable[[SqlType, Any, BytesPart], bytes]
Unpacker = Callable[[SqlType, bytes, FromBytesPart], Any]


@dataclass(frozen=True, slots=True)
class TypeInfo:
    """A row of pg_type: ``length`` is typlen (-1 variable), ``category`` typcategory, ``label`` the SQL name."""

    kind: Kind
    oid: int
    array_oid: int
    length: int
    category: str
    label: str
    preferred: bool = False
    alignment: str = "i"


@dataclass(frozen=True, slots=True)
class TypeDefinition:
    """A type.

    ``catalog``: its rows of pg_type in the format of ``sql.system.type_data``, without the arrays'; several for a
    family that shares a kind. ``functions``: ``oid:name`` of the functions that they name. ``label``: the SQL name,
    what ``format_type`` prints. ``names``: more spellings of it.

    ``parse`` and ``write``: its text, with Postgres's errors. ``send`` and ``receive``: its binary form; ``receive``
    raises ValueError, IndexError or struct.error for bytes of a wrong form. ``pack`` and ``unpack``: what is stored,
    without ids of other values; not used for a type stored as a DIRECT word, whose datum is that int.

    ``key``: bytes that memcmp orders as the values compare; None: the stored bytes (or the word) themselves.
    ``canonical``: the representative of a datum's equality class, if equal values may differ.
    ``modified``: the type with modifiers, given the spelling and the numbers in parentheses; None: it takes none.
    ``extremes``: whether Postgres has min and max of it. ``by_settings``: its text form depends on settings.
    ``cast_text``: its text when it is cast to a string, if that is not ``write``'s.
    ``compared``: it has an equality and an order in SQL.
    ``family``: the built-in types of a kind that has several, told apart by ``SqlType.named``.
    """

    kind: Kind
    label: str
    catalog: str
    functions: str
    parse: Text
    write: Writer
    send: Packer
    receive: Receiver
    pack: Packer | None = None
    unpack: Unpacker | None = None
    names: tuple[str, ...] = ()
    key: Packer | None = None
    canonical: Callable[[SqlType, Any, Callable[[SqlType, Any], Any]], Any] | None = None
    modified: Callable[[str, Sequence[int]], SqlType] | None = None
    extremes: bool = False
    by_settings: bool = False
    cast_text: Callable[[Any], str] | None = None
    compared: bool = True
    family: tuple[SqlType, ...] = ()

    @property
    def info(self) -> TypeInfo:
        """What clients are told of the type."""
        oid, _, length, _, _, category, preferred, _, array, _, _, alignment, *_ = self.catalog.split()
        return TypeInfo(self.kind, int(oid), int(array), int(length), category, self.label, preferred == "t", alignment)

    @property
    def is_byte_ordered(self) -> bool:
        """Whether its stored bytes compare as its values do, and equal values have equal bytes."""
        return self.pack is not None and self.key is None and self.canonical is None


def invalid_input(label: str, text: str) -> SqlError:
    """22P02 for text that is no value of the type."""
    return SqlError("22P02", f'invalid input syntax for type {label}: "{text}"')


def stored_as_is(type_: SqlType, datum: Any, part: BytesPart) -> bytes:
    """``pack`` and ``send`` of a type whose datum is the bytes."""
    return bytes(datum)


def read_as_is(type_: SqlType, data: bytes, part: FromBytesPart) -> bytes:
    """``unpack`` of a type whose datum is the bytes."""
    return data
