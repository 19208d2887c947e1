"""Coverage of a set of histories: the share of views with each feature, and which pairs of operators are nested."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from tests.support.grammar import History
from tests.support.model import (
    Block,
    Col,
    Compare,
    Derived,
    Exists,
    Expr,
    First,
    From,
    In,
    Joined,
    Op,
    Query,
    Recursion,
    Scalar,
    Select,
    SetOp,
    Table,
    Timed,
    When,
)

# Minimum share of the views with each feature.
REQUIRED = {
    "correlated subquery": 0.05,
    "outer join": 0.05,
    "except or intersect all": 0.05,
    "recursion beyond linear": 0.05,
}


def label(query: Query | From) -> str:
    """An operator's name."""
    match query:
        case Select():
            if query.keys is not None:
                return "group"
            return "distinct" if query.distinct else "select"
        case SetOp():
            return f"{query.kind}{' all' if query.all else ''}"
        case First():
            return "top"
        case Recursion():
            return "recursion all" if query.all else "recursion"
        case Block():
            return "block"
        case Joined():
            return f"{query.kind} join"
        case Timed():
            return f"asof {'left' if query.outer else 'inner'} join"
        case Derived():
            return label(query.query)
        case Table():
            return "table"


def inputs(node: Query | From) -> tuple[Query | From, ...]:
    """The operator's inputs."""
    match node:
        case Select():
            return (node.source,)
        case SetOp() | Joined() | Timed():
            return (node.left, node.right)
        case First() | Derived():
            return (node.query,)
        case Recursion():
            return (node.base, node.step)
        case Block():
            return (*(binding.query for binding in node.bindings), node.body)
        case Table():
            return ()


def subqueries(expr: Expr) -> Iterator[Query]:
    """The subqueries of an expression."""
    match expr:
        case Scalar() | Exists() | In() | Compare():
            yield expr.query
            if isinstance(expr, In | Compare):
                yield from subqueries(expr.arg)
        case Op():
            for arg in expr.args:
                yield from subqueries(arg)
        case When():
            for arg in (expr.condition, expr.yes, expr.no):
                yield from subqueries(arg)
        case _:
            return


def expressions(node: Query | From) -> Iterator[Expr]:
    """The operator's own expressions."""
    if isinstance(node, Select):
        yield from node.outputs
        yield from (e for e in (node.where, node.having) if e is not None)
    elif isinstance(node, Joined):
        yield node.on


def walk(node: Query | From) -> Iterator[Query | From]:
    """An operator and everything below it, subqueries included."""
    yield node
    for below in inputs(node):
        yield from walk(below)
    for expr in expressions(node):
        for query in subqueries(expr):
            yield from walk(query)


def columns(expr: Expr | None) -> Iterator[Col]:
    """The columns that an expression names directly."""
    match expr:
        case Col():
            yield expr
        case Op():
            for arg in expr.args:
                yield from columns(arg)
        case _:
            return


def aliases(source: From) -> set[str]:
    """The aliases that a FROM item defines."""
    return aliases(source.left) | aliases(source.right) if isinstance(source, Joined | Timed) else {source.alias}


def features(query: Query) -> set[str]:
    """The required features present in a view."""
    found = set()
    for node in walk(query):
        name = label(node)
        if isinstance(node, Joined) and node.kind in ("left", "right", "full"):
            found.add("outer join")
        if name in ("except all", "intersect all"):
            found.add("except or intersect all")
        if isinstance(node, Recursion) and isinstance(node.step, Select):
            joined = node.step.source
            assert isinstance(joined, Joined)
            if isinstance(joined.left, Derived):
                found.add("recursion beyond linear")
        for expr in expressions(node):
            for inner in subqueries(expr):
                if isinstance(inner, Select) and any(
                    c.alias not in aliases(inner.source) for c in columns(inner.where)
                ):
                    found.add("correlated subquery")
    return found


def pairs(query: Query) -> set[tuple[str, str]]:
    """(operator, input operator) for every edge of a view."""
    return {
        (label(node), label(below)) for node in walk(query) if not isinstance(node, Derived) for below in inputs(node)
    }


def measure(histories: Iterable[History]) -> tuple[dict[str, float], Counter[tuple[str, str]]]:
    """The share of views with each required feature, and the number of views with each pair of operators."""
    shares: Counter[str] = Counter()
    seen: Counter[tuple[str, str]] = Counter()
    total = 0
    for history in histories:
        for _, query in history.views:
            total += 1
            shares.update(features(query))
            seen.update(pairs(query))
    return {name: shares[name] / max(1, total) for name in REQUIRED}, seen
