"""CREATE TYPE and ALTER TYPE of composite and range types: the types inside. The type is looked up when they run."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from ivm.errors import SqlError
from sql.bind.comparable import check_index
from sql.bind.ddl import home, storable
from sql.bind.environment import Environment
from sql.catalog.catalog import TableColumn
from sql.statements import types as bound
from sql.syntax.nodes import types as nodes


def create_composite(env: Environment, node: nodes.CreateCompositeStatement) -> bound.CreateComposite:
    """CREATE TYPE … AS (…). Raises 42701, 42704, 42P16, 3F000."""
    names = [a.name for a in node.attributes]
    for attribute in node.attributes:
        if names.count(attribute.name) > 1:
            raise SqlError("42701", f'column "{attribute.name}" specified more than once')
    schema_name = home(env, node.name, temporary=False)
    return bound.CreateComposite(schema_name, node.name.name, tuple(_attribute(env, a) for a in node.attributes))


def create_range(env: Environment, node: nodes.CreateRangeStatement) -> bound.CreateRange:
    """CREATE TYPE … AS RANGE. Raises 42601, 42704, 42P16, 3F000."""
    if node.subtype is None:
        raise SqlError("42601", 'type attribute "subtype" is required')
    subtype = storable(env.type(node.subtype), "subtype")
    check_index(subtype)
    return bound.CreateRange(home(env, node.name, temporary=False), node.name.name, subtype, node.multirange)


def alter_composite(env: Environment, node: nodes.AlterCompositeStatement) -> bound.AlterComposite:
    """ALTER TYPE … ATTRIBUTE. Raises 42704, 42P16."""
    changes = tuple(_change(env, change) for change in node.changes)
    return bound.AlterComposite(node.name.schema_name, node.name.name, changes)


def _attribute(env: Environment, node: nodes.Attribute) -> TableColumn:
    type_ = env.field_type(node.type)
    return TableColumn(node.name, storable(replace(type_, domain=None), node.name), domain=type_.domain)


def _change(env: Environment, change: nodes.AttributeChange) -> bound.AttributeChange:
    match change:
        case nodes.AddAttribute():
            return bound.AddAttribute(_attribute(env, change.attribute))
        case nodes.SetAttributeType():
            return bound.SetAttributeType(change.attribute.name, _attribute(env, change.attribute).type)
        case bound.DropAttribute() | bound.RenameAttribute():
            return change
        case _:
            assert_never(change)
