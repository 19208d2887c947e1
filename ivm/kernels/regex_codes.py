"""The steps of programs of ``ivm.kernels.regex``, the cells of a search's state, and its outcomes.

For other modules, which read them without loading the compiler."""

from __future__ import annotations

from typing import Final

CHAR: Final = 0
"""One character: ``a``."""
LEAF: Final = 1
"""One character of which the truth table of leaf ``a`` holds."""
ANY: Final = 2
SPLIT: Final = 3
"""Go on at ``a``, and if that fails at ``b``; ``c``: memo; ``d`` registers from ``e`` on tell apart what follows."""
JUMP: Final = 4
SAVE: Final = 5
"""The place goes into slot ``a``."""
AT: Final = 6
"""``a``: where; ``b``: the leaf of word characters."""
LOOK: Final = 7
"""What follows is matched ``c`` characters back. Go on at ``a`` if it is found (``b`` 0), or is not (1)."""
LOOKED: Final = 8
BACK: Final = 9
"""What the slots ``a`` and ``a + 1`` enclose; ``b`` 1: regardless of case."""
MARK: Final = 10
"""Register ``a`` holds where the loop's body begins."""
CHECK: Final = 11
"""A body that matched nothing ends its loop: go on at ``b``."""
MATCH: Final = 12
COLUMNS: Final = 6

AT_BEGIN: Final = 0
AT_END: Final = 1
AT_LINE: Final = 2
AT_LINE_END: Final = 3
AT_EDGE: Final = 4
AT_NO_EDGE: Final = 5
AT_WORD: Final = 6
AT_WORD_END: Final = 7

S_PC: Final = 0
S_POS: Final = 1
S_TOP: Final = 2
S_START: Final = 3
"""Where the match begins, or the attempt."""
S_BEGUN: Final = 4
"""0: the attempt at ``S_START`` has not begun."""
S_LAST: Final = 5
"""The last place where a match may begin."""
S_FIRST: Final = 6
"""The character with which every match begins, -1: any."""
S_MODE: Final = 7
S_END: Final = 8
"""Where the match ends, must end (``EXACT``), or ends at the latest so far (``LONGEST``; -1: none yet)."""
S_LOOK: Final = 9
"""The stack's entry of the innermost open look, -1: none."""
S_LOG: Final = 10
S_FUEL: Final = 11
S_PAGE: Final = 12
"""The page of characters that is not known."""
S_REMEMBERS: Final = 13
STATES: Final = 14

FIRST: Final = 0
LONGEST: Final = 1
EXACT: Final = 2

FOUND: Final = 0
NONE: Final = 1
PAUSED: Final = 2
NEEDS_PAGE: Final = 3
NEEDS_STACK: Final = 4
NEEDS_LOG: Final = 5
