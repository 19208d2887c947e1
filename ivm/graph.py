"""The frozen node specs of a dataflow, and the two kinds of functions that they call.

A *collection* carries updates (row, time, diff); an *arrangement* is a collection that is kept, sorted by key and
value. Rows are int64 matrices. A node's scope (loop) follows from its inputs: it is the innermost of their scopes, and
inputs from enclosing scopes enter it implicitly (their times gain a round 0). State lives in the operator that renders
a spec, never here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, NewType, Protocol, runtime_checkable

import numpy as np

from ivm.rows import Words

if TYPE_CHECKING:
    from ivm.trace.ordered import Ordered
    from ivm.trace.trace import Version

NodeId = NewType("NodeId", int)
ScopeId = NewType("ScopeId", int)


@dataclass(frozen=True, slots=True)
class Gather:
    """Moves words and null bits from an input row to an output row, and drops rows where a bit is set.

    ``words[k]`` is the input word that output word k copies, -1 for zero. ``bits`` holds
    (input word, input bit, output word, output bit): the output bit is set when the input bit is.
    ``drop_if`` holds (input word, bit): a row with any of these bits set is dropped (NULL join keys).
    """

    words: tuple[int, ...]
    bits: tuple[tuple[int, int, int, int], ...] = ()
    drop_if: tuple[tuple[int, int], ...] = ()


@dataclass(slots=True)
class Mapped:
    """What a ``RowFunction`` returns.

    ``rows`` int64[m, out_width]; ``source`` int64[m], the input row each came from (None: one for one, in order);
    ``weights`` int64[m, diff_width], by which the input's diff is multiplied (None: all one);
    ``errors`` int64[e, 1] and ``error_source`` int64[e]: the rows whose expression failed, as dictionary ids.
    """

    rows: Words
    source: Words | None = None
    weights: Words | None = None
    errors: Words | None = None
    error_source: Words | None = None


class RowFunction(Hashable, Protocol):
    """A pure function of rows, each on its own; equal functions compare equal."""

    @property
    def out_width(self) -> int: ...
    @property
    def diff_width(self) -> int: ...
    def __call__(self, rows: Words, /) -> Mapped: ...


@runtime_checkable
class FormulaFunction(RowFunction, Protocol):
    """A row function that may also be expressible as a formula."""

    def formula(self) -> Words | None:
        """The formula (``ivm.kernels.formula``) that yields the same rows and weights as long as no row fails, or
        None."""
        ...


@dataclass(slots=True)
class Reduced:
    """What a ``Reducer`` returns: ``segment`` int64[r] and ``vals`` int64[r, out_width], one row each with diff 1;
    ``error_segment`` int64[e] and ``errors`` int64[e, 1] for the groups whose aggregate failed."""

    segment: Words
    vals: Words
    errors: Words | None = None
    error_segment: Words | None = None


class Reducer(Hashable, Protocol):
    """A pure function of groups. Segment i is ``vals[offsets[i]:offsets[i+1]]``, accumulated at one time: distinct
    values in the arrangement's order with non-zero ``diffs`` int64[m, diff_width], at least one of them.

    Total: at times that are not final it may see negative diffs, and must not raise.
    ``limit``: how many rows of positive diff from the start suffice, counting multiplicity (None: all of them);
    the engine then stops a group's scan there and such a segment has positive diffs only.
    """

    @property
    def out_width(self) -> int: ...
    @property
    def limit(self) -> int | None: ...
    def __call__(self, keys: Words, offsets: Words, vals: Words, diffs: Words, /) -> Reduced: ...


class Rank(Enum):
    """How a window selects rows of a group."""

    ROWS = 0
    CONTINUOUS = 1
    DISCRETE = 2
    PEERS = 3
    GROUPS = 4


@dataclass(frozen=True, slots=True)
class Window:
    """The rows, counted with their diffs, of ranks ``first`` (from 0) up to ``last`` (excluded; None: to the end), or
    those that determine the continuous or discrete percentile of ``fraction``.

    PEERS, GROUPS: rows whose first ``words`` words are equal are peers. The window holds the rows whose peers are
    preceded by fewer than ``last`` rows (PEERS) or fewer than ``last`` groups of peers (GROUPS).
    """

    rank: Rank = Rank.ROWS
    first: int = 0
    last: int | None = None
    fraction: float = 0.0
    words: int = 0


@dataclass(frozen=True, slots=True)
class Picks:
    """The parts of a group that a reducer reads. ``flagged``: values whose first word is not 0 sort after the others
    (the arrangement orders by that word first) and do not count. ``changes``: each output row depends on one value
    only, so only the values that a change touches are passed, before and after it."""

    windows: tuple[Window, ...]
    flagged: bool = False
    changes: bool = False


@runtime_checkable
class PickingReducer(Reducer, Protocol):
    """A reducer that reads a few rows of each group, which are found by search outside of loops.

    Its ``diffs`` are int64[m, 4]: the value's multiplicity in the window, the window's number, the value's rank, and
    how many rows of the group count (any number above ``last`` for a single window from rank 0). A flagged group in
    which no row counts has one row of zeros with window number -1.
    """

    @property
    def picks(self) -> Picks: ...


@dataclass(slots=True)
class Changes:
    """What changes in a group: ``gone`` and ``came`` int64[m, out_width], the old and the new rows; ``errors_gone`` and
    ``errors_came`` int64[e, 1]. Equal rows on both sides cancel out."""

    gone: Words
    came: Words
    errors_gone: Words
    errors_came: Words


@runtime_checkable
class OrderedReducer(PickingReducer, Protocol):
    """A reducer of whole groups that can also find what changes in a large one by searching it."""

    @property
    def least(self) -> int:
        """The number of rows from which a group is searched."""
        ...

    def changes(self, before: Ordered, after: Ordered, updates: Words, diffs: Words, seen: Seen) -> Changes:
        """What the updates (values int64[n, width], in order, and their diffs) change between two times."""
        ...


Seen = dict[int, tuple[object, dict[object, object]]]
"""What a reducer knows of batches, by their identity: (the batch, what it knows)."""


@runtime_checkable
class WatchedReducer(Reducer, Protocol):
    """A reducer that may take long for one group; it checks between groups whether the pass should end."""

    def watched(self, look: Callable[[], object]) -> Reducer:
        """The same reducer, calling ``look`` before each group; exceptions from ``look`` propagate."""
        ...


@runtime_checkable
class FormulaReducer(Reducer, Protocol):
    """A reducer of groups without values that may also be expressible as a formula of their sums."""

    def formula(self) -> Words | None:
        """The formula that turns a group's sums (one diff per word) into its row and keeps the groups that have one, or
        None."""
        ...


@dataclass(frozen=True, slots=True)
class CountRows:
    """The reducer of count(*) by key: how many rows the group has, where that is positive.

    Outside loops, over an arrangement without values, a kernel does it.
    """

    out_width: ClassVar[int] = 1
    limit: ClassVar[int | None] = None

    def __call__(self, keys: Words, offsets: Words, vals: Words, diffs: Words, /) -> Reduced:
        counts = np.add.reduceat(diffs[:, 0], offsets[:-1]) if len(keys) else np.empty(0, np.int64)
        segment = np.flatnonzero(counts > 0)
        return Reduced(segment, counts[segment].reshape(-1, 1))


@dataclass(frozen=True, slots=True)
class FirstWords:
    """The reducer that gives a group's first value, its words in the order of ``words``, a permutation; each
    complemented where specified. In a loop that is not nested, a kernel does it."""

    words: tuple[int, ...]
    complement: bool = False
    limit: ClassVar[int | None] = 1

    @property
    def out_width(self) -> int:
        return len(self.words)

    def __call__(self, keys: Words, offsets: Words, vals: Words, diffs: Words, /) -> Reduced:
        out = vals[offsets[:-1]][:, list(self.words)]
        return Reduced(np.arange(len(keys)), ~out if self.complement else out)


@dataclass(frozen=True, slots=True, eq=False)
class Spec:
    """What a node is. ``ivm.specs`` finds its inputs from its fields."""


class Linear(Spec):
    """Works on each row alone: what it makes of parts of its inputs adds up to what it makes of the whole."""

    __slots__ = ()


class Unchanged(Linear):
    """Its rows are its inputs' rows, with other times or diffs; so are their widths. It reads no words that its
    parameters do not name."""

    __slots__ = ()


class Keyed(Spec):
    """Reads arrangements by one key, and works on each key alone."""

    __slots__ = ()


class Arranged(Keyed):
    """Is itself an arrangement, by the key of the one it reads."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Input(Spec):
    """A source of updates, fed from outside; at depth 0."""

    width: int
    diff_width: int = 1


@dataclass(frozen=True, slots=True)
class Constant(Spec):
    """Rows that hold at every time, each with diff 1."""

    width: int
    rows: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Project(Linear):
    """Each row through a ``Gather``."""

    input: NodeId
    gather: Gather


@dataclass(frozen=True, slots=True)
class FlatMap(Linear):
    """Each row through a ``RowFunction``: filter, compute, expand, weigh."""

    input: NodeId
    function: RowFunction


@dataclass(frozen=True, slots=True)
class Errors(Linear):
    """The error rows (width 1) of a FlatMap or Reduce node."""

    input: NodeId


@dataclass(frozen=True, slots=True)
class Concat(Unchanged):
    """The sum of collections of one width."""

    inputs: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class Negate(Unchanged):
    """The collection with every diff negated."""

    input: NodeId


@dataclass(frozen=True, slots=True)
class Switch(Unchanged):
    """A view's collection, of which the definition has been exchanged while its readers stay. Outside of loops."""

    input: NodeId


@dataclass(frozen=True, slots=True)
class Consolidate(Unchanged):
    """The same collection, with the diffs of equal updates of one step added up."""

    input: NodeId


@dataclass(frozen=True, slots=True)
class Apart(Spec):
    """A consolidated collection of a query that runs once: each row as often as its diff says, with a number of its own
    as one more word. ``name``: nodes of different names stay two, since what reads them is computed anew."""

    input: NodeId
    name: int


class Order(Enum):
    """How a word of an arrangement's rows compares: as an integer, or by the bytes whose id it is."""

    WORD = 0
    BYTES = 1
    BYTES_DESCENDING = 2


@dataclass(frozen=True, slots=True)
class Arrange(Spec):
    """The collection, gathered to [key | val] and kept sorted. ``order`` is empty (all WORD) or one for each word."""

    input: NodeId
    gather: Gather
    key_width: int
    order: tuple[Order, ...] = ()


@dataclass(frozen=True, slots=True)
class Join(Keyed):
    """Pairs of rows with equal keys of two arrangements, gathered from [key | left val | right val]."""

    left: NodeId
    right: NodeId
    gather: Gather


@dataclass(frozen=True, slots=True)
class AsOf(Keyed):
    """Each left row with its match in the right arrangement, gathered from [key | left val | right val].

    Both arrangements begin with the same ``prefix`` words in one order: the key, then a row's *point*. The match is the
    first of the right rows of the key at the greatest point not after the left row's (``strict``: before it). ``none``:
    the right row used where there is no match; None: such left rows are dropped. Outside of loops only.
    """

    left: NodeId
    right: NodeId
    gather: Gather
    prefix: int
    strict: bool
    none: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """A limit of a ``Span``: a word of what the path has bound so far. ``strict``: an equal word is outside."""

    word: int
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    """Which of the rows that begin with a lookup's key it takes: those whose next word lies between ``lower`` and
    ``upper``, and whose word after that is not less than ``reach``. None: no limit, as everywhere if all are None."""

    lower: Bound | None = None
    upper: Bound | None = None
    reach: Bound | None = None


@dataclass(frozen=True, slots=True)
class Lookup:
    """Where a path of a delta join looks up rows of one ``input``: in an arrangement of it, those that begin with the
    words ``key`` of what the path has bound so far, and lie in the ``span``.

    With a span the arrangement's own key ends with the word behind ``key``.
    """

    input: int
    node: NodeId
    key: tuple[int, ...]
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Path:
    """How the updates of one input become updates of a delta join.

    They come from ``start``, an arrangement or any other node, and are joined stage by stage with rows of the other
    inputs. An input may be looked up in two steps: its ids in one arrangement, then its rows in another by these ids.
    The bound row is [start's row | the row of each lookup, in order]; ``key`` and ``gather`` index its words. In a
    stage of several lookups the word after the key is the same for all: the smallest lookup proposes it, the others
    intersect.
    """

    start: NodeId
    stages: tuple[tuple[Lookup, ...], ...]
    gather: Gather

    @property
    def lookups(self) -> tuple[Lookup, ...]:
        """The lookups of all stages, in order."""
        return tuple(lookup for stage in self.stages for lookup in stage)

    @property
    def late(self) -> tuple[Lookup, ...]:
        """The second steps: lookups of inputs whose ids an earlier lookup found."""
        lookups = self.lookups
        return tuple(k for i, k in enumerate(lookups) if any(k.input == before.input for before in lookups[:i]))


@dataclass(frozen=True, slots=True)
class DeltaJoin(Spec):
    """Combinations of one row of each input, with no state but the inputs' own arrangements.

    Path i starts from input i, visits every other input, and defines the combinations completely. All arrangements of
    an input change in the same pass, and none is ordered by bytes.
    """

    paths: tuple[Path, ...]

    @property
    def spans(self) -> bool:
        """Whether any lookup has a span."""
        return any(lookup.span is not None for path in self.paths for lookup in path.lookups)


@dataclass(frozen=True, slots=True)
class Lock(Keyed):
    """Each left row [key | row] with the right rows that its key had when it arrived; later changes on the right do not
    affect it.

    Its rows are [left row | number of the lock | part | right row] (``ivm.kernels.lock``), arranged by the left row.
    They are primary data: ``name`` distinguishes nodes that must not share them. ``none``: the right row's words where
    there is no match. ``waiting``: nothing happens until ``Dataflow.load`` supplies its earlier contents. Outside of
    loops only.
    """

    left: NodeId
    right: NodeId
    name: int
    none: tuple[int, ...]
    waiting: bool = False


class Keep(Enum):
    """A threshold's function of a row's count c: 1 if c > 0, or max(c, 0)."""

    DISTINCT = "distinct"
    POSITIVE = "positive"


@dataclass(frozen=True, slots=True)
class Threshold(Arranged):
    """A function of each row's count, over an arrangement without values; itself an arrangement of the same layout."""

    input: NodeId
    keep: Keep


@dataclass(frozen=True, slots=True)
class Reduce(Arranged):
    """Each key's group through a ``Reducer``; itself an arrangement [key | out vals]."""

    input: NodeId
    reducer: Reducer


@dataclass(frozen=True, slots=True)
class Variable(Linear):
    """A loop's variable: empty at round 0, then at round r + 1 what ``connect``'s body is at round r."""

    scope: ScopeId
    width: int


class Priority(Enum):
    """How a row's priority follows from one of its words: the word itself; its bit length (0 if not positive), so that
    small words come first; or 63 minus the bit length, so that large ones do."""

    VALUE = 0
    LENGTH = 1
    INVERSE = 2


@dataclass(frozen=True, slots=True)
class Delay(Unchanged):
    """A loop's collection whose rows are introduced only at round priority · stride; before that, nothing sees them.

    Rows whose round would be past the loop's last come at the last round, or never if the loop returns at its limit.
    """

    input: NodeId
    word: int
    priority: Priority
    stride: int


@dataclass(frozen=True, slots=True)
class Wait(Unchanged):
    """Each update from the moment on that its row names in ``word``; until then nothing sees it. Outside of loops."""

    input: NodeId
    word: int


@dataclass(frozen=True, slots=True)
class Leave(Unchanged):
    """A loop's collection outside of the loop: its sum over all rounds."""

    input: NodeId


@dataclass(frozen=True, slots=True)
class Overflow(Linear):
    """Outside of a loop, how a variable's body differs after the last round that the loop's limit allows from the
    round before: empty if that variable had reached its fixpoint by then."""

    input: NodeId


@dataclass(frozen=True, slots=True)
class Output(Spec):
    """A collection kept for readers, key = the whole row, whose changes are drained after each step."""

    input: NodeId


@dataclass(frozen=True, slots=True, eq=False)
class Rows(Spec):
    """Rows that hold at every time, loaded once: rows int64[n, width], diffs int64[n]. Compared by identity."""

    rows: Words
    diffs: Words


@dataclass(frozen=True, slots=True, eq=False)
class Scan(Spec):
    """All rows of a published ``Version`` as of an ordinal, delivered once; compared by identity."""

    version: Version
    at: int


@dataclass(frozen=True, slots=True, eq=False)
class Static(Spec):
    """An arrangement with a published ``Version``'s contents as of an ordinal. It emits nothing; only the other side of
    a Join looks it up. Compared by identity."""

    version: Version
    at: int


PlainSpec = (
    Project | Errors | Concat | Negate | Consolidate | Apart | Arrange | Join | AsOf | DeltaJoin | Threshold | Delay
    | Wait | Leave | Overflow
)  # fmt: skip
"""Specs of plain data over other nodes: no functions, no rows and nothing of one dataflow. So plans may hold them."""

NodeSpec = PlainSpec | Switch | Input | Constant | FlatMap | Lock | Reduce | Variable | Output | Rows | Scan | Static
