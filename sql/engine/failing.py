"""Views that are down: their step did not end, or took too much memory, after the commit was durable.

The dataflow of a view that is down is freed at once. The view is rebuilt from its definition when rows on which it may
have failed have been deleted: here if that is quick, else beside the engine (``filling``), as are views whose step kept
others waiting. When a transaction's tentative step breaks views, the step is undone and they are rebuilt too.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from ivm.errors import SqlError
from planner.logical.traversal import gets
from sql.catalog.catalog import Catalog, Relation, RelationKind
from sql.engine.definition import definition_rel
from sql.engine.down_history import DownHistory
from sql.engine.guard import MOST_PATIENCE, Bound, LaggingError, LeftError, ParkedError
from sql.engine.state import EngineState
from storage.stored import History

_WRONG_ROWS: Final = (
    "more rows were deleted from it than it had: the view's rows are not known",
    None,
    "It is being filled anew.",
)
REVIVE_SECONDS: Final = 0.05
"""The time limit for rebuilding one view while commits wait."""
REVIVE_ROWS: Final = 100_000
"""The most rows that the inputs of such a view may have."""
HELD_SECONDS: Final = 5.0
"""The time limit of a view that cannot be filled beside the engine."""
_MAY_BE_GONE: Final = ("53200", "55000", "XX001")
"""Why a view was down that is filled again at a start: memory, filling that had not ended, wrong rows."""
_COMES_BACK: Final = "It comes back by itself when rows are removed with which the step ends."

log = logging.getLogger("freshet.views")


class Failing:
    """Takes views down and rebuilds them; ``EngineState.failures`` has those that are down.

    ``history``: what the store is told of that. ``anew``: the views filled beside the engine since the last batch for
    the store, which deletes their old rows. ``filling``: the views that are to be filled beside the engine, each with
    the number of times that rows have been removed from what it reads since. ``fill``: called when there are more.
    """

    def __init__(self, engine: EngineState) -> None:
        self._engine = engine
        engine.dictionary.scratch().rehearse()  # what a view's going down needs
        self.history = DownHistory(engine)
        self.lagging = self.history.lagging
        self.anew: list[int] = []
        self.filling: dict[int, int] = {}
        self.safe = False
        """Whether only views that somebody asks for are filled."""
        self.unhurried: set[int] = set()
        """The views to be filled that have more time than others."""
        self.fill: Callable[[], None] = lambda: None
        self._patience: dict[int, float] = {}
        """By view: the patience with its loops, if it has been parked."""
        self.broken = False
        """Whether a tentative step has broken views, so that ``restore`` must be called."""
        self._inputs: dict[int, frozenset[int]] = {}
        """The inputs of each view that is down."""
        self._held_back: set[int] = set()
        """The views that failed when they were rebuilt over history that a hydration held."""
        self._seen = 0
        """The number of failed operators when last checked."""

    def take_down_failed(self) -> None:
        """Take down the views that failed in a commit's step."""
        engine = self._engine
        if engine.dataflow.failed == self._seen:
            return
        self._seen = engine.dataflow.failed
        failed = self.newly_failed()
        for relation, failure in failed.items():
            self._take_down(relation, failure)
        known = engine.catalog.relations
        self._free([known[i] for i in failed if i in known])
        if failed:
            engine.settle()

    def newly_failed(self) -> dict[int, SqlError]:
        """The views that have failed since the last commit, with their errors. Cost: the number of views."""
        failures = ((i, self._engine.dataflow.failure(output)) for i, output in self._engine.outputs.items())
        return {i: failure for i, failure in failures if failure is not None and i not in self._engine.failures}

    def _take_down(self, relation: int, failure: SqlError) -> None:
        reason = failure
        if failure.__cause__ is not None:
            traceback.print_exception(failure.__cause__)
        if reason.sqlstate == "57014":
            reason = self._engine.watch.reason or SqlError("54001", "the step was cancelled before its end")
        if isinstance(reason, ParkedError):
            self._patience[relation] = min(2 * self.patience_of(relation), MOST_PATIENCE)
            self._park(relation, reason)
            return
        self.filling.pop(relation, None)
        self._engine.failures[relation] = _down(reason)

    # -- views that are filled beside the engine -------------------------------------------------------------------

    def _park(self, relation: int, why: SqlError) -> None:
        if relation not in self.filling:
            known = self._engine.catalog.relations.get(relation)
            log.warning("view %s is filled beside the engine: %s", known.name if known else relation, why.detail)
        self.filling.setdefault(relation, 0)
        self._engine.failures[relation] = ParkedError(why.detail or "")

    def await_filling(self, views: Collection[Relation]) -> None:
        """At a start: these views are filled beside the engine, from the present on. Those that took long at the last
        start, and had not ended when the server did, stay down."""
        engine = self._engine
        assert engine.persistence is not None
        slow = {view for view, lag in engine.persistence.store.lagging.items() if lag.slow}
        self.lagging.start([v.id for v in views])
        for view in views:
            upto = self.lagging.upto[view.id]
            engine.failures[view.id] = LaggingError("The server has been started.", upto)
            if view.id in slow:
                self.leave(view, "Filling it took long and had not ended when the server did.")
            else:
                self.filling[view.id] = 0

    def await_new(self, view: Relation) -> None:
        """The same of a view that is created while the log is replayed."""
        self.lagging.add(view.id)
        self._engine.failures[view.id] = LaggingError("The server has been started.", 0)
        self.filling[view.id] = 0

    def leave(self, view: Relation, why: str) -> None:
        """A view that has not been filled stays down until somebody asks for it, and so do those over it."""
        engine = self._engine
        for each in (view, *engine.catalog.dependents([view.id])):
            known = engine.failures.get(each.id)
            if isinstance(known, LaggingError):
                engine.failures[each.id] = LeftError(view.name, why, known.upto)
                self.filling.pop(each.id, None)
                self.lagging.leave(each.id)
                log.warning("view %s is left down: %s", each.name, why)

    def refresh(self, relation: int) -> None:
        """Fill a view that is down, and those that it reads."""
        for below in self.below(relation):
            self.refresh(below)
        if relation in self._engine.failures and relation not in self.filling:
            self._park(relation, ParkedError("It is refreshed."))
            self.unhurried.add(relation)
            self.fill()
        engine = self._engine
        engine.published = engine.root()

    def catch_up(self, relation: int) -> bool:
        """Whether a view that is to be filled comes back with its history since the start. If not, it counts as down
        since then."""
        if self.lagging.is_whole(relation, self._above(relation)):
            return True
        self.history.give_up(relation)
        return False

    def caught_up(self, relation: int) -> None:
        """A view is back with its history; the next commit tells the store of its changes."""
        self.lagging.end(relation)
        self.forget(relation, parked=True)
        self._over_came_back({relation})

    def below(self, relation: int) -> list[int]:
        """The views that a view reads and that are down."""
        return sorted(self._above(relation) & self._engine.failures.keys())

    def patience_of(self, relation: int) -> float:
        """How patient others are with a view's loops: twice as much each time that it was parked."""
        return self._patience.get(relation, 1.0)

    def returned(self, relation: int, contents: Mapping[int, History]) -> None:
        """A view has been filled beside the engine; the next commit tells the store of its contents."""
        self.forget(relation, parked=True)
        engine = self._engine
        engine.counts.forget(relation)
        self.lagging.was_away(relation)
        self.history.returned[relation] = contents
        engine.dataflow.give_patience(engine.renderer.stored[relation].nodes, self.patience_of(relation))
        self._over_came_back({relation})

    def not_filled(self, relation: int, error: SqlError) -> None:
        """A view could not be filled beside the engine: it stays down, and so do the views over it."""
        engine = self._engine
        if self.filling.pop(relation, None) is None:
            return
        self.history.give_up(relation)
        engine.failures[relation] = _down(error)
        for over in list(self.filling):
            if relation in self._above(over):
                self.not_filled(over, error)
        engine.published = engine.root()

    def _over_came_back(self, back: Collection[int]) -> None:
        """Fill the views that were down because of others that are back."""
        for relation in self._engine.failures.keys() - self.filling.keys():
            if not self._above(relation).isdisjoint(back):
                self._park(relation, ParkedError("What it reads was down."))

    # -- views with wrong rows -------------------------------------------------------------------------------------

    def distrust(self, wrong: Collection[int]) -> list[int]:
        """Take down views whose rows are wrong, and those that share operators with them or read them. The views in an
        order in which each can be made anew. All commits must be published."""
        engine = self._engine
        known = engine.catalog.relations
        down = sorted(i for i in self._entangled(wrong) if i in known)
        for relation in down:
            engine.failures[relation] = SqlError("XX001", *_WRONG_ROWS)
        self._free([known[i] for i in down])
        engine.settle()
        engine.published = engine.root()
        return down

    def _entangled(self, wrong: Collection[int]) -> set[int]:
        """The maintained views that have an operator of one of these, or of one found so."""
        engine = self._engine
        own = {i: set(engine.renderer.stored[i].nodes) for i in engine.outputs}
        for relation, stored in engine.renderer.stored.items():
            if relation not in own:
                for nodes in own.values():
                    nodes.difference_update((stored.rows, *stored.nodes))
        found = own.keys() & wrong
        while True:
            reached = set().union(*(own[i] | {engine.renderer.stored[i].rows} for i in found))
            more = {i for i in own.keys() - found if not reached.isdisjoint(engine.renderer.stored[i].nodes)}
            if not more:
                return set(found)
            found |= more

    def read_anew(self, relations: Iterable[int]) -> None:
        """What these views read has been rewritten. Those that are down come back without the history before that."""
        for relation in relations:
            if relation in self._engine.failures:
                self._inputs.pop(relation, None)
                self.lagging.was_away(relation)

    def filled(self, relation: int, epoch: int) -> None:
        """A view whose rows were wrong has been filled beside the engine as of ``epoch``; its old rows leave the
        store."""
        self.forget(relation)
        self._engine.counts.forget(relation)
        self.history.filled(relation, epoch)
        self.anew.append(relation)

    def retry(self, relation: int) -> None:
        """Rebuild one view that is down, which only the engine can. All commits must be published."""
        if relation in self._engine.failures:
            self.filling.pop(relation, None)
            if self._revive_one(relation, HELD_SECONDS, Bound.ALONE):
                self._over_came_back({relation})
            self._engine.published = self._engine.root()

    def _free(self, views: list[Relation]) -> None:
        """Free views' dataflows, but keep the matches that their joins with PROCTIME() have found."""
        engine = self._engine
        for view in views:
            engine.locks.hold(view, engine.published.root, engine.published.ordinal)
        engine.free(*(view.id for view in sorted(views, key=lambda v: v.id, reverse=True)))

    def down(self, view: Relation, catalog: Catalog) -> bool:
        """Whether a new view cannot be installed because a view that it reads is down. The new view is then down
        too."""
        inputs = self._inputs[view.id] = frozenset(gets(definition_rel(view, catalog)))
        below = sorted(inputs & self._engine.failures.keys())
        if below:
            self._engine.failures[view.id] = self._engine.failures[below[0]]
        if any(i in self.filling for i in below):
            self.filling.setdefault(view.id, 0)
        return bool(below)

    def note(self, first: int, last: int, changes: Mapping[int, History]) -> bool:
        """After the step of a group of commits, from epoch ``first`` to ``last``, with these changes: try to rebuild
        views that may have failed on rows now deleted, and note for the store what is down or back. Whether anything
        is to be told at once: not of views that are filled beside the engine, for which commits do not wait."""
        self.history.went_down(first)
        gone = {i for i, history in changes.items() if (history.diffs < 0).any()}
        if gone and self._engine.failures:
            self._revive(gone)
        noted = self.history.differs or bool(self.history.emptied)
        beside = bool(self.filling or self.history.returned)
        self.history.went_down(last)
        self.history.came_back(last)
        return noted and not beside

    def let_go(self) -> None:
        """Nothing holds history any more: retry the views whose rebuilding was blocked by that."""
        if self._held_back and not self._engine.dataflow.held:
            gone = frozenset[int]().union(*(self._reads(i) for i in self._held_back & self._engine.failures.keys()))
            if self._revive(gone):
                self._engine.published = self._engine.root()

    def leave_all(self) -> None:
        """After a start in safe mode."""
        engine, why = self._engine, "The server runs in safe mode."
        for view in engine.catalog.stored():
            failure = engine.failures.get(view.id)
            if isinstance(failure, LaggingError):
                self.leave(view, why)
            elif failure is not None and failure.sqlstate == "55000":  # it was being filled when the server ended
                self.filling.pop(view.id, None)
                engine.failures[view.id] = LeftError(view.name, why, engine.timeline.epoch(engine.timeline.last))

    def fill_restored(self) -> None:
        """After a start: fill the views that were down before it for a reason that may be gone."""
        engine = self._engine
        for view in engine.catalog.stored():
            failure = engine.failures.get(view.id)
            if failure is not None and not isinstance(failure, ParkedError) and failure.sqlstate in _MAY_BE_GONE:
                self._park(view.id, ParkedError("The server has been started."))

    def forget(self, relation: int, parked: bool = False) -> None:
        """A view has been dropped, or is back (``parked``)."""
        self._engine.failures.pop(relation, None)
        self._inputs.pop(relation, None)
        self.filling.pop(relation, None)
        self.unhurried.discard(relation)
        if not parked:
            self._patience.pop(relation, None)
            self.lagging.end(relation)

    def _revive(
        self, gone: Collection[int] | None, seconds: float = REVIVE_SECONDS, bound: Bound = Bound.BESIDE
    ) -> bool:
        """Rebuild the views that read one of ``gone`` or a rebuilt view; None: all views. Those that fail again stay
        down. Whether any is back, in ``head``. With ``Bound.BESIDE``, what would take long is left to be filled beside
        the engine.

        History in memory is forgotten first: hydrating over it would enter the same loop at the epochs that contained
        it.
        """
        engine = self._engine
        back: set[int] = set()
        for relation in [r.id for r in engine.catalog.stored() if r.id in engine.failures]:
            above = self._above(relation)  # found without binding its definition
            if gone is not None and above.isdisjoint(gone) and above.isdisjoint(back):
                continue
            inputs = self._reads(relation)
            if gone is not None and inputs.isdisjoint(gone) and inputs.isdisjoint(back):
                continue
            if inputs & self._engine.failures.keys():
                continue
            if relation in self.filling:
                self.filling[relation] += 1
            elif self.safe or isinstance(engine.failures[relation], LeftError):
                continue  # it is left down
            elif bound is Bound.BESIDE and self._is_long(relation):
                self._park(relation, ParkedError("Rows are gone with which it failed."))
            elif self._revive_one(relation, seconds, bound):
                back.add(relation)
            elif engine.dataflow.held and relation not in self.filling:
                self._held_back.add(relation)
        return bool(back)

    def _is_long(self, relation: int) -> bool:
        """Whether rebuilding a view may take long, or would enter history that something holds, so that it is not
        tried while commits wait."""
        engine = self._engine
        versions = (engine.published.version(i) for i in self._reads(relation))
        rows = sum(v.count for v in versions if v is not None)
        long = engine.dataflow.held or relation in self._patience or rows > REVIVE_ROWS
        return long and not engine.catalog.relations[relation].locks

    def _above(self, relation: int) -> frozenset[int]:
        """What a view may read, without binding it: what its definition names, also inside plain views and
        functions."""
        known = self._engine.catalog.relations
        found: set[int] = set()
        todo = list(known[relation].dependencies) if relation in known else []
        while todo:
            id_ = todo.pop()
            if id_ in known and id_ not in found:
                found.add(id_)
                if known[id_].kind is not RelationKind.MATERIALIZED_VIEW:
                    todo += known[id_].dependencies
        return frozenset(found)

    def _reads(self, relation: int) -> frozenset[int]:
        found = self._inputs.get(relation)
        if found is None:
            catalog = self._engine.catalog
            found = self._inputs[relation] = frozenset(gets(definition_rel(catalog.relations[relation], catalog)))
        return found

    def _revive_one(self, relation: int, seconds: float, bound: Bound) -> bool:
        """Rebuild a view; it stays down if it fails again."""
        engine = self._engine
        self._held_back.discard(relation)
        engine.forget_before(engine.timeline.last)
        failure = self._make_anew(engine.catalog.relations[relation], engine.catalog, seconds, bound)
        if failure is None:
            self.history.give_up(relation)
            self.lagging.was_away(relation)
            self.forget(relation)
            engine.counts.forget(relation)
            return True
        self._take_down(relation, failure)
        return False

    def rebuild(self, views: Sequence[Relation], catalog: Catalog) -> None:
        """Rebuild views that are up, in this order, from their definitions in a catalog: while the log is replayed, for
        a commit of its own. What the store has of them is replaced. All earlier commits must be published."""
        engine = self._engine
        engine.forget_before(engine.timeline.last)
        self._free(list(views))
        for view in views:
            self.history.renew(view.id)
            self.lagging.was_away(view.id)
            failure = None if self.down(view, catalog) else self._make_anew(view, catalog, engine.watch.seconds)
            engine.counts.forget(view.id)  # what the view was filled with is not counted
            if failure is not None:
                self._take_down(view.id, failure)

    def _make_anew(
        self, view: Relation, catalog: Catalog, seconds: float = HELD_SECONDS, bound: Bound = Bound.ALONE
    ) -> SqlError | None:
        """Rebuild a view from its definition, with the matches of its joins with PROCTIME(). Its error if it fails; it
        is then freed again."""
        engine = self._engine
        self._free([view])
        try:
            with engine.watch.over(seconds, bound):
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

    # -- tentative steps -----------------------------------------------------------------------------------------

    def settle_tentative(self) -> None:
        """Step a transaction's changes so far. Raises the error that interrupted a view's step (57014, 53200, 54001);
        the caller must then roll back the transaction and call ``restore``."""
        engine = self._engine
        before = engine.dataflow.failed
        try:
            with engine.watch.over():
                engine.settle()
        except SqlError as error:
            self.broken = True
            raise engine.watch.reason or error from None
        failures = self.newly_failed() if engine.dataflow.failed > before else {}
        if failures:
            self.broken = True
            failure = failures[min(failures)]
            if failure.__cause__ is not None:
                traceback.print_exception(failure.__cause__)
            raise SqlError(failure.sqlstate, failure.message, failure.detail, failure.hint)

    def step_ahead(self) -> None:
        """Step a large change before it is durable. Raises 57014: the statement was cancelled, and must be rolled
        back at once. What fails otherwise is taken down as after the step of a durable commit."""
        engine = self._engine
        before, cancels = engine.dataflow.failed, engine.watch.cancels
        with engine.watch.over(bound=Bound.COMMIT), engine.dataflow.ended_by(engine.watch.overdue):
            try:
                whole = engine.settle(cut=cancels)
            except SqlError as error:
                if error.sqlstate != "57014":
                    raise
                whole = not cancels.is_set()
        if not whole:
            self.broken = engine.dataflow.failed > before
            raise SqlError("57014", "canceling statement due to user request")
        self.take_down_failed()  # while the watch still knows why

    def restore(self, catalog: Catalog) -> None:
        """After the rollback: rebuild the views that a tentative step has broken, as committed.

        ``catalog`` has the views that the transaction created. The store and the log are right about the others.
        """
        self.broken = False
        engine = self._engine
        known = engine.catalog
        broken = [(known if i in known.relations else catalog).relations[i] for i in self.newly_failed()]
        broken.sort(key=lambda view: view.id)
        self._free(broken)
        for view in broken:
            own = known if view.id in known.relations else catalog  # a table may be another one to the transaction
            if self.down(view, own):
                continue
            committed = view.id in engine.catalog.relations and not view.locks
            bound = Bound.BESIDE if committed else Bound.ALONE
            failure = self._make_anew(view, own, REVIVE_SECONDS if committed else HELD_SECONDS, bound)
            if failure is not None:
                self._take_down(view.id, failure)
            elif view.id in engine.catalog.relations:
                engine.count(view.id, engine.dataflow.changes(engine.outputs[view.id]).diffs)
                if view.id in engine.error_outputs:
                    engine.dataflow.changes(engine.error_outputs[view.id])
                engine.locks.drain(view)
        if self.filling:
            self.fill()


def _down(reason: SqlError) -> SqlError:
    """The error of reading a view that is down for this reason."""
    hint = _COMES_BACK
    if reason.sqlstate == "53200":
        hint += " A larger --memory, and a restart, bring it back too."
    return SqlError(reason.sqlstate, f"{reason.message}: the view's rows are not known", reason.detail, hint)
