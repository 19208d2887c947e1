"""Network addresses: operators, functions and casts of inet, cidr, macaddr and macaddr8."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ivm.errors import SqlError
from ivm.words import BOOL, INT4, INT8, TEXT, Kind, SqlType
from planner.expr.functions.casts.registry import cast_per_value
from planner.expr.functions.table import CallSite, Raises, per_value
from storage.types.macaddr import to_macaddr8
from storage.types.network import Address, address, format_network

INET: Final = SqlType(Kind.INET)
CIDR: Final = SqlType(Kind.CIDR)
MACADDR: Final = SqlType(Kind.MACADDR)
MACADDR8: Final = SqlType(Kind.MACADDR8)
_OUT_OF_RANGE: Final = "result is out of range"


@cast_per_value((Kind.CIDR,), (Kind.INET,), context="implicit", raises=Raises.NEVER)
def cidr_to_inet(value: bytes) -> bytes:
    return value


@per_value("cidr", (INET,), CIDR, makes_null=False)
@per_value("network", (INET,), CIDR, makes_null=False)
@cast_per_value((Kind.INET,), (Kind.CIDR,), context="assignment", raises=Raises.NEVER)
def network(value: bytes) -> bytes:
    found = address(value)
    return replace(found, number=found.number & ~found.host_mask).datum


def _within(a: Address, b: Address) -> bool:
    return a.prefix > b.prefix and b.contains(a)


def _test(symbol: str, name: str, rule: Callable[[Address, Address], bool]) -> None:
    def run(a: bytes, b: bytes) -> bool:
        return rule(address(a), address(b))

    for called in (symbol, name):
        per_value(called, (INET, INET), BOOL, makes_null=False, raises=Raises.NEVER)(run)


_test("<<", "network_sub", _within)
_test("<<=", "network_subeq", lambda a, b: b.contains(a))
_test(">>", "network_sup", lambda a, b: _within(b, a))
_test(">>=", "network_supeq", lambda a, b: a.contains(b))
_test("&&", "network_overlap", lambda a, b: a.contains(b) or b.contains(a))


@per_value("~", (INET,), INET, makes_null=False, raises=Raises.NEVER)
def inverted(value: bytes) -> bytes:
    found = address(value)
    return replace(found, number=found.number ^ ((1 << found.width) - 1)).datum


def _combined(name: str, rule: Callable[[int, int], int]) -> Callable[[bytes, bytes], bytes]:
    def run(left: bytes, right: bytes) -> bytes:
        a, b = address(left), address(right)
        if a.size != b.size:
            raise SqlError("22023", f"cannot {name} inet values of different sizes")
        return Address(a.size, rule(a.number, b.number), max(a.prefix, b.prefix)).datum

    return run


per_value("&", (INET, INET), INET, makes_null=False)(_combined("AND", lambda a, b: a & b))
per_value("|", (INET, INET), INET, makes_null=False)(_combined("OR", lambda a, b: a | b))


@per_value("+", (INET, INT8), INET, makes_null=False)
def plus(value: bytes, count: int) -> bytes:
    found = address(value)
    number = found.number + count
    if not 0 <= number < 1 << found.width:
        raise SqlError("22003", _OUT_OF_RANGE)
    return replace(found, number=number).datum


per_value("+", (INT8, INET), INET, makes_null=False)(lambda count, value: plus(value, count))
per_value("-", (INET, INT8), INET, makes_null=False)(lambda value, count: plus(value, -count))


@per_value("-", (INET, INET), INT8, makes_null=False)
def distance(left: bytes, right: bytes) -> int:
    a, b = address(left), address(right)
    if a.size != b.size:
        raise SqlError("22023", "cannot subtract inet values of different sizes")
    if not -(2**63) <= a.number - b.number < 2**63:
        raise SqlError("22003", _OUT_OF_RANGE)
    return a.number - b.number


@per_value("family", (INET,), INT4, makes_null=False, raises=Raises.NEVER)
def family(value: bytes) -> int:
    return 4 if value[0] == 2 else 6


@per_value("masklen", (INET,), INT4, makes_null=False, raises=Raises.NEVER)
def masklen(value: bytes) -> int:
    return address(value).prefix


@per_value("host", (INET,), TEXT, makes_null=False, raises=Raises.NEVER)
def host(value: bytes) -> str:
    return address(value).shown()


@per_value("text", (INET,), TEXT, makes_null=False, raises=Raises.NEVER)
def shown(value: bytes) -> str:
    return format_network(value, True)


@per_value("abbrev", (INET,), TEXT, makes_null=False, raises=Raises.NEVER)
def abbrev(value: bytes) -> str:
    return format_network(value, False)


@per_value("abbrev", (CIDR,), TEXT, makes_null=False, raises=Raises.NEVER)
def abbrev_network(value: bytes) -> str:
    """The octets that the prefix reaches."""
    found = address(value)
    if found.size == 16:
        return format_network(value, True)
    octets = found.shown().split(".")[: max(1, -(-found.prefix // 8))]
    return f"{'.'.join(octets)}/{found.prefix}"


@per_value("broadcast", (INET,), INET, makes_null=False, raises=Raises.NEVER)
def broadcast(value: bytes) -> bytes:
    found = address(value)
    return replace(found, number=found.number | found.host_mask).datum


@per_value("netmask", (INET,), INET, makes_null=False, raises=Raises.NEVER)
def netmask(value: bytes) -> bytes:
    found = address(value)
    return Address(found.size, found.host_mask ^ ((1 << found.width) - 1), found.width).datum


@per_value("hostmask", (INET,), INET, makes_null=False, raises=Raises.NEVER)
def hostmask(value: bytes) -> bytes:
    found = address(value)
    return Address(found.size, found.host_mask, found.width).datum


@per_value("set_masklen", (INET, INT4), INET, makes_null=False)
def set_masklen(value: bytes, bits: int) -> bytes:
    found = address(value)
    bits = found.width if bits == -1 else bits
    if not 0 <= bits <= found.width:
        raise SqlError("22023", f"invalid mask length: {bits}")
    return replace(found, prefix=bits).datum


@per_value("set_masklen", (CIDR, INT4), CIDR, makes_null=False)
def set_network_masklen(value: bytes, bits: int) -> bytes:
    return network(set_masklen(value, bits))


@per_value("inet_same_family", (INET, INET), BOOL, makes_null=False, raises=Raises.NEVER)
def inet_same_family(left: bytes, right: bytes) -> bool:
    return left[0] == right[0]


@per_value("inet_merge", (INET, INET), CIDR, makes_null=False)
def inet_merge(left: bytes, right: bytes) -> bytes:
    a, b = address(left), address(right)
    if a.size != b.size:
        raise SqlError("22023", "cannot merge addresses from different families")
    common = a.width - (a.number ^ b.number).bit_length()
    return network(replace(a, prefix=min(common, a.prefix, b.prefix)).datum)


def _mac(symbol: str, rule: Callable[[int, int], int]) -> None:
    for type_ in (MACADDR, MACADDR8):
        per_value(symbol, (type_, type_), type_, makes_null=False, raises=Raises.NEVER)(
            lambda a, b: bytes(rule(x, y) for x, y in zip(a, b, strict=True))
        )


_mac("&", lambda a, b: a & b)
_mac("|", lambda a, b: a | b)


@per_value("~", (MACADDR,), MACADDR, makes_null=False, raises=Raises.NEVER)
@per_value("~", (MACADDR8,), MACADDR8, makes_null=False, raises=Raises.NEVER)
def inverted_mac(value: bytes) -> bytes:
    return bytes(255 - octet for octet in value)


@per_value("trunc", (MACADDR,), MACADDR, makes_null=False, raises=Raises.NEVER)
@per_value("trunc", (MACADDR8,), MACADDR8, makes_null=False, raises=Raises.NEVER)
def trunc(value: bytes) -> bytes:
    return value[:3].ljust(len(value), b"\0")


@per_value("macaddr8_set7bit", (MACADDR8,), MACADDR8, makes_null=False, raises=Raises.NEVER)
def macaddr8_set7bit(value: bytes) -> bytes:
    return bytes([value[0] | 2]) + value[1:]


@cast_per_value((Kind.MACADDR,), (Kind.MACADDR8,), context="implicit", raises=Raises.NEVER)
def macaddr_to_macaddr8(value: bytes) -> bytes:
    return to_macaddr8(value)


@cast_per_value((Kind.MACADDR8,), (Kind.MACADDR,), needs_site=True, context="implicit")
def macaddr8_to_macaddr(site: CallSite, value: bytes) -> bytes:
    if value[3:5] != b"\xff\xfe":
        hint = (
            "Only addresses that have FF and FE as values in the 4th and 5th bytes from the left, for example "
            "xx:xx:xx:ff:fe:xx:xx:xx, are eligible to be converted from macaddr8 to macaddr."
        )
        raise SqlError("22003", "macaddr8 data out of range to convert to macaddr", hint=hint)
    return value[:3] + value[5:]
