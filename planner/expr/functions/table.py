"""The table of scalar functions: the form of an entry, and the decorators by which families add theirs.

An entry holds everything about a function: its types, NULL rule, volatility, whether it may raise, what the planner
may do with it, and its implementation. The families of functions are the modules of this folder; they import this
module. ``planner.expr.functions.library`` imports all families: to use the complete table, import ``FUNCTIONS`` and
``overloads`` from there.

To add a function, write it with a decorator in the module of its family. (Add a new module to the list in
``library.py``.) Operators are functions named by their symbol (``"||"``, ``"~~"`` is LIKE); prefix operators have one
argument. There are two calling conventions.

1. Per value, over *datums* (see ``planner/expr/scalar.py`` for each type's Python form)::

       @per_value("upper", (TEXT,), TEXT)
       def upper(value: str) -> str:
           return value.upper()

   The evaluator decodes the arguments, calls the implementation once per distinct combination of arguments (and
   memoises the result if the function is immutable), and encodes. Raise ``SqlError`` for a row that fails; return None
   for NULL. A strict function (the default) is never called with NULL; with ``strict=False`` NULL is passed as None.
   ``needs_site=True``: the first argument is the ``CallSite`` (context, types).

2. Vectorised, over words::

       @vectorised("+", (INT8, INT8), INT8)
       def add(site: CallSite, left: Words, right: Words) -> Words:
           total = left + right
           site.fail_where(overflows(left, right, total), SqlError("22003", "bigint out of range"))
           return total

   A strict implementation takes the ``Words`` of the rows without NULL (so ids are always valid) and returns ``Words``,
   or a ``Vector`` if it may return NULL. With ``strict=False`` it takes and returns ``Vector``. Argument arrays may be
   read-only and have stride 0 (constants): never write into them. Failing rows may have any word. ``total=True``: the
   function fails on no word, and 0 is a legal word of its argument types, so the evaluator runs it on NULL rows too
   (cheaper).

A function, of datums above all, may have a *vector form* too (``vector=``), which does the same for the words of many
rows, with the arguments of the second convention. It gives a ``Made``, and leaves rows that it does not cover, those
that fail among them, to the implementation; None: all rows. Few rows never get to it::

       @per_value("length", (TEXT,), INT4, vector=lambda site, ids: Made(characters(of_ids(ids, …))))
       def length(value: str) -> int: ...

A function that the engine can also compute has a formula rule (``planner/expr/functions/formula.py``)::

       vectorised("&", (INT8, INT8), INT8, total=True, formula=lambda f, a, b: f.bits_and(a, b))(…)

Both decorators return the Python function, so that several signatures can be stacked. Argument types are SqlTypes
without typmod or polymorphic markers (ANY, ANYELEMENT, ANYARRAY, …); ``site.args`` and ``site.result`` are the concrete
types of the call. For a function declared with NUMERIC the evaluator converts a numeric(p, s) argument to NUMERIC.

Keys: ``"+(int4,int4)"``. Functions with one entry for all types are keyed by their bare name (``key_is_name=True``):
``"is null"``, ``"is distinct from"``, ``"cast"``, ``"equality_class"``, ….
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, TypeVar, Unpack

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Mask, Words
from ivm.words import SqlType
from planner.expr.comparison import Comparison
from planner.expr.functions.formula import FormulaRule

if TYPE_CHECKING:
    from planner.expr.context import SessionFunctions
    from planner.expr.rows import RowBatch


class Polymorphic(Enum):
    """Polymorphic argument and result types, made concrete by each call; names and rules as in Postgres."""

    ANY = "any"
    ANYELEMENT = "anyelement"
    ANYARRAY = "anyarray"
    ANYNONARRAY = "anynonarray"
    ANYENUM = "anyenum"
    ANYCOMPATIBLE = "anycompatible"
    ANYCOMPATIBLEARRAY = "anycompatiblearray"
    ANYCOMPATIBLENONARRAY = "anycompatiblenonarray"
    ANYCOMPATIBLERANGE = "anycompatiblerange"
    ANYCOMPATIBLEMULTIRANGE = "anycompatiblemultirange"
    ANYRANGE = "anyrange"
    ANYMULTIRANGE = "anymultirange"


ANY: Final = Polymorphic.ANY
ANYELEMENT: Final = Polymorphic.ANYELEMENT
ANYARRAY: Final = Polymorphic.ANYARRAY
ANYNONARRAY: Final = Polymorphic.ANYNONARRAY
ANYENUM: Final = Polymorphic.ANYENUM
ANYCOMPATIBLE: Final = Polymorphic.ANYCOMPATIBLE
ANYCOMPATIBLEARRAY: Final = Polymorphic.ANYCOMPATIBLEARRAY
ANYCOMPATIBLENONARRAY: Final = Polymorphic.ANYCOMPATIBLENONARRAY
ANYCOMPATIBLERANGE: Final = Polymorphic.ANYCOMPATIBLERANGE
ANYCOMPATIBLEMULTIRANGE: Final = Polymorphic.ANYCOMPATIBLEMULTIRANGE
ANYRANGE: Final = Polymorphic.ANYRANGE
ANYMULTIRANGE: Final = Polymorphic.ANYMULTIRANGE

ArgumentType = SqlType | Polymorphic
Volatility = Literal["immutable", "settings", "stable", "volatile"]
"""Only "immutable" functions are folded and remembered. "settings" are those of Postgres's stable functions that depend
on TimeZone, DateStyle and IntervalStyle alone; "stable" ones depend on more (the clock, the catalog); "volatile" ones
run once for each row."""


class CallingConvention(Enum):
    """What an implementation takes: the datums of one row, or the words of whole columns."""

    PER_VALUE = "per value"
    VECTORISED = "vectorised"


class Raises(Enum):
    """Which errors a function can raise on a row whose arguments have not failed."""

    NEVER = "never"
    TYPMOD = "typmod"
    """Only because a value does not fit the result type's typmod: never where it has none."""
    OVERFLOW = "overflow"
    """Only 22003, that the result type (an integer) is out of range."""
    ANYTHING = "anything"


class CallSite:
    """What an implementation sees of the call that it computes: the concrete types of its arguments and its result, and
    the number of rows. ``rows``: which of the batch's rows the implementation got; None: all. ``failed``: the rows that
    it has made fail."""

    __slots__ = ("_batch", "_rows", "args", "context", "count", "failed", "result")

    def __init__(
        self, batch: RowBatch, args: tuple[SqlType, ...], result: SqlType, count: int, rows: Words | None = None
    ) -> None:
        self._batch = batch
        self._rows = rows
        self.args = args
        self.result = result
        self.count = count
        self.context = batch.context
        self.failed: list[Words] = []

    def with_args(self, args: tuple[SqlType, ...]) -> CallSite:
        """The same call with arguments of other types."""
        return CallSite(self._batch, args, self.result, self.count, self._rows)

    def part(self, rows: Words) -> CallSite:
        """The same call on these rows only (indices among those of this one)."""
        within = rows if self._rows is None else self._rows[rows]
        return CallSite(self._batch, self.args, self.result, len(rows), within)

    def fail(self, rows: Words, error: SqlError) -> None:
        """Makes these rows (indices among those that the implementation got) fail."""
        if len(rows):
            self.failed.append(rows)
            self._batch.failed.append((rows if self._rows is None else self._rows[rows], error))

    def fail_where(self, mask: Mask, error: SqlError) -> None:
        """Makes the rows where ``mask`` holds fail."""
        if np.count_nonzero(mask):
            self.fail(np.flatnonzero(np.broadcast_to(mask, self.count)), error)


@dataclass(frozen=True, slots=True)
class Made:
    """What a vector form gives: ``words`` and ``nulls`` as a ``Vector``'s; ``rest``: the rows that it leaves to the
    implementation, whatever their words are (None: none of them)."""

    words: Words
    nulls: Mask | None = None
    rest: Mask | None = None


VectorForm = Callable[..., Made | None]
"""(CallSite, for each argument the Words or, if the function is not strict, the Vector) → Made; None: it covers none of
these rows. Words of a constant have stride 0. May raise ``storage.text_columns.TooLarge``."""


@dataclass(frozen=True, slots=True)
class Function:
    """A scalar function. See the module docstring for what an implementation takes and returns."""

    key: str
    name: str
    args: tuple[ArgumentType, ...]
    result: ArgumentType
    implementation: Callable[..., Any]
    convention: CallingConvention
    needs_site: bool = False
    """The implementation's first argument is the CallSite; always so if it is vectorised."""
    total: bool = False
    """Vectorised: it never fails on any word, and 0 is a legal word of its argument types."""
    needs_assignment: bool = False
    """Only of casts: the implementation's keyword ``assignment`` tells "assignment_cast" from "cast"."""
    strict: bool = True
    """NULL where an argument is NULL, without a call of the implementation."""
    makes_null: bool = True
    """Whether it may give NULL where no argument is NULL."""
    raises: Raises = Raises.ANYTHING
    volatility: Volatility = "immutable"
    variadic: bool = False
    """The last argument repeats, once or more."""
    internal: bool = False
    """Only the planner writes calls of it; SQL cannot name it."""
    comparison: Comparison | None = None
    """The comparison operator that it is."""
    commutative: bool = False
    """``f(a, b)`` and ``f(b, a)`` give the same word, or the same error."""
    follows: tuple[int, ...] = ()
    """For each argument, how the result moves with it alone: 1 never down as it grows, -1 never up, 0 in any way.
    (): not known."""
    clock: bool = False
    """It says what time it is."""
    only_draws: bool = False
    """Volatile: it does no more than draw a value, or tell one: it does not wait, lock, notify or set anything."""
    makes_row: bool = False
    """Its result is a row of the first argument's type that it has made, and not one of the arguments."""
    formula: FormulaRule | None = None
    """How the engine computes it (``planner.expr.functions.formula``); None: it cannot."""
    vector: VectorForm | None = None
    """How many rows are computed, if better than by ``implementation``; None: as few are."""

    @property
    def null_if_null_only(self) -> bool:
        """Whether the result is NULL exactly where an argument is NULL."""
        return self.strict and not self.makes_null


class Facts(TypedDict, total=False):
    """The fields of an entry that the decorators pass on."""

    strict: bool
    makes_null: bool
    raises: Raises
    volatility: Volatility
    variadic: bool
    internal: bool
    comparison: Comparison | None
    commutative: bool
    follows: tuple[int, ...]
    clock: bool
    only_draws: bool
    makes_row: bool
    formula: FormulaRule | None
    vector: VectorForm | None


FUNCTIONS: Final[dict[str, Function]] = {}
"""The entries of the families imported so far; ``planner.expr.functions.library`` has imported all."""
_BY_NAME: Final[dict[str, list[Function]]] = {}
_Implementation = TypeVar("_Implementation", bound=Callable[..., Any])


def overloads(name: str) -> tuple[Function, ...]:
    """The functions (and operators) of this name, including internal ones; empty if there are none."""
    return tuple(_BY_NAME.get(name, ()))


def type_key(type: ArgumentType) -> str:
    """A type as written in a key: Postgres's internal name; an array is its element type and ``[]``."""
    if isinstance(type, Polymorphic):
        return type.value
    if type.element is not None:
        return f"{type_key(type.element)}[]"
    return type.kind.value if type.named is None else type.named.name


def function_key(name: str, args: tuple[ArgumentType, ...]) -> str:
    """The key of a function by its declared argument types."""
    return f"{name}({','.join(type_key(a) for a in args)})"


def per_value(
    name: str,
    args: tuple[ArgumentType, ...],
    result: ArgumentType,
    *,
    needs_site: bool = False,
    key_is_name: bool = False,
    **facts: Unpack[Facts],
) -> Callable[[_Implementation], _Implementation]:
    """Adds a function of datums."""

    def decorate(implementation: _Implementation) -> _Implementation:
        key = name if key_is_name else function_key(name, args)
        register(Function(key, name, args, result, implementation, CallingConvention.PER_VALUE, needs_site, **facts))
        return implementation

    return decorate


def vectorised(
    name: str,
    args: tuple[ArgumentType, ...],
    result: ArgumentType,
    *,
    total: bool = False,
    key_is_name: bool = False,
    **facts: Unpack[Facts],
) -> Callable[[_Implementation], _Implementation]:
    """Adds a function of words."""
    if total:
        facts["raises"] = Raises.NEVER

    def decorate(implementation: _Implementation) -> _Implementation:
        key = name if key_is_name else function_key(name, args)
        register(Function(key, name, args, result, implementation, CallingConvention.VECTORISED, True, total, **facts))
        return implementation

    return decorate


def register(function: Function) -> None:
    """Adds a function to the table. Its key must be new."""
    assert function.key not in FUNCTIONS, f"function {function.key} is defined twice"
    FUNCTIONS[function.key] = function
    _BY_NAME.setdefault(function.name, []).append(function)


def session_of(site: CallSite) -> SessionFunctions:
    """The session that runs the statement. Raises 0A000 if there is none, as on Spark's executors."""
    return site.context.asked()


def indices(mask: Mask) -> Words:
    """The indices of the rows where a mask holds, int64."""
    return np.flatnonzero(mask)
