"""Postgres's regular expressions, compiled with their options."""

from __future__ import annotations

import re
from functools import lru_cache

from ivm.errors import SqlError, unsupported
from storage.types.regex.matching import Regex
from storage.types.regex.program import MOST_CHARACTERS, too_complex
from storage.types.regex.translate import Translator, leaf


@lru_cache(4096)
def regex(pattern: str, flags: str = "") -> Regex:
    """Compiles an expression. ``flags``: any of i, c, n, m, s, p, w, x, q, t (not g). Raises 2201B if malformed."""
    ignore, lines, stops, expanded, literal = False, False, False, False, False
    if pattern.startswith("***="):
        pattern, literal = pattern[4:], True
    elif pattern.startswith("***:"):
        pattern = pattern[4:]
    embedded = re.match(r"\(\?([a-z]+)\)", pattern)
    if embedded and not literal:
        flags, pattern = flags + embedded[1], pattern[embedded.end() :]
    for flag in flags:
        match flag:
            case "i":
                ignore = True
            case "c":
                ignore = False
            case "n" | "m":
                lines = stops = True
            case "s":
                lines = stops = False
            case "p":
                lines, stops = False, True
            case "w":
                lines, stops = True, False
            case "x":
                expanded = True
            case "t":
                expanded = False
            case "q":
                literal = True
            case "e" | "b":
                raise unsupported(f'the regular expression option "{flag}"')
            case _:
                raise SqlError("22023", f'invalid regular expression option: "{flag}"')
    if len(pattern) > MOST_CHARACTERS:
        raise too_complex()
    translator = Translator(pattern, lines, stops, expanded)
    tokens = [leaf(re.escape(c)) for c in pattern] if literal else translator.run()
    try:
        compiled = re.compile("".join(t.text for t in tokens), re.DOTALL | (re.IGNORECASE if ignore else 0))
    except (re.error, OverflowError) as error:
        raise SqlError("2201B", f"invalid regular expression: {_reason(str(error))}") from None
    except RecursionError:
        raise too_complex() from None
    return Regex(compiled, tuple(tokens), translator.alternatives, translator.greedy and translator.lazy)


def _reason(message: str) -> str:
    if "parenthes" in message or "subpattern" in message:
        return "parentheses () not balanced"
    if "repeat" in message:
        return "quantifier operand invalid"
    if "group reference" in message:
        return "invalid backreference number"
    if "range" in message:
        return "invalid character range"
    return message
