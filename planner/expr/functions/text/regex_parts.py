"""regexp_count, regexp_instr, regexp_substr and regexp_replace with a start, an occurrence and a subexpression."""

from __future__ import annotations

from itertools import islice

from ivm.errors import SqlError
from ivm.words import INT4, TEXT
from planner.expr.functions.table import per_value
from planner.expr.functions.text.regex import expanded
from storage.types.regex.expressions import regex
from storage.types.regex.matching import Match


def _positive(name: str, number: int, least: int = 1) -> None:
    if number < least:
        raise SqlError("22023", f'invalid value for parameter "{name}": {number}')


def _matches(value: str, pattern: str, start: int, flags: str, name: str) -> list[Match]:
    """The matches from a start, counted from 1, on."""
    _positive("start", start)
    if "g" in flags:
        raise SqlError("22023", f'{name} does not support the "global" option')
    return list(regex(pattern, flags).find_all(value, start - 1))


@per_value("regexp_count", (TEXT, TEXT), INT4)
@per_value("regexp_count", (TEXT, TEXT, INT4), INT4)
@per_value("regexp_count", (TEXT, TEXT, INT4, TEXT), INT4)
def regexp_count(value: str, pattern: str, start: int = 1, flags: str = "") -> int:
    return len(_matches(value, pattern, start, flags, "regexp_count()"))


@per_value("regexp_instr", (TEXT, TEXT), INT4)
@per_value("regexp_instr", (TEXT, TEXT, INT4), INT4)
@per_value("regexp_instr", (TEXT, TEXT, INT4, INT4), INT4)
@per_value("regexp_instr", (TEXT, TEXT, INT4, INT4, INT4), INT4)
@per_value("regexp_instr", (TEXT, TEXT, INT4, INT4, INT4, TEXT), INT4)
@per_value("regexp_instr", (TEXT, TEXT, INT4, INT4, INT4, TEXT, INT4), INT4)
def regexp_instr(
    value: str, pattern: str, start: int = 1, n: int = 1, endoption: int = 0, flags: str = "", group: int = 0
) -> int:
    """Where the n-th match (or its subexpression) starts, or with ``endoption`` 1 what follows it; 0 without one."""
    _positive("start", start)
    _positive("n", n)
    if endoption not in (0, 1):
        raise SqlError("22023", f'invalid value for parameter "endoption": {endoption}')
    _positive("subexpr", group, 0)
    found = next(islice(_matches(value, pattern, start, flags, "regexp_instr()"), n - 1, None), None)
    if found is None or group > found.group_count:
        return 0
    return found.span(group)[endoption] + 1


@per_value("regexp_substr", (TEXT, TEXT), TEXT)
@per_value("regexp_substr", (TEXT, TEXT, INT4), TEXT)
@per_value("regexp_substr", (TEXT, TEXT, INT4, INT4), TEXT)
@per_value("regexp_substr", (TEXT, TEXT, INT4, INT4, TEXT), TEXT)
@per_value("regexp_substr", (TEXT, TEXT, INT4, INT4, TEXT, INT4), TEXT)
def regexp_substr(value: str, pattern: str, start: int = 1, n: int = 1, flags: str = "", group: int = 0) -> str | None:
    _positive("start", start)
    _positive("n", n)
    _positive("subexpr", group, 0)
    found = next(islice(_matches(value, pattern, start, flags, "regexp_substr()"), n - 1, None), None)
    return None if found is None or group > found.group_count else found[group]


@per_value("regexp_replace", (TEXT, TEXT, TEXT, INT4), TEXT)
@per_value("regexp_replace", (TEXT, TEXT, TEXT, INT4, INT4), TEXT)
@per_value("regexp_replace", (TEXT, TEXT, TEXT, INT4, INT4, TEXT), TEXT)
def regexp_replace_from(value: str, pattern: str, new: str, start: int, n: int | None = None, flags: str = "") -> str:
    """Replaces the n-th match from a start on; all for 0. Without ``n``: the first."""
    _positive("start", start)
    _positive("n", 1 if n is None else n, 0)
    # the flag g has no effect beside an occurrence
    matches = _matches(value, pattern, start, flags.replace("g", ""), "regexp_replace()")
    wanted = matches if n == 0 else matches[(n or 1) - 1 : n or 1]
    out: list[str] = []
    at = 0
    for found in wanted:
        out += (value[at : found.start], expanded(new, found.whole, found.groups()))
        at = found.end
    return "".join(out) + value[at:]
