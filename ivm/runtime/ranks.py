"""Ranks: the topological order in which the members of each scope run."""

from __future__ import annotations

from collections.abc import Sequence

from ivm.runtime.operator import Operator, Scope


def rank(root: Scope, fresh: Sequence[Operator], counter: int) -> int:
    """Gives new operators and loops ranks in topological order, each loop counting as one item of its parent.

    Ranks are greater than ``counter``; returns the greatest. New nodes never come before old ones.
    """
    placing = _Placing(fresh, counter)
    placing.place(root)
    return placing.counter


class _Placing:
    """``inside``: the new operators within each scope that has any, by the scope's id."""

    def __init__(self, fresh: Sequence[Operator], counter: int) -> None:
        self.counter = counter
        self.inside: dict[int, list[Operator]] = {}
        for operator in fresh:
            scope: Scope | None = operator.scope
            while scope is not None:
                self.inside.setdefault(id(scope), []).append(operator)
                scope = scope.parent

    def place(self, level: Scope) -> None:
        done: set[int] = set()
        for operator in self.inside.get(id(level), []):
            item = _lift(operator, level)
            assert item is not None
            self._visit(item, level, done)

    def _visit(self, item: Operator | Scope, level: Scope, done: set[int]) -> None:
        """Places a member of ``level`` after those that it needs."""
        if id(item) in done:
            return
        done.add(id(item))
        members = self.inside.get(id(item), []) if isinstance(item, Scope) else [item]
        for member in members:
            for need in member.needs():
                above = _lift(need, level)
                if above is not None and above is not item and (above.rank < 0 or id(above) in self.inside):
                    self._visit(above, level, done)
        if item.rank < 0:
            self.counter += 1
            item.rank = self.counter
            level.members[self.counter] = item
        for member in members:
            for need in member.needs():
                above = _lift(need, level)
                assert above is None or above is item or above.rank < item.rank, "a loop that is entered again"
        if isinstance(item, Scope):
            self.place(item)


def rank_last(root: Scope, first: Operator, counter: int) -> int:
    """Gives an operator of the whole dataflow, and all that comes after it, new ranks in the order of the old ones.

    Ranks are greater than ``counter``; returns the greatest. Nothing may be queued. Cost: the number of operators.
    """
    assert not root.heap, "between steps"
    reached: dict[int, Operator | Scope] = {id(first): first}
    for old in sorted(root.members):
        item = root.members[old]
        inside = item.all_operators() if isinstance(item, Scope) else [item]
        needed = (above for o in inside for need in o.needs() if (above := _lift(need, root)) is not None)
        if any(id(above) in reached for above in needed if above is not item):
            reached[id(item)] = item
    for item in reached.values():
        counter += 1
        del root.members[item.rank]
        item.rank = counter
        root.members[counter] = item
    return counter


def _lift(operator: Operator, level: Scope) -> Operator | Scope | None:
    """The member of ``level`` that is or contains the operator; None if the operator is outside of that scope."""
    if operator.scope is level:
        return operator
    scope = operator.scope
    while scope.parent is not None and scope.parent is not level:
        scope = scope.parent
    return scope if scope.parent is level else None
