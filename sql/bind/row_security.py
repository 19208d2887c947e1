"""Row-level security: the conditions that policies put on the rows that a role reads and writes.

They are bound with the statement, as what their names meant when the policy was made, and are applied before anything
that the statement itself says of the rows (PostgreSQL's get_row_security_policies). No condition of a statement is
evaluated with an error for a row that a policy hides: a false condition below it, or beside it, is stronger.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import reduce
from typing import Final

from ivm.errors import SqlError
from ivm.words import BOOL
from planner.expr.scalar import Column, Literal, Or, Scalar
from planner.logical.nodes import Filter, Rel
from sql.bind.environment import Environment, Parameters
from sql.bind.namespace import Namespace, Range, Visible
from sql.bind.scope import NameScope
from sql.bind.uses import Use
from sql.catalog.catalog import Relation, RelationKind
from sql.catalog.policies import Guard, Policy
from sql.catalog.search_path import pinned
from sql.catalog.securables import restricted
from sql.parse import parse_expression
from sql.statements.statements import ViewLayer
from sql.syntax.nodes import queries as nodes

CLAUSE: Final = "policy expressions"


def restricts(env: Environment, table: Relation, use: Use | None) -> bool:
    """Whether policies decide what this use of a table sees."""
    return use is not None and env.asking is not None and restricted(env.asking.access, use.role, table)


def readable(env: Environment, table: Relation, rel: Rel, use: Use | None, commands: str = "r") -> Rel:
    """The rows that policies for these commands show; ``rel`` begins with the table's columns."""
    if not restricts(env, table, use):
        return rel
    assert use is not None
    for command in commands:
        permissive, restrictive = _conditions(env, table, use, command, new=False)
        for condition in (*restrictive, permissive):
            rel = Filter(rel, condition[1])
    return rel


def row_checks(
    env: Environment, table: Relation, use: Use | None, command: str, *, reads: bool
) -> tuple[ViewLayer, ...]:
    """What new rows must meet, as layers without columns. ``reads``: the statement reads the new rows too."""
    if not restricts(env, table, use):
        return ()
    assert use is not None
    found = [_conditions(env, table, use, command, new=True)]
    if reads:
        found.append(_conditions(env, table, use, "r", new=False))
    return tuple(
        ViewLayer(table, (), (), condition, True, _violated(table, policy))
        for permissive, restrictive in found
        for policy, condition in (permissive, *restrictive)
    )


def present_checks(
    env: Environment, table: Relation, use: Use | None, commands: str, row: str
) -> tuple[ViewLayer, ...]:
    """What rows that are there must meet, where an error says that they do not: a ``row`` as it calls them."""
    if not restricts(env, table, use):
        return ()
    assert use is not None
    found = [_conditions(env, table, use, command, new=False) for command in commands]
    return tuple(
        ViewLayer(table, (), (), condition, True, _violated(table, policy, row, " (USING expression)"))
        for permissive, restrictive in found
        for policy, condition in (permissive, *restrictive)
    )


def refuse_restricted(env: Environment, table: Relation, use: Use | None, message: str, hint: str) -> None:
    """0A000 where policies apply, for whoever has the privileges."""
    if restricts(env, table, use):
        assert env.asking is not None
        env.asking.secured.append(table)
        env.asking.refusals.append(SqlError("0A000", message, hint=hint))


def reads(tree: object) -> bool:
    """Whether a part of a statement's tree may name a column."""
    if isinstance(tree, nodes.Name | nodes.Star | nodes.Query):
        return True
    if isinstance(tree, tuple | list):
        return any(map(reads, tree))
    return is_dataclass(tree) and any(reads(getattr(tree, f.name)) for f in fields(tree))


def _violated(table: Relation, policy: Policy | None, row: str = "new row", which: str = "") -> SqlError:
    named = "policy" if policy is None else f'policy "{policy.name}"'
    return SqlError("42501", f'{row} violates row-level security {named}{which} for table "{table.name}"')


_Condition = tuple[Policy | None, Scalar]


def _conditions(
    env: Environment, table: Relation, use: Use, command: str, *, new: bool
) -> tuple[_Condition, tuple[_Condition, ...]]:
    """The permissive policies for a command, one of which must hold, and the restrictive ones, which all must."""
    assert env.asking is not None
    env.asking.secured.append(table)
    roles = env.asking.access.inherited(use.role)
    own = [
        p for p in table.security.policies
        if p.command in ("*", command) and (0 in p.roles or not roles.isdisjoint(p.roles))
    ]  # fmt: skip
    guards = ((p, p.check if new and p.check is not None else p.using) for p in own)
    env.asking.applied.append((table.oid, command, tuple((p.id, p.permissive, g.text) for p, g in guards if g)))
    bound = list(_bound(env, table, use, own, new=new))
    permissive = [condition for policy, condition in bound if policy.permissive]
    anything = reduce(lambda a, b: Or((a, b)), permissive) if permissive else Literal(False, BOOL)
    restrictive = sorted((p.name, i) for i, (p, _) in enumerate(bound) if not p.permissive)
    return (None, anything), tuple(bound[i] for _, i in restrictive)


def _bound(
    env: Environment, table: Relation, use: Use, policies: Sequence[Policy], *, new: bool
) -> Iterator[tuple[Policy, Scalar]]:
    for policy in policies:
        guard = policy.check if new and policy.check is not None else policy.using
        if guard is not None:
            yield policy, bound_guard(env, table, use, guard)


def bound_guard(env: Environment, table: Relation, use: Use | None, guard: Guard) -> Scalar:
    """A policy's condition over the table's columns. Raises 42P17, and whatever has become wrong with it since."""
    if ~table.id in env.views:
        message = f'infinite recursion detected in policy for relation "{table.name}"'
        raise SqlError("42P17", message)
    asking = env.asking if env.asking is None or use is None else replace(env.asking, role=use.role, in_policy=True)
    own = replace(
        env, catalog=pinned(env.catalog, meaning(table, guard)), ctes={}, parameters=Parameters(),
        views=(*env.views, ~table.id), marked=frozenset(), oids=False, notes=None, asking=asking, top=None,
        locked=frozenset(),
    )  # fmt: skip
    try:
        # a view may know the columns by their old names
        present = None if use is None else env.catalog.by_id(table.id)
        return over_columns(own, present or table, parse_expression(guard.text))
    except SqlError as error:
        raise replace(error, position=None) from None


def meaning(table: Relation, guard: Guard) -> Relation:
    """What stands for a condition where names are looked up as they were when it was made."""
    return Relation(
        -1, table.schema_name, table.name, RelationKind.VIEW, (), references=guard.references,
        dependencies=guard.dependencies,
    )  # fmt: skip


def over_columns(env: Environment, table: Relation, expr: nodes.Expr) -> Scalar:
    """A condition over the columns of a table. Raises 42803 and 42P20 for aggregates and windows, 0A000 for
    set-returning functions."""
    visible = tuple(Visible(c.name, Column(i, c.type, c.nullable)) for i, c in enumerate(table.columns))
    names = Namespace(visible, (Range(table.name, visible, table.schema_name),))
    return env.binder(NameScope(names, clause=CLAUSE), CLAUSE).condition(expr, "POLICY")
