"""Which function or operator a call means: PostgreSQL's chapter 10.2 and 10.3 (parse_func.c, parse_oper.c)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from ivm.errors import SqlError
from ivm.words import TEXT, UNKNOWN, Kind, SqlType
from planner.expr.functions.casts.registry import cast_context
from planner.expr.functions.table import (
    ANY,
    ANYARRAY,
    ANYCOMPATIBLE,
    ANYCOMPATIBLEARRAY,
    ANYCOMPATIBLEMULTIRANGE,
    ANYCOMPATIBLENONARRAY,
    ANYCOMPATIBLERANGE,
    ANYELEMENT,
    ANYENUM,
    ANYMULTIRANGE,
    ANYNONARRAY,
    ANYRANGE,
    ArgumentType,
    Polymorphic,
)
from sql.bind.coerce import same_family, try_common_type, type_name
from sql.catalog.column_types import array_of
from sql.catalog.composite import without_domain
from storage.types.range_values import multirange_of, range_type_of, subtype_of
from storage.types.type_names import is_preferred, type_category


class Overload(Protocol):
    """What resolution sees of a function, an aggregate, a table function or a routine.

    It may also have ``variadic`` (the last argument repeats) and ``optional`` (so many last arguments may be left out).
    """

    @property
    def key(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def args(self) -> tuple[ArgumentType, ...]: ...


OverloadT = TypeVar("OverloadT", bound=Overload)


@dataclass(frozen=True, slots=True)
class Candidate(Generic[OverloadT]):
    """An overload, and its declared types for as many arguments as the call has."""

    overload: OverloadT
    args: tuple[ArgumentType, ...]


@dataclass(frozen=True, slots=True)
class Resolution(Generic[OverloadT]):
    """The chosen overload. ``args``: the types to cast the arguments to; ``element``: what its polymorphic types stand
    for, anycompatible's aside, which is ``common``; ``range``: the range type that anyrange stands for."""

    overload: OverloadT
    args: tuple[SqlType, ...]
    element: SqlType | None
    range: SqlType | None = None
    common: SqlType | None = None


Search = Callable[[Sequence[OverloadT], tuple[SqlType, ...]], Resolution[OverloadT] | None]


def resolve(overloads: Sequence[OverloadT], types: tuple[SqlType, ...]) -> Resolution[OverloadT] | None:
    """The best of a built-in function's overloads for arguments of these types.

    None where none fits. Raises 42725 where several fit equally well, 42804 where only untyped literals could say what
    its polymorphic types stand for.
    """
    return _cached(overloads, types, resolve_uncached)


def resolve_operator(overloads: Sequence[OverloadT], types: tuple[SqlType, ...]) -> Resolution[OverloadT] | None:
    """The same for a built-in operator: an untyped operand is first assumed to have the other operand's type."""
    return _cached(overloads, types, resolve_operator_uncached)


def resolve_call(
    overloads: Sequence[OverloadT], name: str, types: tuple[SqlType, ...], at: int
) -> Resolution[OverloadT]:
    """``resolve`` for a call of ``name``. Raises 42883 where no overload fits, 42725 where several do."""
    try:
        found = resolve(overloads, types)
    except SqlError as error:
        raise not_resolved(error, no_function(name, types, at, ambiguous=True)) from None
    if found is None:
        raise no_function(name, types, at)
    return found


_CACHE: dict[tuple[object, ...], Any] = {}
_CACHE_SIZE = 8192


def _cached(
    overloads: Sequence[OverloadT], types: tuple[SqlType, ...], search: Search[OverloadT]
) -> Resolution[OverloadT] | None:
    if not overloads:
        return None
    types = tuple(map(without_domain, types))  # types are the same with and without, so the key cannot tell them apart
    # The tables of functions only grow while modules are imported, so a name and a count identify its overloads.
    key = (type(overloads[0]), overloads[0].name, len(overloads), types, search)
    if key not in _CACHE:
        if len(_CACHE) >= _CACHE_SIZE:
            _CACHE.clear()
        _CACHE[key] = search(overloads, types)
    found: Resolution[OverloadT] | None = _CACHE[key]
    return found


def resolve_uncached(overloads: Sequence[OverloadT], types: tuple[SqlType, ...]) -> Resolution[OverloadT] | None:
    """``resolve`` for overloads that may change, as those of user-defined functions do."""
    candidates = _candidates(overloads, types)
    return _chosen(candidates, types, _exact(candidates, types))


def resolve_operator_uncached(
    overloads: Sequence[OverloadT], types: tuple[SqlType, ...]
) -> Resolution[OverloadT] | None:
    """``resolve_operator`` where there are users' operators among the overloads."""
    candidates = _candidates(overloads, types)
    return _chosen(candidates, types, _exact(candidates, types) or _exact_for_one(candidates, types))


def _candidates(overloads: Sequence[OverloadT], types: tuple[SqlType, ...]) -> list[Candidate[OverloadT]]:
    return [c for o in overloads if (c := _stretch(o, len(types))) is not None]


def _chosen(
    candidates: list[Candidate[OverloadT]], types: tuple[SqlType, ...], exact: Candidate[OverloadT] | None
) -> Resolution[OverloadT] | None:
    """The exact match, or else the best of the candidates that implicit casts reach."""
    if exact is not None:
        return _resolution(exact, types)
    candidates = [c for c in candidates if _fits(c, types)]
    for narrow in (_most_exact, _most_preferred, _by_unknown_category, _by_known_type):
        if len(candidates) <= 1:
            break
        candidates = narrow(candidates, types)
    if len(candidates) > 1:
        raise SqlError("42725", "ambiguous")
    return _resolution(candidates[0], types) if candidates else None


def _stretch(overload: OverloadT, count: int) -> Candidate[OverloadT] | None:
    args = overload.args
    if getattr(overload, "variadic", False):
        if count < len(args):
            return None
        last = args[-1]
        return Candidate(overload, (*args[:-1], *((last,) * (count - len(args) + 1))))
    optional = getattr(overload, "optional", 0)
    if not len(args) - optional <= count <= len(args):
        return None
    return Candidate(overload, args[:count])


def _same(declared: ArgumentType, given: SqlType) -> bool:
    return isinstance(declared, SqlType) and same_family(declared, given)


def _exact(candidates: list[Candidate[OverloadT]], types: tuple[SqlType, ...]) -> Candidate[OverloadT] | None:
    """The candidate declared for just these types."""
    for candidate in candidates:
        if all(_same(d, t) for d, t in zip(candidate.args, types, strict=True)):
            return candidate
    return None


def _exact_for_one(candidates: list[Candidate[OverloadT]], types: tuple[SqlType, ...]) -> Candidate[OverloadT] | None:
    """The binary operator declared for the type of the only typed operand, on both sides."""
    known = [t for t in types if t.kind is not Kind.UNKNOWN]
    if len(types) != 2 or len(known) != 1:
        return None
    for candidate in candidates:
        if all(_same(d, known[0]) for d in candidate.args):
            return candidate
    return None


def _fits(candidate: Candidate[OverloadT], types: tuple[SqlType, ...]) -> bool:
    for declared, given in zip(candidate.args, types, strict=True):
        if isinstance(declared, Polymorphic):
            if not _polymorphic_fits(declared, given):
                return False
        elif given.kind is not Kind.UNKNOWN and cast_context(given, declared) != "implicit":
            return False
    if not any(isinstance(a, Polymorphic) for a in candidate.args):
        return True
    element, common = _element(candidate.args, types, False), _element(candidate.args, types, True)
    if element is None or common is None:
        return False
    if any(a in _RANGES for a in candidate.args):
        range_ = _range(candidate.args, types)
        if range_ is None:
            return False
        if any(a in _LOOSE for a in candidate.args) and not same_family(subtype_of(range_), common):
            return False
    return element.kind is Kind.ENUM or ANYENUM not in candidate.args


_RANGES: Final = {
    ANYRANGE: Kind.RANGE, ANYMULTIRANGE: Kind.MULTIRANGE, ANYCOMPATIBLERANGE: Kind.RANGE,
    ANYCOMPATIBLEMULTIRANGE: Kind.MULTIRANGE,
}  # fmt: skip
_LOOSE: Final = (
    ANYCOMPATIBLE, ANYCOMPATIBLEARRAY, ANYCOMPATIBLENONARRAY, ANYCOMPATIBLERANGE, ANYCOMPATIBLEMULTIRANGE,
)  # fmt: skip
"""Those whose arguments need only have a common type."""


def _polymorphic_fits(declared: Polymorphic, given: SqlType) -> bool:
    if given.kind is Kind.UNKNOWN or declared is ANY:
        return True
    is_array = given.kind is Kind.ARRAY
    if declared in (ANYARRAY, ANYCOMPATIBLEARRAY):
        return is_array
    if declared is ANYENUM:
        return given.kind is Kind.ENUM
    if declared in _RANGES:
        return given.kind is _RANGES[declared]
    return not is_array if declared in (ANYNONARRAY, ANYCOMPATIBLENONARRAY) else True


def _element(args: tuple[ArgumentType, ...], types: tuple[SqlType, ...], loose: bool) -> SqlType | None:
    """What anyelement (or, ``loose``, anycompatible) stands for, UNKNOWN if all such arguments are untyped; None where
    the arguments disagree."""
    found: list[SqlType] = []
    for declared, given in zip(args, types, strict=True):
        if given.kind is Kind.UNKNOWN or not isinstance(declared, Polymorphic) or declared is ANY:
            continue
        if (declared in _LOOSE) is not loose:
            continue
        array = declared in (ANYARRAY, ANYCOMPATIBLEARRAY)
        type_ = given.element if array and given.element is not None else given
        if declared in _RANGES:
            type_ = subtype_of(given)
        found.append(type_)
    if not found:
        return UNKNOWN
    if loose:
        return try_common_type(found)
    if not all(same_family(t, found[0]) for t in found):
        return None
    return found[0] if all(t == found[0] for t in found) else found[0].plain


def _range(args: tuple[ArgumentType, ...], types: tuple[SqlType, ...]) -> SqlType | None:
    """The range type that anyrange and anymultirange stand for; None where the arguments disagree or do not say."""
    pairs = zip(args, types, strict=True)
    found = {range_type_of(t) for a, t in pairs if a in _RANGES and t.kind is not Kind.UNKNOWN}
    return found.pop() if len(found) == 1 else None


def _best(candidates: list[Candidate[OverloadT]], scores: list[int]) -> list[Candidate[OverloadT]]:
    top = max(scores)
    return [c for c, s in zip(candidates, scores, strict=True) if s == top]


def _most_exact(candidates: list[Candidate[OverloadT]], types: tuple[SqlType, ...]) -> list[Candidate[OverloadT]]:
    scores = [sum(_same(d, t) for d, t in zip(c.args, types, strict=True)) for c in candidates]
    return _best(candidates, scores)


def _most_preferred(candidates: list[Candidate[OverloadT]], types: tuple[SqlType, ...]) -> list[Candidate[OverloadT]]:
    def score(candidate: Candidate[OverloadT]) -> int:
        return sum(
            _same(d, t)
            or (
                isinstance(d, SqlType)
                and t.kind is not Kind.UNKNOWN
                and type_category(d) == type_category(t)
                and is_preferred(d)
            )
            for d, t in zip(candidate.args, types, strict=True)
        )

    return _best(candidates, [score(c) for c in candidates])


def _by_unknown_category(
    candidates: list[Candidate[OverloadT]], types: tuple[SqlType, ...]
) -> list[Candidate[OverloadT]]:
    """Keeps the candidates of the category accepted for each untyped argument; string is preferred."""
    if not any(t.kind is Kind.UNKNOWN for t in types):
        return candidates
    kept = candidates
    for i, given in enumerate(types):
        if given.kind is not Kind.UNKNOWN:
            continue
        declared = [c.args[i] for c in candidates if isinstance(c.args[i], SqlType)]
        categories = {type_category(d) for d in declared if isinstance(d, SqlType)}
        if "S" in categories:
            category = "S"
        elif len(categories) == 1:
            category = categories.pop()
        else:
            return candidates
        in_category = [c for c in kept if _category(c.args[i]) == category]
        preferred = [c for c in in_category if _preferred(c.args[i])]
        kept = preferred or in_category
    return kept or candidates


def _category(declared: ArgumentType) -> str:
    return type_category(declared) if isinstance(declared, SqlType) else ""


def _preferred(declared: ArgumentType) -> bool:
    return isinstance(declared, SqlType) and is_preferred(declared)


def _by_known_type(candidates: list[Candidate[OverloadT]], types: tuple[SqlType, ...]) -> list[Candidate[OverloadT]]:
    """If all typed arguments have the same type, the one candidate that accepts it for all arguments."""
    known = [t for t in types if t.kind is not Kind.UNKNOWN]
    if not known or len(known) == len(types) or not all(same_family(t, known[0]) for t in known):
        return candidates
    assumed = tuple(known[0] for _ in types)
    fitting = [c for c in candidates if _fits(c, assumed)]
    return fitting if len(fitting) == 1 else candidates


_STRICT: Final = frozenset((ANYARRAY, ANYNONARRAY, ANYENUM, ANYELEMENT))
"""The polymorphic types that an untyped literal does not become text for."""


def _resolution(candidate: Candidate[OverloadT], types: tuple[SqlType, ...]) -> Resolution[OverloadT]:
    element, common = _element(candidate.args, types, False), _element(candidate.args, types, True)
    if element is not None and element.kind is Kind.UNKNOWN:
        if _STRICT.intersection(candidate.args):
            raise SqlError("42804", "could not determine polymorphic type because input has type unknown")
        element = TEXT
    common = TEXT if common is not None and common.kind is Kind.UNKNOWN else common
    range_ = _range(candidate.args, types)
    args = tuple(
        _concrete(d, t, common if d in _LOOSE else element, range_) for d, t in zip(candidate.args, types, strict=True)
    )
    return Resolution(candidate.overload, args, element, range_, common)


def _concrete(declared: ArgumentType, given: SqlType, element: SqlType | None, range_: SqlType | None) -> SqlType:
    """The type to cast an argument to: its own if it differs in modifiers only."""
    if isinstance(declared, SqlType):
        rows = declared.kind is given.kind is Kind.RECORD and not declared.fields
        return given if rows or same_family(declared, given) else declared
    if declared is ANY:
        return TEXT if given.kind is Kind.UNKNOWN else given
    assert element is not None
    wanted = array_of(element) if declared in (ANYARRAY, ANYCOMPATIBLEARRAY) else element
    if declared in _RANGES:
        assert range_ is not None
        wanted = range_ if _RANGES[declared] is Kind.RANGE else multirange_of(range_)
    return given if same_family(wanted, given) else wanted


def result_type(declared: ArgumentType, choice: Resolution[OverloadT]) -> SqlType:
    """The type of the call's result from the declared one."""
    if isinstance(declared, SqlType):
        return declared
    if declared is ANY:
        return choice.args[0] if choice.args else TEXT
    if declared in _RANGES:
        assert choice.range is not None
        return choice.range if _RANGES[declared] is Kind.RANGE else multirange_of(choice.range)
    element = ((choice.common if declared in _LOOSE else choice.element) or TEXT).plain
    return array_of(element) if declared in (ANYARRAY, ANYCOMPATIBLEARRAY) else element


def not_resolved(error: SqlError, ambiguous: SqlError) -> SqlError:
    """The error of a call that ``resolve`` raised for: ``ambiguous`` if that was the reason."""
    return ambiguous if error.sqlstate == "42725" else SqlError(error.sqlstate, error.message)


def signature(name: str, types: Sequence[SqlType]) -> str:
    """``name(integer, text)``, as Postgres's errors show a call."""
    return f"{name}({', '.join(type_name(t) for t in types)})"


def no_function(name: str, types: Sequence[SqlType], at: int, *, ambiguous: bool = False) -> SqlError:
    """42883, or 42725 for an ``ambiguous`` call, worded as in Postgres."""
    shown = signature(name, types)
    if ambiguous:
        return SqlError(
            "42725", f"function {shown} is not unique",
            hint="Could not choose a best candidate function. You might need to add explicit type casts.",
            position=at + 1,
        )  # fmt: skip
    return SqlError(
        "42883", f"function {shown} does not exist",
        hint="No function matches the given name and argument types. You might need to add explicit type casts.",
        position=at + 1,
    )  # fmt: skip


def no_operator(symbol: str, types: Sequence[SqlType], at: int, *, ambiguous: bool = False) -> SqlError:
    """The same for an operator."""
    names = [type_name(t) for t in types]
    shown = f"{symbol} {names[0]}" if len(names) == 1 else f"{names[0]} {symbol} {names[1]}"
    if ambiguous:
        return SqlError(
            "42725", f"operator is not unique: {shown}",
            hint="Could not choose a best candidate operator. You might need to add explicit type casts.",
            position=at + 1,
        )  # fmt: skip
    number = "types. You might need to add explicit type casts."
    if len(names) == 1:
        number = "type. You might need to add an explicit type cast."
    return SqlError(
        "42883", f"operator does not exist: {shown}", hint=f"No operator matches the given name and argument {number}",
        position=at + 1,
    )  # fmt: skip
