"""The uses of relations and functions in a statement, with the privileges that each needs and the role that needs them.

A use is to a relation what PostgreSQL's range table entry is: binding the statement notes in it the columns that are
read and changed, and ``denied`` looks at it afterwards. A view's definition is used by the view's owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from ivm.errors import SqlError
from sql.catalog.access import Access
from sql.catalog.catalog import Relation, RelationKind
from sql.catalog.securables import permission_denied, securable

TRUE_WORDS: Final = ("true", "on", "yes", "1")
"""How a view's option may say yes."""


@dataclass(slots=True, eq=False)
class Use:
    """``needed``: by a privilege's letter, the numbers of the columns that it is needed on. ``above``: the view whose
    change is one of this relation; ``below``: by a column's number in that view, its number here."""

    relation: Relation
    role: int
    needed: dict[str, set[int]] = field(default_factory=dict)
    above: Use | None = None
    below: Mapping[int, int] = field(default_factory=dict)
    any_of: str = ""
    """The privileges of which one on the whole relation is needed."""

    def need(self, privilege: str, columns: Iterable[int] = ()) -> None:
        """Note a privilege, on these columns if it is one of columns."""
        self.needed.setdefault(privilege, set()).update(columns)

    def required(self) -> dict[str, set[int]]:
        """``needed``; below a view that is changed, what its change needs, and to read it what its definition reads."""
        if self.above is None:
            return self.needed
        found = {}
        for privilege, columns in self.above.required().items():
            own = (
                self.needed.get("r", set()) if privilege == "r" else {self.below[c] for c in columns if c in self.below}
            )
            found[privilege] = own
        return found


Applied = tuple[int, str, tuple[tuple[int, bool, str], ...]]
"""A table's oid, the command, and of each policy that applied its id, whether it is permissive, and its condition.
Or 0, and the name that ``current_user`` stands for."""


@dataclass(frozen=True, slots=True)
class Asking:
    """As whom a statement, or the part of it that is being bound, is run.

    ``caller``: the current role, who calls functions; ``role``: who uses relations, in a view's definition its owner.
    ``uses`` and ``calls`` collect what is used. ``user``: what is maintained has this name for ``current_user`` in
    policies, since it has no session. ``in_policy``: a policy's condition is being bound.
    """

    access: Access
    caller: int
    role: int
    user: str | None = None
    in_policy: bool = False
    uses: list[Use] = field(default_factory=list)
    calls: list[Relation] = field(default_factory=list)
    secured: list[Relation] = field(default_factory=list)
    """The tables whose policies took part."""
    applied: list[Applied] = field(default_factory=list)
    """Which policies they were."""
    refusals: list[SqlError] = field(default_factory=list)
    """Why the statement may not run although every privilege is there."""

    @staticmethod
    def for_view(access: Access, owner: int) -> Asking:
        """As a materialized view's owner."""
        return Asking(access, owner, owner).maintained()

    def maintained(self) -> Asking:
        """The same for a query that is maintained."""
        known = self.access.roles.get(self.caller)
        return replace(self, user=None if known is None else known.name)

    def forget(self) -> None:
        """Begin anew."""
        for found in (self.uses, self.calls, self.secured, self.refusals, self.applied):
            found.clear()

    def use(self, relation: Relation, above: Use | None = None) -> Use:
        """A new use of a relation."""
        use = Use(relation, self.role, above=above)
        self.uses.append(use)
        return use

    def call(self, routine: Relation) -> None:
        """Note the call of a function."""
        self.calls.append(routine)

    def inside_view(self, view: Relation) -> Asking:
        """The same for a view's definition."""
        invoker = view.kind is RelationKind.VIEW and view.option("security_invoker") in TRUE_WORDS
        return replace(self, role=self.caller if invoker else self.access.owner(securable(view)))

    def inside_routine(self) -> Asking:
        """The same for the body of a function, which is the caller's: those with SECURITY DEFINER are interpreted."""
        return replace(self, role=self.caller)

    def sees_rows(self) -> bool:
        """Whether the current role may see whole rows of everything that the statement reads, so that an error may show
        one: none that a policy or a view in between hides, and no column."""
        if self.access.is_superuser(self.caller):
            return True
        uses = ((use.role, securable(use.relation)) for use in self.uses)
        return not self.secured and all(r == self.caller and self.access.has(r, what, "r") for r, what in uses)

    def denied(self) -> SqlError | None:
        """Why the statement may not run; None if it may."""
        for use in self.uses:
            if not self.access.is_superuser(use.role) and not self._allowed(use):
                return permission_denied(use.relation)
        for routine in self.calls:
            if not self.access.has(self.caller, securable(routine), "X"):
                return permission_denied(routine)
        return self.refusals[0] if self.refusals else None

    def _allowed(self, use: Use) -> bool:
        what, access = securable(use.relation), self.access
        if use.any_of and not set(use.any_of) & set(access.privileges(use.role, what)):
            return False
        for privilege, columns in use.required().items():
            if access.has(use.role, what, privilege):
                continue
            if privilege not in "arwx" or what.kind != "r":
                return False
            places = range(1, len(use.relation.columns) + 1)
            allowed = {c for c in columns or places if access.has(use.role, what.at(c), privilege)}
            if not allowed or (columns and allowed != columns):
                return False
        return True
