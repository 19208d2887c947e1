"""Scalar expressions as formulas (``ivm.kernels.formula``), which the engine computes without calling Python.

``planner/expr/evaluate/evaluator.py`` defines the value of an expression. A formula covers integers, three-valued
logic, branches and equality; a function is covered by the rule of its entry (``planner/expr/functions/formula.py``).
If a row would fail, or has a value that the formula does not cover, the evaluator computes all of the rows. An
expression that no formula covers raises ``Beyond``. So does a constant that is an id, since a sweep may remove its
value.
"""

from __future__ import annotations

from ivm.formula import NOT_FALSE, NOT_TRUE, NULL, TRUE, Formula, Register
from ivm.kernels.codes import AND, FIT, OR
from ivm.words import NUMERIC, Kind, Schema, SqlType, Storage
from planner import gathers
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import compile_expressions, declared_types
from planner.expr.functions.formula import Beyond, FormulaSite
from planner.expr.functions.library import FUNCTIONS, RAISING_CASTS, find_cast
from planner.expr.scalar import And, Call, Case, Coalesce, Column, Literal, Or, Scalar, children
from planner.gathers import Cell


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
        """The register that holds an expression's value, valid on rows where the mask is 1. Raises Beyond."""
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
        """Converts an expression to the given storage and scale, as ``planner.expr.evaluate.evaluator`` does."""
        register, have = self.take(expr, mask), expr.type
        if have.kind is not Kind.NUMERIC or want.kind is not Kind.NUMERIC:
            return register
        if have.storage is want.storage and (have.scale == want.scale or want.precision is None):
            return register
        return self._cast(register, have, want, mask)

    def _call(self, call: Call, mask: Register) -> Register:
        if call.function in RAISING_CASTS:
            source = call.args[0].type
            register = self.take(call.args[0], mask)
            return register if source == call.type else self._cast(register, source, call.type, mask)
        function = FUNCTIONS.get(call.function)
        if function is None or function.formula is None:
            raise Beyond
        if call.type.kind is Kind.NUMERIC and call.type != NUMERIC:
            raise Beyond
        types = declared_types(function, tuple(a.type for a in call.args))
        given = [self._fitted(a, t, mask) for a, t in zip(call.args, types, strict=True)]
        return function.formula(FormulaSite(self.formula, mask, types, call.type), *given)

    def _cast(self, register: Register, source: SqlType, target: SqlType, mask: Register) -> Register:
        function = find_cast(source, target)
        if function is None or function.formula is None:
            raise Beyond
        return function.formula(FormulaSite(self.formula, mask, (source,), target), register)


def _is_constant(expr: Scalar) -> bool:
    """Whether an expression has the same value in every context."""
    match expr:
        case Literal():
            return True
        case Call(function=key, args=(arg,), type=target) if key in RAISING_CASTS:
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
