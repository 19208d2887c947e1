"""Names as they are shown: qualified where the reader's search path does not find them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ivm.words import Kind, SqlType
from planner.identifiers import quoted
from sql.catalog.catalog import Relation
from sql.catalog.search_path import SearchPathReader
from sql.catalog.user_types import type_of_oid
from storage.types.text_style import DEFAULT_STYLE, TextStyle
from storage.types.type_names import format_type


@dataclass(frozen=True, slots=True)
class Names:
    """``style``: in which constants are shown."""

    reader: SearchPathReader
    style: TextStyle = DEFAULT_STYLE

    def relation(self, relation: Relation) -> str:
        """A relation's name, qualified if necessary."""
        return self.reader.shown(self.current(relation))

    def current(self, relation: Relation) -> Relation:
        """A relation as the catalog has it, with its present names."""
        return self.reader.by_id(relation.id) or relation

    def type(self, type_: SqlType, *, modifier: bool = True) -> str:
        """A type's name, with its modifiers."""
        if type_.domain is not None:
            return self.domain(type_.domain)
        if type_.element is not None:
            return f"{self.type(type_.element, modifier=modifier)}[]"
        text = format_type(type_, modifier)
        if type_.kind is Kind.BIT and type_.precision is None:
            return '"bit"'  # bit alone is bit(1)
        named = type_.enum or type_.named
        known = None if named is None else type_of_oid(self.reader.catalog.relations.values(), named.oid)
        if named is None or known is None:
            return text
        found = self.reader.type(None, named.name)
        return text if found is not None and found.id == known[0].id else f"{quoted(known[0].schema_name)}.{text}"

    def domain(self, domain: Relation) -> str:
        """A domain's name, qualified if necessary."""
        current = self.current(domain)
        found = self.reader.type(None, current.name)
        visible = found is not None and found.id == current.id
        return quoted(current.name) if visible else f"{quoted(current.schema_name)}.{quoted(current.name)}"

    def operator(self, operator: Relation) -> str:
        """A user's operator, as OPERATOR(schema.op) if the search path does not find it."""
        current = self.current(operator)
        assert current.operator is not None, "an operator"
        symbol = current.operator.symbol
        known = self.reader.operators(None, symbol)
        visible = any(r.id == current.id for found in known for r in found)
        return symbol if visible else f"OPERATOR({quoted(current.schema_name)}.{symbol})"

    def routine(self, routine: Relation) -> str:
        """A routine's name, qualified if the search path does not find it."""
        current = self.current(routine)
        assert current.routine is not None, "a routine"
        name = quoted(current.routine.name)
        visible = any(r.id == current.id for r in self.reader.routines(None, current.routine.name))
        return name if visible else f"{quoted(current.schema_name)}.{name}"


def bare(type_: SqlType) -> SqlType:
    """The type without its modifiers, an interval's fields too."""
    plain = type_.plain
    return plain if plain.scale is None else replace(plain, scale=None)
