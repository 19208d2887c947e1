"""Random JSON texts, of which many are odd: escapes, equal keys, white space, long numbers, deep nesting."""

from __future__ import annotations

from random import Random
from typing import Final

from storage.types.text_json import canonical_json, quoted

KEYS: Final = (
    "a", "b", "c", "aa", "", "0", "1", "-1", " 2", "é", "日本", "𝄞", 'say "x"', "back\\slash", "line\nbreak", "\x01",
    "\x7f", "abcdefgh", "abcdefghi", "{", "]", ",", ":", "null",
)  # fmt: skip
_NUMBERS: Final = (
    "0", "-0", "1", "1.0", "1.00", "-1.5", "12345678901234567", "999999999999999999", "9999999999999999999", "1e3",
    "1E-3", "1e400", "-0.0", "2147483647", "2147483648", "0.1", "123.456", "9007199254740993", "3.4e38", "1e39",
    "0.000000000000000001", f"0.{'1' * 40}", "32768", "-0.5", "2.5",
)  # fmt: skip
_WRITTEN: Final = (
    '""', '"a"', '"b"', '"\\u0041"', '"\\u00e9"', '"\\ud834\\udd1e"', '"\\/"', '"\\\\"', '"\\""',
    '"x\\"y\\\\z\\n\\t\\b\\f\\r"',
    '"\\u001f"', '"\\u007f"', '"0123456789 abcdefghij"', '"01234567\\\\"', '"{[,:]}"', '"null"', '"true"', '"1"',
    '"Grüße 日本語 𝄞"',
)  # fmt: skip
_UNSUITED: Final = ('"\\u0000"', '"\\ud834"', '"\\udd1e\\ud834"')
"""Strings of type json that are no text of SQL."""


def _string(random: Random, odd: bool) -> str:
    if odd and random.random() < 0.05:
        return random.choice(_UNSUITED)
    if random.random() < 0.6:
        return random.choice(_WRITTEN)
    return quoted("".join(random.choices('ab "\\\n\x02é𝄞7', k=random.randint(0, 20))))


def _key(random: Random, odd: bool) -> str:
    return _string(random, odd) if random.random() < 0.1 else quoted(random.choice(KEYS))


def _some(random: Random, odd: bool) -> str:
    """A value, most often an object with some of the first keys, or an array."""
    how = random.random()
    if how < 0.3:
        return _value(random, random.choice((0, 1, 2, 3)), odd)
    if how < 0.6:
        return f"[{', '.join(_value(random, 2, odd) for _ in range(random.randint(0, 4)))}]"
    pairs = [f"{quoted(key)}: {_value(random, 2, odd)}" for key in random.sample(KEYS[:6], random.randint(0, 6))]
    return f"{{{', '.join(pairs)}}}"


def _value(random: Random, depth: int, odd: bool) -> str:
    how, space = random.random(), random.choice((" ", "\n", "\t\r ")) if odd and random.random() < 0.3 else ""
    if how < 0.5 and depth:
        count = random.choice((0, 1, 2, 3, 6))
        if how < 0.3:
            pairs = (f"{_key(random, odd)}{space}:{space}{_value(random, depth - 1, odd)}" for _ in range(count))
            return f"{space}{{{space}{f'{space},{space}'.join(pairs)}{space}}}{space}"
        return f"[{space}{f'{space},{space}'.join(_value(random, depth - 1, odd) for _ in range(count))}]"
    if how < 0.65:
        return random.choice(("true", "false", "null"))
    return random.choice(_NUMBERS) if how < 0.8 else _string(random, odd)


def some_json(random: Random) -> str:
    """A datum of type json."""
    if random.random() < 0.02:
        return "[" * 60 + "1" + "]" * 60
    return _some(random, True)


def some_jsonb(random: Random) -> str:
    """A datum of type jsonb."""
    if random.random() < 0.02:
        return '{"a": ' * 60 + "1" + "}" * 60
    return canonical_json(_some(random, False))


def some_part(random: Random) -> str:
    """A jsonb that others may contain."""
    values = ("null", "true", "1", "1.0", "0.1", "2147483648", '"a"', '""', "{}", "[]", "[1]", f"{{{quoted('a')}: 1}}")
    keys = random.sample(KEYS[:4], random.choice((0, 1, 1, 1, 2)))
    return canonical_json(f"{{{', '.join(f'{quoted(key)}: {random.choice(values)}' for key in keys)}}}")
