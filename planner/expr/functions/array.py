"""Array functions and operators. An array's datum is a tuple, nested for more dimensions; ``Bounded`` if its lower
bounds are not 1."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

from ivm.errors import SqlError, unsupported
from ivm.stops import room
from ivm.words import BOOL, INT4, NAME, TEXT, Kind, SqlType
from planner.expr.functions import array_columns
from planner.expr.functions.table import (
    ANY,
    ANYARRAY,
    ANYCOMPATIBLE,
    ANYCOMPATIBLEARRAY,
    ANYELEMENT,
    ANYNONARRAY,
    CallSite,
    Polymorphic,
    VectorForm,
    per_value,
)
from planner.expr.functions.text.concat import flatten
from storage.types.arrays import Bounded, bounded, check_dimensions, lower_bounds, shape
from storage.types.order import canonical

Array = tuple[Any, ...]
_Made = TypeVar("_Made", bound=Callable[..., Any])


LEFT_OUT: Final = (-(2**31), 2**31 - 1)
"""What stands for the bounds that ``a[:]`` leaves out: those of the array."""
OWN: Final = LEFT_OUT[::-1]
"""The same in an assignment, where nobody can give them."""
_LONGEST: Final = 134_217_727
"""The most elements that Postgres allows in an array."""


_WITH_NAN: Final = (Kind.FLOAT4, Kind.FLOAT8, Kind.NUMERIC, Kind.RANGE, Kind.MULTIRANGE, Kind.RECORD)


def _element(type_: SqlType) -> SqlType:
    assert type_.element is not None
    return type_.element


def _shape(array: Array, type_: SqlType) -> tuple[int, ...]:
    return shape(array, _element(type_).kind is Kind.INTERVAL)


def _lower(array: Array, type_: SqlType) -> tuple[int, ...]:
    """The lower bounds of its dimensions; () of an empty array. Vectors start at 0."""
    if type_.zero_based:
        return (0,) * len(_shape(array, type_))
    return array.lower if isinstance(array, Bounded) else (1,) * len(_shape(array, type_))


def equality_key(type_: SqlType, item: Any) -> Any:
    """A key that is the same for equal elements, and no other; NaN equals itself."""
    if item is None:
        return None
    found = canonical(type_, item)
    return repr(found) if type_.kind in _WITH_NAN else found


@per_value("array", (ANY,), ANYARRAY, strict=False, variadic=True, needs_site=True)
def make_array(site: CallSite, *items: Any) -> Array:
    """ARRAY[…]; items that are arrays add a dimension. Raises 2202E, 54000."""
    if site.args and site.args[0].kind is Kind.ARRAY:
        shapes = {(_shape(item or (), site.args[0]), _bounds(item or ())) for item in items}
        check_dimensions(1 + max(len(lengths) for lengths, _ in shapes))
        if len(shapes) > 1:
            raise SqlError("2202E", "multidimensional arrays must have array expressions with matching dimensions")
        if shapes == {((), ())}:
            return ()
        if lower := _bounds(items[0]):
            return bounded(tuple(map(tuple, items)), (1, *lower))
    return items


def _bounds(array: Array) -> tuple[int, ...]:
    return array.lower if isinstance(array, Bounded) else ()


@per_value(
    "array_subscript", (ANYARRAY, INT4), ANYELEMENT, variadic=True, needs_site=True, vector=array_columns.subscript
)
def array_subscript(site: CallSite, array: Array, *places: int) -> Any:
    lengths = _shape(array, site.args[0])
    if len(lengths) != len(places):
        return None
    at = [place - low for place, low in zip(places, _lower(array, site.args[0]), strict=True)]
    if not all(0 <= p < n for p, n in zip(at, lengths, strict=True)):
        return None
    item: Any = array
    for place in at:
        item = item[place]
    return item


@per_value("name_subscript", (NAME, INT4), SqlType(Kind.CHAR1), internal=True)
def name_subscript(name: str, place: int) -> str | None:
    """A byte of a name, counted from 0; behind its end there are zeros, up to its 64 bytes."""
    data = name.encode()
    if not 0 <= place < 64:
        return None
    return data[place : place + 1].decode("latin-1")


@per_value("array_slice", (ANYARRAY, INT4), ANYARRAY, variadic=True, needs_site=True)
def array_slice(site: CallSite, array: Array, *bounds: int) -> Array:
    """``a[low:high]…``: what the array has of it, all of the dimensions that are left out."""
    lengths = _shape(array, site.args[0])
    if len(bounds) > 2 * len(lengths):
        return ()
    pairs = zip(bounds[::2], bounds[1::2], lengths, _lower(array, site.args[0]), strict=False)
    cut = [(max(low - first, 0), min(high - first + 1, n)) for low, high, n, first in pairs]
    return () if any(first >= end for first, end in cut) else _cut(array, cut)


def _cut(array: Array, cut: Sequence[tuple[int, int]]) -> Array:
    first, end = cut[0]
    return array[first:end] if len(cut) == 1 else tuple(_cut(item, cut[1:]) for item in array[first:end])


def _given(place: int | None) -> int:
    """A subscript of an assignment."""
    if place is None:
        raise SqlError("22004", "array subscript in assignment must not be null")
    return place


def _check_size(length: int) -> None:
    """54000: an array longer than Postgres's."""
    if length > _LONGEST:
        raise SqlError("54000", f"array size exceeds the maximum allowed ({_LONGEST})")


@per_value("array_assign", (ANYARRAY, ANYELEMENT, INT4), ANYARRAY, strict=False, variadic=True, needs_site=True)
def array_assign(site: CallSite, array: Array | None, item: Any, *places: int | None) -> Array:
    """``a[i]… = item``: the array with another element; NULLs fill a gap behind the last one."""
    return assigned(site.args[0], array or (), item, [_given(p) for p in places])


def assigned(type_: SqlType, array: Array, item: Any, at: Sequence[int]) -> Array:
    """An array of this type with another element at these subscripts. Raises 2202E, 54000."""
    if array and len(_shape(array, type_)) != len(at):
        raise SqlError("2202E", "wrong number of array subscripts")
    return _filled(type_, array, [(p, p) for p in at], iter([item]))


@per_value("array_assign_slice", (ANYARRAY, ANYARRAY, INT4), ANYARRAY, strict=False, variadic=True, needs_site=True)
def array_assign_slice(site: CallSite, array: Array | None, given: Array | None, *bounds: int | None) -> Array | None:
    """``a[low:high]… = given``, whose elements are taken in their order."""
    places = [(_given(low), _given(high)) for low, high in zip(bounds[::2], bounds[1::2], strict=True)]
    if given is None:
        return array
    own = array or ()
    lengths, lower = _shape(own, site.args[0]), _lower(own, site.args[0])
    if lengths and len(lengths) < len(places):
        raise SqlError("2202E", "wrong number of array subscripts")
    if not lengths and any(first == OWN[0] or last == OWN[1] for first, last in places):
        detail = "When assigning to a slice of an empty array value, slice boundaries must be fully specified."
        raise SqlError("2202E", "array slice subscript must provide both boundaries", detail)
    places += [OWN] * (len(lengths) - len(places))
    if lengths:
        whole = [(low, low + n - 1) for low, n in zip(lower, lengths, strict=True)]
        places = [
            (low if first == OWN[0] else first, high if last == OWN[1] else last)
            for (first, last), (low, high) in zip(places, whole, strict=True)
        ]
    if any(last < first for first, last in places):
        raise SqlError("2202E", "upper bound cannot be less than lower bound")
    for first, last in places:
        _check_size(last - first + 1)
    items = flatten(given, _element(site.args[1]).kind)
    if len(items) < math.prod(last - first + 1 for first, last in places):
        raise SqlError("2202E", "source array too small")
    return _filled(site.args[0], own, places, iter(items))


def _filled(type_: SqlType, array: Array, places: Sequence[tuple[int, int]], items: Iterator[Any]) -> Array:
    """The array with these items from the first to the last place of each dimension. Only an array of one dimension
    grows: NULLs fill a gap before or behind its elements. Raises 2202E, 54000."""
    lengths, lower = _shape(array, type_), _lower(array, type_)
    if not lengths:
        lengths, lower = (0,) * len(places), tuple(first for first, _ in places)
    ends = [low + n for low, n in zip(lower, lengths, strict=True)]
    outside = any(first < low or last >= end for (first, last), low, end in zip(places, lower, ends, strict=True))
    if len(lengths) > 1 and array and outside:
        raise SqlError("2202E", "array subscript out of range")
    first = min(places[0][0], lower[0])
    _check_size(max(places[0][1] + 1, ends[0]) - first)
    whole = ((None,) * (lower[0] - first) + tuple(array)) if array else ()
    cut = [(start - low, last + 1 - low) for (start, last), low in zip(places, (first, *lower[1:]), strict=True)]
    return bounded(_put(whole, cut, items), (first, *lower[1:]))


def _put(array: Array, cut: Sequence[tuple[int, int]], items: Iterator[Any]) -> Array:
    """The same for places counted from 0."""
    first, end = cut[0]
    longer = (*array, *(None,) * (end - len(array)))
    if len(cut) == 1:
        return (*longer[:first], *(next(items) for _ in range(first, end)), *longer[end:])
    return (*longer[:first], *(_put(inner or (), cut[1:], items) for inner in longer[first:end]), *longer[end:])


@per_value("array_upper", (ANYARRAY, INT4), INT4, needs_site=True)
def array_upper(site: CallSite, array: Array, dimension: int) -> int | None:
    length, low = array_length(site, array, dimension), array_lower(site, array, dimension)
    return None if length is None or low is None else low + length - 1


@per_value("array_length", (ANYARRAY, INT4), INT4, needs_site=True, vector=array_columns.length)
def array_length(site: CallSite, array: Array, dimension: int) -> int | None:
    lengths = _shape(array, site.args[0])
    return lengths[dimension - 1] if 1 <= dimension <= len(lengths) else None


@per_value("array_lower", (ANYARRAY, INT4), INT4, needs_site=True)
def array_lower(site: CallSite, array: Array, dimension: int) -> int | None:
    lower = _lower(array, site.args[0])
    return lower[dimension - 1] if 1 <= dimension <= len(lower) else None


@per_value("array_ndims", (ANYARRAY,), INT4, needs_site=True)
def array_ndims(site: CallSite, array: Array) -> int | None:
    return len(_shape(array, site.args[0])) or None


@per_value("array_dims", (ANYARRAY,), TEXT, needs_site=True)
def array_dims(site: CallSite, array: Array) -> str | None:
    pairs = zip(_lower(array, site.args[0]), _shape(array, site.args[0]), strict=True)
    return "".join(f"[{low}:{low + n - 1}]" for low, n in pairs) or None


@per_value("cardinality", (ANYARRAY,), INT4, needs_site=True, vector=array_columns.cardinality)
def cardinality(site: CallSite, array: Array) -> int:
    return len(flatten(array, _element(site.args[0]).kind))


def _one_dimension(site: CallSite, array: Array, type_: SqlType) -> None:
    if len(_shape(array, type_)) > 1:
        raise SqlError("22000", "argument must be empty or one-dimensional array")


def _putting(*names: str, args: tuple[Polymorphic, Polymorphic], form: VectorForm) -> Callable[[_Made], _Made]:
    """Adds functions that put arrays and elements together."""

    def decorate(implementation: _Made) -> _Made:
        for name in names:
            per_value(name, args, ANYCOMPATIBLEARRAY, strict=False, needs_site=True, vector=form)(implementation)
        return implementation

    return decorate


@_putting("array_append", "||", args=(ANYCOMPATIBLEARRAY, ANYCOMPATIBLE), form=array_columns.appended)
def array_append(site: CallSite, array: Array | None, item: Any) -> Array:
    _one_dimension(site, array or (), site.args[0])
    return bounded((*(array or ()), item), lower_bounds(array, 1))


@_putting("array_prepend", "||", args=(ANYCOMPATIBLE, ANYCOMPATIBLEARRAY), form=array_columns.prepended)
def array_prepend(site: CallSite, item: Any, array: Array | None) -> Array:
    _one_dimension(site, array or (), site.args[1])
    return bounded((item, *(array or ())), lower_bounds(array, 1))


@_putting("array_cat", "||", args=(ANYCOMPATIBLEARRAY, ANYCOMPATIBLEARRAY), form=array_columns.concatenated)
def array_cat(site: CallSite, left: Array | None, right: Array | None) -> Array | None:
    if left is None or right is None:
        return left if right is None else right
    if not left or not right:
        return left or right
    one, two = _shape(left, site.args[0]), _shape(right, site.args[1])
    # the lengths and lower bounds of the dimensions
    first = list(zip(one, lower_bounds(left, len(one)), strict=True))
    second = list(zip(two, lower_bounds(right, len(two)), strict=True))
    if first[1:] == second[1:]:
        return bounded((*left, *right), lower_bounds(left, len(one)))
    if first[1:] == second:
        return bounded((*left, tuple(right)), lower_bounds(left, len(one)))
    if first == second[1:]:
        return bounded((tuple(left), *right), lower_bounds(right, len(two)))
    raise SqlError("2202E", "cannot concatenate incompatible arrays")


@per_value("array_position", (ANYCOMPATIBLEARRAY, ANYCOMPATIBLE, INT4), INT4, strict=False, needs_site=True)
@per_value("array_position", (ANYCOMPATIBLEARRAY, ANYCOMPATIBLE), INT4, strict=False, needs_site=True)
def array_position(site: CallSite, array: Array | None, item: Any, start: int | None = -(2**31)) -> int | None:
    if array is None or not array or (item is None and None not in array):
        return None
    if start is None:
        raise SqlError("22004", "initial position must not be null")
    found = _positions(site, array, item)
    return next((place for place in found if place >= start), None)


@per_value(
    "array_positions", (ANYCOMPATIBLEARRAY, ANYCOMPATIBLE), SqlType(Kind.ARRAY, element=INT4), strict=False,
    needs_site=True,
)  # fmt: skip
def array_positions(site: CallSite, array: Array | None, item: Any) -> Array | None:
    return None if array is None else tuple(_positions(site, array, item))


def _positions(site: CallSite, array: Array, item: Any) -> list[int]:
    element = _element(site.args[0])
    if len(_shape(array, site.args[0])) > 1:
        raise unsupported("searching for elements in multidimensional arrays")
    wanted = equality_key(element, item)
    return [
        place
        for place, other in enumerate(array, _first(array, site.args[0]))
        if equality_key(element, other) == wanted
    ]


def _first(array: Array, type_: SqlType) -> int:
    """The subscript of the first element."""
    return (*_lower(array, type_), 1)[0]


@per_value("array_remove", (ANYCOMPATIBLEARRAY, ANYCOMPATIBLE), ANYCOMPATIBLEARRAY, strict=False, needs_site=True)
def array_remove(site: CallSite, array: Array | None, item: Any) -> Array | None:
    if array is None:
        return None
    gone, first = set(_positions(site, array, item)), _first(array, site.args[0])
    kept = tuple(other for place, other in enumerate(array, first) if place not in gone)
    return bounded(kept, lower_bounds(array, 1))


@per_value(
    "array_replace", (ANYCOMPATIBLEARRAY, ANYCOMPATIBLE, ANYCOMPATIBLE), ANYCOMPATIBLEARRAY, strict=False,
    needs_site=True,
)  # fmt: skip
def array_replace(site: CallSite, array: Array | None, old: Any, new: Any) -> Array | None:
    if array is None:
        return None
    changed, first = set(_positions(site, array, old)), _first(array, site.args[0])
    items = tuple(new if place in changed else other for place, other in enumerate(array, first))
    return bounded(items, lower_bounds(array, 1))


_INTS = SqlType(Kind.ARRAY, element=INT4)
_LARGEST = 134_217_727


@per_value("array_fill", (ANYNONARRAY, _INTS), ANYARRAY, strict=False)
def array_fill(item: Any, lengths: Array | None) -> Array:
    """An array of one value."""
    return array_fill_from(item, lengths, (1,) * len(lengths or ()))


@per_value("array_fill", (ANYNONARRAY, _INTS, _INTS), ANYARRAY, strict=False)
def array_fill_from(item: Any, lengths: Array | None, lower: Array | None) -> Array:
    """The same with the lower bounds."""
    if lengths is None or lower is None:
        raise SqlError("22004", "dimension array or low bound array cannot be null")
    if any(isinstance(part, tuple) for part in (*lengths, *lower)):
        raise SqlError("2202E", "wrong number of array subscripts", "Dimension array must be one dimensional.")
    if None in lengths or None in lower:
        raise SqlError("22004", "dimension values cannot be null")
    if len(lower) != len(lengths):
        detail = "Low bound array has different size than dimensions array."
        raise SqlError("2202E", "wrong number of array subscripts", detail)
    check_dimensions(len(lengths))
    if any(length < 0 for length in lengths) or math.prod(lengths) > _LARGEST:
        raise SqlError("54000", f"array size exceeds the maximum allowed ({_LARGEST})")
    if 0 in lengths or not lengths:
        return ()
    room(100 * math.prod(lengths))  # its bytes are made one by one
    filled = item
    for length in reversed(lengths):
        filled = (filled,) * length
    return bounded(tuple(filled), lower)


@per_value("trim_array", (ANYARRAY, INT4), ANYARRAY)
def trim_array(array: Array, count: int) -> Array:
    if not 0 <= count <= len(array):
        raise SqlError("2202E", f"number of elements to trim must be between 0 and {len(array)}")
    return array[: len(array) - count]


def _classes(site: CallSite, array: Array) -> set[Any]:
    # NULL elements equal nothing
    element = _element(site.args[0])
    return {equality_key(element, item) for item in flatten(array, element.kind) if item is not None}


@per_value("@>", (ANYARRAY, ANYARRAY), BOOL, needs_site=True)
def array_contains(site: CallSite, left: Array, right: Array) -> bool:
    if None in flatten(right, _element(site.args[0]).kind):
        return False
    return _classes(site, right) <= _classes(site, left)


@per_value("<@", (ANYARRAY, ANYARRAY), BOOL, needs_site=True)
def array_contained(site: CallSite, left: Array, right: Array) -> bool:
    return array_contains(site, right, left)


@per_value("&&", (ANYARRAY, ANYARRAY), BOOL, needs_site=True)
def array_overlaps(site: CallSite, left: Array, right: Array) -> bool:
    return not _classes(site, left).isdisjoint(_classes(site, right))
