"""The functions and operators of text search: tsvector, tsquery and text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ivm.errors import SqlError, too_deep
from ivm.words import BOOL, INT4, JSON, JSONB, REGCONFIG, TEXT, TSQUERY, TSVECTOR, SqlType
from planner.expr.functions.table import CallSite, Raises, per_value, session_of
from planner.expr.functions.textsearch.dictionaries import CONFIGURATIONS, lexemes, vector_of_words
from planner.expr.functions.textsearch.headlines import headline
from planner.expr.functions.textsearch.json import flagged_of, headline_of, strings_of
from planner.expr.functions.textsearch.matching import matches
from planner.expr.functions.textsearch.queries import (
    phraseto_tsquery,
    plainto_tsquery,
    to_tsquery,
    websearch_to_tsquery,
)
from storage.types.textsearch.configuration import configuration
from storage.types.textsearch.lexemes import MOST_POSITION
from storage.types.textsearch.nodes import Node, Operation, Operator, Query, Term, joined, negation
from storage.types.textsearch.query_text import MOST_DISTANCE, distance_error, format_query
from storage.types.textsearch.vector import Vector, position

_MOST_PLACES: Final = 255


def known(oid: int) -> int:
    """A configuration. Raises 42704 for an oid that is none."""
    if oid not in CONFIGURATIONS:
        raise SqlError("42704", f"text search configuration with OID {oid} does not exist")
    return oid


def default_configuration(site: CallSite) -> int:
    """The session's default_text_search_config."""
    return configuration(session_of(site).setting("default_text_search_config") or "english")


per_value("get_current_ts_config", (), REGCONFIG, makes_null=False, needs_site=True, volatility="stable")(
    default_configuration
)


def configured(name: str, types: tuple[SqlType, ...], result: SqlType, function: Callable[..., Any]) -> None:
    """Adds a function whose first argument is a configuration, and the one that takes the session's."""

    def explicit(oid: int, *args: Any) -> Any:
        return _guarded(function, known(oid), *args)

    def by_default(site: CallSite, *args: Any) -> Any:
        return _guarded(function, default_configuration(site), *args)

    per_value(name, (REGCONFIG, *types), result, makes_null=False)(explicit)
    per_value(name, types, result, makes_null=False, needs_site=True, volatility="stable")(by_default)


def _guarded(function: Callable[..., Any], *args: Any) -> Any:
    try:
        return function(*args)
    except RecursionError:
        raise too_deep() from None


def _to_tsvector(oid: int, text: str) -> Vector:
    return vector_of_words(lexemes(text, oid)[0])


configured("to_tsvector", (TEXT,), TSVECTOR, _to_tsvector)
for _type in (JSON, JSONB):
    configured("to_tsvector", (_type,), TSVECTOR, strings_of(_type))
    configured(f"{_type.kind.value}_to_tsvector", (_type, JSONB), TSVECTOR, flagged_of(_type))
configured("to_tsquery", (TEXT,), TSQUERY, to_tsquery)
configured("plainto_tsquery", (TEXT,), TSQUERY, plainto_tsquery)
configured("phraseto_tsquery", (TEXT,), TSQUERY, phraseto_tsquery)
configured("websearch_to_tsquery", (TEXT,), TSQUERY, websearch_to_tsquery)
for _result, _headline in ((TEXT, headline), (JSON, headline_of(JSON)), (JSONB, headline_of(JSONB))):
    configured("ts_headline", (_result, TSQUERY), _result, _headline)
    configured("ts_headline", (_result, TSQUERY, TEXT), _result, _headline)


@per_value("@@", (TSVECTOR, TSQUERY), BOOL, makes_null=False)
@per_value("@@@", (TSVECTOR, TSQUERY), BOOL, makes_null=False)
def vector_matches(vector: Vector, query: Query) -> bool:
    """``vector @@ query``"""
    return bool(_guarded(matches, vector, query))


@per_value("@@", (TSQUERY, TSVECTOR), BOOL, makes_null=False)
@per_value("@@@", (TSQUERY, TSVECTOR), BOOL, makes_null=False)
def query_matches(query: Query, vector: Vector) -> bool:
    """``query @@ vector``"""
    return vector_matches(vector, query)


@per_value("@@", (TEXT, TSQUERY), BOOL, makes_null=False, needs_site=True, volatility="stable")
def text_matches(site: CallSite, text: str, query: Query) -> bool:
    """``text @@ query``, in the session's configuration"""
    return vector_matches(_to_tsvector(default_configuration(site), text), query)


@per_value("@@", (TEXT, TEXT), BOOL, makes_null=False, needs_site=True, volatility="stable")
def texts_match(site: CallSite, text: str, words: str) -> bool:
    """``text @@ words``, in the session's configuration"""
    return text_matches(site, text, plainto_tsquery(default_configuration(site), words))


@per_value("||", (TSVECTOR, TSVECTOR), TSVECTOR, makes_null=False, raises=Raises.NEVER)
def concatenated(left: Vector, right: Vector) -> Vector:
    """Both vectors; the right one's positions come after the left one's."""
    last = max((position(p) for _, places in left for p in places), default=0)
    entries = {lexeme: list(places) for lexeme, places in left}
    for lexeme, places in right:
        found = entries.setdefault(lexeme, [])
        for place in places:
            if len(found) >= _MOST_PLACES or (found and position(found[-1]) == MOST_POSITION):
                break
            found.append((place & ~0x3FFF) | min(position(place) + last, MOST_POSITION))
    return Vector(tuple((lexeme, tuple(entries[lexeme])) for lexeme in sorted(entries, key=str.encode)))


def _join(operator: Operator, left: Query, right: Query, distance: int = 0) -> Query:
    if left.root is None or right.root is None:
        return left or right
    return Query(joined(operator, left.root, right.root, distance))


@per_value("&&", (TSQUERY, TSQUERY), TSQUERY, makes_null=False, raises=Raises.NEVER)
def query_and(left: Query, right: Query) -> Query:
    """``left && right``"""
    return _join("&", left, right)


@per_value("||", (TSQUERY, TSQUERY), TSQUERY, makes_null=False, raises=Raises.NEVER)
def query_or(left: Query, right: Query) -> Query:
    """``left || right``"""
    return _join("|", left, right)


@per_value("!!", (TSQUERY,), TSQUERY, makes_null=False, raises=Raises.NEVER)
def query_not(query: Query) -> Query:
    """``!!query``"""
    return Query(None if query.root is None else negation(query.root))


@per_value("<->", (TSQUERY, TSQUERY), TSQUERY, makes_null=False, raises=Raises.NEVER)
@per_value("tsquery_phrase", (TSQUERY, TSQUERY), TSQUERY, makes_null=False, raises=Raises.NEVER)
def query_phrase(left: Query, right: Query) -> Query:
    """``left <-> right``"""
    return _join("<->", left, right, 1)


@per_value("tsquery_phrase", (TSQUERY, TSQUERY, INT4), TSQUERY, makes_null=False)
def query_phrase_apart(left: Query, right: Query, distance: int) -> Query:
    """``right`` follows ``left`` by that distance."""
    if not 0 <= distance <= MOST_DISTANCE:
        raise distance_error()
    return _join("<->", left, right, distance)


def _terms(query: Query) -> set[str]:
    return {node.lexeme for node in query.items() if isinstance(node, Term)}


@per_value("@>", (TSQUERY, TSQUERY), BOOL, makes_null=False, raises=Raises.NEVER)
def query_contains(left: Query, right: Query) -> bool:
    """Whether all lexemes of the right are in the left."""
    return _terms(right) <= _terms(left)


@per_value("<@", (TSQUERY, TSQUERY), BOOL, makes_null=False, raises=Raises.NEVER)
def query_contained(left: Query, right: Query) -> bool:
    """Whether all lexemes of the left are in the right."""
    return query_contains(right, left)


@per_value("numnode", (TSQUERY,), INT4, makes_null=False, raises=Raises.NEVER)
def numnode(query: Query) -> int:
    """How many lexemes and operators it has."""
    return len(query.items())


@per_value("querytree", (TSQUERY,), TEXT, makes_null=False, raises=Raises.NEVER)
def querytree(query: Query) -> str:
    """The part of a query that an index can look for; T: there is none."""
    if query.root is None:
        return ""
    kept = _without_negations(query.root)
    return "T" if kept is None else format_query(kept)


def _without_negations(node: Node) -> Node | None:
    if isinstance(node, Term):
        return node
    if node.left is None:
        return None
    left, right = _without_negations(node.left), _without_negations(node.right)
    if left is None or right is None:
        return None if node.operator == "|" else left or right
    return Operation(node.operator, right, left, node.distance)
