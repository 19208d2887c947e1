"""Functions and operators by the names that regproc, regprocedure, regoper and regoperator read and write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from ivm.errors import SqlError
from planner.identifiers import quoted, split_name
from sql.catalog.catalog import Relation
from sql.catalog.operators import Operator
from sql.catalog.routine import Routine
from sql.system.builtin import by_oid, numbers
from sql.system.pg_routines import argument_oid
from sql.system.state import SystemState

_SYSTEM: Final = "pg_catalog"


@dataclass(frozen=True, slots=True)
class Signature:
    """A function or operator. ``args``: the oids of its types, 0 for an operand that a prefix operator lacks."""

    oid: int
    schema: str
    name: str
    args: tuple[int, ...]


class Signatures:
    """Those of one session. ``type_name``: a type's name by its oid; ``type_oid``: the other way, raising 42704."""

    def __init__(self, state: SystemState, type_name: Callable[[int], str], type_oid: Callable[[str], int]) -> None:
        self._state, self._type_name, self._type_oid = state, type_name, type_oid

    def _routines(self) -> Iterator[Signature]:
        for relation in self._state.routines():
            routine = relation.routine
            assert routine is not None, "a function"
            yield _of_routine(relation, routine)

    def _operators(self) -> Iterator[Signature]:
        for relation in {r.oid: r for r in self._state.operators()}.values():
            operator = relation.operator
            assert operator is not None, "an operator"
            yield _of_operator(relation, operator)

    def _known(self, operators: bool, name: str) -> list[Signature]:
        """Everything of a name."""
        own = self._operators() if operators else self._routines()
        return [*_builtin(operators).get(name, ()), *(s for s in own if s.name == name)]

    def find(self, operators: bool, oid: int) -> Signature | None:
        """The function or operator with an oid."""
        row = by_oid("pg_operator" if operators else "pg_proc").get(oid)
        if row is not None:
            name = row["oprname" if operators else "proname"] or ""
            return next(s for s in _builtin(operators)[name] if s.oid == oid)
        own = self._operators() if operators else self._routines()
        return next((s for s in own if s.oid == oid), None)

    def visible(self, operators: bool, oid: int) -> bool | None:
        """Whether the search path finds it by its name and types; None if there is none."""
        found = self.find(operators, oid)
        return None if found is None else self._visible(operators, found)

    def _visible(self, operators: bool, found: Signature) -> bool:
        if found.schema == self._state.path.places[0] == _SYSTEM:
            return True
        same = {s.schema for s in self._known(operators, found.name) if s.args == found.args}
        return next((p for p in self._state.path.places if p in same), None) == found.schema

    def name_of(self, operators: bool, oid: int) -> str:
        """The text of a regproc or regoper."""
        found = self.find(operators, oid)
        if found is None:
            return str(oid)
        name = found.name if operators else quoted(found.name)
        places = self._state.path.places
        alone = [s for s in self._known(operators, found.name) if s.schema in places] == [found]
        return name if alone else f"{quoted(found.schema)}.{name}"

    def text_of(self, operators: bool, oid: int) -> str:
        """The text of a regprocedure or regoperator."""
        found = self.find(operators, oid)
        if found is None:
            return str(oid)
        name = found.name if operators else quoted(found.name)
        place = "" if self._visible(operators, found) else f"{quoted(found.schema)}."
        return f"{place}{name}({','.join(self._type_name(a) if a else 'NONE' for a in found.args)})"

    def by_name(self, operators: bool, text: str) -> int:
        """The only one of a name. Raises 42883, 42725."""
        what = "operator" if operators else "function"
        schema, name = _split(operators, text)
        places = self._state.path.places if schema is None else (schema,)
        found = [s.oid for s in self._known(operators, name) if s.schema in places]
        if not found:
            raise SqlError("42883", f"operator does not exist: {text}" if operators else _absent(text))
        if len(found) > 1:
            shown = text if operators else f'"{text}"'
            raise SqlError("42725", f"more than one {what} named {shown}")
        return found[0]

    def by_text(self, operators: bool, text: str) -> int:
        """The one of a name and argument types. Raises 22P02, 42883, 42704."""
        head, opened, rest = text.partition("(")
        if not opened:
            raise SqlError("22P02", "expected a left parenthesis")
        inside, closed, after = rest.rpartition(")")
        if not closed or after.strip():
            raise SqlError("22P02", "expected a right parenthesis")
        schema, name = _split(operators, head.strip())
        parts = [part.strip() for part in _parts(inside)]
        args = tuple(0 if operators and part.lower() == "none" else self._type_oid(part) for part in parts)
        places = self._state.path.places if schema is None else (schema,)
        same = {s.schema: s.oid for s in self._known(operators, name) if s.args == args}
        for place in places:
            if place in same:
                return same[place]
        raise SqlError("42883", f"operator does not exist: {text}" if operators else _absent(text))


def _absent(text: str) -> str:
    return f'function "{text}" does not exist'


def _split(operators: bool, text: str) -> tuple[str | None, str]:
    """The schema and the name."""
    if not operators:
        return split_name(text)
    schema, dot, symbol = text.rpartition(".")
    return (split_name(schema)[1] if dot else None), symbol


def _parts(text: str) -> Iterator[str]:
    """What commas outside parentheses and quotes separate."""
    part, depth, inside = "", 0, False
    for letter in text:
        inside ^= letter == '"'
        depth += 0 if inside else (letter == "(") - (letter == ")")
        if letter == "," and not depth and not inside:
            yield part
            part = ""
        else:
            part += letter
    if part.strip():
        yield part


def _of_routine(relation: Relation, routine: Routine) -> Signature:
    return Signature(relation.oid, relation.schema_name, routine.name, tuple(map(argument_oid, routine.types)))


def _of_operator(relation: Relation, operator: Operator) -> Signature:
    left = 0 if operator.left is None else argument_oid(operator.left)
    return Signature(relation.oid, relation.schema_name, operator.symbol, (left, argument_oid(operator.right)))


@cache
def _builtin(operators: bool) -> dict[str, list[Signature]]:
    """The built-in ones by name."""
    known: dict[str, list[Signature]] = {}
    args: tuple[int, ...]
    for oid, row in by_oid("pg_operator" if operators else "pg_proc").items():
        if operators:
            name, args = row["oprname"], (int(row["oprleft"] or 0), int(row["oprright"] or 0))
        else:
            name, args = row["proname"], numbers(row["proargtypes"])
        known.setdefault(name or "", []).append(Signature(oid, _SYSTEM, name or "", args))
    return known
