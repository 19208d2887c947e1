"""percent_rank, cume_dist and ntile: computed from the row's number or rank and its partition's count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ivm.errors import SqlError, unsupported
from ivm.words import BOOL, FLOAT8, INT4, INT8
from planner.expr.scalar import Aggregate, Call, Case, Column, Literal, Scalar, SortKey
from planner.logical.nodes import Numbering
from sql.bind.coerce import cast, castable
from sql.bind.environment import Binder
from sql.bind.overloads import no_function
from sql.bind.scope import WindowCall
from sql.syntax.nodes import queries as nodes

NAMES: Final = frozenset({"percent_rank", "cume_dist", "ntile"})
_ONE: Final = Literal(1, INT8)
_COUNT: Final = Aggregate("count(*)", (), INT8, False)


def distribution_function(
    b: Binder, node: nodes.Apply, name: str, partition: tuple[Scalar, ...], order: tuple[SortKey, ...],
    note: Callable[[WindowCall], Column],
) -> Scalar:  # fmt: skip
    """The call as an expression over other window functions, for which ``note`` gives placeholders. Raises 42883,
    22014, 0A000."""
    buckets = _buckets(b, node) if name == "ntile" else None
    if node.star or (node.args and name != "ntile"):
        raise no_function(name, [b.bind(a).type for a in node.args], node.at)
    count = note(WindowCall(_COUNT, partition, ()))
    if buckets is not None:
        row = note(WindowCall(Numbering.ROW_NUMBER, partition, order))
        return cast(b.env, _bucket(row, count, Literal(buckets, INT8)), INT4, "explicit", node.at)

    def ratio(over: Scalar, under: Scalar) -> Scalar:
        floats = tuple(cast(b.env, e, FLOAT8, "implicit", node.at) for e in (over, under))
        return Call("/(float8,float8)", floats, FLOAT8, False)

    if name == "percent_rank":
        rank = note(WindowCall(Numbering.RANK, partition, order))
        alone = Call("=(int8,int8)", (count, _ONE), BOOL, False)
        return Case(((alone, Literal(0.0, FLOAT8)),), ratio(_less(rank, _ONE), _less(count, _ONE)), FLOAT8, False)
    # the rows after the peers are the rows before them in the opposite order
    behind = tuple(replace(k, descending=not k.descending, nulls_first=not k.nulls_first) for k in order)
    rank = note(WindowCall(Numbering.RANK, partition, behind))
    return ratio(_less(count, _less(rank, _ONE)), count)


def _buckets(b: Binder, node: nodes.Apply) -> int:
    """ntile's argument: the number of buckets."""
    args = [b.bind(a) for a in node.args]
    if len(args) != 1 or not castable(args[0].type, INT4, "implicit"):
        raise no_function("ntile", [a.type for a in args], node.at)
    number = cast(b.env, args[0], INT4, "implicit", node.at)
    if not isinstance(number, Literal) or not isinstance(number.value, int):
        raise unsupported("an argument of ntile() that is no positive integer constant", position=node.at + 1)
    if number.value <= 0:
        raise SqlError("22014", "argument of ntile must be greater than zero")
    return number.value


def _bucket(row: Scalar, count: Scalar, buckets: Scalar) -> Scalar:
    """The bucket of a row number. The first ``count % buckets`` buckets have a row more than the others."""
    size, larger = _integers("/", count, buckets), _integers("%", count, buckets)
    within = _integers("*", larger, _integers("+", size, _ONE))
    first = _integers("+", _integers("/", _less(row, _ONE), _integers("+", size, _ONE)), _ONE)
    rest = _integers("+", _integers("/", _less(_less(row, within), _ONE), size), _integers("+", larger, _ONE))
    return Case(((Call("<=(int8,int8)", (row, within), BOOL, False), first),), rest, INT8, False)


def _integers(symbol: str, left: Scalar, right: Scalar) -> Scalar:
    return Call(f"{symbol}(int8,int8)", (left, right), INT8, False)


def _less(left: Scalar, right: Scalar) -> Scalar:
    return _integers("-", left, right)
