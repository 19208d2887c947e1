"""The page of all functions, made from the tables: ``python -m tests.docs.functions_page`` writes it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from planner.aggregates.function import AggregateKind
from planner.aggregates.table import AGGREGATES
from planner.expr.functions.library import FUNCTIONS
from planner.expr.functions.table import CallingConvention, Function, type_key
from planner.expr.functions.table_functions import TABLE_FUNCTIONS

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "functions.md"
_ALIASES: Final = {
    "int2": "smallint", "int4": "integer", "int8": "bigint", "float4": "real", "float8": "double precision",
    "bool": "boolean", "timestamptz": "timestamptz", "bpchar": "char",
}  # fmt: skip
_KINDS: Final = {
    AggregateKind.ACCUMULABLE: "sums", AggregateKind.ORDERED: "first by order", AggregateKind.BASIC: "whole group",
    AggregateKind.RANKED: "by rank", AggregateKind.MODE: "first by count",
}  # fmt: skip
_HEAD: Final = """# Functions and operators

Made from the table of functions by `python -m tests.docs.functions_page`; a test says when it is stale. The last column
says how a maintained view computes a call:

- **formula**: inside the engine's step, without Python (operators whose words suffice);
- **vectors**: a column of words at a time, and where it takes datums a few rows (up to 32) as *value*;
- **value**: one distinct combination of arguments at a time; the result is remembered if the function is immutable.

*Settings* marks what depends on TimeZone, DateStyle or IntervalStyle, *stable* what depends on the session, the catalog
or the clock, *volatile* what is computed for each row anew: these are refused in materialized views where they would
not be the same for every reader. Casts are not listed.
"""


def page() -> str:
    """The text of the page."""
    return "\n".join([_HEAD, *_scalars(), *_table_functions(), *_aggregates()]) + "\n"


def _scalars() -> Iterable[str]:
    named: dict[str, list[Function]] = {}
    for function in FUNCTIONS.values():
        if (
            not function.internal
            and not function.name.isupper()
            and not {" ", "#"} & set(function.name[1:])
            and not function.name.endswith("_cast")
        ):
            named.setdefault(function.name, []).append(function)
    words = {name: name[0].isalpha() for name in named}
    for title, wanted in (("Operators", False), ("Functions", True)):
        yield f"## {title}\n\n| name | arguments → result | computed by |\n|---|---|---|"
        for name in sorted(n for n, is_word in words.items() if is_word is wanted):
            yield _row(name, [_signature(f) for f in named[name]], sorted({_how(f) for f in named[name]}))
        yield ""


def _row(name: str, signatures: list[str], how: list[str]) -> str:
    shown = "; ".join(sorted(set(signatures))).replace("|", "\\|")
    symbol = name.replace("|", "\\|")
    return f"| `{symbol}` | {shown} | {', '.join(how)} |"


def _signature(function: Function) -> str:
    args = ", ".join(_type(type_key(a)) for a in function.args)
    return f"{args}{' …' if function.variadic else ''} → {_type(type_key(function.result))}"


def _type(key: str) -> str:
    if key.endswith("[]"):
        return f"{_type(key[:-2])}[]"
    return _ALIASES.get(key, key)


def _how(function: Function) -> str:
    if function.formula is not None:
        how = "formula"
    else:
        by_vectors = function.convention is CallingConvention.VECTORISED or function.vector is not None
        how = "vectors" if by_vectors else "value"
    return how if function.volatility == "immutable" else f"{how} *({function.volatility})*"


def _table_functions() -> Iterable[str]:
    yield "## In FROM: functions that return rows\n\n| name | arguments |\n|---|---|"
    named: dict[str, list[str]] = {}
    for key in TABLE_FUNCTIONS:
        name, _, args = key.partition("(")
        named.setdefault(name, []).append(", ".join(map(_type, args.rstrip(")").split(","))))
    for name in sorted(named):
        yield f"| `{name}` | {'; '.join(sorted(named[name]))} |"
    yield ""


def _aggregates() -> Iterable[str]:
    yield "## Aggregates\n\nWhat each method costs: [Aggregates](aggregates.md).\n"
    yield "| name | arguments | maintained as |\n|---|---|---|"
    named: dict[str, list[str]] = {}
    how: dict[str, set[str]] = {}
    for function in AGGREGATES.values():
        if function.name == "python":
            continue  # any of the users' own
        named.setdefault(function.name, []).append(", ".join(_type(type_key(a)) for a in function.args) or "*")
        how.setdefault(function.name, set()).add(_KINDS[function.kind])
    for name in sorted(named):
        yield _row(name, named[name], sorted(how[name]))


if __name__ == "__main__":
    PAGE.write_text(page())
