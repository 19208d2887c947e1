"""The text of a plan at each stage, for EXPLAIN and the tests."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import assert_never

from ivm.graph import (
    Arrange,
    AsOf,
    Concat,
    Delay,
    DeltaJoin,
    Gather,
    Join,
    NodeId,
    Order,
    Path,
    PlainSpec,
    Priority,
    Span,
    Wait,
)  # fmt: skip
from ivm.specs import inputs, parameters
from planner.aggregates.aggregate_reducers import (
    AccumulateFold,
    BasicFold,
    CountFold,
    ModeFold,
    OrderedFold,
    PercentileFold,
)
from planner.aggregates.row_reducers import FirstRow, NumberedRows, SetFold, TopFold
from planner.expr.functions.python_calls import PYTHON_CALLS, traits
from planner.expr.scalar import (
    Aggregate,
    Alike,
    And,
    Call,
    Case,
    Checked,
    Coalesce,
    Column,
    Exists,
    Literal,
    Or,
    OuterColumn,
    Parameter,
    Quantified,
    Scalar,
    ScalarSubquery,
    SortKey,
)  # fmt: skip
from planner.logical import nodes as rels
from planner.logical.nodes import Rel
from planner.logical.traversal import children, conjuncts, scalars, subqueries, substitute
from planner.lower.plan import lower
from planner.lower.state import Indexes
from planner.peek.ranges import filters, served
from planner.physical.arrangement_programs import Keyed, Repeat, Weigh, Weight
from planner.physical.divergence import DEFAULT_LIMIT, Diverging
from planner.physical.layouts import StoredKey
from planner.physical.nodes import (
    Constants,
    Fold,
    Group,
    Lock,
    LoopVariable,
    Map,
    Node,
    Plan,
    RowProgram,
    Table,
    TableErrors,
)  # fmt: skip
from planner.physical.row_programs import MapFilter, Pad
from planner.physical.table_programs import Expand
from planner.physical.temporal_programs import Moments
from planner.render.dataflow import Renderer
from planner.render.sharing import Sharing, reading, sharing, summary
from planner.transform.pipeline import maintained, optimize

NameOf = Callable[[int], str]
"""The name of a stored relation, by its id. The planner knows no names."""


def by_number(relation: int) -> str:
    """A placeholder name, for use without a catalog."""
    return f"relation {relation}"


def explain(
    rel: Rel, stage: str, indexes: Indexes, names: NameOf = by_number, renderer: Renderer | None = None,
    demanding: bool = True,
) -> str:  # fmt: skip
    """The plan at ``stage``: logical, optimized or physical.

    Marks nodes that the ``renderer``'s dataflow has already.
    """
    if stage == "logical":
        return explain_logical(rel, names)
    optimized = (optimize if indexes.one_shot else maintained)(rel, demanding)
    if stage == "optimized":
        return explain_logical(optimized, names)
    plan = lower(optimized, indexes)
    if renderer is None:
        return explain_physical(plan, indexes, names)
    found = reading(plan, renderer) if indexes.one_shot else sharing(plan, renderer)
    return explain_physical(plan, indexes, names, found)


def explain_logical(rel: Rel, names: NameOf = by_number) -> str:
    """A relational plan, inputs indented under their reader. A subplan that occurs again is marked, not repeated."""
    return "\n".join(_logical(rel, 0, set(), names))


def _logical(rel: Rel, depth: int, shown: set[int], names: NameOf) -> list[str]:
    lines = ["  " * depth + _label(rel, names)]
    if id(rel) in shown and children(rel):
        return [lines[0] + " (as above)"]
    shown.add(id(rel))
    for expr in scalars(rel):
        for subquery in subqueries(expr):
            lines.append("  " * (depth + 1) + "subquery:")
            lines += _logical(subquery.rel, depth + 2, shown, names)
    for child in children(rel):
        lines += _logical(child, depth + 1, shown, names)
    return lines


def _label(rel: Rel, names: NameOf) -> str:
    match rel:
        case rels.Get():
            return f"Get {names(rel.relation)}"
        case rels.Reference():
            return f"Reference {rel.binding}"
        case rels.Values():
            return f"Values {len(rel.rows)} rows, {len(rel.schema)} columns"
        case rels.TemporalFilter():
            return f"TemporalFilter {' AND '.join(map(text, rel.conditions))}"
        case rels.Filter():
            return f"Filter {text(rel.predicate)}"
        case rels.Project():
            return f"Project {_list(rel.exprs)}"
        case rels.Join():
            on = " AND ".join(text(c) for c in conjuncts(rel.on)) or "true"
            return f"Join {rel.kind.value}{' lateral' if rel.lateral else ''} on {on}"
        case rels.Locked():
            pairs = [f"left #{a} {'is not distinct from' if same else '='} right #{b}" for a, b, same in rel.keys]
            return f"Locked {'left' if rel.outer else 'inner'} on {' AND '.join(pairs) or 'true'}"
        case rels.AsOf():
            sign = ("<" if rel.later else ">") + ("" if rel.strict else "=")
            pairs = [f"left #{a} {'is not distinct from' if same else '='} right #{b}" for a, b, same in rel.keys]
            pairs.append(f"left #{rel.points[0]} {sign} right #{rel.points[1]}")
            return f"AsOf {'left' if rel.outer else 'inner'} on {' AND '.join(pairs)}"
        case rels.Reduce():
            return f"Reduce by {_list(rel.keys)} compute [{', '.join(_aggregate(a) for a in rel.aggregates)}]"
        case rels.Distinct():
            return "Distinct"
        case rels.TopK():
            order = ", ".join(_key(k) for k in rel.order)
            limit = "all" if rel.limit is None else text(rel.limit)
            offset = "0" if rel.offset is None else text(rel.offset)
            numbered = f" numbered {', '.join(n.value for n in rel.numbers)}" if rel.numbers else ""
            if rel.framed:
                return f"Windows by {_list(rel.keys)} order [{order}] compute [{', '.join(map(str, rel.framed))}]"
            of = "" if rel.limit_of is None else f" of {rel.limit_of.value}"
            return f"TopK by {_list(rel.keys)} order [{order}] limit {limit}{of} offset {offset}{numbered}"
        case rels.SetOperation():
            return f"{rel.kind.value.capitalize()}{' all' if rel.all else ''}"
        case rels.TableFunction():
            return f"TableFunction {rel.function} {_list(rel.args)}{' with ordinality' if rel.ordinality else ''}"
        case rels.Recursive():
            conditions = [*map(text, rel.demanded), *(f"#{c} met" for c in rel.met)]
            asked = f", demanded {' AND '.join(conditions)}" if conditions else ""
            return f"Recursive {rel.binding} union{' all' if rel.all else ''}: base, step{asked}"
        case rels.LetRec():
            at = "return at" if rel.return_at_limit else "error at"
            limit = "" if rel.limit is None else f" {at} limit {rel.limit}"
            asked = "".join(f", {b} demanded {' AND '.join(map(text, conditions))}" for b, conditions in rel.demanded)
            return f"LetRec {', '.join(str(b) for b, _ in rel.bindings)}{limit}{asked}"
        case _:
            assert_never(rel)


def text(expr: Scalar) -> str:
    """An expression in readable form; ``#i`` is column i."""
    match expr:
        case Column():
            return f"#{expr.index}"
        case OuterColumn():
            return f"#^{expr.level}.{expr.index}"
        case Literal():
            return "null" if expr.value is None else repr(expr.value)
        case Parameter():
            return f"${expr.index}"
        case Call():
            return _call(expr)
        case And():
            return "(" + " AND ".join(text(a) for a in expr.args) + ")"
        case Or():
            return "(" + " OR ".join(text(a) for a in expr.args) + ")"
        case Case():
            arms = " ".join(f"WHEN {text(c)} THEN {text(v)}" for c, v in expr.arms)
            return f"CASE {arms} ELSE {text(expr.otherwise)} END"
        case Coalesce():
            return f"coalesce({', '.join(text(a) for a in expr.args)})"
        case Checked():
            return f"checked({text(expr.value)})"
        case Alike():
            between = f" {expr.operator.upper()} "
            firsts = [
                text(substitute(f.body, (*expr.args, *(f.constants[0] if f.constants else ())))) for f in expr.forms
            ]
            return f"({between.join(firsts)}{between}… {len(expr.order)} alike)"
        case ScalarSubquery():
            return "(subquery)"
        case Exists():
            return "EXISTS (subquery)"
        case Quantified():
            return f"{text(expr.comparison)} {'ALL' if expr.every else 'ANY'} (subquery)"
        case _:
            assert_never(expr)


def _call(expr: Call) -> str:
    name = expr.function.partition("(")[0]
    if expr.function in PYTHON_CALLS.values() and isinstance(expr.args[0], Literal):
        shown = traits(str(expr.args[0].value))[0].partition("(")[0]
        return f"{shown}({', '.join(text(a) for a in expr.args[1:])})"
    if name == "cast":
        return f"{text(expr.args[0])}::{expr.type.kind.value}"
    if len(expr.args) == 2 and not name[0].isalpha():
        return f"({text(expr.args[0])} {name} {text(expr.args[1])})"
    if name.startswith("is ") and len(expr.args) == 1:
        return f"({text(expr.args[0])} {name})"
    if name.startswith("is "):
        return f"({text(expr.args[0])} {name} {text(expr.args[1])})"
    return f"{name}({', '.join(text(a) for a in expr.args)})"


def _list(exprs: tuple[Scalar, ...]) -> str:
    return f"[{', '.join(text(e) for e in exprs)}]"


def _key(key: SortKey) -> str:
    return f"{text(key.expr)}{' desc' if key.descending else ''}{' nulls first' if key.nulls_first else ''}"


def _aggregate(call: Aggregate) -> str:
    inner = f"{'distinct ' if call.distinct else ''}{', '.join(text(a) for a in call.args)}"
    name = (call.function if call.python is None else call.python.name).partition("(")[0]
    where = "" if call.filter is None else f" filter {text(call.filter)}"
    return f"{name}({inner or '*'}){where}"


def explain_physical(
    plan: Plan, indexes: Indexes | None = None, names: NameOf = by_number, shared: Sharing | None = None
) -> str:
    """A physical plan: numbered nodes, each under its first reader. A node that is read again is only referred to."""
    lines = _Physical(plan, indexes, names, shared).lines
    totals = None if shared is None else summary(shared, names)
    return "\n".join(lines if totals is None else (*lines, totals))


class _Physical:
    def __init__(self, plan: Plan, indexes: Indexes | None, names: NameOf, shared: Sharing | None) -> None:
        self.plan, self.indexes, self.names, self.shared = plan, indexes, names, shared
        self.bodies = dict(plan.connections)
        self.shown: set[NodeId] = set()
        self.lines: list[str] = []
        self.show(plan.rows, 0)
        if plan.errors is not None and not self._no_errors(plan.errors):
            self.lines.append("errors:")
            self.show(plan.errors, 1)

    def _no_errors(self, number: NodeId) -> bool:
        node = self.plan.nodes[number]
        parts = node.inputs if isinstance(node, Concat) else (number,)
        return all(isinstance(self.plan.nodes[i], TableErrors) for i in parts)

    def show(self, number: NodeId, depth: int) -> None:
        node = self.plan.nodes[number]
        pad = "  " * depth
        if number in self.shown:
            self.lines.append(f"{pad}node {number} again")
            return
        self.shown.add(number)
        self.lines.append(f"{pad}{number} {self.label(number, node)}{self._users(number)}")
        if isinstance(node, DeltaJoin):
            self.lines += [f"{pad}  path {_path(path)}" for path in node.paths]
            self.lines += [f"{pad}  {line}" for line in self._late(node)]
        for i in inputs(node):
            self.show(i, depth + 1)
        if number in self.bodies:
            self.lines.append(f"{pad}  next round:")
            self.show(self.bodies[number], depth + 2)

    def _late(self, node: DeltaJoin) -> list[str]:
        """Which columns of which tables are fetched late, after all other inputs have been looked up."""
        found: dict[tuple[int, int], set[int]] = {}
        for path in node.paths:
            start = self.plan.widths[path.start]
            for lookup in (k for stage in path.stages for k in stage):
                width = self.plan.widths[lookup.node]
                if lookup in path.late:
                    words = {w - start for w in path.gather.words if start <= w < start + width}
                    found.setdefault((lookup.input, lookup.node), set()).update(words)
                start += width
        return [self._fetched(NodeId(number), words) for (_, number), words in sorted(found.items())]

    def _fetched(self, number: NodeId, words: set[int]) -> str:
        table, stored = self.plan.nodes[number], self.plan.stored[number]
        assert isinstance(table, Arrange)
        assert stored is not None
        columns = sorted(table.gather.words[word] for word in words)
        key = list(table.gather.words[: table.key_width])
        return f"late: columns {columns} of {self.names(stored[0])} by id {key}"

    def _range(self, number: NodeId) -> str:
        """By which columns' order a filter finds the rows that it reads."""
        if self.indexes is None or not self.indexes.one_shot or number not in filters(self.plan):
            return ""
        table, asked = filters(self.plan)[number]
        keys = dict.fromkeys((self.indexes.primary_key(table.relation), *self.indexes.keys(table.relation)))
        found = max((served(table.schema, asked, key) for key in keys), key=len)
        return f" of a range by {list(found)}" if found else ""

    def label(self, number: NodeId, node: Node) -> str:
        match node:
            case Table():
                return f"Table {self.names(node.relation)}"
            case TableErrors():
                return f"TableErrors {self.names(node.relation)}"
            case Constants():
                return f"Constants {len(node.rows)} rows"
            case Map():
                return _program(node.program) + self._range(number)
            case Group():
                return f"Reduce {_fold(node.fold)}"
            case LoopVariable():
                limit = self.plan.scopes[node.scope].limit
                rounds = "" if limit in (None, DEFAULT_LIMIT) else f", {limit} rounds at most"
                return f"Variable {node.number} of loop {node.scope}{rounds}"
            case Arrange():
                return self._arrange(node, self.plan.stored[number])
            case Join():
                return f"Join linear {_gather(node.gather)}"
            case Lock():
                return "Lock what is there at each row's commit"
            case AsOf():
                kind = "inner" if node.none is None else "left"
                points = f"point {node.prefix} words, {'before' if node.strict else 'at or before'}"
                return f"AsOf {kind} {points} {_gather(node.gather)}"
            case DeltaJoin():
                met = any(len(stage) > 1 for path in node.paths for stage in path.stages)
                return f"Join {'band' if node.spans else 'wco' if met else 'delta'} of {len(node.paths)} inputs"
            case Delay():
                return _delay(node)
            case Wait():
                return f"Wait for the moment in word {node.word}"
            case _:
                return _plain(node)

    def _users(self, number: NodeId) -> str:
        """Names the relations that use the node already, and the index that a one-shot plan looks up."""
        if self.shared is None or number not in self.shared.users:
            return ""
        shown = f"shared: {', '.join(self.names(r) for r in self.shared.users[number]) or 'constant'}"
        stored = self.plan.stored[number] if self.shared.once else None
        index = None if stored is None or self.indexes is None else self.indexes.index_name(*stored)
        return f" ({shown})" if index is None else f" ({shown}; index {index})"

    def _arrange(self, node: Arrange, stored: tuple[int, StoredKey] | None) -> str:
        key = f"key {list(node.gather.words[: node.key_width])} val {list(node.gather.words[node.key_width :])}"
        ordered = " ordered" if any(o is not Order.WORD for o in node.order) else ""
        return f"Arrange {key}{ordered}{' (shared)' if self.shared is None and self._is_shared(stored) else ''}"

    def _is_shared(self, stored: tuple[int, StoredKey] | None) -> bool:
        """Whether the relation has this arrangement already."""
        return stored is not None and self.indexes is not None and stored[1] in self.indexes.keys(stored[0])


def _plain(node: PlainSpec) -> str:
    """The name of a node's kind, and its parameters."""
    return " ".join([type(node).__name__, *map(_parameter, parameters(node))])


def _parameter(value: object) -> str:
    match value:
        case Gather():
            return _gather(value)
        case Enum():
            return str(value.value)
        case _:
            return str(value)


def _delay(node: Delay) -> str:
    match node.priority:
        case Priority.VALUE:
            order = f"by word {node.word}"
        case Priority.LENGTH:
            order = f"small labels first (bit length of word {node.word})"
        case Priority.INVERSE:
            order = f"large labels first (bit length of word {node.word})"
    return f"Prioritise {order}, {node.stride} rounds each"


def _path(path: Path) -> str:
    """The nodes that a delta path looks up, in order; those that are intersected are joined by "&"."""
    late = path.late
    stages = [
        " & ".join(f"{'late ' if k in late else ''}{k.node} by {list(k.key)}{_span(k.span)}" for k in stage)
        for stage in path.stages
    ]
    return f"{' > '.join([str(path.start), *stages])}; {_gather(path.gather)}"


def _span(span: Span | None) -> str:
    """Which of the key's rows are taken: those with the next word (the one after it: ``end``) in a range."""
    if span is None:
        return ""
    bounds = (("", ">", span.lower), ("", "<", span.upper), ("end ", ">", span.reach))
    shown = (f"{what}{sign}{'' if b.strict else '='} [{b.word}]" for what, sign, b in bounds if b is not None)
    return f" {' and '.join(shown)}"


def _gather(gather: Gather) -> str:
    drop = f" not null {list(gather.drop_if)}" if gather.drop_if else ""
    return f"words {list(gather.words)}{drop}"


def _program(program: RowProgram) -> str:
    match program:
        case MapFilter():
            where = "".join(f" filter {text(p)}" for p in program.predicates)
            return f"Map{where}" + ("" if program.exprs is None else f" compute {_list(program.exprs)}")
        case Pad():
            return "Map pad with NULLs"
        case Keyed():
            return f"Map key {_list(program.keys)} words {_list(program.words)}{' and the row' if program.rows else ''}"
        case Weigh():
            return f"Map key {_list(program.keys)} weigh {_list(program.args)}"
        case Weight():
            return f"Map weigh {list(program.weights)}"
        case Repeat():
            return "Map repeat by count"
        case Moments():
            return f"Map moments of {' AND '.join(map(text, program.conditions))}"
        case Expand():
            return f"Map expand {program.function} {_list(program.args)}"
        case _:
            return type(program).__name__


def _fold(fold: Fold) -> str:
    match fold:
        case AccumulateFold():
            return f"accumulate [{', '.join(c.function for c in fold.layout.calls)}]"
        case CountFold():
            return "count rows"
        case OrderedFold():
            return f"first [{_aggregate(fold.aggregate)}]"
        case BasicFold():
            return f"whole group [{_aggregate(fold.aggregate)}]"
        case PercentileFold():
            return f"by rank [{_aggregate(fold.aggregate)}]"
        case ModeFold():
            return "first by count [mode]"
        case TopFold():
            return "top rows"
        case NumberedRows():
            limit = "all" if fold.count is None or fold.limit_of is None else f"{fold.limit_of.value} <= {fold.count}"
            return f"numbered rows [{limit}]"
        case FirstRow():
            return "one row of each class"
        case Diverging():
            return f"error where {fold.name} still changes in round {fold.limit}"
        case SetFold():
            return f"{'intersect' if fold.intersect else 'except'}{' all' if fold.all else ''} by class"
        case _:
            return type(fold).__name__
