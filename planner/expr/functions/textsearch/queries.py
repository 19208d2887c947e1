"""Queries made from text: to_tsquery, plainto_tsquery, phraseto_tsquery, websearch_to_tsquery."""

from __future__ import annotations

import re
from typing import Final

from ivm.errors import SqlError
from planner.expr.functions.textsearch.dictionaries import lexemes
from storage.types.textsearch.lexemes import read_lexeme
from storage.types.textsearch.nodes import Node, Operation, Operator, Query, Term, joined, negation
from storage.types.textsearch.query_text import QueryReader

STOP: Final = Term("")
"""Stands for a stop word, until ``without_stops``."""
_OR: Final = re.compile(r"or(?![-_]|[^\W_])(?=.\s*\S)", re.IGNORECASE | re.DOTALL)


def operand(text: str, configuration: int, operator: Operator, weights: int = 0, prefix: bool = False) -> Node:
    """The lexemes of a text, joined; places between them that stop words left are kept by STOP."""
    words, _ = lexemes(text, configuration)
    node: Node | None = None
    last = 0
    for word, place in words:
        for _ in range(last + 1, place if node is not None else 0):
            node = _chained(operator, node, STOP)
        node = _chained(operator, node, Term(word, weights, prefix))
        last = place
    return STOP if node is None else node


def _chained(operator: Operator, node: Node | None, more: Node) -> Node:
    return more if node is None else joined(operator, node, more, 1 if operator == "<->" else 0)


def without_stops(node: Node | None) -> Query:
    """The query without its stop words; distances in phrases grow by what is left out."""
    kept, _, _ = _cleaned(STOP if node is None else node)
    return Query(kept)


def _cleaned(node: Node) -> tuple[Node | None, int, int]:
    """A tree without stop words, and how many places went before and after what is kept."""
    if isinstance(node, Term):
        return (None if node is STOP else node), 0, 0
    right, right_before, right_after = _cleaned(node.right)
    if node.left is None:
        return (None if right is None else negation(right)), right_before, right_after
    left, left_before, left_after = _cleaned(node.left)
    phrase = node.operator == "<->"
    if left is None and right is None:
        lost = left_before + node.distance + right_before if phrase else max(left_before, right_before)
        return None, lost, lost
    if left is None:
        return right, right_before + (left_before + node.distance if phrase else 0), right_after
    if right is None:
        return left, left_before, left_after + (node.distance + right_after if phrase else 0)
    if phrase:
        return joined("<->", left, right, node.distance + left_after + right_before), left_before, right_after
    return Operation(node.operator, right, left), 0, 0


def to_tsquery(configuration: int, text: str) -> Query:
    """to_tsquery: a query whose operands are words. Raises 42601."""

    def words(text: str, weights: int, prefix: bool) -> Node:
        return operand(text, configuration, "<->", weights, prefix)

    return without_stops(QueryReader(text, words).read())


def plainto_tsquery(configuration: int, text: str) -> Query:
    """plainto_tsquery: all words."""
    return without_stops(operand(text, configuration, "&"))


def phraseto_tsquery(configuration: int, text: str) -> Query:
    """phraseto_tsquery: all words, one after the other."""
    return without_stops(operand(text, configuration, "<->"))


def websearch_to_tsquery(configuration: int, text: str) -> Query:
    """websearch_to_tsquery: words, "phrases", ``or``, and ``-`` before what is not wanted; it never fails."""
    alternatives: list[Node] = []
    current: Node | None = None
    for alternative, node in _web_parts(configuration, text):
        if alternative and current is not None:
            alternatives.append(current)
            current = None
        current = node if current is None else joined("&", current, node)
    return without_stops(_left_deep(alternatives, current))


def _left_deep(alternatives: list[Node], last: Node | None) -> Node | None:
    """``a | b | c``, bound from the left."""
    nodes = alternatives if last is None else [*alternatives, last]
    result: Node | None = None
    for node in nodes:
        result = node if result is None else joined("|", result, node)
    return result


def _web_parts(configuration: int, text: str) -> list[tuple[bool, Node]]:
    """The operands, and whether ``or`` came before each."""
    parts: list[tuple[bool, Node]] = []
    at, alternative, negations, expects_operator = 0, False, 0, False
    while at < len(text):
        letter = text[at]
        if expects_operator and (found := _OR.match(text, at)):
            at, alternative, expects_operator = found.end(), True, False
            continue
        if letter.isspace() or letter in "!&|()":
            at += 1
            continue
        if expects_operator:
            expects_operator = False
            continue
        if letter == "-":
            at, negations = at + 1, negations + 1
            continue
        node, at = _web_operand(configuration, text, at)
        for _ in range(negations):
            node = negation(node)
        parts.append((alternative, node))
        alternative, negations, expects_operator = False, 0, True
    return parts


def _web_operand(configuration: int, text: str, at: int) -> tuple[Node, int]:
    if text[at] == '"':
        end = text.find('"', at + 1)
        end = len(text) if end < 0 else end
        return operand(text[at + 1 : end], configuration, "<->"), end + 1
    try:
        word, end = read_lexeme(text, at, "tsquery", "!&|()<", plain=True)
    except SqlError:
        return STOP, at + 1
    return operand(word, configuration, "<->"), end
