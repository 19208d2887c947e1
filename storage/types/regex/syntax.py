"""The syntax tree of a regular expression, from its tokens, and how much a naive search for it may cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from storage.types.regex.translate import Sort, Token


@dataclass(frozen=True, slots=True)
class Leaf:
    """One character, which ``source`` matches in Python's syntax."""

    source: str


@dataclass(frozen=True, slots=True)
class At:
    """A place, by its token's text."""

    source: str


@dataclass(frozen=True, slots=True)
class Back:
    """A back-reference."""

    group: int


@dataclass(frozen=True, slots=True)
class Chain:
    """``items`` one after the other."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """The first of ``arms`` with which the whole matches."""

    arms: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """``number`` 0: it captures nothing."""

    body: Node
    number: int


@dataclass(frozen=True, slots=True)
class Look:
    """Whether ``body`` matches from here on, or up to here."""

    body: Node
    behind: bool
    negative: bool


@dataclass(frozen=True, slots=True)
class Repeat:
    """``most`` None: any number of times."""

    body: Node
    least: int
    most: int | None
    lazy: bool


Node = Leaf | At | Back | Chain | Either | Group | Look | Repeat


def parsed(tokens: Sequence[Token]) -> Node:
    """The tree of tokens whose parentheses are balanced."""
    arms: list[list[Node]] = [[]]
    open_: list[tuple[Token, list[list[Node]]]] = []
    for token in tokens:
        match token.sort:
            case Sort.LEAF:
                arms[-1].append(Leaf(token.text))
            case Sort.AT:
                arms[-1].append(At(token.text))
            case Sort.BACK:
                arms[-1].append(Back(token.number))
            case Sort.BAR:
                arms.append([])
            case Sort.OPEN | Sort.LOOK:
                open_.append((token, arms))
                arms = [[]]
            case Sort.CLOSE | Sort.CLOSE_LOOK:
                opening, outer = open_.pop()
                body, arms = _either(arms), outer
                arms[-1].append(
                    Look(body, "<" in opening.text, "!" in opening.text)
                    if opening.sort is Sort.LOOK
                    else Group(body, opening.number)
                )
            case Sort.REPEAT:
                arms[-1].append(Repeat(arms[-1].pop(), token.least, token.most, token.lazy))
            case _:
                assert_never(token.sort)
    return _either(arms)


def _either(arms: list[list[Node]]) -> Node:
    chains = [arm[0] if len(arm) == 1 else Chain(tuple(arm)) for arm in arms]
    return chains[0] if len(chains) == 1 else Either(tuple(chains))


def nullable(node: Node) -> bool:
    """Whether it can match without a character."""
    match node:
        case Leaf():
            return False
        case At() | Back() | Look():
            return True
        case Chain(items):
            return all(map(nullable, items))
        case Either(arms):
            return any(map(nullable, arms))
        case Group(body):
            return nullable(body)
        case Repeat(body, least):
            return least == 0 or nullable(body)
        case _:
            assert_never(node)


def width(node: Node) -> int:
    """How many characters the body of a look-behind matches, always the same number."""
    match node:
        case Leaf():
            return 1
        case At() | Back() | Look():
            return 0
        case Chain(items):
            return sum(map(width, items))
        case Either(arms):
            return width(arms[0])
        case Group(body):
            return width(body)
        case Repeat(body, least):
            return least * width(body)
        case _:
            assert_never(node)


def leaves(node: Node) -> int:
    """How many steps a program has at least."""
    match node:
        case Leaf() | At() | Back():
            return 1
        case Chain(parts) | Either(parts):
            return 1 + sum(map(leaves, parts))
        case Group(body) | Look(body):
            return 2 + leaves(body)
        case Repeat(body, least, most):
            return 2 + leaves(body) * max(1, least, most or 0)
        case _:
            assert_never(node)


Ways = tuple[float, float]
"""``(f, d)``: a backtracking search tries at most f × (n + 1)^d ways to match n characters. f may be infinite."""


def ways(node: Node) -> Ways:
    """In how many ways a part can match from one place, if a search remembers nothing."""
    match node:
        case Leaf() | At():
            return 1, 0
        case Back():
            return math.inf, 0
        case Chain(items):
            return _product([ways(item) for item in items])
        case Either(arms):
            each = [ways(arm) for arm in arms]
            begins = [_begin(arm) for arm in arms]
            apart = "" not in begins and len(set(begins)) == len(begins)
            return (max if apart else sum)(f for f, _ in each), max(d for _, d in each)
        case Group(body) | Look(body):
            return ways(body)
        case Repeat(body, least, most):
            factor, degree = ways(body)
            if most is not None and most <= 1:
                return factor + 1, degree
            if factor > 1 or degree > 0 or nullable(body):
                return (math.inf if least != most else _power(factor, least)), degree * least
            return (1, 0) if least == most else (1, 1)
        case _:
            assert_never(node)


def _begin(node: Node) -> str:
    """The letter or digit of ASCII with which it begins, in lower case; empty if that is not known."""
    match node:
        case Leaf(source) if source.isascii() and source.isalnum() and len(source) == 1:
            return source.lower()
        case Chain((first, *_)) | Group(first):
            return _begin(first)
        case _:
            return ""


def _product(each: list[Ways]) -> Ways:
    factor = 1.0
    for f, _ in each:
        factor *= f
    return factor, sum(d for _, d in each)


def _power(factor: float, times: int) -> float:
    return factor**times if factor == 1 or times * math.log2(max(factor, 1.0)) < 100 else math.inf
