"""Statements: syntax → ``sql.statements.statements``, with names, types and parameters resolved."""

from __future__ import annotations

from typing import assert_never

from ivm.errors import SqlError, too_deep, unsupported
from ivm.words import SqlType
from sql.bind import alter, copying, ddl, dml, routines, user_aggregates, vectors
from sql.bind.constraints import create_index
from sql.bind.environment import Environment, Parameters
from sql.bind.expression import Binder
from sql.bind.from_clause import lookup
from sql.bind.query import bind_stored, bind_top, moment_expression
from sql.bind.rows import MarkerNeeded
from sql.bind.scope import OidNeeded, Scope
from sql.catalog.catalog import CatalogReader, Relation, RelationKind
from sql.parse import StatementText, moved, parse
from sql.statements import queries
from sql.statements import statements as bound
from sql.statements.subqueries import reads_subqueries
from sql.syntax import nodes, nodes_alter, nodes_routines, nodes_statements
from sql.syntax.nodes_constraints import CreateIndexStatement


def bind_statement(
    text: StatementText | str, catalog: CatalogReader, parameter_types: tuple[SqlType | None, ...] = ()
) -> bound.BoundStatement:
    """One statement bound against the catalog.

    ``parameter_types``: what the client declared for $1, $2, …; the others are inferred, text as a last resort.
    Errors point into the whole query string (by the statement's offset).
    """
    if isinstance(text, str):
        text = StatementText(text)
    return bind_tree(parse(text), text, catalog, parameter_types)


def bind_tree(
    tree: nodes_statements.Statement,
    text: StatementText,
    catalog: CatalogReader,
    parameter_types: tuple[SqlType | None, ...] = (),
) -> bound.BoundStatement:
    """The same for a statement that is parsed already (trees may be kept and bound again)."""
    marked: frozenset[str] = frozenset()
    oids = False
    try:
        while True:
            parameters = Parameters(parameter_types)
            env = Environment(catalog, parameters, marked=marked, top=_own_with(tree), oids=oids)
            try:
                statement = _with_changes(env, _statement(env, tree))
                break
            except MarkerNeeded as needed:
                marked |= {needed.alias}
            except OidNeeded:
                oids = True
    except SqlError as error:
        raise moved(error, text.offset) from None
    except RecursionError:
        raise too_deep() from None
    return bound.BoundStatement(statement, env.parameters.finished())


def _own_with(tree: nodes_statements.Statement) -> nodes.With | None:
    changing = nodes.Query | nodes.InsertStatement | nodes.UpdateStatement | nodes.DeleteStatement
    return tree.with_ if isinstance(tree, changing) else None


def _with_changes(env: Environment, statement: bound.Statement) -> bound.Statement:
    """The statement after the data-modifying ones in its WITH, if there are any or it reads beside its source."""
    alone = isinstance(statement, bound.Insert | bound.Update | bound.Delete) and reads_subqueries(statement)
    if not env.changes and not alone:
        return statement
    assert isinstance(statement, queries.Query | bound.Insert | bound.Update | bound.Delete), "it has a WITH"
    if isinstance(statement, queries.Query) and statement.as_of is not None:
        raise unsupported("AS OF with data-modifying statements in WITH")
    return bound.Compound(tuple(env.changes), statement)


def _statement(env: Environment, tree: nodes_statements.Statement) -> bound.Statement:
    match tree:
        case nodes.Query():
            return vectors.shown(bind_top(env, tree))
        case nodes.InsertStatement():
            return dml.insert(env, tree)
        case nodes.UpdateStatement():
            return dml.update(env, tree)
        case nodes.DeleteStatement():
            return dml.delete(env, tree)
        case nodes_statements.CreateTableStatement():
            return ddl.create_table(env, tree)
        case nodes_statements.CreateViewStatement():
            return ddl.create_view(env, tree)
        case CreateIndexStatement():
            return create_index(env, tree)
        case nodes_statements.DropStatement():
            return ddl.drop(tree)
        case nodes_routines.CreateFunctionStatement():
            return user_aggregates.create(env, tree) if tree.aggregate else routines.create(env, tree)
        case nodes_routines.DropFunctionStatement():
            return routines.drop(env, tree)
        case nodes_alter.AlterTableStatement():
            return alter.alter_table(env, tree)
        case nodes_statements.TruncateStatement():
            named = [(name, dml.target(env, name, "truncate")) for name in tree.names]
            tables = {t.id: t for n, r in named for t in (r, *(() if n.only else env.catalog.below(r)))}
            return bound.Truncate(tuple(tables.values()), tree.restart, tree.cascade)
        case nodes_statements.CopyStatement():
            return copying.copy(env, tree)
        case nodes_statements.CreateFromStatement():
            return copying.create_from(env, tree)
        case nodes_statements.SubscribeStatement():
            return subscribe(env, tree)
        case nodes_statements.ExplainStatement():
            return bound.Explain(_statement(env, tree.statement), tree.stage)
        case nodes_statements.VerifyStatement():
            return bound.Verify(_materialized(env, tree.table))
        case nodes_statements.RefreshStatement():
            _materialized(env, tree.table)
            notice = "materialized views are always up to date; REFRESH does nothing"
            return bound.NoOperation("REFRESH MATERIALIZED VIEW", notice)
        case nodes_statements.PrepareStatement():
            return bound.Prepare(tree.name, tuple(env.type(t) for t in tree.types), tree.text)
        case nodes_statements.ExecuteStatement():
            binder = Binder(env, Scope(clause="EXECUTE"), "EXECUTE parameters")
            return bound.Execute(tree.name, tuple(binder.bind(a) for a in tree.arguments))
        case nodes_statements.DeclareStatement():
            return _declare(env, tree)
        case nodes_statements.Utility():
            return tree.statement  # type: ignore[return-value]
        case _:
            assert_never(tree)


def _materialized(env: Environment, name: nodes.TableName) -> Relation:
    """The materialized view of this name. 42809: it is something else."""
    relation = lookup(env, name)
    if relation.kind is not RelationKind.MATERIALIZED_VIEW:
        message = f'"{relation.name}" is not a materialized view'
        raise SqlError("42809", message, position=name.at + 1)
    return relation


def subscribe(env: Environment, tree: nodes_statements.SubscribeStatement) -> bound.Subscribe:
    """SUBSCRIBE to a relation (as ``SELECT * FROM`` it) or a query."""
    source = tree.source
    if isinstance(source, nodes.TableName):
        star = nodes.Target(nodes.Star((), source.at), None, source.at)
        select = nodes.Select((star,), (source,), None, None, None, None, source.at)
        source = nodes.Query(select, source.at)
    query = bind_stored(env, source)
    as_of = None if tree.as_of is None else moment_expression(env, tree.as_of, "AS OF")
    up_to = None if tree.up_to is None else moment_expression(env, tree.up_to, "UP TO")
    return bound.Subscribe(query, tree.snapshot, tree.progress, as_of, up_to)


def _declare(env: Environment, tree: nodes_statements.DeclareStatement) -> bound.Declare:
    if isinstance(tree.statement, nodes_statements.SubscribeStatement):
        if tree.hold:
            raise unsupported("WITH HOLD for a subscription")
        return bound.Declare(tree.name, subscribe(env, tree.statement), False, tree.scroll)
    if ddl.changes_data(tree.statement):
        raise SqlError("0A000", "DECLARE CURSOR must not contain data-modifying statements in WITH")
    return bound.Declare(tree.name, bind_top(env, tree.statement), tree.hold, tree.scroll)
