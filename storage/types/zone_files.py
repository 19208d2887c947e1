"""The zones of the IANA database in the package tzdata, so that a server's answers do not depend on its machine.

Compiled zones are read by RFC 8536 (TZif, version 2 and later: the 64-bit block and the footer).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

from storage.types.zone_rules import LocalTime, Rules, parse_rules

_PACKAGE: Final = "tzdata"
_HEADER: Final = struct.Struct(">4sc15x6l")
_KIND: Final = struct.Struct(">lbB")


@dataclass(frozen=True, slots=True)
class ZoneFile:
    """A compiled zone: what held before the first change, each change (seconds since 1970 UTC, what holds from then
    on), and the rules that hold after the last one."""

    first: LocalTime
    changes: tuple[tuple[int, LocalTime], ...]
    rules: Rules | None


@cache
def zone_names() -> dict[str, str]:
    """The names of all zones, by their lower-case spelling."""
    text = resources.files(_PACKAGE).joinpath("zones").read_text("utf-8")
    return {name.lower(): name for name in text.split()}


def read_zone(name: str) -> ZoneFile:
    """Reads a zone by its exact name."""
    data = resources.files(_PACKAGE).joinpath("zoneinfo", *name.split("/")).read_bytes()
    *_, is_utc, is_standard, leaps, times, kinds, letters = _HEADER.unpack_from(data)
    # the block of version 1 has times of 32 bits
    at = _HEADER.size + times * 5 + kinds * 6 + letters + leaps * 8 + is_standard + is_utc
    *_, is_utc, is_standard, leaps, times, kinds, letters = _HEADER.unpack_from(data, at)
    at += _HEADER.size
    moments = struct.unpack_from(f">{times}q", data, at)
    which = data[at + times * 8 : at + times * 9]
    at += times * 9
    names = data[at + kinds * 6 : at + kinds * 6 + letters]
    found = [
        LocalTime(offset, bool(daylight), names[start : names.index(0, start)].decode("ascii"))
        for offset, daylight, start in _KIND.iter_unpack(data[at : at + kinds * 6])
    ]
    footer = data[at + kinds * 6 + letters + leaps * 12 + is_standard + is_utc :].strip(b"\n").decode("ascii")
    first = next((kind for kind in found if not kind.daylight), found[0])
    changes = tuple(zip(moments, (found[kind] for kind in which), strict=True))
    return ZoneFile(first, changes, parse_rules(footer) if footer else None)
