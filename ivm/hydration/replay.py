"""Bringing new nodes into a running dataflow: their ranks, and what existing nodes hold, replayed to them alone.

Stateless nodes keep nothing, so their contents are made again from the nearest arrangements: either from one that
consumes them and loses nothing, or by running a copy of the operator on its inputs' contents.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from ivm.errors import SqlError, unsupported
from ivm.kernels.blocks import ENTER, LEAVE, SAME
from ivm.operators.arrange import ArrangeOperator
from ivm.operators.asof import AsOfOperator
from ivm.operators.delta_join import DeltaJoinOperator
from ivm.operators.join import JoinOperator
from ivm.operators.linear import (
    ConcatOperator,
    ConsolidateOperator,
    ErrorsOperator,
    FlatMapOperator,
    InputOperator,
    NegateOperator,
    ProjectOperator,
    SourceOperator,
)  # fmt: skip
from ivm.operators.loop import (
    DelayOperator,
    EnterOperator,
    LeaveTap,
    LeavingOperator,
    OverflowOperator,
    VariableOperator,
)  # fmt: skip
from ivm.operators.reduce import ReduceOperator
from ivm.runtime.context import Core
from ivm.runtime.scheduler import Operator, Scope
from ivm.trace.batch import Block
from ivm.trace.shards import copied, sorted_block

Memo = dict[int, Block]
"""Contents of operators, by identity."""


def needs(operator: Operator) -> list[Operator]:
    """Everything that must run before it, and whose state it reads; not what a variable gets by feedback."""
    match operator:
        case JoinOperator():
            left, right = operator.left, operator.right
            return [left.delta, right.delta] + [side.arrangement for side in (left, right) if not side.delay]
        case DeltaJoinOperator():
            return operator.feeds() + [side.arrangement for course in operator.courses for side in course.sides]
        case LeavingOperator():
            return [operator.source]
    return operator.feeds()


def _lift(operator: Operator, level: Scope) -> Operator | Scope | None:
    """The item of ``level`` that holds the operator; None when the operator is outside of that level."""
    if operator.scope is level:
        return operator
    scope = operator.scope
    while scope.parent is not None and scope.parent is not level:
        scope = scope.parent
    return scope if scope.parent is level else None


def rank(root: Scope, fresh: Sequence[Operator], counter: int) -> int:
    """Gives new operators and loops ranks in topological order, each loop counting as one item of its parent.

    Returns the counter, moved on. New nodes never come before old ones.
    """
    inside: dict[int, list[Operator]] = {}
    for operator in fresh:
        scope: Scope | None = operator.scope
        while scope is not None:
            inside.setdefault(id(scope), []).append(operator)
            scope = scope.parent

    def place(level: Scope) -> None:
        done: set[int] = set()

        def visit(item: Operator | Scope) -> None:
            nonlocal counter
            if id(item) in done:
                return
            done.add(id(item))
            members = inside.get(id(item), []) if isinstance(item, Scope) else [item]
            for member in members:
                for need in needs(member):
                    above = _lift(need, level)
                    if above is not None and above is not item and (above.rank < 0 or id(above) in inside):
                        visit(above)
            if item.rank < 0:
                counter += 1
                item.rank = counter
                level.members[counter] = item
            for member in members:
                for need in needs(member):
                    above = _lift(need, level)
                    assert above is None or above is item or above.rank < item.rank, "a loop that is entered again"
            if isinstance(item, Scope):
                place(item)

        for operator in inside.get(id(level), []):
            item = _lift(operator, level)
            assert item is not None
            visit(item)

    place(root)
    inside.clear()  # the functions above refer to themselves and to this: operators must not wait for the collector
    return counter


def replay_into(core: Core, fresh: Sequence[Operator]) -> list[tuple[Operator, Block]]:
    """Links new operators to what they read, lets old ones offer their contents, and wakes the new ones.

    Returns the old operators with the blocks that are to be put back after the pass.
    """
    new = {id(operator) for operator in fresh}
    memo: Memo = {}
    offered: dict[int, tuple[Operator, Block]] = {}
    links: list[tuple[Operator, Operator]] = []
    for operator in fresh:
        if isinstance(operator, OverflowOperator) and id(operator.variable) not in new:
            _leave_again(operator, _contents(core, operator, memo))
        for source in operator.feeds():
            links.append((source, operator))
            if id(source) in new:
                continue
            if operator.scope.depth and not isinstance(operator, EnterOperator):
                _replay_inside(core, operator, source, memo)
            elif id(source) not in offered:
                block = replay(core, source, memo)
                offered[id(source)] = (source, source.out)
                source.out = block
    for source, operator in links:
        source.link(operator)
        if id(source) in offered and source.out.n:
            operator.wake()
    for source, operator in links:
        if source.error is not None:
            operator.fail(source.error)
    return list(offered.values())


def _replay_inside(core: Core, operator: Operator, source: Operator, memo: Memo) -> None:
    """A new node on an old loop's collection: only leaving the loop is possible."""
    if not isinstance(operator, LeaveTap):
        raise unsupported("a new operator inside a loop that is running already")
    held = replay(core, source, memo)
    _leave_again(operator.leave, _moved(held, LEAVE, source.scope.shape, 0))


def _leave_again(leaving: LeavingOperator, held: Block) -> None:
    """Lets what leaves an old loop do so when the dataflow is hydrated."""
    if leaving.scope.depth:
        raise unsupported("a new operator inside a loop that is running already")
    waiting = leaving.gathered
    waiting.reserve(held.n)
    waiting.n = copied(held, waiting, 1, SAME, 0, 0)
    leaving.scope.leaving.append(leaving)


def replay(core: Core, operator: Operator, memo: Memo | None = None) -> Block:
    """The operator's present contents as updates with ordinals raised to the since."""
    memo = {} if memo is None else memo
    found = memo.get(id(operator))
    if found is not None:
        if found is _UNDER_WAY:
            raise unsupported("reading a loop that keeps no arrangement")
        return found
    memo[id(operator)] = _UNDER_WAY
    memo[id(operator)] = block = _contents(core, operator, memo)
    return block


_UNDER_WAY = Block(0)
_LINEAR = (
    VariableOperator, ProjectOperator, FlatMapOperator, ConcatOperator, NegateOperator, ConsolidateOperator,
)  # fmt: skip
"""What turns each update into updates of its own, and keeps nothing."""


def _kept(core: Core, operator: Operator) -> Block | None:
    """The contents that an arrangement has of it, if one loses nothing."""
    if operator.spine is not None:
        return operator.spine.contents(core.since)
    for consumer in operator.consumers:
        if isinstance(consumer, ArrangeOperator) and consumer.recover() is not None:
            return consumer.restored(consumer.kept.contents(core.since))
    return None


def _contents(core: Core, operator: Operator, memo: Memo) -> Block:
    kept = _kept(core, operator)
    if kept is not None:
        return kept
    match operator:
        case InputOperator():
            assert not operator.fed, "an Input that was fed has an Arrange from which its rows can be recovered"
            return Block(operator.width)
        case SourceOperator():
            return operator.block()
        case OverflowOperator():
            assert operator.variable.body is not None
            last = operator.last_round(replay(core, operator.variable.body, memo))
            return sorted_block(_moved(last, LEAVE, operator.source.scope.shape, 0))
        case LeavingOperator():
            return sorted_block(_moved(replay(core, operator.source, memo), LEAVE, operator.source.scope.shape, 0))
        case EnterOperator():
            held = replay(core, operator.source, memo)
            return _moved(held, ENTER, operator.source.scope.shape, operator.scope.shape)
        case VariableOperator():
            cycle = _linear_cycle(core, operator, memo)
            if cycle is not None:
                return _run_through(core, operator, *cycle, memo)
            return operator.later_by_a_round(replay(core, _body(operator), memo))
        case DelayOperator():
            return operator.replay(replay(core, operator.source, memo))
    return _again(core, operator, memo)


def _linear_cycle(
    core: Core, variable: VariableOperator, memo: Memo
) -> tuple[list[VariableOperator], list[Operator]] | None:  # fmt: skip
    """The variables that a variable's body is made of by linear operators that keep nothing, itself among them, and
    what else it is made of; None where it is not."""
    loop = variable.scope
    variables = {id(variable): variable}
    starts: dict[int, Operator] = {}
    todo = [_body(variable)]
    seen: set[int] = set()
    circular = False
    while todo:
        operator = todo.pop()
        circular |= operator is variable
        if id(operator) in seen:
            continue
        seen.add(id(operator))
        kept = _kept(core, operator)
        if kept is not None:
            memo[id(operator)] = kept
        if kept is not None or operator.scope is not loop or not isinstance(operator, _LINEAR):
            starts[id(operator)] = operator
        elif isinstance(operator, VariableOperator):
            variables[id(operator)] = operator
            todo.append(_body(operator))
        else:
            todo += operator.feeds()
    return (list(variables.values()), list(starts.values())) if circular else None


def _run_through(
    core: Core, variable: VariableOperator, variables: list[VariableOperator], starts: list[Operator], memo: Memo
) -> Block:  # fmt: skip
    """A variable of a loop that keeps nothing of it: what its body is made of goes round once more, round by round,
    each round's updates by themselves, as linear operators allow."""
    given = {id(start): replay(core, start, memo) for start in starts}
    mask = (1 << variable.scope.width) - 1
    left = sorted({r for block in given.values() for r in (block.arrays()[1] & mask).tolist()}, reverse=True)
    new = {id(v): Block(v.width) for v in variables}
    rounds: list[Memo] = [new]
    now = 0
    while left or any(block.n for block in new.values()):
        if core.interrupted:
            raise SqlError("57014", "canceling statement due to user request")
        # What cancels out does so in its round: so rounds go one after another.
        now = now + 1 if any(block.n for block in new.values()) else left[-1]
        if left and left[-1] == now:
            left.pop()
        known = {key: _of_round(block, now, mask) for key, block in given.items()} | new
        new = {id(v): sorted_block(v.later_by_a_round(replay(core, _body(v), known))) for v in variables}
        rounds.append(new)
    for v in variables:
        arrays = zip(*(found[id(v)].arrays() for found in rounds), strict=True)
        memo[id(v)] = Block.of(*(np.concatenate(parts) for parts in arrays))
    return memo[id(variable)]


def _of_round(block: Block, number: int, mask: int) -> Block:
    rows, times, diffs = block.arrays()
    chosen = (times & mask) == number
    return Block.of(rows[chosen], times[chosen], diffs[chosen])


def _body(variable: VariableOperator) -> Operator:
    assert variable.body is not None
    return variable.body


def _moved(given: Block, change: int, shape: int, to_shape: int) -> Block:
    block = Block(given.width, given.diff_width, max(given.n, 1))
    block.n = copied(given, block, 1, change, shape, to_shape)
    return block


def _again(core: Core, operator: Operator, memo: Memo) -> Block:
    """Runs a copy of the operator on its inputs' contents."""
    clone = copy.copy(operator)
    clone.out = Block(operator.width, operator.diff_width)
    clone.spine = None
    clone.ran = False
    match clone:
        case JoinOperator():
            return clone.replay(_offering(clone.left.delta, replay(core, clone.left.delta, memo)))
        case AsOfOperator():
            clone.left = _offering(clone.left, replay(core, clone.left, memo))
            clone.right = _offering(clone.right, replay(core, clone.right, memo))
        case DeltaJoinOperator():
            first = clone.courses[0].delta
            return clone.replay(_offering(first, replay(core, first, memo)))
        case ConcatOperator():
            clone.sources = [_offering(source, replay(core, source, memo)) for source in clone.sources]
            clone._own = clone.out
        case ErrorsOperator():
            clone.source = copy.copy(clone.source)
            given: Operator = clone.source.source  # type: ignore[attr-defined]
            clone.source.source = _offering(given, replay(core, given, memo))  # type: ignore[attr-defined]
            clone.source.out = Block(clone.source.width, clone.source.diff_width)
            clone.source.spine = None
            clone.source.ran = False
            clone.source.errors = Block(1)  # type: ignore[attr-defined]
            clone.source.run(0)
        case FlatMapOperator() | ReduceOperator():
            clone.errors = Block(1)
    if not isinstance(clone, JoinOperator | AsOfOperator | DeltaJoinOperator | ConcatOperator | ErrorsOperator):
        (source,) = operator.feeds()
        clone.source = _offering(source, replay(core, source, memo))  # type: ignore[attr-defined]
    clone.run(0)
    return clone.out


def _offering(source: Operator, block: Block) -> Operator:
    """A copy of an operator that emits its contents, which others may read too."""
    stub = copy.copy(source)
    stub.inside, stub.entering = [], []
    stub.out = block
    return stub
