"""The SQL that this server reads, as a dialect of sqlglot: PostgreSQL's, with our rules in sqlglot's parser.

The compiled sqlglot cannot be subclassed, so it is refused when this is imported.
"""

from __future__ import annotations

from typing import Final

import sqlglot.parser
from sqlglot.dialects.postgres import Postgres

from sql.syntax.rules.data import DataRules

if not str(sqlglot.parser.__file__).endswith(".py"):
    raise ImportError("freshet needs the plain sqlglot: the compiled parser (sqlglotc) cannot be subclassed; remove it")


class Freshet(Postgres):
    """Subscripts count as written, and DEFAULT may stand in VALUES."""

    INDEX_OFFSET = 0
    SUPPORTS_VALUES_DEFAULT = True

    Parser = DataRules


_DIALECT: Final = Freshet()


def parser() -> DataRules:
    """A parser, which stands nowhere yet."""
    return DataRules(dialect=_DIALECT)
