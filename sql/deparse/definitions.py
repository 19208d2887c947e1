"""The text of expressions that the catalog keeps: checks, defaults, keys and predicates of indexes, conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ivm.words import SqlType
from planner.expr.scalar import Column
from sql.bind.entry_points import environment_of
from sql.bind.environment import Environment
from sql.bind.namespace import Namespace, Visible, one_table
from sql.bind.notes import Notes
from sql.bind.row_security import meaning
from sql.bind.scope import NameScope
from sql.bind.triggers import changed_rows
from sql.catalog.catalog import CatalogReader, Relation, TableColumn
from sql.catalog.policies import Guard
from sql.catalog.search_path import Pinned
from sql.deparse.context import Context, inner_names
from sql.deparse.names import Names
from sql.deparse.queries import QueryWriter
from sql.deparse.tree import FunctionCall, Phrase, Shown
from sql.deparse.writer import Writer
from sql.parse import parse_expression

_CLAUSE = "an expression"


class Definitions:
    """Writes the expressions of one table, or those over no table. ``pretty``: as in ``view_query``."""

    def __init__(
        self, names: Names, columns: Sequence[TableColumn] = (), table: str = "", *, pretty: bool = False
    ) -> None:  # fmt: skip
        visible = tuple(Visible(c.name, Column(i, c.type, c.nullable)) for i, c in enumerate(columns))
        self._names = names
        self._reader: CatalogReader = names.reader
        self._table = ""
        self._scope = Namespace() if not columns else one_table(table, visible)
        self._pretty = pretty
        self._is_value = False
        self._qualified = False

    @classmethod
    def of_domain(cls, names: Names, domain: Relation, *, pretty: bool = False) -> Definitions:
        """For the checks of a domain, over its value."""
        made = cls(names, domain.columns, domain.name, pretty=pretty)
        made._is_value = True
        return made

    @classmethod
    def of_trigger(cls, names: Names, table: Relation, *, pretty: bool) -> Definitions:
        """For the condition of a trigger, over its old and new row."""
        made = cls(names, pretty=pretty)
        made._scope = changed_rows(table)
        made._qualified = True
        return made

    @classmethod
    def of_policy(cls, names: Names, table: Relation, guard: Guard) -> Definitions:
        """For a condition of a policy, whose names mean what they meant when it was made."""
        made = cls(names, table.columns, table.name)
        made._reader = Pinned(names.reader, meaning(table, guard))
        made._table = table.name
        return made

    def text(self, stored: str, wanted: SqlType | None = None) -> str:
        """An expression by its stored text. ``wanted``: the type that it is assigned to."""
        shown, writer = self._shown(stored, wanted)
        return writer.exprs.text(shown)

    def key(self, stored: str) -> str:
        """The same for a part of a key: what is no call is in parentheses."""
        shown, writer = self._shown(stored, None)
        called = isinstance(shown, FunctionCall | Phrase)
        text = writer.exprs.text(shown)
        return text if called else f"({text})"

    def _shown(self, stored: str, wanted: SqlType | None) -> tuple[Shown, QueryWriter]:
        notes = Notes()
        env: Environment = replace(environment_of(self._reader), notes=notes)
        node = parse_expression(stored)
        env.binder(NameScope(self._scope, clause=_CLAUSE), _CLAUSE).bind(node)
        outer = self._table, frozenset(inner_names(node)) if self._table else frozenset()
        context = Context(notes, self._names, qualified=self._qualified, is_value=self._is_value, outer=outer)
        writer = QueryWriter(context, Writer(pretty=self._pretty))
        return writer.reader.coerced(node, wanted), writer
