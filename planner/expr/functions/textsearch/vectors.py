"""Functions of a tsvector's lexemes and places: strip, setweight, ts_filter, unnest, …"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ivm.errors import SqlError
from ivm.words import INT2, INT4, TEXT, TSVECTOR, Kind, SqlType
from planner.expr.context import Context
from planner.expr.functions.expansion import add, each_row
from planner.expr.functions.table import Raises, per_value
from planner.expr.functions.text.concat import flatten
from storage.types.textsearch.lexemes import WEIGHTS, checked
from storage.types.textsearch.vector import Vector, position, vector_of

_CHAR1: Final = SqlType(Kind.CHAR1)
_TEXTS: Final = SqlType(Kind.ARRAY, element=TEXT)
_CHARS: Final = SqlType(Kind.ARRAY, element=_CHAR1)
_NUMBERS: Final = SqlType(Kind.ARRAY, element=INT2)
Array = tuple[Any, ...]


def _items(array: Array) -> list[Any]:
    """The elements of an array of any dimensions."""
    return flatten(array, Kind.TEXT)


@per_value("strip", (TSVECTOR,), TSVECTOR, makes_null=False, raises=Raises.NEVER)
def strip(vector: Vector) -> Vector:
    """The lexemes alone."""
    return Vector(tuple((lexeme, ()) for lexeme, _ in vector))


@per_value("length", (TSVECTOR,), INT4, makes_null=False, raises=Raises.NEVER)
def length(vector: Vector) -> int:
    """How many lexemes it has."""
    return len(vector)


def _number(weight: str) -> int:
    """A weight's number. Raises 22023."""
    if weight.upper() not in ("A", "B", "C", "D"):
        raise SqlError("22023", f"unrecognized weight: {ord(weight) if weight else 0}")
    return WEIGHTS.index(weight.upper())


def _weighed(places: tuple[int, ...], number: int) -> tuple[int, ...]:
    return tuple(number << 14 | position(place) for place in places)


@per_value("setweight", (TSVECTOR, _CHAR1), TSVECTOR, makes_null=False)
def setweight(vector: Vector, weight: str) -> Vector:
    """All places with this weight."""
    number = _number(weight)
    return Vector(tuple((lexeme, _weighed(places, number)) for lexeme, places in vector))


@per_value("setweight", (TSVECTOR, _CHAR1, _TEXTS), TSVECTOR, makes_null=False)
def setweight_of(vector: Vector, weight: str, lexemes: Array) -> Vector:
    """The places of these lexemes with this weight."""
    number, chosen = _number(weight), frozenset(_items(lexemes))
    return Vector(tuple((lexeme, _weighed(p, number) if lexeme in chosen else p) for lexeme, p in vector))


@per_value("ts_delete", (TSVECTOR, TEXT), TSVECTOR, makes_null=False, raises=Raises.NEVER)
def ts_delete(vector: Vector, lexeme: str) -> Vector:
    """The vector without a lexeme."""
    return Vector(tuple(entry for entry in vector if entry[0] != lexeme))


@per_value("ts_delete", (TSVECTOR, _TEXTS), TSVECTOR, makes_null=False, raises=Raises.NEVER)
def ts_delete_all(vector: Vector, lexemes: Array) -> Vector:
    """The vector without these lexemes."""
    gone = frozenset(_items(lexemes))
    return Vector(tuple(entry for entry in vector if entry[0] not in gone))


@per_value("ts_filter", (TSVECTOR, _CHARS), TSVECTOR, makes_null=False)
def ts_filter(vector: Vector, weights: Array) -> Vector:
    """The places with one of these weights."""
    kept: set[int] = set()
    for weight in _items(weights):
        if weight is None:
            raise SqlError("22004", "weight array may not contain nulls")
        if weight.upper() not in ("A", "B", "C", "D"):
            raise SqlError("22023", f'unrecognized weight: "{weight}"')
        kept.add(WEIGHTS.index(weight.upper()))
    entries = ((lexeme, tuple(p for p in places if p >> 14 in kept)) for lexeme, places in vector)
    return Vector(tuple(entry for entry in entries if entry[1]))


@per_value("tsvector_to_array", (TSVECTOR,), _TEXTS, makes_null=False, raises=Raises.NEVER)
def tsvector_to_array(vector: Vector) -> Array:
    return tuple(lexeme for lexeme, _ in vector)


@per_value("array_to_tsvector", (_TEXTS,), TSVECTOR, makes_null=False)
def array_to_tsvector(lexemes: Array) -> Vector:
    """The lexemes without places. Raises 22004, 2200F, 54000."""
    items = _items(lexemes)
    if None in items:
        raise SqlError("22004", "lexeme array may not contain nulls")
    if "" in items:
        raise SqlError("2200F", "lexeme array may not contain empty strings")
    return vector_of((checked(lexeme), ()) for lexeme in items)


def _unnested(context: Context, types: tuple[SqlType, ...], vector: Vector) -> Sequence[tuple[Any, ...]]:
    """Each lexeme with its positions and weights, which are NULL without any."""
    return [
        (lexeme, tuple(map(position, places)) or None, tuple(WEIGHTS[p >> 14] for p in places) or None)
        for lexeme, places in vector
    ]


_COLUMNS: Final = (TEXT, _NUMBERS, _TEXTS)
add(
    "unnest", (TSVECTOR,), lambda _: _COLUMNS, each_row(lambda _: _COLUMNS, _unnested), nullable=True,
    names=("lexeme", "positions", "weights"), row=True,
)  # fmt: skip
