"""Whether a subscription may go on: what it was allowed when it began is asked again when the catalog changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ivm.errors import SqlError
from sql.catalog.catalog import Catalog
from sql.coordination.prepared import Prepared, StaleError

_HINT = "Subscribe again."


@dataclass(slots=True, eq=False)
class Permit:
    """``prepared``: the statement as it was last looked at; ``role``: who began it. ``prepare``: binds it for that role
    over a catalog."""

    prepared: Prepared
    role: int
    prepare: Callable[[Catalog], Prepared]

    def holds(self, catalog: Catalog) -> bool:
        """Whether nothing has changed that decides: the roles, the privileges, the relations."""
        try:
            self.prepared.check_current(catalog)
        except StaleError:
            return False
        return True

    def refusal(self, catalog: Catalog) -> SqlError | None:
        """Why the subscription ends: its role has lost a privilege, or sees other rows than before."""
        if self.holds(catalog):
            return None
        before = self.prepared
        try:
            self.prepared = self.prepare(catalog)
        except SqlError as error:
            return error if error.sqlstate == "42501" else None
        if self.prepared.denied is not None:
            return self.prepared.denied
        if self.prepared.secured == before.secured is None:
            return None
        if self.prepared.bound.statement == before.bound.statement:
            return None
        table = self.prepared.secured or before.secured
        return SqlError("42501", f'the row-level security policies for table "{table}" have changed', hint=_HINT)
