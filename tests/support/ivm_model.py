"""The engine's oracle: evaluates a graph from scratch, collection by collection, as Counters of row tuples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

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
    Gather,
    Input,
    Join,
    Keep,
    Leave,
    Mapped,
    Negate,
    NodeId,
    NodeSpec,
    Output,
    Overflow,
    Path,
    Priority,
    Project,
    Reduce,
    Reduced,
    Reducer,
    Rows,
    ScopeId,
    Span,
    Threshold,
    Variable,
)
from ivm.rows import Words

Row = tuple[int, ...]
Collection = Counter[Row]


def gather(how: Gather, row: Row) -> Row | None:
    """The naive twin of the gather kernel."""
    if any(row[word] >> bit & 1 for word, bit in how.drop_if):
        return None
    out = [0 if word < 0 else row[word] for word in how.words]
    for word, bit, target, to in how.bits:
        out[target] |= (row[word] >> bit & 1) << to
    return tuple(out)


def clean(collection: Mapping[Row, int]) -> Collection:
    return Counter({row: diff for row, diff in collection.items() if diff})


@dataclass(frozen=True)
class Loop:
    """The oracle's state of a scope."""

    bodies: dict[NodeId, NodeId]
    limit: int


def _by_key(rows: Collection, width: int) -> dict[Row, list[tuple[Row, int]]]:
    found: dict[Row, list[tuple[Row, int]]] = {}
    for row, diff in rows.items():
        found.setdefault(row[:width], []).append((row, diff))
    return found


class Model:
    """Specs by node, and the contents of Inputs. ``value(node)`` recomputes everything that the node depends on."""

    def __init__(self) -> None:
        self.specs: dict[NodeId, NodeSpec] = {}
        self.loops: dict[ScopeId, Loop] = {}
        self.scope_of: dict[NodeId, ScopeId | None] = {}
        self.parent: dict[ScopeId, ScopeId | None] = {}
        self.inputs: dict[NodeId, Collection] = {}
        self.round_of: dict[ScopeId, int] = {}

    def value(self, node: NodeId) -> Collection:
        return self._value(node, {}, {})

    def _value(self, node: NodeId, variables: dict[NodeId, Collection], memo: dict[NodeId, Collection]) -> Collection:
        if node not in memo:
            memo[node] = clean(self._compute(node, variables, memo))
        return memo[node]

    def _compute(
        self, node: NodeId, variables: dict[NodeId, Collection], memo: dict[NodeId, Collection]
    ) -> Mapping[Row, int]:
        def of(other: NodeId) -> Collection:
            return self._value(other, variables, memo)

        match self.specs[node]:
            case Input():
                return self.inputs[node]
            case Constant(_, rows):
                return Counter(rows)
            case Rows(rows, diffs):
                return Counter(dict(zip(map(tuple, rows.tolist()), diffs.tolist(), strict=True)))
            case Variable():
                return variables[node]
            case Project(source, how):
                return _mapped(of(source), how)
            case FlatMap(source, function):
                total: Collection = Counter()
                for row, diff in of(source).items():
                    mapped = function(np.array([row], np.int64).reshape(1, -1))
                    for i, out in enumerate(mapped.rows.tolist()):
                        weight = 1 if mapped.weights is None else int(mapped.weights[i, 0])
                        total[tuple(out)] += diff * weight
                return total
            case Errors(source):
                return self._errors(source, of)
            case Concat(nodes):
                total = Counter()
                for other in nodes:
                    for row, diff in of(other).items():
                        total[row] += diff
                return total
            case Negate(source):
                return {row: -diff for row, diff in of(source).items()}
            case Consolidate(source) | Output(source):
                return of(source)
            case Arrange(source, how, _, _):
                return _mapped(of(source), how)
            case Join(left, right, how):
                return self._join(left, right, how, of)
            case AsOf() as spec:
                return self._asof(spec, of)
            case DeltaJoin(paths):
                first, *others = [_combined(path, of) for path in paths]
                assert all(clean(other) == clean(first) for other in others), "paths of one join say the same"
                return first
            case Threshold(source, keep):
                return {row: 1 if keep is Keep.DISTINCT else diff for row, diff in of(source).items() if diff > 0}
            case Reduce(source, reducer):
                return self._reduce(source, reducer, of)[0]
            case Delay():
                return self._delay(node, of)
            case Leave(source):
                return self._leave(source, variables)
            case Overflow(source):
                return self._leave(source, variables, overflow=True)
        raise AssertionError(self.specs[node])

    def _delay(self, node: NodeId, of) -> Collection:  # type: ignore[no-untyped-def]
        """The rows whose priority's round has been reached."""
        spec, scope = self.specs[node], self.scope_of[node]
        assert isinstance(spec, Delay)
        assert scope is not None
        now = self.round_of[scope]
        rows = of(spec.input)
        return Counter({row: n for row, n in rows.items() if priority(spec, row[spec.word]) * spec.stride <= now})

    def key_width(self, node: NodeId) -> int:
        match self.specs[node]:
            case Arrange(_, _, key_width, _):
                return key_width
            case Threshold(source, _) | Reduce(source, _):
                return self.key_width(source)
        raise AssertionError(node)

    def _join(self, left: NodeId, right: NodeId, how: Gather, of) -> Collection:  # type: ignore[no-untyped-def]
        k = self.key_width(left)
        total: Collection = Counter()
        groups = _by_key(of(right), k)
        for a, x in of(left).items():
            for b, y in groups.get(a[:k], ()):
                row = gather(how, a + b[k:])
                if row is not None:
                    total[row] += x * y
        return total

    def _asof(self, spec: AsOf, of) -> Collection:  # type: ignore[no-untyped-def]
        k, p = self.key_width(spec.left), spec.prefix
        total: Collection = Counter()
        groups = _by_key(of(spec.right), k)
        for a, x in of(spec.left).items():
            found = [
                b for b, y in groups.get(a[:k], ())
                if y > 0 and (b[:p] < a[:p] or (b[:p] == a[:p] and not spec.strict))
            ]  # fmt: skip
            last = max((b[:p] for b in found), default=())
            match = min((b for b in found if b[:p] == last), default=spec.none)
            row = None if match is None else gather(spec.gather, a + match[k:])
            if row is not None:
                total[row] += x
        return total

    def _reduce(self, source: NodeId, reducer: Reducer, of) -> tuple[Collection, Collection]:  # type: ignore[no-untyped-def]
        k = self.key_width(source)
        groups: dict[Row, list[tuple[Row, int]]] = {}
        for row, diff in sorted(of(source).items()):
            groups.setdefault(row[:k], []).append((row[k:], diff))
        out: Collection = Counter()
        wrong: Collection = Counter()
        for key, group in groups.items():
            members = group
            if reducer.limit is not None:
                members = []
                for val, diff in group:
                    if diff > 0 and sum(d for _, d in members) < reducer.limit:
                        members.append((val, diff))
            if not members:
                continue
            n = len(members)
            vals = np.array([val for val, _ in members], np.int64).reshape(n, -1 if len(members[0][0]) else 0)
            reduced = reducer(
                np.array([key], np.int64).reshape(1, k), np.array([0, n]), vals,
                np.array([[diff] for _, diff in members], np.int64),
            )  # fmt: skip
            for val in reduced.vals.tolist():
                out[key + tuple(val)] += 1
            if reduced.errors is not None:
                for error in reduced.errors.tolist():
                    wrong[tuple(error)] += 1
        return out, wrong

    def _errors(self, source: NodeId, of) -> Collection:  # type: ignore[no-untyped-def]
        match self.specs[source]:
            case Reduce(given, reducer):
                return self._reduce(given, reducer, of)[1]
            case FlatMap(given, function):
                total: Collection = Counter()
                for row, diff in of(given).items():
                    mapped = function(np.array([row], np.int64).reshape(1, -1))
                    if mapped.errors is not None:
                        for error in mapped.errors.tolist():
                            total[tuple(error)] += diff
                return total
        raise AssertionError(source)

    def _leave(self, source: NodeId, outer: dict[NodeId, Collection], overflow: bool = False) -> Collection:
        """A loop's collection in its last round; ``overflow``: the changes that the variable would still get after
        it."""
        scope = self.scope_of[source]
        assert scope is not None
        loop = self.loops[scope]
        variables = dict(outer)
        for variable in loop.bodies:
            variables[variable] = Counter()
        waits = any(isinstance(s, Delay) and self.scope_of[n] == scope for n, s in self.specs.items())
        for round_ in range(loop.limit):
            self.round_of[scope] = round_
            memo: dict[NodeId, Collection] = {}
            following = {v: self._value(body, variables, memo) for v, body in loop.bodies.items()}
            ended = not waits and all(following[v] == variables[v] for v in loop.bodies)
            if ended or round_ == loop.limit - 1:
                if not overflow:
                    return self._value(source, variables, memo)
                change = Counter(following[source])
                change.subtract(variables[source])
                return clean(change)
            variables = {**variables, **following}
        raise AssertionError("unreachable")


def priority(spec: Delay, word: int) -> int:
    """A row's priority, from its word."""
    match spec.priority:
        case Priority.VALUE:
            return max(word, 0)
        case Priority.LENGTH:
            return max(word, 0).bit_length()
        case Priority.INVERSE:
            return 63 - max(word, 0).bit_length()


def _combined(path: Path, of: Callable[[NodeId], Collection]) -> Collection:
    """The rows that a delta join's path defines, by nested loops over all inputs."""
    partial = list(of(path.start).items())
    for stage in path.stages:
        extended = [((), row, diff) for row, diff in partial]
        for lookup in stage:
            extended = [
                (found or other[len(lookup.key) : len(lookup.key) + 1] * (len(stage) > 1), row + other, diff * times)
                for found, row, diff in extended
                for other, times in of(lookup.node).items()
                if other[: len(lookup.key)] == tuple(row[k] for k in lookup.key)
                and _in_span(lookup.span, row, other[len(lookup.key) :])
                and (not found or found == other[len(lookup.key) : len(lookup.key) + 1])
            ]
        partial = [(row, diff) for _, row, diff in extended]
    total: Collection = Counter()
    for row, diff in partial:
        out = gather(path.gather, row)
        if out is not None:
            total[out] += diff
    return total


def _in_span(span: Span | None, row: Row, rest: Row) -> bool:
    if span is None:
        return True
    lower, upper, reach = (
        None if bound is None else (row[bound.word], bound.strict) for bound in (span.lower, span.upper, span.reach)
    )
    return (
        (lower is None or lower[0] < rest[0] or (lower[0] == rest[0] and not lower[1]))
        and (upper is None or rest[0] < upper[0] or (upper[0] == rest[0] and not upper[1]))
        and (reach is None or reach[0] < rest[1] or (reach[0] == rest[1] and not reach[1]))
    )


def _mapped(collection: Collection, how: Gather) -> Collection:
    total: Collection = Counter()
    for row, diff in collection.items():
        out = gather(how, row)
        if out is not None:
            total[out] += diff
    return total


@dataclass(frozen=True)
class Twist:
    """A test's row function: drops, doubles or weighs some rows, and fails on some."""

    drop: int
    fail: int
    weigh: int
    out_width: int = 2
    diff_width: int = 1

    def __call__(self, rows: Words) -> Mapped:
        total = rows.sum(axis=1)
        good = np.nonzero((total % 5 != self.drop) & (total % 7 != self.fail))[0]
        bad = np.nonzero(total % 7 == self.fail)[0]
        twice = np.repeat(good, np.where(rows[good, 0] % 3 == 0, 2, 1))
        out = rows[twice].copy()
        out[:, 1] = (out[:, 1] + np.arange(len(twice)) * 0 + self.weigh) % 6
        weights = np.where(out[:, :1] % 2 == 0, self.weigh, 1)
        return Mapped(out, twice, weights, (100 + total[bad]).reshape(-1, 1), bad)


@dataclass(frozen=True)
class Count:
    """Rows and their total count; fails on groups whose total is 3."""

    out_width: int = 1
    limit: int | None = None

    def __call__(self, keys: Words, offsets: Words, vals: Words, diffs: Words) -> Reduced:
        assert (np.diff(offsets) > 0).all()
        sums = np.add.reduceat(diffs[:, 0], offsets[:-1]) if len(keys) else np.empty(0, np.int64)
        wrong = np.nonzero(sums == 3)[0]
        good = np.nonzero(sums != 3)[0]
        return Reduced(good, sums[good].reshape(-1, 1) % 11, (sums[wrong] * 0 + 7).reshape(-1, 1), wrong)


@dataclass(frozen=True)
class Least:
    """The least value, by a scan that stops at it."""

    out_width: int = 1
    limit: int | None = 1

    def __call__(self, keys: Words, offsets: Words, vals: Words, diffs: Words) -> Reduced:
        assert (diffs > 0).all()
        return Reduced(np.arange(len(keys)), vals[offsets[:-1], :1])


@dataclass(frozen=True)
class Two:
    """The first two rows with multiplicity, whatever they are."""

    out_width: int = 1
    limit: int | None = 2

    def __call__(self, keys: Words, offsets: Words, vals: Words, diffs: Words) -> Reduced:
        segment, out = [], []
        for i in range(len(keys)):
            chosen = np.repeat(vals[offsets[i] : offsets[i + 1], 0], diffs[offsets[i] : offsets[i + 1], 0])[:2]
            segment += [i] * len(chosen)
            out += chosen.tolist()
        return Reduced(np.array(segment, np.int64), np.array(out, np.int64).reshape(-1, 1))


@dataclass(frozen=True)
class Members:
    """All values with a positive count, once, and the group's size: an output as large as the group."""

    out_width: int = 2
    limit: int | None = None

    def __call__(self, keys: Words, offsets: Words, vals: Words, diffs: Words) -> Reduced:
        segment = np.repeat(np.arange(len(keys)), np.diff(offsets))
        kept = np.nonzero(diffs[:, 0] > 0)[0]
        sizes = np.diff(offsets)[segment[kept]]
        return Reduced(segment[kept], np.stack([vals[kept, 0], sizes], axis=1).astype(np.int64))
