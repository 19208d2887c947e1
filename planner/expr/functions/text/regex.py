"""LIKE, regular expressions, and functions that split or search text by them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ivm.errors import SqlError
from ivm.stops import polled
from ivm.words import BOOL, TEXT, Kind, SqlType
from planner.expr.functions.table import per_value
from planner.expr.functions.text import columns
from storage.types.like import like_pattern
from storage.types.regex.expressions import regex
from storage.types.regex.matching import Regex
from storage.types.regex.similar import similar_substring, similar_to_regex

BPCHAR: Final = SqlType(Kind.BPCHAR)
"""Patterns see the padding of character(n), which its cast to text removes."""
TEXTS: Final = SqlType(Kind.ARRAY, element=TEXT)


@per_value("~~", (BPCHAR, TEXT), BOOL, makes_null=False)
@per_value("~~", (TEXT, TEXT), BOOL, makes_null=False, vector=columns.like(True))
@per_value("like", (TEXT, TEXT), BOOL, vector=columns.like(True))
def like(value: str, pattern: str) -> bool:
    return matches_like(value, pattern, False)


def matches_like(value: str, pattern: str, ignore_case: bool) -> bool:
    """Whether a text matches a LIKE pattern, whose escape is a backslash. Raises 22025."""
    return like_pattern(pattern, "\\", ignore_case).matches(value)


@per_value("!~~", (BPCHAR, TEXT), BOOL, makes_null=False)
@per_value("!~~", (TEXT, TEXT), BOOL, makes_null=False, vector=columns.like(False))
@per_value("notlike", (TEXT, TEXT), BOOL, vector=columns.like(False))
def not_like(value: str, pattern: str) -> bool:
    return not matches_like(value, pattern, False)


@per_value("~~*", (BPCHAR, TEXT), BOOL, makes_null=False)
@per_value("~~*", (TEXT, TEXT), BOOL, makes_null=False)
def ilike(value: str, pattern: str) -> bool:
    return matches_like(value, pattern, True)


@per_value("!~~*", (BPCHAR, TEXT), BOOL, makes_null=False)
@per_value("!~~*", (TEXT, TEXT), BOOL, makes_null=False)
def not_ilike(value: str, pattern: str) -> bool:
    return not matches_like(value, pattern, True)


@per_value("like_escape", (TEXT, TEXT), TEXT)
def like_escape(pattern: str, escape: str) -> str:
    """Rewrites a pattern to use backslash as its escape, as LIKE without ESCAPE expects."""
    if len(escape) > 1:
        raise SqlError("22025", "invalid escape string", hint="Escape string must be empty or one character.")
    if escape == "\\":
        return pattern
    out: list[str] = []
    letters = iter(pattern)
    for c in letters:
        if c == escape:
            out.append("\\" + next(letters, ""))
        else:
            out.append("\\\\" if c == "\\" else c)
    return "".join(out)


def _matching(name: str, compiled: Callable[[str], Regex], wanted: bool) -> None:
    """Adds an operator that tests whether a regular expression matches, or (``wanted`` false) does not."""
    for type_ in (TEXT, BPCHAR):
        per_value(name, (type_, TEXT), BOOL, makes_null=False)(
            lambda value, pattern: compiled(pattern).matches(value) is wanted
        )


_matching("~", regex, True)
_matching("!~", regex, False)
_matching("~*", lambda pattern: regex(pattern, "i"), True)
_matching("!~*", lambda pattern: regex(pattern, "i"), False)


@per_value("similar_to_escape", (TEXT, TEXT), TEXT)
@per_value("similar_to_escape", (TEXT,), TEXT)
@per_value("similar_escape", (TEXT,), TEXT)
def similar_to_escape(pattern: str, escape: str = "\\") -> str:
    """The regular expression for a SIMILAR TO pattern: ``a SIMILAR TO b`` is ``a ~ similar_to_escape(b)``."""
    return similar_to_regex(pattern, escape)


per_value("substring", (TEXT, TEXT, TEXT), TEXT)(similar_substring)


def _compiled(pattern: str, flags: str, name: str, several: bool = False) -> tuple[Regex, bool]:
    """The compiled expression, and whether the flag g was given."""
    if "g" in flags and not several:
        hint = f"Use the {'regexp_matches' if name == 'regexp_match()' else 'other'} function instead."
        raise SqlError("22023", f'{name} does not support the "global" option', hint=hint)
    return regex(pattern, flags.replace("g", "")), "g" in flags


@per_value("substring", (TEXT, TEXT), TEXT)
def substring_regex(value: str, pattern: str) -> str | None:
    found = regex(pattern).find(value)
    if found is None:
        return None
    return found[1] if found.group_count else found[0]


@per_value("regexp_match", (TEXT, TEXT, TEXT), TEXTS)
@per_value("regexp_match", (TEXT, TEXT), TEXTS)
def regexp_match(value: str, pattern: str, flags: str = "") -> tuple[str | None, ...] | None:
    found = _compiled(pattern, flags, "regexp_match()")[0].find(value)
    if found is None:
        return None
    return found.groups() or (found[0],)


def all_matches(value: str, pattern: str, flags: str = "") -> list[tuple[str | None, ...]]:
    """regexp_matches: the groups of the first match, or of every match with the flag g."""
    compiled, every = _compiled(pattern, flags, "regexp_matches()", True)
    if not every:
        found = compiled.find(value)
        return [found.groups() or (found[0],)] if found else []
    return [found.groups() or (found[0],) for found in compiled.find_all(value)]


@per_value("regexp_replace", (TEXT, TEXT, TEXT, TEXT), TEXT)
@per_value("regexp_replace", (TEXT, TEXT, TEXT), TEXT)
def regexp_replace(value: str, pattern: str, new: str, flags: str = "") -> str:
    if flags[:1].isdigit():
        raise SqlError(
            "22023",
            f'invalid regular expression option: "{flags[0]}"',
            hint="If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer "
            "explicitly.",
        )
    compiled, every = _compiled(pattern, flags, "regexp_replace()", True)
    out: list[str] = []
    at = 0
    for found in compiled.find_all(value):
        out += (value[at : found.start], expanded(new, found.whole, found.groups()))
        at = found.end
        if not every:
            break
    return "".join(out) + value[at:]


def expanded(template: str, whole: str, groups: tuple[str | None, ...]) -> str:
    """A replacement text, with \\& and \\1 to \\9 for what matched."""
    out: list[str] = []
    letters = iter(template)
    for c in letters:
        if c != "\\":
            out.append(c)
            continue
        following = next(letters, "\\")
        if following == "&":
            out.append(whole)
        elif following.isdigit() and following != "0":
            number = int(following)
            out.append((groups[number - 1] or "") if number <= len(groups) else "")
        elif following == "\\":
            out.append("\\")
        else:
            out.append("\\" + following)
    return "".join(out)


@per_value("regexp_like", (TEXT, TEXT, TEXT), BOOL)
@per_value("regexp_like", (TEXT, TEXT), BOOL)
def regexpmatches_like(value: str, pattern: str, flags: str = "") -> bool:
    return _compiled(pattern, flags, "regexpmatches_like()")[0].matches(value)


def regexp_split(value: str, pattern: str, flags: str = "") -> list[str]:
    """The parts between matches. An empty match at either end or right after a match is ignored."""
    compiled = _compiled(pattern, flags, "regexp_split_to_array()")[0]
    parts: list[str] = []
    at = 0
    for found in compiled.find_all(value):
        if found.start == found.end and found.start in (at if parts or at else 0, len(value)):
            continue
        parts.append(value[at : found.start])
        at = found.end
    parts.append(value[at:])
    return parts


@per_value("regexp_split_to_array", (TEXT, TEXT, TEXT), TEXTS)
@per_value("regexp_split_to_array", (TEXT, TEXT), TEXTS)
def regexp_split_to_array(value: str, pattern: str, flags: str = "") -> tuple[str, ...]:
    return tuple(regexp_split(value, pattern, flags))


@per_value("string_to_array", (TEXT, TEXT, TEXT), TEXTS, strict=False)
@per_value("string_to_array", (TEXT, TEXT), TEXTS, strict=False)
def string_to_array(value: str | None, delimiter: str | None, null: str | None = None) -> tuple[str | None, ...] | None:
    if value is None:
        return None
    if value == "":
        return ()
    if delimiter is None:
        parts = list(value)
    else:
        parts = value.split(delimiter) if delimiter else [value]
    return tuple(None if null is not None and part == null else part for part in polled(parts))
