"""What the server knows about who may connect: the rules, the roles' verifiers, and the server's certificate."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ivm.errors import SqlError
from sql.admission.admission import Client
from sql.admission.delays import Delays
from sql.admission.matching import matching
from sql.admission.rules import ANYBODY_HERE, FILE, BadLine, Rule, parse_rules, plain_address
from sql.admission.tls import Tls, TlsFiles
from sql.catalog.access import Access
from storage.scram import Verifier, mock_verifier, parse_verifier

log = logging.getLogger("freshet.admission")

NOT_ENCRYPTED: Final = "no encryption"
ENCRYPTED: Final = "SSL encryption"


@dataclass(frozen=True, slots=True)
class Secret:
    """A role's verifier. ``doomed``: none that lets anybody in, for the reason ``why``."""

    verifier: Verifier
    doomed: bool = False
    why: str = ""


class Gate:
    """``folder``: where the rules are; None for none. ``access``: the roles now. ``secret``: of the server. ``now``:
    µs since 2000 UTC. ``elsewhere``: whether the server listens to more than its own machine.

    What is read from files is replaced as a whole, or not at all.
    """

    def __init__(
        self, folder: Path | None, access: Callable[[], Access], secret: bytes, now: Callable[[], int],
        files: TlsFiles | None = None, elsewhere: bool = False,
    ) -> None:  # fmt: skip
        self._path = None if folder is None else folder / FILE
        self._access, self._secret, self._now, self._files = access, secret, now, files
        self._elsewhere = elsewhere
        self.delays = Delays()
        self._loaded: tuple[tuple[Rule, ...], Tls | None] = ANYBODY_HERE, None

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules in force."""
        return self._loaded[0]

    @property
    def tls(self) -> Tls | None:
        """The certificate in force; None without TLS."""
        return self._loaded[1]

    def load(self, default: str | None = None) -> None:
        """Read the rules, or take these without a file, and the certificate. SqlError F0000, and nothing is changed:
        they do not hold, would let in whoever is elsewhere without a password or TLS, or the file of the rules in force
        is gone."""
        tls = None if self._files is None else self._files.load()
        text = self._text()
        text = default if text is None else text
        if text is None and self.rules is not ANYBODY_HERE:
            raise SqlError("F0000", f'could not open file "{self._path}": it is gone')
        rules = ANYBODY_HERE if text is None else _checked(text, str(self._path))
        if self._elsewhere:
            _check_elsewhere(rules, tls)
        self._loaded = rules, tls

    def reload(self) -> bool:
        """Read them again; what cannot be read leaves what is in force, and is logged."""
        try:
            self.load()
        except SqlError as error:
            hint = f" ({error.hint})" if error.hint else ""
            log.error("rules and certificates were not reloaded: %s%s", error.message, hint)
            return False
        log.info("rules and certificates reloaded")
        return True

    def lines(self) -> tuple[Rule | BadLine, ...]:
        """What the file says now, whether or not it is in force."""
        text = self._text()
        return () if text is None else tuple(parse_rules(text))

    def _text(self) -> str | None:
        """The file; None without one. SqlError F0000."""
        if self._path is None:
            return None
        try:
            return self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise SqlError("F0000", f'could not open file "{self._path}": {reason}') from None

    def rule(self, client: Client, database: str, user: str) -> Rule:
        """The rule for a client. SqlError 28000: there is none, or it says reject."""
        address = plain_address(client.host)
        found = matching(self.rules, self._access(), address, client.tls is not None, database, user)
        encryption = ENCRYPTED if client.tls is not None else NOT_ENCRYPTED
        which = f'for host "{client.host}", user "{user}", database "{database}", {encryption}'
        if found is None:
            raise SqlError("28000", f"no {FILE} entry {which}")
        if found.method == "reject":
            raise SqlError("28000", f"{FILE} rejects connection {which}")
        return found

    def secret(self, user: str) -> Secret:
        """The verifier of a role, or a mock that nothing fits."""
        role = self._access().named(user)
        mock = mock_verifier(user, self._secret)
        if role is None:
            return Secret(mock, True, f'Role "{user}" does not exist.')
        if role.password is None:
            return Secret(mock, True, f'User "{user}" has no password assigned.')
        if role.valid_until is not None and role.valid_until < self._now():
            return Secret(mock, True, f'User "{user}" has an expired password.')
        found = parse_verifier(role.password)
        if found is None:
            return Secret(mock, True, f'User "{user}" does not have a valid SCRAM secret.')
        return Secret(found)


def _checked(text: str, path: str) -> tuple[Rule, ...]:
    """The rules of a file. SqlError F0000 for a line that is none."""
    rules = []
    for line in parse_rules(text):
        if isinstance(line, BadLine):
            message = f'line {line.line} of configuration file "{path}": {line.message}'
            raise SqlError("F0000", message, hint=line.hint)
        rules.append(line)
    return tuple(rules)


def _check_elsewhere(rules: tuple[Rule, ...], tls: Tls | None) -> None:
    message = "the server listens on other addresses than this machine's own only with TLS and passwords"
    if tls is None:
        raise SqlError("F0000", message, hint="Give --tls-cert and --tls-key, or listen on 127.0.0.1.")
    if rules is ANYBODY_HERE:
        hint = f"Give --init-password-file FILE once, or write {FILE} into the data folder."
        raise SqlError("F0000", message, hint=hint)
    trusting = next((rule for rule in rules if rule.trusts_others), None)
    if trusting is not None:
        hint = f"Line {trusting.line} of {FILE} trusts whoever connects; write scram-sha-256 or cert."
        raise SqlError("F0000", message, hint=hint)


def loopback_gate() -> Gate:
    """A gate that lets in whoever is on this machine, under any name."""
    return Gate(None, Access, b"", lambda: 0)
