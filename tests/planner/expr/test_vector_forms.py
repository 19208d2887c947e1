"""Vector forms against the functions that they are forms of: the same values and errors, on random and extreme rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from random import Random
from typing import Final

import numpy as np
import pytest

from ivm.rows import Vector
from ivm.words import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    JSON,
    JSONB,
    NEGATIVE_INFINITY,
    NUMERIC,
    POSITIVE_INFINITY,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    Kind,
    SqlType,
)
from planner.expr.context import Context
from planner.expr.evaluate import vector_forms
from planner.expr.evaluate.calls import Run, call_runner
from planner.expr.functions.internal.membership import MEMBER
from planner.expr.functions.json.building import OF_ROW
from planner.expr.functions.library import FUNCTIONS, find_cast
from planner.expr.functions.table import (
    ANY,
    ANYARRAY,
    ANYCOMPATIBLEARRAY,
    ANYELEMENT,
    ANYNONARRAY,
    Function,
)
from planner.expr.rows import RowBatch, constant_vector
from storage.dictionary import Dictionary
from storage.types.arrays import bounded
from storage.types.calendar import DAY, END_TIMESTAMP, HOUR, MAX_DATE, MIN_DATE, MIN_TIMESTAMP
from storage.types.codec import encode
from tests.support.json_texts import KEYS, some_json, some_jsonb, some_part
from tests.support.numerics import some_long_numeric
from tests.support.profiles import scaled

ROUNDS: Final = scaled(6)
SHOWN: Final = (
    TEXT, DATE, TIMESTAMP, TIMESTAMPTZ, INT2, INT4, INT8, NUMERIC, SqlType(Kind.NUMERIC, 9, 2),
    SqlType(Kind.NUMERIC, 5, 0), SqlType(Kind.NUMERIC, 3, 5), SqlType(Kind.NUMERIC, 2, -3), INTERVAL, BOOL, FLOAT4,
    FLOAT8,
)  # fmt: skip
FORMS: Final = [f for f in FUNCTIONS.values() if f.vector is not None and f.key != OF_ROW]
CASTS: Final = [
    (source, target)
    for source, target in [(t, TEXT) for t in SHOWN]
    + [(TEXT, t) for t in (INT2, INT4, INT8, NUMERIC, FLOAT4, FLOAT8)]
    + [(FLOAT4, NUMERIC), (FLOAT8, NUMERIC)]
    + [(JSONB, t) for t in (INT2, INT4, INT8, NUMERIC, FLOAT4, FLOAT8, BOOL, TEXT)]
    + [(NUMERIC, t) for t in (FLOAT4, FLOAT8)]
    + [(SqlType(Kind.NUMERIC, 9, 2), t) for t in (FLOAT4, FLOAT8)]
    if source != target
]
TEXTS: Final = (
    "", "a", "ab", "aa", "aaa", " ", "  a b  ", "x y z", ",", "a,b,,c", "%", "a%", "%a%b%", "\\%", "a\\", "_", "Grüße",
    "ß", "日本語", "𝄞", "a𝄞b", "é" * 9, "ABC xyz", "ÀB", "ΣΑΣ", "İ", "ŉ", "ǆ", "ᾳ",
    "-0", "0.00", "-0.0", "16777217", "9007199254740993", "0.1", "123.456789012345678", "1e999",
    "2024-02-29", "2023-02-29", "0000-01-01", "2024-13-01", "20240229", "2024-02-29 23:59:59", "2024/02/29", "2024-2-9",
    "-12", "+7", "1.50", "-0.001", " 5 ", "1e3", ".5",
    "5.", "--1", "9" * 18, "9" * 19, "NaN",
    
    "item 12 of the list", "12", "0", "\x7f\x01", "a" * 4094,
    "b" * 4095, "ä" * 2048, "abcdefgh", "abcdefgé",
)  # fmt: skip
NAMES: Final = (
    "microseconds", "milliseconds", "second", "minute", "hour", "day", "week", "month", "quarter", "year", "decade",
    "dow", "isodow", "doy", "epoch", "YEARS", "century", "isoyear", "julian", "timezone", "nothing", "UTC",
    "Europe/Berlin", "America/New_York", "CET", "MSK", "<+03>-3", "EST5EDT", "Asia/Kathmandu", "Africa/Monrovia",
)  # fmt: skip
"""Fields and time zones."""
TEMPLATES: Final = (
    "YYYY-MM-DD HH24:MI:SS", "Day, DD Month YYYY", "FMDay FMDDth FMMonth", "MS US FF1 FF3 FF6", "HH12:MI:SS AM P.M.",
    "IYYY-IW-ID IDDD", "J Q WW W D DDD", "Dy mon RM rm", "CC AD bc", "SSSS Y,YYY YY", "TZ OF", "", "plain",
    '"YYYY" YYYY',
    "YYYYth ddTH FXMM",
)  # fmt: skip
STAMP_TEMPLATES: Final = (
    "YYYY-MM-DD", "YYYY-MM-DD HH24:MI:SS", "YYYYMMDD", "YYYY/MM", "YYYY", "DD.MM.YYYY", "HH24:MI:SS",
    "YYYY-MM-DDTHH24:MI", "FXYYYY-MM-DD", "YYYY-MM-DD HH:MI:SS", "YYYY-MM-MM", "Mon DD YYYY", "FMYYYY-MM-DD",
    "-YYYY-MM-DD", "YYYY--MM--DD", "",
)  # fmt: skip
STAMP_TEXTS: Final = (
    "2024-02-29", "2023-02-29", "2024-02-29 23:59:59", "2024-03-31 02:30:00", "2024-10-27 02:30:00", "20240229",
    "2024/12", "0000-01-01", "0001-01-01", "9999-12-31", "2024-00-10", "2024-13-10", "2024-12-00", "2024-12-32",
    "2024-1-2", " 2024-01-02", "2024", "01.12.2024", "1.12.2024", "12:34:56", "24:00:00", "2024-01-02 24:00:00",
    "2024-01-02 23:60:00", "2024-01-02T10:11", "2024-01-02 10:11", "2024_01_02", "2024 01 02", "2024-01-0x",
    "2024--1-02", "+024-01-02", "Feb 28 2024", "", "é024-01-02", "2024-02-02", "-2024-02-02", "2024--02--02",
    "2024-01-02 10:11:12.5", "2024-01-02 10:11:12x", "01-02-2024",
)  # fmt: skip
NUMBER_TEMPLATES: Final = (
    "FM999990.00", "999990.00", "999,999,990.00", "FM999,999,990.00", "9999", "FM9999", "0000", "FM0000", "09,999",
    "9,9", "FM9,990", "999.000", "FM999.00", "990.000000000000000", ",999", "9,", "9,,9", "0.00", "00000,00", ".00",
    "S999", "", "9" * 20, "999G999D99", "FM999999999999999990.0", "9.", "fm990",
)  # fmt: skip
DAYS: Final = (0, -1, 59, 60, 366, MIN_DATE, MAX_DATE, POSITIVE_INFINITY, NEGATIVE_INFINITY, -730_119, 106_751_991)
STAMPS: Final = (
    0, -1, 1, MIN_TIMESTAMP, END_TIMESTAMP - 1, POSITIVE_INFINITY, NEGATIVE_INFINITY, 59 * DAY, 60 * DAY - 1,
    *(day * DAY + hour * HOUR for day in (85, 86, 302, 303, 450) for hour in (0, 1, 2, 3)),
)  # fmt: skip
"""The ends of the range, the days on which clocks change."""
ZONES: Final = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Tokyo")
ALPHABET: Final = "aabbB ,%é日𝄞1"
INTEGERS: Final = (-18, -17, 17, 18, 31, 32, 0, 1, -1, 2, 3, 5, 8, 9, -3, 40, 2**31 - 1, -(2**31), 9999, 10_001)


@pytest.fixture(autouse=True)
def forms_at_all_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forms are used for few values that repeat, too."""
    monkeypatch.setattr(vector_forms, "_SOME", 0)


@pytest.fixture(autouse=True)
def images_have_their_kernels(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    assert not [record.message for record in caplog.get_records("call") if record.name == "freshet.kernels"]


def some_text(random: Random) -> str:
    if random.random() < 0.4:
        return random.choice(TEXTS)
    if random.random() < 0.1:
        return random.choice(NAMES)
    return "".join(random.choices(ALPHABET, k=int(random.random() ** 3 * 40)))


def some_stamp(random: Random) -> int:
    year = 31_556_952_000_000
    how = random.random()
    if how < 0.2:
        return random.choice(STAMPS)
    within = 30 * year if how < 0.6 else 3000 * year if how < 0.8 else 200_000 * year
    return max(random.randint(-within, within), MIN_TIMESTAMP)


def some_numeric(random: Random) -> Decimal:
    if random.random() < 0.2:
        return Decimal(random.choice(("NaN", "Infinity", "-Infinity", "0", "0.000", "1e40", f"-{'9' * 18}.{'9' * 20}")))
    if random.random() < 0.4:
        return Decimal(random.randint(-3000, 3000)).scaleb(-random.choice((0, 1, 2, 3)))
    if random.random() < 0.3:
        return some_long_numeric(random)
    return Decimal(random.randint(-(10 ** random.randint(0, 18)), 10**18)).scaleb(
        -random.choice((0, 0, 1, 2, 6, 18, 31))
    )


def some_interval(random: Random) -> tuple[int, int, int]:
    if random.random() < 0.1:
        return random.choice(((2**31 - 1, 0, 0), (0, 2**31 - 1, 0), (0, 0, 2**63 - 1), (-(2**31), -(2**31), -(2**63))))
    months = random.choice((0, 0, 0, 1, -1, 11, 120, -30_000))
    return months, random.choice((0, 0, 1, -3, 400)), random.choice((0, 900_000_000, -1, 3_600_000_000, 90_061_000_001))


DRAWN: Final[dict[SqlType, Callable[[Random], object]]] = {
    TEXT: some_text,
    BYTEA: lambda random: bytes(random.choices(range(256), k=random.choice((0, 1, 5, 30)))),
    DATE: lambda random: random.choice((*DAYS, random.randint(-300_000, 300_000))),
    TIMESTAMP: some_stamp,
    TIMESTAMPTZ: some_stamp,
    INTERVAL: some_interval,
    INT4: lambda random: random.choice((*INTEGERS, random.randint(-12, 12))),
    INT2: lambda random: random.choice((0, -1, 32767, -32768, random.randint(-99, 99))),
    INT8: lambda random: random.choice((0, -1, 2**63 - 1, -(2**63), random.randint(-(10**12), 10**12))),
    BOOL: lambda random: random.random() < 0.5,
    JSON: some_json,
    JSONB: some_jsonb,
    FLOAT8: lambda random: random.choice(
        (
            *(0.0, -0.0, 1.5, -1 / 3, 1e300, 5e-324, math.inf, math.nan, 1e14, 1e15, 2.0**53, 1e-4, 1e-5, -1234567.25),
            random.gauss(0, 9),
            random.randint(-999, 999) / 10 ** random.randint(0, 9),
            (random.randint(0, 10**15) * 10 + 5) / 10 ** random.randint(1, 17),
            random.randint(-9, 9),
        )
    ),
    FLOAT4: lambda random: float(
        np.float32(random.choice((0.0, -0.0, 1 / 3, 1e30, math.inf, math.nan, 2.0**24, 1e5, 1e6, random.gauss(0, 9))))
    ),
    NUMERIC: some_numeric,
    SqlType(Kind.NUMERIC, 9, 2): lambda random: random.choice(
        (
            Decimal("NaN"),
            Decimal(random.randint(-999_999_999, 999_999_999)).scaleb(-2),
            Decimal("-0.05"),
            Decimal("0.00"),
        )
    ),
    SqlType(Kind.NUMERIC, 5, 0): lambda random: Decimal(random.randint(-99_999, 99_999)),
    SqlType(Kind.NUMERIC, 3, 5): lambda random: Decimal(random.randint(-999, 999)).scaleb(-5),
    SqlType(Kind.NUMERIC, 2, -3): lambda random: Decimal(random.randint(-99, 99) * 1000),
}


def some_array(element: SqlType, random: Random) -> tuple[object, ...]:
    """An array of at most two dimensions, at times with lower bounds other than 1."""
    width, depth = random.choice((0, 1, 2, 5)), random.choice((1, 1, 1, 2))
    if not width:
        return ()
    drawn = DRAWN[element]
    items = [None if random.random() < 0.2 else drawn(random) for _ in range(width * depth)]
    items[0] = drawn(random)
    rows = [tuple(items[at : at + width]) for at in range(0, len(items), width)]
    lower = [random.choice((1, 1, 1, 0, 2, -3)) for _ in range(depth)]
    return bounded(rows[0] if depth == 1 else tuple(rows), lower)


SCALARS: Final = [type_ for type_ in DRAWN if type_ not in (TEXT, BYTEA)]
DRAWN |= {SqlType(Kind.ARRAY, element=type_): partial(some_array, type_) for type_ in (*SCALARS, TEXT, BYTEA)}
ARRAYS: Final = [
    type_ for type_ in DRAWN if type_.element in (INT4, TEXT, NUMERIC, FLOAT8, INTERVAL, JSON, JSONB, DATE)
]
TEXTS_ARRAY: Final = SqlType(Kind.ARRAY, element=TEXT)


def some_key(type_: SqlType, random: Random) -> object:
    """A key of a document, or a path."""
    if type_ == TEXT:
        return random.choice(KEYS if random.random() < 0.3 else KEYS[:4])
    return tuple(random.choices(KEYS[:8], k=random.choice((1, 1, 2, 3))))


def columns(function: Function, types: Sequence[SqlType], count: int, random: Random, context: Context) -> list[Vector]:
    """Arguments: each a column with NULLs or without, or a constant."""
    out = []
    for type_ in types:
        values = [DRAWN[type_](random) for _ in range(count)]
        how = random.random()
        if type_ in (TEXT, TEXTS_ARRAY) and {JSON, JSONB} & set(types) and random.random() < 0.8:
            values = [some_key(type_, random) for _ in range(count)]
        if list(types) == [JSONB, JSONB] and random.random() < 0.6:
            values = [some_part(random) for _ in range(count)]
        if function.name in ("to_date", "to_timestamp") and type_ == TEXT:
            values = [random.choice(STAMP_TEXTS) for _ in range(count)]
            if len(out) == 1:
                values, how = [random.choice(STAMP_TEMPLATES)], 0.0
        if function.name == "to_char" and type_ == TEXT:
            values, how = [random.choice(NUMBER_TEMPLATES)], 0.0
        if type_ == TEXT and {DATE, TIMESTAMP, TIMESTAMPTZ} & set(types):
            values, how = [random.choice(TEMPLATES if function.name == "to_char" else NAMES)], 0.0
        if how < 0.4:
            out.append(constant_vector(int(encode(type_, values[:1], context.dictionary).words[0]), count))
            continue
        if how < 0.7:
            values = [None if random.random() < 0.1 else value for value in values]
        out.append(encode(type_, values, context.dictionary))
    return out


def _plain(type_: SqlType | None) -> SqlType:
    """What the evaluator makes of a numeric, beside an array of such."""
    assert type_ is not None
    return NUMERIC if type_.kind is Kind.NUMERIC else type_


def argument(index: int) -> Run:
    return lambda batch: batch.column(index)


def results(
    function: Function, types: tuple[SqlType, ...], given: list[Vector], count: int, context: Context
) -> object:
    """Each row's word (None for NULL), and the errors of those that fail."""
    result = types[0].element if function.result is ANYELEMENT else function.result
    if result is ANYCOMPATIBLEARRAY:
        result = next(type_ for type_ in types if type_.element is not None)
    assert isinstance(result, SqlType)
    batch = RowBatch(given, count, context)
    vector = call_runner(function, tuple(map(argument, range(len(types)))), types, result)(batch)
    nulls = np.zeros(count, np.bool_) if vector.nulls is None else vector.nulls
    failures = batch.failures()
    errors = {} if failures is None else dict(zip(failures.rows.tolist(), map(repr, failures.errors), strict=True))
    return [None if n else w for w, n in zip(vector.words.tolist(), nulls.tolist(), strict=True)], errors


def concrete(function: Function, random: Random) -> tuple[SqlType, ...]:
    """Types of arguments for a call."""
    drawn = {
        ANY: [*SCALARS, TEXT, *ARRAYS],
        ANYELEMENT: [*SCALARS, TEXT, *ARRAYS],
        ANYNONARRAY: SCALARS,
        ANYARRAY: [t for t in DRAWN if t.element is not None],
    }
    if ANYCOMPATIBLEARRAY in function.args or function.name == MEMBER:
        array = random.choice(drawn[ANYARRAY])
        return tuple(array if a in (ANYARRAY, ANYCOMPATIBLEARRAY) else _plain(array.element) for a in function.args)
    types = [a if isinstance(a, SqlType) else random.choice(drawn[a]) for a in function.args]
    for _ in range(random.randint(0, 3) if function.variadic else 0):
        last = function.args[-1]
        types.append(last if isinstance(last, SqlType) else random.choice(drawn[last]))
    if function.key.startswith(("json object", "jsonb object")) and len(types) % 2:
        types.append(TEXT)
    return tuple(types)


@pytest.mark.parametrize("function", FORMS, ids=lambda function: function.key)
def test_form_and_function_agree(function: Function) -> None:
    compared(function, lambda random: concrete(function, random))


@pytest.mark.parametrize(("source", "target"), CASTS, ids=str)
def test_casts_agree(source: SqlType, target: SqlType) -> None:
    cast = find_cast(source, target)
    assert cast is not None
    if cast.needs_assignment:
        implementation = cast.implementation
        cast = replace(cast, implementation=lambda site, words: implementation(site, words, assignment=False))
    compared(replace(cast, result=target), lambda random: (source,))


def compared(function: Function, types_of: Callable[[Random], tuple[SqlType, ...]]) -> None:
    """Compares a function with and without its form, on a few draws of rows."""
    for number in range(ROUNDS):
        random = Random(f"{function.key} {number}")
        context = Context(Dictionary(b"0123456789abcdef"), timezone=random.choice(ZONES))
        count = random.choice((vector_forms.FEW + 1, 100, 300))
        types = types_of(random)
        given = columns(function, types, count, random, context)
        made = results(function, types, given, count, context)
        assert made == results(replace(function, vector=None), types, given, count, context)


def test_forms_are_used_for_many_rows_only(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(vector_forms, "_PART", 200)
    monkeypatch.setattr(vector_forms, "_SOME", 500)
    context = Context(Dictionary(b"0123456789abcdef"))
    lower = FUNCTIONS["lower(text)"]
    form = lower.vector
    assert form is not None
    watched = replace(lower, vector=lambda site, ids: asked.append(len(ids)) or form(site, ids))
    for count in (1, vector_forms.FEW, vector_forms.FEW + 1, 500):
        given = [encode(TEXT, [f"Row {row}" for row in range(count)], context.dictionary)]
        assert results(watched, (TEXT,), given, count, context) == results(
            replace(lower, vector=None), (TEXT,), given, count, context
        )
    assert asked == [vector_forms.FEW + 1, 200, 200, 100]
    given = [encode(TEXT, [f"Row {row % 9}" for row in range(400)], context.dictionary)]
    results(watched, (TEXT,), given, 400, context)
    assert len(asked) == 4, "few values are remembered"
