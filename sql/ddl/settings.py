"""What databases and roles set for their sessions."""

from __future__ import annotations

from ivm.errors import unsupported
from sql.settings.settings import Settings

Set = tuple[tuple[str, str], ...]


def changed_settings(kind: str, before: Set, name: str | None, value: str | None) -> Set:
    """The settings after SET, RESET (``value`` None) or RESET ALL (``name`` None) of a database or a role. Raises 0A000
    and what ``Settings.set`` does."""
    if name is None:
        return ()
    if name in ("role", "session_authorization"):
        raise unsupported(f"ALTER {kind} SET {name.upper()}")
    Settings().set(name, value)
    kept = tuple((known, old) for known, old in before if known.lower() != name.lower())
    return kept if value is None else (*kept, (name, value))
