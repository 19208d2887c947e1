"""CREATE, ALTER and DROP SCHEMA."""

from __future__ import annotations

from abc import abstractmethod

from ivm.errors import SqlError
from sql.statements import definitions
from sql.syntax.nodes.statements import Statement, Utility
from sql.syntax.utility.copy import CopyGrammar
from sql.syntax.utility.role_names import role_spec
from sql.syntax.utility.schema_elements import schema_elements


class SchemaGrammar(CopyGrammar):
    """Statements about schemas."""

    @abstractmethod
    def statement(self) -> Statement:
        """The statement that starts here."""

    def starts_schema(self) -> bool:
        """Whether CREATE, ALTER or DROP SCHEMA is next."""
        return any(self.is_word(verb, "schema") for verb in ("create", "alter", "drop"))

    def schema_statement(self) -> Utility:
        """CREATE, ALTER or DROP SCHEMA."""
        verb = self.advance().value
        self.advance()
        if verb == "alter":
            return Utility(self._alter_schema())
        return Utility(self._create_schema() if verb == "create" else self._drop_schema())

    def _alter_schema(self) -> definitions.AlterSchema:
        name = self.name()
        if self.accept("rename", "to"):
            return definitions.AlterSchema(name, self.name())
        self.expect("owner", "to")
        return definitions.AlterSchema(name, owner=role_spec(self))

    def _create_schema(self) -> definitions.CreateSchema:
        if_not_exists = self.accept("if", "not", "exists")
        name = None if self.is_word("authorization") else self.name()
        owner = role_spec(self) if self.accept("authorization") else None
        if if_not_exists and self.is_one_of("create", "grant"):
            what = "CREATE SCHEMA IF NOT EXISTS cannot include schema elements"
            raise SqlError("0A000", what, position=self.token.start + 1)
        elements = schema_elements(self, self.statement)
        return definitions.CreateSchema(name, owner, if_not_exists, elements)

    def _drop_schema(self) -> definitions.DropSchema:
        if_exists = self.accept("if", "exists")
        return definitions.DropSchema(self.listed(self.name), if_exists, self.cascade())
