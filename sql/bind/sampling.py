"""TABLESAMPLE: a part of a table's rows, drawn by the number of each row in the table's order.

BERNOULLI draws rows, SYSTEM blocks of ``BLOCK`` rows. With REPEATABLE and an unchanged table the sample is the same.
"""

from __future__ import annotations

from typing import Final

from ivm.errors import SqlError
from ivm.words import BOOL, FLOAT4, FLOAT8, INT8
from planner.expr.functions.internal.sampling import SAMPLED, SAMPLED_ANEW
from planner.expr.scalar import Call, Column, Literal, Scalar
from planner.logical.nodes import Filter, Numbering, Project, Rel, TopK, schema
from planner.logical.traversal import own_columns
from sql.bind.coerce import cast
from sql.bind.environment import Environment
from sql.bind.expression import ExpressionBinder
from sql.bind.scope import NameScope
from sql.catalog.catalog import Relation, RelationKind
from sql.syntax.nodes import queries as nodes

BLOCK: Final = 64
_METHODS: Final = ("bernoulli", "system")
_TABLES: Final = (RelationKind.TABLE, RelationKind.MATERIALIZED_VIEW)


def check_sampled(relation: Relation | None, at: int) -> None:
    """Raises 0A000 for anything but a table or a materialized view."""
    if relation is None or relation.kind not in _TABLES:
        message = "TABLESAMPLE clause can only be applied to tables and materialized views"
        raise SqlError("0A000", message, position=at + 1)


def sampled(env: Environment, rel: Rel, sample: nodes.Sample, outer: NameScope | None) -> Rel:
    """The rows that a TABLESAMPLE keeps. Raises 42704, 2202H."""
    if sample.method[-1] not in _METHODS:
        message = f"tablesample method {'.'.join(sample.method)} does not exist"
        raise SqlError("42704", message, position=sample.at + 1)
    if len(sample.args) != 1:
        message = f"tablesample method {sample.method[-1]} requires 1 argument, not {len(sample.args)}"
        raise SqlError("2202H", message, position=sample.at + 1)
    binder = ExpressionBinder(env, NameScope(parent=outer, clause="TABLESAMPLE"), "TABLESAMPLE")
    columns = schema(rel)
    number: Scalar = Column(len(columns), INT8, False)
    if sample.method[-1] == "system":
        before = Call("-(int8,int8)", (number, Literal(1, INT8)), INT8, False)
        number = Call("/(int8,int8)", (before, Literal(BLOCK, INT8)), INT8, False)
    share = cast(env, binder.bind(sample.args[0]), FLOAT4, "implicit", sample.args[0].at)
    args = (number, cast(env, share, FLOAT8, "implicit", sample.at))
    if sample.seed is None:
        keep = Call(SAMPLED_ANEW, args, BOOL, False)
    else:
        keep = Call(
            SAMPLED, (*args, cast(env, binder.bind(sample.seed), FLOAT8, "implicit", sample.seed.at)), BOOL, False
        )
    numbered = TopK(rel, (), (), None, None, (Numbering.ROW_NUMBER,))
    return Project(Filter(numbered, keep), own_columns(columns))
