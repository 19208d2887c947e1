"""The text of a tsquery, read and written."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from ivm.errors import SqlError, too_deep
from storage.types.textsearch.lexemes import checked, quoted, read_lexeme, syntax_error
from storage.types.textsearch.nodes import Node, Operation, Operator, Term, joined, negation

MOST_DISTANCE: Final = 16384
PRIORITY: Final[dict[Operator, int]] = {"|": 1, "&": 2, "<->": 3, "!": 4}
LETTERS: Final = {"a": 8, "b": 4, "c": 2, "d": 1}
_PHRASE: Final = re.compile(r"<(-|\d+)>")
Operand = Callable[[str, int, bool], Node]
"""What an operand's text, weights and prefix mark stand for."""


def distance_error() -> SqlError:
    """22023 for a distance out of range."""
    limits = f"an integer value between zero and {MOST_DISTANCE} inclusive"
    return SqlError("22023", f"distance in phrase operator must be {limits}")


def as_written(lexeme: str, weights: int, prefix: bool) -> Term:
    """An operand that is a lexeme."""
    return Term(checked(lexeme), weights, prefix)


class QueryReader:
    """Reads a query; operators bind from the left, ``!`` first, then ``<->``, ``&``, ``|``."""

    def __init__(self, text: str, operand: Operand) -> None:
        self.text = text
        self.at = 0
        self.operand = operand

    def read(self) -> Node | None:
        """The tree; None for text without any. Raises 42601, 22023, 54001."""
        if self._peek() == "":
            return None
        try:
            node = self._operation(1)
        except RecursionError:
            raise too_deep() from None
        if self._peek():
            raise syntax_error("tsquery", self.text)
        return node

    def _peek(self) -> str:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        return self.text[self.at : self.at + 1]

    def _operation(self, least: int) -> Node:
        left = self._operand()
        while (found := self._operator()) and PRIORITY[found[0]] >= least:
            operator, distance, self.at = found
            left = joined(operator, left, self._operation(PRIORITY[operator] + 1), distance)
        return left

    def _operator(self) -> tuple[Operator, int, int] | None:
        letter = self._peek()
        if letter == "&":
            return "&", 0, self.at + 1
        if letter == "|":
            return "|", 0, self.at + 1
        if (phrase := _PHRASE.match(self.text, self.at)) and phrase.end() < len(self.text):
            distance = 1 if phrase[1] == "-" else int(phrase[1])
            if distance > MOST_DISTANCE:
                raise distance_error()
            return "<->", distance, phrase.end()
        if letter in ("", ")"):
            return None
        raise syntax_error("tsquery", self.text)

    def _operand(self) -> Node:
        letter = self._peek()
        if letter == "":
            raise SqlError("42601", f'no operand in tsquery: "{self.text}"')
        if letter == "!":
            self.at += 1
            return negation(self._operand())
        if letter == "(":
            self.at += 1
            node = self._operation(1)
            if self._peek() != ")":
                raise syntax_error("tsquery", self.text)
            self.at += 1
            return node
        if letter in ":&|)":
            raise syntax_error("tsquery", self.text)
        lexeme, self.at = read_lexeme(self.text, self.at, "tsquery", "!&|()<")
        weights, prefix = self._marks()
        return self.operand(lexeme, weights, prefix)

    def _marks(self) -> tuple[int, bool]:
        weights, prefix = 0, False
        if self.text[self.at : self.at + 1] == ":":
            self.at += 1
            while (mark := self.text[self.at : self.at + 1].lower()) in ("*", *LETTERS):
                prefix = prefix or mark == "*"
                weights |= LETTERS.get(mark, 0)
                self.at += 1
        return weights, prefix


def format_query(node: Node, above: int = 0, right_of_phrase: bool = False) -> str:
    """The text of a tree, with the parentheses that Postgres writes."""
    if isinstance(node, Term):
        marks = "*" * node.prefix + "".join(m.upper() for m, bit in LETTERS.items() if node.weights & bit)
        return f"{quoted(node.lexeme)}:{marks}" if marks else quoted(node.lexeme)
    priority = PRIORITY[node.operator]
    right = format_query(node.right, priority, node.operator == "<->")
    if node.left is None:
        text = f"!{right}"
    else:
        sign = f"<{node.distance}>" if node.operator == "<->" and node.distance != 1 else node.operator
        text = f"{format_query(node.left, priority)} {sign} {right}"
    inside = priority < above or (node.operator == "<->" and right_of_phrase)
    return f"( {text} )" if inside else text


def operands(node: Node) -> tuple[Node, ...]:
    """The operands of an operation, the right one first."""
    if isinstance(node, Operation):
        return (node.right,) if node.left is None else (node.right, node.left)
    return ()
