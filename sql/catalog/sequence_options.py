"""Options of CREATE SEQUENCE, ALTER SEQUENCE and identity columns → a sequence's definition (Postgres's
init_params)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from ivm.errors import SqlError
from ivm.words import INT2, INT4, INT8, SqlType
from sql.catalog.catalog import Sequence

BOUNDS: Final = {INT2: 2**15, INT4: 2**31, INT8: 2**63}
"""For each type that a sequence may have, its greatest value plus one."""
_NAMES: Final = {INT2: "smallint", INT4: "integer", INT8: "bigint"}


@dataclass(frozen=True, slots=True)
class NoBound:
    """NO MINVALUE, NO MAXVALUE: use the type's own bound."""


@dataclass(frozen=True, slots=True)
class SequenceOptions:
    """The options as written; None if absent. ``type``: a type's name. ``owner``: the names after OWNED BY, () for
    NONE.

    ``restart`` is (None,) for RESTART without a value. ``name``: SEQUENCE NAME of an identity column.
    """

    type: str | None = None
    increment: int | None = None
    minimum: int | NoBound | None = None
    maximum: int | NoBound | None = None
    start: int | None = None
    restart: tuple[int | None] | None = None
    cache: int | None = None
    cycle: bool | None = None
    owner: tuple[str, ...] | None = None
    name: tuple[str, ...] | None = None


def sequence_of(options: SequenceOptions, type_: SqlType, storage: int) -> Sequence:
    """A new sequence of this type. Raises 22023."""
    increment = _increment(options, 1)
    up = increment > 0
    bound = BOUNDS[type_]
    minimum = options.minimum if isinstance(options.minimum, int) else 1 if up else -bound
    maximum = options.maximum if isinstance(options.maximum, int) else bound - 1 if up else -1
    start = options.start if options.start is not None else minimum if up else maximum
    made = Sequence(storage, type_, start, increment, minimum, maximum, _cache(options, 1), bool(options.cycle), start)
    return _checked(made)


def altered(
    sequence: Sequence, options: SequenceOptions, type_: SqlType | None, state: tuple[int, bool], storage: int
) -> Sequence:
    """The sequence after ALTER. ``state``: last_value and is_called. Raises 22023."""
    increment = _increment(options, sequence.increment)
    up = increment > 0
    old, new = BOUNDS[sequence.type], BOUNDS[type_ or sequence.type]
    minimum, maximum = sequence.minimum, sequence.maximum
    if type_ is not None:  # bounds that were the old type's become the new one's
        maximum = new - 1 if maximum == old - 1 else maximum
        minimum = -new if minimum == -old else minimum
    if options.minimum is not None:
        minimum = options.minimum if isinstance(options.minimum, int) else 1 if up else -new
    if options.maximum is not None:
        maximum = options.maximum if isinstance(options.maximum, int) else new - 1 if up else -1
    start = sequence.start if options.start is None else options.start
    value, called = state
    if options.restart is not None:
        value, called = start if options.restart[0] is None else options.restart[0], False
    cycle = sequence.cycle if options.cycle is None else options.cycle
    cache = _cache(options, sequence.cache)
    made = Sequence(storage, type_ or sequence.type, start, increment, minimum, maximum, cache, cycle, value, called)
    return _checked(replace(made, owner=sequence.owner, internal=sequence.internal))


def sequence_type(type_: SqlType, what: str) -> SqlType:
    """Raises 22023 for a type that sequences cannot have. ``what``: sequence, or identity column."""
    if type_ not in BOUNDS:
        raise SqlError("22023", f"{what} type must be smallint, integer, or bigint")
    return type_


def _increment(options: SequenceOptions, otherwise: int) -> int:
    if options.increment == 0:
        raise SqlError("22023", "INCREMENT must not be zero")
    return otherwise if options.increment is None else options.increment


def _cache(options: SequenceOptions, otherwise: int) -> int:
    if options.cache is not None and options.cache <= 0:
        raise SqlError("22023", f"CACHE ({options.cache}) must be greater than zero")
    return otherwise if options.cache is None else options.cache


def _checked(made: Sequence) -> Sequence:
    bound, name = BOUNDS[made.type], _NAMES[made.type]
    for word, value in (("MAXVALUE", made.maximum), ("MINVALUE", made.minimum)):
        if not -bound <= value < bound:
            raise SqlError("22023", f"{word} ({value}) is out of range for sequence data type {name}")
    if made.minimum >= made.maximum:
        raise SqlError("22023", f"MINVALUE ({made.minimum}) must be less than MAXVALUE ({made.maximum})")
    for word, value in (("START", made.start), ("RESTART", made.initial)):
        if value < made.minimum:
            raise SqlError("22023", f"{word} value ({value}) cannot be less than MINVALUE ({made.minimum})")
        if value > made.maximum:
            raise SqlError("22023", f"{word} value ({value}) cannot be greater than MAXVALUE ({made.maximum})")
    return made
