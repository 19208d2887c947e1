"""Chains of operands of one form (``nodes.Alike``): the form is bound once, over the columns of its constants.

What that does not settle is bound operand by operand (None here), which also finds the first error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from operator import is_
from typing import Any, Final

from ivm.errors import SqlError
from ivm.words import BOOL, INT4, INT8, NUMERIC, TEXT, Kind, SqlType
from planner.aggregates.table import aggregate_overloads
from planner.expr.functions.internal.membership import MEMBER
from planner.expr.functions.library import called_function, overloads
from planner.expr.literal_rows import LiteralRows
from planner.expr.parts import LITERALS, rebuild, walk
from planner.expr.scalar import LEAVES, And, Call, Case, Coalesce, Column, Literal, Or, Scalar, children, with_children
from planner.expr.scalar import Alike as Chain
from planner.logical.fallibility import can_raise
from planner.logical.join_keys import as_type, comparable
from planner.logical.traversal import columns_of, has_subquery, renumber
from sql.bind.coerce import to_boolean
from sql.bind.constant_lists import in_values
from sql.bind.environment import Binder, Environment
from sql.bind.folding import folded_columns, summed
from sql.bind.literals import typed_literal
from sql.bind.positions import position
from sql.bind.routine_resolution import routine_overloads
from sql.catalog.column_types import array_of
from sql.syntax.nodes import queries as nodes
from sql.syntax.nodes.alike import Alike, Slot, parts

_FIRST: Final = 1 << 40
"""The constants' columns count from here while the form is bound."""
_TAGS: Final[dict[str, Callable[[tuple[nodes.Expr, ...], int], nodes.Expr]]] = {
    "and": nodes.AndExpr,
    "or": nodes.OrExpr,
}
_SUMMED: Final = (Kind.INT2, Kind.INT4, Kind.INT8)
_ONE_BY_ONE: Final = (And, Or, Case, Coalesce)
"""Not all arguments of these are computed for each row."""


@dataclass(frozen=True, slots=True)
class _Form:
    """``expr``: an operand, with ``Column(_FIRST + i)`` for the constants in column i."""

    expr: Scalar
    columns: tuple[tuple[object, ...], ...]
    types: tuple[SqlType, ...]


def chain(b: Binder, node: Alike) -> Scalar:
    """The operands joined by AND, OR, + or ||."""
    found = None if b.env.notes is not None else _chain(b, node)
    if found is not None:
        return found
    written = _written(node)
    if b.env.notes is not None:
        b.env.notes.instead[id(node)] = node, written
    return b.bind(written)


def _written(node: Alike) -> nodes.Expr:
    """The tree of the same chain with a node for each operand."""
    operands = node.operands()
    made = _TAGS.get(node.symbol)
    signs = [t.start for t in node.tokens[node.period - 1 :: node.period]]
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


def _values(form: _Form) -> Sequence[object] | None:
    """The values of operands that read constants only, as far as they are computed when they are bound."""
    expr = form.expr
    if isinstance(expr, Column) and expr.index >= _FIRST:
        return form.columns[expr.index - _FIRST]
    if isinstance(expr, Literal):
        return [expr.value] * (len(form.columns[0]) if form.columns else 1)
    if not isinstance(expr, Call) or len(expr.args) != 2 or not form.columns:
        return None
    given = [_values(_Form(a, form.columns, form.types)) for a in expr.args]
    return None if given[0] is None or given[1] is None else folded_columns(expr, given[0], given[1])


def _chain(b: Binder, node: Alike) -> Scalar | None:
    env, symbol = b.env, node.symbol
    logic = symbol in _TAGS
    if not logic and env.catalog.operators(None, symbol) != ((), ()):
        return None
    if symbol == "||" and isinstance(node.first, nodes.String):
        slot = node.slots[0] if node.slots else None
        texts = [node.first.value] * len(node) if slot is None else node.texts(slot)
        return Literal("".join(texts), TEXT)
    form = _form(b, node)
    if form is None:
        return None
    type_ = form.expr.type
    if logic:
        type_ = BOOL
    elif type_.kind not in _SUMMED if symbol == "+" else type_ != TEXT:
        return None
    if type_.domain is not None or type_.precision is not None:
        return None
    values = _values(form) if symbol == "+" else None
    if values is not None and (total := summed(form.expr.type, values, len(node))) is not None:
        return total
    lifted = None if isinstance(form.expr, Literal) else _lifted(form)
    if lifted is None:
        return None
    args, body = lifted
    if logic and not form.columns:
        return form.expr
    rows = LiteralRows(form.columns, form.types) if form.columns else None
    nullable = form.expr.nullable
    made = Chain(symbol, args, body, rows, len(node), type_, nullable)
    among = _among(form) if symbol == "or" else None
    if among is None:
        return made
    return among if isinstance(form.expr, Call) else And((among, made))


def _among(form: _Form) -> Scalar | None:
    """For operands that are, or demand first of all, that an expression equals a constant: it is one of them all. Rows
    are found by that, and where it is NULL the chain is NULL or false, as with it."""
    demanded = form.expr.args if isinstance(form.expr, And) else (form.expr,)
    for part in demanded:
        equality = comparable(part)
        if equality is None or equality[2]:
            continue
        for value, constant in (equality[:2], equality[1::-1]):
            if not isinstance(constant, Column) or constant.index < _FIRST or _reads_constants(value):
                continue
            if has_subquery(value) or can_raise(value):
                continue
            own = form.types[constant.index - _FIRST]
            if as_type(Literal(form.columns[constant.index - _FIRST][0], own), constant.type).type != own:
                continue
            array = Literal(form.columns[constant.index - _FIRST], array_of(own))
            return Call(MEMBER, (value, array), BOOL, value.nullable)
    return None


def _reads_constants(expr: Scalar) -> bool:
    return any(i >= _FIRST for i in columns_of(expr))


def _form(b: Binder, node: Alike) -> _Form | None:
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
            given[place] = nodes.Given(Column(_FIRST + len(columns), numbers[1], False), place)
            columns.append(tuple(numbers[0]))
            types.append(numbers[1])
    try:
        expr = _operand(b, node, given)
        for slot in strings:
            found = _string(b, node, slot, given, expr)
            if found is None:
                return None
            mark, values = found
            column = Column(_FIRST + len(columns), mark.type, False)
            expr = rebuild(expr, LITERALS, lambda e, mark=mark, column=column: column if e is mark else e)  # type: ignore[misc]
            columns.append(tuple(values))
            types.append(mark.type)
    except SqlError:
        return None
    if not _is_plain(expr):
        return None
    return _Form(expr, tuple(columns), tuple(types))


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
        elif type(part) not in LEAVES and not isinstance(part, _ONE_BY_ONE):
            return False
    return True


def _lifted(form: _Form) -> tuple[tuple[Scalar, ...], Scalar] | None:
    """What the form reads of a row, computed once for it, and the form over that and the constants. None: a part that
    can fail might not be computed at all."""
    lifting = _Lifting()
    body = lifting.lift(form.expr, True)
    if lifting.refused:
        return None
    count = len(lifting.args)

    def placed(index: int) -> int:
        return index - _FIRST + count if index >= _FIRST else -1 - index

    return tuple(lifting.args), renumber(body, placed)


class _Lifting:
    """``args``: what is read of a row, each with its number. ``refused``: a part that can fail is among them."""

    def __init__(self) -> None:
        self.args: dict[Scalar, int] = {}
        self.refused = False

    def lift(self, part: Scalar, sure: bool) -> Scalar:
        """``sure``: it is computed of every row."""
        if isinstance(part, Literal):
            return part
        if isinstance(part, Column) and part.index >= _FIRST:
            return part
        if not _reads_constants(part):
            self.refused |= not sure and can_raise(part)
            return Column(-1 - self.args.setdefault(part, len(self.args)), part.type, part.nullable)
        ordered = isinstance(part, _ONE_BY_ONE)
        inner = [self.lift(c, sure and (not ordered or not i)) for i, c in enumerate(children(part))]
        return with_children(part, tuple(inner))
