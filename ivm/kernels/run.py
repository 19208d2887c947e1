"""A step's operators in one call: a program's rows, run in rank order at each vector that is due.

Due rows of the outermost scope, most of whose rows are idle, wait in a queue; a loop has few rows, and each pass scans
them. If an instruction is left to Python, the kernel returns, and continues after that row when called again. Each
scope's progress in its pass is stored in the program, so a return costs no more than the call.
"""

from __future__ import annotations

from ivm.kernels.cache import kernel
from ivm.kernels.instructions import run_row
from ivm.kernels.memory import load, store
from ivm.kernels.program import (
    CALLED_EMITTED,
    DONE,
    E_SCOPE,
    ENTERED,
    F_LOOKED,
    F_PASSES,
    F_QUEUE,
    F_QUEUE_COUNT,
    F_RETURN,
    F_SCOPE,
    F_TOUCHED,
    F_TOUCHED_COUNT,
    FINISHED,
    NESTED,
    NOT_CALLED,
    PAUSED,
    PROGRAM_HEAD,
    R_DUE,
    R_ENTER_COUNT,
    R_ENTERS,
    R_LINK_COUNT,
    R_LINKS,
    R_NOTED,
    R_OPERATOR,
    R_OUT,
    R_OWN,
    R_QUEUED,
    R_SOURCE,
    ROW_WORDS,
    S_AT,
    S_END,
    S_FIRST,
    S_OUTER,
    S_PARENT,
    S_ROW,
    S_SHAPE,
    S_VECTOR,
    UNPLACED,
)  # fmt: skip
from ivm.kernels.times import unwrap, wrap
from ivm.rows import Words


@kernel
def _push(program: Words, row: int) -> None:
    """Puts a row into the queue."""
    queue = program[F_QUEUE]
    at = program[F_QUEUE_COUNT]
    program[F_QUEUE_COUNT] = at + 1
    while at > 0 and program[queue + ((at - 1) >> 1)] > row:
        program[queue + at] = program[queue + ((at - 1) >> 1)]
        at = (at - 1) >> 1
    program[queue + at] = row


@kernel
def _pop(program: Words) -> int:
    """Takes the least row from the queue."""
    queue = program[F_QUEUE]
    least = program[queue]
    count = program[F_QUEUE_COUNT] - 1
    program[F_QUEUE_COUNT] = count
    last = program[queue + count]
    at = 0
    while 2 * at + 1 < count:
        below = 2 * at + 1
        if below + 1 < count and program[queue + below + 1] < program[queue + below]:
            below += 1
        if program[queue + below] >= last:
            break
        program[queue + at] = program[queue + below]
        at = below
    program[queue + at] = last
    return int(least)


@kernel
def _queue(program: Words, scope: int, row: int) -> None:
    """Queues a row to run in the scope's pass."""
    if program[row + R_QUEUED] == 0:
        program[row + R_QUEUED] = 1
        if scope == PROGRAM_HEAD:
            _push(program, row)


@kernel
def _touch(program: Words, row: int) -> None:
    """Notes that a row of the outermost scope has emitted."""
    count = program[F_TOUCHED_COUNT]
    program[program[F_TOUCHED] + count] = row
    program[F_TOUCHED_COUNT] = count + 1


@kernel
def _hand_on(program: Words, scope: int, at: int) -> None:
    """Queues the readers of an operator's ``out``, including those in loops that it enters."""
    if scope == PROGRAM_HEAD:
        _touch(program, at)
    first = program[at + R_LINKS]
    for k in range(first, first + program[at + R_LINK_COUNT]):
        _queue(program, scope, program[k])
    first = program[at + R_ENTERS]
    for k in range(first, first + program[at + R_ENTER_COUNT]):
        enter = program[k]
        loop = program[enter + E_SCOPE]
        program[enter + R_DUE] = wrap(program[scope + S_VECTOR], program[scope + S_SHAPE], program[loop + S_SHAPE])
        _queue(program, scope, program[loop + S_ROW])


@kernel
def _enter(program: Words, scope: int, at: int) -> None:
    """Makes the loop in a scope's row the current scope."""
    loop = program[at + R_SOURCE]
    program[at + R_QUEUED] = 0
    program[scope + S_AT] = at
    program[loop + S_AT] = 0
    program[loop + S_OUTER] = program[scope + S_VECTOR]
    program[F_SCOPE] = loop


@kernel
def _behind(program: Words, scope: int, at: int) -> None:
    """Continues a scope after a row."""
    program[scope + S_AT] = 0 if scope == PROGRAM_HEAD else at + ROW_WORDS


@kernel
def _leave(program: Words, scope: int) -> None:
    """Returns from a finished loop to the enclosing scope, after the loop's row."""
    row = program[scope + S_ROW]
    parent = program[scope + S_PARENT]
    first = program[row + R_LINKS]
    for k in range(first, first + program[row + R_LINK_COUNT]):
        if load(program[program[k] + R_OWN]) != 0:
            _queue(program, parent, program[k])
    _behind(program, parent, row)
    program[F_SCOPE] = parent


@kernel
def _left_to_python(program: Words, scope: int, at: int, result: int) -> int:
    """The call's result at a row that is left to Python."""
    program[scope + S_AT] = at
    return int(2 * at + int(result == UNPLACED))


@kernel
def _sweep(program: Words) -> None:
    """Clears what the outermost scope's operators have emitted; keeps the list of rows of which Python is notified."""
    touched = program[F_TOUCHED]
    noted = 0
    for k in range(touched, touched + program[F_TOUCHED_COUNT]):
        row = program[k]
        store(program[row + R_OUT], 0)
        if program[row + R_NOTED] != 0:
            program[touched + noted] = row
            noted += 1
    program[F_TOUCHED_COUNT] = noted


@kernel
def _run_queue(program: Words, nothing: Words, again: bool, stats: Words) -> int:
    """Runs the outermost scope until a loop is ENTERED or the call must return."""
    scope = PROGRAM_HEAD
    while program[F_QUEUE_COUNT] != 0:
        if program[F_PASSES] == 0:
            return PAUSED
        program[F_PASSES] -= 1
        program[F_LOOKED] += 1
        at = _pop(program)
        if program[at + R_OPERATOR] == NESTED:
            _touch(program, at)
            _enter(program, scope, at)
            return ENTERED
        result = run_row(program, at, 0, 0, nothing, again, stats)
        if result != DONE:
            return _left_to_python(program, scope, at, result)
        program[at + R_QUEUED] = 0
        if load(program[at + R_OUT]) != 0:
            _hand_on(program, scope, at)
    _sweep(program)
    return FINISHED


@kernel
def _next(program: Words, scope: int) -> int:
    """The least vector that is due within the enclosing pass; its operators get queued. -1 if there is none: the loop's
    row is then scheduled for the enclosing pass in which it continues."""
    shape = program[scope + S_SHAPE]
    vector = -1
    for at in range(program[scope + S_FIRST], program[scope + S_END], ROW_WORDS):
        due = program[at + R_DUE]
        if due >= 0 and (vector < 0 or due < vector):
            vector = due
    outer = unwrap(vector, shape) if vector >= 0 else -1
    if outer != program[scope + S_OUTER]:
        program[program[scope + S_ROW] + R_DUE] = outer
        return -1
    program[scope + S_VECTOR] = vector
    for at in range(program[scope + S_FIRST], program[scope + S_END], ROW_WORDS):
        program[at + R_QUEUED] = program[at + R_DUE] == vector
    return int(vector)


@kernel
def _run_pass(program: Words, scope: int, at: int, nothing: Words, again: bool, stats: Words) -> int:
    """Runs a loop's pass from a row on, to its end (FINISHED), until a loop in it is ENTERED, or the call must
    return."""
    end = program[scope + S_END]
    shape = program[scope + S_SHAPE]
    vector = program[scope + S_VECTOR]
    while at < end:
        if program[at + R_QUEUED] != 0:
            if program[at + R_OPERATOR] == NESTED:
                _enter(program, scope, at)
                return ENTERED
            result = run_row(program, at, vector, shape, nothing, again, stats)
            if result != DONE:
                return _left_to_python(program, scope, at, result)
            program[at + R_QUEUED] = 0
            if load(program[at + R_OUT]) != 0:
                _hand_on(program, scope, at)
        at += ROW_WORDS
    for row in range(program[scope + S_FIRST], end, ROW_WORDS):
        store(program[row + R_OUT], 0)
    program[F_LOOKED] += (end - program[scope + S_FIRST]) // ROW_WORDS
    program[scope + S_AT] = 0
    return FINISHED


@kernel
def run_program(program: Words, nothing: Words, again: bool, stats: Words, passes: int) -> int:
    """Runs whatever is or becomes queued or due, in at most ``passes`` passes.

    Returns FINISHED, PAUSED after the last of the passes, or a request to run the current operator of the scope
    ``program[F_SCOPE]`` in Python: twice its row's index, plus 1 if it has run and only its ``out`` must still be
    inserted. The caller sets ``program[F_RETURN]`` once that is done.
    """
    program[F_PASSES] = passes
    if program[F_RETURN] != NOT_CALLED:
        scope = program[F_SCOPE]
        at = program[scope + S_AT]
        program[at + R_QUEUED] = 0
        if program[F_RETURN] == CALLED_EMITTED:
            _hand_on(program, scope, at)
        _behind(program, scope, at)
        program[F_RETURN] = NOT_CALLED
    while True:
        scope = program[F_SCOPE]
        if scope == PROGRAM_HEAD:
            found = _run_queue(program, nothing, again, stats)
            if found != ENTERED:
                return found
            continue
        at = program[scope + S_AT]
        if at == 0:
            if _next(program, scope) < 0:
                _leave(program, scope)
                continue
            if program[F_PASSES] == 0:
                return PAUSED
            program[F_PASSES] -= 1
            at = program[scope + S_FIRST]
        found = _run_pass(program, scope, at, nothing, again, stats)
        if found not in (FINISHED, ENTERED):
            return found
