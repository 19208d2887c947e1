"""The store's table ``lagging``: views that it has as of an earlier epoch than everything else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from storage.stored import Lag


class Lags:
    """``known``: by id of the view. ``execute`` runs a statement in the store's transaction."""

    def __init__(self) -> None:
        self.known: Mapping[int, Lag] = {}

    def load(self, execute: Callable[..., Any]) -> None:
        found = execute("SELECT id, epoch, slow FROM lagging").fetchall()
        self.known = {int(view): Lag(int(epoch), bool(slow)) for view, epoch, slow in found}

    def begin(self, execute: Callable[..., Any], view: int, epoch: int) -> None:
        """A view lags from now on, if it does not yet."""
        if view not in self.known:
            execute("INSERT INTO lagging VALUES (?, ?, false)", [view, epoch])
            self.known = {**self.known, view: Lag(epoch)}

    def is_slow(self, execute: Callable[..., Any], view: int) -> None:
        """Filling a view takes long."""
        if view in self.known:
            execute("UPDATE lagging SET slow = true WHERE id = ?", [view])
            self.known = {**self.known, view: Lag(self.known[view].epoch, True)}

    def end(self, execute: Callable[..., Any], view: int) -> None:
        """A view has caught up, or is dropped."""
        if view in self.known:
            execute("DELETE FROM lagging WHERE id = ?", [view])
            self.known = {i: lag for i, lag in self.known.items() if i != view}
