"""SUBSCRIBE."""

from __future__ import annotations

from dataclasses import replace

from sql.bind.environment import Environment
from sql.bind.query import bind_stored, epoch_expression
from sql.statements.statements import Subscribe
from sql.syntax.nodes import queries as nodes
from sql.syntax.nodes import statements as nodes_statements


def subscribe(env: Environment, tree: nodes_statements.SubscribeStatement) -> Subscribe:
    """SUBSCRIBE to a relation (as ``SELECT * FROM`` it) or a query."""
    source = tree.source
    if isinstance(source, nodes.TableName):
        star = nodes.Target(nodes.Star((), source.at), None, source.at)
        select = nodes.Select((star,), (source,), None, None, None, None, source.at)
        source = nodes.Query(select, source.at)
    asking = None if env.asking is None else env.asking.maintained()
    query = bind_stored(replace(env, asking=asking), source)
    as_of = None if tree.as_of is None else epoch_expression(env, tree.as_of, "AS OF")
    up_to = None if tree.up_to is None else epoch_expression(env, tree.up_to, "UP TO")
    return Subscribe(query, tree.snapshot, tree.progress, as_of, up_to)
