"""How a session's strings are read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Quoting:
    r"""What is not as the standard says. ``escapes``: standard_conforming_strings is off; ``warns``:
    escape_string_warning is on; ``refuses``: backslash_quote forbids ``\'``."""

    escapes: bool
    warns: bool
    refuses: bool
