"""The instructions of a program's operators, one function each (called by ``ivm.kernels.run``).

A *program* is a head, a few words for each scope, a row of words for each operator and nested loop, and lists of row
indexes. It holds addresses of block descriptors, and of the cells in which spines keep the addresses of theirs.
Operators without an instruction, and exceptional cases (no room, a full small layer, a limit reached, a delta for
several threads), are left to the operator in Python, which finds everything in the state that it expects.
"""

from __future__ import annotations

from ivm.kernels.accumulate import accumulate_total
from ivm.kernels.arrange import arrange, put_small
from ivm.kernels.blocks import ENTER, LEAVE, NEXT, SAME, extract, gather, transfer
from ivm.kernels.cache import kernel
from ivm.kernels.codes import WIDTH_BITS
from ivm.kernels.compute import block_at, out_of, run_correcting, run_map, schedule, trace_at
from ivm.kernels.delay import DELAY_WORDS, delay
from ivm.kernels.delta_join import delta_join
from ivm.kernels.join import J_POSITION, J_RAN, JOIN_WORDS, S_OVERFLOWS, join
from ivm.kernels.memory import B_COUNT, B_ROOM, T_ORDER, load, store, where, words_at
from ivm.kernels.path import R_MINUS, SOURCE_WORDS
from ivm.kernels.program import (
    A_GATHER,
    A_GATHER_WORDS,
    A_GATHERED,
    A_ORDER,
    A_TRACE,
    ACCUMULATE,
    ACCUMULATE_TOTAL,
    ARRANGE,
    C_COUNT,
    C_SOURCES,
    CALL,
    CONCAT,
    CONSOLIDATE,
    COUNT,
    D_KEEP,
    D_OUTPUT,
    D_SOURCE,
    DELAY,
    DELTA_JOIN,
    DONE,
    ENTERING,
    ERRORS,
    F_IDLE,
    F_LAST,
    F_LAST_OF_PRIORITY,
    F_STRIDE,
    F_VARIABLE,
    FEEDBACK,
    FIRST,
    G_ERRORS,
    G_WORD_COUNT,
    G_WORDS,
    GIVEN,
    J_FRESH,
    J_LAST,
    J_LEFT_SIDE,
    J_PROGRAM,
    J_PROGRAM_WORDS,
    J_RIGHT,
    J_RIGHT_SIDE,
    J_STATE,
    JOIN,
    K_COUNT,
    K_DELTA,
    K_HEAD,
    K_PATH,
    K_PATH_WORDS,
    K_SOURCES,
    LEAVING,
    M_COUNT,
    M_COURSES,
    M_RAN,
    M_STATE,
    MAP,
    N_UNSORTED,
    NEGATE,
    OUTPUT,
    P_DELAY,
    P_GATHER,
    P_GATHER_WORDS,
    PROJECT,
    R_DUE,
    R_OPERATOR,
    R_OWN,
    R_SHARED,
    R_SOURCE,
    TAP,
    THRESHOLD,
    THRESHOLD_TOTAL,
    UNDONE,
    UNPLACED,
    VARIABLE,
    WORK,
)  # fmt: skip
from ivm.kernels.reduce import count_differences
from ivm.kernels.sort import sort_block
from ivm.kernels.threshold import threshold_total
from ivm.kernels.times import last_mask
from ivm.rows import Words


@kernel
def _append(given: Words, target: Words, change: int, shape: int, to_shape: int, sign: int = 1) -> int:
    """Runs ``transfer`` if there is room."""
    if target[B_COUNT] + given[B_COUNT] > target[B_ROOM]:
        return UNDONE
    transfer(given, target, sign, change, shape, to_shape)
    return DONE


@kernel
def _concat(program: Words, at: int) -> int:
    out = out_of(program, at)
    first = program[at + C_SOURCES]
    for k in range(first, first + program[at + C_COUNT]):
        if _append(out_of(program, program[k]), out, SAME, 0, 0) != DONE:
            out[B_COUNT] = 0
            return UNDONE
    return DONE


@kernel
def _arrange(program: Words, at: int) -> int:
    given = out_of(program, program[at + R_SOURCE])
    out = out_of(program, at)
    if given[B_COUNT] > out[B_ROOM]:
        return UNDONE
    if program[at + A_GATHER] != 0:
        gathered = block_at(program[at + A_GATHERED])
        if given[B_COUNT] > gathered[B_ROOM]:
            return UNDONE
        gather(given, gathered, words_at(program[at + A_GATHER], program[at + A_GATHER_WORDS]))
        given = gathered
    found = arrange(given, out, trace_at(program[at + A_TRACE]), program[at + A_ORDER])
    if program[at + A_GATHER] != 0:
        given[B_COUNT] = 0
    return DONE if found & 1 != 0 else UNPLACED


@kernel
def _output(program: Words, at: int) -> int:
    """Arranges, and appends to the changes to be drained."""
    given = out_of(program, program[at + R_SOURCE])
    drained = block_at(program[at + R_OWN])
    if drained[B_COUNT] + given[B_COUNT] > drained[B_ROOM]:
        return UNDONE
    result = _arrange(program, at)
    if result != UNDONE:
        transfer(out_of(program, at), drained, 1, SAME, 0, 0)
    return result


@kernel
def _keep(program: Words, at: int) -> int:
    """Inserts the output of an operator outside of loops into its output trace, if there is one."""
    out = out_of(program, at)
    cell = program[at + D_OUTPUT]
    return DONE if cell == 0 or out[B_COUNT] == 0 or put_small(trace_at(cell), out) else UNPLACED


@kernel
def _threshold_total(program: Words, at: int, nothing: Words, stats: Words) -> int:
    delta = out_of(program, program[at + R_SOURCE])
    out = out_of(program, at)
    if delta[B_COUNT] > out[B_ROOM]:
        return UNDONE
    threshold_total(trace_at(program[at + D_SOURCE]), delta, nothing, out, program[at + D_KEEP], stats)
    return _keep(program, at)


@kernel
def _count(program: Words, at: int, nothing: Words, stats: Words) -> int:
    """The count of each key's rows, outside of loops."""
    delta = out_of(program, program[at + R_SOURCE])
    out = out_of(program, at)
    unsorted = block_at(program[at + N_UNSORTED])
    if 2 * delta[B_COUNT] > min(out[B_ROOM], unsorted[B_ROOM]):
        return UNDONE
    if not count_differences(trace_at(program[at + D_SOURCE]), delta, nothing, out, False, stats):
        transfer(out, unsorted, 1, SAME, 0, 0)
        out[B_COUNT] = 0
        cell = program[at + D_OUTPUT]
        sort_block(unsorted, out, 0 if cell == 0 else trace_at(cell)[T_ORDER])
        unsorted[B_COUNT] = 0
    return _keep(program, at)


@kernel
def _accumulate_total(program: Words, at: int, nothing: Words, stats: Words) -> int:
    """Each group's sums, turned into results by a formula, outside of loops."""
    delta = out_of(program, program[at + R_SOURCE])
    out = out_of(program, at)
    store(program[at + G_ERRORS], 0)
    if 2 * delta[B_COUNT] > out[B_ROOM]:
        return UNDONE
    formula = words_at(program[at + G_WORDS], program[at + G_WORD_COUNT])
    if not accumulate_total(trace_at(program[at + D_SOURCE]), delta, nothing, out, formula, False, stats):
        return UNDONE
    return _keep(program, at)


@kernel
def _delay(program: Words, at: int, vector: int, shape: int) -> int:
    given = out_of(program, program[at + R_SOURCE])
    out = out_of(program, at)
    later = block_at(program[at + R_OWN])
    waiting = later[B_COUNT]
    if out[B_COUNT] + waiting + given[B_COUNT] > out[B_ROOM] or waiting + given[B_COUNT] > later[B_ROOM]:
        return UNDONE
    due = program[at + R_DUE]
    if due == vector:
        due = extract(later, out, vector, shape)
    start = later[B_COUNT]
    if given[B_COUNT] != 0:
        delay(given, out, later, words_at(program[at + P_DELAY], DELAY_WORDS), vector, shape)
    schedule(program, at, due, start, shape)
    return DONE


@kernel
def _project(program: Words, at: int) -> int:
    given = out_of(program, program[at + R_SOURCE])
    out = out_of(program, at)
    if given[B_COUNT] > out[B_ROOM]:
        return UNDONE
    gather(given, out, words_at(program[at + P_GATHER], program[at + P_GATHER_WORDS]))
    return DONE


@kernel
def _consolidate(program: Words, at: int) -> int:
    given = out_of(program, program[at + R_SOURCE])
    out = out_of(program, at)
    if given[B_COUNT] > out[B_ROOM]:
        return UNDONE
    sort_block(given, out, 0)
    return DONE


@kernel
def _half(
    program: Words, at: int, delta: Words, minus: Words, side: int, left: bool, vector: int, shape: int,
    nothing: Words, stats: Words,
) -> int:  # fmt: skip
    """Joins one delta with the other side."""
    body = program[side + 3]
    return join(
        delta, trace_at(program[side]), minus, out_of(program, body) if body != 0 else nothing, out_of(program, at),
        block_at(program[at + R_OWN]), words_at(program[at + J_PROGRAM], program[at + J_PROGRAM_WORDS]),
        words_at(program[at + J_STATE], JOIN_WORDS), stats, left, program[side + 1], shape, program[side + 2], vector,
        program[at + J_LAST],
    )  # fmt: skip


@kernel
def _join(program: Words, at: int, vector: int, shape: int, nothing: Words, stats: Words) -> int:
    out = out_of(program, at)
    later = block_at(program[at + R_OWN])
    state = words_at(program[at + J_STATE], JOIN_WORDS)
    if state[J_RAN] == 0 or out[B_COUNT] + later[B_COUNT] > out[B_ROOM]:
        return UNDONE
    due = program[at + R_DUE]
    if due == vector:
        due = extract(later, out, vector, shape)
    a = out_of(program, program[at + R_SOURCE])
    b = out_of(program, program[at + J_RIGHT])
    found = out[B_COUNT]
    start = later[B_COUNT]
    result = 0
    if a[B_COUNT] != 0:
        result = _half(program, at, a, nothing, at + J_RIGHT_SIDE, True, vector, shape, nothing, stats)
    if result >= 0 and b[B_COUNT] != 0:
        minus = out_of(program, program[at + J_FRESH]) if a[B_COUNT] != 0 else nothing
        result = _half(program, at, b, minus, at + J_LEFT_SIDE, False, vector, shape, nothing, stats)
    if result < 0 or stats[S_OVERFLOWS] != 0:
        out[B_COUNT] = found
        later[B_COUNT] = start
        state[:J_POSITION] = 0
        state[J_POSITION] = -1
        return UNDONE
    schedule(program, at, due, start, shape)
    return DONE


@kernel
def _course(
    program: Words, course: int, out: Words, later: Words, state: Words, vector: int, shape: int, stats: Words
) -> bool:  # fmt: skip
    """Runs one path of a delta join. False if it did not reach its end."""
    delta = out_of(program, program[course + K_DELTA])
    if delta[B_COUNT] == 0:
        return True
    slots = program[course + K_COUNT]
    sources = words_at(program[course + K_SOURCES], slots * SOURCE_WORDS)
    for slot in range(1, slots):
        entry = course + K_HEAD + 2 * slot
        fresh = program[entry]
        minus = 0
        if fresh != 0 and out_of(program, fresh)[B_COUNT] != 0:
            minus = where(out_of(program, program[entry + 1]))
        sources[slot * SOURCE_WORDS + R_MINUS] = minus
    state[0] = 0
    path = words_at(program[course + K_PATH], program[course + K_PATH_WORDS])
    result = delta_join(delta, path, sources, out, later, state, stats, shape, vector, WORK)
    return bool(result >= 0 and stats[S_OVERFLOWS] == 0)


@kernel
def _updates(program: Words, at: int) -> int:
    """How many input updates an operator has."""
    operator = program[at + R_OPERATOR]
    if operator != DELTA_JOIN:
        count = out_of(program, program[at + R_SOURCE])[B_COUNT]
        return int(max(count, out_of(program, program[at + J_RIGHT])[B_COUNT]) if operator == JOIN else count)
    updates = 0
    course = program[at + M_COURSES]
    for _ in range(program[at + M_COUNT]):
        updates += out_of(program, program[course + K_DELTA])[B_COUNT]
        course += K_HEAD + 2 * program[course + K_COUNT]
    return int(updates)


@kernel
def _delta_join(program: Words, at: int, vector: int, shape: int, stats: Words) -> int:
    out = out_of(program, at)
    later = block_at(program[at + R_OWN])
    if load(program[at + M_RAN]) == 0 or out[B_COUNT] + later[B_COUNT] > out[B_ROOM]:
        return UNDONE
    due = program[at + R_DUE]
    if due == vector:
        due = extract(later, out, vector, shape)
    found = out[B_COUNT]
    start = later[B_COUNT]
    state = words_at(program[at + M_STATE], 1)
    course = program[at + M_COURSES]
    for _ in range(program[at + M_COUNT]):
        if not _course(program, course, out, later, state, vector, shape, stats):
            out[B_COUNT] = found
            later[B_COUNT] = start
            return UNDONE
        course += K_HEAD + 2 * program[course + K_COUNT]
    schedule(program, at, due, start, shape)
    return DONE


@kernel
def _feed_back(program: Words, at: int, vector: int, shape: int) -> int:
    given = out_of(program, program[at + R_SOURCE])
    if given[B_COUNT] == 0:
        return DONE
    variable = program[at + F_VARIABLE]
    stride = program[at + F_STRIDE]
    now = vector & last_mask(shape)
    ends = now >= program[at + F_LAST] or (stride != 0 and now % stride >= program[at + F_LAST_OF_PRIORITY])
    if ends and program[at + F_IDLE] != 0:
        return DONE
    if ends or _append(given, block_at(program[variable + R_OWN]), NEXT, 0, 0) != DONE:
        return UNDONE
    program[variable + R_DUE] = vector + 1
    return DONE


@kernel
def _leave(program: Words, at: int) -> int:
    gathered = block_at(program[at + R_OWN])
    out = out_of(program, at)
    if gathered[B_COUNT] > out[B_ROOM]:
        return UNDONE
    sort_block(gathered, out, 0)
    gathered[B_COUNT] = 0
    return DONE


@kernel
def run_row(program: Words, at: int, vector: int, shape: int, nothing: Words, again: bool, stats: Words) -> int:
    """Runs one operator in the pass at a vector."""
    shared = program[at + R_SHARED]
    if shared != 0 and _updates(program, at) >= program[shared]:
        return UNDONE
    operator = program[at + R_OPERATOR]
    if operator in (THRESHOLD, FIRST, ACCUMULATE):
        return run_correcting(program, at, vector, shape, nothing, again, stats)
    if operator == JOIN:
        return _join(program, at, vector, shape, nothing, stats)
    if operator == ARRANGE:
        return _arrange(program, at)
    if operator == FEEDBACK:
        return _feed_back(program, at, vector, shape)
    if operator == CONCAT:
        return _concat(program, at)
    if operator == OUTPUT:
        return _output(program, at)
    if operator == COUNT:
        return _count(program, at, nothing, stats)
    if operator == THRESHOLD_TOTAL:
        return _threshold_total(program, at, nothing, stats)
    if operator == MAP:
        return run_map(program, at)
    if operator == ACCUMULATE_TOTAL:
        return _accumulate_total(program, at, nothing, stats)
    if operator == DELAY:
        return _delay(program, at, vector, shape)
    if operator == PROJECT:
        return _project(program, at)
    if operator == CONSOLIDATE:
        return _consolidate(program, at)
    if operator == DELTA_JOIN:
        return _delta_join(program, at, vector, shape, stats)
    if operator == LEAVING:
        return _leave(program, at)
    if operator == NEGATE:
        return _append(out_of(program, program[at + R_SOURCE]), out_of(program, at), SAME, 0, 0, -1)
    if operator == ERRORS:
        return _append(block_at(program[at + R_OWN]), out_of(program, at), SAME, 0, 0)
    if operator == TAP:
        return _append(out_of(program, program[at + R_SOURCE]), block_at(program[at + R_OWN]), LEAVE, shape, 0)
    if operator == GIVEN:
        return DONE
    if operator == CALL:
        return UNDONE
    if operator == ENTERING:
        given = out_of(program, program[at + R_SOURCE])
        result = _append(given, out_of(program, at), ENTER, shape >> WIDTH_BITS, shape)
    else:
        result = _append(block_at(program[at + R_OWN]), out_of(program, at), SAME, 0, 0)
    if result == DONE:
        program[at + R_DUE] = -1
        if operator == VARIABLE:
            store(program[at + R_OWN], 0)
    return result
