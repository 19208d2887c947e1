"""Identifiers as SQL text."""

from __future__ import annotations

import re
from typing import Final

from ivm.errors import SqlError

_SAFE_NAME: Final = re.compile(r"[a-z_][a-z0-9_]*\Z")
# Reserved words, and type and function names: ``quote_ident`` quotes them although their characters need no quotes.
_KEYWORD_TEXT: Final = (
    "all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create "
    "current_catalog current_date current_role current_time current_timestamp current_user default deferrable "
    "desc distinct do else end except false fetch for foreign from grant group having in initially intersect into "
    "lateral leading limit localtime localtimestamp not null offset on only or order placing primary references "
    "returning select session_user some symmetric table then to trailing true union unique user using variadic "
    "when where window with authorization binary collation concurrently cross current_schema freeze full ilike "
    "inner is isnull join left like natural notnull outer overlaps right similar tablesample verbose between "
    "bigint bit boolean char character coalesce dec decimal exists extract float greatest grouping inout int "
    "integer interval least national nchar none normalize nullif numeric out overlay position precision real row "
    "setof smallint substring time timestamp treat trim values varchar xmlattributes xmlconcat xmlelement "
    "xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable "
)
_KEYWORDS: Final = frozenset(_KEYWORD_TEXT.split())


def quoted_literal(text: str) -> str:
    """A string constant as SQL text."""
    return "'" + text.replace("'", "''") + "'"


def quoted(name: str) -> str:
    """An identifier as SQL text, quoted where Postgres's quote_identifier would quote it."""
    return name if _SAFE_NAME.match(name) and name not in _KEYWORDS else '"' + name.replace('"', '""') + '"'


def split_name(text: str) -> tuple[str | None, str]:
    """(schema, name) of ``schema.name`` as SQL text; unquoted parts are folded to lower case. 42602: not a name."""
    parts: list[str] = []
    rest = text.strip()
    while True:
        if rest.startswith('"'):
            end = rest.replace('""', "\1\1").find('"', 1)
            part, rest = rest[1:end].replace('""', '"'), rest[end + 1 :].lstrip() if end > 0 else "?"
        else:
            part, dot, tail = rest.partition(".")
            part, rest = part.strip().lower(), dot + tail
        if not part or (rest and not rest.startswith(".")):
            raise SqlError("42602", f'invalid name syntax: "{text}"' if part else "invalid name syntax")
        parts.append(part)
        if not rest:
            break
        rest = rest[1:].lstrip()
    if len(parts) > 3:
        raise SqlError("42601", "improper relation name (too many dotted names)")
    return (parts[-2] if len(parts) > 1 else None), parts[-1]
