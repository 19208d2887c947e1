"""Types inet and cidr. A datum is bytes that compare as the values do: family (2 or 3), the network with zeros for the
host's bits, the prefix length, then the address itself (after PostgreSQL's ``network_cmp``)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv6Address
from typing import Any, Final

from ivm.errors import SqlError
from ivm.words import Kind, SqlType
from storage.types.definition import (
    BytesPart,
    FormatPart,
    Inside,
    TypeDefinition,
    invalid_input,
    read_as_is,
    stored_as_is,
)
from storage.types.text_style import TextStyle

_SIZES: Final = {2: 4, 3: 16}
_OCTETS: Final = re.compile(r"(\d{1,3}(?:\.\d{1,3}){0,3})(?:/(\d{1,2}))?")


@dataclass(frozen=True, slots=True)
class Address:
    """An address with its prefix: ``size`` is 4 or 16 bytes, ``number`` the address as an integer."""

    size: int
    number: int
    prefix: int

    @property
    def width(self) -> int:
        """The address's bits."""
        return 8 * self.size

    @property
    def host_mask(self) -> int:
        """Ones where the prefix does not reach."""
        return (1 << (self.width - self.prefix)) - 1

    @property
    def datum(self) -> bytes:
        """The inverse of ``address``."""
        network = (self.number & ~self.host_mask).to_bytes(self.size, "big")
        number = self.number.to_bytes(self.size, "big")
        return bytes([2 if self.size == 4 else 3]) + network + bytes([self.prefix]) + number

    def contains(self, other: Address) -> bool:
        """Whether the other's network is this one's, or a part of it."""
        if self.size != other.size or self.prefix > other.prefix:
            return False
        return self.number | self.host_mask == other.number | self.host_mask

    def shown(self) -> str:
        """The address without its prefix."""
        if self.size == 4:
            return ".".join(str(self.number >> shift & 255) for shift in (24, 16, 8, 0))
        return _format_v6(self.number)


def address(datum: bytes) -> Address:
    """A datum as an address."""
    size = _SIZES[datum[0]]
    return Address(size, int.from_bytes(datum[2 + size :], "big"), datum[1 + size])


def format_network(datum: bytes, always: bool) -> str:
    """``always``: with the prefix, also that of a single address."""
    found = address(datum)
    return f"{found.shown()}/{found.prefix}" if always or found.prefix != found.width else found.shown()


def _format_v6(number: int) -> str:
    """Groups in hex, the longest run of zeros as ``::``, and addresses of IPv4 with points (RFC 5952, inet_ntop)."""
    shown = str(IPv6Address(number))
    high = number >> 32
    embedded = high == 0xFFFF or (high == 0 and number >> 16)
    if not embedded:
        return shown
    last = ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))
    return f"::ffff:{last}" if high else f"::{last}"


def parse_inet(text: str) -> bytes:
    """An address, or with a prefix any number of octets. Raises 22P02."""
    found = _v6(text) if ":" in text else _v4(text)
    if found is None:
        raise invalid_input("inet", text)
    return found.datum


def parse_cidr(text: str) -> bytes:
    """A network; without a prefix as long as its class or its octets say. Raises 22P02."""
    found = _v6(text) if ":" in text else _v4_network(text)
    if found is None:
        raise invalid_input("cidr", text)
    if found.number & found.host_mask:
        raise SqlError("22P02", f'invalid cidr value: "{text}"', "Value has bits set to right of mask.")
    return found.datum


def _octets(text: str) -> tuple[list[int], int | None] | None:
    match = _OCTETS.fullmatch(text)
    if match is None:
        return None
    octets = [int(part) for part in match[1].split(".")]
    prefix = None if match[2] is None else int(match[2])
    if max(octets) > 255 or (prefix is not None and prefix > 32):
        return None
    return octets, prefix


def _number(octets: list[int]) -> int:
    return int.from_bytes(bytes([*octets, 0, 0, 0][:4]), "big")


def _v4(text: str) -> Address | None:
    found = _octets(text)
    if found is None:
        return None
    octets, prefix = found
    if (prefix is None and len(octets) < 4) or (prefix or 0) // 8 > len(octets):
        return None
    return Address(4, _number(octets), 32 if prefix is None else prefix)


def _v4_network(text: str) -> Address | None:
    found = _octets(text)
    if found is None:
        return None
    octets, prefix = found
    if prefix is None:
        first = octets[0]
        prefix = 32 if first >= 240 else 8 if first >= 224 else 24 if first >= 192 else 16 if first >= 128 else 8
        prefix = max(prefix, 8 * len(octets))
        if prefix == 8 and first == 224:
            prefix = 4
    return Address(4, _number(octets), prefix)


def _v6(text: str) -> Address | None:
    body, slash, bits = text.partition("/")
    if slash and not (bits.isdecimal() and len(bits) < 4 and int(bits) <= 128):
        return None
    if "%" in body:
        return None
    try:
        return Address(16, int(IPv6Address(body)), int(bits) if slash else 128)
    except AddressValueError:
        return None


def _parse_inet(type_: SqlType, text: str, style: TextStyle, inside: Inside[str]) -> bytes:
    return parse_inet(text)


def _parse_cidr(type_: SqlType, text: str, style: TextStyle, inside: Inside[str]) -> bytes:
    return parse_cidr(text)


def _write(type_: SqlType, datum: bytes, style: TextStyle, part: FormatPart) -> str:
    return format_network(datum, type_.kind is Kind.CIDR)


def _send(type_: SqlType, datum: Any, part: BytesPart) -> bytes:
    found = address(datum)
    head = bytes([datum[0], found.prefix, type_.kind is Kind.CIDR, found.size])
    return head + found.number.to_bytes(found.size, "big")


def _receive(type_: SqlType, data: bytes, inside: Inside[bytes]) -> bytes:
    family, prefix, _, size = data[:4]
    if _SIZES.get(family) != size or len(data) != 4 + size or prefix > 8 * size:
        raise ValueError
    found = Address(size, int.from_bytes(data[4:], "big"), prefix)
    if type_.kind is Kind.CIDR and found.number & found.host_mask:
        raise SqlError("22P03", 'invalid external "cidr" value', "Value has bits set to right of mask.")
    return found.datum


INET: Final = TypeDefinition(
    Kind.INET, "inet",
    "869 inet -1 f b I t 0 1041 inet_ - i m 0", "910:inet_in 911:inet_out 2496:inet_recv 2497:inet_send",
    _parse_inet, _write, _send, _receive, stored_as_is, read_as_is, extremes=True,
    cast_text=lambda datum: format_network(datum, True),
)  # fmt: skip
CIDR: Final = TypeDefinition(
    Kind.CIDR, "cidr",
    "650 cidr -1 f b I f 0 651 cidr_ - i m 0", "1267:cidr_in 1427:cidr_out 2498:cidr_recv 2499:cidr_send",
    _parse_cidr, _write, _send, _receive, stored_as_is, read_as_is,
)  # fmt: skip
