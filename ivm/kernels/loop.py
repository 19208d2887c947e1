"""A loop's passes in one call: its operators as instructions, run in rank order at each vector that is due.

A *program* is a head and a row of words for each operator of the loop, in rank order, then lists of offsets of rows.
It holds addresses of block descriptors, and of the cells in which spines keep the addresses of theirs. What is
exceptional (no room, a small layer that is full, a limit that is reached) is left to the operator in Python: the kernel
returns to it with everything as the operator expects to find it. Only loops of depth 1.
"""

from __future__ import annotations

from typing import Final

from ivm.kernels.arrange import arrange
from ivm.kernels.blocks import ENTER, LEAVE, NEXT, SAME, extract, gather, least_vector, transfer
from ivm.kernels.cache import kernel
from ivm.kernels.delay import DELAY_WORDS, delay
from ivm.kernels.first import first_partial
from ivm.kernels.join import J_POSITION, J_RAN, JOIN_WORDS, join
from ivm.kernels.memory import B_COUNT, B_ROOM, BLOCK_WORDS, HEAD, LAYER_WORDS, T_ORDER, Words, load, store, words_at
from ivm.kernels.sort import sort_block
from ivm.kernels.threshold import threshold_partial

# Head: how many operators, the vector of the present pass, and from how many updates on a join or a threshold is left
# to several threads in Python.
F_MEMBERS: Final = 0
F_VECTOR: Final = 1
F_SEARCHED: Final = 2
F_CORRECTED: Final = 3
PROGRAM_HEAD: Final = 4

# Every row: the operator, the vector at which it is due (-1: none), whether it is to run in this pass, its out, the
# row of its source (its address where the source is outside of the loop), its own block (what waits for later vectors;
# a variable's following, a tap's gathered), and where in the lists the rows of its consumers are, and how many.
R_OPERATOR: Final = 0
R_DUE: Final = 1
R_QUEUED: Final = 2
R_OUT: Final = 3
R_SOURCE: Final = 4
R_OWN: Final = 5
R_LINKS: Final = 6
R_LINK_COUNT: Final = 7
ROW_WORDS: Final = 24

# Arrange: its trace, the order, the gather's program (0: none) and its words, the gathered block.
A_TRACE: Final = 8
A_ORDER: Final = 9
A_GATHER: Final = 10
A_GATHER_WORDS: Final = 11
A_GATHERED: Final = 12
# Threshold: the traces of its source and of its output, what it keeps, the blocks of owed times as found and sorted.
D_SOURCE: Final = 8
D_OUTPUT: Final = 9
D_KEEP: Final = 10
D_OWED: Final = 11
D_SORTED: Final = 12
# Join: the right delta's row (R_SOURCE: the left one's), its program, state, last round, what is new on the left (a
# row, or an address where it is outside), and both sides, four words each: trace, depth, delay, a delayed body's row.
J_RIGHT: Final = 8
J_PROGRAM: Final = 9
J_PROGRAM_WORDS: Final = 10
J_STATE: Final = 11
J_LAST: Final = 12
J_FRESH: Final = 13
J_LEFT_SIDE: Final = 14
J_RIGHT_SIDE: Final = 18
# Concat: where in the lists its sources are, and how many. Feedback: the variable's row, the last round, the rounds of
# a priority (0: there are none), the last of them.
C_SOURCES: Final = 8
C_COUNT: Final = 9
F_VARIABLE: Final = 8
F_LAST: Final = 9
F_STRIDE: Final = 10
F_LAST_OF_PRIORITY: Final = 11
# First: as a threshold's, then the values' words, how many, and whether they are complemented. Delay: its program.
# Project: its gather's program and its words.
G_WORDS: Final = 13
G_WORD_COUNT: Final = 14
G_COMPLEMENT: Final = 15
P_DELAY: Final = 8
P_GATHER: Final = 8
P_GATHER_WORDS: Final = 9

VARIABLE: Final = 0
ENTERING: Final = 1
CONCAT: Final = 2
ARRANGE: Final = 3
THRESHOLD: Final = 4
JOIN: Final = 5
FEEDBACK: Final = 6
TAP: Final = 7
FIRST: Final = 8
DELAY: Final = 9
PROJECT: Final = 10
CONSOLIDATE: Final = 11

# What running an operator came to: done; nothing, it is to run in Python; done but for the insertion of its out.
DONE: Final = 0
UNDONE: Final = 1
UNPLACED: Final = 2

FINISHED: Final = -1
PAUSED: Final = -2


@kernel
def _block(address: int) -> Words:
    return words_at(address, BLOCK_WORDS)


@kernel
def _trace(cell: int) -> Words:
    """The trace descriptor whose address is in a cell."""
    address = load(cell)
    return words_at(address, HEAD + LAYER_WORDS * load(address))


@kernel
def _out(program: Words, row: int) -> Words:
    """The out of the operator in a row, or the block at an address: rows lie below all addresses."""
    return _block(program[row + R_OUT]) if row < len(program) else _block(row)


@kernel
def _append(given: Words, target: Words, change: int, depth: int, to_depth: int) -> int:
    """A transfer, if there is room."""
    if target[B_COUNT] + given[B_COUNT] > target[B_ROOM]:
        return UNDONE
    transfer(given, target, 1, change, depth, to_depth)
    return DONE


@kernel
def _concat(program: Words, at: int) -> int:
    out = _out(program, at)
    first = program[at + C_SOURCES]
    for k in range(first, first + program[at + C_COUNT]):
        if _append(_out(program, program[k]), out, SAME, 0, 0) != DONE:
            out[B_COUNT] = 0
            return UNDONE
    return DONE


@kernel
def _arrange(program: Words, at: int) -> int:
    given = _out(program, program[at + R_SOURCE])
    out = _out(program, at)
    if given[B_COUNT] > out[B_ROOM]:
        return UNDONE
    if program[at + A_GATHER] != 0:
        gathered = _block(program[at + A_GATHERED])
        if given[B_COUNT] > gathered[B_ROOM]:
            return UNDONE
        gather(given, gathered, words_at(program[at + A_GATHER], program[at + A_GATHER_WORDS]))
        given = gathered
    found = arrange(given, out, _trace(program[at + A_TRACE]), program[at + A_ORDER])
    if program[at + A_GATHER] != 0:
        given[B_COUNT] = 0
    return DONE if found & 1 != 0 else UNPLACED


@kernel
def _threshold(program: Words, at: int, vector: int, nothing: Words, again: bool, stats: Words) -> int:
    delta = _out(program, program[at + R_SOURCE])
    out = _out(program, at)
    later = _block(program[at + R_OWN])
    owed = _block(program[at + D_OWED])
    ordered = _block(program[at + D_SORTED])
    most = owed[B_COUNT] + later[B_COUNT]
    room = 2 * (delta[B_COUNT] + most) + 8
    if most > owed[B_ROOM] or most > ordered[B_ROOM] or room > out[B_ROOM] or room > later[B_ROOM]:
        return UNDONE
    due = program[at + R_DUE]
    if due == vector:
        due = extract(later, owed, vector, 1)
    times = owed
    trace = _trace(program[at + D_SOURCE])
    if owed[B_COUNT] > 1:
        sort_block(owed, ordered, trace[T_ORDER])
        times = ordered
    start = later[B_COUNT]
    counts = threshold_partial(
        trace, delta, times, _trace(program[at + D_OUTPUT]), nothing, out, later, program[at + D_KEEP], vector, again,
        stats,
    )  # fmt: skip
    if counts < 0:
        return UNDONE
    owed[B_COUNT] = 0
    ordered[B_COUNT] = 0
    found = least_vector(later, start, 1)
    program[at + R_DUE] = found if due < 0 or 0 <= found < due else due
    return DONE if (counts >> 31) & 1 != 0 else UNPLACED


@kernel
def _first(program: Words, at: int, vector: int, nothing: Words, again: bool, stats: Words) -> int:
    delta = _out(program, program[at + R_SOURCE])
    out = _out(program, at)
    later = _block(program[at + R_OWN])
    owed = _block(program[at + D_OWED])
    ordered = _block(program[at + D_SORTED])
    most = owed[B_COUNT] + later[B_COUNT]
    room = 4 * (delta[B_COUNT] + most) + 8
    if again or most > owed[B_ROOM] or most > ordered[B_ROOM] or room > out[B_ROOM] or room > later[B_ROOM]:
        return UNDONE
    due = program[at + R_DUE]
    if due == vector:
        due = extract(later, owed, vector, 1)
    times = owed
    trace = _trace(program[at + D_SOURCE])
    if owed[B_COUNT] > 1:
        sort_block(owed, ordered, trace[T_ORDER])
        times = ordered
    start = later[B_COUNT]
    counts = first_partial(
        trace, delta, times, _trace(program[at + D_OUTPUT]), nothing, out, later,
        words_at(program[at + G_WORDS], program[at + G_WORD_COUNT]), program[at + G_COMPLEMENT] != 0, vector, stats,
    )  # fmt: skip
    if counts < 0:
        return UNDONE
    owed[B_COUNT] = 0
    ordered[B_COUNT] = 0
    found = least_vector(later, start, 1)
    program[at + R_DUE] = found if due < 0 or 0 <= found < due else due
    return DONE if (counts >> 31) & 1 != 0 else UNPLACED


@kernel
def _delay(program: Words, at: int, vector: int) -> int:
    given = _out(program, program[at + R_SOURCE])
    out = _out(program, at)
    later = _block(program[at + R_OWN])
    waiting = later[B_COUNT]
    if out[B_COUNT] + waiting + given[B_COUNT] > out[B_ROOM] or waiting + given[B_COUNT] > later[B_ROOM]:
        return UNDONE
    due = program[at + R_DUE]
    if due == vector:
        due = extract(later, out, vector, 1)
    start = later[B_COUNT]
    if given[B_COUNT] != 0:
        delay(given, out, later, words_at(program[at + P_DELAY], DELAY_WORDS), vector, 1)
    found = least_vector(later, start, 1)
    program[at + R_DUE] = found if due < 0 or 0 <= found < due else due
    return DONE


@kernel
def _project(program: Words, at: int) -> int:
    given = _out(program, program[at + R_SOURCE])
    out = _out(program, at)
    if given[B_COUNT] > out[B_ROOM]:
        return UNDONE
    gather(given, out, words_at(program[at + P_GATHER], program[at + P_GATHER_WORDS]))
    return DONE


@kernel
def _consolidate(program: Words, at: int) -> int:
    given = _out(program, program[at + R_SOURCE])
    out = _out(program, at)
    if given[B_COUNT] > out[B_ROOM]:
        return UNDONE
    sort_block(given, out, 0)
    return DONE


@kernel
def _half(
    program: Words, at: int, delta: Words, minus: Words, side: int, left: bool, vector: int, nothing: Words,
    stats: Words,
) -> int:  # fmt: skip
    """One delta against the other side."""
    body = program[side + 3]
    return join(
        delta, _trace(program[side]), minus, _out(program, body) if body != 0 else nothing, _out(program, at),
        _block(program[at + R_OWN]), words_at(program[at + J_PROGRAM], program[at + J_PROGRAM_WORDS]),
        words_at(program[at + J_STATE], JOIN_WORDS), stats, left, program[side + 1], 1, program[side + 2], vector,
        program[at + J_LAST],
    )  # fmt: skip


@kernel
def _join(program: Words, at: int, vector: int, nothing: Words, stats: Words) -> int:
    out = _out(program, at)
    later = _block(program[at + R_OWN])
    state = words_at(program[at + J_STATE], JOIN_WORDS)
    if state[J_RAN] == 0 or out[B_COUNT] + later[B_COUNT] > out[B_ROOM]:
        return UNDONE
    due = program[at + R_DUE]
    if due == vector:
        due = extract(later, out, vector, 1)
    a = _out(program, program[at + R_SOURCE])
    b = _out(program, program[at + J_RIGHT])
    found = out[B_COUNT]
    start = later[B_COUNT]
    result = 0
    if a[B_COUNT] != 0:
        result = _half(program, at, a, nothing, at + J_RIGHT_SIDE, True, vector, nothing, stats)
    if result >= 0 and b[B_COUNT] != 0:
        minus = _out(program, program[at + J_FRESH]) if a[B_COUNT] != 0 else nothing
        result = _half(program, at, b, minus, at + J_LEFT_SIDE, False, vector, nothing, stats)
    if result < 0:
        out[B_COUNT] = found
        later[B_COUNT] = start
        state[:J_POSITION] = 0
        state[J_POSITION] = -1
        return UNDONE
    least = least_vector(later, start, 1)
    program[at + R_DUE] = least if due < 0 or 0 <= least < due else due
    return DONE


@kernel
def _feed_back(program: Words, at: int, vector: int) -> int:
    given = _out(program, program[at + R_SOURCE])
    if given[B_COUNT] == 0:
        return DONE
    variable = program[at + F_VARIABLE]
    stride = program[at + F_STRIDE]
    ends = vector + 1 > program[at + F_LAST] or (stride != 0 and vector % stride >= program[at + F_LAST_OF_PRIORITY])
    if ends or _append(given, _block(program[variable + R_OWN]), NEXT, 0, 0) != DONE:
        return UNDONE
    program[variable + R_DUE] = vector + 1
    return DONE


@kernel
def _is_large(program: Words, at: int) -> bool:
    """Whether an operator that can be cut into parts has a delta for several threads."""
    operator = program[at + R_OPERATOR]
    if operator not in (JOIN, THRESHOLD):
        return False
    count = _out(program, program[at + R_SOURCE])[B_COUNT]
    if operator == THRESHOLD:
        return bool(count >= program[F_CORRECTED])
    return bool(max(count, _out(program, program[at + J_RIGHT])[B_COUNT]) >= program[F_SEARCHED])


@kernel
def _run(program: Words, at: int, vector: int, nothing: Words, again: bool, stats: Words) -> int:
    """One operator in the pass at a vector."""
    if _is_large(program, at):
        return UNDONE
    operator = program[at + R_OPERATOR]
    if operator == THRESHOLD:
        return _threshold(program, at, vector, nothing, again, stats)
    if operator == JOIN:
        return _join(program, at, vector, nothing, stats)
    if operator == ARRANGE:
        return _arrange(program, at)
    if operator == FEEDBACK:
        return _feed_back(program, at, vector)
    if operator == CONCAT:
        return _concat(program, at)
    if operator == FIRST:
        return _first(program, at, vector, nothing, again, stats)
    if operator == DELAY:
        return _delay(program, at, vector)
    if operator == PROJECT:
        return _project(program, at)
    if operator == CONSOLIDATE:
        return _consolidate(program, at)
    if operator == TAP:
        return _append(_out(program, program[at + R_SOURCE]), _block(program[at + R_OWN]), LEAVE, 1, 0)
    if operator == ENTERING:
        result = _append(_block(program[at + R_SOURCE]), _out(program, at), ENTER, 0, 1)
    else:
        result = _append(_block(program[at + R_OWN]), _out(program, at), SAME, 0, 0)
    if result == DONE:
        program[at + R_DUE] = -1
        if operator == VARIABLE:
            store(program[at + R_OWN], 0)
    return result


@kernel
def _next(program: Words, end: int) -> int:
    """The least vector that is due, whose operators are queued then; -1 when there is none."""
    vector = -1
    for at in range(PROGRAM_HEAD, end, ROW_WORDS):
        due = program[at + R_DUE]
        if due >= 0 and (vector < 0 or due < vector):
            vector = due
    if vector >= 0:
        for at in range(PROGRAM_HEAD, end, ROW_WORDS):
            program[at + R_QUEUED] = program[at + R_DUE] == vector
    return vector


@kernel
def run_loop(program: Words, nothing: Words, again: bool, stats: Words, passes: int) -> int:
    """Runs what is due, and what becomes due, in at most so many passes.

    Returns FINISHED, PAUSED after the last of the passes, or that an operator has to go on in Python in the pass at
    ``program[F_VECTOR]``: twice its place, and 1 more when it has run and only its out is still to be inserted.
    """
    end = PROGRAM_HEAD + ROW_WORDS * program[F_MEMBERS]
    for _ in range(passes):
        vector = _next(program, end)
        if vector < 0:
            return FINISHED
        program[F_VECTOR] = vector
        for at in range(PROGRAM_HEAD, end, ROW_WORDS):
            if program[at + R_QUEUED] == 0:
                continue
            result = _run(program, at, vector, nothing, again, stats)
            if result != UNDONE:
                program[at + R_QUEUED] = 0
                if load(program[at + R_OUT]) != 0:
                    first = program[at + R_LINKS]
                    for k in range(first, first + program[at + R_LINK_COUNT]):
                        program[program[k] + R_QUEUED] = 1
            if result != DONE:
                return 2 * ((at - PROGRAM_HEAD) // ROW_WORDS) + int(result == UNPLACED)
        for at in range(PROGRAM_HEAD, end, ROW_WORDS):
            store(program[at + R_OUT], 0)
    return PAUSED
