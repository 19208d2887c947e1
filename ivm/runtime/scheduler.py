"""Running scopes operator by operator, as hydration and queries do.

A *pass* runs one scope at one loop vector, for all ordinals of the step at once. Operators with work to do are woken
and run in topological order (by rank). What they emit at later vectors waits in their own buffers, and the scope's
agenda says which vectors are due. A loop is one item of its parent's pass: it runs all of its due vectors that extend
the parent's vector, least first, until nothing is due. It is entered again when something is owed at a later vector of
the parent.

A step of a maintained dataflow is one run of a compiled program instead (``ivm.runtime.steps``), which does the same
in a kernel.
"""

from __future__ import annotations

from heapq import heappop, heappush

from ivm.errors import SqlError
from ivm.runtime.context import Mode
from ivm.runtime.operator import Operator, Scope
from ivm.runtime.program_run import LoopRun
from ivm.stops import Stopped


def run_pass(scope: Scope, vector: int) -> None:
    """Runs everything awake, in rank order, then clears what was emitted.

    Raises what an operator raises, except where ``broke`` takes down only what is downstream of it.
    """
    try:
        _drain(scope, vector)
        while scope.unfinished:
            _resume(scope, vector)
    except BaseException:
        scope.give_up()
        raise
    for operator in scope.touched:
        operator.clear()
    scope.touched.clear()


def run_vector(loop: Scope, vector: int) -> None:
    """Runs the pass of a due vector of a loop."""
    for item in loop.agenda.pop(vector, ()):
        loop.queue(item)
    run_pass(loop, vector)


def broke(scope: Scope, item: Operator | Scope, error: Exception) -> None:
    """Handles an exception raised by an item of the scope: fails the item and everything downstream; the rest of the
    step goes on. Raises ``error`` instead inside a loop, if nothing is maintained yet, or if primary data is
    affected."""
    if isinstance(error, Stopped):
        error = error.reason()
    primary = isinstance(item, Operator) and item.primary
    if scope.depth or scope.context.mode is not Mode.MAINTAINED or primary:
        raise error
    if isinstance(error, SqlError):
        failure = error.with_traceback(None)  # its frames would keep their locals alive
    elif isinstance(error, MemoryError):
        failure = SqlError("53200", "out of memory")
        failure.__cause__ = error
    else:
        failure = SqlError("XX000", f"internal error: {type(error).__name__}: {error}")
        failure.__cause__ = error
    item.fail(failure)


def _drain(scope: Scope, vector: int) -> None:
    heap = scope.heap
    members = scope.members
    touched = scope.touched
    while heap:
        item = members[heappop(heap)]
        item.queued = False
        try:
            if isinstance(item, Scope):
                _run_loop(item, vector)
                continue
            emits = item.run(vector)
        except Exception as error:
            broke(scope, item, error)
            if isinstance(item, Operator):
                touched.append(item)
            continue
        if emits:
            touched.append(item)
            for consumer in item.inside:
                if not consumer.queued:
                    consumer.queued = True
                    heappush(heap, consumer.rank)
            for consumer in item.entering:
                consumer.wake()


def _resume(scope: Scope, vector: int) -> None:
    """Runs the next slice of the unfinished join that is furthest downstream, so that the traces it reads do not change
    until it has ended. What was emitted has been consumed and must not be seen again; the join itself keeps its current
    deltas."""
    item = max(scope.unfinished, key=lambda operator: operator.rank)
    scope.unfinished.remove(item)
    scope.context.look()
    for operator in scope.touched:
        operator.clear_for_slice()
    scope.touched.clear()
    item.wake()
    _drain(scope, vector)


def _run_loop(loop: Scope, outer: int) -> None:
    """Runs every due vector that extends the parent's vector ``outer``."""
    context = loop.context
    loop.outer = outer
    if loop.depth == 1:
        context.enter(loop)
    if loop.error is not None:
        loop.drop()
        return
    if loop.entries:
        first = outer << loop.width if loop.depth > 1 else 0
        for entry in loop.entries:
            loop.schedule(first, entry)
        loop.entries.clear()
    due = loop.due
    while due and (loop.depth == 1 or due[0] >> loop.width == outer):
        refused = context.look(loop.outermost)
        if refused is not None:
            loop.fail(refused)
        if loop.error is not None:
            loop.drop()
            break
        compiled = _compiled(loop)
        if compiled is not None:
            compiled.run()
        else:
            run_vector(loop, heappop(due))
    for leave in loop.leaving:
        leave.run(outer)
    loop.leaving.clear()


def _compiled(loop: Scope) -> LoopRun | None:
    """The compiled form of an outermost loop and the loops in it; None: it runs pass by pass. That is the case when new
    nodes are hydrated among running ones, which must not emit contents of their own meanwhile."""
    if loop.depth != 1 or not loop.context.mode.counts_everything:
        return None
    if not isinstance(loop.compiled, LoopRun):
        loop.compiled = LoopRun(loop)
    return loop.compiled
