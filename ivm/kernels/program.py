"""The layout of programs (``ivm.kernels.run``): the words of the head, of a scope, and of a row of each kind."""

from __future__ import annotations

from typing import Final

# Head: the current scope; the outcome of the current row's call, if Python was asked to run it (NOT_CALLED,
# CALLED_SILENT: it has emitted nothing, CALLED_EMITTED); for each of KINDS kinds of work, the number of updates from
# which threads share it in Python; how many passes are left before the kernel returns, each operator of the outermost
# scope counting as one; how many rows it has visited so far; the queue of the outermost scope's due rows (a binary
# heap) and the list of those that have emitted, each as index and length. The words of the outermost scope follow.
F_SCOPE: Final = 0
F_RETURN: Final = 1
F_LEAST: Final = 2
KINDS: Final = 4
F_PASSES: Final = 6
F_LOOKED: Final = 7
F_QUEUE: Final = 8
F_QUEUE_COUNT: Final = 9
F_TOUCHED: Final = 10
F_TOUCHED_COUNT: Final = 11
PROGRAM_HEAD: Final = 12
NOT_CALLED: Final = 0
CALLED_SILENT: Final = 1
CALLED_EMITTED: Final = 2

# Every scope: the enclosing scope and its own row there, the shape of its times, its first row and where its rows end
# (0 for the outermost scope, whose rows may lie anywhere, in rank order), the current row of its pass (0: between
# passes, or between the outermost scope's rows), the vector of the pass, and of the enclosing pass.
S_PARENT: Final = 0
S_ROW: Final = 1
S_SHAPE: Final = 2
S_FIRST: Final = 3
S_END: Final = 4
S_AT: Final = 5
S_VECTOR: Final = 6
S_OUTER: Final = 7
SCOPE_WORDS: Final = 8

# Every row: the operator, the vector at which it is due (-1: none), whether it runs in this pass, its ``out``, the row
# of its source (its address if the source is not in the program), its own block (updates that wait for later vectors; a
# variable's next round, what a tap gathered, an output's undrained changes), the list of its consumers' rows (index and
# length), likewise of the rows that bring its ``out`` into loops; whether Python is notified at the end if it has
# emitted; and the head's word with the number of updates from which threads share its work (0: never). A nested loop's
# source is its scope, its consumers are the operators that leave it.
R_OPERATOR: Final = 0
R_DUE: Final = 1
R_QUEUED: Final = 2
R_OUT: Final = 3
R_SOURCE: Final = 4
R_OWN: Final = 5
R_LINKS: Final = 6
R_LINK_COUNT: Final = 7
R_ENTERS: Final = 22
R_ENTER_COUNT: Final = 23
R_NOTED: Final = 24
R_SHARED: Final = 25
ROW_WORDS: Final = 26

# Arrange, output: the trace, the order, the gather's program (0: none) and its number of words, the gathered block.
A_TRACE: Final = 8
A_ORDER: Final = 9
A_GATHER: Final = 10
A_GATHER_WORDS: Final = 11
A_GATHERED: Final = 12
# Threshold: the traces of its source and of its output (0 outside of loops: none), what it keeps, the blocks of owed
# times as found and as sorted. Count: the same two traces, and a block for unsorted output.
D_SOURCE: Final = 8
D_OUTPUT: Final = 9
D_KEEP: Final = 10
D_OWED: Final = 11
D_SORTED: Final = 12
N_UNSORTED: Final = 10
# Join: the right delta's row (R_SOURCE: the left one's), its program, state, last round, the left side's new updates (a
# row, or an address if outside), and both sides, four words each: trace, shape, delay, a delayed body's row.
J_RIGHT: Final = 8
J_PROGRAM: Final = 9
J_PROGRAM_WORDS: Final = 10
J_STATE: Final = 11
J_LAST: Final = 12
J_FRESH: Final = 13
J_LEFT_SIDE: Final = 14
J_RIGHT_SIDE: Final = 18
# Concat: the list of its sources (index and length). Feedback: the variable's row, the last round, the rounds of a
# priority (0: there are none), the last of them, whether updates in the last round are dropped.
C_SOURCES: Final = 8
C_COUNT: Final = 9
F_VARIABLE: Final = 8
F_LAST: Final = 9
F_STRIDE: Final = 10
F_LAST_OF_PRIORITY: Final = 11
F_IDLE: Final = 12
# First: as a threshold's, then the values' words, their number, and whether they are complemented. Delay: its program.
# Accumulate: as a threshold's, then its formula, its number of words, and the address of its errors' block; a map has
# these three too. Project: its gather's program and its words. Entering: its scope. Delta join: a state, the list of
# its courses (index and length), and the cell that says whether it has run. A course: its delta, the path and its
# number of words, the sources to fill in and their number, and for each of them the delta that makes it fresh (0: none)
# and the block to subtract then.
G_WORDS: Final = 13
G_WORD_COUNT: Final = 14
G_COMPLEMENT: Final = 15
G_ERRORS: Final = 15
P_DELAY: Final = 8
P_GATHER: Final = 8
P_GATHER_WORDS: Final = 9
P_FORMULA: Final = 8
P_FORMULA_WORDS: Final = 9
P_ERRORS: Final = 10
E_SCOPE: Final = 8
M_STATE: Final = 8
M_COURSES: Final = 9
M_COUNT: Final = 10
M_RAN: Final = 11
K_DELTA: Final = 0
K_PATH: Final = 1
K_PATH_WORDS: Final = 2
K_SOURCES: Final = 3
K_COUNT: Final = 4
K_HEAD: Final = 5
WORK: Final = 1 << 22

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
NEGATE: Final = 12
LEAVING: Final = 13
DELTA_JOIN: Final = 14
NESTED: Final = 15
CALL: Final = 16
GIVEN: Final = 17
OUTPUT: Final = 18
COUNT: Final = 19
THRESHOLD_TOTAL: Final = 20
MAP: Final = 21
ERRORS: Final = 22
ACCUMULATE: Final = 23
ACCUMULATE_TOTAL: Final = 24

# The outcome of running an operator: done; not done, to be run in Python; done except for inserting its ``out``.
# Results of a call: nothing is due, or the given number of passes have run. Between scopes: a loop was entered.
DONE: Final = 0
UNDONE: Final = 1
UNPLACED: Final = 2

FINISHED: Final = -1
PAUSED: Final = -2
ENTERED: Final = -3
