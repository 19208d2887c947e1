"""The claims of the function table's entries, tested on the extremes of their types; and that the table is complete."""

from __future__ import annotations

import ast
import pkgutil
from functools import cache
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import planner.expr.functions
from ivm.errors import SqlError
from ivm.words import BOOL, INT2, INT4, INT8, NUMERIC, TEXT, TIMESTAMP, TIMESTAMPTZ, Kind, SqlType
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import evaluate
from planner.expr.functions.casts.registry import CAST
from planner.expr.functions.compare import ORDER_BYTES
from planner.expr.functions.library import CASTS, FAMILIES, FUNCTIONS, find_cast
from planner.expr.functions.row import FIELD
from planner.expr.functions.table import Function, Raises
from planner.expr.ordering import needs_order_bytes
from planner.expr.scalar import Call, Column
from planner.logical.fallibility import can_raise
from storage.dictionary import Dictionary
from storage.types.calendar import DAY
from storage.types.codec import decode, encode
from tests.support.extremes import ENUM, EXTREMES, RECORD, VARCHAR, array_of, extremes, result_type, signatures

ROOT = Path(planner.expr.functions.__file__).parents[3]


@pytest.fixture(scope="module")
def context() -> Context:
    return Context(Dictionary(b"0123456789abcdef"))


@pytest.fixture(scope="module")
def elsewhere() -> Context:
    """A context whose local time is not UTC."""
    return Context(Dictionary(b"fedcba9876543210"), timezone="America/New_York")


Outcome = list[tuple[tuple[Any, ...], Any]]
"""Each row's arguments, and its datum or SqlError."""


def outcomes(key: str, types: tuple[SqlType, ...], result: SqlType, context: Context) -> Outcome:
    """A call on every combination of its argument types' extremes."""
    rows = list(product(*(extremes(t) for t in types)))
    vectors = [encode(t, [row[i] for row in rows], context.dictionary) for i, t in enumerate(types)]
    expr = Call(key, tuple(Column(i, t) for i, t in enumerate(types)), result)
    (vector,), failures = evaluate((expr,), vectors, len(rows), context)
    found: list[Any] = decode(result, vector, context.dictionary)
    if failures is not None:
        for row, error in zip(failures.rows.tolist(), failures.errors, strict=True):
            found[row] = error
    return list(zip(rows, found, strict=True))


def check(function: Function, tried: Outcome, result: SqlType) -> None:
    """Checks the outcomes against the entry."""
    for args, outcome in tried:
        if isinstance(outcome, SqlError):
            assert function.raises is not Raises.NEVER, (function.key, args, outcome)
            assert function.raises is not Raises.TYPMOD, (function.key, args, outcome)
            if function.raises is Raises.OVERFLOW:
                name = {INT2: "smallint", INT4: "integer", INT8: "bigint"}[result]
                assert (outcome.sqlstate, outcome.message) == ("22003", f"{name} out of range"), (function.key, args)
        elif outcome is None and None not in args:
            assert function.makes_null, (function.key, args)
        elif outcome is not None and None in args:
            assert not function.strict, (function.key, args)


CLAIMS = [f for f in FUNCTIONS.values() if f.raises is not Raises.ANYTHING or not f.makes_null]


def test_functions_do_what_their_entries_say(context: Context, elsewhere: Context) -> None:
    assert len(CLAIMS) > 300
    for function in CLAIMS:
        for types in signatures(function):
            if function.key == FIELD or (function.key == ORDER_BYTES and not needs_order_bytes(types[0])):
                continue  # test_fields; its prefix orders a type entirely
            result = result_type(function, types)
            for place in (context, elsewhere)[: 1 + (function.volatility != "immutable")]:
                check(function, outcomes(function.key, types, result, place), result)


@pytest.mark.parametrize(("name", "type_", "zone"), [("current_timestamp", TIMESTAMPTZ, "WITH"),
                                                     ("localtimestamp", TIMESTAMP, "WITHOUT")])  # fmt: skip
def test_a_precision_of_the_clock(context: Context, name: str, type_: SqlType, zone: str) -> None:
    """More than six digits are six; a negative number of digits is refused, whatever its size."""
    tried = dict(outcomes(f"{name}(int4)", (INT4,), type_, context))
    assert isinstance(tried[2**31 - 1,], type(tried[1,]))
    error = tried[-(2**31),]
    assert isinstance(error, SqlError)
    message = f"TIMESTAMP(-2147483648) {zone} TIME ZONE precision must not be negative"
    assert (error.sqlstate, error.message) == ("22023", message)


def test_fields(context: Context) -> None:
    for at, (_, type_) in enumerate(RECORD.fields):
        vector = encode(RECORD, list(EXTREMES[RECORD]), context.dictionary)
        index = encode(INT4, [at] * 3, context.dictionary)
        expr = Call(FIELD, (Column(0, RECORD), Column(1, INT4)), type_)
        (found,), failures = evaluate((expr,), [vector, index], 3, context)
        assert failures is None
        assert decode(type_, found, context.dictionary) == [row[at] for row in EXTREMES[RECORD]]


def test_casts_do_what_their_entries_say(context: Context, elsewhere: Context) -> None:
    tried = 0
    pairs = {(SqlType(a), SqlType(b)) for a, b in CASTS if SqlType(a) in EXTREMES and SqlType(b) in EXTREMES}
    for source, target in (*sorted(pairs, key=repr), (ENUM, TEXT), (TEXT, ENUM), (array_of(INT4), TEXT)):
        function = find_cast(source, target)
        assert function is not None
        for place in (context, elsewhere):
            check(function, outcomes(CAST, (source,), target, place), target)
        tried += 1
    assert tried > 150


@pytest.mark.parametrize("target", [SqlType(Kind.NUMERIC, 5, 2), SqlType(Kind.NUMERIC, 30, 25), SqlType(Kind.TIME, 3)])
def test_what_a_typmod_may_refuse(target: SqlType) -> None:
    for source in (INT8, NUMERIC):
        assert can_raise(Call("cast", (Column(0, source),), target))
    assert not can_raise(Call("cast", (Column(0, INT8),), NUMERIC))
    assert not can_raise(Call("cast", (Column(0, TEXT),), VARCHAR))


def test_commutative_functions_and_comparisons(context: Context) -> None:
    tried = 0
    for function in FUNCTIONS.values():
        comparison = function.comparison
        if not (function.commutative or comparison is not None):
            continue
        for types in signatures(function):
            turned_key = function.key
            if "(" in function.key and function.key != function.name:
                a, b = function.key[len(function.name) + 1 : -1].split(",")
                name = function.name if comparison is None else comparison.commutator.value
                turned_key = f"{name}({b},{a})"
            result = result_type(function, types)
            here = {repr(args): repr(out) for args, out in outcomes(function.key, types, result, context)}
            turned = outcomes(turned_key, types[::-1], result, context)
            assert here == {repr(args[::-1]): repr(out) for args, out in turned}, function.key
            if comparison is not None:
                key = comparison.negator.value + function.key[len(function.name) :]
                negated = {repr(args): out for args, out in outcomes(key, types, BOOL, context)}
                for args, out in outcomes(function.key, types, BOOL, context):
                    assert negated[repr(args)] is (None if out is None else not out), (function.key, args)
            tried += 1
    assert tried > 200


def test_what_results_follow(context: Context) -> None:
    following = [f for f in (*FUNCTIONS.values(), *CASTS.values()) if f.follows]
    assert len(following) > 50
    for function in following:
        (types,) = signatures(function)
        assert len(function.follows) == len(types)
        assert isinstance(function.result, SqlType)
        is_cast = function.key not in FUNCTIONS
        tried = outcomes(CAST if is_cast else function.key, types, function.result, context)
        known = [(a, _order(out)) for a, out in tried if out is not None and not isinstance(out, SqlError)]
        for (a, low), (b, high) in product(known, repeat=2):
            if all(_moved(*step) for step in zip(a, b, function.follows, strict=True)):
                assert low <= high, (function.key, a, b)


def _moved(a: object, b: object, follows: int) -> bool:
    """Whether the step from one argument to another does not move the result down."""
    if follows == 0 or a is None or b is None:
        return bool(a == b)
    return bool(a <= b if follows > 0 else a >= b)  # type: ignore[operator]


def _order(value: Any) -> Any:
    """What a datum is ordered by: an interval by its length, at 30 days a month."""
    return (30 * value[0] + value[1]) * DAY + value[2] if isinstance(value, tuple) else value


def modules() -> list[str]:
    return [m.name for m in pkgutil.walk_packages(planner.expr.functions.__path__, "planner.expr.functions.")]


def test_the_library_has_all_families() -> None:
    """A module that adds to the table is one of the library's families, which the table's modules do not import."""
    families = {module.__name__ for module in FAMILIES}
    for name in modules():
        source = Path(import_module(name).__file__ or "")
        if source.name in ("__init__.py", "table.py", "library.py"):
            continue
        calls = {n.func.id for n in ast.walk(ast.parse(source.read_text())) if isinstance(n, ast.Call)
                 and isinstance(n.func, ast.Name)}  # fmt: skip
        adds = calls & {"per_value", "vectorised", "register", "cast_per_value", "cast_vectorised"}
        assert bool(adds) == (name in families), name
        assert "planner.expr.functions.library" not in source.read_text(), name


@cache
def sources() -> list[tuple[Path, ast.Module]]:
    paths = [path for top in ("planner", "sql") for path in sorted((ROOT / top).rglob("*.py"))]
    outside = [path for path in paths if not path.is_relative_to(ROOT / "planner/expr/functions")]
    return [(path.relative_to(ROOT), ast.parse(path.read_text())) for path in outside]


def test_lookups_see_the_complete_table() -> None:
    partial = {"FUNCTIONS", "CASTS", "overloads", "find_cast", "register", "per_value", "vectorised"}
    for path, tree in sources():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module != "planner.expr.functions.library":
                found = partial & {a.name for a in node.names}
                assert not found or not (node.module or "").startswith("planner.expr.functions"), (path, found)


NAMES = {f.name for f in FUNCTIONS.values()} | set(FUNCTIONS)
EXEMPT = {
    "sql/syntax": "the grammar's own words and operators",
    "sql/bind/calls.py": "the SQL standard's synonyms, which Postgres shows as other functions' columns",
    "sql/deparse": "the grammar's words and operators, written again",
    "sql/bind/exclusion.py": "the operators that a constraint can be enforced by",
    "sql/system/operators.py": "the same, as the catalog lists them",
    "sql/bind/joins.py": "the sides of a join, of which two are words of functions too",
    "sql/catalog/operators.py": "the parts of an operator, of which two are words of functions too",
    "sql/bind/sequences.py": "their first argument is looked up in the catalog when it is bound",
}


def test_no_list_of_functions_outside_the_table() -> None:
    """No collection of function names decides what the planner or the binder does: that is a field of the entry."""
    found = []
    for path, tree in sources():
        if any(str(path).startswith(folder) for folder in EXEMPT):
            continue
        for node in ast.walk(tree):
            items = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [])
            texts = [i.value for i in items if isinstance(i, ast.Constant) and isinstance(i.value, str)]
            if len(texts) > 1 and len(NAMES.intersection(texts)) * 2 > len(texts):
                found.append((str(path), node.lineno, texts))
    assert found == []
