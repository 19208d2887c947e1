"""Parts of plans that read one stored relation row by row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ivm.graph import Concat, Errors, Gather, NodeId, Project
from ivm.words import Schema
from planner.expr.scalar import Column, Scalar
from planner.memo import by_identity
from planner.peek.ranges import Condition, conditions
from planner.physical.nodes import Map, Plan, Table, TableErrors
from planner.physical.row_programs import MapFilter


@dataclass(frozen=True, slots=True)
class Chain:
    """A node that reads one relation row by row: its rows moved by ``before`` (None: not), those that ``keep`` keeps,
    computed by ``compute``, moved by ``after``. ``exprs``: the node's columns over the rows kept. ``mapped``: the node
    of the program, if there is one."""

    table: Table
    before: Gather | None
    keep: MapFilter
    compute: MapFilter | None
    after: Gather | None
    exprs: tuple[Scalar, ...]
    asked: tuple[Condition, ...]
    mapped: NodeId | None

    def column(self, expr: Scalar) -> int | None:
        """The relation's column that an expression over the rows kept is, if it is one."""
        if not isinstance(expr, Column):
            return None
        return expr.index if self.before is None else self.before.words[expr.index]


@by_identity
def chains_of(plan: Plan) -> tuple[Chain, ...]:
    """The plan's rows as the sum of such chains; (): they are something else, or other errors are the plan's too."""
    chains = chains_at(plan, plan.rows, plan.schema)
    return chains if _fails_alone(plan, chains) else ()


def chains_at(plan: Plan, number: NodeId, schema: Schema) -> tuple[Chain, ...]:
    """A node's rows, of these columns, as the sum of chains; (): they are something else."""
    node = plan.nodes[number]
    parts = node.inputs if isinstance(node, Concat) else (number,)
    found = [_chain_at(plan, part, schema) for part in parts]
    chains = tuple(chain for chain in found if chain is not None)
    return chains if len(chains) == len(found) else ()


def _chain_at(plan: Plan, number: NodeId, schema: Schema) -> Chain | None:
    moves: list[Gather | None] = [None]
    mapped: NodeId | None = None
    node = plan.nodes[number]
    while not isinstance(node, Table):
        if isinstance(node, Project) and not node.gather.drop_if and moves[-1] is None:
            moves[-1] = node.gather
        elif isinstance(node, Map) and isinstance(node.program, MapFilter) and mapped is None:
            mapped = number
            moves.append(None)
        else:
            return None
        number = node.input
        node = plan.nodes[number]
    if mapped is None:
        keep = MapFilter(node.schema, ())
        exprs = _moved(tuple(_own(node.schema)), moves[0], schema)
        return None if exprs is None else Chain(node, None, keep, None, moves[0], exprs, (), None)
    return _mapped(plan, node, mapped, moves, schema)


def _mapped(plan: Plan, table: Table, mapped: NodeId, moves: list[Gather | None], schema: Schema) -> Chain | None:
    node = plan.nodes[mapped]
    assert isinstance(node, Map)
    assert isinstance(node.program, MapFilter)
    program = node.program
    after, before = moves
    below = _moved(tuple(_own(table.schema)), before, program.schema)
    made = tuple(_own(program.schema)) if program.exprs is None else program.exprs
    exprs = _moved(made, after, schema)
    if below is None or exprs is None:
        return None
    keep = MapFilter(program.schema, program.predicates)
    compute = None if program.exprs is None else MapFilter(program.schema, (), program.exprs)
    asked = conditions(program.schema, program.predicates) if before is None else ()
    return Chain(table, before, keep, compute, after, exprs, asked, mapped)


def _own(schema: Schema) -> Iterator[Scalar]:
    return (Column(i, column.type, column.nullable) for i, column in enumerate(schema))


def _moved(exprs: tuple[Scalar, ...], gather: Gather | None, target: Schema) -> tuple[Scalar, ...] | None:
    """Columns moved by a gather to those of ``target``; None: it does something else."""
    if gather is None:
        return exprs
    places = gather.words[: len(target)]
    return tuple(exprs[p] for p in places) if all(0 <= p < len(exprs) for p in places) else None


def _fails_alone(plan: Plan, chains: tuple[Chain, ...]) -> bool:
    """Whether the plan's errors are those of the relations and of the programs over their rows."""
    if plan.errors is None:
        return True
    node = plan.nodes[plan.errors]
    parts = [plan.nodes[i] for i in node.inputs] if isinstance(node, Concat) else [node]
    own = {TableErrors(chain.table.relation) for chain in chains}
    own_maps = {chain.mapped for chain in chains}
    return all(part in own or (isinstance(part, Errors) and part.input in own_maps) for part in parts)
