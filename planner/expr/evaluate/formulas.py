"""Scalar expressions as formulas (``ivm.kernels.formula``), which the engine computes without a call of Python.

``planner/expr/evaluate/evaluator.py`` stays the one place that says what an expression is worth: a formula covers
integers and their
like, three-valued logic, branches and equality, and where a row would fail, or leaves what is covered, the evaluator
gets all of the rows. What cannot be told in steps at all is ``Beyond``. Constants that are ids are beyond: a sweep may
take their values away.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ivm.formula import (
    EQUAL,
    FALSE,
    GREATER,
    LESS,
    NOT_EQUAL,
    NOT_FALSE,
    NOT_GREATER,
    NOT_LESS,
    NOT_NULL,
    NOT_TRUE,
    NULL,
    TRUE,
    Formula,
    Register,
)  # fmt: skip
from ivm.kernels.codes import (
    ADD,
    AND,
    BITS_AND,
    BITS_OR,
    BITS_XOR,
    DISTINCT,
    DIVIDE,
    FIT,
    FROM_DECIMAL,
    MULTIPLY,
    OR,
    REMAINDER,
    SAME_SCALE,
    SUBTRACT,
    TO_DECIMAL,
)  # fmt: skip
from ivm.words import NUMERIC, Kind, Schema, SqlType, Storage
from planner import gathers
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import compile_expressions
from planner.expr.functions.casts import find_cast
from planner.expr.functions.integer import BITS, INTEGERS
from planner.expr.functions.table import FUNCTIONS, Function
from planner.expr.scalar import And, Call, Case, Coalesce, Column, Literal, Or, Scalar, children
from planner.gathers import Cell

_INTEGERS: Final = tuple(type_.kind for type_ in INTEGERS)
_ARITHMETIC: Final = {"+": ADD, "-": SUBTRACT, "*": MULTIPLY, "/": DIVIDE, "%": REMAINDER, "mod": REMAINDER}
_BITWISE: Final = {"&": BITS_AND, "|": BITS_OR, "#": BITS_XOR}
_COMPARISONS: Final = {
    "<": LESS, "=": EQUAL, "<=": NOT_GREATER, ">": GREATER, "<>": NOT_EQUAL, ">=": NOT_LESS,
}  # fmt: skip
_TESTS: Final = {
    "is null": NULL, "is not null": NOT_NULL, "is true": TRUE, "is not true": NOT_TRUE, "is false": FALSE,
    "is not false": NOT_FALSE, "is unknown": NULL, "is not unknown": NOT_NULL,
}  # fmt: skip


class Beyond(Exception):
    """What no formula covers."""


class Steps:
    """The steps of expressions over rows of a schema."""

    def __init__(self, schema: Schema, context: Context) -> None:
        self.formula = Formula()
        self.cells: tuple[Cell, ...] = gathers.cells(schema)
        self.context = context
        self.known: dict[tuple[Scalar, Register], Register] = {}

    @property
    def always(self) -> Register:
        return self.formula.always

    def take(self, expr: Scalar, mask: Register) -> Register:
        """The register of an expression that is needed where the mask is 1. Raises Beyond."""
        found = self.known.get((expr, mask))
        if found is None:
            found = self.known[expr, mask] = self._taken(expr, mask)
        return found

    def _taken(self, expr: Scalar, mask: Register) -> Register:
        match expr:
            case Column(index=index):
                cell = self.cells[index]
                return self.formula.column(cell.word, cell.null)
            case And(args=args):
                return self._junction(args, mask, AND, NOT_FALSE)
            case Or(args=args):
                return self._junction(args, mask, OR, NOT_TRUE)
            case Coalesce():
                return self._coalesce(expr, mask)
            case Case():
                return self._case(expr, mask)
            case Literal() | Call() if _is_constant(expr):
                return self._constant(expr, mask)
            case Call():
                return self._call(expr, mask)
            case _:
                raise Beyond

    def _constant(self, expr: Scalar, mask: Register) -> Register:
        (vector,), failures = compile_expressions((expr,))((), 1, self.context)
        if failures is not None:
            return self.formula.step(FIT, self.formula.constant(2), None, mask, 1)
        if vector.nulls is not None and vector.nulls[0]:
            return self.formula.constant(None)
        word = int(vector.words[0])
        if expr.type.storage is Storage.INTERNED or (expr.type.storage is Storage.NUMERIC and word & 1):
            raise Beyond
        return self.formula.constant(word)

    def _junction(self, args: tuple[Scalar, ...], mask: Register, how: int, goes_on: int) -> Register:
        result = self.take(args[0], mask)
        for arg in args[1:]:
            result = self.formula.step(how, result, self.take(arg, self.formula.where(mask, result, goes_on)))
        return result

    def _coalesce(self, expr: Coalesce, mask: Register) -> Register:
        result = self._fitted(expr.args[0], expr.type, mask)
        for arg in expr.args[1:]:
            missing = self.formula.test(result, NULL)
            value = self._fitted(arg, expr.type, self.formula.both(mask, missing))
            result = self.formula.choose(missing, value, result)
        return result

    def _case(self, expr: Case, mask: Register) -> Register:
        arms: list[tuple[Register, Register]] = []
        for condition, value in expr.arms:
            met = self.take(condition, mask)
            arms.append(
                (self.formula.test(met, TRUE), self._fitted(value, expr.type, self.formula.where(mask, met, TRUE)))
            )
            mask = self.formula.where(mask, met, NOT_TRUE)
        result = self._fitted(expr.otherwise, expr.type, mask)
        for chosen, given in reversed(arms):
            result = self.formula.choose(chosen, given, result)
        return result

    def _fitted(self, expr: Scalar, want: SqlType, mask: Register) -> Register:
        """An expression in the storage and scale that is wanted, see ``planner.expr.evaluate.evaluator``."""
        register, have = self.take(expr, mask), expr.type
        if have.kind is not Kind.NUMERIC or want.kind is not Kind.NUMERIC:
            return register
        if have.storage is want.storage and (have.scale == want.scale or want.precision is None):
            return register
        return self._cast(register, have, want, mask)

    def _call(self, call: Call, mask: Register) -> Register:
        if call.function in ("cast", "assignment_cast"):
            source = call.args[0].type
            register = self.take(call.args[0], mask)
            return register if source == call.type else self._cast(register, source, call.type, mask)
        function = FUNCTIONS.get(call.function)
        if function is None:
            raise Beyond
        if call.function in _TESTS:
            return self.formula.test(self.take(call.args[0], mask), _TESTS[call.function])
        types = tuple(NUMERIC if a.type.kind is Kind.NUMERIC else a.type for a in call.args)
        if call.type.kind is Kind.NUMERIC and call.type != NUMERIC:
            raise Beyond
        given = [self._fitted(a, t, mask) for a, t in zip(call.args, types, strict=True)]
        return self._applied(function, given, types, mask)

    def _applied(
        self, function: Function, given: Sequence[Register], types: tuple[SqlType, ...], mask: Register
    ) -> Register:
        name, step = function.name, self.formula.step
        if name == "not":
            return step(BITS_XOR, given[0], self.formula.constant(1))
        if name == "order_prefix" and _is_plain(types[0]):
            return given[0]
        if name in ("is distinct from", "is not distinct from"):
            a, b = self._equals(given[0], given[1], types, mask)
            return step(DISTINCT, a, b, constant=int(name != "is distinct from"), nullable=False)
        if name == "nullif":
            a, b = self._equals(given[0], given[1], types, mask)
            same = self.formula.test(self.formula.compare(a, b, EQUAL), TRUE)
            return self.formula.choose(same, self.formula.constant(None), given[0])
        if name in _COMPARISONS:
            if name in ("=", "<>") or NUMERIC in types:
                a, b = self._equals(given[0], given[1], types, mask)
            elif all(_is_plain(t) for t in types):
                a, b = given
            else:
                raise Beyond
            return self.formula.compare(a, b, _COMPARISONS[name])
        if all(t.kind in _INTEGERS for t in types):
            return self._integers(name, given, types, mask)
        raise Beyond

    def _equals(
        self, a: Register, b: Register, types: tuple[SqlType, ...], mask: Register
    ) -> tuple[Register, Register]:
        """Two registers whose words are equal where the values are; those of decimals compare as these do, too."""
        if types == (NUMERIC, NUMERIC):
            return self.formula.step(SAME_SCALE, a, b, mask, nullable=self.formula.is_nullable(a)), b
        if any(t.has_equality_class for t in types):
            raise Beyond
        return a, b

    def _integers(self, name: str, given: Sequence[Register], types: tuple[SqlType, ...], mask: Register) -> Register:
        formula = self.formula
        bits = max(BITS[t.kind] for t in types)
        zero = formula.constant(0)
        if len(given) == 2 and name in _ARITHMETIC:
            return formula.step(_ARITHMETIC[name], given[0], given[1], mask, bits)
        if len(given) == 2 and name in _BITWISE:
            return formula.step(_BITWISE[name], given[0], given[1])
        if name == "+":
            return given[0]
        if name == "-":
            return formula.step(SUBTRACT, zero, given[0], mask, bits)
        if name == "~":
            return formula.step(BITS_XOR, given[0], formula.constant(-1))
        if name in ("abs", "@"):
            negative = formula.test(formula.compare(given[0], zero, LESS), TRUE)
            return self.formula.choose(
                negative, formula.step(SUBTRACT, zero, given[0], formula.both(mask, negative), bits), given[0]
            )
        raise Beyond

    def _cast(self, register: Register, source: SqlType, target: SqlType, mask: Register) -> Register:
        formula = self.formula
        have, want = source.kind, target.kind
        if have in _INTEGERS and want in _INTEGERS:
            if BITS[have] <= BITS[want]:
                return register
            return formula.step(FIT, register, None, mask, BITS[want])
        if have is Kind.NUMERIC and want in _INTEGERS and source.storage is Storage.NUMERIC:
            return formula.step(FROM_DECIMAL, register, None, mask, BITS[want])
        if target == NUMERIC:
            if have in _INTEGERS:
                return formula.step(TO_DECIMAL, register, None, mask)
            if source.storage is Storage.DIRECT and 0 <= (source.scale or 0) <= 31:
                return formula.step(TO_DECIMAL, register, None, mask, source.scale or 0)
        if (have, want) == (Kind.INT4, Kind.BOOL):
            return formula.compare(register, formula.constant(0), NOT_EQUAL)
        if (have, want) == (Kind.BOOL, Kind.INT4):
            return register
        raise Beyond


def _is_plain(type_: SqlType) -> bool:
    """Whether values compare as their words do, as integers."""
    return type_.storage is Storage.DIRECT and not type_.has_equality_class and type_.kind is not Kind.NUMERIC


def _is_constant(expr: Scalar) -> bool:
    """Whether an expression is always the same, whatever the context."""
    match expr:
        case Literal():
            return True
        case Call(function="cast" | "assignment_cast", args=(arg,), type=target):
            if not _is_constant(arg) or arg.type.element is not None or target.element is not None:
                return False
            cast = None if arg.type == target else find_cast(arg.type, target)
            return arg.type == target or (cast is not None and cast.volatility == "immutable")
        case Call(function=key):
            function = FUNCTIONS.get(key)
            immutable = function is not None and function.volatility == "immutable"
            return immutable and all(_is_constant(part) for part in children(expr))
        case _:
            return False
