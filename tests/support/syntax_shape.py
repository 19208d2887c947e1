"""A syntax tree as one line of text: ``(Class field …)``, without offsets and empty fields."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass

from sql.parse import parse
from tests.support.paths import ANSWERS


def shape(node: object) -> str:
    """Tuples in brackets; fields with a default are named."""
    if isinstance(node, tuple):
        return "[" + " ".join(shape(item) for item in node) + "]"
    if not is_dataclass(node):
        return repr(node)
    parts = [type(node).__name__]
    for field in fields(node):
        value = getattr(node, field.name)
        if field.name not in ("at", "text_at") and _is_there(value, field.default):
            parts.append(shape(value) if field.default is MISSING else f"{field.name}={shape(value)}")
    return "(" + " ".join(parts) + ")"


def _is_there(value: object, default: object) -> bool:
    return value is not None and value is not False and value != () and (default is MISSING or value != default)


def main() -> None:
    """``python -m tests.support.syntax_shape`` rewrites syntax_trees.txt; review the diff before committing it."""
    path = ANSWERS / "syntax_trees.txt"
    statements = path.read_text().splitlines()[::3]
    path.write_text("\n\n".join(f"{sql}\n{shape(parse(sql))}" for sql in statements) + "\n")


if __name__ == "__main__":
    main()
