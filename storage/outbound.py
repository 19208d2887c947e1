"""Which hosts the server may reach on a client's behalf: object stores, Hadoop, Kafka, databases.

Names are compared as they are written, not as they resolve: what a name resolves to is its zone's owner's to change.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ivm.errors import SqlError

_PLACE: Final = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9_.-]+))(?::(?P<port>\d{1,5}))?")
_RULE: Final = re.compile(r"(?P<host>\*|\*\.[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(?::(?P<port>\d{1,5}))?")
_PATTERN: Final = re.compile(r"[*?{}\[\]\\]")


@dataclass(frozen=True, slots=True)
class Place:
    """A host, in lower case, and its port where one is given."""

    host: str
    port: int | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class HostRule:
    """``host``: a name, ``*.domain`` for all names below it, ``*`` for all, or a network of addresses. ``port`` None:
    any."""

    host: str
    port: int | None = None
    network: ipaddress.IPv4Network | ipaddress.IPv6Network | None = None

    @staticmethod
    def of(text: str) -> HostRule:
        """As ``--allow-host`` writes it. Raises 22023."""
        try:
            if "/" in text:
                return HostRule("", None, ipaddress.ip_network(text))
        except ValueError:
            raise _no_rule(text) from None
        found = _RULE.fullmatch(text)
        if found is None:
            raise _no_rule(text)
        port = None if found["port"] is None else int(found["port"])
        return HostRule(found["host"].strip("[]").lower().rstrip("."), port)

    def allows(self, place: Place) -> bool:
        if self.port is not None and self.port != place.port:
            return False
        if self.network is not None:
            address = _address(place.host)
            return address is not None and address in self.network
        if self.host.startswith("*."):
            return place.host.endswith(self.host[1:])
        return self.host in ("*", place.host)


@dataclass(frozen=True, slots=True)
class Outbound:
    """The rules of ``--allow-host``; without one nothing is reached."""

    rules: tuple[HostRule, ...] = ()

    @staticmethod
    def of(texts: Iterable[str]) -> Outbound:
        """Raises 22023."""
        return Outbound(tuple(map(HostRule.of, texts)))

    def check(self, places: Iterable[Place | None], shown: str) -> None:
        """Raises 42501 unless all the places may be reached. None: what it is cannot be told, which only ``*``
        allows. ``shown``: what names them, for the message."""
        for place in places:
            if place is None:
                if HostRule("*") not in self.rules:
                    raise _refused(shown, "the host that it names", "*")
            elif not any(rule.allows(place) for rule in self.rules):
                raise _refused(shown, f'host "{place}"', str(place))

    def check_uri(self, uri: str, shown: str) -> None:
        """The same for a URI of files: a bucket or a container's account is a host."""
        self.check([place_of_uri(uri)], shown)


NOWHERE: Final = Outbound()


@dataclass(frozen=True, slots=True)
class Reach:
    """What a statement may read: inside these folders of this machine, and from these hosts."""

    folders: tuple[Path, ...] = ()
    hosts: Outbound = NOWHERE


def place_of_uri(uri: str) -> Place | None:
    """The host, or bucket, of a URI; None where the reader's own configuration decides."""
    netloc = urlsplit(uri).netloc
    if _PATTERN.search(netloc):
        return None
    return place(netloc.rpartition("@")[2])


def place(text: str, default: int | None = None) -> Place | None:
    """``host``, ``host:port`` or ``[address]:port``; None for other text."""
    found = _PLACE.fullmatch(text)
    if found is None:
        return None
    port = default if found["port"] is None else int(found["port"])
    return Place((found["v6"] or found["name"]).lower().rstrip("."), port)


def places(text: str, default: int | None = None) -> Iterator[Place | None]:
    """Those of a list with commas."""
    for part in text.split(","):
        yield place(part.strip(), default)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _refused(shown: str, what: str, flag: str) -> SqlError:
    return SqlError(
        "42501", f'permission denied to reach {what} for "{shown}"',
        "The server reaches only the hosts that it was started with.",
        f"Start the server with --allow-host '{flag}'.",
    )  # fmt: skip


def _no_rule(text: str) -> SqlError:
    hint = "Write HOST, HOST:PORT, *.DOMAIN, a network as in 10.0.0.0/8, or * for all hosts."
    return SqlError("22023", f'"{text}" is no host for --allow-host', hint=hint)
