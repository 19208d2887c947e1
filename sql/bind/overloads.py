"""Which function or operator a call means: PostgreSQL's chapter 10.2 and 10.3 (parse_func.c, parse_oper.c)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from ivm.errors import SqlError
from ivm.words import TEXT, UNKNOWN, Kind, SqlType
from planner.expr.functions.casts import cast_context
from planner.expr.functions.table import (
    ANY,
    ANYARRAY,
    ANYCOMPATIBLE,
    ANYCOMPATIBLEARRAY,
    ANYENUM,
    ANYNONARRAY,
    ArgumentType,
    Polymorphic,
)
from sql.bind.coerce import plain, same_family, try_common_type, type_name
from sql.catalog.column_types import array_of, is_preferred, type_category


class Overload(Protocol):
    """A function, aggregate or table function as far as resolution looks at it."""

    @property
    def key(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def args(self) -> tuple[ArgumentType, ...]: ...


Entry = TypeVar("Entry", bound=Overload)


@dataclass(frozen=True, slots=True)
class Candidate(Generic[Entry]):
    """An overload with its declared types stretched over the call's arguments."""

    overload: Entry
    args: tuple[ArgumentType, ...]


@dataclass(frozen=True, slots=True)
class Choice(Generic[Entry]):
    """The overload chosen, the types its arguments are to be cast to, and what its polymorphic types stand for."""

    overload: Entry
    args: tuple[SqlType, ...]
    element: SqlType | None


def resolve(overloads: Sequence[Entry], types: tuple[SqlType, ...], operator: bool = False) -> Choice[Entry] | None:
    """The best overload for arguments of these types.

    None where none fits. Raises 42725 where several fit equally well.
    """
    if not overloads:
        return None
    # The tables of functions only grow while modules are imported, so a name and a count stand for its overloads.
    key = (type(overloads[0]), overloads[0].name, len(overloads), types, operator)
    if key not in _CHOICES:
        if len(_CHOICES) >= _REMEMBERED:
            _CHOICES.clear()
        _CHOICES[key] = resolve_anew(overloads, types, operator)
    choice: Choice[Entry] | None = _CHOICES[key]
    return choice


_CHOICES: dict[tuple[object, ...], Any] = {}
_REMEMBERED = 8192


def resolve_anew(
    overloads: Sequence[Entry], types: tuple[SqlType, ...], operator: bool = False
) -> Choice[Entry] | None:
    """The same for overloads that come and go."""
    candidates = [c for o in overloads if (c := _stretch(o, len(types))) is not None]
    exact = _exact(candidates, types, operator)
    if exact is not None:
        return _choice(exact, types)
    candidates = [c for c in candidates if _fits(c, types)]
    for narrow in (_most_exact, _most_preferred, _by_unknown_category, _by_known_type):
        if len(candidates) <= 1:
            break
        candidates = narrow(candidates, types)
    candidates = _without_polymorphic(candidates)
    if len(candidates) > 1:
        raise SqlError("42725", "ambiguous")
    return _choice(candidates[0], types) if candidates else None


def _stretch(overload: Entry, count: int) -> Candidate[Entry] | None:
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


def _exact(candidates: list[Candidate[Entry]], types: tuple[SqlType, ...], operator: bool) -> Candidate[Entry] | None:
    for candidate in candidates:
        if all(_same(d, t) for d, t in zip(candidate.args, types, strict=True)):
            return candidate
    if not operator or len(types) != 2:
        return None
    known = [t for t in types if t.kind is not Kind.UNKNOWN]
    if len(known) != 1:
        return None
    for candidate in candidates:
        if all(_same(d, known[0]) for d in candidate.args):
            return candidate
    return None


def _fits(candidate: Candidate[Entry], types: tuple[SqlType, ...]) -> bool:
    for declared, given in zip(candidate.args, types, strict=True):
        if isinstance(declared, Polymorphic):
            if not _polymorphic_fits(declared, given):
                return False
        elif given.kind is not Kind.UNKNOWN and cast_context(given, declared) != "implicit":
            return False
    if not any(isinstance(a, Polymorphic) for a in candidate.args):
        return True
    element = _element(candidate.args, types)
    return element is not None and (element.kind is Kind.ENUM or ANYENUM not in candidate.args)


def _polymorphic_fits(declared: Polymorphic, given: SqlType) -> bool:
    if given.kind is Kind.UNKNOWN or declared is ANY:
        return True
    is_array = given.kind is Kind.ARRAY
    if declared in (ANYARRAY, ANYCOMPATIBLEARRAY):
        return is_array
    if declared is ANYENUM:
        return given.kind is Kind.ENUM
    return not is_array if declared is ANYNONARRAY else True


def _element(args: tuple[ArgumentType, ...], types: tuple[SqlType, ...]) -> SqlType | None:
    """What anyelement stands for (UNKNOWN where nothing tells), None where the arguments contradict each other."""
    strict: list[SqlType] = []
    loose: list[SqlType] = []
    for declared, given in zip(args, types, strict=True):
        if given.kind is Kind.UNKNOWN or not isinstance(declared, Polymorphic) or declared is ANY:
            continue
        array = declared in (ANYARRAY, ANYCOMPATIBLEARRAY)
        type_ = given.element if array and given.element is not None else given
        (loose if declared in (ANYCOMPATIBLE, ANYCOMPATIBLEARRAY) else strict).append(type_)
    if strict and not all(same_family(t, strict[0]) for t in strict):
        return None
    if loose:
        return try_common_type(loose)
    if not strict:
        return UNKNOWN
    return strict[0] if all(t == strict[0] for t in strict) else plain(strict[0])


def _best(candidates: list[Candidate[Entry]], scores: list[int]) -> list[Candidate[Entry]]:
    top = max(scores)
    return [c for c, s in zip(candidates, scores, strict=True) if s == top]


def _most_exact(candidates: list[Candidate[Entry]], types: tuple[SqlType, ...]) -> list[Candidate[Entry]]:
    scores = [sum(_same(d, t) for d, t in zip(c.args, types, strict=True)) for c in candidates]
    return _best(candidates, scores)


def _most_preferred(candidates: list[Candidate[Entry]], types: tuple[SqlType, ...]) -> list[Candidate[Entry]]:
    def score(candidate: Candidate[Entry]) -> int:
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


def _by_unknown_category(candidates: list[Candidate[Entry]], types: tuple[SqlType, ...]) -> list[Candidate[Entry]]:
    """For each untyped argument the category that the candidates accept there, string before all others."""
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


def _by_known_type(candidates: list[Candidate[Entry]], types: tuple[SqlType, ...]) -> list[Candidate[Entry]]:
    """If all typed arguments have one type, assume the untyped ones to have it too."""
    known = [t for t in types if t.kind is not Kind.UNKNOWN]
    if not known or len(known) == len(types) or not all(same_family(t, known[0]) for t in known):
        return candidates
    assumed = tuple(known[0] for _ in types)
    fitting = [c for c in candidates if _fits(c, assumed)]
    return fitting if len(fitting) == 1 else candidates


def _without_polymorphic(candidates: list[Candidate[Entry]]) -> list[Candidate[Entry]]:
    concrete = [c for c in candidates if not any(isinstance(a, Polymorphic) for a in c.args)]
    if len(candidates) > 1 and len(concrete) == 1:
        return concrete
    return candidates


def _choice(candidate: Candidate[Entry], types: tuple[SqlType, ...]) -> Choice[Entry]:
    element = _element(candidate.args, types)
    if element is not None and element.kind is Kind.UNKNOWN:
        element = TEXT
    args = tuple(_concrete(d, t, element) for d, t in zip(candidate.args, types, strict=True))
    return Choice(candidate.overload, args, element)


def _concrete(declared: ArgumentType, given: SqlType, element: SqlType | None) -> SqlType:
    """The type to cast an argument to; its own where only modifiers differ."""
    if isinstance(declared, SqlType):
        return given if same_family(declared, given) else declared
    if declared is ANY:
        return TEXT if given.kind is Kind.UNKNOWN else given
    assert element is not None
    wanted = array_of(element) if declared in (ANYARRAY, ANYCOMPATIBLEARRAY) else element
    return given if same_family(wanted, given) else wanted


def result_type(declared: ArgumentType, choice: Choice[Entry]) -> SqlType:
    """A declared result type for the types of this call."""
    if isinstance(declared, SqlType):
        return declared
    if declared is ANY:
        return choice.args[0] if choice.args else TEXT
    element = plain(choice.element or TEXT)
    return array_of(element) if declared in (ANYARRAY, ANYCOMPATIBLEARRAY) else element


def signature(name: str, types: Sequence[SqlType]) -> str:
    """``name(integer, text)``, as Postgres's errors show a call."""
    return f"{name}({', '.join(type_name(t) for t in types)})"


def no_function(name: str, types: Sequence[SqlType], at: int, *, ambiguous: bool = False) -> SqlError:
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
    names = [type_name(t) for t in types]
    shown = f"{symbol} {names[0]}" if len(names) == 1 else f"{names[0]} {symbol} {names[1]}"
    if ambiguous:
        return SqlError(
            "42725", f"operator is not unique: {shown}",
            hint="Could not choose a best candidate operator. You might need to add explicit type casts.",
            position=at + 1,
        )  # fmt: skip
    plural = "type" if len(names) == 1 else "types"
    return SqlError(
        "42883", f"operator does not exist: {shown}",
        hint=f"No operator matches the given name and argument {plural}. You might need to add explicit type casts.",
        position=at + 1,
    )  # fmt: skip
