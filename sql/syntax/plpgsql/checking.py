"""What PostgreSQL finds wrong in a PL/pgSQL body when the function is created, beyond its grammar.

These are names that no variable has, labels, and RETURNs that do not fit the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from ivm.errors import SqlError
from ivm.stops import poll
from sql.syntax.plpgsql import nodes
from sql.syntax.plpgsql.conditions import codes_of

TRIGGER_NAMES: Final = (
    "new", "old", "tg_name", "tg_when", "tg_level", "tg_op", "tg_relid", "tg_relname", "tg_table_name",
    "tg_table_schema", "tg_nargs", "tg_argv",
)  # fmt: skip
"""The variables of a trigger function."""


Arguments = Sequence[tuple[str | None, nodes.Fragment]]


@dataclass(frozen=True, slots=True)
class Returns:
    """What a function gives: a ``set``, ``nothing`` (void), or rows through variables (``columns``)."""

    set: bool = False
    nothing: bool = False
    columns: bool = False


@dataclass(slots=True)
class _Names:
    """The names of a block (``constants`` among them) and of the blocks around it. ``label`` and whether it is a
    ``loop``."""

    parent: _Names | None
    label: str | None = None
    loop: bool = False
    names: set[str] = field(default_factory=set)
    constants: set[str] = field(default_factory=set)
    cursors: dict[str, nodes.Declaration] = field(default_factory=dict)

    def find(self, name: Sequence[str]) -> tuple[_Names, str] | None:
        here: _Names | None = self
        while here is not None:
            if name[0] in here.names:
                return here, name[0]
            if here.label == name[0] and len(name) > 1 and name[1] in here.names:
                return here, name[1]
            here = here.parent
        return None


def check_body(body: nodes.Body, names: Sequence[str], label: str, returns: Returns) -> None:
    """Check a body whose arguments have these names; ``label``: the function's name. Raises 42601, 42704, 42804."""
    outer = _Names(None, label, names={*names, "found"})
    _Check(returns).statements((body.block,), outer)


def arguments_in_order(declaration: nodes.Declaration, arguments: Arguments) -> list[nodes.Fragment]:
    """A bound cursor's arguments in the order of their declaration. Raises 42601."""
    name, names = declaration.name, [label for label, _ in declaration.arguments]
    found: dict[str, nodes.Fragment] = {}
    for i, (given, fragment) in enumerate(arguments):
        if i >= len(names):
            raise SqlError(
                "42601", f'too many arguments for cursor "{name}"' if names else f'cursor "{name}" has no arguments'
            )
        label = names[i] if given is None else given
        if label not in names:
            raise SqlError("42601", f'cursor "{name}" has no argument named "{label}"')
        if label in found:
            message = f'value for parameter "{label}" of cursor "{name}" specified more than once'
            raise SqlError("42601", message)
        found[label] = fragment
    if len(found) < len(names):
        what = "not enough arguments for cursor" if arguments else "cursor"
        raise SqlError("42601", f'{what} "{name}"{"" if arguments else " has arguments"}')
    return [found[label] for label in names]


@dataclass(slots=True)
class _Check:
    returns: Returns

    def statements(self, body: Sequence[nodes.Node], scope: _Names) -> None:
        for node in body:
            poll()
            self._statement(node, scope)

    def _statement(self, node: nodes.Node, scope: _Names) -> None:
        match node:
            case nodes.Block():
                self._block(node, scope)
            case nodes.Assign():
                _assignable(scope, node.target)
            case nodes.If() | nodes.Case():
                for _, body in node.arms:
                    self.statements(body, scope)
                self.statements(node.otherwise or (), scope)
            case nodes.Loop():
                self.statements(node.body, _Names(scope, node.label, True))
            case nodes.ForRange():
                self.statements(node.body, _Names(scope, node.label, True, {node.name}))
            case nodes.ForCursor():
                _check_cursor(scope, node.cursor, node.arguments, loop=True)
                self.statements(node.body, _Names(scope, node.label, True, {node.name}))
            case nodes.ForRows() | nodes.ForEach():
                for target in node.targets:
                    _loop_target(scope, target)
                self.statements(node.body, _Names(scope, node.label, True))
            case nodes.Open():
                if node.query is None:
                    _check_cursor(scope, node.cursor, node.arguments, loop=False)
            case nodes.Exit():
                _check_exit(node, scope)
            case nodes.Sql() | nodes.Execute():
                for target in node.into.targets if node.into else ():
                    _assignable(scope, target)
            case nodes.Fetch():
                for target in (node.cursor, *(node.into.targets if node.into else ())):
                    _assignable(scope, target)
            case nodes.GetDiagnostics():
                for target, _ in node.items:
                    _assignable(scope, target)
            case nodes.Raise():
                if node.condition is not None and not node.state:
                    codes_of(node.condition)
            case nodes.Return() | nodes.ReturnNext() | nodes.ReturnQuery():
                self._return(node)
            case _:
                pass

    def _block(self, node: nodes.Block, scope: _Names) -> None:
        inner = _Names(scope, node.label)
        for declaration in node.declarations:
            if declaration.alias is not None and inner.find(declaration.alias) is None:
                raise SqlError("42704", f'variable "{".".join(declaration.alias)}" does not exist')
            inner.names.add(declaration.name)
            if declaration.constant:
                inner.constants.add(declaration.name)
            if declaration.query is not None:
                inner.cursors[declaration.name] = declaration
        self.statements(node.body, inner)
        for handler in node.handlers:
            for name, is_state in handler.conditions:
                if not is_state and name != "others":
                    codes_of(name)
            self.statements(handler.body, _Names(inner, names={"sqlstate", "sqlerrm"}))

    def _return(self, node: nodes.Return | nodes.ReturnNext | nodes.ReturnQuery) -> None:
        returns = self.returns
        if isinstance(node, nodes.ReturnQuery | nodes.ReturnNext) and not returns.set:
            what = "RETURN QUERY" if isinstance(node, nodes.ReturnQuery) else "RETURN NEXT"
            raise SqlError("42804", f"cannot use {what} in a non-SETOF function")
        if isinstance(node, nodes.ReturnNext):
            if returns.columns and node.value is not None:
                raise SqlError("42804", "RETURN NEXT cannot have a parameter in function with OUT parameters")
            if not returns.columns and node.value is None:
                raise SqlError("42601", 'missing expression at or near ";"')
        if isinstance(node, nodes.Return):
            if returns.set and node.value is not None:
                hint = "Use RETURN NEXT or RETURN QUERY."
                raise SqlError("42804", "RETURN cannot have a parameter in function returning set", hint=hint)
            if returns.nothing and node.value is not None:
                raise SqlError("42804", "RETURN cannot have a parameter in function returning void")
            if returns.columns and node.value is not None:
                raise SqlError("42804", "RETURN cannot have a parameter in function with OUT parameters")
            if node.value is None and not (returns.set or returns.nothing or returns.columns):
                raise SqlError("42601", 'missing expression at or near ";"')


def _assignable(scope: _Names, target: nodes.Target) -> None:
    found = scope.find(target.name)
    shown = ".".join(target.name)
    if found is None:
        raise SqlError("42601", f'"{shown}" is not a known variable')
    if found[1] in found[0].constants:
        raise SqlError("22005", f'variable "{found[1]}" is declared CONSTANT')


def _check_cursor(scope: _Names, target: nodes.Target, arguments: Arguments, *, loop: bool) -> None:
    _assignable(scope, target)
    found = scope.find(target.name)
    assert found is not None, "checked"
    declaration = found[0].cursors.get(found[1])
    if declaration is not None:
        arguments_in_order(declaration, arguments)
    elif loop:
        raise SqlError("42601", "cursor FOR loop must use a bound cursor variable")


def _loop_target(scope: _Names, target: nodes.Target) -> None:
    if scope.find(target.name) is None:
        message = "loop variable of loop over rows must be a record variable or list of scalar variables"
        raise SqlError("42804", message)


def _check_exit(node: nodes.Exit, scope: _Names) -> None:
    here: _Names | None = scope
    while here is not None:
        if node.label is None and here.loop:
            return
        if node.label is not None and here.label == node.label and here.parent is not None:
            if node.again and not here.loop:
                message = f'block label "{node.label}" cannot be used in CONTINUE'
                raise SqlError("42601", message)
            return
        here = here.parent
    if node.label is not None:
        message = f'there is no label "{node.label}" attached to any block or loop enclosing this statement'
        raise SqlError("42601", message)
    if node.again:
        raise SqlError("42601", "CONTINUE cannot be used outside a loop")
    raise SqlError("42601", "EXIT cannot be used outside a loop, unless it has a label")
