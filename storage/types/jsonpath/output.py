"""Items → jsonpath text, as PostgreSQL prints it (printJsonPathItem in jsonpath.c)."""

from __future__ import annotations

from typing import Final

from ivm.errors import too_deep
from storage.types.jsonpath.nodes import ARITHMETIC, COMPARISONS, UNBOUNDED, Item, Path, Step
from storage.types.numeric import numeric_text
from storage.types.text_json import quoted

_PLAIN: Final = {
    Step.NULL: "null", Step.CURRENT: "@", Step.ROOT: "$", Step.LAST: "last", Step.ANY_ARRAY: "[*]"
}  # fmt: skip
_BINARY: Final = (*COMPARISONS, *ARITHMETIC, Step.AND, Step.OR, Step.STARTS_WITH)
_PRIORITIES: Final = {
    Step.OR: 0, Step.AND: 1, **dict.fromkeys((*COMPARISONS, Step.STARTS_WITH), 2), Step.ADD: 3, Step.SUBTRACT: 3,
    Step.MULTIPLY: 4, Step.DIVIDE: 4, Step.MODULO: 4, Step.PLUS: 5, Step.MINUS: 5,
}  # fmt: skip


def format_path(path: Path) -> str:
    """The text of a path. Raises 54001."""
    out: list[str] = [] if path.lax else ["strict "]
    try:
        _print(out, path.item, False, True)
    except RecursionError:
        raise too_deep() from None
    return "".join(out)


def _priority(item: Item) -> int:
    return _PRIORITIES.get(item.step, 6)


def _print(out: list[str], item: Item | None, in_key: bool, in_brackets: bool) -> None:
    """``in_key``: behind another item; ``in_brackets``: an operator stands in parentheses."""
    while item is not None:
        _one(out, item, in_key, in_brackets)
        item, in_key, in_brackets = item.next, True, True


def _operand(out: list[str], item: Item, of: Item) -> None:
    _print(out, item, False, _priority(item) <= _priority(of))


def _one(out: list[str], item: Item, in_key: bool, in_brackets: bool) -> None:
    match item.step:
        case Step.KEY:
            out.append(("." if in_key else "") + quoted(item.value))
        case Step.STRING:
            out.append(quoted(item.value))
        case Step.VARIABLE:
            out.append("$" + quoted(item.value))
        case Step.NUMBER:
            text = numeric_text(item.value)
            out.append(f"({text})" if item.next is not None else text)
        case Step.BOOL:
            out.append("true" if item.value else "false")
        case Step.ANY_KEY:
            out.append(".*" if in_key else "*")
        case Step.ANY:
            out.append(("." if in_key else "") + _levels(*item.value))
        case Step.INDEX:
            _subscripts(out, item)
        case Step.METHOD:
            out.append(f".{item.value}(")
            for arg in item.args:
                _print(out, arg, False, False)
            out.append(")")
        case Step.FILTER | Step.NOT | Step.IS_UNKNOWN | Step.EXISTS:
            before, after = _AROUND[item.step]
            out.append(before)
            _print(out, item.args[0], False, False)
            out.append(after)
        case step if step in _PLAIN:
            out.append(_PLAIN[step])
        case _:
            if in_brackets:
                out.append("(")
            _operator(out, item)
            if in_brackets:
                out.append(")")


_AROUND: Final = {
    Step.FILTER: ("?(", ")"), Step.NOT: ("!(", ")"), Step.IS_UNKNOWN: ("(", ") is unknown"),
    Step.EXISTS: ("exists (", ")"),
}  # fmt: skip


def _operator(out: list[str], item: Item) -> None:
    if item.step in _BINARY:
        left, right = item.args
        _operand(out, left, item)
        out.append(f" {item.step.value} ")
        _operand(out, right, item)
        return
    if item.step is Step.LIKE_REGEX:
        pattern, flags = item.value
        _operand(out, item.args[0], item)
        out.append(f" like_regex {quoted(pattern)}" + (f' flag "{flags}"' if flags else ""))
        return
    assert item.step in (Step.PLUS, Step.MINUS), item.step
    out.append("+" if item.step is Step.PLUS else "-")
    _operand(out, item.args[0], item)


def _subscripts(out: list[str], item: Item) -> None:
    out.append("[")
    for i, (low, high) in enumerate(item.value):
        if i:
            out.append(",")
        _print(out, low, False, False)
        if high is not None:
            out.append(" to ")
            _print(out, high, False, False)
    out.append("]")


def _levels(first: int, last: int) -> str:
    if (first, last) == (0, UNBOUNDED):
        return "**"
    shown = ["last" if level == UNBOUNDED else str(level) for level in (first, last)]
    return f"**{{{shown[0]}}}" if first == last else f"**{{{' to '.join(shown)}}}"
