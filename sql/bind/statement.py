"""Binding: a parsed statement becomes one of ``sql.statements``, its names, types and parameters resolved.

The modules of this folder import downwards only; import-linter holds the order. From the bottom up:

- ``namespace``, ``scope``: what names mean; ``bound_query``: what a bound query is
- ``environment``: what binding a statement carries along, the ``Binder`` protocol, and the way back up
- ``coerce``, ``overloads``, ``subquery``, ``rows``, ``target``: casts, overload resolution, nested queries, row values
- ``operators``, ``routines``, ``aggregates``, ``windows``, ``comparisons``, …: the kinds of expressions; ``calls``:
  which function a name means; ``expression``: the dispatch on syntax nodes
- ``from_clause`` over ``joins``; ``selection`` over ``grouping``; ``setops``; ``cte``; ``query``
- ``dml``, ``subscribe``; then ``entry_points``, which ties the knot; then definitions (``ddl``, ``alter``, …) and COPY
- this module

What SQL's grammar makes recursive (an expression holds a query, a query holds expressions; WITH holds statements that
change data) goes up through ``Environment.binder``, ``bind_query`` and ``bind_change``.
"""

from __future__ import annotations

from typing import Final, assert_never

from ivm.errors import SqlError, too_deep, unsupported
from ivm.words import SqlType
from sql.bind import (
    aggregate_definitions,
    alter,
    composite_types,
    copying,
    ddl,
    dml,
    domain_definitions,
    operator_definitions,
    procedures,
    routine_definitions,
    vectors,
)
from sql.bind.constraints import create_index
from sql.bind.entry_points import ENTRY_POINTS
from sql.bind.environment import CteBinding, Environment, Parameters
from sql.bind.expression import ExpressionBinder
from sql.bind.lookup import lookup
from sql.bind.notes import Notes
from sql.bind.policies import define_policy
from sql.bind.query import bind_top
from sql.bind.rows import MarkerNeeded
from sql.bind.scope import NameScope, OidNeeded
from sql.bind.subscribe import subscribe
from sql.bind.target import truncate_target
from sql.bind.triggers import create_trigger
from sql.bind.uses import Asking
from sql.bind.variables import Variables
from sql.bind.walk import has_subquery
from sql.catalog.catalog import CatalogReader, Relation, RelationKind
from sql.catalog.securables import object_name, securable
from sql.parse import StatementText, moved, parse
from sql.statements import queries
from sql.statements import statements as bound
from sql.statements.subqueries import reads_subqueries
from sql.syntax.nodes import alter as nodes_alter
from sql.syntax.nodes import domains as nodes_domains
from sql.syntax.nodes import operators as nodes_operators
from sql.syntax.nodes import queries as nodes
from sql.syntax.nodes import routines as nodes_routines
from sql.syntax.nodes import statements as nodes_statements
from sql.syntax.nodes import types as nodes_types
from sql.syntax.nodes.constraints import CreateIndexStatement
from sql.syntax.nodes.grants import GrantStatement
from sql.syntax.nodes.policies import AlterPolicyStatement, CreatePolicyStatement
from sql.syntax.nodes.triggers import CreateTriggerStatement

_LOCKED: Final = (RelationKind.TABLE, RelationKind.VIEW)
_LOCKING: Final = {"access share": "r", "row exclusive": "awdD"}
"""The privileges of which one lets a role lock a table in a mode; for the other modes UPDATE, DELETE or TRUNCATE."""


def bind_statement(
    text: StatementText | str, catalog: CatalogReader, parameter_types: tuple[SqlType | None, ...] = (),
    variables: Variables | None = None, asking: Asking | None = None,
) -> bound.BoundStatement:  # fmt: skip
    """Parses and binds one statement.

    ``parameter_types``: those that the client declared for $1, $2, …; the others are inferred, or else text.
    ``variables``: what names mean in a routine's statement, which has no other parameters than those declared.
    ``asking``: collects what the statement uses, and as whom.
    Positions in errors are relative to the whole query string. Raises SqlError.
    """
    if isinstance(text, str):
        text = StatementText(text)
    return bind_tree(parse(text), text, catalog, parameter_types, variables, asking=asking)


def bind_tree(
    tree: nodes_statements.Statement,
    text: StatementText,
    catalog: CatalogReader,
    parameter_types: tuple[SqlType | None, ...] = (),
    variables: Variables | None = None,
    notes: Notes | None = None,
    asking: Asking | None = None,
) -> bound.BoundStatement:
    """The same for a parsed statement; the tree may be bound again. ``notes`` get what is found out about its nodes."""
    marked: frozenset[str] = frozenset()
    oids = False
    try:
        while True:
            parameters = Parameters(parameter_types, variables)
            if asking is not None:
                asking.forget()
            env = Environment(
                catalog, parameters, ENTRY_POINTS, marked=marked, top=_own_with(tree), oids=oids, notes=notes,
                asking=asking,
            )  # fmt: skip
            if variables is not None and variables.tables:
                env = env.with_ctes({n: CteBinding(n, names, rel) for n, (names, rel) in variables.tables.items()})
            try:
                statement = _with_changes(env, _statement(env, tree))
                types = parameters.finished()
                break
            except MarkerNeeded as needed:
                marked |= {needed.alias}
            except OidNeeded:
                oids = True
    except SqlError as error:
        raise moved(error, text.offset) from None
    except RecursionError:
        raise too_deep() from None
    return bound.BoundStatement(statement, types, tuple(env.interpreted))


def _own_with(tree: nodes_statements.Statement) -> nodes.With | None:
    return tree.with_ if isinstance(tree, nodes.Preparable) else None


def _with_changes(env: Environment, statement: bound.Statement) -> bound.Statement:
    """The statement, as a ``Compound`` with the data-modifying statements of its WITH. An INSERT, UPDATE or DELETE with
    subqueries outside its source is a ``Compound`` too."""
    alone = isinstance(statement, bound.DataChange) and reads_subqueries(statement)
    if not env.changes and not alone:
        return statement
    assert isinstance(statement, queries.Query | bound.DataChange), "it has a WITH"
    if isinstance(statement, queries.Query) and statement.as_of is not None:
        raise unsupported("AS OF with data-modifying statements in WITH")
    return bound.Compound(tuple(env.changes), statement)


def _statement(env: Environment, tree: nodes_statements.Statement) -> bound.Statement:
    match tree:
        case nodes.Query():
            return vectors.shown(bind_top(env, tree))
        case nodes.InsertStatement() | nodes.UpdateStatement() | nodes.DeleteStatement() | nodes.MergeStatement():
            return dml.bind_change(env, tree)
        case nodes_statements.CreateTableStatement():
            return ddl.create_table(env, tree)
        case nodes_statements.CreateViewStatement():
            return ddl.create_view(env, tree)
        case CreateIndexStatement():
            return create_index(env, tree)
        case nodes_statements.DropStatement():
            return ddl.drop(tree)
        case nodes_routines.CreateFunctionStatement():
            aggregate = tree.kind == "aggregate"
            create = routine_definitions.create_aggregate if aggregate else routine_definitions.create_function
            return create(env, tree)
        case nodes_routines.AlterRoutineStatement():
            return routine_definitions.alter_routine(env, tree)
        case nodes_routines.CreateAggregateStatement():
            return aggregate_definitions.create_aggregate(env, tree)
        case nodes_routines.CallStatement():
            return procedures.call(env, tree)
        case nodes_routines.DropFunctionStatement():
            return routine_definitions.drop_function(env, tree)
        case nodes_routines.CommentStatement():
            operator = operator_definitions.commented(env, tree) if tree.kind == "operator" else None
            return routine_definitions.comment(env, tree, operator)
        case GrantStatement():
            return routine_definitions.grant(env, tree)
        case CreateTriggerStatement():
            return create_trigger(env, tree)
        case CreatePolicyStatement() | AlterPolicyStatement():
            return define_policy(env, tree)
        case nodes_operators.CreateOperatorStatement():
            return operator_definitions.create_operator(env, tree)
        case nodes_operators.AlterOperatorStatement():
            return operator_definitions.alter_operator(env, tree)
        case nodes_operators.DropOperatorStatement():
            return operator_definitions.drop_operator(env, tree)
        case nodes_types.CreateCompositeStatement():
            return composite_types.create_composite(env, tree)
        case nodes_domains.CreateDomainStatement():
            return domain_definitions.create_domain(env, tree)
        case nodes_domains.AlterDomainStatement():
            return domain_definitions.alter_domain(env, tree)
        case nodes_types.CreateRangeStatement():
            return composite_types.create_range(env, tree)
        case nodes_types.AlterCompositeStatement():
            return composite_types.alter_composite(env, tree)
        case nodes_alter.AlterTableStatement():
            return alter.alter_table(env, tree)
        case nodes_statements.TruncateStatement():
            return _truncate(env, tree)
        case nodes_statements.CopyStatement():
            return copying.copy(env, tree)
        case nodes_statements.CreateFromStatement():
            return copying.create_from(env, tree)
        case nodes_statements.SubscribeStatement():
            return subscribe(env, tree)
        case nodes_statements.ExplainStatement():
            return bound.Explain(_statement(env, tree.statement), tree.stage, tree.options)
        case nodes_statements.VerifyStatement():
            return bound.Verify(_materialized(env, tree.table))
        case nodes_statements.RefreshStatement():
            return _refresh(env, tree)
        case nodes_statements.LockStatement():
            return _lock(env, tree)
        case nodes_statements.PrepareStatement():
            return bound.Prepare(tree.name, tuple(env.type(t).unmodified for t in tree.types), tree.text)
        case nodes_statements.ExecuteStatement():
            return _execute(env, tree)
        case nodes_statements.DeclareStatement():
            return _declare(env, tree)
        case nodes_statements.Utility():
            return tree.statement  # type: ignore[return-value]
        case _:
            assert_never(tree)


def _execute(env: Environment, tree: nodes_statements.ExecuteStatement) -> bound.Execute:
    """EXECUTE. Raises 0A000."""
    binder = ExpressionBinder(env, NameScope(clause="EXECUTE"), "EXECUTE parameters")
    arguments = tuple(map(binder.bind, tree.arguments))
    for node, argument in zip(tree.arguments, arguments, strict=True):
        if has_subquery(argument):
            raise SqlError("0A000", "cannot use subquery in EXECUTE parameter", position=node.at + 1)
    return bound.Execute(tree.name, arguments)


def _refresh(env: Environment, tree: nodes_statements.RefreshStatement) -> bound.RefreshView:
    """REFRESH MATERIALIZED VIEW. Raises 42501 for another than the owner."""
    view = _materialized(env, tree.table)
    if env.asking is not None and not env.asking.access.owns(env.asking.caller, securable(view)):
        raise SqlError("42501", f"must be owner of {object_name(view)}")
    return bound.RefreshView(view)


def _lock(env: Environment, tree: nodes_statements.LockStatement) -> bound.Lock:
    """LOCK TABLE. Raises 42P01, 42809."""
    tables = tuple(lookup(env, name) for name in tree.names)
    for table in tables:
        if table.kind not in _LOCKED:
            raise SqlError("42809", f'cannot lock relation "{table.name}"')
        if env.asking is not None:
            env.asking.use(table).any_of = _LOCKING.get(tree.mode, "wdD")
    every = (
        t for name, r in zip(tree.names, tables, strict=True) for t in (r, *(() if name.only else env.catalog.below(r)))
    )
    return bound.Lock(tuple({t.id: t for t in every}.values()), tree.mode, tree.nowait)


def _truncate(env: Environment, tree: nodes_statements.TruncateStatement) -> bound.Truncate:
    """TRUNCATE of the named tables and, without ONLY, of those below them."""
    named = [(name, truncate_target(env, name)) for name in tree.names]
    if any(name.only and relation.partitioning is not None for name, relation in named):
        hint = "Do not specify the ONLY keyword, or use TRUNCATE ONLY on the partitions directly."
        raise SqlError("42809", "cannot truncate only a partitioned table", hint=hint)
    tables = {t.id: t for n, r in named for t in (r, *(() if n.only else env.catalog.below(r)))}
    return bound.Truncate(tuple(tables.values()), tree.restart, tree.cascade)


def _materialized(env: Environment, name: nodes.TableName) -> Relation:
    """The materialized view of this name. Raises 42P01, 42809."""
    relation = lookup(env, name)
    if relation.kind is not RelationKind.MATERIALIZED_VIEW:
        message = f'"{relation.name}" is not a materialized view'
        raise SqlError("42809", message, position=name.at + 1)
    return relation


def _declare(env: Environment, tree: nodes_statements.DeclareStatement) -> bound.Declare:
    if isinstance(tree.statement, nodes_statements.SubscribeStatement):
        if tree.hold:
            raise unsupported("WITH HOLD for a subscription")
        return bound.Declare(tree.name, subscribe(env, tree.statement), False, tree.scroll, tree.binary)
    if ddl.changes_data(tree.statement):
        raise SqlError("0A000", "DECLARE CURSOR must not contain data-modifying statements in WITH")
    return bound.Declare(tree.name, bind_top(env, tree.statement), tree.hold, tree.scroll, tree.binary)
