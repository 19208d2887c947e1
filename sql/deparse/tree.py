"""Expressions as they are shown: PostgreSQL's expression tree, with every name as text and every coercion in place.

``sql.deparse.expressions`` makes these from the syntax tree and what binding found out about it; ``sql.deparse.shown``
writes them.
"""

from __future__ import annotations

from dataclasses import dataclass

from ivm.words import SqlType
from sql.syntax.nodes import queries as nodes


@dataclass(frozen=True, slots=True)
class Variable:
    """A column. ``text``: with its qualifier; ``name``: without, not quoted. ``row``: the type of a whole row."""

    text: str
    name: str | None
    row: str | None = None


@dataclass(frozen=True, slots=True)
class Constant:
    """``label``: the name of its type; ``labelled``: the text alone would mean another type."""

    text: str
    label: str
    labelled: bool
    type: SqlType | None = None


@dataclass(frozen=True, slots=True)
class Word:
    """What stands for itself: a parameter, CURRENT_DATE, DEFAULT."""

    text: str


@dataclass(frozen=True, slots=True)
class Coercion:
    """A cast. ``implicit``: shown only where the context asks for it. ``function``: done by a function, and not by a
    change of the type alone. ``to``: the type where ``type`` has modifiers, without them."""

    arg: Shown
    type: str
    implicit: bool
    function: bool
    to: SqlType | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    symbol: str
    args: tuple[Shown, ...]


@dataclass(frozen=True, slots=True)
class Differs:
    """``left IS DISTINCT FROM right``."""

    left: Shown
    right: Shown


@dataclass(frozen=True, slots=True)
class Quantified:
    """``left symbol ANY | ALL (array)``."""

    left: Shown
    symbol: str
    every: bool
    array: Shown


@dataclass(frozen=True, slots=True)
class Logic:
    """``kind``: AND, OR or NOT."""

    kind: str
    args: tuple[Shown, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """A subquery. ``kind``: exists, any, all, row, value or array; ``left``: what is compared with its rows."""

    kind: str
    query: nodes.Query
    left: tuple[Shown, ...] = ()
    symbol: str = ""


@dataclass(frozen=True, slots=True)
class Test:
    """``arg IS …``. ``null``: a test for NULL, whose argument shows implicit casts."""

    arg: Shown
    words: str
    null: bool


@dataclass(frozen=True, slots=True)
class Cases:
    operand: Shown | None
    arms: tuple[tuple[Shown, Shown], ...]
    otherwise: Shown


@dataclass(frozen=True, slots=True)
class Array:
    """``type``: its name, shown where there are no items."""

    items: tuple[Shown, ...]
    type: str


@dataclass(frozen=True, slots=True)
class RowValue:
    """``type``: what it is cast to."""

    items: tuple[Shown, ...]
    type: str | None = None


@dataclass(frozen=True, slots=True)
class RowComparison:
    left: tuple[Shown, ...]
    symbol: str
    right: tuple[Shown, ...]


@dataclass(frozen=True, slots=True)
class SortItem:
    """``tail``: what stands behind the expression, as `` DESC``."""

    key: Shown
    tail: str


@dataclass(frozen=True, slots=True)
class FrameEnd:
    """``offset`` and ``words`` behind it; None: ``words`` alone."""

    offset: Shown | None
    words: str


@dataclass(frozen=True, slots=True)
class Frame:
    """``end`` None: the frame is written without BETWEEN. ``exclude``: with its keyword, "" without."""

    mode: str
    start: FrameEnd
    end: FrameEnd | None
    exclude: str


@dataclass(frozen=True, slots=True)
class Window:
    """``alone``: OVER name."""

    name: str | None
    partition: tuple[Shown, ...]
    order: tuple[SortItem, ...]
    frame: Frame | None
    alone: bool = False


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """``name``: with its schema and quotes, if it needs them. ``names``: of the arguments, None for positional ones."""

    name: str
    args: tuple[Shown, ...]
    names: tuple[str | None, ...] = ()
    star: bool = False
    distinct: bool = False
    variadic: bool = False
    order: tuple[SortItem, ...] = ()
    within: bool = False
    filter: Shown | None = None
    nulls: str = ""
    over: Window | None = None


@dataclass(frozen=True, slots=True)
class Phrase:
    """A call with a syntax of its own: keywords and arguments in turn. ``grouped``: the arguments of operators in it
    need parentheses."""

    parts: tuple[str | Shown, ...]
    grouped: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """``arg[low]`` or ``arg[low:high]``; None: a bound that is left out."""

    arg: Shown
    bounds: tuple[tuple[Shown | None, Shown | None, bool], ...]


@dataclass(frozen=True, slots=True)
class FieldOf:
    arg: Shown
    name: str


@dataclass(frozen=True, slots=True)
class Collated:
    arg: Shown
    collation: str


Shown = (
    Variable | Constant | Word | Coercion | Operation | Differs | Quantified | Logic | Link | Test | Cases | Array
    | RowValue | RowComparison | FunctionCall | Phrase | Part | FieldOf | Collated
)  # fmt: skip
