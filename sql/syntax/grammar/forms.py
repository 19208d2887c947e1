"""Finding operands of a few forms in the tokens: of a chain of thousands only the first of each form are read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from sql.syntax.grammar.alike import CONSTANTS, LONGEST, slots
from sql.syntax.lexing.lexer import Token, TokenKind
from sql.syntax.nodes import queries as nodes
from sql.syntax.nodes.alike import Alike, Mixed

_TIMES: Final = 4
"""So many operands of each form at least, on the average."""
_FORMS: Final = 32
"""At most: they are searched one by one."""
_Form = list[TokenKind | tuple[object, ...]]
"""The tokens of an operand and of what follows it, without the values of constants."""


def mixed(
    tokens: Sequence[Token], bounds: Sequence[int], operands: Sequence[nodes.Expr], symbol: str
) -> tuple[Mixed, int] | None:
    """The operands that have been read and those after them that are like one of them, and where the next one starts.

    ``bounds``: where each starts, and where the next one does. None: they have many forms, or one that may mean another
    thing in another place. Cost: that of a look at each token.
    """
    found, most = _Forms(tokens), min(len(operands) // _TIMES, _FORMS)
    for start, end in pairwise(bounds):
        if end - start > LONGEST or not found.read(start, end, most):
            return None
    end = found.follow(bounds[-1])
    chains = [_chain(tokens, operands[found.order.index(i)], found.starts[i], len(f), symbol)
              for i, f in enumerate(found.forms)]  # fmt: skip
    made = tuple([c for c in chains if c is not None])
    if len(made) < len(chains):
        return None
    return Mixed(symbol, made, tuple(found.order), tokens[bounds[0]].start), end


def _chain(tokens: Sequence[Token], first: nodes.Expr, starts: Sequence[int], period: int, symbol: str) -> Alike | None:
    own = [token for start in starts for token in tokens[start : start + period]]
    found = slots(first, own, period)
    return None if found is None else Alike(symbol, first, own, period, found, own[0].start)


class _Forms:
    """``forms``: those met so far; ``order``: the number of each operand's; ``starts``: where those of each start."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self.forms: list[_Form] = []
        self.order: list[int] = []
        self.starts: list[list[int]] = []

    def read(self, start: int, end: int, most: int) -> bool:
        """Takes an operand that has been read. False: it is of a form beyond the ``most``."""
        form = self._form(start, end)
        if form not in self.forms:
            if len(self.forms) == most:
                return False
            self.forms.append(form)
            self.starts.append([])
        self._take(self.forms.index(form), start)
        return True

    def follow(self, at: int) -> int:
        """Takes the operands from there on, as long as they are of known forms. Where the first other one starts."""
        follower = dict(pairwise(self.order))
        longest = max(map(len, self.forms))
        while True:
            own = self._form(at, at + longest)
            last, number = self.order[-1], follower.get(self.order[-1], 0)
            form = self.forms[number]
            if own[: len(form)] != form:
                fitting = [i for i, f in enumerate(self.forms) if own[: len(f)] == f]
                if not fitting:
                    return at
                number = fitting[0]
                form, follower[last] = self.forms[number], number
            self._take(number, at)
            at += len(form)

    def _take(self, number: int, start: int) -> None:
        self.order.append(number)
        self.starts[number].append(start)

    def _form(self, start: int, end: int) -> _Form:
        return [t[0] if t[0] in CONSTANTS else t[:2] for t in self._tokens[start:end]]
