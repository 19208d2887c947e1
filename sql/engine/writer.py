"""One transaction's uncommitted changes, at a tentative ordinal.

The writer's changes are fed at the next ordinal and stepped without being published, so that only the transaction sees
them, in tables and in views. To roll back, the opposite updates are fed at the same ordinal. At any moment at most one
writer's changes are in the dataflow. Many transactions may be open: before another one goes on, or anything is
committed, the changes are taken out again (``park``); the transaction keeps them, and feeds them once more when it has
to see them in the dataflow. A short transaction is never fed before it commits, because its statements read tables
through overlays. What a transaction has created is taken out and made again likewise (``sql.engine.uncommitted``). Its
changes of the catalog are made to each newer catalog (``sql.catalog.merging``). One that has loaded a large file is not
parked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from ivm import stops
from ivm.errors import SqlError, unsupported
from ivm.rows import Words
from ivm.trace.batch import Batch
from ivm.trace.trace import Version
from planner.logical.nodes import Rel
from planner.options import DEFAULT, Planning
from sql.catalog.access import Access, Securable
from sql.catalog.catalog import Catalog, Relation, RelationKind
from sql.catalog.keys import ForeignKey, Index
from sql.catalog.merging import merged
from sql.catalog.roles import BOOTSTRAP_ID
from sql.catalog.securables import schema_object, securable
from sql.catalog.triggers import Trigger
from sql.catalog.user_types import check_lasting, check_unused
from sql.engine import uncommitted
from sql.engine.engine import Engine
from sql.engine.inputs import are_still, is_apart
from sql.engine.key_notes import WriterNotes
from sql.engine.loads import Load
from sql.engine.locking import Locking
from sql.engine.mark import Mark
from sql.engine.overlay import FEW, Pending, overlaid
from sql.engine.row_locks import DATAFLOW, BlockedError, LockOwner
from sql.engine.snapshot import Published
from sql.engine.state import TooLongHereError
from sql.engine.successions import Succession, Successions
from storage.record import RelationUpdate, by_relation
from storage.row_file import RowFile


@dataclass(slots=True)
class Writer(Locking):
    """Changes at ``ordinal``; ``catalog`` is the transaction's own. ``passing``: the oids of relations dropped when it
    commits.

    Invariant: ``updates[:fed]`` have been fed to the dataflow, the rest have not.
    """

    engine: Engine
    ordinal: int
    catalog: Catalog
    updates: list[RelationUpdate] = field(default_factory=list)
    created: list[Relation] = field(default_factory=list)
    fed: int = 0
    passing: list[int] = field(default_factory=list)
    planning: Planning = DEFAULT
    loads: list[Load] = field(default_factory=list)
    moment: int = 0
    """What time it is in this transaction's views; 0: that of the newest commit."""
    deferred: list[tuple[int, Callable[[], None]]] = field(default_factory=list)
    """Checks that wait for the commit, with the oids of their constraints."""
    finishing: dict[int, Callable[[], None]] = field(default_factory=dict)
    """What the commit does with the rows of temporary tables, by their ids, after the checks."""
    deferring: dict[int, bool] = field(default_factory=dict)
    all_deferred: bool | None = None
    """What SET CONSTRAINTS has said of single constraints, and of all; None: nothing."""
    owner: int = BOOTSTRAP_ID
    """The role that what is created belongs to."""
    hold: object = None
    """Keeps the values of words that are not fed yet in the dictionary."""
    owner_of_locks: LockOwner = field(default_factory=LockOwner)
    is_open: bool = False
    """Whether it is of a transaction of several statements, which keeps its locks."""
    notes: WriterNotes = field(default_factory=WriterNotes)
    _successions: Successions | None = None
    """Made when the first is."""
    _base: Catalog | None = None
    """The committed catalog that ``catalog`` comes from."""
    _arranged: int = 0
    """The number of updates that are batches of arrangements."""

    @property
    def successions(self) -> Successions:
        if self._successions is None:
            self._successions = Successions(self.engine)
        return self._successions

    @property
    def base(self) -> Catalog:
        """The catalog that its own changes are made to."""
        assert self._base is not None, "a writer begins with a catalog"
        return self._base

    @classmethod
    def begin(cls, engine: Engine, owner: LockOwner | None = None) -> Writer:
        """A writer of one statement that commits by itself. Raises BlockedError."""
        engine.make_room()
        catalog = engine.catalog
        return cls(engine, engine.timeline.last + 1, catalog, hold=engine.dictionary.generation,
                   owner_of_locks=owner or LockOwner(), _base=catalog)  # fmt: skip

    @classmethod
    def open(cls, engine: Engine, owner: LockOwner) -> Writer:
        """A writer of a transaction that stays open. Raises BlockedError."""
        writer = cls.begin(engine, owner)
        writer.is_open = True
        writer.enter()
        return writer

    def enter(self) -> None:
        """Go on with the transaction's next statement, over the newest commit. Raises BlockedError."""
        engine = self.engine
        if engine.tentative is self:
            return
        if engine.rests and engine.dataflow.waits:
            raise TooLongHereError  # a moment may have come, which takes a step
        if engine.rests and uncommitted.missing(engine, self.created, self.catalog):
            raise TooLongHereError
        engine.make_room()
        if engine.dataflow.waits:
            engine.pass_time()
        self.ordinal = engine.timeline.last + 1
        self._follow_catalog()
        engine.tentative = self
        self._start_clock()
        self._install_again()

    def _install_again(self) -> None:
        uncommitted.install_again(self.engine, self.created, self.catalog, self.snapshot, self._succeed_again)

    def _follow_catalog(self) -> None:
        """Take over the newest catalog, with the transaction's own changes. Raises the errors of ``merged``."""
        engine, before = self.engine, self.base
        if not self.defines:
            self.catalog = engine.catalog
        elif before is not engine.catalog:
            if engine.rests:
                raise TooLongHereError
            self.catalog = merged(engine.catalog, before, self.catalog, engine.next_version())
        self._base = engine.catalog

    def park(self) -> None:
        engine = self.engine
        if self.is_fixed:
            raise BlockedError(DATAFLOW, [self.owner_of_locks], "another transaction is loading a large file")
        held = uncommitted.held(engine, self.created)
        if self.fed or held:
            if engine.rests:
                raise TooLongHereError
            self._give_back(0, engine.settle_watched)
            self._feed_back(0)
            engine.settle_watched()  # a cancel is meant for the statement that comes next
            self.notes.taken_out()
            uncommitted.take_out(engine, held)
            engine.settle_watched()

    @property
    def _is_broken(self) -> bool:
        """Whether a step of its changes was interrupted. They are in the dataflow then, and nobody else's are."""
        return self.engine.failing.broken and self.engine.tentative in (None, self)

    @property
    def is_fixed(self) -> bool:
        """Whether the changes must stay in the dataflow until the transaction ends."""
        return bool(self.loads) or self._is_broken or self._arranged > 0

    @property
    def defines(self) -> bool:
        """Whether it changes the catalog."""
        return bool(self.created or self.passing) or self.catalog is not self._base

    def _start_clock(self) -> None:
        """Make it the present in the views that this transaction sees."""
        engine = self.engine
        if engine.dataflow.waits:
            engine.flush()  # so that a tentative step never shares a group with earlier commits
            self.moment = max(engine.clock.now(), engine.clock.last + 1)
            engine.unstepped |= engine.dataflow.set_moment(self.ordinal, self.moment)

    def add(self, relation: int, rows: Words, diffs: Words) -> None:
        """Add changes of a table; the caller has checked constraints."""
        if len(rows):
            self.updates.append(RelationUpdate(relation, rows, diffs))

    def add_arranged(self, relation: int, rows: Words, file: RowFile, batch: Batch) -> None:
        """Add rows of a table, each once, as a batch of the table's own arrangement. The rows are in ``file``, which is
        deleted if they are rolled back. The caller has checked constraints."""
        self.updates.append(RelationUpdate(relation, rows, np.broadcast_to(np.int64(1), len(rows)), file, batch))
        self._arranged += 1

    def settle(self) -> None:
        """Feed and step all changes so far."""
        if self.is_open and not self.fed:
            self.engine.flush()  # so that a tentative step never shares a group with earlier commits
        self._feed()
        self.engine.failing.settle_tentative()
        self.notes.stepped()

    def snapshot(self, inputs: Iterable[int] | None = None) -> Published:
        """The state with this transaction's changes; with ``inputs``, valid for reading these relations only.

        The changes since the last step are fed and stepped only if they may affect the inputs, so that a transaction of
        several statements is stepped once.
        """
        unfed = {u.relation for u in self.updates[self.fed :]}
        if inputs is None or not are_still(inputs, self.engine.touched | unfed, self.catalog):
            if inputs is not None and not self.fed and is_apart(inputs, unfed, self.catalog):
                self.engine.settle()
            else:
                self.settle()
        return self.as_stepped()

    def as_stepped(self) -> Published:
        """The state as of the last step, without the ``pending`` changes."""
        engine = self.engine
        at = max(self.ordinal if self.updates or self.created else 0, engine.timeline.last)
        epoch = max(engine.timeline.epoch(engine.timeline.last), self.moment)
        return Published(at, epoch, engine.since, engine.head, self.catalog, engine.stored(), engine.failures,
                         engine.arranged)  # fmt: skip

    def catch_up(self, inputs: Iterable[int]) -> None:
        """Step the commits since the last step, if they touch these relations, without this transaction's changes."""
        if self.is_open and not self.fed and not self.engine.touched.isdisjoint(inputs):
            self.engine.settle()

    def pending(self, inputs: Iterable[int]) -> Pending | None:
        """The changes of these relations, all of them tables, since the last step; None: too many, or unknown."""
        updates = self.updates[self.fed :]
        if sum(len(u.rows) for u in updates) > FEW:
            return None
        found: dict[int, tuple[Words, Words]] = {}
        for relation in inputs:
            known = self.catalog.by_id(relation)
            if known is None or known.kind is not RelationKind.TABLE:
                return None
            if relation in self.engine.touched:
                return None
            parts = [u for u in updates if u.relation == relation]
            if parts:
                found[relation] = np.concatenate([u.rows for u in parts]), np.concatenate([u.diffs for u in parts])
        return found

    def arrangement(self, table: Relation) -> Version:
        """A table's own arrangement, with the pending changes overlaid if they are few."""
        self.catch_up((table.id,))
        base = self.engine.arrangement(table.id)
        updates = (self.pending((table.id,)) or {}).get(table.id)
        return base if updates is None else overlaid(self.as_stepped(), table.id, (), base, updates)

    def create(self, relation: Relation, rel: Rel | None) -> None:
        """Create a table, a plain view, or a materialized view of ``rel``, which is hydrated on return."""
        self.name(relation.schema_name, relation.name)
        check_lasting(self.catalog, relation)
        if relation.id not in self.catalog.relations:
            self.own(securable(relation), relation.schema_name)
        self.catalog = self.catalog.with_relation(relation, self.engine.next_version())
        self._install(relation, rel)

    def own(self, what: Securable, schema_name: str = "") -> None:
        """Give a new object to its owner, with the privileges that are its default."""
        access, schema = self.catalog.access, self.catalog.schemas.get(schema_name, 0)
        acl = access.default_for(self.owner, schema, what.kind)
        if acl is not None:
            access = access.with_acl(what, acl)
        if self.owner != BOOTSTRAP_ID:
            access = access.changed(owners={**access.owners, what: self.owner})
        if access is not self.catalog.access:
            self.set_access(access)

    def set_access(self, access: Access) -> None:
        """Change who may do what; only the catalog changes."""
        self.catalog = replace(self.catalog, access=access, version=self.engine.next_version())

    def new_id(self) -> int:
        """An oid for an object that is no relation."""
        found = self.engine.next_id(self.catalog)
        self.catalog = replace(self.catalog, next_id=max(self.catalog.next_id, found + 1))
        return found

    def redefine(self, relation: Relation) -> None:
        """Change a relation's definition but not its layout. Raises BlockedError."""
        known = self.catalog.relations.get(relation.id)
        if known is not None and (known.schema_name, known.name) != (relation.schema_name, relation.name):
            self.name(relation.schema_name, relation.name)
        self.lock_whole(relation)
        self.catalog = self.catalog.with_relation(relation, self.engine.next_version())

    def exchange(self, old: int, changed: Relation, rel: Rel | None) -> Relation:
        """Replace ``old`` by another relation: an empty table, or a materialized view of ``rel``."""
        engine = self.engine
        before = self.catalog.relations[old]
        self.lock_whole(before)
        if before.locks:
            hint = "What its joins with PROCTIME() have found would be lost. Drop it first and create it again."
            raise unsupported(f"changing what materialized view {before.name} is made of", hint)
        created = engine.timeline.epoch(engine.timeline.last) + 1
        new = replace(changed, id=engine.next_id(self.catalog), first_id=before.oid, created=created)
        check_lasting(self.catalog, new)
        self.catalog = self.catalog.exchanged(old, new, engine.next_version())
        self._install(new, rel)
        return new

    def _install(self, relation: Relation, rel: Rel | None) -> None:
        if uncommitted.is_stored(relation):
            self.created.append(relation)
            uncommitted.install(self.engine, relation, rel, self.snapshot)

    def succeed(self, old: int, new: int, columns: tuple[int, ...]) -> None:
        """What reads a table reads another one from here on: its columns, by position in the new one, where they have
        the same contents."""
        self.successions.made.append(Succession(old, new, columns, len(self.updates)))
        self._succeed_again()

    def _succeed_again(self) -> None:
        """Put into the dataflow the successions that are not there."""
        if self._successions is None:
            return
        while (succession := self.successions.next) is not None:
            self._feed(succession.updates)
            self.engine.failing.settle_tentative()
            self.notes.taken_out(succession.updates)
            self.successions.succeed(succession)

    def _give_back(self, kept: int, settle: Callable[[], object]) -> None:
        """Take all but the first successions, and what came after them, out of the dataflow."""
        if self._successions is None:
            return
        while self.successions.standing > kept and (succession := self.successions.last) is not None:
            self._feed_back(succession.updates)
            settle()
            self.successions.give_back(succession)

    def alter(self, relation: Relation) -> None:
        """Apply a relation's new indexes and constraints; indexes are filled on return.

        A dropped index's arrangement is freed when the commit is published.
        """
        engine = self.engine
        self.lock_whole(relation)
        self.settle()
        self.catalog = self.catalog.with_relation(relation, engine.next_version())
        if relation.id not in engine.failures:
            engine.add_indexes(relation)
        engine.hydrate()
        engine.failing.settle_tentative()
        engine.arranged += 1

    def drop(self, ids: Iterable[int]) -> None:
        """Drop relations at commit; until then only this transaction sees them dropped."""
        gone = frozenset(ids)
        check_unused(self.catalog, gone)
        for id_ in gone:
            self.lock_whole(self.catalog.relations[id_])
        self.catalog = self.catalog.without(gone, self.engine.next_version())

    def create_schema(self, name: str) -> None:
        """Add a schema; only the catalog changes. Raises BlockedError."""
        self.name(name, "")
        engine = self.engine
        self.catalog = self.catalog.with_schema(name, engine.next_id(self.catalog), engine.next_version())
        self.own(schema_object(self.catalog, name))

    def drop_schemas(self, names: Iterable[str], ids: Iterable[int]) -> None:
        """Drop schemas and the relations ``ids``, which include all relations in them."""
        self.drop(ids)
        self.catalog = self.catalog.without_schemas(names, self.engine.next_version())

    def mark(self) -> Mark:
        modes = self.all_deferred, dict(self.deferring)
        return Mark(len(self.updates), len(self.created), self.catalog, len(self.loads), len(self.deferred), modes,
                    len(self.owner_of_locks.taken), self.base if self.catalog is not self._base else None,
                    0 if self._successions is None else len(self._successions))  # fmt: skip

    def rollback_to(self, mark: Mark) -> None:
        """Undo everything after a mark: feed the opposite updates at the same ordinal.

        If a step was interrupted, all changes are undone temporarily and the views are rebuilt as committed.
        """
        engine = self.engine
        engine.dataflow.cancel.clear()
        broken = self._is_broken
        kept = 0 if broken else mark.updates
        self._give_back(0 if broken else mark.successions, engine.settle)
        if self._successions is not None:
            del self._successions.made[mark.successions :]
        undone = self.updates[kept : self.fed]
        for update in by_relation(undone):
            self._feed_one(RelationUpdate(update.relation, update.rows, -update.diffs))
        for update in self.updates[mark.updates :]:
            if update.file is not None:
                update.file.path.unlink(missing_ok=True)
            self._arranged -= update.arranged is not None
        del self.updates[mark.updates :]
        del self.loads[mark.loads :]
        del self.deferred[mark.deferred :]
        self.all_deferred, self.deferring = mark.deferring[0], dict(mark.deferring[1])
        self.fed = min(self.fed, kept)
        held = uncommitted.held(engine, self.created[mark.created :])
        del self.created[mark.created :]
        if undone or held:
            engine.costs.skip()
            engine.settle()
            uncommitted.take_out(engine, held)
            engine.settle()
        self.notes.forget(len(self.updates))
        engine.release(self.owner_of_locks, mark.locks)
        engine.released.append(DATAFLOW)
        self._return_to(mark)
        if mark.before is None:
            self.passing.clear()
        if broken:
            engine.failing.restore(self.catalog)
            self._succeed_again()
            self._feed()
            engine.settle()
            self.notes.stepped()
        if engine.tentative is self:
            self._install_again()

    def _return_to(self, mark: Mark) -> None:
        """Take the catalog of the savepoint, or the committed one that has come since."""
        before = self.catalog
        if mark.before is None:
            self.catalog = self.base
        else:
            self.catalog, self._base = mark.catalog, mark.before
        if self.engine.tentative is self:
            self._follow_catalog()
        if self.catalog is not before:
            for type_ in self.catalog.types.values():
                if type_.enum is not None:
                    type_.enum.publish()

    def rollback(self) -> None:
        """Undo everything."""
        self.rollback_to(Mark(0, 0, self.engine.catalog))
        self._leave()

    def _leave(self) -> None:
        """The transaction has ended."""
        if self.engine.tentative is self:
            self.engine.tentative = None
            self.engine.released.append(DATAFLOW)

    def is_deferred(self, constraint: Index | ForeignKey | Trigger) -> bool:
        """Whether the constraint is checked at commit."""
        mode = self.deferring.get(constraint.id, self.all_deferred)
        return constraint.deferrable and (constraint.deferred if mode is None else mode)

    def check_deferred(self, constraints: Collection[int] | None = None) -> None:
        """Make the checks that wait, all or those of these constraints. Raises what they raise."""
        before = self.deferred
        due = [c for c in before if constraints is None or c[0] in constraints]
        self.deferred = [c for c in before if c not in due]
        try:
            for _, check in due:
                check()
        except BlockedError:  # all of them are made again
            self.deferred = before
            raise

    def commit(self) -> int:
        """Add the changes to the engine's group; the epoch, or the newest one if nothing was changed. An error (of a
        check that waited, 54000, 53100, 57014) and ``Stopped`` roll back; not so BlockedError, after which it is tried
        again."""
        if self.deferred or self.finishing:
            try:
                self.check_deferred()
                for finish in self.finishing.values():
                    finish()
            except SqlError:
                self.rollback()
                raise
        if self.passing:
            self._drop_passing()
        try:
            return self._commit()
        finally:
            self._leave()
            self.engine.release(self.owner_of_locks)

    def _commit(self) -> int:
        engine = self.engine
        if not self.updates and not self.loads and self.catalog is engine.catalog:
            return engine.timeline.epoch(engine.timeline.last)
        try:
            stops.poll()
            if self._is_stepped_ahead():
                self._step_ahead()
            self._feed()
            stops.poll()
        except stops.Stopped:
            self.rollback()
            raise
        engine.key_notes().take(self.notes.unfed)
        dropped = []
        if self.catalog is not engine.catalog:
            self.catalog = uncommitted.dated(engine, self.catalog)
            dropped = [i for i in engine.catalog.relations if i not in self.catalog.relations]
            dropped += [r.id for r in self.created if r.id not in self.catalog.relations]
        try:
            epoch = engine.commit(self.updates, self.catalog, dropped, self.loads)
        except SqlError:
            self.rollback()
            raise
        if self._successions is not None:
            engine.failing.read_anew(r.id for r in self.catalog.dependents(s.new for s in self._successions.made))
        return epoch

    @property
    def may_be_long(self) -> bool:
        """Whether views may take long to take over what its commit changes."""
        rows: dict[int, int] = {}
        for update in self.updates[self.fed :]:
            rows[update.relation] = rows.get(update.relation, 0) + len(update.rows)
        if not self.engine.costs.may_be_long(rows):
            return False
        return any(r.kind is RelationKind.MATERIALIZED_VIEW for r in self.catalog.dependents(rows))

    def _is_stepped_ahead(self) -> bool:
        """Whether its step can be undone where it is, so that it comes before the commit is durable and a cancel undoes
        that. Not on the event loop's thread."""
        if not stops.may_end() or self.defines or self._is_broken or not self.may_be_long:
            return False
        given = [u.relation for u in self.updates[self.fed :] if u.arranged is not None or self._arranged]
        return len(given) == len(set(given))  # what is fed as a batch takes a step of its own, else

    def _step_ahead(self) -> None:
        """Raises 57014, rolled back."""
        engine, before = self.engine, self.fed
        engine.flush()  # so that its step is its own, and nothing is due
        engine.settle()
        self._feed()
        try:
            engine.failing.step_ahead()
        except BaseException:
            self._take_back(before)
            self.rollback()
            raise
        self.notes.stepped()

    def _take_back(self, before: int) -> None:
        """Undo the step of all but the first changes, as far as it had come."""
        engine = self.engine
        engine.dataflow.cancel.clear()
        self._feed_back(before)
        engine.settle()

    def _drop_passing(self) -> None:
        """ON COMMIT DROP, including the tables' sequences and dependent views."""
        ids = {r.id for r in self.catalog.relations.values() if r.oid in self.passing}
        if ids:
            ids |= {r.id for r in self.catalog.owned(ids)}
            self.drop(ids | {r.id for r in self.catalog.dependents(ids)})

    def _feed(self, upto: int | None = None) -> None:
        """Feed all changes, or the first ones, that have not been fed yet."""
        upto = len(self.updates) if upto is None else upto
        for update in by_relation(self.updates[self.fed : upto]):
            self._feed_one(update)
        self.fed = max(self.fed, upto)

    def _feed_back(self, before: int) -> None:
        """Feed the opposite of all but the first changes that have been fed."""
        for update in by_relation(self.updates[before : self.fed]):
            self._feed_one(RelationUpdate(update.relation, update.rows, -update.diffs))
        self.fed = before
        self.engine.costs.skip()

    def _feed_one(self, update: RelationUpdate) -> None:
        engine, relation = self.engine, update.relation
        if relation in (engine.whole if update.arranged is None else engine.touched):
            engine.failing.settle_tentative()
        if update.arranged is None:
            engine.feed(relation, update.rows, update.diffs, self.ordinal)
        else:
            engine.feed_arranged(relation, update.arranged, self.ordinal)


def ones(count: int, value: int = 1) -> Words:
    """A diff for each of ``count`` rows."""
    return np.full(count, value, np.int64)
