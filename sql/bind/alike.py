"""Chains of operands of one form or a few (``nodes.Alike``, ``nodes.Mixed``): each form is bound once, over the columns
of its constants.

What that does not settle is bound operand by operand (None here), which also finds the first error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from operator import is_
from typing import Any, Final

from ivm.errors import SqlError
from ivm.words import BOOL, INT4, INT8, NUMERIC, TEXT, Kind, SqlType
from planner.aggregates.table import aggregate_overloads
from planner.expr.functions.internal.membership import MEMBER
from planner.expr.functions.library import called_function, overloads
from planner.expr.parts import LITERALS, rebuild, walk
from planner.expr.scalar import LEAVES, And, Call, Column, Literal, Or, Scalar
from planner.expr.scalar import Alike as Chain
from planner.logical.fallibility import can_raise
from planner.logical.join_keys import as_type, comparable
from planner.logical.traversal import columns_of, has_subquery
from sql.bind.coerce import to_boolean
from sql.bind.constant_lists import in_values
from sql.bind.environment import Binder, Environment
from sql.bind.folding import folded_columns, summed
from sql.bind.lifting import FIRST, ONE_BY_ONE, BoundForm, lifted, reads_constants
from sql.bind.literals import typed_literal
from sql.bind.positions import position
from sql.bind.routine_resolution import routine_overloads
from sql.catalog.column_types import array_of
from sql.syntax.nodes import queries as nodes
from sql.syntax.nodes.alike import Alike, Mixed, Slot, parts

_TAGS: Final[dict[str, Callable[[tuple[nodes.Expr, ...], int], nodes.Expr]]] = {
    "and": nodes.AndExpr,
    "or": nodes.OrExpr,
}
_SUMMED: Final = (Kind.INT2, Kind.INT4, Kind.INT8)


def chain(b: Binder, node: Alike | Mixed) -> Scalar:
    """The operands joined by AND, OR, + or ||."""
    found = None
    if b.env.notes is None:
        found = _chain(b, node) if isinstance(node, Alike) else _mixed(b, node)
    if found is not None:
        return found
    written = _written(node)
    if b.env.notes is not None:
        b.env.notes.instead[id(node)] = node, written
    return b.bind(written)


def _written(node: Alike | Mixed) -> nodes.Expr:
    """The tree of the same chain with a node for each operand."""
    operands, signs = node.operands(), node.signs()
    made = _TAGS.get(node.symbol)
    if made is not None:
        return made(operands, signs[0])
    whole = operands[0]
    for operand, at in zip(operands[1:], signs, strict=True):
        whole = nodes.Operator(node.symbol, (whole, operand), at)
    return whole


def in_alike(b: Binder, left: Scalar, node: Alike, at: int) -> Scalar | None:
    """``left`` equals one of the items of a list. None: they must be bound one by one."""
    form = None if b.env.notes is not None else _form(b, node)
    if form is None:
        return None
    values = _values(form)
    return None if values is None else in_values(b.env, left, values, form.expr.type, at)


def _values(form: BoundForm) -> Sequence[object] | None:
    """The values of operands that read constants only, as far as they are computed when they are bound."""
    expr = form.expr
    if isinstance(expr, Column) and expr.index >= FIRST:
        return form.columns[expr.index - FIRST]
    if isinstance(expr, Literal):
        return [expr.value] * (len(form.columns[0]) if form.columns else 1)
    if not isinstance(expr, Call) or len(expr.args) != 2 or not form.columns:
        return None
    given = [_values(BoundForm(a, form.columns, form.types)) for a in expr.args]
    return None if given[0] is None or given[1] is None else folded_columns(expr, given[0], given[1])


def _chain(b: Binder, node: Alike) -> Scalar | None:
    symbol = node.symbol
    if not _is_own(b.env, symbol):
        return None
    if symbol == "||" and isinstance(node.first, nodes.String):
        slot = node.slots[0] if node.slots else None
        texts = [node.first.value] * len(node) if slot is None else node.texts(slot)
        return Literal("".join(texts), TEXT)
    form = _form(b, node)
    if form is None:
        return None
    values = _values(form) if symbol == "+" else None
    if values is not None and (total := summed(form.expr.type, values, len(node))) is not None:
        return total
    if isinstance(form.expr, Literal):
        return None
    return _joined(symbol, [form], (0,) * len(node))


def _mixed(b: Binder, node: Mixed) -> Scalar | None:
    """Where they are of several tables and can fail they stay apart: none of them together could be moved below a
    join, and some by themselves can. So do those of which some look for a constant, each perhaps a key."""
    symbol = node.symbol
    if not _is_own(b.env, symbol):
        return None
    forms: list[BoundForm] = []
    for one in node.chains:
        form = _form(b, one)
        if form is None or (symbol == "or" and _equality(form.expr)):
            return None
        forms.append(form)
    if symbol not in _TAGS:
        return _joined(symbol, forms, node.order)
    if not any(can_raise(f.expr) for f in forms):
        chains = [_joined(symbol, [f], (0,) * len(c)) for f, c in zip(forms, node.chains, strict=True)]
        apart = tuple([c for c in chains if c is not None])
        return (And if symbol == "and" else Or)(apart) if len(apart) == len(chains) else None
    return None if len(b.scope.namespace.ranges) > 1 else _joined(symbol, forms, node.order)


def _is_own(env: Environment, symbol: str) -> bool:
    """Whether what is between the operands can only be the built-in operator."""
    return symbol in _TAGS or env.catalog.operators(None, symbol) == ((), ())


def _joined(symbol: str, forms: Sequence[BoundForm], order: tuple[int, ...]) -> Scalar | None:
    type_ = forms[0].expr.type
    if symbol in _TAGS:
        type_ = BOOL
    elif type_.kind not in _SUMMED if symbol == "+" else type_ != TEXT:
        return None
    if type_.domain is not None or type_.precision is not None:
        return None
    if symbol not in _TAGS and any(f.expr.type != type_ for f in forms):
        return None
    if symbol in _TAGS and len(forms) == 1 and not forms[0].columns:
        return forms[0].expr
    made = Chain(symbol, *lifted(forms), order, type_, any(f.expr.nullable for f in forms))
    among = _among(forms[0]) if symbol == "or" and len(forms) == 1 else None
    if among is None:
        return made
    return among if isinstance(forms[0].expr, Call) else And((among, made))


def _equality(expr: Scalar) -> bool:
    """Whether it is that something equals a constant, or one of several."""
    if isinstance(expr, Or):
        return all(map(_equality, expr.args))
    found = comparable(expr)
    return found is not None and any(all(i >= FIRST for i in columns_of(side)) for side in found[:2])


def _among(form: BoundForm) -> Scalar | None:
    """For operands that are, or demand first of all, that an expression equals a constant: it is one of them all. Rows
    are found by that, and where it is NULL the chain is NULL or false, as with it."""
    demanded = form.expr.args if isinstance(form.expr, And) else (form.expr,)
    for part in demanded:
        equality = comparable(part)
        if equality is None or equality[2]:
            continue
        for value, constant in (equality[:2], equality[1::-1]):
            if not isinstance(constant, Column) or constant.index < FIRST or reads_constants(value):
                continue
            if has_subquery(value) or can_raise(value):
                continue
            own = form.types[constant.index - FIRST]
            if as_type(Literal(form.columns[constant.index - FIRST][0], own), constant.type).type != own:
                continue
            array = Literal(form.columns[constant.index - FIRST], array_of(own))
            return Call(MEMBER, (value, array), BOOL, value.nullable)
    return None


def _form(b: Binder, node: Alike) -> BoundForm | None:
    """The form of the operands; None: their constants have several types, or are computed before they are read."""
    if not all(_is_scalar(b.env, n) for n in parts(node.first) if isinstance(n, nodes.Apply)):
        return None
    columns: list[tuple[object, ...]] = []
    types: list[SqlType] = []
    given: dict[int, nodes.Given | nodes.String] = {}
    strings = [s for s in node.slots if s.string]
    for slot in node.slots:
        if not slot.string:
            numbers = _numbers(node.texts(slot))
            if numbers is None:
                return None
            place = node.place(slot)
            given[place] = nodes.Given(Column(FIRST + len(columns), numbers[1], False), place)
            columns.append(tuple(numbers[0]))
            types.append(numbers[1])
    try:
        expr = _operand(b, node, given)
        for slot in strings:
            found = _string(b, node, slot, given, expr)
            if found is None:
                return None
            mark, values = found
            column = Column(FIRST + len(columns), mark.type, False)
            expr = rebuild(expr, LITERALS, lambda e, mark=mark, column=column: column if e is mark else e)  # type: ignore[misc]
            columns.append(tuple(values))
            types.append(mark.type)
    except SqlError:
        return None
    if not _is_plain(expr):
        return None
    return BoundForm(expr, tuple(columns), tuple(types))


def _is_scalar(env: Environment, node: nodes.Apply) -> bool:
    """Whether a call can only be one of a built-in function of its row: binding it leaves no other trace."""
    if len(node.name) != 1 or node.name[0] == "current_user" or routine_overloads(env, node.name):
        return False
    return bool(overloads(node.name[0])) and not aggregate_overloads(node.name[0])


def _operand(b: Binder, node: Alike, given: dict[int, nodes.Given | nodes.String]) -> Scalar:
    bound = b.bind(node.with_given(given))
    if node.symbol in _TAGS:
        return to_boolean(b.env, bound, node.symbol.upper(), position(node.first))
    return bound


def _numbers(texts: list[str]) -> tuple[Sequence[object], SqlType] | None:
    """The datums of numbers that are all of one type."""
    try:
        whole = list(map(int, texts))
    except ValueError:
        same = all("." in t or "e" in t or "E" in t for t in texts)
        return ([Decimal(t) for t in texts], NUMERIC) if same else None
    low, high = min(whole), max(whole)
    if low >= -(1 << 31) and high < 1 << 31:
        return whole, INT4
    outside = all(not -(1 << 31) <= n < 1 << 31 for n in whole)
    return (whole, INT8) if outside and low >= -(1 << 63) and high < 1 << 63 else None


def _string(
    b: Binder, node: Alike, slot: Slot, given: dict[int, nodes.Given | nodes.String], expr: Scalar
) -> tuple[Literal, Sequence[object]] | None:
    """The literal that a string of the first operand has become, and the values of those of all operands in its place:
    what changes with the string, and with nothing else."""
    texts, place = node.texts(slot), node.place(slot)
    other = next(t for t in texts if t != texts[0])
    changed = _operand(b, node, {**given, place: nodes.String(other, place)})
    old, new = list(walk(expr)), list(walk(changed))
    if len(old) != len(new):
        return None
    marks = [
        (x, y) for x, y in zip(old, new, strict=True)
        if isinstance(x, Literal) and isinstance(y, Literal) and x != y
    ]  # fmt: skip
    if len(marks) != 1 or sum(map(is_, old, [marks[0][0]] * len(old))) != 1:
        return None
    mark, second = marks[0]
    values = _read(texts, mark.type)
    if values is None or values[0] != mark.value or values[texts.index(other)] != second.value:
        return None
    return mark, values


def _read(texts: list[str], type_: SqlType) -> Sequence[object] | None:
    if type_.kind in (Kind.TEXT, Kind.VARCHAR, Kind.UNKNOWN):
        return texts if type_.kind is not Kind.UNKNOWN else None
    known: dict[str, Any] = {}
    for text in texts:
        if text not in known:
            literal = typed_literal(text, type_, "implicit", 0)
            if not isinstance(literal, Literal):
                return None
            known[text] = literal.value
    return [known[t] for t in texts]


def _is_plain(expr: Scalar) -> bool:
    """Whether it has no subqueries, and its functions are immutable."""
    for part in walk(expr):
        if isinstance(part, Call):
            function = called_function(part)
            if function is None or function.volatility != "immutable":
                return False
        elif type(part) not in LEAVES and not isinstance(part, ONE_BY_ONE):
            return False
    return True
