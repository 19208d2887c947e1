"""What text search does with a text, step by step: ts_token_type, ts_parse, ts_lexize and ts_debug."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ivm.errors import SqlError, unsupported
from ivm.words import INT4, OID, REGCONFIG, REGDICTIONARY, TEXT, Kind, SqlType
from planner.expr.context import Context
from planner.expr.functions.expansion import add, each_row
from planner.expr.functions.table import ArgumentType, per_value
from planner.expr.functions.textsearch.dictionaries import dictionary_of, looked_up
from planner.expr.functions.textsearch.tokens import IGNORED, TYPES, all_tokens
from storage.types.textsearch.configuration import ENGLISH_STEMS, SIMPLE_WORDS, configuration

_TEXTS: Final = SqlType(Kind.ARRAY, element=TEXT)
_DICTIONARIES: Final = SqlType(Kind.ARRAY, element=REGDICTIONARY)
_PARSER: Final = 3722
"""The oid of the only parser."""
Rows = Sequence[tuple[Any, ...]]


def _check_parser(parser: str | int) -> None:
    if parser not in ("default", "pg_catalog.default", _PARSER):
        if isinstance(parser, str):
            raise SqlError("42704", f'text search parser "{parser}" does not exist')
        raise SqlError("42704", f"text search parser with OID {parser} does not exist")


@per_value("ts_lexize", (REGDICTIONARY, TEXT), _TEXTS)
def ts_lexize(dictionary: int, word: str) -> tuple[str, ...]:
    """The lexemes of a word; none for a stop word."""
    if dictionary not in (SIMPLE_WORDS, ENGLISH_STEMS):
        raise SqlError("42704", f"text search dictionary with OID {dictionary} does not exist")
    found = looked_up(dictionary, word)
    return () if found is None else (found,)


def _token_types(context: Context, types: tuple[SqlType, ...], parser: str | int) -> Rows:
    _check_parser(parser)
    return TYPES


def _parsed(context: Context, types: tuple[SqlType, ...], parser: str | int, text: str) -> Rows:
    _check_parser(parser)
    return [(token.type, token.text) for token in all_tokens(text)]


def _debug(context: Context, types: tuple[SqlType, ...], oid: int, text: str) -> Rows:
    rows: list[tuple[Any, ...]] = []
    for token in all_tokens(text):
        _, alias, description = TYPES[token.type - 1]
        if token.type in IGNORED:
            rows.append((alias, description, token.text, (), None, None))
        else:
            dictionary = dictionary_of(token, oid)
            found = looked_up(dictionary, token.text)
            lexemes = () if found is None else (found,)
            rows.append((alias, description, token.text, (dictionary,), dictionary, lexemes))
    return rows


def _debug_by_default(context: Context, types: tuple[SqlType, ...], text: str) -> Rows:
    name = context.asked().setting("default_text_search_config") or "english"
    return _debug(context, types, configuration(name), text)


def _refused(context: Context, types: tuple[SqlType, ...], *args: object) -> Rows:
    raise unsupported("ts_stat", "Query unnest(vector) for the lexemes, and count them.")


def _add(name: str, args: tuple[ArgumentType, ...], columns: dict[str, SqlType], compute: Callable[..., Rows]) -> None:
    types = tuple(columns.values())
    made = each_row(lambda _: types, compute)
    add(name, args, lambda _: types, made, nullable=True, names=tuple(columns), row=True)


_PARTS: Final = {"tokid": INT4, "token": TEXT}
_TYPES: Final = {"tokid": INT4, "alias": TEXT, "description": TEXT}
_STEPS: Final = {
    "alias": TEXT, "description": TEXT, "token": TEXT, "dictionaries": _DICTIONARIES, "dictionary": REGDICTIONARY,
    "lexemes": _TEXTS,
}  # fmt: skip
_COUNTS: Final = {"word": TEXT, "ndoc": INT4, "nentry": INT4}
for _type in (TEXT, OID):
    _add("ts_token_type", (_type,), _TYPES, _token_types)
    _add("ts_parse", (_type, TEXT), _PARTS, _parsed)
_add("ts_debug", (REGCONFIG, TEXT), _STEPS, _debug)
_add("ts_debug", (TEXT,), _STEPS, _debug_by_default)
_add("ts_stat", (TEXT,), _COUNTS, _refused)
_add("ts_stat", (TEXT, TEXT), _COUNTS, _refused)
