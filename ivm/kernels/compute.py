"""Operators of a program (``ivm.kernels.run``) that compute: maps; inside loops thresholds, first values and sums."""

from __future__ import annotations

from ivm.kernels.blocks import extract, least_vector
from ivm.kernels.cache import kernel
from ivm.kernels.formula import map_block
from ivm.kernels.interesting import FIRSTS, SUMS, THRESHOLDS, reduce_partial
from ivm.kernels.memory import B_COUNT, B_ROOM, BLOCK_WORDS, HEAD, LAYER_WORDS, T_ORDER, load, store, words_at
from ivm.kernels.program import (
    ACCUMULATE,
    D_KEEP,
    D_OUTPUT,
    D_OWED,
    D_SORTED,
    D_SOURCE,
    DONE,
    FIRST,
    G_COMPLEMENT,
    G_ERRORS,
    G_WORD_COUNT,
    G_WORDS,
    P_ERRORS,
    P_FORMULA,
    P_FORMULA_WORDS,
    R_DUE,
    R_OPERATOR,
    R_OUT,
    R_OWN,
    R_SOURCE,
    THRESHOLD,
    UNDONE,
    UNPLACED,
)  # fmt: skip
from ivm.kernels.sort import sort_block
from ivm.kernels.times import loops
from ivm.rows import Words


@kernel
def block_at(address: int) -> Words:
    """The block descriptor at an address."""
    return words_at(address, BLOCK_WORDS)


@kernel
def trace_at(cell: int) -> Words:
    """The trace descriptor whose address is in a cell."""
    address = load(cell)
    return words_at(address, HEAD + LAYER_WORDS * load(address))


@kernel
def out_of(program: Words, row: int) -> Words:
    """The ``out`` of the operator in a row, or the block at an address: row indexes are less than any address."""
    return block_at(program[row + R_OUT]) if row < len(program) else block_at(row)


@kernel
def run_map(program: Words, at: int) -> int:
    """Runs a map by a formula; failing rows are left to the operator in Python."""
    given = out_of(program, program[at + R_SOURCE])
    out = out_of(program, at)
    store(program[at + P_ERRORS], 0)
    if given[B_COUNT] > out[B_ROOM]:
        return UNDONE
    made = map_block(given, out, words_at(program[at + P_FORMULA], program[at + P_FORMULA_WORDS]))
    return UNDONE if made < 0 else DONE


@kernel
def schedule(program: Words, at: int, due: int, start: int, shape: int) -> None:
    """Schedules an operator: at ``due`` (-1: never) or, if earlier, at the least vector of its new owed updates, those
    from ``start`` on."""
    found = least_vector(block_at(program[at + R_OWN]), start, shape)
    program[at + R_DUE] = found if due < 0 or 0 <= found < due else due


@kernel
def run_correcting(
    program: Words, at: int, vector: int, shape: int, nothing: Words, again: bool, stats: Words
) -> int:  # fmt: skip
    """Runs thresholds, first values or sums inside loops, as ``ivm.operators.correcting`` does in Python."""
    operator = program[at + R_OPERATOR]
    if operator == ACCUMULATE:
        store(program[at + G_ERRORS], 0)
    delta = out_of(program, program[at + R_SOURCE])
    out = out_of(program, at)
    later = block_at(program[at + R_OWN])
    owed = block_at(program[at + D_OWED])
    ordered = block_at(program[at + D_SORTED])
    most = owed[B_COUNT] + later[B_COUNT]
    per_key = 2
    if operator != THRESHOLD:
        per_key = 2 << loops(shape) if operator == FIRST else 0
        if again:
            return UNDONE
    room = per_key * (delta[B_COUNT] + most) + 8
    if most > owed[B_ROOM] or most > ordered[B_ROOM] or room > out[B_ROOM] or room > later[B_ROOM]:
        return UNDONE
    due = program[at + R_DUE]
    if due == vector:
        due = extract(later, owed, vector, shape)
    times = owed
    trace = trace_at(program[at + D_SOURCE])
    if owed[B_COUNT] > 1:
        sort_block(owed, ordered, trace[T_ORDER])
        times = ordered
    start = later[B_COUNT]
    tactic, given, option = THRESHOLDS, nothing, program[at + D_KEEP]
    if operator != THRESHOLD:
        given = words_at(program[at + G_WORDS], program[at + G_WORD_COUNT])
        tactic, option = (FIRSTS, program[at + G_COMPLEMENT]) if operator == FIRST else (SUMS, 0)
    counts = reduce_partial(
        tactic, trace, delta, times, trace_at(program[at + D_OUTPUT]), nothing, out, later, nothing, nothing, given,
        option, vector, again, stats,
    )  # fmt: skip
    ordered[B_COUNT] = 0
    if counts < 0:
        return UNDONE
    owed[B_COUNT] = 0
    schedule(program, at, due, start, shape)
    return DONE if (counts >> 31) & 1 != 0 else UNPLACED
