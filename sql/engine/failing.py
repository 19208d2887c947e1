"""Views that are down: their steps did not come to an end, or took too much memory, after the commit was durable.

What a view that is down had in the dataflow is freed at once. It is made anew from its definition when rows have gone
that it may have failed on; a transaction's tentative step that breaks views is taken back, and they are made anew too.
"""

from __future__ import annotations

import traceback
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ivm.errors import SqlError
from planner.logical.traversal import gets
from sql.catalog.catalog import Catalog, Relation
from sql.engine.definition import definition_rel
from storage.stored import History

if TYPE_CHECKING:
    from sql.engine.engine import Engine

REVIVE_SECONDS: Final = 5.0
"""What one view may take to come back, while commits wait."""


class Failing:
    """``reasons``: what reading each view that is down gives. ``revived``: those that came back since the last batch
    for the store, which forgets what it had of them. All of it on the engine thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.reasons: dict[int, SqlError] = {}
        self.revived: list[int] = []
        self.broken = False
        """Whether a tentative step has broken views: ``restore`` is due."""
        self._inputs: dict[int, frozenset[int]] = {}
        """What each view that is down reads."""
        self._held_back = False
        self._seen = 0
        """Operators that had failed when it was looked for views last."""

    def note(self) -> None:
        """Takes the views down that have failed in a commit's step."""
        engine = self._engine
        if engine.dataflow.failed == self._seen:
            return
        self._seen = engine.dataflow.failed
        failed = self.unnoted()
        for relation, failure in failed.items():
            self._note(relation, failure)
        known = engine.catalog.relations
        self._free([known[i] for i in failed if i in known])
        if failed:
            engine.settle()

    def unnoted(self) -> dict[int, SqlError]:
        """The views that have failed since the last commit, and why. Cost: the number of views."""
        failures = ((i, self._engine.dataflow.failure(output)) for i, output in self._engine.outputs.items())
        return {i: failure for i, failure in failures if failure is not None and i not in self.reasons}

    def _note(self, relation: int, failure: SqlError) -> None:
        reason = self._engine.watch.reason or failure
        if failure.__cause__ is not None:
            traceback.print_exception(failure.__cause__)
        if reason.sqlstate == "57014":
            reason = SqlError("54001", "the step was cancelled before its end")
        message = f"{reason.message}: the view's rows are not known"
        hint = "It comes back by itself when rows are removed with which the step ends."
        if reason.sqlstate == "53200":
            hint += " A larger --memory, and a restart, bring it back too."
        self.reasons[relation] = SqlError(reason.sqlstate, message, reason.detail, hint)

    def _free(self, views: list[Relation]) -> None:
        """Nothing of some views stays in the dataflow, but what their joins with PROCTIME() had found."""
        engine = self._engine
        for view in sorted(views, key=lambda v: v.id, reverse=True):
            engine.locks.hold(view, engine.published.root, engine.published.ordinal)
            engine.drop_relation(view.id, keep_failure=True)

    def down(self, view: Relation, catalog: Catalog) -> bool:
        """Whether a view that is to be installed cannot be, since one that it reads is down: then so is it."""
        inputs = self._inputs[view.id] = frozenset(gets(definition_rel(view, catalog)))
        below = sorted(inputs & self.reasons.keys())
        if below:
            self.reasons[view.id] = self.reasons[below[0]]
        return bool(below)

    def heal(self, changes: Mapping[int, History]) -> None:
        """After a commit with these changes: tries to bring views back that may have failed on rows that have gone."""
        self._revive({i for i, history in changes.items() if (history.diffs < 0).any()})

    def let_go(self) -> None:
        """Nothing beside holds history any more: views whose return it was in the way of may try again."""
        if self._held_back and self.reasons and not self._engine.dataflow.held:
            self._revive(None)

    def forget(self, relation: int) -> None:
        """A view is gone."""
        self.reasons.pop(relation, None)
        self._inputs.pop(relation, None)

    def _revive(self, gone: Collection[int] | None) -> None:
        """Makes views anew that read one of ``gone``, or one that has come back; None: all. Those that fail again stay
        down.

        Memory's history goes first, since hydrating over it would run into the same loop at the epochs that had it.
        """
        engine = self._engine
        self._held_back = engine.dataflow.held
        back: set[int] = set()
        for relation in sorted(i for i in self.reasons if i in engine.catalog.relations):
            view = engine.catalog.relations[relation]
            inputs = self._inputs.get(relation)
            if inputs is None:
                inputs = self._inputs[relation] = frozenset(gets(definition_rel(view, engine.catalog)))
            if gone is not None and inputs.isdisjoint(gone) and inputs.isdisjoint(back):
                continue
            if inputs & self.reasons.keys():
                continue
            engine.forget_history()
            failure = self._make_anew(view, engine.catalog)
            if failure is None:
                back.add(relation)
                self._came_back(relation)
            else:
                self._note(relation, failure)
        if back:
            engine.publish_again()

    def _make_anew(self, view: Relation, catalog: Catalog) -> SqlError | None:
        """A view from its definition, with what its joins with PROCTIME() had found; why it failed, and is freed."""
        engine = self._engine
        self._free([view])
        try:
            with engine.watch.over(REVIVE_SECONDS):
                engine.settle()
                engine.install(engine.plan_view(view, catalog), view.id, waiting=True)
                engine.add_indexes(view)
                engine.hydrate()
                engine.unstepped |= engine.locks.load_held(view)
                engine.settle()
                failure = engine.dataflow.failure(engine.outputs[view.id])
        except SqlError as error:
            failure = engine.watch.reason or error
        if failure is None:
            engine.locks.back(view)
            return None
        self._free([view])
        engine.settle()
        return failure.with_traceback(None)

    def _came_back(self, relation: int) -> None:
        engine = self._engine
        self.forget(relation)
        engine.counts.forget(relation)
        self.revived.append(relation)
        view = replace(engine.catalog.relations[relation], created=engine.timeline.epoch(engine.timeline.last))
        engine.catalog = engine.catalog.with_relation(view, engine.next_version())

    # -- tentative steps -----------------------------------------------------------------------------------------

    def settle_tentative(self) -> None:
        """Step what a transaction has changed so far. Raises what has interrupted a view's step (57014, 53200, 54001):
        the transaction is to be taken back then, and ``restore`` called."""
        engine = self._engine
        before = engine.dataflow.failed
        try:
            with engine.watch.over():
                engine.settle()
        except SqlError as error:
            self.broken = True
            raise engine.watch.reason or error from None
        failures = self.unnoted() if engine.dataflow.failed > before else {}
        if failures:
            self.broken = True
            failure = failures[min(failures)]
            if failure.__cause__ is not None:
                traceback.print_exception(failure.__cause__)
            raise SqlError(failure.sqlstate, failure.message, failure.detail, failure.hint)

    def restore(self, catalog: Catalog) -> None:
        """Views that a tentative step has broken are built anew, as they were committed: it has been taken back.
        ``catalog`` knows those that the transaction has made. What the store and the log have of others is right."""
        self.broken = False
        engine = self._engine
        broken = [(engine.catalog if i in engine.catalog.relations else catalog).relations[i] for i in self.unnoted()]
        broken.sort(key=lambda view: view.id)
        self._free(broken)
        for view in broken:
            if self.down(view, catalog):
                continue
            failure = self._make_anew(view, catalog)
            if failure is not None:
                self._note(view.id, failure)
            elif view.id in engine.catalog.relations:
                engine.count(view.id, engine.dataflow.changes(engine.outputs[view.id]).diffs)
                engine.locks.drain(view)
