"""A parsed jsonpath: items, each with what follows it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final


class Step(Enum):
    """What an item is; an operator's value is its sign."""

    NULL = "null"
    BOOL = "bool"
    NUMBER = "number"
    STRING = "string"
    VARIABLE = "variable"
    ROOT = "root"
    CURRENT = "current"
    LAST = "last"
    KEY = "key"
    ANY_KEY = "any key"
    ANY_ARRAY = "any array"
    INDEX = "index"
    ANY = "any"
    FILTER = "filter"
    METHOD = "method"
    AND = "&&"
    OR = "||"
    NOT = "!"
    IS_UNKNOWN = "is unknown"
    EXISTS = "exists"
    EQUAL = "=="
    NOT_EQUAL = "!="
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="
    STARTS_WITH = "starts with"
    LIKE_REGEX = "like_regex"
    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    MODULO = "%"
    PLUS = "unary +"
    MINUS = "unary -"


COMPARISONS: Final = (
    Step.EQUAL, Step.NOT_EQUAL, Step.LESS, Step.LESS_EQUAL, Step.GREATER, Step.GREATER_EQUAL
)  # fmt: skip
ARITHMETIC: Final = (Step.ADD, Step.SUBTRACT, Step.MULTIPLY, Step.DIVIDE, Step.MODULO)
PREDICATES: Final = (
    *COMPARISONS, Step.AND, Step.OR, Step.NOT, Step.IS_UNKNOWN, Step.EXISTS, Step.STARTS_WITH, Step.LIKE_REGEX
)  # fmt: skip
UNBOUNDED: Final = 2**32 - 1
"""``last`` as a level of ``**``."""


@dataclass(frozen=True, slots=True)
class Item:
    """A step of a path, an operator or a constant.

    ``value``: a constant; a variable's, key's or method's name; the (first, last) levels of ANY; the (from, to or
    None) items of INDEX; the (pattern, flags) of LIKE_REGEX. ``args``: operands, a method's arguments, a filter's
    condition. ``next``: what is applied to the results.
    """

    step: Step
    value: Any = None
    args: tuple[Item, ...] = ()
    next: Item | None = None


@dataclass(frozen=True, slots=True)
class Path:
    """A whole jsonpath. ``lax``: it is not strict."""

    lax: bool
    item: Item
