"""Bound statements about user-defined functions, aggregates and operators."""

from __future__ import annotations

from dataclasses import dataclass

from ivm.words import SqlType
from planner.expr.python_function import PythonFunction
from planner.expr.scalar import Scalar
from sql.catalog.catalog import Relation
from sql.statements.queries import OutputColumn
from sql.statements.role_spec import RoleSpec


@dataclass(frozen=True, slots=True)
class CreateFunction:
    """``relation``: complete but for its id. ``python``: an aggregate's Python function. ``warnings``: to
    send."""

    relation: Relation
    replace: bool = False
    python: PythonFunction | None = None
    warnings: tuple[str, ...] = ()

    @property
    def tag(self) -> str:
        assert self.relation.routine is not None, "a routine"
        return f"CREATE {self.relation.routine.kind.upper()}"


@dataclass(frozen=True, slots=True)
class DropFunction:
    """DROP of functions, or of operators. ``missing``: the notices of IF EXISTS for those that do not exist."""

    functions: tuple[Relation, ...]
    missing: tuple[str, ...] = ()
    cascade: bool = False
    tag: str = "DROP FUNCTION"


@dataclass(frozen=True, slots=True)
class AlterFunction:
    """``owner``: of OWNER TO."""

    old: Relation
    new: Relation
    tag: str
    owner: RoleSpec | None = None


@dataclass(frozen=True, slots=True)
class CreateOperator:
    """``relation``: complete but for its id and the operators it is linked to: ``commutator`` and ``negator``, each the
    schema, if given, and the symbol. ``warnings``: to send."""

    relation: Relation
    commutator: tuple[str | None, str] | None = None
    negator: tuple[str | None, str] | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AlterOperator:
    """``owner``: of OWNER TO."""

    old: Relation
    new: Relation
    owner: RoleSpec | None = None


@dataclass(frozen=True, slots=True)
class CallProcedure:
    """CALL. ``args``: expressions without columns, one for each parameter that a call gives; ``columns``: of the row
    that it returns, None without OUT parameters; ``outputs``: what the call gives for each of these."""

    relation: Relation
    args: tuple[Scalar, ...]
    columns: tuple[OutputColumn, ...] | None
    types: tuple[SqlType, ...] = ()
    outputs: tuple[Scalar, ...] = ()


RoutineStatement = CreateFunction | AlterFunction | DropFunction | CreateOperator | AlterOperator
