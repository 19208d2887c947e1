"""Vector forms of functions that take json and jsonb apart: kernels read the text (``storage.json_columns``)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

import numpy as np

from ivm.rows import Mask, Words
from ivm.words import INT4, NUMERIC, TEXT, Kind
from planner.expr.functions.json.trees import index_of
from planner.expr.functions.table import CallSite, Made, VectorForm
from planner.expr.functions.text.columns import constant
from planner.expr.functions.text.concat import flatten
from planner.expr.functions.text.regex import TEXTS
from storage.json_columns import counts, having, inner, kinds, quoted, stepped, uncovered
from storage.text_columns import TextColumn, decimals, equal, interned, of_ids, of_value
from storage.types.codec import decode_one, float_to_word
from storage.types.float_columns import decimal_floats
from storage.types.numeric import INLINE_LIMIT, inline_words
from storage.types.text_json import format_json, load_json
from storage.types.text_json import quoted as quoted_text

_KINDS: Final = (b"null", b"boolean", b"number", b"string", b"array", b"object")
_LIMITS: Final = {Kind.INT2: 2**15, Kind.INT4: 2**31, Kind.INT8: 2**60}


def _is_loose(site: CallSite) -> bool:
    return site.args[0].kind is Kind.JSON


def _keys(site: CallSite, ids: Words) -> TextColumn:
    """Keys as they stand between the quotes of a document."""
    if constant(ids):
        return _key(site.context.dictionary.lookup_one(int(ids[0])).decode(), len(ids))
    return inner(quoted(of_ids(ids, site.context.dictionary)))


def _key(key: str, count: int) -> TextColumn:
    return of_value(quoted_text(key)[1:-1].encode(), count)


def _documents(site: CallSite, found: TextColumn) -> Made:
    """The values of type json or jsonb, NULL where there is nothing."""
    return _made(site, found, found.lengths == 0)


def _texts(site: CallSite, found: TextColumn) -> Made:
    """The values as texts, NULL where there is nothing or null."""
    absent = found.lengths == 0  # which a string without characters is not
    shown, null = uncovered(found)
    return _made(site, shown, null | absent)


def _made(site: CallSite, found: TextColumn, nulls: Mask) -> Made:
    rest = found.lengths < 0
    words, rows = np.zeros(len(found), np.int64), np.flatnonzero(~(nulls | rest))
    words[rows] = interned(site.context.dictionary, found.rows(rows))
    return Made(words, nulls, rest)


def _shown(as_text: bool, site: CallSite, found: TextColumn) -> Made:
    return _texts(site, found) if as_text else _documents(site, found)


def field(as_text: bool) -> VectorForm:
    """``->`` and ``->>``."""

    def form(site: CallSite, ids: Words, places: Words) -> Made:
        column, loose = of_ids(ids, site.context.dictionary), _is_loose(site)
        if site.args[1] == INT4:
            found = stepped(column, None, places, loose=loose, scalars=not loose)
        else:
            found = stepped(column, _keys(site, places), None, loose=loose)
        return _shown(as_text, site, found)

    return form


def path(as_text: bool) -> VectorForm:
    """``#>`` and ``#>>`` with a constant path."""

    def form(site: CallSite, ids: Words, paths: Words) -> Made | None:
        if not constant(paths):
            return None
        return _along(as_text, site, ids, flatten(decode_one(TEXTS, int(paths[0]), site.context.dictionary), Kind.TEXT))

    return form


def steps(as_text: bool) -> VectorForm:
    """The functions that take the path's constant steps one by one."""

    def form(site: CallSite, ids: Words, *keys: Words) -> Made | None:
        if not all(map(constant, keys)):
            return None
        return _along(as_text, site, ids, [decode_one(TEXT, int(key[0]), site.context.dictionary) for key in keys])

    return form


def _along(as_text: bool, site: CallSite, ids: Words, keys: list[str | None]) -> Made | None:
    if None in keys or not keys:
        return None
    found = of_ids(ids, site.context.dictionary)
    for key in keys:
        assert key is not None
        found = stepped(found, _key(key, len(ids)), index_of(key), loose=_is_loose(site))
    return _shown(as_text, site, found)


def type_of(site: CallSite, ids: Words) -> Made:
    names = site.context.dictionary.intern(list(_KINDS))
    return Made(names[kinds(of_ids(ids, site.context.dictionary))])


def array_length(site: CallSite, ids: Words) -> Made:
    found = counts(of_ids(ids, site.context.dictionary))
    return Made(found, None, found < 0)


def exists(site: CallSite, ids: Words, keys: Words) -> Made:
    return Made(having(of_ids(ids, site.context.dictionary), _keys(site, keys)))


def exists_of(every: bool) -> VectorForm:
    """``?|`` and ``?&`` with a constant array."""

    def form(site: CallSite, ids: Words, arrays: Words) -> Made | None:
        if not constant(arrays):
            return None
        column, found = of_ids(ids, site.context.dictionary), np.full(len(ids), int(every))
        for key in flatten(decode_one(TEXTS, int(arrays[0]), site.context.dictionary), Kind.TEXT):
            if key is not None:
                here = having(column, _key(key, len(ids)))
                found = found & here if every else found | here
        return Made(found)

    return form


def to_number(site: CallSite, ids: Words) -> Made | None:
    """Casts of jsonb that is a number of few digits."""
    mantissas, scales = decimals(of_ids(ids, site.context.dictionary))
    kind = site.result.kind
    if kind in (Kind.FLOAT4, Kind.FLOAT8):
        values, rest = decimal_floats(mantissas, scales)
        if kind is Kind.FLOAT4:
            values = values.astype(np.float32).astype(np.float64)
        return Made(float_to_word(values), None, rest)
    if kind is Kind.NUMERIC:
        if site.result != NUMERIC:
            return None
        return Made(inline_words(mantissas, scales), None, (scales < 0) | (np.abs(mantissas) >= INLINE_LIMIT))
    limit = _LIMITS[kind]
    return Made(mantissas, None, (scales != 0) | (mantissas < -limit) | (mantissas >= limit))


def to_bool(site: CallSite, ids: Words) -> Made:
    from ivm.kernels.json import BOOLEAN

    column = of_ids(ids, site.context.dictionary)
    return Made((column.lengths == 4).astype(np.int64), None, kinds(column) != BOOLEAN)


def contains(site: CallSite, ids: Words, parts: Words) -> Made | None:
    """``@>`` of a constant object of scalars and such objects. Equal numbers that are written otherwise are left to the
    function."""
    if not constant(parts):
        return None
    part = load_json(site.context.dictionary.lookup_one(int(parts[0])).decode())
    if not isinstance(part, dict):
        return None
    found, rest = np.ones(len(ids), np.bool_), np.zeros(len(ids), np.bool_)
    if not _within(of_ids(ids, site.context.dictionary), part, found, rest):
        return None
    return Made(found.astype(np.int64), None, rest)


def contained(site: CallSite, ids: Words, wholes: Words) -> Made | None:
    return contains(site, wholes, ids)


def _within(column: TextColumn, part: dict[str, Any], found: Mask, rest: Mask) -> bool:
    """Takes from ``found`` the rows whose value is no object with what the part has. False if it is not covered."""
    from ivm.kernels.json import NUMBER, OBJECT

    found &= kinds(column) == OBJECT
    for key, wanted in part.items():
        value = stepped(column, _key(key, len(column)), None, loose=False)
        if isinstance(wanted, list):
            return False
        if isinstance(wanted, dict):
            if not _within(value, wanted, found, rest):
                return False
            continue
        text = format_json(wanted)
        same = equal(value, of_value(text.encode(), len(column)))
        if isinstance(wanted, Decimal):
            # numbers that are equal have the same nearest double
            nearest, unknown = decimal_floats(*decimals(value))
            rest |= found & ~same & (kinds(value) == NUMBER) & (unknown | (nearest == float(wanted)))
        found &= same
    return True
