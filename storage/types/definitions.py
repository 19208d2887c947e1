"""The types that have a definition of their own: one entry for each."""

from __future__ import annotations

from typing import Final

from ivm.words import Kind, SqlType
from storage.types import bits, macaddr, network, point, ranges, timetz, uuid
from storage.types.definition import TypeDefinition
from storage.types.jsonpath import definition as jsonpath
from storage.types.textsearch import configuration, query, vector

_ALL: Final = (
    bits.BIT, bits.VARBIT, jsonpath.DEFINITION, macaddr.MACADDR, macaddr.MACADDR8, network.INET, network.CIDR,
    point.DEFINITION, ranges.RANGE, ranges.MULTIRANGE, timetz.DEFINITION, uuid.DEFINITION,
    configuration.DEFINITION, configuration.DICTIONARY, query.DEFINITION, vector.DEFINITION,
)  # fmt: skip
DEFINITIONS: Final[dict[Kind, TypeDefinition]] = {own.kind: own for own in _ALL}
FAMILIES: Final[tuple[SqlType, ...]] = tuple(type_ for own in _ALL for type_ in own.family)
"""Built-in types that share a kind with others."""
