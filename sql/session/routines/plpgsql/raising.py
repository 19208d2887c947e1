"""RAISE and ASSERT."""

from __future__ import annotations

from ivm.errors import SqlError, Subject
from ivm.words import TEXT
from sql.session.routines.plpgsql.frame import Frame, Leave
from sql.statements.results import Notice
from sql.syntax.plpgsql import nodes
from sql.syntax.plpgsql.conditions import codes_of


def run_raise(frame: Frame, node: nodes.Raise) -> Leave | None:
    """Raise an error, or send a notice if the client wants those of the level. Raises 0Z002, 22023, 42601."""
    if node.condition is None and node.message is None and not node.options:
        if frame.handled is None:
            raise SqlError("0Z002", "RAISE without parameters cannot be used outside an exception handler")
        raise frame.handled
    message = None if node.message is None else _formatted(frame, node)
    given: dict[str, str] = {}
    for name, value in node.options:
        if name in given or (name == "message" and message is not None) or (name == "errcode" and node.condition):
            raise SqlError("42601", f"RAISE option already specified: {name.upper()}")
        given[name] = _option(frame, value)
    sqlstate = _state(node, given)
    if message is None:
        message = given.get("message") or node.condition or sqlstate or ""
    detail, hint = given.get("detail"), given.get("hint")
    if node.level == "exception":
        names = [given.get(n) for n in ("schema", "table", "column", "constraint")]
        on = Subject(names[0] or "", names[1] or "", names[2], names[3]) if any(names) else None
        raise SqlError(sqlstate or "P0001", message, detail, hint, subject=on)
    severity = "DEBUG" if node.level == "debug" else node.level.upper()
    code = sqlstate or {"warning": "01000"}.get(node.level, "00000")
    frame.nested.notice(Notice(severity, code, message, detail, hint, frame.where()))
    return None


def _state(node: nodes.Raise, given: dict[str, str]) -> str | None:
    if node.condition is not None:
        return node.condition if node.state else codes_of(node.condition)[0]
    code = given.get("errcode")
    if code is None:
        return None
    if len(code) == 5 and all(c.isascii() and (c.isdigit() or c.isupper()) for c in code):
        return code
    return codes_of(code)[0]


def _formatted(frame: Frame, node: nodes.Raise) -> str:
    """The format with each % replaced by a parameter's text."""
    assert node.message is not None, "there is a format"
    arguments = iter(node.arguments)
    parts: list[str] = []
    for i, piece in enumerate(node.message.split("%%")):
        if i:
            parts.append("%")
        first, *others = piece.split("%")
        parts.append(first)
        for other in others:
            value, type_ = frame.value(next(arguments))
            parts += ["<NULL>" if value is None else frame.text(value, type_), other]
    return "".join(parts)


def _option(frame: Frame, fragment: nodes.Fragment) -> str:
    value, type_ = frame.value(fragment)
    if value is None:
        raise SqlError("22004", "RAISE statement option cannot be null")
    return frame.text(value, type_)


def run_assert(frame: Frame, node: nodes.Assert) -> Leave | None:
    """ASSERT. Raises P0004."""
    if not frame.nested.checks_assertions or frame.condition(node.condition):
        return None
    message = None if node.message is None else frame.value_as(node.message, TEXT)
    raise SqlError("P0004", "assertion failed" if message is None else str(message))
