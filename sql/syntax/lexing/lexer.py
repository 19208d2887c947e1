"""Text → tokens, by PostgreSQL's lexical rules (scan.l): nested comments, dollar quotes, E'' strings, operators.

Positions are 0-based character offsets. Identifiers are folded to lower case unless quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple

from ivm.errors import SqlError
from ivm.stops import poll
from sql.syntax.lexing.constant_rows import rows_end


class TokenKind(Enum):
    """What a token is; WORD is an unquoted identifier or keyword, SYMBOL punctuation and operators, LIST many constants
    in parentheses after IN, ROWS many rows of constants after VALUES: they are not looked at one by one."""

    __hash__ = object.__hash__  # Enum's own is a function of Python

    WORD = "word"
    QUOTED = "quoted"
    NUMBER = "number"
    STRING = "string"
    BITS = "bits"
    PARAMETER = "parameter"
    SYMBOL = "symbol"
    LIST = "list"
    ROWS = "rows"
    END = "end"


class Token(NamedTuple):
    """``value``: the folded name, the string's contents, the number's text, the parameter's index, the symbol, or the
    text of a LIST or of ROWS."""

    kind: TokenKind
    value: str
    start: int
    end: int


_SKIP: Final = re.compile(r"(?:[ \t\r\n\f\v]+|--[^\r\n]*)+")
_TOKEN: Final = re.compile(
    r"""
    (?P<prefixed>[eEbBxXnN]'|[uU]&['"])
    |(?P<word>[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_$\x80-\U0010ffff]*)
    |(?P<number>(?:\d+(?:\.(?!\.)\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<string>')
    |(?P<quoted>")
    |(?P<parameter>\$\d+)
    |(?P<dollar>\$(?:[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_\x80-\U0010ffff]*)?\$)
    |(?P<symbol>::|:=|\.\.|[()\[\],;.:])
    |(?P<operator>[-+*/<>=~!@\#%^&|`?]+)
    """,
    re.VERBOSE,
)
MANY: Final = 32
"""From so many on, the constants after IN are one token, and are looked up rather than compared one by one."""
_PLAIN: Final = re.compile(
    r"""
    [\ \t\r\n\f\v]*+
    (?:(?P<word>[A-Za-z_][A-Za-z0-9_$]*+)(?![\x80-\U0010ffff'"&])
    |(?P<number>\d++(?:\.\d++)?+)(?![A-Za-z_.\x80-\U0010ffff])
    |'(?P<string>[^']*+)'(?!\s*+['-])
    |(?P<symbol>[(),;]|::|\.(?=[A-Za-z_])|(?:[-+*/<>=]|\|\||<=|>=|<>)(?![-+*/<>=~!@\#%^&|`?])))
    """,
    re.VERBOSE | re.ASCII,
)
"""The commonest tokens, each in one form of which nothing remains to be asked."""
_WORD_GROUP, _STRING_GROUP = 1, 3
_PLAIN_KINDS: Final = (TokenKind.END, TokenKind.WORD, TokenKind.NUMBER, TokenKind.STRING, TokenKind.SYMBOL)
"""By the number of the group."""
_NUMBERS: Final = r"-?(?:\d++(?:\.\d*+)?+|\.\d++)"
_LIST: Final = re.compile(
    rf"\(\s*+(?:{_NUMBERS}(?:\s*+,\s*+{_NUMBERS}){{{MANY - 1},}}+|'[^']*+'(?:\s*+,\s*+'[^']*+'){{{MANY - 1},}}+)\s*+\)",
    re.ASCII,
)
_QUOTED_BODY: Final = re.compile(r'(?:[^"]|"")*')
_STRING_BODY: Final = re.compile(r"(?:[^']|'')*")
_ESCAPE_BODY: Final = re.compile(r"(?:[^'\\]|''|\\.)*", re.DOTALL)
_CONTINUED: Final = re.compile(r"(?:[ \t\f\v]|--[^\r\n]*+)*+[\r\n](?:[ \t\r\n\f\v]++|--[^\r\n]*+)*+'")
"""Possessive throughout: backtracking over a long run of blanks after a string would take exponential time."""
_ESCAPE: Final = re.compile(
    r"\\(?:(?P<octal>[0-7]{1,3})|x(?P<hex>[0-9a-fA-F]{1,2})|u(?P<u4>[0-9a-fA-F]{4})|U(?P<u8>[0-9a-fA-F]{8})|(?P<char>.))",
    re.DOTALL,
)
_ESCAPED: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_UESCAPE: Final = re.compile(r"uescape(?![A-Za-z0-9_$\x80-\U0010ffff])", re.IGNORECASE)
_BLANKS: Final = " \t\r\n\f\v"
_KEEPS_SIGN: Final = frozenset("~!@#%^&|`?")


def tokenize(text: str, start: int = 0, end: int | None = None) -> list[Token]:
    """The tokens of ``text[start:end]`` and one END token. Raises 42601 for a lexical error."""
    stop = len(text) if end is None else end
    tokens: list[Token] = []
    at = start
    kinds, make = _PLAIN_KINDS, tuple.__new__  # that of a NamedTuple is a function of Python
    plain = _PLAIN.scanner(text, at, stop).match  # type: ignore[attr-defined]
    while True:
        found = plain()
        if found is not None and found.end() < stop:
            group = found.lastindex
            at, end = found.span(group)
            value = text[at:end]
            if group == _WORD_GROUP:
                value = value.lower()
            elif group == _STRING_GROUP:
                at, end = at - 1, end + 1
            token = make(Token, (kinds[group], value, at, end))
            long = _long(text, at, stop, tokens[-1]) if value == "(" and tokens else None
            if long is not None:
                token, plain = long, _PLAIN.scanner(text, long.end, stop).match  # type: ignore[attr-defined]
        else:
            at = _skip(text, at, stop)
            if at >= stop:
                tokens.append(Token(TokenKind.END, "", stop, stop))
                return tokens
            token = _next(text, at)
            if token.value == "(" and token.kind is TokenKind.SYMBOL and tokens:
                token = _long(text, at, stop, tokens[-1]) or token
            plain = _PLAIN.scanner(text, token.end, stop).match  # type: ignore[attr-defined]
        tokens.append(token)
        at = token.end
        if not len(tokens) & 4095:
            poll()


def _long(text: str, at: int, stop: int, before: Token) -> Token | None:
    """The LIST or the ROWS that begin here, if they do."""
    if before.kind is not TokenKind.WORD:
        return None
    if before.value == "in":
        match = _LIST.match(text, at)
        return None if match is None else Token(TokenKind.LIST, match.group(), at, match.end())
    end = rows_end(text, at, stop) if before.value == "values" else None
    return None if end is None else Token(TokenKind.ROWS, text[at:end], at, end)


def one_by_one(text: str, escapes: bool) -> Iterator[Token]:
    """The tokens without END, LIST and ROWS. ``escapes``: a backslash begins an escape in ordinary strings too, as with
    standard_conforming_strings off; U&'…' is refused then (0A000). Raises 42601, 22021, 22025."""
    at = 0
    while (at := _skip(text, at, len(text))) < len(text):
        if escapes and text.startswith(("U&'", "u&'"), at):
            detail = "String constants with Unicode escapes cannot be used when standard_conforming_strings is off."
            raise SqlError("0A000", "unsafe use of string constant with Unicode escapes", detail, position=at + 1)
        token = _next(text, at, escapes)
        yield token
        at = token.end


def spelled_out(token: Token) -> list[Token]:
    """The tokens of a LIST or of ROWS."""
    parts = [_symbol("(", token.start)]
    parts += [t._replace(start=t.start + token.start, end=t.end + token.start) for t in tokenize(token.value, 1)[:-1]]
    return parts


def _symbol(value: str, at: int) -> Token:
    return Token(TokenKind.SYMBOL, value, at, at + len(value))


def _skip(text: str, at: int, stop: int) -> int:
    while at < stop:
        match = _SKIP.match(text, at)
        if match is not None:
            at = match.end()
        elif text.startswith("/*", at):
            at = _comment(text, at)
        else:
            return at
    return at


def _comment(text: str, at: int) -> int:
    depth, start = 0, at
    while True:
        opening, closing = text.find("/*", at), text.find("*/", at)
        if closing < 0:
            raise SqlError("42601", f'unterminated /* comment at or near "{text[start:]}"', position=start + 1)
        if 0 <= opening < closing:
            depth, at = depth + 1, opening + 2
            continue
        depth, at = depth - 1, closing + 2
        if depth == 0:
            return at


def _next(text: str, at: int, escapes: bool = False) -> Token:
    match = _TOKEN.match(text, at)
    if match is None:
        raise SqlError("42601", f'syntax error at or near "{text[at]}"', position=at + 1)
    end = match.end()
    match match.lastgroup:
        case "word":
            return Token(TokenKind.WORD, _fold(match.group()), at, end)
        case "symbol":
            return Token(TokenKind.SYMBOL, match.group(), at, end)
        case "operator":
            return _operator(at, match.group())
        case "number":
            return _number(text, at, end)
        case "string":
            return _string_with_escapes(text, at, end) if escapes else _string(text, at, end)
        case "quoted":
            return _quoted(text, at, end)
        case "parameter":
            _check_junk(text, at, end, "parameter")
            return Token(TokenKind.PARAMETER, match.group()[1:], at, end)
        case "dollar":
            return _dollar(text, at, match.group())
        case _:
            return _prefixed(text, at, end, escapes)


def _fold(word: str) -> str:
    return word.lower() if word.isascii() else "".join(c.lower() if c.isascii() else c for c in word)


def _check_junk(text: str, at: int, end: int, what: str) -> None:
    """42601 if a letter follows right after a number or parameter."""
    if end < len(text) and (text[end].isalpha() or text[end] == "_"):
        junk = re.compile(r"\w+").match(text, end)
        shown = text[at : junk.end() if junk else end]
        raise SqlError("42601", f'trailing junk after {what} at or near "{shown}"', position=at + 1)


def _number(text: str, at: int, end: int) -> Token:
    _check_junk(text, at, end, "numeric literal")
    return Token(TokenKind.NUMBER, text[at:end], at, end)


def _operator(at: int, run: str) -> Token:
    """An operator ends before a comment, and ends in + or - only if it contains one of ~!@#%^&|`? (scan.l)."""
    for opener in ("--", "/*"):
        cut = run.find(opener)
        if cut >= 0:
            run = run[:cut]
    while len(run) > 1 and run[-1] in "+-" and not _KEEPS_SIGN.intersection(run):
        run = run[:-1]
    return Token(TokenKind.SYMBOL, "<>" if run == "!=" else run, at, at + len(run))


def _string(text: str, at: int, body: int) -> Token:
    parts: list[str] = []
    while True:
        match = _STRING_BODY.match(text, body)
        assert match is not None
        if match.end() >= len(text):
            raise SqlError("42601", f'unterminated quoted string at or near "{text[at:]}"', position=at + 1)
        parts.append(match.group().replace("''", "'"))
        end = match.end() + 1
        continued = _CONTINUED.match(text, end)
        if continued is None:
            return Token(TokenKind.STRING, "".join(parts), at, end)
        body = continued.end()


def _string_with_escapes(text: str, at: int, body: int) -> Token:
    parts: list[str] = []
    while True:
        match = _ESCAPE_BODY.match(text, body)
        assert match is not None
        if match.end() >= len(text) or text[match.end()] != "'":
            raise SqlError("42601", f'unterminated quoted string at or near "{text[at:]}"', position=at + 1)
        parts.append(match.group().replace("''", "'"))
        end = match.end() + 1
        continued = _CONTINUED.match(text, end)
        if continued is None:
            return Token(TokenKind.STRING, _unescaped(parts, at), at, end)
        body = continued.end()


def _quoted(text: str, at: int, body: int) -> Token:
    match = _QUOTED_BODY.match(text, body)
    assert match is not None
    if match.end() >= len(text):
        raise SqlError("42601", f'unterminated quoted identifier at or near "{text[at:]}"', position=at + 1)
    if not match.group():
        raise SqlError("42601", 'zero-length delimited identifier at or near """"', position=at + 1)
    return Token(TokenKind.QUOTED, match.group().replace('""', '"'), at, match.end() + 1)


def _dollar(text: str, at: int, tag: str) -> Token:
    end = text.find(tag, at + len(tag))
    if end < 0:
        raise SqlError("42601", f'unterminated dollar-quoted string at or near "{text[at:]}"', position=at + 1)
    return Token(TokenKind.STRING, text[at + len(tag) : end], at, end + len(tag))


def _prefixed(text: str, at: int, body: int, escapes: bool) -> Token:
    prefix = text[at].lower()
    if prefix == "n":
        return _string_with_escapes(text, at, body) if escapes else _string(text, at, body)
    if prefix == "e":
        return _string_with_escapes(text, at, body)
    if prefix == "u":
        return _unicode(text, _string(text, at, body) if text[body - 1] == "'" else _quoted(text, at, body))
    token = _string(text, at, body)
    return token._replace(kind=TokenKind.BITS, value=prefix + token.value)


def _unicode(text: str, token: Token) -> Token:
    """U&'…' or U&"…", perhaps with UESCAPE and its escape character. Raises 42601."""
    escape, end = "\\", token.end
    word_at = _skip(text, end, len(text))
    if _UESCAPE.match(text, word_at):
        at = _skip(text, word_at + len("UESCAPE"), len(text))
        if text[at : at + 1] != "'":
            raise SqlError("42601", "UESCAPE must be followed by a simple string literal", position=at + 1)
        literal = _string(text, at, at + 1)
        escape, end = literal.value, literal.end
        if len(escape) != 1 or escape in "0123456789abcdefABCDEF+'\"" or escape in _BLANKS:
            raise SqlError("42601", "invalid Unicode escape character", position=at + 1)
    return token._replace(value=_with_code_points(token.value, escape, token.start), end=end)


def _with_code_points(body: str, escape: str, at: int) -> str:
    parts: list[str] = []
    high = done = 0
    mark = re.escape(escape)
    pattern = re.compile(f"{mark}(?:({mark})|([0-9a-fA-F]{{4}})|\\+([0-9a-fA-F]{{6}})|)")
    for match in pattern.finditer(body):
        position = at + 4 + match.start()
        between = body[done : match.start()]
        done = match.end()
        digits = match[2] or match[3]
        code = int(digits, 16) if digits else 0
        if digits is None and match[1] is None:
            hint = "Unicode escapes must be \\XXXX or \\+XXXXXX."
            raise SqlError("42601", "invalid Unicode escape", hint=hint, position=position)
        if digits is not None and not 0 < code <= 0x10FFFF:
            raise SqlError("42601", "invalid Unicode escape value", position=position)
        second = 0xDC00 <= code < 0xE000
        if (high and (between or not second)) or (second and not high):
            raise SqlError("42601", "invalid Unicode surrogate pair", position=position)
        parts.append(between)
        if 0xD800 <= code < 0xDC00:
            high = code
            continue
        if second:
            code = 0x10000 + ((high - 0xD800) << 10) + (code - 0xDC00)
        high = 0
        parts.append(chr(code) if digits else escape)
    if high:
        raise SqlError("42601", "invalid Unicode surrogate pair", position=at + 4 + len(body))
    return "".join([*parts, body[done:]])


def _unescaped(bodies: list[str], at: int) -> str:
    """The contents of E'…', of one part or several: octal and hexadecimal escapes are bytes, Unicode ones characters.
    Raises 22021, 22025."""
    parts: list[bytes] = []
    for body in bodies:
        end = 0
        for match in _ESCAPE.finditer(body):
            parts += [body[end : match.start()].encode(), _escape(match, at)]
            end = match.end()
        parts.append(body[end:].encode())
    raw = b"".join(parts)
    try:
        text = raw.decode("utf-8", "surrogatepass").encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        if re.search(rb"\xed[\xa0-\xbf]", raw):
            raise SqlError("42601", "invalid Unicode surrogate pair", position=at + 1) from None
        raise SqlError("22021", 'invalid byte sequence for encoding "UTF8"', position=at + 1) from None
    if "\0" in text:
        raise SqlError("22021", 'invalid byte sequence for encoding "UTF8": 0x00', position=at + 1)
    return text


def _escape(match: re.Match[str], at: int) -> bytes:
    if match["octal"] is not None:
        return bytes([int(match["octal"], 8) & 0xFF])
    if match["hex"] is not None:
        return bytes([int(match["hex"], 16)])
    digits = match["u4"] or match["u8"]
    if digits is not None:
        if int(digits, 16) > 0x10FFFF:
            raise SqlError("42601", "invalid Unicode escape value", position=at + 1)
        return chr(int(digits, 16)).encode("utf-8", "surrogatepass")
    if match["char"] in "uU":
        raise SqlError(
            "22025", "invalid Unicode escape", hint="Unicode escapes must be \\uXXXX or \\UXXXXXXXX.", position=at + 1
        )
    return _ESCAPED.get(match["char"], match["char"]).encode()
