"""The type of an aggregate's entry in ``planner.aggregates.table``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from ivm.errors import SqlError
from ivm.rows import Vector
from ivm.words import SqlType
from planner.aggregates.components import CallPlan, Groups
from planner.expr.functions.table import ArgumentType

if TYPE_CHECKING:
    from ivm.formula import Formula, Register

Failure = tuple[int, SqlError]
"""A group (its position) and its error."""
ResultRule = Callable[[CallPlan, Groups], tuple[Vector, list[Failure]]]
"""The results of an accumulable aggregate for every group, from its sums; failed groups have any word."""
FormulaRule = Callable[["Formula", CallPlan, "Register", "Register"], "Register | None"]
"""(formula, plan, count of the group's values, mask of the groups that have some) → the result where there are some;
None: this plan is beyond formulas."""
FoldRule = Callable[[SqlType, list[Any], list[Any]], object]
"""(type of the first argument, its values, the last argument's values) → the datum of one group with rows."""


class AggregateKind(Enum):
    """How the engine maintains an aggregate, see ``planner.aggregates.table``."""

    ACCUMULABLE = "accumulable"
    ORDERED = "ordered"
    BASIC = "basic"
    RANKED = "ranked"
    MODE = "mode"


class Addends(Enum):
    """What an accumulable aggregate sums, besides counting its argument's values."""

    NOTHING = "nothing"
    TRUTH = "truth"
    """How many values are true."""
    VALUES = "values"
    SQUARES = "squares"
    """The values and their squares."""
    BITS = "bits"
    """How often each bit is set."""
    PAIRS = "pairs"
    """Of two arguments y and x, on the rows where neither is NULL: y, y * y, x, x * x and y * x."""


class NullResult(Enum):
    """When the result is NULL."""

    NEVER = "never"
    NO_ROWS = "no rows"
    """Only for a group without rows."""
    NO_VALUES = "no values"
    """Only for a group in which the first argument is NULL in all rows."""
    POSSIBLE = "possible"
    """For other groups, too: of one row, for instance."""


class Extreme(Enum):
    """Which extreme of the group an ordered aggregate takes."""

    LEAST = "least"
    GREATEST = "greatest"


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """One overload of an aggregate. ``result``: its type, or a function of the arguments' types."""

    key: str
    name: str
    args: tuple[ArgumentType, ...]
    result: SqlType | Callable[[Sequence[SqlType]], SqlType]
    kind: AggregateKind
    null_result: NullResult = NullResult.NO_VALUES
    can_fail: bool = True
    """Whether a group may have an error instead of a result."""
    addends: Addends = Addends.NOTHING
    """ACCUMULABLE: the diff columns and limb rows that it needs (``planner.aggregates.accumulable``)."""
    finish: ResultRule | None = None
    """ACCUMULABLE: its result (``planner.aggregates.results``)."""
    formula: FormulaRule | None = None
    """ACCUMULABLE: the same as a formula (``planner.aggregates.result_formulas``), where there is one."""
    extreme: Extreme | None = None
    """ORDERED: which value it is; None: any, and so the least."""
    fold: FoldRule | None = None
    """BASIC: its result (``planner.aggregates.folds``); None: a user's function."""
    skips_nulls: bool = True
    """BASIC: rows whose first argument is NULL do not count."""
    beside: str | None = None
    """BASIC: the scalar function of the arguments that gives one more, last argument, by which no rows are ordered."""
    interpolates: bool = False
    """RANKED: a result between two values."""

    def result_type(self, args: Sequence[SqlType]) -> SqlType:
        """The result's type for arguments of these types."""
        return self.result if isinstance(self.result, SqlType) else self.result(args)

    @property
    def of_pairs(self) -> bool:
        """Whether it takes two arguments and ignores rows where either is NULL."""
        return self.addends is Addends.PAIRS
