"""The operators of a dataflow: made from what nodes are, linked to what they read, freed when nothing uses them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import count
from typing import assert_never

import numpy as np

from ivm.arena import Arena
from ivm.graph import (
    Arrange,
    AsOf,
    Concat,
    Consolidate,
    Constant,
    Delay,
    DeltaJoin,
    Errors,
    FlatMap,
    Input,
    Join,
    Leave,
    Lock,
    Negate,
    NodeId,
    NodeSpec,
    Order,
    Output,
    Overflow,
    Path,
    Project,
    Reduce,
    Rows,
    Scan,
    ScopeId,
    Static,
    Threshold,
    Variable,
)  # fmt: skip
from ivm.hydration.replay import needs, replay
from ivm.operators.arrange import ArrangeOperator, OutputOperator, StaticOperator
from ivm.operators.asof import AsOfOperator
from ivm.operators.delta_join import Course, DeltaJoinOperator
from ivm.operators.join import JoinOperator, Side
from ivm.operators.linear import (
    ConcatOperator,
    ConsolidateOperator,
    ErrorsOperator,
    FlatMapOperator,
    InputOperator,
    NegateOperator,
    ProjectOperator,
    SourceOperator,
)  # fmt: skip
from ivm.operators.lock import LockOperator
from ivm.operators.loop import (
    DelayedOperator,
    DelayOperator,
    EnterOperator,
    FeedbackOperator,
    LeaveOperator,
    OverflowOperator,
    VariableOperator,
)  # fmt: skip
from ivm.operators.reduce import ReduceOperator
from ivm.operators.threshold import ThresholdOperator
from ivm.runtime.context import Core
from ivm.runtime.scheduler import Operator, Scope, Watched
from ivm.time import all_bits, check_ordinal
from ivm.trace.batch import Words, address
from ivm.trace.pages import small_pages


class Network:
    """Nodes by their names, each with its operator, and how many use it from outside."""

    def __init__(self, arena: Arena | None, cancel: threading.Event | None, once: bool) -> None:
        """``once``: it is hydrated once and thrown away, so that all of its times are one."""
        small_pages()
        self._core = Core(lambda: self.nbytes, lambda: self._values)
        self._core.fuel = self._core.passing = once
        self._core.refresh = self.refresh_arena
        if cancel is not None:
            self._core.cancel = cancel
        self._root = Scope(self._core, None)
        if once:
            self._root.members = Watched(self._core)
        self._scopes: dict[ScopeId, Scope] = {}
        self._operators: dict[NodeId, Operator] = {}
        self._specs: dict[NodeId, NodeSpec] = {}
        self._users: dict[NodeId, int] = {}
        self._enters: dict[tuple[NodeId, int], EnterOperator] = {}
        self._dormant: list[Operator] = []
        self._ids = count(1)
        self._rounds = 0
        self._arena = arena
        self._cell = np.zeros(2, np.int64)
        self._descriptors: list[Words] = []
        self._merged_before = 0
        self.refresh_arena()

    @property
    def nbytes(self) -> int:
        """Bytes that it holds, values of its own too."""
        own = self._arena is not None and self._arena.parent is not None
        return self._root.size + (self._values if own else 0)

    @property
    def _values(self) -> int:
        return 0 if self._arena is None else self._arena.byte_size

    # -- building -----------------------------------------------------------------------------------------------

    def scope(
        self, parent: ScopeId | None = None, limit: int | None = None, return_at_limit: bool = False, stride: int = 0,
        width: int | None = None,
    ) -> ScopeId:  # fmt: skip
        """A new loop inside ``parent``. After ``limit`` rounds it ends with ``return_at_limit``, and where a variable
        of it has an Overflow; else what depends on it fails with 54001. ``stride``: the rounds of each priority, whose
        limit it is then; 0: there are none. ``width``: the bits of its round. 0A000 when times have no room for it."""
        above = self._root if parent is None else self._scopes[parent]
        scope = Scope(self._core, above, limit, return_at_limit, stride, width)
        bits = all_bits(scope.shape)
        if bits > self._rounds:
            check_ordinal(self._core.newest, bits)
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
        """Says what the variable is in the next round. Both are of one scope and still dormant."""
        operator = self._find(variable)
        assert isinstance(operator, VariableOperator)
        assert operator.body is None, "a variable has one body"
        source = self._inside(body, operator.scope)
        operator.body = source
        self._dormant.append(FeedbackOperator(self._core, operator.scope, source, operator))

    def _render(self, spec: NodeSpec) -> Operator:
        core = self._core
        match spec:
            case Input(width, diff_width):
                return InputOperator(core, self._root, width, diff_width)
            case Constant(width, rows):
                matrix = np.array(rows, np.int64).reshape(len(rows), width)
                return SourceOperator(core, self._root, matrix, np.ones(len(rows), np.int64))
            case Rows(matrix, diffs):
                return SourceOperator(core, self._root, matrix, diffs)
            case Scan(version, at):
                return SourceOperator(core, self._root, *version.rows_at(at))
            case Static(version, at):
                return StaticOperator(core, self._root, version, at)
            case Variable(scope, width):
                return VariableOperator(core, self._scopes[scope], width)
            case Project(node, gather):
                source = self._find(node)
                return ProjectOperator(core, source.scope, source, gather)
            case FlatMap(node, function):
                source = self._find(node)
                return FlatMapOperator(core, source.scope, source, function)
            case Errors(node):
                source = self._failing(node)
                return ErrorsOperator(core, source.scope, source)
            case Concat(nodes):
                inner = self._innermost(nodes)
                return ConcatOperator(core, inner, [self._inside(node, inner) for node in nodes])
            case Negate(node):
                source = self._find(node)
                return NegateOperator(core, source.scope, source)
            case Consolidate(node):
                source = self._find(node)
                return ConsolidateOperator(core, source.scope, source)
            case Arrange(node, gather, key_width, order):
                source = self._find(node)
                return ArrangeOperator(core, source.scope, source, gather, key_width, self._order(order))
            case Join(left, right, gather):
                inner = self._innermost((left, right))
                return JoinOperator(core, inner, self._side(left, inner), self._side(right, inner), gather)
            case AsOf(left, right):
                inner = self._innermost((left, right))
                return AsOfOperator(core, inner, self._arranged(left), self._arranged(right), spec)
            case DeltaJoin(paths):
                inner = self._innermost(spec.nodes)
                courses = [Course(i, path, self._sides(path, inner)) for i, path in enumerate(paths)]
                return DeltaJoinOperator(core, inner, courses, len(paths[0].gather.words))
            case Lock(left, right):
                inner = self._innermost((left, right))
                return LockOperator(core, inner, self._arranged(left), self._arranged(right), spec)
            case Threshold(node, keep):
                source = self._arranged(node)
                return ThresholdOperator(core, source.scope, source, keep)
            case Reduce(node, reducer):
                source = self._arranged(node)
                return ReduceOperator(core, source.scope, source, reducer)
            case Delay(node):
                source = self._find(node)
                return DelayOperator(core, source.scope, source, spec)
            case Leave(node):
                source = self._find(node)
                assert source.scope.parent is not None, "only a loop can be left"
                leave = LeaveOperator(core, source.scope.parent, source)
                self._dormant.append(leave.tap)
                return leave
            case Overflow(node):
                variable = self._find(node)
                assert isinstance(variable, VariableOperator)
                assert variable.scope.parent is not None
                return OverflowOperator(core, variable.scope.parent, variable)
            case Output(node):
                return OutputOperator(core, self._root, self._find(node))
            case _:
                assert_never(spec)

    def _innermost(self, nodes: Sequence[NodeId]) -> Scope:
        return max((self._find(node).scope for node in nodes), key=lambda scope: scope.depth)

    def _inside(self, node: NodeId, scope: Scope) -> Operator:
        """The node's collection in a scope: itself, or what enters from outside."""
        operator = self._find(node)
        if operator.scope is scope:
            return operator
        assert scope.parent is not None, "a loop's collection is used outside without Leave"
        outside = self._inside(node, scope.parent)
        key = (node, id(scope))
        enter = self._enters.get(key)
        if enter is None:
            enter = self._enters[key] = EnterOperator(self._core, scope, outside)
            self._dormant.append(enter)
        return enter

    def _find(self, node: NodeId) -> Operator:
        """The operator of a node."""
        return self._operators[node]

    def _failing(self, node: NodeId) -> Operator:
        """The operator of a node whose error rows are wanted."""
        return self._operators[node]

    def _arranged(self, node: NodeId) -> Operator:
        """The node, which is an arrangement, with a spine from now on."""
        operator = self._find(node)
        assert operator.ARRANGED, f"{self._specs[node]} is not an arrangement"
        if isinstance(operator, ThresholdOperator | ReduceOperator) and operator.spine is None:
            held = replay(self._core, operator) if operator.rank >= 0 else None
            operator.arrange()
            assert operator.spine is not None
            if held is not None:
                operator.spine.insert(held)
                self._watch(operator)
        return operator

    def _watch(self, operator: Operator) -> None:
        """Lets an arrangement with users, outside of loops, be published from now on."""
        spine = operator.spine
        if spine is None or operator.scope.depth or operator.diff_width != 1 or isinstance(operator, StaticOperator):
            return
        if not self._users.get(operator.id):
            return
        spine.node = operator.id
        spine.watch = self._core.changed
        if not spine.changed:
            spine.changed = True
            self._core.changed.append(spine)

    def _side(self, node: NodeId, scope: Scope) -> Side:
        return Side(self._arranged(node), self._inside(node, scope))

    def _sides(self, path: Path, scope: Scope) -> list[Side]:
        """The start of a path, which wakes it, and what it looks up, which need not."""
        looked_up = [self._arranged(lookup.node) for stage in path.stages for lookup in stage]
        start = Side(self._find(path.start), self._inside(path.start, scope))
        return [start, *(Side(operator, operator) for operator in looked_up)]

    def _order(self, order: tuple[Order, ...]) -> Words | None:
        if all(o is Order.WORD for o in order):
            return None
        assert self._arena is not None, "an ordered arrangement needs an arena"
        return np.array([address(self._cell), *(o.value for o in order)], np.int64)

    def refresh_arena(self) -> None:
        """Lets ordered spines see values that were interned since."""
        if self._arena is not None:
            descriptor = self._arena.descriptor
            if not self._descriptors or self._descriptors[-1] is not descriptor:
                self._descriptors.append(descriptor)
                self._cell[0] = address(descriptor)
                self._cell[1] = len(descriptor)

    # -- releasing ----------------------------------------------------------------------------------------------

    def _release_unused(self, operator: Operator) -> None:
        """Frees it and what only it has used, but for what has users or consumers."""
        candidates = self._ancestors([operator])
        for other in self._operators.values():
            # What stands for an aliased arrangement reads the loop's variable but does not keep it.
            if isinstance(other, DelayedOperator) and id(other.source) in candidates:
                candidates[id(other)] = other
        others = [o for o in self._operators.values() if id(o) not in candidates or self._users[o.id]]
        live = self._ancestors(others)
        for candidate in candidates.values():
            if id(candidate) not in live:
                self._free(candidate)

    def _ancestors(self, operators: Sequence[Operator]) -> dict[int, Operator]:
        """The operators and everything that they read, through feedback too, by identity."""
        found: dict[int, Operator] = {}
        waiting = list(operators)
        while waiting:
            operator = waiting.pop()
            if id(operator) in found:
                continue
            found[id(operator)] = operator
            waiting += needs(operator)
            if isinstance(operator, VariableOperator) and operator.body is not None:
                waiting.append(operator.body)
            if isinstance(operator, LeaveOperator):
                waiting.append(operator.tap)
        return found

    def _free(self, operator: Operator) -> None:
        for source in operator.feeds():
            source.unlink(operator)
        for consumer in operator.consumers:
            if isinstance(consumer, FeedbackOperator | EnterOperator):
                self._free(consumer)
        if isinstance(operator, OverflowOperator):
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
        """Takes an empty loop out of its parent."""
        if scope.parent is not None and not scope.members:
            scope.parent.remove(scope)
            self._forget(scope.parent)
