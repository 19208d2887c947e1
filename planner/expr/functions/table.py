"""The one table of scalar functions: name, types, null rule, volatility, implementation.

How to add a function: write it in a module ``planner/expr/functions/<family>.py``; all modules of the folder
are collected here.
Operators are functions named by their symbol (``"||"``, ``"~~"`` is LIKE); prefix operators have one argument.

1. One value at a time, over *datums* (see ``planner/expr/scalar.py`` for each type's Python form)::

       @per_value("upper", (TEXT,), TEXT)
       def upper(value: str) -> str:
           return value.upper()

   The evaluator decodes, calls it once per distinct combination of arguments (and remembers, if immutable), encodes.
   Raise ``SqlError`` for a row that fails, return None for NULL. Strict (the default): never called with NULL.
   ``strict=False``: NULL comes as None. ``needs_site=True``: the first argument is the ``Site`` (context, types).

2. Vectorised, over words::

       @vectorised("+", (INT8, INT8), INT8)
       def add(site: Site, left: Words, right: Words) -> Words:
           total = left + right
           site.fail_where(overflows(left, right, total), SqlError("22003", "bigint out of range"))
           return total

   Strict: takes ``Words`` of the rows without NULL (so ids are always valid), returns ``Words``, or a ``Vector`` where
   it makes NULLs. ``strict=False``: takes and returns ``Vector``. Argument arrays may be read-only and of stride 0
   (constants): never write into them. Failing rows get any word. ``total=True`` promises that it never fails and
   that 0 is a legal word, so that it is run on NULL rows too (cheaper).

Both decorators return the Python function, so they can be stacked for several signatures. Argument types: a SqlType
without typmod, or a polymorphic marker (ANY, ANYELEMENT, ANYARRAY, ...); ``site.args`` and ``site.result`` are the
concrete types of the call. ``variadic=True``: the last argument repeats, once or more.
A numeric(p, s) argument of a function declared with NUMERIC is brought to NUMERIC by the evaluator.
Only "immutable" functions are folded and remembered. "settings" are those of Postgres's stable ones that depend on
TimeZone, DateStyle and IntervalStyle alone; "stable" ones depend on more (the clock, the catalog); "volatile" ones run
once for each row.

Keys: ``"+(int4,int4)"``; functions that exist once for all types are keyed by their bare name: ``"is null"``,
``"is distinct from"``, ``"cast"``, ``"equality_class"``, ... (``key_is_name=True``).
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeVar

import numpy as np

import planner.expr.functions
from ivm.errors import SqlError
from ivm.rows import Mask, Vector, Words
from ivm.words import Kind, SqlType, Storage

if TYPE_CHECKING:
    from planner.expr.context import Context, SessionFunctions


class Polymorphic(Enum):
    """Argument and result types that a call makes concrete; Postgres's rules and names."""

    ANY = "any"
    ANYELEMENT = "anyelement"
    ANYARRAY = "anyarray"
    ANYNONARRAY = "anynonarray"
    ANYENUM = "anyenum"
    ANYCOMPATIBLE = "anycompatible"
    ANYCOMPATIBLEARRAY = "anycompatiblearray"


ANY: Final = Polymorphic.ANY
ANYELEMENT: Final = Polymorphic.ANYELEMENT
ANYARRAY: Final = Polymorphic.ANYARRAY
ANYNONARRAY: Final = Polymorphic.ANYNONARRAY
ANYENUM: Final = Polymorphic.ANYENUM
ANYCOMPATIBLE: Final = Polymorphic.ANYCOMPATIBLE
ANYCOMPATIBLEARRAY: Final = Polymorphic.ANYCOMPATIBLEARRAY

ArgumentType = SqlType | Polymorphic
Volatility = Literal["immutable", "settings", "stable", "volatile"]


class Form(Enum):
    """What an implementation takes: words of whole columns, or one row's datums."""

    VECTOR = "vector"
    VALUE = "value"


class Site(Protocol):
    """What an implementation sees of the call that it computes."""

    @property
    def args(self) -> tuple[SqlType, ...]:
        """The arguments' concrete types."""
        ...

    @property
    def result(self) -> SqlType: ...
    @property
    def count(self) -> int:
        """How many rows."""
        ...

    @property
    def context(self) -> Context: ...

    def fail(self, rows: Words, error: SqlError) -> None:
        """These rows (indices) fail."""
        ...

    def fail_where(self, mask: Mask, error: SqlError) -> None:
        """The rows where ``mask`` holds fail."""
        ...


@dataclass(frozen=True, slots=True)
class Function:
    """A scalar function; see the module's text for the fields."""

    key: str
    name: str
    args: tuple[ArgumentType, ...]
    result: ArgumentType
    implementation: Callable[..., Any]
    form: Form
    strict: bool = True
    volatility: Volatility = "immutable"
    variadic: bool = False
    total: bool = False
    needs_site: bool = False
    needs_assignment: bool = False
    """Only of casts: the implementation's keyword ``assignment`` tells "assignment_cast" from "cast"."""


FUNCTIONS: Final[dict[str, Function]] = {}
_BY_NAME: Final[dict[str, list[Function]]] = {}
_Implementation = TypeVar("_Implementation", bound=Callable[..., Any])


def overloads(name: str) -> tuple[Function, ...]:
    """The functions (and operators) of this name, internal ones included; empty if there is none."""
    return tuple(_BY_NAME.get(name, ()))


def type_key(type: ArgumentType) -> str:
    """How a type is written in a key: Postgres's internal name, ``[]`` after an array's element."""
    if isinstance(type, Polymorphic):
        return type.value
    if type.element is not None:
        return f"{type_key(type.element)}[]"
    return type.kind.value


def function_key(name: str, args: tuple[ArgumentType, ...]) -> str:
    """The key of a function by its declared argument types."""
    return f"{name}({','.join(type_key(a) for a in args)})"


def session_of(site: Site) -> SessionFunctions:
    """The session whose statement it is. 0A000: there is none, as on Spark's executors."""
    session = site.context.session
    if session is None:
        raise SqlError("0A000", "this function needs a session")
    return session


def array_of(element: SqlType) -> SqlType:
    """The array type of an element type."""
    return SqlType(Kind.ARRAY, element=element)


def per_value(
    name: str,
    args: tuple[ArgumentType, ...],
    result: ArgumentType,
    *,
    strict: bool = True,
    volatility: Volatility = "immutable",
    variadic: bool = False,
    needs_site: bool = False,
    key_is_name: bool = False,
) -> Callable[[_Implementation], _Implementation]:
    """Registers a function of datums."""

    def decorate(implementation: _Implementation) -> _Implementation:
        key = name if key_is_name else function_key(name, args)
        register(
            Function(
                key, name, args, result, implementation, Form.VALUE, strict, volatility, variadic, False, needs_site
            )
        )
        return implementation

    return decorate


def vectorised(
    name: str,
    args: tuple[ArgumentType, ...],
    result: ArgumentType,
    *,
    strict: bool = True,
    volatility: Volatility = "immutable",
    variadic: bool = False,
    total: bool = False,
    key_is_name: bool = False,
) -> Callable[[_Implementation], _Implementation]:
    """Registers a function of words."""

    def decorate(implementation: _Implementation) -> _Implementation:
        key = name if key_is_name else function_key(name, args)
        register(
            Function(key, name, args, result, implementation, Form.VECTOR, strict, volatility, variadic, total, True)
        )
        return implementation

    return decorate


def register(function: Function) -> None:
    """Adds a function to the table; a key stands for one function only."""
    assert function.key not in FUNCTIONS, f"function {function.key} is defined twice"
    FUNCTIONS[function.key] = function
    _BY_NAME.setdefault(function.name, []).append(function)


def needs_order_bytes(type: SqlType) -> bool:
    """Whether values with equal ``order_prefix`` may differ in order, so that ``order_bytes`` must decide."""
    return type.storage is not Storage.DIRECT


def indices(mask: Mask) -> Words:
    """The rows where a mask holds, int64."""
    return np.flatnonzero(mask)


def constant_vector(word: int, count: int) -> Vector:
    """``count`` times the same word, without storing it ``count`` times (stride 0, read-only)."""
    single = np.array([word], np.int64)
    return Vector(single if count == 1 else np.broadcast_to(single, count))


def _collect() -> None:
    for module in pkgutil.iter_modules(planner.expr.functions.__path__):
        importlib.import_module(f"planner.expr.functions.{module.name}")


_collect()
