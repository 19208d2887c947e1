"""Operators, mathematical functions, comparisons and casts against the answers of a real PostgreSQL 15."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import pytest

from ivm.errors import SqlError
from ivm.words import Kind, SqlType
from planner.expr.evaluate.evaluator import Context, constant, evaluate
from planner.expr.scalar import Call, Literal
from storage.dictionary import Dictionary
from storage.types.codec import decode
from storage.types.text import format_datum, parse_datum
from tests.support.paths import ANSWERS

CASES = ANSWERS / "scalar_core.json"


@cache
def type_of(name: str) -> SqlType:
    if name.endswith("[]"):
        return SqlType(Kind.ARRAY, element=type_of(name[:-2]))
    match = re.fullmatch(r"([a-z0-9]+)(?:\((-?\d+)(?:,(-?\d+))?\))?", name)
    assert match is not None, name
    kind = Kind(match[1])
    precision = int(match[2]) if match[2] else None
    scale = int(match[3]) if match[3] else (0 if kind is Kind.NUMERIC and match[2] else None)
    return SqlType(kind, precision, scale)


def literal(type_name: str, text: str | None) -> Literal:
    type = type_of(type_name)
    return Literal(None if text is None else parse_datum(type, text), type)


def cases() -> list[tuple[str, list[tuple[str, str | None]], str, dict[str, Any]]]:
    return [(k, [(t, v) for t, v in a], r, w) for k, a, r, w in json.loads(CASES.read_text())]


def shown(type: SqlType, datum: object, cast: bool) -> str | None:
    if datum is None:
        return None
    if type.kind is Kind.BOOL:
        return "true" if datum else "false"
    text = format_datum(type, datum)
    # the answers were fetched as text, in which char(n) loses its padding
    return text.rstrip(" ") if type.kind is Kind.BPCHAR else text


def family(key: str) -> str:
    return key.partition("(")[0] or key


def test_constant_answers() -> None:
    """Each case alone, through compile, folding and decode."""
    context = Context(Dictionary(b"0123456789abcdef"))
    wrong: list[str] = []
    for key, args, result, wanted in cases():
        call = Call(key, tuple(literal(t, v) for t, v in args), type_of(result))
        try:
            got: object = shown(type_of(result), constant(call, context), key == "cast")
        except SqlError as error:
            got = (error.sqlstate, error.message)
        want: object = wanted["text"] if "text" in wanted else (wanted["sqlstate"], wanted["message"])
        if got != want:
            wrong.append(f"{key} {args} -> {result}: {got} instead of {want}")
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:40])


def test_vectorised_answers() -> None:
    """All cases of one signature in one batch, columns instead of literals, failures as data."""
    from planner.expr.scalar import Column
    from storage.types.codec import encode

    context = Context(Dictionary(b"0123456789abcdef"))
    groups: dict[tuple[str, tuple[str, ...], str], list[tuple[list[str | None], dict[str, Any]]]] = {}
    for key, args, result, wanted in cases():
        groups.setdefault((key, tuple(t for t, _ in args), result), []).append(([v for _, v in args], wanted))
    wrong: list[str] = []
    for (key, types, result), rows in groups.items():
        columns = [
            encode(type_of(t), [literal(t, row[i]).value for row, _ in rows], context.dictionary)
            for i, t in enumerate(types)
        ]
        call = Call(key, tuple(Column(i, type_of(t)) for i, t in enumerate(types)), type_of(result))
        vectors, failures = evaluate((call,), columns, len(rows), context)
        errors = {} if failures is None else dict(zip(failures.rows.tolist(), failures.errors, strict=True))
        for row, datum in enumerate(decode(type_of(result), vectors[0], context.dictionary)):
            error = errors.get(row)
            got: object = (error.sqlstate, error.message) if error else shown(type_of(result), datum, key == "cast")
            wanted = rows[row][1]
            want: object = wanted["text"] if "text" in wanted else (wanted["sqlstate"], wanted["message"])
            if got != want:
                wrong.append(f"{key} {types} {rows[row][0]} -> {result}: {got} instead of {want}")
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:40])


@pytest.mark.parametrize("name", ["+", "/", "power", "cast", "is distinct from"])
def test_answers_cover(name: str) -> None:
    assert sum(family(case[0]) == name for case in cases()) > 20
