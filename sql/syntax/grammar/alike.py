"""Finding operands of one form in the tokens: a chain of thousands is read as one operand and its constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sql.syntax.lexing.lexer import MANY, Token, TokenKind
from sql.syntax.nodes import queries as nodes
from sql.syntax.nodes.alike import Slot, parts

LONGEST: Final = 64
"""Tokens of an operand."""
CONSTANTS: Final = (TokenKind.NUMBER, TokenKind.STRING)
_PLAIN: Final = (
    nodes.Name, nodes.Number, nodes.String, nodes.Boolean, nodes.Null, nodes.Operator, nodes.Cast, nodes.TypeName,
    nodes.AndExpr, nodes.OrExpr, nodes.NotExpr, nodes.IsTest, nodes.DistinctTest, nodes.Between, nodes.CaseExpr,
    nodes.Apply,
)  # fmt: skip
"""Nodes that mean the same wherever they stand, whatever the constants in them."""


def repeated(tokens: Sequence[Token], start: int, between: int) -> int:
    """How many operands, of which the first starts at ``start``, have one form but for their constants, and the token
    at ``between`` after them. 0: fewer than ``MANY``. Cost: a look at one token, if the second operand is another."""
    period = between - start + 1
    first = between + period
    if period > LONGEST or len(tokens) - start < MANY * period or tokens[first].value != tokens[between].value:
        return 0
    if _alike(tokens, start, period, MANY) < MANY:
        return 0
    return _alike(tokens, start, period, (len(tokens) - start) // period)


def _alike(tokens: Sequence[Token], start: int, period: int, most: int) -> int:
    """The number of periods from ``start`` on that are alike, at most ``most``."""
    for place in range(start, start + period):
        kind, value = tokens[place].kind, tokens[place].value
        constant = kind in CONSTANTS
        for number, token in enumerate(tokens[place + period : start + most * period : period], 1):
            if token[0] is not kind or (token[1] != value and not constant):
                most = number
                break
        if most < MANY:
            break
    return most


def alike(tokens: Sequence[Token], start: int, other: int, length: int) -> bool:
    """Whether the tokens from ``other`` on have the form of those from ``start`` on."""
    pairs = list(zip(tokens[start : start + length], tokens[other : other + length], strict=False))
    return len(pairs) == length and all(
        a.kind is b.kind and (a.value == b.value or a.kind in CONSTANTS) for a, b in pairs
    )


def slots(first: nodes.Expr, tokens: Sequence[Token], period: int) -> tuple[Slot, ...] | None:
    """The constants in which operands differ; None: their trees may differ in more. ``tokens``: from the first
    operand's on."""
    found = list(parts(first))
    starts = {t.start: i for i, t in enumerate(tokens[: period - 1])}
    if not all(isinstance(n, _PLAIN) and n.at in starts for n in found):
        return None
    if any(n != nodes.Apply(n.name, n.args, n.at) for n in found if isinstance(n, nodes.Apply)):
        return None  # it has clauses of an aggregate, or names its arguments
    constants = {starts[n.at]: n for n in found if isinstance(n, nodes.Number | nodes.String)}
    made: list[Slot] = []
    for place, token in enumerate(tokens[: period - 1]):
        if token.kind not in CONSTANTS or len({t.value for t in tokens[place::period]}) == 1:
            continue
        node = constants.get(place)
        sign = node is None and place > 0 and isinstance(constants.get(place - 1), nodes.Number)
        if node is None and not sign:
            return None
        made.append(Slot(place, isinstance(node, nodes.String), sign))
    return tuple(made)
