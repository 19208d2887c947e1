"""Linking new operators to running ones, which replay what they hold to the new ones alone.

The contents of stateless operators are recomputed from the nearest arrangements: from a lossless one that consumes
them, or by ``Operator.contents``, usually by running a copy on its inputs' contents.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ivm.errors import SqlError, unsupported
from ivm.runtime.context import FlowContext
from ivm.runtime.operator import Operator
from ivm.trace.batch import Block
from ivm.trace.shards import sorted_block

Memo = dict[int, Block]
"""Contents of operators, by identity."""


def replay_into(context: FlowContext, fresh: Sequence[Operator]) -> list[tuple[Operator, Block]]:
    """Links new operators to their inputs, makes running operators offer their contents, and wakes the new ones.

    Returns the running operators that offer something, with the blocks to restore as their ``out`` after the pass.
    Raises 0A000 if a new operator would need contents that no arrangement has.
    """
    new = {id(operator) for operator in fresh}
    memo: Memo = {}
    offered: dict[int, tuple[Operator, Block]] = {}
    links: list[tuple[Operator, Operator]] = []

    def held(operator: Operator) -> Block:
        return replay(context, operator, memo)

    for operator in fresh:
        links += [(source, operator) for source in operator.inputs()]
        for source in operator.read_running(held, new):
            if id(source) not in offered:
                block = held(source)
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


def replay(context: FlowContext, operator: Operator, memo: Memo | None = None) -> Block:
    """The operator's present contents as updates with ordinals raised to the since.

    ``memo``: contents known already; these are added to it. Raises 0A000 if no arrangement has them.
    """
    memo = {} if memo is None else memo
    found = memo.get(id(operator))
    if found is not None:
        if found is _UNDER_WAY:
            raise unsupported("reading a loop that keeps no arrangement")
        return found
    memo[id(operator)] = _UNDER_WAY
    memo[id(operator)] = block = _contents(context, operator, memo)
    return block


_UNDER_WAY = Block(0)


def _kept(operator: Operator) -> Block | None:
    """The operator's contents recovered from an arrangement, if a lossless one exists."""
    if operator.spine is not None:
        return operator.spine.contents(operator.context.since)
    for consumer in operator.consumers:
        found = consumer.input_contents()
        if found is not None:
            return found
    return None


def _contents(context: FlowContext, operator: Operator, memo: Memo) -> Block:
    kept = _kept(operator)
    if kept is not None:
        return kept
    if operator.feedback is not None:
        cycle = _linear_cycle(operator, memo)
        if cycle is not None:
            return _run_through(context, operator, *cycle, memo)
    return operator.contents(lambda other: replay(context, other, memo))


def _linear_cycle(variable: Operator, memo: Memo) -> tuple[list[Operator], list[Operator]] | None:
    """The variables (the given one among them) from which stateless linear operators compute the variable's body, and
    the other operators that the body is computed from. None if the body depends on the variable in another way, or not
    at all."""
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
        kept = _kept(operator)
        if kept is not None:
            memo[id(operator)] = kept
        if kept is not None or operator.scope is not loop or not operator.LINEAR:
            starts[id(operator)] = operator
        elif operator.feedback is not None:
            variables[id(operator)] = operator
            todo.append(operator.feedback)
        else:
            todo += operator.inputs()
    return (list(variables.values()), list(starts.values())) if circular else None


def _run_through(
    context: FlowContext, variable: Operator, variables: list[Operator], starts: list[Operator], memo: Memo
) -> Block:  # fmt: skip
    """The contents of a variable of which the loop keeps no state: replays the loop round by round, each round's
    updates by themselves, which is valid because the operators are linear. Raises 57014."""
    given = {id(start): replay(context, start, memo) for start in starts}
    mask = (1 << variable.scope.width) - 1
    left = sorted({r for block in given.values() for r in (block.arrays()[1] & mask).tolist()}, reverse=True)
    new = {id(v): Block(v.width) for v in variables}
    rounds: list[Memo] = [new]
    now = 0
    while left or any(block.n for block in new.values()):
        if context.interrupted:
            raise SqlError("57014", "canceling statement due to user request")
        # Updates cancel out within their round, so rounds run one after another.
        now = now + 1 if any(block.n for block in new.values()) else left[-1]
        if left and left[-1] == now:
            left.pop()
        known = {key: _of_round(block, now, mask) for key, block in given.items()} | new
        new = _next_round(context, variables, known)
        rounds.append(new)
    for v in variables:
        arrays = zip(*(found[id(v)].arrays() for found in rounds), strict=True)
        memo[id(v)] = Block.of(*(np.concatenate(parts) for parts in arrays))
    return memo[id(variable)]


def _next_round(context: FlowContext, variables: list[Operator], known: Memo) -> Memo:
    """What variables hold in the next round, given what they and the bodies' other inputs hold in this one."""
    return {id(v): sorted_block(v.contents(lambda body: replay(context, body, known))) for v in variables}


def _of_round(block: Block, number: int, mask: int) -> Block:
    rows, times, diffs = block.arrays()
    chosen = (times & mask) == number
    return Block.of(rows[chosen], times[chosen], diffs[chosen])


def _body(variable: Operator) -> Operator:
    assert variable.feedback is not None
    return variable.feedback
