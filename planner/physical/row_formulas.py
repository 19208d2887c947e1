"""Row programs and result formulas of sums as formulas (``planner.expr.evaluate.formulas``), where possible."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Final

from ivm.formula import EQUAL, NOT_EQUAL, NOT_NULL, TRUE, Formula, Register
from ivm.kernels.codes import BITS_AND, SHIFT
from ivm.rows import Words
from ivm.words import Kind, Schema, Storage
from planner import gathers
from planner.aggregates.accumulable import Accumulation
from planner.aggregates.components import Component, DiffColumn
from planner.expr.context import Context
from planner.expr.evaluate.formulas import Steps
from planner.expr.functions.formula import Beyond
from planner.expr.scalar import Scalar
from planner.logical.traversal import column_types
from planner.physical.arrangement_programs import Keyed, Repeat, Weigh, Weight
from planner.physical.nodes import RowProgram
from planner.physical.row_programs import MapFilter, Pad
from storage.types.numeric import DIRECT_NAN

_HALF: Final = 0xFFFFFFFF


def formula_of(program: RowProgram, context: Context) -> Words | None:
    """The formula equivalent to the program; None if there is none."""
    try:
        match program:
            case MapFilter():
                return _map_filter(program, context)
            case Keyed():
                return _keyed(program, context)
            case Weigh():
                return _weigh(program, context)
            case Weight():
                formula = Formula()
                weights = [formula.constant(weight) for weight in program.weights]
                return formula.made(formula.always, _copied(0, program.out_width), weights=weights)
            case Repeat():
                formula = Formula()
                start = program.skip + 1
                return formula.made(
                    formula.always, _copied(start, program.out_width), weights=[formula.column(program.skip)]
                )
            case Pad():
                return _pad(program)
            case _:
                return None
    except Beyond:
        return None


def _copied(start: int, width: int) -> list[int]:
    """Steps that copy words of the input."""
    return [~word for word in range(start, start + width)]


def _map_filter(program: MapFilter, context: Context) -> Words:
    steps = Steps(program.schema, context)
    keep = _kept(steps, program.predicates)
    if program.exprs is None:
        return steps.formula.made(keep, _copied(0, program.out_width))
    words, nulls = _row(steps, program.exprs, program.output, keep)
    return steps.formula.made(keep, words, nulls)


def _kept(steps: Steps, predicates: Sequence[Scalar]) -> Register:
    """Where all predicates are true, each taken where those before it are."""
    keep = steps.always
    for predicate in predicates:
        keep = steps.formula.where(keep, steps.take(predicate, keep), TRUE)
    return keep


def row_formula(
    schema: Schema, predicates: Sequence[Scalar], exprs: Sequence[Scalar], output: Schema, context: Context
) -> Words | None:
    """The formula from rows that meet the predicates to rows of the expressions, in the layout of ``output``; None if
    there is none. It fails for NULL in a column that has none."""
    try:
        steps = Steps(schema, context)
        keep = _kept(steps, predicates)
        words, nulls = _row(steps, exprs, output, keep)
        return steps.formula.made(keep, words, nulls)
    except Beyond:
        return None


def _row(
    steps: Steps, exprs: Sequence[Scalar], schema: Schema, mask: Register
) -> tuple[list[int], list[tuple[int, int, Register]]]:
    """A row of expressions as words and null bits."""
    words: list[int] = []
    nulls: list[tuple[int, int, Register]] = []
    width = len(schema)
    zero = steps.formula.constant(0)
    for i, (expr, column) in enumerate(zip(exprs, schema, strict=True)):
        register = steps.take(expr, mask)
        if not column.nullable:
            register = steps.formula.require(register, mask)
        elif steps.formula.is_nullable(register):
            nulls.append((width + i // 64, i % 64, register))
        words.append(register)
    return [*words, *[zero] * (gathers.width(schema) - width)], nulls


def _keyed(program: Keyed, context: Context) -> Words:
    steps = Steps(program.schema, context)
    words, nulls = _row(steps, program.keys, column_types(program.keys), steps.always)
    words += [steps.take(word, steps.always) for word in program.words]
    if program.rows:
        words += _copied(0, program.out_width - len(words))
    return steps.formula.made(steps.always, words, nulls)


def _weigh(program: Weigh, context: Context) -> Words:
    if program.layout.slot_sets:
        raise Beyond
    steps = Steps(program.schema, context)
    formula = steps.formula
    args = [steps.take(arg, steps.always) for arg in program.args]
    words, nulls = _row(steps, program.keys, column_types(program.keys), steps.always)
    weights = [_weight(steps, args, component, program.layout) for component in program.layout.components]
    return formula.made(steps.always, words, nulls, [formula.always, *weights])


def _weight(steps: Steps, args: Sequence[Register], component: Component, layout: Accumulation) -> Register:
    """What a row adds to a diff column. A NULL's word is 0."""
    formula = steps.formula
    if component.part is DiffColumn.ROWS:
        return formula.always
    word, type_ = args[component.column], layout.types[component.column]
    if component.part is DiffColumn.COUNT:
        return formula.test(word, NOT_NULL)
    if type_.kind is Kind.INTERVAL:
        raise Beyond
    if type_.kind is Kind.NUMERIC and type_.storage is Storage.DIRECT:
        nan = formula.test(formula.compare(word, formula.constant(DIRECT_NAN), EQUAL), TRUE)
        if component.part is DiffColumn.NAN:
            return nan
        word = formula.choose(nan, formula.constant(0), word)
    match component.part:
        case DiffColumn.VALUE:
            return word
        case DiffColumn.TRUE:
            return formula.compare(word, formula.constant(0), NOT_EQUAL)
        case DiffColumn.LOW:
            return formula.step(BITS_AND, word, formula.constant(_HALF))
        case DiffColumn.HIGH:
            return formula.step(SHIFT, word, constant=-32)
        case _:
            raise Beyond


def _pad(program: Pad) -> Words:
    formula = Formula()
    gather = program.gather
    zero = formula.constant(0)
    words = [zero if word < 0 else ~word for word in gather.words]
    nulls = [(to, bit, formula.column(word, (word, place))) for word, place, to, bit in gather.bits]
    nulls += [(word, bit, formula.constant(None)) for word, bit in program.nulls]
    kept = [formula.test(formula.column(word, (word, bit)), NOT_NULL) for word, bit in gather.drop_if]
    return formula.made(reduce(formula.both, kept, formula.always), words, nulls)
