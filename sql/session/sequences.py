"""The functions of sequences: nextval, currval and their family."""

from __future__ import annotations

from typing import Protocol

from ivm.errors import SqlError
from ivm.rows import Words
from planner.identifiers import quoted, split_name
from sql.catalog.catalog import Catalog, Relation
from sql.catalog.search_path import SearchPathReader
from sql.catalog.securables import permission_denied, securable
from sql.session.state import SessionState


class _State(Protocol):
    session: SessionState
    catalog: Catalog


class SequenceFunctions:
    """The part of ``SystemInformation`` for sequences: of one session, over the catalog of one statement."""

    def nextval(self: _State, oid: int, count: int, of_column: bool = False) -> Words:
        """The next numbers. Raises 2200H, 42809, 25006, 42501."""
        session = self.session
        relation = _sequence(self.catalog, oid)
        if not of_column:
            _check_allowed(session, self.catalog, relation, "Uw")
        _check_writable(session, "nextval")
        found = session.coordinator.engine.sequences.next(relation, count)
        session.numbers.by_id[oid] = int(found[-1])
        session.numbers.last = oid
        return found

    def currval(self: _State, oid: int) -> int:
        """The last number that nextval returned in this session. Raises 55000."""
        relation = _sequence(self.catalog, oid)
        _check_allowed(self.session, self.catalog, relation, "Ur")
        if oid not in self.session.numbers.by_id:
            raise SqlError("55000", f'currval of sequence "{relation.name}" is not yet defined in this session')
        return self.session.numbers.by_id[oid]

    def lastval(self: _State) -> int:
        """``currval`` of the sequence that nextval used last. Raises 55000."""
        numbers = self.session.numbers
        last = numbers.last
        if last not in numbers.by_id or last not in self.catalog.relations:
            raise SqlError("55000", "lastval is not yet defined in this session")
        _check_allowed(self.session, self.catalog, _sequence(self.catalog, last), "Ur")
        return numbers.by_id[last]

    def setval(self: _State, oid: int, value: int, called: bool) -> int:
        """Set the sequence's next number. Raises 22003, 42809, 25006."""
        relation = _sequence(self.catalog, oid)
        _check_allowed(self.session, self.catalog, relation, "w")
        _check_writable(self.session, "setval")
        self.session.coordinator.engine.sequences.set(relation, value, called)
        if called:
            self.session.numbers.by_id[oid] = value
        return value

    def sequence_state(self: _State, relation: Relation) -> tuple[int, int, bool]:
        """last_value, log_cnt, is_called."""
        assert relation.sequence is not None, "a sequence"
        return self.session.coordinator.engine.sequences.peek(relation.sequence)

    def sequence_last_value(self: _State, oid: int) -> int | None:
        """The last number issued; NULL before the first, and for one who may not know it."""
        relation = _sequence(self.catalog, oid)
        sequence = relation.sequence
        assert sequence is not None, "checked above"
        if not _allowed(self.session, self.catalog, relation, "Ur"):
            return None
        value, _, called = self.session.coordinator.engine.sequences.peek(sequence)
        return value if called else None

    def serial_sequence(self: _State, table: str, column: str) -> str | None:
        """pg_get_serial_sequence: the name of the sequence that the column owns. Raises 42P01, 42703."""
        schema_name, name = split_name(table)
        relation = SearchPathReader(self.catalog, self.session.path(self.catalog)).resolve(schema_name, name)
        if relation is None:
            raise SqlError("42P01", f'relation "{table}" does not exist')
        names = [c.name for c in relation.columns]
        if column not in names:
            raise SqlError("42703", f'column "{column}" of relation "{relation.name}" does not exist')
        place = relation.oid, column
        for owned in self.catalog.owned([relation.id]):
            if owned.sequence is not None and owned.sequence.owner == place:
                return f"{quoted(owned.schema_name)}.{quoted(owned.name)}"
        return None


def _sequence(catalog: Catalog, oid: int) -> Relation:
    relation = catalog.by_id(oid)
    if relation is None:
        raise SqlError("42P01", f"could not open relation with OID {oid}")
    if relation.sequence is None:
        raise SqlError("42809", f'"{relation.name}" is not a sequence')
    return relation


def _check_allowed(session: SessionState, catalog: Catalog, sequence: Relation, privileges: str) -> None:
    """Raises 42501 unless the current role has one of these privileges."""
    if not _allowed(session, catalog, sequence, privileges):
        raise permission_denied(sequence)


def _allowed(session: SessionState, catalog: Catalog, sequence: Relation, privileges: str) -> bool:
    return bool(set(privileges) & set(catalog.access.privileges(session.role, securable(sequence))))


def _check_writable(session: SessionState, function: str) -> None:
    if session.transaction is not None and session.transaction.read_only:
        raise SqlError("25006", f"cannot execute {function}() in a read-only transaction")
