"""SQL/JSON's functions of PostgreSQL 17: JSON_OBJECT, JSON_ARRAY, JSON_VALUE, JSON_QUERY, IS JSON and so on."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Final

from ivm.errors import SqlError
from sql.syntax.grammar.windows import WindowGrammar
from sql.syntax.nodes import queries as nodes
from sql.syntax.nodes.json_calls import JsonCall

_JSON: Final = "json"
_PATHS: Final = ("json_exists", "json_value", "json_query")
_BEHAVIOURS: Final = ("null", "error", "true", "false", "unknown")
_ALLOWED: Final = {
    ("json_exists", "error"): ("error", "true", "false", "unknown"),
    ("json_value", "empty"): ("error", "null", "default"),
    ("json_value", "error"): ("error", "null", "default"),
    ("json_query", "empty"): ("error", "null", "empty array", "empty object", "default"),
    ("json_query", "error"): ("error", "null", "empty array", "empty object", "default"),
}
Behaviours = dict[str, "str | nodes.Expr"]


class JsonGrammar(WindowGrammar):
    """What stands in the parentheses of SQL/JSON's functions."""

    cast_to: nodes.TypeName | None = None
    """What the aggregate that was just read returns, if it must be cast."""

    @abstractmethod
    def query(self) -> nodes.Query:
        """A query with its WITH, ORDER BY, LIMIT and AS OF."""

    def json_call(self, word: str, at: int) -> nodes.Expr | None:
        """The call of one of the functions; None for a call of another, or of a function of the same name."""
        match word:
            case "json_object":
                return self._json_object(at)
            case "json_array":
                return self._json_array(at)
            case "json_objectagg":
                key, value = self._member()
                return self._aggregate(word, (key, value), at, "null")
            case "json_arrayagg":
                return self._aggregate(word, (self.json_value(),), at, "absent")
            case "json":
                return JsonCall(word, (self.json_value(),), at, self._unique())
            case "json_scalar":
                return JsonCall(word, (self.expression(),), at)
            case "json_serialize":
                return JsonCall(word, (self.json_value(),), at, returning=self.json_returning())
            case _ if word in _PATHS:
                return self._path_call(word, at)
            case _:
                return None

    def json_value(self) -> nodes.Expr:
        """``expression [FORMAT JSON [ENCODING UTF8]]``"""
        value = self.expression()
        at = self.token.start
        return nodes.Cast(value, _named(_JSON, at), at) if self._format() else value

    def _format(self) -> bool:
        found = self.accept("format", "json")
        if found and self.accept("encoding"):
            self.name()
        return found

    def json_returning(self) -> nodes.TypeName | None:
        """``RETURNING type [FORMAT JSON]``"""
        if not self.accept("returning"):
            return None
        type_ = self.type_name()
        self._format()
        return type_

    def _nulls(self, default: str) -> tuple[str, ...]:
        """("absent",) if keys or elements whose value is NULL are left out."""
        for word in ("null", "absent"):
            if self.accept(word, "on", "null"):
                default = word
        return ("absent",) if default == "absent" else ()

    def _unique(self) -> tuple[str, ...]:
        if self.accept("with", "unique"):
            self.accept("keys")
            return ("unique",)
        if self.accept("without", "unique"):
            self.accept("keys")
        return ()

    def _json_object(self, at: int) -> nodes.Expr | None:
        if self.is_symbol(")") or self.is_word("returning"):
            return JsonCall("json_object", (), at, returning=self.json_returning())
        mark = self.mark()
        self.expression()
        is_constructor = self.is_word("value") or self.is_symbol(":")
        self.retreat(mark)
        if not is_constructor:
            return None
        args: list[nodes.Expr] = []
        while True:
            args += self._member()
            if not self.accept_symbol(","):
                break
        options = self._nulls("null") + self._unique()
        return JsonCall("json_object", tuple(args), at, options, returning=self.json_returning())

    def _member(self) -> tuple[nodes.Expr, nodes.Expr]:
        """``key VALUE value`` or ``key : value``."""
        key = self.expression()
        if not self.accept("value") and not self.accept_symbol(":"):
            raise self.error()
        return key, self.json_value()

    def _json_array(self, at: int) -> nodes.Expr:
        if self.is_symbol(")") or self.is_word("returning"):
            return JsonCall("json_array", (), at, returning=self.json_returning())
        if self.is_one_of("select", "values", "with", "table"):
            return self._json_array_of_query(at)
        args = [self.json_value()]
        while self.accept_symbol(","):
            args.append(self.json_value())
        return JsonCall("json_array", tuple(args), at, self._nulls("absent"), returning=self.json_returning())

    def _json_array_of_query(self, at: int) -> nodes.Expr:
        """``JSON_ARRAY(query)``: JSON_ARRAYAGG of its rows."""
        query = self.query()
        table = nodes.DerivedTable(query, at, "q", ("a",))
        value: nodes.Expr = nodes.Name(("a",), at)
        if self._format():
            value = nodes.Cast(value, _named(_JSON, at), at)
        returning = self.json_returning()
        aggregate, cast_to = _returned("agg_strict", (value,), at, returning)
        made = aggregate if cast_to is None else nodes.Cast(aggregate, cast_to, at)
        select = nodes.Select((nodes.Target(made, "json_array", at),), (table,), None, None, None, None, at)
        return nodes.Subquery(nodes.Query(select, at), at)

    def _aggregate(self, label: str, args: tuple[nodes.Expr, ...], at: int, nulls: str) -> nodes.Apply:
        order = self.order_by() if label == "json_arrayagg" else ()
        absent = self._nulls(nulls)
        unique = self._unique() if label == "json_objectagg" else ()
        name = "object_agg" if label == "json_objectagg" else "agg"
        name += ("_unique" if unique else "") + ("_strict" if absent else "")
        aggregate, self.cast_to = _returned(name, args, at, self.json_returning())
        return replace(aggregate, order=order, label=label)

    def _path_call(self, word: str, at: int) -> JsonCall:
        call = JsonCall(word, self._value_and_path(), at)
        call = replace(call, passing=self.json_passing())
        if word != "json_exists":
            call = replace(call, returning=self.json_returning())
        return self.json_clauses(call)

    def json_clauses(self, call: JsonCall) -> JsonCall:
        """The wrapper, quotes and behaviours of a call. Raises 42601."""
        options: tuple[str, ...] = ()
        if call.function == "json_query":
            options = self.json_wrapper()
            quotes = self.json_quotes()
            if options and quotes == "omit":
                message = "SQL/JSON QUOTES behavior must not be specified when WITH WRAPPER is used"
                raise SqlError("42601", message, position=call.at + 1)
            options += ("omit",) if quotes == "omit" else ()
        found = self.json_behaviours(call.function)
        default = "false" if call.function == "json_exists" else "null"
        on_empty, on_error = found.get("empty", "null"), found.get("error", default)
        return replace(call, options=options, on_empty=on_empty, on_error=on_error)

    def _value_and_path(self) -> tuple[nodes.Expr, nodes.Expr]:
        value = self.json_value()
        if not self.accept_symbol(","):
            raise self.error()
        return value, self.expression()

    def json_passing(self) -> tuple[tuple[str, nodes.Expr], ...]:
        """``PASSING value AS name, …``"""
        if not self.accept("passing"):
            return ()
        found: list[tuple[str, nodes.Expr]] = []
        while True:
            value = self.json_value()
            self.expect("as")
            found.append((self.label(), value))
            if not self.accept_symbol(","):
                return tuple(found)

    def json_wrapper(self) -> tuple[str, ...]:
        """The kind of the wrapper in a tuple; () without one."""
        if self.accept("without"):
            self.accept("array")
            self.expect("wrapper")
            return ()
        for kind in ("conditional", "unconditional", ""):
            words = ("with", kind) if kind else ("with",)
            if self.is_word(*words, "wrapper") or self.is_word(*words, "array", "wrapper"):
                self.index += len(words)
                self.accept("array")
                self.expect("wrapper")
                return (kind or "unconditional",)
        return ()

    def json_quotes(self) -> str | None:
        """keep or omit; None if neither is said."""
        found = self.accept_one_of("keep", "omit")
        if found is not None:
            self.expect("quotes")
            self.accept("on", "scalar", "string")
        return found

    def json_behaviours(self, function: str) -> Behaviours:
        """``… ON EMPTY`` and ``… ON ERROR``, by what they are for. Raises 42601."""
        found: Behaviours = {}
        while True:
            at = self.token.start
            behaviour = self._behaviour()
            if behaviour is None:
                return found
            self.expect("on")
            case = "error" if found.get("empty") is not None else self.token.value
            if self.accept_one_of("empty", "error") != case or case in found or "error" in found:
                raise self.error()
            shown = behaviour if isinstance(behaviour, str) else "default"
            if shown not in _ALLOWED.get((function, case), ()):
                raise SqlError("42601", f"invalid ON {case.upper()} behavior", position=at + 1)
            found[case] = behaviour

    def _behaviour(self) -> str | nodes.Expr | None:
        if self.accept("default"):
            return self.restricted()
        if self.accept("empty"):
            return f"empty {self.accept_one_of('array', 'object') or 'array'}"
        return self.accept_one_of(*_BEHAVIOURS)

    def json_test(self, left: nodes.Expr, at: int) -> JsonCall:
        """What follows ``expression IS [NOT] JSON``."""
        kind = self.accept_one_of("value", "array", "object", "scalar") or "value"
        return JsonCall("is json", (left,), at, (kind, *self._unique()))


def _named(name: str, at: int) -> nodes.TypeName:
    return nodes.TypeName(name, (), False, at)


def _returned(
    name: str, args: tuple[nodes.Expr, ...], at: int, returning: nodes.TypeName | None
) -> tuple[nodes.Apply, nodes.TypeName | None]:
    """An aggregate for json or jsonb, and the type that its result is to be cast to."""
    is_jsonb = returning is not None and returning.name == "jsonb"
    call = nodes.Apply((f"{'jsonb' if is_jsonb else 'json'}_{name}",), args, at)
    return call, None if is_jsonb else returning
