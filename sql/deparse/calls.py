"""Function calls: of functions, aggregates and window functions, and those with a syntax of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from ivm.errors import SqlError
from ivm.words import FLOAT8, INT4, TEXT, Kind, SqlType
from planner.aggregates.table import aggregate_overloads
from planner.expr.functions.library import overloads
from planner.expr.functions.table import ANY
from planner.expr.functions.table_functions import table_overloads
from planner.identifiers import quoted
from sql.bind.coerce import try_common_type
from sql.bind.overloads import resolve
from sql.catalog.catalog import Relation
from sql.catalog.column_types import array_of
from sql.deparse.clauses import sort_items, window
from sql.deparse.context import Reader
from sql.deparse.operators import operand_types
from sql.deparse.tree import Array, FunctionCall, Phrase, Shown, Word
from sql.syntax.nodes import queries as nodes

_WORDS: Final = frozenset(
    """current_date current_time current_timestamp localtime localtimestamp current_user session_user user current_role
    current_catalog current_schema""".split()  # noqa: SIM905
)
"""What is called without parentheses."""
_PICKS: Final = ("lag", "lead")
_TRIMS: Final = {"ltrim": "LEADING", "rtrim": "TRAILING", "btrim": "BOTH"}


def call(r: Reader, node: nodes.Apply, wanted: SqlType | None) -> Shown:
    """A call. ``wanted``: the type of COALESCE and its like if all arguments are untyped."""
    name = node.name[-1]
    if node.keywords:
        return _PHRASES[name](r, node)
    if name in _WORDS and len(node.name) == 1:
        precision = [f"({a.text})" for a in node.args if isinstance(a, nodes.Number)]
        return Word(name.upper() + "".join(precision))
    routine = r.context.notes.routines.get(id(node))
    if routine is not None:
        shown = r.context.names.routine(routine[1])
        return _spread(r, routine, _called(r, node, shown, _routine_types(node, routine[1], routine[2])))
    if len(node.name) == 1 and name in ("coalesce", "greatest", "least"):
        type_ = r.type(node)
        type_ = (wanted or TEXT) if type_.kind is Kind.UNKNOWN else type_
        return FunctionCall(name.upper(), tuple(r.coerced(a, type_) for a in node.args))
    if len(node.name) == 1 and name == "nullif" and len(node.args) == 2:
        types = operand_types("=", [r.type(a) for a in node.args])
        return FunctionCall("NULLIF", tuple(r.coerced(a, t) for a, t in zip(node.args, types, strict=True)))
    if len(node.name) == 1 and name in ("grouping", "merge_action"):
        return FunctionCall(name.upper(), r.items(node.args))
    return _called(r, node, quoted(name), _argument_types(r, node, name))


def _called(r: Reader, node: nodes.Apply, name: str, types: Sequence[SqlType | None]) -> FunctionCall:
    """The call with the clauses behind its arguments."""
    args = _arguments(r, node, types)
    order = sort_items(r, node.order, _order_type(r, node), lambda e: _same_argument(r, node, args, e))
    return FunctionCall(
        name,
        args,
        node.names,
        node.star,
        node.distinct,
        node.variadic,
        order,
        node.within,
        None if node.filter is None else r.value(node.filter),
        " IGNORE NULLS" if node.ignore_nulls else "",
        None if node.over is None else window(r, node.over),
    )


def _arguments(r: Reader, node: nodes.Apply, types: Sequence[SqlType | None]) -> tuple[Shown, ...]:
    if any(isinstance(a, nodes.AllFields) or (isinstance(a, nodes.Star) and a.qualifier) for a in node.args):
        return tuple(r.value(a) for a in node.args)
    return tuple(r.coerced(a, t) for a, t in zip(node.args, types, strict=True))


def _same_argument(r: Reader, node: nodes.Apply, args: Sequence[Shown], expr: nodes.Expr) -> Shown | None:
    """The argument that a key of an aggregate's ORDER BY equals, as the aggregate gets it."""
    values = r.context.notes.values
    found = values.get(id(expr))
    for arg, shown in zip(node.args, args, strict=False):
        own = values.get(id(arg))
        if found is not None and own is not None and own[1] == found[1] and own[1].type.kind is not Kind.UNKNOWN:
            return shown
    return None


def _order_type(r: Reader, node: nodes.Apply) -> SqlType | None:
    """What an ordered-set aggregate casts its rows' value to."""
    if not node.within or node.name[-1] != "percentile_cont" or len(node.order) != 1:
        return None
    given = r.type(node.order[0].expr)
    return given if given.kind is Kind.INTERVAL else FLOAT8


def _spread(r: Reader, routine: tuple[nodes.Expr, Relation, Sequence[SqlType]], made: FunctionCall) -> FunctionCall:
    """The call of a variadic routine, whose last arguments are one array."""
    _, relation, types = routine
    first = len(types) - 1
    assert relation.routine is not None
    if not relation.routine.variadic or made.variadic or made.names or len(made.args) <= first:
        return made
    array = Array(made.args[first:], r.context.names.type(types[-1]))
    return replace(made, args=(*made.args[:first], array), variadic=True)


def _routine_types(node: nodes.Apply, relation: Relation, types: Sequence[SqlType]) -> list[SqlType | None]:
    """The types of a routine's arguments, as they are written."""
    assert relation.routine is not None
    names = [a.name for a in relation.routine.arguments]
    found: list[SqlType | None] = []
    for i in range(len(node.args)):
        name = node.names[i] if node.names else None
        place = names.index(name) if name is not None and name in names else i
        last = types[-1] if types else None
        spread = place >= len(types) - 1 and relation.routine.variadic and not node.variadic
        found.append((last.element if last is not None else None) if spread else types[place])
    return found


def _argument_types(r: Reader, node: nodes.Apply, name: str) -> list[SqlType | None]:
    """The types that a built-in function's arguments are cast to; None where they stay as they are."""
    types = [r.type(a) for a in node.args]
    stays: list[SqlType | None] = [None] * len(types)
    if any(node.names) or node.variadic:
        return stays
    if node.over is not None and name in _PICKS and len(types) > 2:
        common = try_common_type([types[0], types[2]])
        return [common, INT4, common]
    if node.over is not None and name in ("ntile", "nth_value", *_PICKS):
        return [*stays[:-1], INT4] if name == "ntile" or len(types) > 1 else stays
    if node.within:
        return _direct_types(r, node, name, types)
    for known in (aggregate_overloads(name), table_overloads(name), overloads(name)):
        found = _resolved(_shown_overloads(known), types)
        if found is not None:
            return found
    return (_resolved(table_overloads(name), [SqlType(Kind.RECORD), *types]) or [None, *stays])[1:]


def _resolved(known: Sequence[Any], types: Sequence[SqlType]) -> list[SqlType | None] | None:
    """The types for the overload that fits; None if none does."""
    try:
        found = resolve(known, tuple(types))
    except SqlError:
        return None
    if found is None:
        return None
    declared = [found.overload.args[min(i, len(found.overload.args) - 1)] for i in range(len(types))]
    return [
        have if have.plain == want.plain or (have.kind is Kind.UNKNOWN and of is ANY) else want
        for have, want, of in zip(types, found.args, declared, strict=True)
    ]


def _shown_overloads(known: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(o for o in known if not getattr(o, "internal", False))


def _direct_types(r: Reader, node: nodes.Apply, name: str, types: Sequence[SqlType]) -> list[SqlType | None]:
    """The types of the direct arguments of an ordered-set or hypothetical-set aggregate."""
    if name.startswith("percentile"):
        return [FLOAT8 if t.element is None else array_of(FLOAT8) for t in types]
    if len(types) != len(node.order):
        return [None] * len(types)
    return [try_common_type([t, r.type(item.expr)]) for t, item in zip(types, node.order, strict=True)]


def _keyworded(r: Reader, node: nodes.Apply, name: str) -> list[Shown]:
    """The arguments of a call with keywords."""
    return [r.coerced(a, t) for a, t in zip(node.args, _argument_types(r, node, name), strict=True)]


def _extract(r: Reader, node: nodes.Apply) -> Phrase:
    field = node.args[0]
    assert isinstance(field, nodes.String)
    return Phrase(("EXTRACT(", quoted(field.value), " FROM ", _keyworded(r, node, "extract")[1], ")"))


def _position(r: Reader, node: nodes.Apply) -> Phrase:
    text, needle = _keyworded(r, node, "position")
    return Phrase(("POSITION(", _closed(needle), " IN ", _closed(text), ")"))


def _closed(expr: Shown) -> Shown:
    """In parentheses, as POSITION has its operands."""
    return Phrase(("(", expr, ")"))


def _overlay(r: Reader, node: nodes.Apply) -> Phrase:
    return _phrase("OVERLAY(", _keyworded(r, node, "overlay"), (" PLACING ", " FROM ", " FOR "))


def _substring(r: Reader, node: nodes.Apply) -> Shown:
    args = _keyworded(r, node, "substring")
    if len(args) == 2 and r.type(node.args[1]).kind in (Kind.TEXT, Kind.UNKNOWN, Kind.VARCHAR):
        return FunctionCall(quoted("substring"), tuple(args))
    similar = len(args) == 3 and r.type(node.args[1]).kind in (Kind.TEXT, Kind.UNKNOWN, Kind.VARCHAR)
    return _phrase("SUBSTRING(", args, (" SIMILAR ", " ESCAPE ") if similar else (" FROM ", " FOR "))


def _trim(r: Reader, node: nodes.Apply) -> Phrase:
    args = _keyworded(r, node, node.name[-1])
    side = _TRIMS[node.name[-1]]
    between = (f"TRIM({side} ", args[1], " FROM ") if len(args) > 1 else (f"TRIM({side} FROM ",)
    return Phrase((*between, args[0], ")"))


def _normalize(r: Reader, node: nodes.Apply) -> Phrase:
    return Phrase(("NORMALIZE(", r.coerced(node.args[0], TEXT), _form(node, ", "), ")"))


def _is_normalized(r: Reader, node: nodes.Apply) -> Phrase:
    return Phrase(("((", r.coerced(node.args[0], TEXT), ") IS", _form(node, " "), " NORMALIZED)"))


def _form(node: nodes.Apply, before: str) -> str:
    form = node.args[1] if len(node.args) > 1 else None
    return f"{before}{form.value.upper()}" if isinstance(form, nodes.String) else ""


def _overlaps(r: Reader, node: nodes.Apply) -> Phrase:
    a, b, c, d = _keyworded(r, node, "overlaps")
    return Phrase(("((", a, ", ", b, ") OVERLAPS (", c, ", ", d, "))"))


def _phrase(opening: str, args: Sequence[Shown], words: Sequence[str]) -> Phrase:
    parts: list[str | Shown] = [opening, args[0]]
    for word, arg in zip(words, args[1:], strict=False):
        parts += [word, arg]
    return Phrase((*parts, ")"))


_PHRASES: Final[dict[str, Callable[[Reader, nodes.Apply], Shown]]] = {
    "extract": _extract, "position": _position, "overlay": _overlay, "substring": _substring, "ltrim": _trim,
    "rtrim": _trim, "btrim": _trim, "normalize": _normalize, "is_normalized": _is_normalized, "overlaps": _overlaps,
}  # fmt: skip
