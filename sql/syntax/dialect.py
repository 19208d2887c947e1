"""Our SQL as a dialect of sqlglot, through its public API: ``Parser.parse`` and the table ``STATEMENT_PARSERS``.

sqlglot looks up a statement's parser by its first token. The parsers in the table are grammars of ours, which build our
syntax tree (docs/decisions/0001-parser.md says why).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

import sqlglot.parser
from sqlglot import exp
from sqlglot.dialects.postgres import Postgres

from ivm.errors import unsupported
from sql.syntax.nodes.statements import Statement

if not str(sqlglot.parser.__file__).endswith(".py"):
    raise ImportError("freshet needs the plain sqlglot: the compiled parser (sqlglotc) cannot be subclassed; remove it")


class Grammars(Protocol):
    """What the table needs of the grammars, which are built on this module. They stand at a statement's first token."""

    def preparable(self) -> Statement:
        """A query, INSERT, UPDATE, DELETE or MERGE."""

    def definition(self) -> Statement:
        """CREATE, ALTER, DROP or TRUNCATE."""

    def utility(self) -> Statement:
        """Any other statement."""


GrammarEntry = Callable[[Grammars], Statement]

_ENTRIES: Final[dict[str, GrammarEntry]] = {
    **dict.fromkeys(
        ("select", "values", "table", "with", "(", "insert", "update", "delete", "merge"),
        lambda grammars: grammars.preparable(),
    ),
    **dict.fromkeys(("create", "alter", "drop", "truncate"), lambda grammars: grammars.definition()),
    "call": lambda grammars: grammars.utility(),
}
"""By a statement's first word. CALL, which sqlglot keeps as a bare command, stands for all other words."""
_TOKENS: Final = {word: Postgres().tokenize(word) for word in _ENTRIES}


def _parser(entry: GrammarEntry) -> Callable[[Any], exp.Expr]:
    """An entry of ``STATEMENT_PARSERS``: our tree, in the node that sqlglot has for statements it does not parse."""
    return lambda parser: exp.Command(this="", expression=entry(parser.grammars))


class StatementParser(Postgres.Parser):  # type: ignore[misc, valid-type]
    """sqlglot's parser with our grammars in its table of statements."""

    STATEMENT_PARSERS = {  # noqa: RUF012
        tokens[0].token_type: _parser(_ENTRIES[word]) for word, tokens in _TOKENS.items()
    }

    grammars: Grammars


class Freshet(Postgres):
    """PostgreSQL's dialect with our statements."""

    Parser = StatementParser


_DIALECT: Final = Freshet()


def statement(grammars: Grammars, word: str) -> Statement:
    """The statement whose first token is this keyword or symbol, "" for anything else."""
    parser = StatementParser(dialect=_DIALECT)
    parser.grammars = grammars
    (node,) = parser.parse(_TOKENS.get(word, _TOKENS["call"]), word)
    assert node is not None
    return tree(node)


def tree(node: exp.Expr) -> Statement:
    """Our tree inside a node. Raises 0A000 for a node that sqlglot made by itself."""
    if not isinstance(node, exp.Command) or node.this:
        raise unsupported(type(node).__name__)
    found: Statement = node.args["expression"]
    return found
