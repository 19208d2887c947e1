"""The matcher of regular expressions: a program run over code points by backtracking that remembers where it has been.

Of the ways through a program the first is taken, as Perl and Python do. ``seen`` has a bit for each choice and place
from which no match was found, so that nothing is tried twice: the work is linear in the text, however often a pattern
nests its quantifiers (Norvig's memoised parsing; RE2's ``BitState``). Programs with back-references cannot remember.
The kernel returns after a slice of steps, and wherever it needs more room or does not know a character yet; all it
knows is in its arrays, so the next call goes on.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ivm.kernels.cache import inlined, kernel
from ivm.kernels.regex_codes import (
    ANY,
    AT,
    AT_BEGIN,
    AT_EDGE,
    AT_END,
    AT_LINE,
    AT_LINE_END,
    AT_NO_EDGE,
    AT_WORD,
    BACK,
    CHAR,
    CHECK,
    EXACT,
    FIRST,
    FOUND,
    JUMP,
    LEAF,
    LOOK,
    LOOKED,
    MARK,
    NEEDS_LOG,
    NEEDS_PAGE,
    NEEDS_STACK,
    NONE,
    PAUSED,
    S_BEGUN,
    S_END,
    S_FIRST,
    S_FUEL,
    S_LAST,
    S_LOG,
    S_LOOK,
    S_MODE,
    S_PAGE,
    S_PC,
    S_POS,
    S_REMEMBERS,
    S_START,
    S_TOP,
    SAVE,
    SPLIT,
)

Ints = NDArray[np.int64]
Codes = NDArray[np.uint32]
Truth = NDArray[np.uint8]
Pages = NDArray[np.int32]

_WENT: Final = 0
_FAILED: Final = 1
_UNKNOWN: Final = 2
_ENDED: Final = 3

_CHOICE: Final = 0
_SLOT: Final = 1
_REGISTER: Final = 2
_LOOK: Final = 3
_LOOK_LOG: Final = 4


@inlined
def _begun(text: Codes, state: Ints) -> bool:
    """Begins the attempt at the next place where a match may begin; false if there is none."""
    start, last, first = state[S_START], state[S_LAST], state[S_FIRST]
    if first >= 0:
        last = min(last, len(text) - 1)
        before = start
        while start <= last and np.int64(text[start]) != first:
            start += 1
        state[S_FUEL] -= (start - before) >> 3
        state[S_START] = start
    if start > last:
        return False
    state[S_BEGUN], state[S_PC], state[S_POS], state[S_TOP], state[S_LOOK] = 1, 0, start, 0, -1
    return True


@inlined
def _holds(leaf: int, code: np.int64, truth: Truth, pages: Pages, state: Ints) -> int:
    """Whether a character satisfies a leaf, 0 or 1; -1: its page is not known."""
    page = np.int64(pages[code >> 8])
    if page < 0:
        state[S_PAGE] = code >> 8
        return -1
    return 1 if truth[leaf, (page << 8) + (code & 255)] else 0


@inlined
def _consumed(op: int, a: int, text: Codes, truth: Truth, pages: Pages, state: Ints) -> int:
    at = state[S_POS]
    if at >= len(text):
        return _FAILED
    if op == CHAR:
        if np.int64(text[at]) != a:
            return _FAILED
    elif op == LEAF:
        known = _holds(a, np.int64(text[at]), truth, pages, state)
        if known <= 0:
            return _FAILED if known == 0 else _UNKNOWN
    state[S_POS] = at + 1
    state[S_PC] += 1
    return _WENT


@inlined
def _chosen(program: Ints, text: Codes, stack: Ints, seen: Truth, log: Ints, registers: Ints, state: Ints) -> int:
    pc, at, top = state[S_PC], state[S_POS], state[S_TOP]
    if state[S_REMEMBERS]:
        key = np.int64(0)
        for i in range(program[pc, 5], program[pc, 5] + program[pc, 4]):
            key = 2 * key + (1 if registers[i] == at else 0)
        bit = (program[pc, 3] + key) * (len(text) + 1) + at
        mask = np.uint8(1 << (bit & 7))
        if seen[bit >> 3] & mask:
            return _FAILED
        seen[bit >> 3] |= mask
        log[state[S_LOG]] = bit
        state[S_LOG] += 1
    other = program[pc, 2]
    if top > 0 and stack[top - 1, 0] == _CHOICE and stack[top - 1, 1] == other and stack[top - 1, 3] == at - 1:
        stack[top - 1, 3] = at  # one entry for a loop over single characters
    else:
        stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3] = _CHOICE, other, at, at
        state[S_TOP] = top + 1
    state[S_PC] = program[pc, 1]
    return _WENT


@inlined
def _saved(kind: int, cell: int, cells: Ints, stack: Ints, state: Ints) -> int:
    top = state[S_TOP]
    stack[top, 0], stack[top, 1], stack[top, 2] = kind, cell, cells[cell]
    state[S_TOP] = top + 1
    cells[cell] = state[S_POS]
    state[S_PC] += 1
    return _WENT


@inlined
def _stands(where: int, word: int, text: Codes, truth: Truth, pages: Pages, state: Ints) -> int:
    at, n = state[S_POS], len(text)
    if where == AT_BEGIN:
        good = at == 0
    elif where == AT_END:
        good = at == n
    elif where == AT_LINE:
        good = at == 0 or text[at - 1] == 10
    elif where == AT_LINE_END:
        good = at == n or text[at] == 10
    else:
        before = _holds(word, np.int64(text[at - 1]), truth, pages, state) if at > 0 else 0
        if before < 0:
            return _UNKNOWN
        after = _holds(word, np.int64(text[at]), truth, pages, state) if at < n else 0
        if after < 0:
            return _UNKNOWN
        if where == AT_EDGE:
            good = before != after
        elif where == AT_NO_EDGE:
            good = before == after and n > 0
        elif where == AT_WORD:
            good = after > before
        else:
            good = before > after
    if not good:
        return _FAILED
    state[S_PC] += 1
    return _WENT


@inlined
def _looks(back: int, stack: Ints, state: Ints) -> int:
    top = state[S_TOP]
    stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3] = _LOOK, state[S_PC], state[S_POS], state[S_LOOK]
    stack[top + 1, 0], stack[top + 1, 1] = _LOOK_LOG, state[S_LOG]
    state[S_LOOK], state[S_TOP] = top, top + 2
    state[S_POS] -= back
    state[S_PC] += 1
    return _WENT if state[S_POS] >= 0 else _FAILED


@inlined
def _looked(program: Ints, stack: Ints, seen: Truth, log: Ints, state: Ints) -> int:
    """What a look tried on its way to success has not failed, so it is forgotten."""
    top = state[S_LOOK]
    before = stack[top + 1, 1]
    forget(seen, log, before, state[S_LOG])
    pc = stack[top, 1]
    state[S_LOG], state[S_TOP], state[S_POS], state[S_LOOK] = before, top, stack[top, 2], stack[top, 3]
    state[S_PC] = program[pc, 1]
    return _FAILED if program[pc, 2] else _WENT


@kernel
def forget(seen: Truth, log: Ints, first: int, last: int) -> None:
    """Clears the bits that these entries of the log set."""
    for i in range(first, last):
        seen[log[i] >> 3] &= np.uint8(255 ^ (1 << (log[i] & 7)))


@inlined
def _repeated(slot: int, text: Codes, slots: Ints, state: Ints) -> int:
    begin, end, at = slots[slot], slots[slot + 1], state[S_POS]
    if begin < 0 or end < begin or at + end - begin > len(text):
        return _FAILED
    for i in range(end - begin):
        if text[begin + i] != text[at + i]:
            state[S_FUEL] -= i >> 3
            return _FAILED
    state[S_FUEL] -= (end - begin) >> 3
    state[S_POS] += end - begin
    state[S_PC] += 1
    return _WENT


@inlined
def _matched(n: int, state: Ints) -> int:
    at, mode = state[S_POS], state[S_MODE]
    if mode == EXACT:
        return _ENDED if at == state[S_END] else _FAILED
    if mode == FIRST:
        state[S_END] = at
        return _ENDED
    state[S_END] = max(state[S_END], at)
    return _ENDED if at == n else _FAILED


@inlined
def _back_up(program: Ints, stack: Ints, slots: Ints, registers: Ints, state: Ints) -> None:
    """Undoes what was done since the last choice, and takes its other way."""
    top = state[S_TOP]
    while top > 0:
        top -= 1
        kind = stack[top, 0]
        if kind == _CHOICE:
            state[S_PC], state[S_POS] = stack[top, 1], stack[top, 3]
            if stack[top, 3] > stack[top, 2]:
                stack[top, 3] -= 1
                top += 1
            state[S_TOP] = top
            return
        if kind == _SLOT:
            slots[stack[top, 1]] = stack[top, 2]
        elif kind == _REGISTER:
            registers[stack[top, 1]] = stack[top, 2]
        elif kind == _LOOK:
            state[S_LOOK] = stack[top, 3]
            look = stack[top, 1]
            if program[look, 2]:
                state[S_PC], state[S_POS], state[S_TOP] = program[look, 1], stack[top, 2], top
                return
    state[S_START] += 1
    state[S_BEGUN] = 0


@kernel
def run_regex(
    program: Ints, text: Codes, folded: Codes, truth: Truth, pages: Pages, stack: Ints, seen: Truth, log: Ints,
    slots: Ints, registers: Ints, state: Ints,
) -> int:  # fmt: skip
    """Goes on with a search until it ends or needs something.

    ``program`` is int64[n, COLUMNS]. ``truth``: uint8[leaves, 256 * pages], and ``pages`` maps the upper bits of a
    character to its page, -1: not known. ``stack`` is int64[n, 4]: a kind, and what is to be restored.
    """
    while True:
        if state[S_BEGUN] == 0 and not _begun(text, state):
            return NONE
        state[S_FUEL] -= 1
        if state[S_FUEL] < 0:
            return PAUSED
        if state[S_TOP] + 4 >= len(stack):
            return NEEDS_STACK
        if state[S_LOG] + 4 >= len(log):
            return NEEDS_LOG
        pc = state[S_PC]
        op = program[pc, 0]
        if op <= ANY:
            done = _consumed(op, program[pc, 1], text, truth, pages, state)
        elif op == SPLIT:
            done = _chosen(program, text, stack, seen, log, registers, state)
        elif op == JUMP:
            state[S_PC] = program[pc, 1]
            done = _WENT
        elif op == SAVE:
            done = _saved(_SLOT, program[pc, 1], slots, stack, state)
        elif op == MARK:
            done = _saved(_REGISTER, program[pc, 1], registers, stack, state)
        elif op == CHECK:
            state[S_PC] = program[pc, 2] if registers[program[pc, 1]] == state[S_POS] else pc + 1
            done = _WENT
        elif op == AT:
            done = _stands(program[pc, 1], program[pc, 2], text, truth, pages, state)
        elif op == LOOK:
            done = _looks(program[pc, 3], stack, state)
        elif op == LOOKED:
            done = _looked(program, stack, seen, log, state)
        elif op == BACK:
            done = _repeated(program[pc, 1], folded if program[pc, 2] else text, slots, state)
        else:
            done = _matched(len(text), state)
        if done == _FAILED:
            _back_up(program, stack, slots, registers, state)
        elif done == _UNKNOWN:
            return NEEDS_PAGE
        elif done == _ENDED:
            return FOUND
