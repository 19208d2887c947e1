"""What is known of a client that asks to be let in, and what let it in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sql.system.state import TlsInfo


@dataclass(frozen=True, slots=True)
class Client:
    """``binding``: the hash of the server's certificate that the client sees, for channel binding."""

    host: str
    tls: TlsInfo | None = None
    binding: bytes | None = None


@dataclass(frozen=True, slots=True)
class Admission:
    """``method``: of the rule. ``anybody``: a name that is no role's means the bootstrap superuser, as long as there
    are no rules. ``identity``: what the client proved to be, a role's name or a certificate's subject."""

    method: str
    tls: TlsInfo | None = None
    anybody: bool = False
    identity: str = ""


OPEN: Final = Admission("trust", anybody=True)
"""On a server without rules."""
OWN: Final = Admission("internal")
"""Of the server's own sessions, which are the bootstrap superuser's under any name."""
