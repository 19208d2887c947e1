"""What depends on the objects of a DROP: the error without CASCADE, and the notice with it."""

from __future__ import annotations

from collections.abc import Sequence

from ivm.errors import SqlError
from sql.statements.results import Notice, Notify


def dependents_error(what: str, lines: Sequence[str], several: bool = False) -> SqlError:
    """2BP01. ``what``: the object; ``lines``: a dependency each; ``several``: ``what`` stands for several objects."""
    message = f"cannot drop {what} because other objects depend on {'them' if several else 'it'}"
    return SqlError("2BP01", message, "\n".join(lines), "Use DROP ... CASCADE to drop the dependent objects too.")


def tell_cascade(notify: Notify, dependents: Sequence[str]) -> None:
    """Tell the client what else is dropped, if anything is."""
    lines = [f"drop cascades to {what}" for what in dependents]
    if len(lines) == 1:
        notify(Notice("NOTICE", "00000", lines[0]))
    elif lines:
        message = f"drop cascades to {len(lines)} other objects"
        notify(Notice("NOTICE", "00000", message, "\n".join(lines)))
