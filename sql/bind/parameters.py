"""Arguments by name (``silent => true``) for built-in functions."""

from __future__ import annotations

from dataclasses import replace

from ivm.words import Kind
from planner.expr.functions.parameters import PARAMETERS, REQUIRED, Default
from sql.bind.environment import Binder
from sql.bind.overloads import no_function
from sql.syntax.nodes import queries as nodes
from sql.syntax.nodes.constants import Param


def positional(b: Binder, name: str, node: nodes.Apply) -> nodes.Apply:
    """The call with its arguments in the order of the function's parameters. Raises 42883."""
    if not any(node.names):
        return node
    known = PARAMETERS.get(name, {})
    places = list(known)
    given = dict(zip(places, node.args, strict=False)) if len(places) >= len(node.args) else {}
    count = sum(n is None for n in node.names)
    by_place = {places[i]: given[places[i]] for i in range(count)} if given else {}
    by_name = {n: a for n, a in zip(node.names, node.args, strict=True) if n is not None}
    found = by_place | by_name
    last = max((places.index(n) for n in found if n in known), default=-1)
    wanted = places[: last + 1]
    if len(found) < len(node.args) or any(n not in found and known[n] is REQUIRED for n in wanted):
        raise no_function(name, [b.bind(a).type for a in node.args], node.at)
    if any(n not in known for n in found):
        raise no_function(name, [b.bind(a).type for a in node.args], node.at)
    args = tuple(found[n] if n in found else _default(known[n], node.at) for n in wanted)
    return replace(node, args=args, names=())


def without_void(b: Binder, node: nodes.Apply) -> nodes.Apply:
    """The call without parameters that the client declared as void: JDBC has one for what a function returns."""
    if not any(isinstance(arg, Param | nodes.Cast) for arg in node.args):
        return node
    declared = b.env.parameters.types

    def is_void(arg: nodes.Expr) -> bool:
        if isinstance(arg, nodes.Cast) and isinstance(arg.expr, Param) and arg.type.name == "void":
            b.bind(arg)  # it counts as a parameter all the same
            return True
        known = declared[arg.index - 1] if isinstance(arg, Param) and 0 < arg.index <= len(declared) else None
        return known is not None and known.kind is Kind.VOID

    if not any(map(is_void, node.args)):
        return node
    kept = [i for i, arg in enumerate(node.args) if not is_void(arg)]
    names = tuple(node.names[i] for i in kept) if node.names else ()
    return replace(node, args=tuple(node.args[i] for i in kept), names=names)


def _default(value: Default, at: int) -> nodes.Expr:
    if isinstance(value, bool):
        return nodes.Boolean(value, at)
    return nodes.Number(str(value), at) if isinstance(value, int) else nodes.String(str(value), at)
