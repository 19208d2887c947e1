"""Users' aggregates and functions in Python: checks and loads the body, passes it values, checks what it returns.

The function must be pure: the same values give the same result, at any time and on any machine. Outside of loops the
engine does not store the output but recomputes what it was before a change.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, localcontext
from functools import lru_cache
from itertools import chain
from traceback import walk_tb
from typing import Any, Final

from ivm.errors import SqlError
from ivm.words import SqlType
from planner.expr.python_values import OutOfRangeError, WrongTypeError, from_python
from storage.types.type_names import format_type

_PLAIN: Final = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)
_DECIMALS: Final = Context()
"""What a body sets for decimals stays in it, and what others set does not come in."""
_SHOWN: Final = 300
"""Characters of a Python error's text."""


@dataclass(frozen=True, slots=True)
class PythonFunction:
    """A user's function, called with one list of values per argument, as long as the group has rows that count.

    ``kind``: aggregate; or function, which ``apply`` calls with one value per argument. ``name``: its name in errors
    and EXPLAIN. ``strict``: rows with a NULL argument do not count, and a group without
    rows gives NULL without a call.
    """

    name: str
    entry: str
    body: str
    result: SqlType
    strict: bool
    kind: str = "aggregate"

    def __call__(self, columns: Sequence[list[Any]]) -> object:
        """The group's datum. Raises 38000 if the function raises, 22P02 or 22003 for a bad return value."""
        if self.strict and not columns[0]:
            return None
        try:
            with localcontext(_DECIMALS):
                value = _loaded(self)(*columns)
        except BaseException as error:
            raise _failure(self, error) from None
        return self.datum(value)

    def apply(self, arguments: Sequence[Any]) -> Any:
        """What the function returns. Raises 38000 if it raises."""
        try:
            with localcontext(_DECIMALS):
                return _loaded(self)(*arguments)
        except BaseException as error:
            raise _failure(self, error) from None

    def rows(self, found: Any, types: Sequence[SqlType]) -> list[tuple[object, ...]]:
        """The rows of a returned iterable: of tuples or lists, or of values if there is one column. Raises 38000,
        22P02, 22003."""
        try:
            with localcontext(_DECIMALS):
                items = [] if found is None else list(found)
        except BaseException as error:
            raise _failure(self, error) from None
        made = []
        for item in items:
            row = item if isinstance(item, tuple | list) and not (len(types) == 1 and types[0].element) else (item,)
            if len(row) != len(types):
                message = f"{self.kind} {self.name} returned a row of {len(row)} values for {len(types)} columns"
                raise SqlError("22P02", message)
            made.append(tuple(self._as(type_, value) for type_, value in zip(types, row, strict=True)))
        return made

    def datum(self, value: object) -> object:
        """The datum of a returned value. Raises 22P02, 22003."""
        fields = self.result.fields
        if fields and value is not None:
            (row,) = self.rows([value], [type_ for _, type_ in fields])
            return row
        return self._as(self.result, value)

    def _as(self, type_: SqlType, value: object) -> object:
        wanted = format_type(type_, False)
        try:
            return from_python(type_, value)
        except WrongTypeError:
            found = type(value).__name__
            raise SqlError("22P02", f"{self.kind} {self.name} returned a value of Python's type {found}, "
                                    f"which is no {wanted}") from None  # fmt: skip
        except OutOfRangeError:
            raise SqlError(
                "22003", f"{self.kind} {self.name} returned a value out of range for type {wanted}"
            ) from None
        except BaseException as error:
            raise _failure(self, error) from None

    def load(self) -> None:
        """Runs the body, which defines the function. Raises 38000 if it fails."""
        try:
            with localcontext(_DECIMALS):
                _loaded(self)
        except BaseException as error:
            raise _failure(self, error) from None


def check_body(function: PythonFunction, count: int) -> None:
    """Checks, without running it, that the body defines a function of ``count`` arguments. Raises 42601, 42P13."""
    name = function.name
    try:
        tree = ast.parse(_source(function.body))
    except SyntaxError as error:
        place = "" if error.lineno is None else f" at line {error.lineno}"
        line = (error.text or "").strip()
        detail = f"The line is: {line}" if line else None
        raise SqlError(
            "42601", f"syntax error in the body of {function.kind} {name}{place}: {error.msg}", detail
        ) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise SqlError("42601", f"the body of {function.kind} {name} is no Python: {error}") from None
    found = None
    for node in tree.body:
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not is_text and not isinstance(node, _PLAIN):
            message = f"line {node.lineno} of the body of {function.kind} {name} is no import, definition or assignment"
            hint = "Outside of the function nothing else may stand."
            raise SqlError("42P13", message, hint=hint)
        if isinstance(node, ast.FunctionDef) and node.name == function.entry:
            found = node
    if found is None:
        each = "group" if function.kind == "aggregate" else "row"
        hint = (
            f"The body is Python, in which the function that has the {function.kind}'s name is called for each {each}."
        )
        raise SqlError("42P13", f'the body of {function.kind} {name} defines no function "{function.entry}"', hint=hint)
    _check_parameters(function, found.args, count)


def _check_parameters(function: PythonFunction, args: ast.arguments, count: int) -> None:
    places = len(args.posonlyargs) + len(args.args)
    fits = places - len(args.defaults) <= count and (count <= places or args.vararg is not None)
    if not fits or any(d is None for d in args.kw_defaults):
        what = "lists, one for each argument" if function.kind == "aggregate" else "arguments"
        message = f'the Python function "{function.entry}" cannot be called with {count} {what}'
        raise SqlError("42P13", message, f"It is the body of {function.kind} {function.name}.")


def _source(body: str) -> str:
    """Parses the body as a module; it may be indented as a whole, or start right after the quotes."""
    first, _, _ = body.partition("\n")
    return body.lstrip(" \t") if first.strip() else textwrap.dedent(body)


@lru_cache(maxsize=256)
def _loaded(function: PythonFunction) -> Callable[..., Any]:
    space: dict[str, Any] = {"__name__": f"{function.kind} {function.name}"}
    exec(compile(_source(function.body), _file(function), "exec", dont_inherit=True), space)
    found: Callable[..., Any] = space[function.entry]
    return found


def _file(function: PythonFunction) -> str:
    return f"<{function.kind} {function.name}>"


def _failure(function: PythonFunction, error: BaseException) -> SqlError:
    lines = [line for frame, line in walk_tb(error.__traceback__) if frame.f_code.co_filename == _file(function)]
    try:
        text = str(error)
    except BaseException:
        text = ""
    text = "".join(chain(type(error).__name__, ": " if text else "", text))[:_SHOWN].replace("\0", "")
    shown = text.encode(errors="replace").decode()
    detail = f"In line {lines[-1]} of its body." if lines else None
    return SqlError("38000", f"{function.kind} {function.name} failed: {shown}", detail)
