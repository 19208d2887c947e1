"""Casts: which exist in which context (Postgres's pg_cast and its I/O conversions), and where each is implemented.

In expressions a cast is ``Call(key, (x,), target)``; the target's typmod (varchar(n), numeric(p, s), time(p)) is
applied by the same call. The key is one of:

- ``"cast"``: an explicit cast, ``x::varchar(3)`` cuts silently;
- ``"assignment_cast"``: what INSERT and UPDATE apply to a value: too long a string is 22001 unless only spaces are lost
  (the only difference from "cast");
- ``"try_cast"``: NULL where "cast" fails (``"try"``: NULL where its argument fails, whatever that is).

The modules beside this one add the implementations with the decorators below, in the two calling conventions of
``planner.expr.functions.table``. They read typmods from ``site.args[0]`` and ``site.result``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, TypeVar, Unpack

from ivm.words import NAMED_OIDS, Kind, SqlType
from planner.expr.functions.table import ANY, CallingConvention, Facts, Function, Raises, register, type_key

CastContext = Literal["implicit", "assignment", "explicit"]
CAST: Final = "cast"
ASSIGNMENT_CAST: Final = "assignment_cast"
TRY_CAST: Final = "try_cast"
TRY: Final = "try"
RAISING_CASTS: Final = (CAST, ASSIGNMENT_CAST)
"""The casts that fail where the value does not fit."""

_STRINGS: Final = frozenset({Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR, Kind.NAME, Kind.UNKNOWN})


_REGS: Final = " ".join(kind.value for kind in (*NAMED_OIDS, Kind.REGCONFIG, Kind.REGDICTIONARY))


def _pairs(text: str) -> dict[Kind, frozenset[Kind]]:
    """``source source: target target; …`` by Postgres's internal names, ``reg*`` standing for all of them."""
    result = {}
    for part in text.replace("reg*", _REGS).split(";"):
        sources, targets = part.split(":")
        result.update(dict.fromkeys(map(Kind, sources.split()), frozenset(map(Kind, targets.split()))))
    return result


_IMPLICIT: Final = _pairs(
    "bpchar: bpchar name text varchar; char: text; date: timestamp timestamptz; float4: float8;"
    "int2: float4 float8 int4 int8 numeric oid reg*; int4: float4 float8 int8 numeric oid reg*;"
    "int8: float4 float8 numeric oid reg*; name: text; numeric: float4 float8; oid: reg*;"
    "reg*: oid; text: bpchar name regclass varchar;"
    "time: interval; timestamp: timestamptz; varchar: bpchar name regclass text"
)
_ASSIGNMENT: Final = _pairs(
    "json: jsonb; jsonb: json; bool: bpchar text varchar; bpchar: char; char: bpchar varchar;"
    "float4: int2 int4 int8 numeric;"
    "float8: float4 int2 int4 int8 numeric; int4: int2; int8: int2 int4; interval: time; name: bpchar varchar;"
    "numeric: int2 int4 int8; oid: int4 int8; reg*: int4 int8;"
    "text: char; timestamp: date time; timestamptz: date time timestamp; varchar: char"
)
_SAME_OBJECT: Final = frozenset(
    {frozenset({Kind.REGPROC, Kind.REGPROCEDURE}), frozenset({Kind.REGOPER, Kind.REGOPERATOR})}
)
_EXPLICIT: Final = _pairs("bool: int4; char: int4; int4: bool char; jsonb: bool float4 float8 int2 int4 int8 numeric")
_NONE: Final[frozenset[Kind]] = frozenset()
_COMPOUND: Final = frozenset({Kind.ARRAY, Kind.RECORD, Kind.ENUM, Kind.RANGE, Kind.MULTIRANGE})
"""The kinds whose casts depend on more than the kind."""
_CONTEXTS: Final[dict[tuple[Kind, Kind], CastContext | None]] = {}
"""What ``cast_context`` has found for other kinds."""


def cast_context(source: SqlType, target: SqlType) -> CastContext | None:
    """The weakest context in which Postgres casts source to target, ignoring typmods; None if there is no cast.

    A kind casts to itself implicitly. An untyped literal (UNKNOWN) casts to anything implicitly. Any type casts to a
    string by assignment and from one explicitly, through its text. Arrays cast as their elements do.
    """
    a, b = source.kind, target.kind
    if a not in _COMPOUND and b not in _COMPOUND:
        known = _CONTEXTS.get((a, b), False)
        if known is not False:
            return known  # type: ignore[return-value]
        _CONTEXTS[a, b] = found = _context(source, target)
        return found
    return _context(source, target)


def _context(source: SqlType, target: SqlType) -> CastContext | None:
    a, b = source.kind, target.kind
    if Kind.VOID in (a, b):
        return "implicit" if a is b else "assignment" if b in _STRINGS and b is not Kind.UNKNOWN else None
    if source.element is not None and target.element is not None:
        return cast_context(source.element, target.element)
    if a is b is Kind.RECORD:
        return "implicit" if _castable_rows(source, target) else None
    if a is b is Kind.ENUM:
        return "implicit" if source.enum is target.enum else None
    if a is b and source.named != target.named:
        return None
    if a is Kind.RANGE and b is Kind.MULTIRANGE and target.subtype != source:
        return None
    if (declared := _DECLARED.get((a, b))) is not None:
        return declared
    if {a, b} in _SAME_OBJECT:
        return "implicit"
    if a is b or (a is Kind.UNKNOWN and b is not Kind.RECORD) or b in _IMPLICIT.get(a, _NONE):
        return "implicit"
    if b in _ASSIGNMENT.get(a, _NONE) or (b in _STRINGS and b is not Kind.UNKNOWN):
        return "assignment"
    if b is Kind.RECORD and target.named is not None and a in _STRINGS:
        return "implicit" if a is Kind.UNKNOWN else "explicit"
    if Kind.RECORD in (a, b) or b is Kind.UNKNOWN:
        return None
    if b in _EXPLICIT.get(a, _NONE) or a in _STRINGS:
        return "explicit"
    return None


def _castable_rows(source: SqlType, target: SqlType) -> bool:
    """Whether a row casts to another row type: to a composite type from any anonymous row, whose fields the binder
    casts, otherwise if they differ at most in their fields' names."""
    if not target.fields:
        return True
    if target.named is not None:
        return source.named is None or source.named == target.named
    pairs = zip(source.fields, target.fields, strict=False)
    return len(source.fields) == len(target.fields) and all(
        a == b or a.kind is Kind.UNKNOWN for (_, a), (_, b) in pairs
    )


CASTS: Final[dict[tuple[Kind, Kind], Function]] = {}
_DECLARED: Final[dict[tuple[Kind, Kind], CastContext]] = {}
"""The contexts of casts declared with one."""
_Implementation = TypeVar("_Implementation", bound=Callable[..., Any])


def cast_per_value(
    sources: tuple[Kind, ...],
    targets: tuple[Kind, ...],
    *,
    needs_site: bool = False,
    needs_assignment: bool = False,
    context: CastContext | None = None,
    **facts: Unpack[Facts],
) -> Callable[[_Implementation], _Implementation]:
    """Adds a cast of datums from each source to each target. It never gives NULL unless declared to.

    ``context``: the weakest one in which Postgres applies it; None: this module's tables say so.
    """
    if context is not None:
        _DECLARED.update(dict.fromkeys(((a, b) for a in sources for b in targets), context))
        _CONTEXTS.clear()
    own = {"convention": CallingConvention.PER_VALUE, "needs_site": needs_site or needs_assignment}
    return _adding(sources, targets, own | {"needs_assignment": needs_assignment}, facts)


def cast_vectorised(
    sources: tuple[Kind, ...],
    targets: tuple[Kind, ...],
    *,
    total: bool = False,
    needs_assignment: bool = False,
    **facts: Unpack[Facts],
) -> Callable[[_Implementation], _Implementation]:
    """Adds a cast of words from each source to each target. It never gives NULL unless declared to."""
    if total:
        facts["raises"] = Raises.NEVER
    own = {"convention": CallingConvention.VECTORISED, "needs_site": True, "total": total}
    return _adding(sources, targets, own | {"needs_assignment": needs_assignment}, facts)


def _adding(
    sources: tuple[Kind, ...], targets: tuple[Kind, ...], own: dict[str, Any], facts: Facts
) -> Callable[[_Implementation], _Implementation]:
    facts.setdefault("makes_null", False)

    def decorate(implementation: _Implementation) -> _Implementation:
        for source, target in _pairs_of(sources, targets):
            a, b = SqlType(source), SqlType(target)
            CASTS[source, target] = Function(_cast_key(a, b), CAST, (a,), b, implementation, **own, **facts)
        return implementation

    return decorate


def _pairs_of(sources: tuple[Kind, ...], targets: tuple[Kind, ...]) -> list[tuple[Kind, Kind]]:
    pairs = [(source, target) for source in sources for target in targets]
    for source, target in pairs:
        assert (source, target) not in CASTS, f"cast {source} to {target} is defined twice"
    return pairs


def _cast_key(source: SqlType, target: SqlType) -> str:
    return f"cast({type_key(source)} as {type_key(target)})"


def find_cast(source: SqlType, target: SqlType) -> Function | None:
    """The implementation of an explicit cast, or None where Postgres has none."""
    if cast_context(source, target) is None:
        return None
    found = CASTS.get((source.kind, target.kind))
    if found is None and source.kind is target.kind:
        return _SAME
    return found


_SAME: Final = Function(
    CAST, CAST, (ANY,), ANY, lambda _, words: words, CallingConvention.VECTORISED, needs_site=True, total=True,
    makes_null=False, raises=Raises.NEVER,
)  # fmt: skip
"""A type without typmod to itself."""


def _placeholder(*_: object) -> None:
    raise AssertionError("casts are compiled by planner.expr.evaluate.evaluator")


for _key in (CAST, ASSIGNMENT_CAST, TRY_CAST, TRY):
    register(Function(_key, _key, (ANY,), ANY, _placeholder, CallingConvention.PER_VALUE, internal=_key != TRY))
