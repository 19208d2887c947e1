"""Types of columns, and the layout of rows as int64 words.

Every SQL value is one int64 *word*. Its codec depends on the type's storage:

- ``DIRECT``: an order-preserving integer. bool 0/1; int2/4/8, oid and reg* as they are; a label's place in its enum;
  date in days and timestamp, timestamptz, time in microseconds (dates and timestamps since 2000-01-01, the reserved
  words ``NEGATIVE_INFINITY`` and ``POSITIVE_INFINITY`` for the infinities); numeric(p, s) with p <= 18 and 0 <= s
  <= 18 as value * 10**s; float4 and float8 as the order-preserving image of the double's bits (``float_to_word``).
- ``NUMERIC``: any other numeric, tagged: an even word holds it inline,
  ``mantissa << 6 | scale << 1`` with 0 <= scale <= 31; an odd word is a dictionary id.
- ``INTERNED``: a dictionary id (always odd) of the value's bytes.

A row is ``len(columns)`` words and, when any column is nullable, one null word for every 64 columns at the end:
bit ``i % 64`` of null word ``i // 64`` is set when column i is NULL, and the column's own word is then 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from typing import Any, Final

NEGATIVE_INFINITY: Final = -(2**63)
POSITIVE_INFINITY: Final = 2**63 - 1
_DIRECT_DIGITS: Final = 18


class Kind(Enum):
    """The families of types; a value is Postgres's internal name of the type."""

    __hash__ = object.__hash__  # Enum's own is a function of Python, called for each look-up by type

    BOOL = "bool"
    INT2 = "int2"
    INT4 = "int4"
    INT8 = "int8"
    FLOAT4 = "float4"
    FLOAT8 = "float8"
    NUMERIC = "numeric"
    TEXT = "text"
    VARCHAR = "varchar"
    BPCHAR = "bpchar"
    NAME = "name"
    CHAR1 = "char"
    BYTEA = "bytea"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    TIMESTAMPTZ = "timestamptz"
    INTERVAL = "interval"
    UUID = "uuid"
    JSON = "json"
    JSONB = "jsonb"
    JSONPATH = "jsonpath"
    TSVECTOR = "tsvector"
    TSQUERY = "tsquery"
    OID = "oid"
    REGCLASS = "regclass"
    REGTYPE = "regtype"
    REGPROC = "regproc"
    REGNAMESPACE = "regnamespace"
    REGPROCEDURE = "regprocedure"
    REGOPER = "regoper"
    REGOPERATOR = "regoperator"
    REGROLE = "regrole"
    REGCOLLATION = "regcollation"
    REGCONFIG = "regconfig"
    REGDICTIONARY = "regdictionary"
    TIMETZ = "timetz"
    INET = "inet"
    CIDR = "cidr"
    MACADDR = "macaddr"
    MACADDR8 = "macaddr8"
    POINT = "point"
    BIT = "bit"
    VARBIT = "varbit"
    ENUM = "enum"
    RANGE = "range"
    MULTIRANGE = "multirange"
    ARRAY = "array"
    UNKNOWN = "unknown"
    RECORD = "record"
    VOID = "void"


NAMED_OIDS: Final = (
    Kind.REGCLASS, Kind.REGTYPE, Kind.REGPROC, Kind.REGNAMESPACE, Kind.REGPROCEDURE, Kind.REGOPER, Kind.REGOPERATOR,
    Kind.REGROLE, Kind.REGCOLLATION,
)  # fmt: skip
"""Oids whose text is the name that the catalog has for them."""


class Storage(Enum):
    """How a value becomes a word."""

    DIRECT = "direct"
    NUMERIC = "numeric"
    INTERNED = "interned"


_DIRECT: Final = frozenset(
    {
        Kind.BOOL, Kind.INT2, Kind.INT4, Kind.INT8, Kind.FLOAT4, Kind.FLOAT8, Kind.CHAR1, Kind.DATE, Kind.TIME,
        Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.TIMETZ, Kind.OID, *NAMED_OIDS, Kind.REGCONFIG, Kind.REGDICTIONARY,
        Kind.ENUM, Kind.VOID,
    }
)  # fmt: skip


@dataclass(slots=True, eq=False, repr=False)
class NamedType:
    """What tells a type from others of its kind: of a range, composite or domain, built in or a user's.

    Invariant: types are the same if their oids are. ``shown`` is the name as SQL text.
    """

    oid: int
    array_oid: int
    name: str
    shown: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedType) and self.oid == other.oid

    def __hash__(self) -> int:
        return self.oid

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.oid})"


@dataclass(slots=True, eq=False, repr=False)
class RangeType(NamedType):
    """A range type. ``multirange``: its multirange type. ``discrete``: a value's neighbours are known, so that ranges
    have the canonical form ``[)``."""

    multirange: NamedType
    discrete: bool = False


@dataclass(slots=True, eq=False, repr=False)
class EnumType:
    """An enum: labels in an order. A label's position is the word of its values and never changes; positions leave gaps
    for labels inserted later.

    Invariant: a server has one object for each enum, so equality is identity, and its labels are current.
    """

    oid: int
    array_oid: int
    name: str
    shown: str
    """The name as SQL text."""
    labels: dict[int, str] = field(default_factory=dict)
    """Labels by word, in order."""
    words: dict[str, int] = field(default_factory=dict)

    def hold(self, labels: Iterable[tuple[int, str]]) -> None:
        """Sets the labels, in order."""
        self.labels = dict(labels)
        self.words = {label: word for word, label in self.labels.items()}

    def __repr__(self) -> str:
        return f"EnumType({self.oid})"


@dataclass(frozen=True, slots=True)
class SqlType:
    """A column's type: its kind and what narrows it.

    ``precision``: digits of a numeric, characters of varchar/bpchar, fractional digits of times; ``scale`` of a
    numeric, or of an interval its fields (``storage/types/interval_fields.py``); ``element`` of an array. None means
    unconstrained. ``fields``: names and types of a row (RECORD), empty for rows of any type; ``enum``: of an ENUM.
    ``subtype``: of a RANGE's bounds; of a MULTIRANGE, its range type. ``named``: which range, multirange or composite
    type it is. ``domain``: the domain that its values belong to, as the catalog has it; ``zero_based``: of int2vector
    and oidvector, arrays whose subscripts begin at 0. Types are the same with and without these two.
    """

    kind: Kind
    precision: int | None = None
    scale: int | None = None
    element: SqlType | None = None
    fields: tuple[tuple[str, SqlType], ...] = ()
    enum: EnumType | None = None
    subtype: SqlType | None = None
    named: NamedType | None = None
    domain: Any = field(default=None, compare=False, repr=False)
    zero_based: bool = field(default=False, compare=False, repr=False)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, SqlType):
            return NotImplemented
        return (
            self.kind is other.kind
            and self.precision == other.precision
            and self.scale == other.scale
            and self.element == other.element
            and self.fields == other.fields
            and self.enum == other.enum
            and self.subtype == other.subtype
            and self.named == other.named
        )

    def __hash__(self) -> int:
        return hash((self.kind, self.precision, self.scale, self.element))

    @property
    def plain(self) -> SqlType:
        """The type without modifiers."""
        if self.precision is None and self.element is None:
            return self
        element = None if self.element is None else self.element.plain
        return replace(self, precision=None, scale=None, element=element)

    @property
    def unmodified(self) -> SqlType:
        """The type without modifiers, but a domain with those that belong to it."""
        if self.domain is not None or (self.precision is None and self.element is None):
            return self
        element = None if self.element is None else self.element.unmodified
        return replace(self, precision=None, scale=None, element=element)

    @property
    def storage(self) -> Storage:
        """How this type's values become words."""
        if self.kind is Kind.NUMERIC:
            digits = self.precision
            direct = digits is not None and digits <= _DIRECT_DIGITS and 0 <= (self.scale or 0) <= _DIRECT_DIGITS
            return Storage.DIRECT if direct else Storage.NUMERIC
        return Storage.DIRECT if self.kind in _DIRECT else Storage.INTERNED

    @property
    def has_equality_class(self) -> bool:
        """Whether equal values may have different words (1.0 and 1.00, -0 and 0, '1 mon' and '30 days')."""
        return self.storage is Storage.NUMERIC or self.kind in (
            Kind.FLOAT4, Kind.FLOAT8, Kind.INTERVAL, Kind.BPCHAR, Kind.JSONB, Kind.TSQUERY,
        ) or any(part is not None and part.has_equality_class for part in (self.element, self.subtype)) or any(
            type_.has_equality_class for _, type_ in self.fields
        )  # fmt: skip


@cache
def simple_type(kind: Kind, precision: int | None = None, scale: int | None = None) -> SqlType:
    """The type of a kind and its modifiers: always the same object, so that equal types are mostly seen to be so at
    once."""
    return SqlType(kind, precision, scale)


BOOL: Final = simple_type(Kind.BOOL)
INT2: Final = simple_type(Kind.INT2)
INT4: Final = simple_type(Kind.INT4)
INT8: Final = simple_type(Kind.INT8)
FLOAT4: Final = simple_type(Kind.FLOAT4)
FLOAT8: Final = simple_type(Kind.FLOAT8)
NUMERIC: Final = simple_type(Kind.NUMERIC)
TEXT: Final = simple_type(Kind.TEXT)
VARCHAR: Final = simple_type(Kind.VARCHAR)
NAME: Final = simple_type(Kind.NAME)
CHAR1: Final = simple_type(Kind.CHAR1)
BYTEA: Final = simple_type(Kind.BYTEA)
DATE: Final = simple_type(Kind.DATE)
TIME: Final = simple_type(Kind.TIME)
TIMESTAMP: Final = simple_type(Kind.TIMESTAMP)
TIMESTAMPTZ: Final = simple_type(Kind.TIMESTAMPTZ)
INTERVAL: Final = simple_type(Kind.INTERVAL)
UUID: Final = simple_type(Kind.UUID)
JSON: Final = simple_type(Kind.JSON)
JSONB: Final = simple_type(Kind.JSONB)
JSONPATH: Final = simple_type(Kind.JSONPATH)
TSVECTOR: Final = simple_type(Kind.TSVECTOR)
TSQUERY: Final = simple_type(Kind.TSQUERY)
REGCONFIG: Final = simple_type(Kind.REGCONFIG)
REGDICTIONARY: Final = simple_type(Kind.REGDICTIONARY)
OID: Final = simple_type(Kind.OID)
REGCLASS: Final = simple_type(Kind.REGCLASS)
REGTYPE: Final = simple_type(Kind.REGTYPE)
REGPROC: Final = simple_type(Kind.REGPROC)
REGPROCEDURE: Final = simple_type(Kind.REGPROCEDURE)
REGOPER: Final = simple_type(Kind.REGOPER)
REGOPERATOR: Final = simple_type(Kind.REGOPERATOR)
REGROLE: Final = simple_type(Kind.REGROLE)
REGCOLLATION: Final = simple_type(Kind.REGCOLLATION)
REGNAMESPACE: Final = simple_type(Kind.REGNAMESPACE)
UNKNOWN: Final = simple_type(Kind.UNKNOWN)
VOID: Final = simple_type(Kind.VOID)


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A column of rows in flight: its type and whether it may be NULL."""

    type: SqlType
    nullable: bool = True


Schema = tuple[ColumnType, ...]


def null_words(schema: Schema) -> int:
    """How many null words a row of this schema ends with."""
    for column in schema:
        if column.nullable:
            return (len(schema) + 63) // 64
    return 0


def row_width(schema: Schema) -> int:
    """How many words a row of this schema has, null words included; one zero word stands for a row without columns,
    since no matrix may be 0 wide."""
    return max(len(schema) + null_words(schema), 1)
