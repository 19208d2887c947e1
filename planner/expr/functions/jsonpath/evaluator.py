"""Evaluation of a jsonpath over a JSON value, as PostgreSQL's jsonpath_exec.c.

A value is one of ``storage.types.text_json``, or a ``Moment``. Errors that a predicate or ``silent`` turns into unknown
are ``PathError``; others (a missing variable, a wrong template) are SqlErrors and always raised.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final

from ivm.errors import SqlError
from ivm.stops import poll
from planner.expr.functions.json.trees import kind_of
from planner.expr.functions.jsonpath import identities
from planner.expr.functions.jsonpath.errors import PathError, failing
from planner.expr.functions.jsonpath.moments import Moment
from planner.expr.functions.jsonpath.numbers import OPERATIONS, array_index, method_of_number, to_double
from planner.expr.functions.jsonpath.predicates import matched
from planner.expr.functions.jsonpath.times import to_moment
from storage.types.jsonpath.nodes import ARITHMETIC, PREDICATES, UNBOUNDED, Item, Path, Step

MAX_STEPS: Final = 1_000_000
"""How many items an evaluation may visit: ``$.**.**.**`` of a large value would take for ever."""
_CONSTANTS: Final = (Step.NULL, Step.BOOL, Step.NUMBER, Step.STRING)
Found = list[Any] | None
"""Where results are appended; None: whether there is one is all that is asked."""
_ID_STEP: Final = 10**10


def kind(value: Any) -> str:
    """The kind of a value, as the method type() names it."""
    return value.type if isinstance(value, Moment) else kind_of(value)


class Evaluation:
    """One evaluation. ``variables``: an object, or None if there are none; ``zone``: the time zone and now, where they
    may be used. Methods return whether there is a result."""

    def __init__(
        self, path: Path, document: Any, variables: dict[str, Any] | None, zone: tuple[str, int] | None = None
    ) -> None:
        self.lax = path.lax
        self.item = path.item
        self.document = self.current = document
        self.variables = variables
        self.zone = zone
        self.forgiving = path.lax
        """Structural errors are ignored."""
        self.size = -1
        """Of the innermost array, for ``last``."""
        self.base: tuple[Any, int] = (None, 0)
        """What the ids of keyvalue() are relative to, and its own id."""
        self.next_base = 1 if variables is None else 2
        self.offsets: dict[int, dict[int, int]] = {}
        self.steps = 0
        self.quiet = False
        """Errors are suppressed: ``**`` goes on after one of the value itself."""

    def query(self, silent: bool) -> list[Any]:
        """All results; where ``silent``, those before an error. Raises SqlError."""
        found: list[Any] = []
        self.quiet = silent
        try:
            self._visit(self.item, self.document, found)
        except PathError as failure:
            if not silent:
                raise failure.error from None
        return found

    def results(self) -> list[Any]:
        """All results. Raises PathError."""
        found: list[Any] = []
        self._visit(self.item, self.document, found)
        return found

    def exists(self, silent: bool) -> bool | None:
        """Whether there is a result; None for an error that is ``silent``. Raises SqlError."""
        self.quiet = silent
        try:
            if self.lax:
                return self._visit(self.item, self.document, None)
            found: list[Any] = []
            self._visit(self.item, self.document, found)
            return bool(found)
        except PathError as failure:
            if not silent:
                raise failure.error from None
            return None

    # -- items -----------------------------------------------------------------------------------------------------

    def _next(self, item: Item, value: Any, found: Found) -> bool:
        """Applies what follows an item to its result."""
        if item.next is not None:
            return self._visit(item.next, value, found)
        if found is not None:
            found.append(value)
        return True

    def _visit(self, item: Item, value: Any, found: Found, unwrap: bool | None = None) -> bool:
        """Applies an item. ``unwrap``: to the elements of an array, where it is not for arrays; None: if lax."""
        self.steps += 1
        if not self.steps & 1023:
            poll()
        if self.steps > MAX_STEPS:
            raise SqlError("54000", f"evaluation of a jsonpath visits more than {MAX_STEPS} items")
        unwrap = self.lax if unwrap is None else unwrap
        step = item.step
        if step is Step.KEY:
            return self._key(item, value, found, unwrap)
        if step in PREDICATES:
            truth = self.truth(item, value)
            return self._next(item, truth, found)
        if step in _CONSTANTS:
            return self._next(item, item.value, found)
        if step in ARITHMETIC:
            return self._arithmetic(item, value, found)
        return getattr(self, _RULES[step])(item, value, found, unwrap)  # type: ignore[no-any-return]

    def _each(self, item: Item | None, values: Iterable[Any], found: Found, unwrap: bool) -> bool:
        """Applies an item to several values; without one they are the results."""
        result = False
        for value in values:
            if item is not None:
                result = self._visit(item, value, found, unwrap)
            elif found is not None:
                found.append(value)
                continue
            else:
                return True
            if result and found is None:
                break
        return result

    def _unwrapped(self, item: Item, value: list[Any], found: Found) -> bool:
        """Applies an item to an array's elements, which are not unwrapped again."""
        return self._each(item, value, found, False)

    def _structural(self, sqlstate: str, message: str) -> bool:
        """No result; where structural errors are not ignored, raises one."""
        if not self.forgiving:
            raise failing(sqlstate, message)
        return False

    def _key(self, item: Item, value: Any, found: Found, unwrap: bool) -> bool:
        if isinstance(value, dict):
            if item.value in value:
                return self._next(item, value[item.value], found)
            return self._structural("2203A", f'JSON object does not contain key "{item.value}"')
        if unwrap and isinstance(value, list):
            return self._unwrapped(item, value, found)
        return self._structural("2203A", "jsonpath member accessor can only be applied to an object")

    def _any_key(self, item: Item, value: Any, found: Found, unwrap: bool) -> bool:
        if isinstance(value, dict):
            return self._each(item.next, value.values(), found, self.lax)
        if unwrap and isinstance(value, list):
            return self._unwrapped(item, value, found)
        return self._structural("2203C", "jsonpath wildcard member accessor can only be applied to an object")

    def _any_array(self, item: Item, value: Any, found: Found, unwrap: bool) -> bool:
        if isinstance(value, list):
            return self._each(item.next, value, found, self.lax)
        if self.lax:
            return self._next(item, value, found)
        return self._structural("22039", "jsonpath wildcard array accessor can only be applied to an array")

    def _index(self, item: Item, value: Any, found: Found, unwrap: bool) -> bool:
        if not isinstance(value, list) and not self.lax:
            return self._structural("22039", "jsonpath array accessor can only be applied to an array")
        elements = value if isinstance(value, list) else [value]
        outer, self.size = self.size, len(elements)
        result = False
        try:
            for low, high in item.value:
                first = self._subscript(low, value)
                last = first if high is None else self._subscript(high, value)
                if not self.forgiving and (first < 0 or first > last or last >= len(elements)):
                    raise failing("22033", "jsonpath array subscript is out of bounds")
                result = False
                for element in elements[max(first, 0) : max(last + 1, 0)]:
                    result = self._next(item, element, found)
                    if result and found is None:
                        return True
        finally:
            self.size = outer
        return result

    def _subscript(self, item: Item, value: Any) -> int:
        found: list[Any] = []
        self._visit(item, value, found)
        return array_index(found)

    def _last(self, item: Item, value: Any, found: Found, unwrap: bool) -> bool:
        return self._next(item, Decimal(self.size - 1), found)

    def _root(self, item: Item, value: Any, found: Found, unwrap: bool) -> bool:
        return self._based(item, self.document, found, (self.document, 0))

    def _based(self, item: Item, value: Any, found: Found, base: tuple[Any, int]) -> bool:
        """Goes on with a value that the ids of keyvalue() are relative to."""
        outer, self.base = self.base, base
        result = self._next(item, value, found)
        self.base = outer
        return result

    def _current(self, item: Item, value: Any, found: Found, unwrap: bool) -> bool:
        return self._next(item, self.current, found)

    def _variable(self, item: Item, value: Any, found: Found, unwrap: bool) -> bool:
        if self.variables is None:
            return self._next(item, None, found)
        if item.value not in self.variables:
            raise SqlError("42704", f'could not find jsonpath variable "{item.value}"')
        return self._based(item, self.variables[item.value], found, (self.variables, 1))

    def _filter(self, item: Item, value: Any, found: Found, unwrap: bool) -> bool:
        if unwrap and isinstance(value, list):
            return self._unwrapped(item, value, found)
        outer, self.current = self.current, value
        try:
            truth = self.truth(item.args[0], value)
        finally:
            self.current = outer
        return self._next(item, value, found) if truth else False

    def _any(self, item: Item, value: Any, found: Found, unwrap: bool) -> bool:
        """``**``: the value and what is inside it, to any depth."""
        outer, self.forgiving = self.forgiving, True
        is_container = isinstance(value, dict | list)
        result = False
        try:
            try:
                if item.value[0] == 0 and self._next(item, value, found) and found is None:
                    return True
            except PathError:
                if not (is_container and self.quiet):
                    raise
            if is_container:
                result = self._inside(item, value, found, 1)
        finally:
            self.forgiving = outer
        return result

    def _inside(self, item: Item, value: Any, found: Found, level: int) -> bool:
        first, last = item.value
        result = False
        if level > last:
            return result
        for part in value.values() if isinstance(value, dict) else value:
            is_container = isinstance(part, dict | list)
            if level >= first or (first == last == UNBOUNDED and not is_container):
                if item.next is not None:
                    result = self._visit(item.next, part, found)
                elif found is None:
                    return True
                else:
                    found.append(part)
                if result and found is None:
                    return True
            if level < last and is_container:
                result = self._inside(item, part, found, level + 1)
                if result and found is None:
                    return True
        return result

    # -- numbers and methods -----------------------------------------------------------------------------------------

    def sequence(self, item: Item, value: Any, unwrap: bool = True) -> list[Any]:
        """The results of an operand; ``unwrap``: if lax, the elements of those that are arrays."""
        found: list[Any] = []
        self._visit(item, value, found)
        if not unwrap or not self.lax:
            return found
        return [e for v in found for e in (v if isinstance(v, list) else (v,))]

    def _arithmetic(self, item: Item, value: Any, found: Found) -> bool:
        left, right = (self.sequence(arg, value) for arg in item.args)
        for side, operand in (("left", left), ("right", right)):
            if len(operand) != 1 or not isinstance(operand[0], Decimal):
                message = f"{side} operand of jsonpath operator {item.step.value} is not a single numeric value"
                raise failing("22038", message)
        try:
            result = OPERATIONS[item.step](left[0], right[0])
        except SqlError as error:
            raise PathError(error) from None
        return self._next(item, result, found)

    def _sign(self, item: Item, value: Any, found: Found, unwrap: bool) -> bool:
        negate = item.step is Step.MINUS
        result = False
        for operand in self.sequence(item.args[0], value):
            if not isinstance(operand, Decimal):
                if found is None and item.next is None:
                    continue
                message = f"operand of unary jsonpath operator {'-' if negate else '+'} is not a numeric value"
                raise failing("2203B", message)
            if self._next(item, operand.copy_negate() if negate and operand else operand, found):
                result = True
                if found is None:
                    break
        return result

    def _method(self, item: Item, value: Any, found: Found, unwrap: bool) -> bool:
        name = item.value
        if name == "type":
            return self._next(item, kind(value), found)
        if name == "size":
            if not isinstance(value, list) and not self.lax:
                return self._structural("22039", "jsonpath item method .size() can only be applied to an array")
            return self._next(item, Decimal(len(value) if isinstance(value, list) else 1), found)
        if unwrap and isinstance(value, list):
            return self._unwrapped(item, value, found)
        match name:
            case "keyvalue":
                return self._members(item, value, found)
            case "datetime":
                result: Any = to_moment(item, value)
            case "double":
                result = to_double(value)
            case _:
                result = method_of_number(name, value)
        return self._next(item, result, found)

    def _members(self, item: Item, value: Any, found: Found) -> bool:
        """keyvalue(): an object for each member."""
        if not isinstance(value, dict):
            raise failing("2203C", "jsonpath item method .keyvalue() can only be applied to an object")
        base, number = self.base
        known = self.offsets.setdefault(id(base), {})
        if not known:
            known.update(identities.offsets(base))
        identity = Decimal(known.get(id(value), 0) + number * _ID_STEP)
        result = False
        for key, member in value.items():
            if found is None and item.next is None:
                return True
            made = {"id": identity, "key": key, "value": member}
            self.next_base += 1
            result = self._based(item, made, found, (made, self.next_base - 1))
            self.offsets.pop(id(made), None)
            if result and found is None:
                break
        return result

    # -- predicates --------------------------------------------------------------------------------------------------

    def truth(self, item: Item, value: Any) -> bool | None:
        """A predicate's truth; None is unknown."""
        self.steps += 1
        match item.step:
            case Step.AND:
                left = self.truth(item.args[0], value)
                if left is False:
                    return False
                right = self.truth(item.args[1], value)
                return left if right else right
            case Step.OR:
                left = self.truth(item.args[0], value)
                if left:
                    return True
                right = self.truth(item.args[1], value)
                return left if right is False else right
            case Step.NOT:
                inner = self.truth(item.args[0], value)
                return None if inner is None else not inner
            case Step.IS_UNKNOWN:
                return self.truth(item.args[0], value) is None
            case Step.EXISTS:
                return self._is_there(item.args[0], value)
            case _:
                return self._compared(item, value)

    def _is_there(self, item: Item, value: Any) -> bool | None:
        outer, self.quiet = self.quiet, True
        try:
            return self._visit(item, value, None) if self.lax else bool(self.sequence(item, value, False))
        except PathError:
            return None
        finally:
            self.quiet = outer

    def _compared(self, item: Item, value: Any) -> bool | None:
        """Whether the predicate holds of any pair; in strict mode unknown if it is of any, else if it is of all that
        came before."""
        outer, self.quiet = self.quiet, True
        try:
            left = self.sequence(item.args[0], value)
            unwrap = item.step is not Step.STARTS_WITH
            right = self.sequence(item.args[1], value, unwrap) if len(item.args) > 1 else [None]
        except PathError:
            return None
        finally:
            self.quiet = outer
        unknown = holds = False
        self.steps += len(left) * len(right)
        for a in left:
            for b in right:
                truth = matched(item, a, b, self.zone)
                if truth is None:
                    if not self.lax:
                        return None
                    unknown = True
                elif truth:
                    if self.lax:
                        return True
                    holds = True
        return True if holds else None if unknown else False


_RULES: Final[dict[Step, str]] = {
    Step.ROOT: "_root", Step.CURRENT: "_current", Step.LAST: "_last", Step.VARIABLE: "_variable",
    Step.ANY_KEY: "_any_key", Step.ANY_ARRAY: "_any_array", Step.INDEX: "_index", Step.ANY: "_any",
    Step.FILTER: "_filter", Step.METHOD: "_method", Step.PLUS: "_sign", Step.MINUS: "_sign",
}  # fmt: skip
