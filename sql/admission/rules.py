"""The rules of ``pg_hba.conf``: who may connect from where, and what proves it. Text in, rules and errors out.

PostgreSQL's form, except for what a server without Unix sockets, host names and other services cannot do: ``local``,
``samehost``, ``samenet``, host names, included files, and the methods but those of ``METHODS``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

FILE: Final = "pg_hba.conf"
Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

TYPES: Final = ("host", "hostssl", "hostnossl")
METHODS: Final = ("trust", "reject", "scram-sha-256", "cert")
CERTIFICATES: Final = ("verify-ca", "verify-full")
_TOKEN: Final = re.compile(r'"(?P<quoted>[^"]*)"|(?P<plain>[^\s,"#]+)')
LOOPBACK: Final = (ip_network("127.0.0.0/8"), ip_network("::1/128"))


@dataclass(frozen=True, slots=True)
class Name:
    """A name in a list. ``quoted``: it is no keyword, and + is a part of it."""

    text: str
    quoted: bool = False

    def is_word(self, word: str) -> bool:
        return self.text == word and not self.quoted


@dataclass(frozen=True, slots=True)
class Rule:
    """``network``: None for every address. ``certificate``: what ``clientcert`` asks for beside the method, or empty;
    ``verify-full`` for the method cert."""

    line: int
    type: str
    databases: tuple[Name, ...]
    users: tuple[Name, ...]
    network: Network | None
    method: str
    certificate: str = ""

    @property
    def trusts_others(self) -> bool:
        """Whether it lets in whoever is not on this machine without any proof."""
        if self.method != "trust" or self.certificate:
            return False
        net = self.network
        return net is None or not any(
            net.version == own.version and net.subnet_of(own)  # type: ignore[arg-type]
            for own in LOOPBACK
        )


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is no rule."""

    line: int
    message: str
    hint: str | None = None


ANYBODY_HERE: Final = tuple(Rule(0, "host", (Name("all"),), (Name("all"),), net, "trust") for net in LOOPBACK)
"""The rules of a data folder without the file: whoever is on this machine."""


class _BadError(Exception):
    """What is wrong with a line, and a hint."""


def plain_address(text: str) -> Address | None:
    """An address as rules are compared with it: IPv4 also where a socket of IPv6 shows it."""
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return mapped or found


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address that the server listens on."""
    found = plain_address(host)
    return host == "localhost" if found is None else found.is_loopback


def parse_rules(text: str) -> Iterator[Rule | BadLine]:
    """Every rule of the file, in order."""
    for number, line in _lines(text):
        try:
            fields = _fields(line)
            if fields:
                yield _rule(number, fields)
        except _BadError as bad:
            yield BadLine(number, bad.args[0], bad.args[1] if len(bad.args) > 1 else None)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines, each with those that a backslash joins to it, and their numbers."""
    first, joined = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        first = first or number
        if line.endswith("\\"):
            joined += line[:-1]
            continue
        yield first, joined + line
        first, joined = 0, ""
    if joined:
        yield first, joined


def _fields(line: str) -> list[tuple[Name, ...]]:
    """A line's fields, which are lists: a comma joins what stands on both its sides."""
    fields: list[tuple[Name, ...]] = []
    at, joins = 0, False
    while True:
        while at < len(line) and line[at].isspace():
            at += 1
        if at == len(line) or line[at] == "#":
            return fields
        match = _TOKEN.match(line, at)
        if match is None:
            raise _BadError('a name is missing before ","' if line[at] == "," else "unterminated quoted name")
        plain, quoted = match["plain"], match["quoted"]
        name = Name(quoted, True) if plain is None else Name(plain)
        if name.text.startswith("@") and not name.quoted:
            raise _BadError("included files are not supported")
        at = match.end()
        if joins:
            fields[-1] = (*fields[-1], name)
        else:
            fields.append((name,))
        joins = line[at : at + 1] == ","
        at += joins


def _single(field: Sequence[Name], what: str) -> str:
    if len(field) != 1:
        raise _BadError(f"multiple values specified for {what}", f"Specify exactly one {what} per line.")
    return field[0].text


def _rule(number: int, fields: list[tuple[Name, ...]]) -> Rule:
    type_ = _single(fields[0], "connection type")
    if type_ == "local":
        raise _BadError("local connections are not supported by this build")
    if type_ in ("hostgssenc", "hostnogssenc"):
        raise _BadError(f"{type_} record cannot match because GSSAPI is not supported by this build")
    if type_ not in TYPES:
        raise _BadError(f'invalid connection type "{type_}"')
    for count, what in enumerate(("database", "role", "IP address"), 1):
        if len(fields) <= count:
            raise _BadError(f"end-of-line before {what} specification")
    network, left = _network(_single(fields[3], "host address"), fields[4:])
    if not left:
        raise _BadError("end-of-line before authentication method")
    method = _method(_single(left[0], "authentication type"))
    if method == "cert" and type_ != "hostssl":
        raise _BadError("cert authentication is only supported on hostssl connections")
    certificate = _certificate(type_, method, [name for field in left[1:] for name in field])
    return Rule(number, type_, fields[1], fields[2], network, method, certificate)


def _network(address: str, after: list[tuple[Name, ...]]) -> tuple[Network | None, list[tuple[Name, ...]]]:
    """The addresses of a rule, and the fields after them."""
    if address == "all":
        return None, after
    if address in ("samehost", "samenet"):
        raise _BadError(f'address "{address}" is not supported', "Write addresses in CIDR form.")
    plain, slash, bits = address.partition("/")
    try:
        ip_address(plain)
    except ValueError:
        raise _BadError(f'invalid IP address "{address}"', "Host names are not supported.") from None
    if slash:
        if not (bits.isascii() and bits.isdigit()):
            raise _BadError(f'invalid CIDR mask in address "{address}"')
    else:
        if not after:
            raise _BadError("end-of-line before netmask specification", "Specify an address range in CIDR notation, "
                            "or provide a separate netmask.")  # fmt: skip
        bits, after = _mask_bits(_single(after[0], "netmask"), plain), after[1:]
    try:
        return ip_network(f"{plain}/{bits}", strict=False), after
    except ValueError:
        raise _BadError(f'invalid CIDR mask in address "{address}"') from None


def _mask_bits(mask: str, address: str) -> str:
    """The length of a mask's prefix."""
    try:
        found = ip_address(mask)
    except ValueError:
        raise _BadError(f'invalid IP mask "{mask}"') from None
    if found.version != ip_address(address).version:
        raise _BadError("IP address and mask do not match")
    bits = f"{int(found):0{found.max_prefixlen}b}"
    if "01" in bits:
        raise _BadError(f'invalid IP mask "{mask}"')
    return str(bits.count("1"))


def _method(method: str) -> str:
    if method in ("md5", "password"):
        raise _BadError(f'authentication method "{method}" is not supported', "Use scram-sha-256.")
    if method not in METHODS:
        raise _BadError(f'invalid authentication method "{method}"')
    return method


def _certificate(type_: str, method: str, options: Sequence[Name]) -> str:
    """What the options ask of the client's certificate."""
    found = "verify-full" if method == "cert" else ""
    for option in options:
        name, equals, value = option.text.partition("=")
        if not equals:
            raise _BadError(f"authentication option not in name=value format: {option.text}")
        if name != "clientcert":
            raise _BadError(f'unrecognized authentication option name: "{name}"')
        if type_ != "hostssl":
            raise _BadError('clientcert can only be configured for "hostssl" rows')
        if value not in CERTIFICATES:
            raise _BadError(f'invalid value for clientcert: "{value}"')
        if method == "cert" and value == "verify-ca":
            raise _BadError('clientcert only accepts "verify-full" when using "cert" authentication')
        found = value
    return found
