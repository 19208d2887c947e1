"""Every function, operator and cast over its types' extremes, as SQL text and as we answer it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np

from ivm.rows import Vector
from ivm.words import ColumnType, Kind, SqlType
from planner.aggregates.table import ORDERED_SETS
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import compile_expressions
from planner.expr.functions.library import CAST, FUNCTIONS, find_cast
from planner.expr.functions.row import FIELD
from planner.expr.functions.table import Function
from planner.expr.scalar import Call, Column
from storage.types.codec import encode
from storage.types.text import format_text
from tests.support.extremes import EXTREMES, NUMERICS, RECORD, drawn, result_type, signatures
from tests.support.statements import literal, type_name

ROWS: Final = 24
"""The most combinations of extremes that are tried of one call."""
TYPES: Final = (*EXTREMES, *NUMERICS)
_OWN: Final = re.compile(
    r"cast|try|array_assign|array_sub|array_slice|^is |^has_|^pg_|^row|version|^mz_|^current_|^inet_"
)
"""Entries that SQL spells otherwise, or that ask the server."""
_LEAST: Final = (-(2**31), -(2**31), -(2**63))


@dataclass(frozen=True)
class Asked:
    """A call and the rows of arguments that it is tried on."""

    name: str
    call: Call
    types: tuple[SqlType, ...]
    rows: Sequence[tuple[object, ...]]

    def texts(self) -> list[str]:
        """The calls as SQL, whose values are text."""
        return [f"SELECT ({self._text(list(map(_written, self.types, row)))})::text" for row in self.rows]

    def _text(self, args: Sequence[str]) -> str:
        if self.call.function == CAST:
            return f"({args[0]})::{type_name(self.call.type)}"
        name = FUNCTIONS[self.call.function].name
        if name[0].isalpha():
            return f'"{name}"({", ".join(args)})'
        return f"({args[0]}) {name} ({args[1]})" if len(args) == 2 else f"{name} ({args[0]})"

    def answers(self, context: Context) -> list[str | None]:
        """What we answer: texts, NULL, or the SQLSTATE with which a row fails."""
        vectors = [encode(t, [row[i] for row in self.rows], context.dictionary) for i, t in enumerate(self.types)]
        ((vector,), failures) = compile_expressions((self.call,))(vectors, len(self.rows), context)
        failed = {} if failures is None else dict(zip(failures.rows.tolist(), failures.errors, strict=True))
        whole = np.array([i not in failed for i in range(len(self.rows))])
        nulls = None if vector.nulls is None else vector.nulls[whole]
        texts = iter(format_text(self.call.type, Vector(vector.words[whole], nulls), context.dictionary))
        found: list[str | None] = []
        for i in range(len(self.rows)):
            if i in failed:
                found.append(f"! {failed[i].sqlstate}")
            else:
                text = next(texts)
                found.append(None if text is None else _shown(self.call.type, bytes(text).decode()))
        return found


def _written(type_: SqlType, value: object) -> str:
    """A constant; ``bit`` would be one bit long."""
    if type_.kind is Kind.BIT and value is not None:
        return "B" + literal(type_, value).removesuffix("::bit")
    return literal(type_, value)


def _shown(type_: SqlType, text: str) -> str:
    """A value as its cast to text shows it."""
    kind = type_.kind.value
    if kind == "bool":
        return {"t": "true", "f": "false"}[text]
    if kind == "inet" and "/" not in text:
        return f"{text}/{128 if ':' in text else 32}"
    return text.rstrip(" ") if kind == "bpchar" else text


def asked() -> Iterator[Asked]:
    """Every call whose result depends on nothing but its arguments and the settings."""
    for function in FUNCTIONS.values():
        if _is_sql(function):
            for types in signatures(function):
                if RECORD not in types:  # ROW(…) = ROW(…) is not the operator of rows
                    call = Call(function.key, _columns(types), result_type(function, types))
                    yield _asked(f"{function.key} {_named(types)}", call)
    for source, target in product(TYPES, TYPES):
        if source != target and target.kind is not Kind.BIT and find_cast(source, target) is not None:
            yield _asked(f"{type_name(source)} as {type_name(target)}", Call(CAST, _columns((source,)), target))


def _is_sql(function: Function) -> bool:
    own = function.internal or _OWN.search(function.name) or function.name in ORDERED_SETS or function.key == FIELD
    return not own and function.volatility in ("immutable", "settings")


def _columns(types: tuple[SqlType, ...]) -> tuple[Column, ...]:
    return tuple(Column(i, t) for i, t in enumerate(types))


def _named(types: tuple[SqlType, ...]) -> str:
    return ", ".join(map(type_name, types))


def _asked(name: str, call: Call) -> Asked:
    types = tuple(ColumnType(a.type).type for a in call.args)
    rows = [row for row in drawn(types, ROWS, name) if not any(map(_unreadable, types, row))]
    return Asked(name, call, types, rows)


def _unreadable(type_: SqlType, value: object) -> bool:
    """Whether PostgreSQL cannot read a value: half a character, and the least interval."""
    if type_.element is not None and type_.element.kind is Kind.BIT:
        return True
    return value == "\xff" or str(_LEAST)[1:-1] in str(value)


def digest(answers: Sequence[str | None]) -> str:
    """A few characters that tell lists of answers apart."""
    return hashlib.sha256("\n".join("\\N" if a is None else a for a in answers).encode()).hexdigest()[:8]
