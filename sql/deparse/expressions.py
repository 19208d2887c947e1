"""Makes what is shown from the syntax tree of an expression and from what binding found out about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from ivm.words import BOOL, INT4, TEXT, UNKNOWN, Kind, SqlType
from planner.identifiers import quoted
from sql.bind.notes import TABLE_OID, Place
from sql.catalog.column_types import array_of
from sql.deparse import calls, json_calls, operators
from sql.deparse.context import Context
from sql.deparse.literals import as_type, constant, null, numeral, untyped
from sql.deparse.tree import (
    Array,
    Cases,
    Coercion,
    Collated,
    Constant,
    FieldOf,
    Link,
    Logic,
    Part,
    Phrase,
    RowValue,
    Shown,
    Test,
    Variable,
    Word,
)
from sql.syntax.nodes import queries as nodes


@dataclass(slots=True)
class ExpressionReader:
    """The implementation of ``Reader``."""

    context: Context

    def type(self, node: nodes.Expr) -> SqlType:
        """The type that binding gave to an expression; UNKNOWN for an untyped literal."""
        found = self.context.notes.type_of(node)
        if found is None and isinstance(node, nodes.RowExpr):
            return SqlType(Kind.RECORD)
        return UNKNOWN if found is None else found

    def coerced(self, node: nodes.Expr, wanted: SqlType | None) -> Shown:
        """An expression, cast implicitly to a type if it has another one."""
        have = self.type(node)
        shown = self.value(node, wanted)
        if wanted is None or have.kind is Kind.UNKNOWN:
            return shown
        return as_type(self.context.names, shown, have, wanted, implicit=True)

    def items(self, nodes_: Sequence[nodes.Expr]) -> tuple[Shown, ...]:
        """A list of expressions, in which ``t.*`` stands for the columns of t."""
        found: list[Shown] = []
        for node in nodes_:
            if isinstance(node, nodes.Star) and node.at in self.context.notes.stars:
                found += [shown for _, shown in self.star(node)]
            elif isinstance(node, nodes.AllFields):
                found += [shown for _, shown in self.all_fields(node)]
            else:
                found.append(self.value(node))
        return tuple(found)

    def star(self, node: nodes.Star) -> list[tuple[str, Shown]]:
        """The columns that a star stands for, with their names."""
        found = self.context.notes.stars.get(node.at, ())
        shown = (lambda place, name: self.variable(place)) if node.qualifier else self._merged
        return [(name, Variable(quoted(name), name) if p is None else shown(p, name)) for name, p in found]

    def all_fields(self, node: nodes.AllFields) -> list[tuple[str, Shown]]:
        """The fields of ``(row).*``, with their names."""
        arg = self.value(node.expr)
        return [(name, FieldOf(arg, name)) for name, _ in self.type(node.expr).fields]

    def value(self, node: nodes.Expr, wanted: SqlType | None = None) -> Shown:
        """An expression. ``wanted``: the type of untyped literals in it, text if None."""
        names = self.context.names
        instead = self.context.notes.instead.get(id(node))
        if instead is not None:
            return self.value(instead[1], wanted)
        match node:
            case nodes.Name():
                return self._name(node)
            case nodes.Star():
                return self._row(node.qualifier, node, node.at)
            case nodes.Number():
                return numeral(names, node.text)
            case nodes.String():
                return untyped(names, node.value, wanted or TEXT)
            case nodes.Bits():
                return constant(names, node.value[1:] if node.value[:1] == "b" else _bits(node.value), self.type(node))
            case nodes.Null():
                return null(names, wanted)
            case nodes.Boolean():
                return constant(names, "t" if node.value else "f", BOOL)
            case nodes.Param():
                return Word(f"${node.index}")
            case nodes.Default():
                return Word("DEFAULT")
            case nodes.Operator():
                return operators.operator(self, node)
            case nodes.Alike() | nodes.Mixed() | nodes.Given():
                raise AssertionError("with notes it is bound as another")
            case nodes.Apply():
                return calls.call(self, node, wanted)
            case nodes.Cast():
                return self._cast(node)
            case nodes.JsonCall():
                return json_calls.json_call(self, node)
            case nodes.CaseExpr():
                return self._case(node, wanted)
            case nodes.ArrayExpr():
                found = self.context.notes.type_of(node)
                return self._array(
                    node, wanted if found is None or found.kind is Kind.UNKNOWN else found, implicit=True
                )
            case _:
                return self._form(node)

    def _form(
        self,
        node: nodes.AndExpr | nodes.OrExpr | nodes.NotExpr | nodes.IsTest | nodes.DistinctTest | nodes.InList
        | nodes.InQuery | nodes.Between | nodes.Quantifier | nodes.Subquery | nodes.ExistsExpr | nodes.ArrayQuery
        | nodes.RowExpr | nodes.Subscript | nodes.Field | nodes.AllFields | nodes.Collate,
    ) -> Shown:  # fmt: skip
        match node:
            case nodes.AndExpr():
                return Logic("AND", tuple(self.coerced(a, BOOL) for a in node.args))
            case nodes.OrExpr():
                return Logic("OR", tuple(self.coerced(a, BOOL) for a in node.args))
            case nodes.NotExpr():
                unlike = operators.unlike(self, node)
                return Logic("NOT", (self.coerced(node.arg, BOOL),)) if unlike is None else unlike
            case nodes.IsTest():
                words = f"NOT {node.what.upper()}" if node.negated else node.what.upper()
                is_null = node.what == "null"
                return Test(self.value(node.expr, None if is_null else BOOL), words, is_null)
            case nodes.DistinctTest():
                return operators.distinct(self, node)
            case nodes.InList():
                return operators.in_list(self, node)
            case nodes.InQuery():
                found = operators.link(self, "any", node.expr, "=", node.query, node.at)
                return Logic("NOT", (found,)) if node.negated else found
            case nodes.Between():
                return operators.between(self, node)
            case nodes.Quantifier():
                return operators.quantifier(self, node)
            case nodes.Subquery():
                return Link("value", node.query)
            case nodes.ExistsExpr():
                return Link("exists", node.query)
            case nodes.ArrayQuery():
                return Link("array", node.query)
            case nodes.RowExpr():
                return RowValue(self.items(node.items))
            case nodes.Subscript():
                return self._subscript(node)
            case nodes.Field():
                return self._field(node)
            case nodes.AllFields():
                return Phrase(("(", self.value(node.expr), ").*"))
            case nodes.Collate():
                return Collated(self.value(node.expr), ".".join(quoted(part) for part in _collation(node.collation)))
            case _:
                assert_never(node)

    def variable(self, place: Place) -> Variable:
        """A column of an item of FROM."""
        item = self.context.items[place.at]
        if place.column is None:
            return Variable(f"{quoted(item.alias)}.*", None)
        name = "tableoid" if place.column == TABLE_OID else item.columns[place.column]
        return Variable(f"{quoted(item.alias)}.{quoted(name)}", name)

    def _name(self, node: nodes.Name) -> Shown:
        place = self.context.notes.places.get(node.at)
        if self.context.is_value and node.parts == ("value",):
            return Variable("VALUE", None)
        if place is None or place.at not in self.context.items:
            table, inner = self.context.outer
            if node.at in inner:
                return Variable(f"{quoted(table)}.{quoted(node.parts[-1])}", node.parts[-1])
            whole = self.context.qualified or node.parts[-1] == "tableoid"
            text = ".".join(map(quoted, node.parts if whole else node.parts[-1:]))
            return Variable(text, node.parts[-1])
        if place.column is None:
            return self._row(node.parts, node, node.at)
        range_ = self.context.notes.ranges[place.at]
        is_merged = len(node.parts) == 1 or node.parts[-2] != range_.alias
        return self._merged(place, node.parts[-1]) if is_merged else self.variable(place)

    def _merged(self, place: Place, name: str) -> Variable:
        """A column that a join of USING may have merged."""
        shown = self.context.notes.swapped.get(place, place)
        return Variable(quoted(name), name) if shown is None else self.variable(shown)

    def _row(self, qualifier: Sequence[str], node: nodes.Expr, at: int) -> Shown:
        """A table's whole row."""
        place = self.context.notes.places.get(at)
        alias = quoted(qualifier[-1])
        if place is not None and place.at in self.context.items:
            alias = quoted(self.context.items[place.at].alias)
        elif not self.context.qualified and isinstance(node, nodes.Name):
            return Variable(alias, None)
        return Variable(f"{alias}.*", None, self.context.names.type(self.type(node)))

    def _field(self, node: nodes.Field) -> Shown:
        place = self.context.notes.places.get(node.at)
        if place is not None and place.at in self.context.items:
            return self.variable(place)
        return FieldOf(self.value(node.expr), node.name)

    def _cast(self, node: nodes.Cast) -> Shown:
        names, target = self.context.names, self.type(node)
        if node.attempt:
            return Phrase(("TRY_CAST(", self.value(node.expr), f" AS {names.type(target)})"))
        inner, have = node.expr, self.type(node.expr)
        domain = self.context.notes.domains.get(id(node))
        if domain is not None:
            return Coercion(self.value(inner, target), names.type(domain[1]), False, False)
        if isinstance(inner, nodes.RowExpr) and len(inner.items) == len(target.fields):
            pairs = zip(inner.items, target.fields, strict=True)
            return RowValue(tuple(self.coerced(i, t) for i, (_, t) in pairs), names.type(target))
        if isinstance(inner, nodes.ArrayExpr) and target.kind is Kind.ARRAY:
            return self._array(inner, target, implicit=False)
        if isinstance(inner, nodes.ArrayExpr):
            return Coercion(self.value(inner), names.type(target), False, False)
        if have.kind is not Kind.UNKNOWN:
            return as_type(names, self.value(inner), have, target, implicit=False)
        shown = self.value(inner, target)
        if isinstance(shown, Constant) and (shown.type == target or target.kind is Kind.UNKNOWN):
            return shown
        if not isinstance(shown, Constant):
            return shown
        return Coercion(shown, names.type(target), False, True, shown.type)

    def _array(self, node: nodes.ArrayExpr, type_: SqlType | None, *, implicit: bool) -> Shown:
        """``type_``: of the array."""
        type_ = type_ or array_of(TEXT)
        element = type_.element or TEXT
        items: list[Shown] = []
        for item in node.items:
            if isinstance(item, nodes.ArrayExpr):
                items.append(self._array(item, type_, implicit=implicit))
            elif implicit or self.type(item).kind is Kind.UNKNOWN:
                items.append(self.coerced(item, element))
            else:
                have = self.type(item)
                items.append(as_type(self.context.names, self.value(item), have, element, implicit=False))
        return Array(tuple(items), self.context.names.type(type_))

    def _case(self, node: nodes.CaseExpr, wanted: SqlType | None) -> Shown:
        type_ = self.type(node)
        type_ = (wanted or TEXT) if type_.kind is Kind.UNKNOWN else type_
        operand, arms = None, []
        if node.operand is not None:
            operand = self.value(node.operand)
        for when, then in node.arms:
            if node.operand is None:
                condition = self.coerced(when, BOOL)
            else:
                condition = self.coerced(
                    when, operators.operand_types("=", [self.type(node.operand), self.type(when)])[1]
                )
            arms.append((condition, self.coerced(then, type_)))
        otherwise = null(self.context.names, type_) if node.otherwise is None else self.coerced(node.otherwise, type_)
        return Cases(operand, tuple(arms), otherwise)

    def _subscript(self, node: nodes.Subscript) -> Shown:
        chain = [node]
        while chain[-1].chained and isinstance(inner := chain[-1].expr, nodes.Subscript):
            chain.append(inner)
        index = TEXT if self.type(chain[-1].expr).kind is Kind.JSONB else INT4
        sliced = any(one.slice for one in chain)
        bounds = []
        for one in reversed(chain):
            low = None if one.low is None else self.coerced(one.low, index if self._untyped(one.low) else None)
            high = None if one.high is None else self.coerced(one.high, index if self._untyped(one.high) else None)
            if sliced and not one.slice:  # among slices [i] is [1:i]
                low, high = self.coerced(nodes.Number("1", one.at), None), low
            bounds.append((low, high, sliced))
        return Part(self.value(chain[-1].expr), tuple(bounds))

    def _untyped(self, node: nodes.Expr) -> bool:
        return self.type(node).kind is Kind.UNKNOWN


def _bits(text: str) -> str:
    """The bits of ``X'…'``."""
    return "".join(f"{int(digit, 16):04b}" for digit in text[1:])


def _collation(parts: tuple[str, ...]) -> tuple[str, ...]:
    return parts[1:] if len(parts) > 1 and parts[0] == "pg_catalog" else parts
