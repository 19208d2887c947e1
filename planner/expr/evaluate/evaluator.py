"""The one evaluator of scalar expressions: vectorised over words, compiled once to closures.

Rules: CASE, COALESCE, AND and OR evaluate their later parts, and fail, only on the rows that reach them. A row that
fails is data: it is listed in ``Failures`` and is NULL in the result. Calls of immutable functions over literals are
computed once, expressions without columns once per batch. An expression that occurs twice is computed once if all
rows reach it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final, assert_never

import numpy as np

from ivm.errors import SqlError, unsupported
from ivm.rows import Vector
from ivm.stops import poll
from ivm.words import BOOL, NUMERIC, TEXT, Kind, SqlType
from planner.expr.context import Context, SessionFunctions
from planner.expr.evaluate.alike import run_alike
from planner.expr.evaluate.array_casts import array_cast
from planner.expr.evaluate.branches import run_and, run_case, run_coalesce, run_or, run_try
from planner.expr.evaluate.calls import Run, call_runner
from planner.expr.evaluate.checked import run_checked
from planner.expr.evaluate.member import member
from planner.expr.evaluate.slices import SLICE, in_slices
from planner.expr.functions.internal.membership import MEMBER
from planner.expr.functions.json.building import of_fields
from planner.expr.functions.library import (
    ASSIGNMENT_CAST,
    CAST,
    FUNCTIONS,
    RAISING_CASTS,
    TRY,
    TRY_CAST,
    find_cast,
    is_volatile,
)  # fmt: skip
from planner.expr.functions.table import ANYCOMPATIBLE, ANYELEMENT, ANYNONARRAY, ArgumentType, Function, function_key
from planner.expr.functions.text.string import JOINED
from planner.expr.parts import walk
from planner.expr.rows import Failures, RowBatch, constant_vector, repeated
from planner.expr.scalar import (
    LEAVES,
    Alike,
    And,
    Call,
    Case,
    Checked,
    Coalesce,
    Column,
    Exists,
    Literal,
    Or,
    OuterColumn,
    Parameter,
    Quantified,
    Scalar,
    ScalarSubquery,
    children,
)  # fmt: skip
from planner.memo import entries
from storage.types.codec import decode, encode_one
from storage.types.type_names import format_type

__all__ = [
    "Compiled", "Context", "Failures", "SessionFunctions", "compile_expressions", "constant", "evaluate", "evaluated",
]  # fmt: skip

Compiled = Callable[[Sequence[Vector], int, Context], tuple[list[Vector], Failures | None]]
_CACHE_LIMIT: Final = 4096
_JOIN: Final = function_key("||", (TEXT, TEXT))
_PLAIN: Final[tuple[ArgumentType, ...]] = (NUMERIC, ANYELEMENT, ANYNONARRAY, ANYCOMPATIBLE)
_cache: dict[int, tuple[Sequence[Scalar], Compiled]] = entries()


def evaluate(
    exprs: Sequence[Scalar], columns: Sequence[Vector], count: int, context: Context
) -> tuple[list[Vector], Failures | None]:
    """The expressions' values on ``count`` rows, int64[count] each, and the rows that failed (NULL in some of them).

    The vectors may share memory with ``columns`` or be read-only with stride 0: never write into them.
    Compiled forms are cached by the identity of ``exprs``, so pass the same tuple each time.
    """
    known = _cache.get(id(exprs))
    if known is None or known[0] is not exprs:
        if len(_cache) >= _CACHE_LIMIT:
            _cache.clear()
        # the entry keeps exprs alive, so that its id is not reused; lists are not cached, since they may change
        held = exprs if isinstance(exprs, tuple) else tuple(exprs)
        known = (held, compile_expressions(held))
        if held is exprs:
            _cache[id(exprs)] = known
    return known[1](columns, count, context)


def evaluated(exprs: Sequence[Scalar], columns: Sequence[Vector], count: int, context: Context) -> list[Vector]:
    """The values that ``evaluate`` gives. Raises the error of the first row that failed."""
    vectors, failures = evaluate(exprs, columns, count, context)
    if failures is not None:
        raise failures.errors[0]
    return vectors


def compile_expressions(exprs: Sequence[Scalar]) -> Compiled:
    """A function of (columns, count, context) that does what ``evaluate`` does."""
    compiler = _Compiler(exprs)
    runs = [compiler.compile(e).run for e in exprs]

    def at_once(columns: Sequence[Vector], count: int, context: Context) -> tuple[list[Vector], Failures | None]:
        batch = RowBatch(columns, count, context)
        if count == 0:
            empty = np.zeros(0, np.int64)
            return [Vector(empty) for _ in runs], None
        poll()
        vectors = [r(batch) for r in runs]
        return vectors, batch.failures()

    return lambda columns, count, context: (
        at_once(columns, count, context) if count <= SLICE else in_slices(at_once, columns, count, context)
    )


def constant(expr: Scalar, context: Context) -> object:
    """The datum of an expression without columns; raises its SqlError."""
    if isinstance(expr, Literal):
        return expr.value
    vectors, failures = compile_expressions((expr,))((), 1, context)
    if failures is not None:
        raise replace(failures.errors[0])
    return decode(expr.type, vectors[0], context.dictionary)[0]


@dataclass(slots=True, eq=False)
class _Node:
    """``fixed``: reads no column and calls no volatile function; ``folded``: the same in every context.
    ``safe``: cannot fail and has no effects, so that it may run on rows that do not need it."""

    run: Run
    fixed: bool
    folded: bool
    safe: bool


_RUN, _FIXED, _FOLDED, _SAFE = map(attrgetter, ("run", "fixed", "folded", "safe"))


class _Compiler:
    """Compiles equal parts once. Invariant: the expressions live as long as it does, so that ids tell parts apart."""

    def __init__(self, exprs: Sequence[Scalar]) -> None:
        self.first: dict[int, Scalar] = {}
        """The first of each group of equal parts, by the id of each of them."""
        self.again: set[int] = set()
        """The ids of the first parts of groups of several."""
        self.nodes: dict[int, _Node] = {}
        """By the id of the first part, of groups of several."""
        self._count(exprs)

    def _count(self, exprs: Sequence[Scalar]) -> None:
        equal: dict[Scalar, Scalar] = {}
        todo = list(exprs[::-1])
        while todo:
            part = todo.pop()
            if type(part) in LEAVES:
                continue
            first = equal.setdefault(part, part)
            if first is part and id(part) not in self.first:
                todo += children(part)[::-1]
            else:
                self.again.add(id(first))
            self.first[id(part)] = first

    def compile(self, expr: Scalar) -> _Node:
        """The node of an expression. If the expression occurs twice, the node reuses the batch's result."""
        if type(expr) in LEAVES:
            return self._node(expr)
        first = self.first[id(expr)]  # of the others the parts are not known
        if id(first) not in self.again:
            return self._node(first)
        node = self.nodes.get(id(first))
        if node is None:
            node = self._node(first)
            if not any(map(is_volatile, walk(first))):
                node.run = _shared(node.run, len(self.nodes))
                self.nodes[id(first)] = node
        return node

    def _node(self, expr: Scalar) -> _Node:
        match expr:
            case Column():
                index = expr.index
                return _Node(lambda batch: batch.column(index), False, False, True)
            case Literal():
                return _Node(_literal(expr), True, True, True)
            case Call():
                return self._call(expr)
            case Case():
                return self._case(expr)
            case And():
                return self._branches(expr.args, run_and, BOOL)
            case Or():
                return self._branches(expr.args, run_or, BOOL)
            case Coalesce():
                return self._branches(expr.args, run_coalesce, expr.type)
            case Parameter():
                return _Node(_parameter(expr), True, False, True)
            case Checked():
                return self._checked(expr)
            case Alike():
                return self._alike(expr)
            case OuterColumn() | ScalarSubquery() | Exists() | Quantified():
                raise AssertionError(f"decorrelation has left {type(expr).__name__}")
            case _:
                assert_never(expr)

    def _branches(
        self, args: tuple[Scalar, ...], runner: Callable[[tuple[Run, ...], tuple[bool, ...]], Run], type: SqlType
    ) -> _Node:
        nodes = [_fitted(self.compile(a), a.type, type) for a in args]
        run = runner(tuple(map(_RUN, nodes)), tuple(map(_SAFE, nodes)))
        return _finished(run, nodes, immutable=True, safe=all(map(_SAFE, nodes)))

    def _case(self, case: Case) -> _Node:
        nodes: list[_Node] = []
        arms: list[tuple[Run, Run]] = []
        for condition, value in case.arms:
            test, result = self.compile(condition), _fitted(self.compile(value), value.type, case.type)
            nodes += (test, result)
            arms.append((test.run, result.run))
        otherwise = _fitted(self.compile(case.otherwise), case.otherwise.type, case.type)
        nodes.append(otherwise)
        return _finished(run_case(tuple(arms), otherwise.run), nodes, immutable=True, safe=all(map(_SAFE, nodes)))

    def _checked(self, expr: Checked) -> _Node:
        value = self.compile(expr.value)
        check = _Compiler((expr.check,)).compile(expr.check)
        element = expr.type.element if expr.each else None
        return _finished(run_checked(value.run, check.run, element), [value], immutable=False, safe=False)

    def _alike(self, chain: Alike) -> _Node:
        args = [self.compile(a) for a in chain.args]
        bodies = [_Compiler((f.body,)).compile(f.body) for f in chain.forms]
        run = run_alike(chain, tuple(map(_RUN, args)), tuple(map(_RUN, bodies)))
        safe = chain.operator in ("and", "or") and all(map(_SAFE, (*args, *bodies)))
        return _finished(run, args, immutable=True, safe=safe)

    def _joined_texts(self, call: Call) -> Call:
        """``a || b || …`` as one call, unless a part is used elsewhere too: its parts take time in their square."""
        texts: list[Scalar] = []
        first: Scalar = call
        while isinstance(first, Call) and first.function == _JOIN and (first is call or self._occurs_once(first)):
            texts.append(first.args[1])
            first = first.args[0]
        return call if len(texts) < 2 else Call(JOINED, (first, *reversed(texts)), call.type, call.nullable)

    def _occurs_once(self, part: Scalar) -> bool:
        return id(self.first[id(part)]) not in self.again

    def _call(self, call: Call) -> _Node:
        if call.function == _JOIN:
            call = self._joined_texts(call)
        call = of_fields(call)
        key = call.function
        nodes = [self.compile(a) for a in call.args]
        types = tuple([a.type for a in call.args])
        if key in RAISING_CASTS:
            return cast_node(nodes[0], types[0], call.type, key)
        if key == TRY_CAST:
            return _tried(cast_node(nodes[0], types[0], call.type, CAST))
        if key == TRY:
            return _tried(nodes[0])
        if key == MEMBER and nodes[1].fixed:
            return self._member(call, nodes)
        function = FUNCTIONS.get(key)
        assert function is not None, f"no function {key}"
        wanted = declared_types(function, types)
        nodes = [_fitted(n, have, want) for n, have, want in zip(nodes, types, wanted, strict=True)]
        return call_node(function, nodes, wanted, call.type)

    def _member(self, call: Call, nodes: list[_Node]) -> _Node:
        run = member(nodes[0].run, nodes[1].run, call.args[1])
        return _finished(run, nodes, immutable=True, safe=all(map(_SAFE, nodes)))


def declared_types(function: Function, types: tuple[SqlType, ...]) -> tuple[SqlType, ...]:
    """The argument types that the implementation gets: numerics lose their typmod unless it is declared with ANY."""
    if len(function.args) == len(types) and Kind.NUMERIC not in [t.kind for t in types]:
        return types
    declared = list(function.args)
    if function.variadic:
        declared += [declared[-1]] * (len(types) - len(declared))
    assert len(declared) == len(types), f"{function.key} called with {len(types)} arguments"
    return tuple(NUMERIC if _plain(want, have) else have for want, have in zip(declared, types, strict=True))


def _plain(declared: ArgumentType, concrete: SqlType) -> bool:
    """Whether a numeric is passed or returned without typmod."""
    return concrete.kind is Kind.NUMERIC and declared in _PLAIN


def call_node(function: Function, args: Sequence[_Node], types: tuple[SqlType, ...], result: SqlType) -> _Node:
    """The node of a call whose arguments already have the words that the implementation expects."""
    made = NUMERIC if _plain(function.result, result) else result
    run = call_runner(function, tuple(map(_RUN, args)), types, made)
    safe = function.total and all(map(_SAFE, args))
    node = _finished(run, args, function.volatility == "immutable", safe, function.volatility == "volatile")
    return _fitted(node, made, result)


def cast_node(arg: _Node, source: SqlType, target: SqlType, key: str) -> _Node:
    """A cast's node. Raises 0A000 for casts that Postgres has and Freshet lacks."""
    if source == target:
        return arg
    if source.element is not None and target.element is not None:
        run, immutable = array_cast(arg.run, source, target, key == ASSIGNMENT_CAST, _element_cast)
        return _finished(run, [arg], immutable, False)
    function = find_cast(source, target)
    if function is None:
        raise unsupported(f"the cast from {format_type(source)} to {format_type(target)}")
    if function.needs_assignment:
        implementation, strictly = function.implementation, key == ASSIGNMENT_CAST
        function = replace(
            function,
            key=f"{function.key} {key}",
            implementation=lambda site, *args: implementation(site, *args, assignment=strictly),
        )
    run = call_runner(function, (arg.run,), (source,), target)
    return _finished(run, [arg], function.volatility == "immutable", function.total and arg.safe)


def _element_cast(run: Run, source: SqlType, target: SqlType, assignment: bool) -> tuple[Run, bool]:
    node = cast_node(_Node(run, False, False, True), source, target, ASSIGNMENT_CAST if assignment else CAST)
    function = find_cast(source, target)
    return node.run, function is None or function.volatility == "immutable"


def _fitted(node: _Node, have: SqlType, want: SqlType) -> _Node:
    """Converts numerics to the given storage and scale; other typmods do not change words."""
    if have.kind is not Kind.NUMERIC or want.kind is not Kind.NUMERIC:
        return node
    if have.storage is want.storage and (have == want or want.precision is None):
        return node
    if have.storage is want.storage and have.scale == want.scale:
        return node
    return cast_node(node, have, want, CAST)


def _finished(run: Run, parts: Sequence[_Node], immutable: bool, safe: bool, volatile: bool = False) -> _Node:
    """Computes a fixed node on one row only, and a folded one once per dictionary."""
    if volatile or not all(map(_FIXED, parts)):
        return _Node(run, False, False, safe)
    folded = immutable and all(map(_FOLDED, parts))
    return _Node(_folded(run) if folded else _fixed(run), True, folded, safe)


def _fixed(run: Run) -> Run:
    def run_once(batch: RowBatch) -> Vector:
        if batch.count == 1:
            return run(batch)
        one = RowBatch((), 1, batch.context)
        vector = run(one)
        return _spread(batch, vector, one.failed[0][1] if one.failed else None)

    return run_once


def _folded(run: Run) -> Run:
    known: tuple[int, Vector, SqlError | None] = (0, Vector(np.zeros(1, np.int64)), None)

    def run_once(batch: RowBatch) -> Vector:
        nonlocal known
        serial, vector, error = known
        if serial != batch.context.dictionary.serial:
            one = RowBatch((), 1, batch.context)
            vector = run(one)
            error = one.failed[0][1] if one.failed else None
            known = (batch.context.dictionary.serial, vector, error)
        return _spread(batch, vector, error)

    return run_once


def _spread(batch: RowBatch, vector: Vector, error: SqlError | None) -> Vector:
    """Broadcasts one row's value to all rows with stride 0."""
    if error is not None:
        batch.failed.append((np.arange(batch.count), error))
    if batch.count == 1:
        return vector
    nulls = None if vector.nulls is None else repeated(vector.nulls, batch.count)
    return Vector(repeated(vector.words, batch.count), nulls)


def _tried(node: _Node) -> _Node:
    return replace(node, run=run_try(node.run), safe=True, fixed=False, folded=False)


def _shared(run: Run, number: int) -> Run:
    def look(batch: RowBatch) -> Vector:
        vector = batch.shared.get(number)
        if vector is None:
            vector = batch.shared[number] = run(batch)
        return vector

    return look


def _null_vector(count: int) -> Vector:
    return Vector(np.broadcast_to(np.int64(0), count), np.broadcast_to(np.True_, count))


def _literal(literal: Literal) -> Run:
    if literal.value is None:
        return lambda batch: _null_vector(batch.count)
    known = (0, Vector(np.zeros(1, np.int64)))

    def run(batch: RowBatch) -> Vector:
        nonlocal known
        serial, vector = known
        dictionary = batch.context.dictionary
        if serial != dictionary.serial:
            vector = constant_vector(encode_one(literal.type, literal.value, dictionary), 1)
            known = (dictionary.serial, vector)
        return vector if batch.count == 1 else Vector(repeated(vector.words, batch.count))

    return run


def _parameter(parameter: Parameter) -> Run:
    def run(batch: RowBatch) -> Vector:
        datum = batch.context.parameters[parameter.index - 1]
        if datum is None:
            return _null_vector(batch.count)
        return constant_vector(encode_one(parameter.type, datum, batch.context.dictionary), batch.count)

    return run
