"""percent_rank and cume_dist: computed from the row's number or rank and its partition's count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ivm.words import BOOL, FLOAT8, INT8
from planner.expr.scalar import Aggregate, Call, Case, Column, Literal, Scalar, SortKey
from planner.logical.nodes import Numbering
from sql.bind.coerce import cast
from sql.bind.environment import Binder
from sql.bind.overloads import no_function
from sql.bind.scope import WindowCall
from sql.syntax.nodes import queries as nodes

NAMES: Final = frozenset({"percent_rank", "cume_dist"})
_ONE: Final = Literal(1, INT8)
_COUNT: Final = Aggregate("count(*)", (), INT8, False)


def distribution_function(
    b: Binder, node: nodes.Apply, name: str, partition: tuple[Scalar, ...], order: tuple[SortKey, ...],
    note: Callable[[WindowCall], Column],
) -> Scalar:  # fmt: skip
    """The call as an expression over other window functions, for which ``note`` gives placeholders. Raises 42883."""
    if node.star or node.args:
        raise no_function(name, [b.bind(a).type for a in node.args], node.at)
    count = note(WindowCall(_COUNT, partition, ()))

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


def _integers(symbol: str, left: Scalar, right: Scalar) -> Scalar:
    return Call(f"{symbol}(int8,int8)", (left, right), INT8, False)


def _less(left: Scalar, right: Scalar) -> Scalar:
    return _integers("-", left, right)
