"""Scalar expressions: what a query computes on one row, typed and with positional columns.

Binding makes them; only ``planner/expr/evaluate/evaluator.py`` computes them. A ``Literal`` holds a Python *datum*
(see ``storage/types/codec.py``): bool, int, float, Decimal, str, bytes; date as int days and timestamps and time
as int microseconds (since 2000-01-01); interval as (months, days, microseconds); uuid as 16 bytes; an array as a tuple.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import NoneType
from typing import TYPE_CHECKING, ClassVar, Final, assert_never

from ivm.words import BOOL, SqlType
from planner.expr.hashed import KEEP, Hashed, hashed_once

if TYPE_CHECKING:
    from planner.expr.literal_rows import LiteralRows
    from planner.expr.python_function import PythonFunction
    from planner.expr.state_fold import StateFold
    from planner.logical.nodes import Rel


@dataclass(frozen=True, slots=True)
class Column:
    """The input's column at ``index``."""

    index: int
    type: SqlType
    nullable: bool = True

    def __hash__(self) -> int:
        return self.index


@dataclass(frozen=True, slots=True)
class OuterColumn:
    """A column of an enclosing query; ``level`` 1 is the nearest. Only inside subqueries; decorrelation removes it."""

    level: int
    index: int
    type: SqlType
    nullable: bool = True


@hashed_once
@dataclass(frozen=True, slots=True, eq=False)
class Literal(Hashed):  # noqa: PLW1641 (``hashed_once`` adds it)
    """A constant datum; None is NULL. Equality is that of words: 1.0 and 1.00, 0.0 and -0.0 differ."""

    value: object
    type: SqlType

    def __post_init__(self) -> None:
        KEEP(self, hash(self._image))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        if self is other:
            return True
        return self.type == other.type and hash(self) == hash(other) and self._image == other._image

    @property
    def _image(self) -> object:
        """What is equal for equal constants of one type only."""
        value = self.value
        return value if type(value) in _EXACT else repr(value)

    @property
    def nullable(self) -> bool:
        return self.value is None


_EXACT: Final = frozenset({bool, int, str, bytes, NoneType})
"""The types of datums that are equal only if they are written alike."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """The parameter ``$index`` (from 1); the context supplies its datum when the plan runs."""

    index: int
    type: SqlType
    nullable: bool = True


@hashed_once
@dataclass(frozen=True, slots=True)
class Call(Hashed):
    """A function, operator or cast. ``function`` is its key in ``planner.expr.functions.table.FUNCTIONS``."""

    function: str
    args: tuple[Scalar, ...]
    type: SqlType
    nullable: bool = True

    def __post_init__(self) -> None:
        KEEP(self, hash((self.function, self.args)))


@hashed_once
@dataclass(frozen=True, slots=True)
class And(Hashed):
    """Three-valued AND; later arguments are evaluated only on rows where no earlier one is false."""

    args: tuple[Scalar, ...]
    type: ClassVar[SqlType] = BOOL

    def __post_init__(self) -> None:
        KEEP(self, hash((And, self.args)))

    @property
    def nullable(self) -> bool:
        return any(a.nullable for a in self.args)


@hashed_once
@dataclass(frozen=True, slots=True)
class Or(Hashed):
    """Three-valued OR; later arguments are evaluated only on rows where no earlier one is true."""

    args: tuple[Scalar, ...]
    type: ClassVar[SqlType] = BOOL

    def __post_init__(self) -> None:
        KEEP(self, hash((Or, self.args)))

    @property
    def nullable(self) -> bool:
        return any(a.nullable for a in self.args)


@hashed_once
@dataclass(frozen=True, slots=True)
class Case(Hashed):
    """Searched CASE: the first arm whose condition is true, else ``otherwise``."""

    arms: tuple[tuple[Scalar, Scalar], ...]
    otherwise: Scalar
    type: SqlType
    nullable: bool = True

    def __post_init__(self) -> None:
        KEEP(self, hash((self.arms, self.otherwise)))


@hashed_once
@dataclass(frozen=True, slots=True)
class Coalesce(Hashed):
    """The first argument that is not NULL; later ones are evaluated only where needed."""

    args: tuple[Scalar, ...]
    type: SqlType

    def __post_init__(self) -> None:
        KEEP(self, hash((Coalesce, self.args)))

    @property
    def nullable(self) -> bool:
        return all(a.nullable for a in self.args)


@hashed_once
@dataclass(frozen=True, slots=True)
class Checked(Hashed):
    """The value, after ``check`` has been computed over it as Column(0), which raises if it may not be; ``each``: over
    each element of it, an array. The check has no subqueries and no columns of the query."""

    value: Scalar
    check: Scalar
    type: SqlType
    each: bool = False

    def __post_init__(self) -> None:
        KEEP(self, hash((self.value, self.check)))

    @property
    def nullable(self) -> bool:
        return self.value.nullable


@dataclass(frozen=True, slots=True)
class Form:
    """Operands that differ in constants only: number k is ``body`` over the values of the chain's ``args`` as its first
    columns, and row k of ``constants`` as the others. The body has no subqueries, and its functions are immutable."""

    body: Scalar
    constants: LiteralRows | None


@hashed_once
@dataclass(frozen=True, slots=True)
class Alike(Hashed):
    """Many operands of one form, or of a few, joined by ``operator``: ``and``, ``or``, ``+`` of integers, ``||`` of
    texts. As in a chain of AND or OR, no operand after one that decides can fail.

    ``order``: the number of each operand's form.
    """

    operator: str
    args: tuple[Scalar, ...]
    forms: tuple[Form, ...]
    order: tuple[int, ...]
    type: SqlType
    nullable: bool = True

    def __post_init__(self) -> None:
        KEEP(self, hash((self.operator, self.args, tuple([f.body for f in self.forms]))))


@hashed_once
@dataclass(frozen=True, slots=True)
class ScalarSubquery(Hashed):
    """The one value of a one-column subquery; NULL when it is empty, error 21000 when it has several rows."""

    rel: Rel
    type: SqlType
    nullable: bool = True

    def __post_init__(self) -> None:
        KEEP(self, hash((ScalarSubquery, type(self.rel))))


@hashed_once
@dataclass(frozen=True, slots=True)
class Exists(Hashed):
    """Whether the subquery has a row."""

    rel: Rel
    type: ClassVar[SqlType] = BOOL
    nullable: ClassVar[bool] = False

    def __post_init__(self) -> None:
        KEEP(self, hash((Exists, type(self.rel))))


@hashed_once
@dataclass(frozen=True, slots=True)
class Quantified(Hashed):
    """``args op ANY|ALL (subquery)``, three-valued; ``IN`` is ANY with ``=``, ``NOT IN`` its negation.

    ``comparison`` is an expression over the subquery's columns (``Column``) and, one level out, over
    the query's own (``OuterColumn`` level 1), BOOL: the comparison of one row of the subquery.
    """

    rel: Rel
    comparison: Scalar
    every: bool
    type: ClassVar[SqlType] = BOOL
    nullable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        KEEP(self, hash((Quantified, type(self.rel), self.comparison)))


Scalar = (
    Column | OuterColumn | Literal | Parameter | Call | And | Or | Case | Coalesce | Checked | Alike
    | ScalarSubquery | Exists | Quantified
)  # fmt: skip


LEAVES: Final = frozenset({Column, Literal, OuterColumn, Parameter})
"""What has neither arguments nor a plan. Asked for by ``type``, this and the next take a fraction of a ``match``."""
_WITH_ARGS: Final = frozenset({Call, And, Or, Coalesce, Alike})


def children(expr: Scalar) -> tuple[Scalar, ...]:
    """The scalar arguments of an expression, in the order ``with_children`` takes them (subqueries' plans excluded)."""
    if type(expr) in _WITH_ARGS:
        return expr.args  # type: ignore[union-attr]
    match expr:
        case Case(arms=((condition, value),)):
            return (condition, value, expr.otherwise)
        case Case():
            return (*(part for arm in expr.arms for part in arm), expr.otherwise)
        case Column() | Literal() | OuterColumn() | Parameter() | ScalarSubquery() | Exists() | Quantified():
            return ()
        case Call() | And() | Or() | Coalesce() | Alike():
            return expr.args
        case Checked():
            return (expr.value,)
        case _:
            assert_never(expr)


def with_children(expr: Scalar, new: tuple[Scalar, ...]) -> Scalar:
    """The same expression over other arguments."""
    match expr:
        case Column() | OuterColumn() | Literal() | Parameter() | ScalarSubquery() | Exists() | Quantified():
            return expr
        case Call():
            return Call(expr.function, new, expr.type, expr.nullable)
        case And() | Or():
            return type(expr)(new)
        case Coalesce():
            return Coalesce(new, expr.type)
        case Case():
            arms = tuple((new[i], new[i + 1]) for i in range(0, len(new) - 1, 2))
            return Case(arms, new[-1], expr.type, expr.nullable)
        case Checked():
            return replace(expr, value=new[0])
        case Alike():
            return replace(expr, args=new)
        case _:
            assert_never(expr)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate of a Reduce. ``function`` is its key in ``planner.aggregates.table.AGGREGATES``.

    ``filter`` is the FILTER clause; ``order`` the aggregate's ORDER BY; ``python`` what a user's aggregate
    does, in Python or as a state function.
    """

    function: str
    args: tuple[Scalar, ...]
    type: SqlType
    nullable: bool = True
    distinct: bool = False
    filter: Scalar | None = None
    order: tuple[SortKey, ...] = ()
    python: PythonFunction | StateFold | None = None


@dataclass(frozen=True, slots=True)
class SortKey:
    """One key of an ORDER BY; ``nulls_first`` is resolved (Postgres: last when ascending, first when descending)."""

    expr: Scalar
    descending: bool = False
    nulls_first: bool = False
