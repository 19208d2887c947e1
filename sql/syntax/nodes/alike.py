"""Many operands of one form in a row, which differ in constants only: one tree for all of them, and their tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final

from sql.syntax.lexing.lexer import Token
from sql.syntax.nodes.constants import Number, String

if TYPE_CHECKING:
    from sql.syntax.nodes.queries import Expr


@dataclass(frozen=True, slots=True)
class Slot:
    """A constant that the operands do not have in common. ``place``: its token's in an operand. ``negative``: the token
    before it is its sign."""

    place: int
    string: bool
    negative: bool


@dataclass(frozen=True, slots=True)
class Given:
    """What is bound already, for the binder's own use."""

    value: object
    at: int


@dataclass(frozen=True, slots=True)
class Alike:
    """``symbol``: what is between the operands: an operator, AND, OR, or the comma of a list. ``first``: the first
    operand. ``tokens``: of all operands, of which each has ``period - 1`` and what is between them one.

    Invariant: each ``at`` in ``first`` is where one of its tokens starts.
    """

    symbol: str
    first: Expr
    tokens: Sequence[Token]
    period: int
    slots: tuple[Slot, ...]
    at: int

    def __len__(self) -> int:
        return (len(self.tokens) + 1) // self.period

    def texts(self, slot: Slot) -> list[str]:
        """The constants of all operands in one place: numbers as they are written, strings without quotes."""
        found = [t.value for t in self.tokens[slot.place :: self.period]]
        return [_negated(text) for text in found] if slot.negative else found

    def place(self, slot: Slot) -> int:
        """The offset of the slot's node in ``first``."""
        return self.tokens[slot.place - slot.negative].start

    def with_given(self, given: Mapping[int, Given | String]) -> Expr:
        """The first operand with other nodes in place of the constants at some offsets."""
        found: Expr = _exchanged(self.first, given)
        return found

    def operands(self) -> tuple[Expr, ...]:
        """A tree for each."""
        return tuple(map(self._operand, range(len(self))))

    def signs(self) -> list[int]:
        """The offset of what follows each operand, but for the last one where nothing does."""
        return [t.start for t in self.tokens[self.period - 1 :: self.period]]

    def _operand(self, number: int) -> Expr:
        if not number:
            return self.first
        first = number * self.period
        own = self.tokens[first : first + self.period - 1]
        places = {old.start: new.start for old, new in zip(self.tokens, own, strict=False)}
        constants = {
            self.place(slot): _negated(own[slot.place].value) if slot.negative else own[slot.place].value
            for slot in self.slots
        }
        found: Expr = _moved(self.first, places, constants)
        return found


@dataclass(frozen=True, slots=True)
class Mixed:
    """Operands of a few forms in any order. ``chains``: those of each form; ``order``: the number of each operand's.

    Invariant: in the tokens of a chain something between operands follows the last one too.
    """

    symbol: str
    chains: tuple[Alike, ...]
    order: tuple[int, ...]
    at: int

    def __len__(self) -> int:
        return len(self.order)

    def operands(self) -> tuple[Expr, ...]:
        """A tree for each."""
        own = [iter(c.operands()) for c in self.chains]
        return tuple([next(own[number]) for number in self.order])

    def signs(self) -> list[int]:
        """As of a chain."""
        own = [iter(c.signs()) for c in self.chains]
        return [next(own[number]) for number in self.order][:-1]


def _negated(text: str) -> str:
    return text[1:] if text.startswith("-") else f"-{text}"


def parts(node: Any) -> Iterator[Any]:
    """A node and all nodes in it."""
    todo = [node]
    while todo:
        part = todo.pop()
        if isinstance(part, tuple):
            todo += part
        elif names := _fields(part):
            yield part
            todo += [getattr(part, name) for name in names]


def _fields(node: Any) -> tuple[str, ...]:
    """The names of a node's fields; none if it is no node."""
    found = _FIELDS.get(type(node))
    if found is None:
        found = _FIELDS[type(node)] = tuple(f.name for f in fields(node)) if is_dataclass(node) else ()
    return found


_FIELDS: Final[dict[type, tuple[str, ...]]] = {}


def _exchanged(node: Any, given: Mapping[int, Any]) -> Any:
    if isinstance(node, tuple):
        return tuple([_exchanged(n, given) for n in node])
    if isinstance(node, Number | String):
        return given.get(node.at, node)
    names = _fields(node)
    return type(node)(*[_exchanged(getattr(node, name), given) for name in names]) if names else node


def _moved(node: Any, places: Mapping[int, int], constants: Mapping[int, str]) -> Any:
    """The tree with its nodes at other offsets, and other constants at some."""
    if isinstance(node, tuple):
        return tuple([_moved(n, places, constants) for n in node])
    if isinstance(node, Number | String):
        own = node.text if isinstance(node, Number) else node.value
        return type(node)(constants.get(node.at, own), places[node.at])
    names = _fields(node)
    if not names:
        return node
    changed = [places[node.at] if name == "at" else _moved(getattr(node, name), places, constants) for name in names]
    return type(node)(*changed)
