"""The operators of a dataflow: built from node specs, linked to their inputs, freed when nothing uses them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import count
from pkgutil import iter_modules
from typing import Final

import numpy as np

from ivm import operators
from ivm.abilities import searches
from ivm.arena import Arena
from ivm.graph import (
    Arrange,
    Concat,
    Constant,
    DeltaJoin,
    Errors,
    Input,
    Join,
    Keyed,
    Leave,
    Linear,
    NodeId,
    NodeSpec,
    Order,
    Output,
    Overflow,
    Path,
    Reduce,
    Rows,
    Scan,
    ScopeId,
    Spec,
    Static,
    Switch,
    Threshold,
    Variable,
)  # fmt: skip
from ivm.kernels.memory import address
from ivm.operators.arrange import ArrangeOperator, OutputOperator, StaticOperator
from ivm.operators.base import FailingOperator
from ivm.operators.count import CountOperator, counts
from ivm.operators.delta_join import DeltaJoinOperator, DeltaPath
from ivm.operators.join import JoinOperator, Side
from ivm.operators.linear import (
    ConcatOperator,
    ErrorsOperator,
    InputOperator,
    SourceOperator,
)  # fmt: skip
from ivm.operators.loop import (
    DelayedOperator,
    EnterOperator,
    FeedbackOperator,
    LeaveOperator,
    OverflowOperator,
    VariableOperator,
)  # fmt: skip
from ivm.operators.loop_reduce import LoopReduceOperator
from ivm.operators.reduce import ReduceOperator
from ivm.operators.searched import SearchedReduceOperator
from ivm.operators.switch import SwitchOperator
from ivm.operators.threshold import LoopThresholdOperator, ThresholdOperator
from ivm.operators.trace_import import RecordOperator
from ivm.rows import Words
from ivm.runtime.context import FlowContext, Mode
from ivm.runtime.operator import Operator, Scope
from ivm.runtime.ranks import rank_last
from ivm.runtime.replay import replay
from ivm.runtime.watched import Watched
from ivm.specs import inputs, parameters, with_inputs
from ivm.time import all_bits, check_ordinal
from ivm.trace.pages import small_pages


def _by_spec() -> dict[type[Spec], Callable[..., Operator]]:
    modules = [import_module(f"{operators.__name__}.{module.name}") for module in iter_modules(operators.__path__)]
    kinds = [kind for module in modules for kind in vars(module).values() if isinstance(kind, type)]
    return {vars(kind)["SPEC"]: kind for kind in kinds if issubclass(kind, Operator) and vars(kind).get("SPEC")}


OPERATORS: Final = _by_spec()
"""The operators that name their spec."""


class Network:
    """Nodes by id, each with its operator and the number of its outside users."""

    def __init__(
        self, arena: Arena | None, cancel: threading.Event | None, mode: Mode, beside: Network | None = None
    ) -> None:  # fmt: skip
        """``beside``: a running network into which the nodes may be moved later (``absorb``). They get ids that are
        free there, and use its times and its arena."""
        small_pages()
        self._context = FlowContext(lambda: self.nbytes, lambda: self._values, mode)
        self._context.refresh = self.refresh_arena
        if cancel is not None:
            self._context.cancel = cancel
        self._root = Scope(self._context, None)
        if mode is Mode.ONCE:
            self._root.members = Watched(self._context)
        self._scopes: dict[ScopeId, Scope] = {}
        self._operators: dict[NodeId, Operator] = {}
        self._specs: dict[NodeId, NodeSpec] = {}
        self._users: dict[NodeId, int] = {}
        self._enters: dict[tuple[NodeId, int], EnterOperator] = {}
        self._dormant: list[Operator] = []
        self._ids = count(1)
        self._ranks = 0
        self._rounds = 0
        self._arena = arena
        if beside is not None:
            self._context.follow(beside._context)
            self._ids, self._rounds, self._arena = beside._ids, beside._rounds, beside._arena
        self._cell = np.zeros(2, np.int64)
        self._descriptors: list[Words] = []
        self._merged_before = 0
        self.refresh_arena()

    @property
    def nbytes(self) -> int:
        """Bytes held, including values of its own."""
        own = self._arena is not None and self._arena.parent is not None
        return self._root.size + (self._values if own else 0)

    def nodes(self) -> dict[NodeId, tuple[NodeSpec, Operator]]:
        """Every node's spec and operator. A copy; may be called from any thread."""
        operators = self._operators.copy()
        return {n: (spec, operators[n]) for n, spec in self._specs.copy().items() if n in operators}

    def operator(self, node: NodeId) -> Operator:
        """The operator of a node that was added here. KeyError if there is none."""
        return self._operators[node]

    def spec(self, node: NodeId) -> NodeSpec:
        """The spec of a node that was added here. KeyError if there is none."""
        return self._specs[node]

    @property
    def size_counted(self) -> int:
        """Bytes that it has taken from its memory budget, if everything it holds counts."""
        return self._context.share.size

    def all_operators(self) -> Iterator[Operator]:
        """All operators with ranks, including those of loops."""
        return self._root.all_operators()

    @property
    def _values(self) -> int:
        return 0 if self._arena is None else self._arena.byte_size

    # -- building -----------------------------------------------------------------------------------------------

    def scope(
        self, parent: ScopeId | None = None, limit: int | None = None, return_at_limit: bool = False, stride: int = 0,
        width: int | None = None,
    ) -> ScopeId:  # fmt: skip
        """A new loop inside ``parent``. After ``limit`` rounds it ends if ``return_at_limit`` is set or one of its
        variables has an Overflow; otherwise what depends on it fails with 54001. ``stride``: the number of rounds per
        priority, to which ``limit`` then applies; 0: no priorities. ``width``: the bits of its round. Raises 0A000 if
        times have no room for it."""
        above = self._root if parent is None else self._scopes[parent]
        scope = Scope(self._context, above, limit, return_at_limit, stride, width)
        bits = all_bits(scope.shape)
        if bits > self._rounds:
            check_ordinal(self._context.newest, bits)
            self._rounds = bits
        name = ScopeId(next(self._ids))
        self._scopes[name] = scope
        return name

    def add(self, spec: NodeSpec) -> NodeId:
        """Adds a node whose inputs exist already; dormant until ``hydrate``."""
        operator = self._render(spec)
        node = NodeId(next(self._ids))
        operator.id = node
        self._operators[node] = operator
        self._specs[node] = spec
        self._users[node] = 1 if isinstance(spec, Input | Output) else 0
        self._dormant.append(operator)
        return node

    def connect(self, variable: NodeId, body: NodeId) -> None:
        """Defines the variable's contents in the next round. Both nodes are in one scope and still dormant."""
        operator = self._find(variable)
        assert isinstance(operator, VariableOperator)
        assert operator.body is None, "a variable has one body"
        source = self._inside(body, operator.scope)
        operator.body = source
        self._dormant.append(FeedbackOperator(self._context, operator.scope, source, operator))

    def _render(self, spec: NodeSpec) -> Operator:
        context = self._context
        match spec:
            case Input(width, diff_width):
                return InputOperator(context, self._root, width, diff_width)
            case Constant(width, rows):
                matrix = np.array(rows, np.int64).reshape(len(rows), width)
                return SourceOperator(context, self._root, matrix, np.ones(len(rows), np.int64))
            case Rows(matrix, diffs):
                return SourceOperator(context, self._root, matrix, diffs)
            case Scan(version, at):
                return SourceOperator(context, self._root, *version.rows_at(at))
            case Static(version, at):
                return StaticOperator(context, self._root, version, at)
            case Variable(scope, width):
                return VariableOperator(context, self._scopes[scope], width)
            case Errors(node):
                source = self._failing(node)
                assert isinstance(source, FailingOperator), "only a function's rows may fail"
                return ErrorsOperator(context, source.scope, source)
            case Concat(nodes):
                inner = self._innermost(nodes)
                return ConcatOperator(context, inner, [self._inside(node, inner) for node in nodes])
            case Arrange(node, gather, key_width, order):
                source = self._find(node)
                return ArrangeOperator(context, source.scope, source, gather, key_width, self._order(order))
            case Join(left, right, gather):
                inner = self._innermost((left, right))
                return JoinOperator(context, inner, self._side(left, inner), self._side(right, inner), gather)
            case DeltaJoin(paths):
                inner = self._innermost(inputs(spec))
                arranged = [DeltaPath(i, path, self._sides(path, inner)) for i, path in enumerate(paths)]
                return DeltaJoinOperator(context, inner, arranged, len(paths[0].gather.words))
            case Threshold(node, keep):
                source = self._arranged(node)
                keeping = LoopThresholdOperator if source.scope.depth else ThresholdOperator
                return keeping(context, source.scope, source, keep)
            case Reduce(node, reducer):
                source = self._arranged(node)
                if counts(source, reducer):
                    return CountOperator(context, source.scope, source)
                searching = SearchedReduceOperator if searches(reducer) else ReduceOperator
                reducing = LoopReduceOperator if source.scope.depth else searching
                return reducing(context, source.scope, source, reducer)
            case Leave(node):
                source = self._find(node)
                assert source.scope.parent is not None, "only a loop can be left"
                leave = LeaveOperator(context, source.scope.parent, source)
                self._dormant.append(leave.tap)
                return leave
            case Overflow(node):
                variable = self._find(node)
                assert isinstance(variable, VariableOperator)
                assert variable.scope.parent is not None
                return OverflowOperator(context, variable.scope.parent, variable)
            case Output(node):
                return OutputOperator(context, self._root, self._find(node))
            case _:
                return self._built(spec)

    def _built(self, spec: NodeSpec) -> Operator:
        """An operator that names its spec."""
        read = inputs(spec)
        inner = self._innermost(read)
        given = (self._arranged(i) if isinstance(spec, Keyed) else self._inside(i, inner) for i in read)
        return OPERATORS[type(spec)](self._context, inner, *given, *parameters(spec))

    def _innermost(self, nodes: Sequence[NodeId]) -> Scope:
        return max((self._find(node).scope for node in nodes), key=lambda scope: scope.depth)

    def _inside(self, node: NodeId, scope: Scope) -> Operator:
        """The node's collection in a scope: itself, or an operator that brings it in from outside."""
        operator = self._find(node)
        if operator.scope is scope:
            return operator
        assert scope.parent is not None, "a loop's collection is used outside without Leave"
        outside = self._inside(node, scope.parent)
        key = (node, id(scope))
        enter = self._enters.get(key)
        if enter is None:
            enter = self._enters[key] = EnterOperator(self._context, scope, outside)
            self._dormant.append(enter)
        return enter

    def _find(self, node: NodeId) -> Operator:
        """The operator of a node."""
        return self._operators[node]

    def _failing(self, node: NodeId) -> Operator:
        """The operator of a node whose error rows are read."""
        return self._operators[node]

    def _arranged(self, node: NodeId) -> Operator:
        """The operator of an arrangement, which keeps a spine from now on."""
        operator = self._find(node)
        assert operator.ARRANGED, f"{self._specs[node]} is not an arrangement"
        if operator.spine is None:
            held = replay(self._context, operator) if operator.rank >= 0 else None
            operator.arrange()
            if held is not None:
                assert operator.spine is not None
                operator.spine.insert(held)
                self._watch(operator)
        return operator

    def _watch(self, operator: Operator) -> None:
        """Publishes an arrangement from now on, if it has users and is outside of loops."""
        spine = operator.spine
        if spine is None or operator.scope.depth or operator.diff_width != 1 or isinstance(operator, StaticOperator):
            return
        if not self._users.get(operator.id):
            return
        spine.node = operator.id
        spine.watch = self._context.changed
        if not spine.changed:
            spine.changed = True
            self._context.changed.append(spine)

    def _side(self, node: NodeId, scope: Scope) -> Side:
        return Side(self._arranged(node), self._inside(node, scope))

    def _sides(self, path: Path, scope: Scope) -> list[Side]:
        """The start of a path, which wakes it, and the arrangements it looks up, which need not."""
        looked_up = [self._arranged(lookup.node) for stage in path.stages for lookup in stage]
        start = Side(self._find(path.start), self._inside(path.start, scope))
        return [start, *(Side(operator, operator) for operator in looked_up)]

    def _order(self, order: tuple[Order, ...]) -> Words | None:
        if all(o is Order.WORD for o in order):
            return None
        assert self._arena is not None, "an ordered arrangement needs an arena"
        return np.array([address(self._cell), *(o.value for o in order)], np.int64)

    def refresh_arena(self) -> None:
        """Shows ordered spines the values interned since the last call."""
        if self._arena is not None:
            descriptor = self._arena.descriptor
            if not self._descriptors or self._descriptors[-1] is not descriptor:
                self._descriptors.append(descriptor)
                self._cell[0] = address(descriptor)
                self._cell[1] = len(descriptor)

    # -- exchanging what readers read ---------------------------------------------------------------------------

    def readers(self, node: NodeId) -> list[NodeId] | None:
        """The nodes that read a node outside of loops; None: one reads more of it than what it emits, or is in a loop
        in a way of its own, so that it cannot read another node instead."""
        operator = self._operators[node]
        found = []
        for reader in operator.consumers:
            if reader.id in self._operators:
                found.append(reader.id)
            elif not isinstance(reader, EnterOperator | RecordOperator):
                return None
        known = {id(reader) for reader in operator.consumers}
        if any(id(o) not in known and operator in o.needs() for o in self.all_operators()):
            return None
        plain = (isinstance(self._specs[reader], Linear | Arrange | Output) for reader in found)
        return found if all(plain) else None

    def may_reread(self, node: NodeId) -> bool:
        """Whether all that reads a node, which is no arrangement, can read another one instead."""
        operator = self._operators[node]
        known = {id(reader) for reader in operator.consumers}
        if any(r.id not in self._operators and not isinstance(r, EnterOperator | RecordOperator)
               for r in operator.consumers):  # fmt: skip
            return False
        return not any(id(o) not in known and operator in o.needs() for o in self.all_operators())

    def reread(
        self, node: NodeId, other: NodeId, moves: Callable[[NodeId], bool] = lambda _: True
    ) -> dict[NodeId, tuple[NodeSpec, NodeSpec]]:
        """Makes the readers of a node for which ``moves`` holds, and those in loops, read another one that emits the
        same from now on. Their specs before and after. Call it between steps."""
        old, new = self._operators[node], self._operators[other]
        moved: dict[NodeId, tuple[NodeSpec, NodeSpec]] = {}
        for reader in old.consumers:
            if reader is new or isinstance(reader, RecordOperator):
                continue
            if reader.id in self._operators and not moves(reader.id):
                continue
            old.unlink(reader)
            reader.rebind(lambda source: new if source is old else source)
            new.link(reader)
            if reader.id in self._operators:
                before = self._specs[reader.id]
                self._specs[reader.id] = with_inputs(before, {i: other if i == node else i for i in inputs(before)})
                moved.setdefault(reader.id, (before, self._specs[reader.id]))
        self._enters = {(other if e.source is new else n, s): e for (n, s), e in self._enters.items()}
        return moved

    def _exchange(self, switch: NodeId, source: NodeId) -> SwitchOperator:
        """Gives a Switch another source, which may be newer than its readers. Its operator."""
        operator, new = self._operators[switch], self._operators[source]
        assert isinstance(operator, SwitchOperator)
        operator.source.unlink(operator)
        operator.source = new
        new.link(operator)
        self._specs[switch] = Switch(source)
        self._ranks = rank_last(self._root, operator, self._ranks)
        return operator

    def _run_last(self, node: NodeId) -> None:
        self._ranks = rank_last(self._root, self._operators[node], self._ranks)

    def reclaim(self, node: NodeId) -> None:
        """Frees a node, if it exists, has no users and nothing reads it, then whatever only it used."""
        if node in self._operators and not self._operators[node].consumers:
            self._release_unused([self._operators[node]])

    # -- releasing ----------------------------------------------------------------------------------------------

    def _release_unused(self, operators: Sequence[Operator]) -> None:
        """Frees the operators and whatever only they used; nodes with users or consumers stay. Cost: the network."""
        candidates = self._ancestors(operators)
        for other in self._operators.values():
            # The stand-in for an aliased arrangement reads the loop's variable but does not keep it alive.
            if isinstance(other, DelayedOperator) and id(other.source) in candidates:
                candidates[id(other)] = other
        others = [o for o in self._operators.values() if id(o) not in candidates or self._users[o.id]]
        live = self._ancestors(others)
        freed: set[int] = set()
        for candidate in candidates.values():
            if id(candidate) not in live and id(candidate) not in freed:
                self._free(candidate, freed)

    def _ancestors(self, operators: Sequence[Operator]) -> dict[int, Operator]:
        """The operators and everything that they read, including through feedback, by identity."""
        found: dict[int, Operator] = {}
        waiting = list(operators)
        while waiting:
            operator = waiting.pop()
            if id(operator) in found:
                continue
            found[id(operator)] = operator
            waiting += operator.needs()
            waiting += operator.retained()
        return found

    def _free(self, operator: Operator, freed: set[int]) -> None:
        """Frees an operator with its implicit consumers, and adds them to ``freed``, by identity."""
        freed.add(id(operator))
        for source in operator.inputs():
            source.unlink(operator)
        for consumer in operator.consumers:
            if consumer.IMPLICIT:
                self._free(consumer, freed)
        operator.release()
        operator.scope.remove(operator)
        self._forget(operator.scope)
        if operator in self._dormant:
            self._dormant.remove(operator)
        self._merged_before += sum(spine.merged for spine in operator.spines())
        if isinstance(operator, EnterOperator):
            self._enters = {key: enter for key, enter in self._enters.items() if enter is not operator}
        elif operator.id in self._operators:
            del self._operators[operator.id], self._specs[operator.id], self._users[operator.id]

    def _forget(self, scope: Scope) -> None:
        """Removes an empty loop from its parent."""
        if scope.parent is not None and not scope.members:
            scope.parent.remove(scope)
            self._forget(scope.parent)

    def forget(self) -> None:
        """Disposes of the network: frees what its operators hold and drops all references, so that no memory waits for
        the garbage collector."""
        for operator in [*self.all_operators(), *self._dormant]:
            operator.forget()
        for scope in (self._root, *self._scopes.values()):
            scope.forget()
        self._operators.clear()
        self._specs.clear()
        self._enters.clear()
        self._dormant.clear()
        self._context.forget()
        self._arena = None

    # -- taking over another's nodes ----------------------------------------------------------------------------

    def absorb(self, other: Network, fresh: Sequence[Operator], replaced: Mapping[int, Operator]) -> None:
        """Takes over the nodes of a network beside this one. Call it between the passes of both.

        ``fresh``: the other's operators. ``replaced``: for those that are not taken over, by identity, the operator of
        this network that they stood in for. If such an operator had to keep its rows, this network's does from now on.
        """
        moved = [operator for operator in fresh if id(operator) not in replaced and operator.rank >= 0]
        moved += [operator for operator in other._operators.values() if isinstance(operator, DelayedOperator)]
        for scope in other._scopes.values():
            scope.context = self._context
            if scope.parent is other._root:
                scope.parent = self._root
            scope.changed()
        for operator in moved:
            scope = self._root if operator.scope is other._root else operator.scope
            operator.move(self._context, scope, self._cell, lambda o: replaced.get(id(o), o))
        self._rank_behind(other, {operator.rank for operator in fresh if id(operator) in replaced})
        new = {id(operator) for operator in moved}
        for operator in moved:
            for source in operator.inputs():
                if id(source) not in new:
                    source.link(operator)
        self._operators.update(other._operators)
        self._specs.update(other._specs)
        self._users.update(other._users)
        self._scopes.update(other._scopes)
        self._enters.update({key: enter for key, enter in other._enters.items() if id(enter) not in replaced})
        self._rounds = max(self._rounds, other._rounds)
        self._context.stats += other._context.stats
        for operator in fresh:
            if id(operator) in replaced:
                self._keep_rows(replaced[id(operator)], operator)
        for operator in moved:
            if operator.spine is not None:
                operator.spine.changed = False
            self._watch(operator)

    def _rank_behind(self, other: Network, without: set[int]) -> None:
        """Gives the members of another network, except those with the ranks ``without``, ranks after all of this
        one's."""
        for rank, item in other._root.members.items():
            if rank not in without:
                item.rank = self._ranks + rank
                self._root.members[item.rank] = item
                if isinstance(item, Operator):
                    self._root.changed(item)
        self._ranks += other._ranks

    def _keep_rows(self, operator: Operator, other: Operator) -> None:
        """Makes an operator keep its rows from now on, if ``other``, which emits the same, kept them in a spine of its
        own."""
        if operator.spine is None and other.spine is not None:
            other.spine.move(self._context.since_of(other.spine.shape), self._cell)
            operator.take_spine(other)
            self._watch(operator)
