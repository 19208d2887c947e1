"""Views whose columns are the table's functions and casts, over rows of their types' extremes, changed in every way.

``play`` makes a table for each signature, and views of all functions that have it. Rows are inserted alone or together,
and deleted the other way; each view is verified between, and empty at the end.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final

import numpy as np

from ivm.errors import SqlError
from ivm.words import Kind, SqlType
from planner.aggregates.table import ORDERED_SETS
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import compile_expressions
from planner.expr.functions.library import CAST, FUNCTIONS, find_cast
from planner.expr.functions.table import Function
from planner.expr.scalar import Call, Column
from storage.dictionary import Dictionary
from storage.types.codec import encode
from storage.types.text import format_datum
from storage.types.type_names import format_type
from tests.support.extremes import EXTREMES, RECORD, combinations, extremes, result_type, signatures
from tests.support.sessions import Client

WIDE: Final = 20
"""The most functions of one view."""
WORDS: Final = {
    "is distinct from": "({} IS DISTINCT FROM {})", "is not distinct from": "({} IS NOT DISTINCT FROM {})",
    "is null": "({} IS NULL)", "is not null": "({} IS NOT NULL)", "not": "(NOT {})", "is true": "({} IS TRUE)",
    "is not true": "({} IS NOT TRUE)", "is false": "({} IS FALSE)", "is not false": "({} IS NOT FALSE)",
    "nullif": "nullif({}, {})", "greatest": "greatest({}, {})", "least": "least({}, {})",
}  # fmt: skip
"""What is not written as a call or an operator."""
FORMULA_TYPES: Final = {Kind.BOOL, Kind.INT2, Kind.INT4, Kind.INT8, Kind.NUMERIC, Kind.FLOAT4, Kind.FLOAT8, Kind.DATE,
                        Kind.TIMESTAMP}  # fmt: skip
"""The types whose functions have formulas, or casts into types that do."""


@dataclass
class Signature:
    """Argument types, the rows of a table of them, and the calls: SQL text, and the rows on which each fails."""

    types: tuple[SqlType, ...]
    rows: list[tuple[Any, ...]]
    calls: dict[str, frozenset[int]] = field(default_factory=dict)


def written(function: Function, count: int) -> str | None:
    """The SQL of a call of columns a0, a1, …; None if SQL cannot call it."""
    names = [f"a{i}" for i in range(count)]
    if function.name in WORDS:
        return WORDS[function.name].format(*names)
    if function.internal or " " in function.name or function.name in ORDERED_SETS or function.name in ("array", "row"):
        return None
    if function.name[0].isalpha():
        return f"{function.name}({', '.join(names)})"
    return f"({function.name} {names[0]})" if count == 1 else f"({names[0]} {function.name} {names[1]})"


def every_signature(most: int, everything: bool) -> list[Signature]:
    """All signatures with at most so many rows; if not ``everything``, those of types with formulas."""
    found: dict[tuple[SqlType, ...], Signature] = {}
    context = Context(Dictionary(b"0123456789abcdef"))
    for text, key, types, result in _calls():
        if not types or not (everything or {t.kind for t in types} <= FORMULA_TYPES):
            continue
        if RECORD in {t.element or t for t in types}:
            continue
        signature = found.get(types)
        if signature is None:
            rows = [row for row in combinations(types) if "\xff" not in row]
            rows = random.Random(repr(types)).sample(rows, min(most, len(rows)))
            signature = found[types] = Signature(types, rows)
        signature.calls[text] = _failing(key, signature, result, context)
    return list(found.values())


def _calls() -> Iterator[tuple[str, str, tuple[SqlType, ...], SqlType]]:
    for function in FUNCTIONS.values():
        if function.volatility != "immutable" or "cast" in function.key:
            continue
        for types in signatures(function):
            text = written(function, len(types))
            if text is not None:
                yield text, function.key, types, result_type(function, types)
    for source, target in product(EXTREMES, EXTREMES):
        cast = find_cast(source, target)
        if source != target and cast is not None and cast.volatility == "immutable":
            name = sql_name(target)
            yield f"a0::{name}", CAST, (source,), target
            yield f"coalesce(a0::{name}, {_literal(target, extremes(target)[1])})", CAST, (source,), target


def sql_name(type_: SqlType) -> str:
    """A type without a length in SQL, where ``bit`` and ``character`` alone have length 1."""
    name = format_type(type_)
    return f'"bit"{name[3:]}' if name in ("bit", "bit[]") else name


def _failing(key: str, signature: Signature, result: SqlType, context: Context) -> frozenset[int]:
    columns = [encode(t, [row[i] for row in signature.rows], context.dictionary) for i, t in enumerate(signature.types)]
    call = Call(key, tuple(Column(i, t) for i, t in enumerate(signature.types)), result)
    _, failures = compile_expressions((call,))(columns, len(signature.rows), context)
    return frozenset() if failures is None else frozenset(np.unique(failures.rows).tolist())


def _literal(type_: SqlType, value: Any) -> str:
    if value is None:
        return f"NULL::{sql_name(type_)}"
    text = format_datum(type_, value).replace("'", "''")
    return f"'{text}'::{sql_name(type_)}"


@dataclass
class Played:
    """What was played: ``refused`` calls that no query of ours may have, and the statements that went wrong."""

    calls: int = 0
    rows: int = 0
    views: int = 0
    refused: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def prepare(client: Client) -> None:
    """Creates the enum whose values are tried."""
    client.run("CREATE TYPE level AS ENUM ('low', 'high')")


def play(client: Client, number: int, signature: Signature, played: Played) -> None:
    """Makes the table and the views of a signature, changes the rows in every way, and drops all again."""
    table, types = f"extreme{number}", signature.types
    shown = ", ".join(sql_name(t) for t in types)
    groups: dict[frozenset[int], list[str]] = {}
    columns = ", ".join(f"a{i} {sql_name(t)}" for i, t in enumerate(types))
    client.run(f"CREATE TABLE {table} (id int, {columns})")
    for text, failing in signature.calls.items():
        try:
            client.rows(f"SELECT {text} FROM {table}")
            groups.setdefault(failing, []).append(text)
        except SqlError as error:
            played.refused.append(f"{text} of {shown}: {error.sqlstate} {error.message}")
    for i in range(len(groups)):
        client.run(f"ALTER TABLE {table} ADD COLUMN g{i} boolean")
    views = _views(client, table, groups, played)
    values = [_values(i, row, types, groups) for i, row in enumerate(signature.rows)]
    played.calls += sum(map(len, groups.values()))
    played.rows += len(values)

    def check(when: str) -> None:
        for view, text in views.items():
            try:
                different = client.rows(f"VERIFY MATERIALIZED VIEW {view}")
                client.rows(f"SELECT * FROM {view}")
            except SqlError as error:
                different = [(error.sqlstate, error.message)]
            if different:
                played.wrong.append(f"{when}: {text} of {shown}: {different[:3]}")

    half = len(values) // 2
    for value in values[:half]:
        client.run(f"INSERT INTO {table} VALUES {value}")
    if values[half:]:
        client.run(f"INSERT INTO {table} VALUES {', '.join(values[half:])}")
    check("after insertion")
    client.run(f"DELETE FROM {table} WHERE id < {half}")
    check("after deletion together")
    for i in random.Random(number).sample(range(half, len(values)), len(values) - half):
        client.run(f"DELETE FROM {table} WHERE id = {i}")
    check("after deletion one by one")
    for view, text in views.items():
        if client.rows(f"SELECT count(*) FROM {view}") != [("0",)]:
            played.wrong.append(f"not empty at the end: {text} of {shown}")
    client.run(f"DROP TABLE {table} CASCADE")


def _views(client: Client, table: str, groups: dict[frozenset[int], list[str]], played: Played) -> dict[str, str]:
    """Creates the views of each group: its functions as columns of every row, and as a DISTINCT row."""
    views = {}
    for i, texts in enumerate(groups.values()):
        for at in range(0, len(texts), WIDE):
            exprs = ", ".join(f"{text} AS c{k}" for k, text in enumerate(texts[at : at + WIDE]))
            for how, what in (("r", f"SELECT id, {exprs}"), ("d", f"SELECT DISTINCT {exprs}")):
                name = f"{table}_{how}{i}_{at}"
                try:
                    client.run(f"CREATE MATERIALIZED VIEW {name} AS {what} FROM {table} WHERE g{i}")
                    views[name] = what
                except SqlError as error:
                    played.refused.append(f"view {what[:200]}: {error.sqlstate} {error.message}")
    played.views += len(views)
    return views


def _values(i: int, row: tuple[Any, ...], types: tuple[SqlType, ...], groups: dict[frozenset[int], list[str]]) -> str:
    values = [str(i), *(_literal(t, v) for t, v in zip(types, row, strict=True))]
    return f"({', '.join([*values, *('false' if i in failing else 'true' for failing in groups)])})"
