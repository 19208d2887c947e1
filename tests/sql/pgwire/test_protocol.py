"""The protocol without sockets: message round trips, any bytes, any chunking, the rules of skipping and of COPY."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivm.errors import SqlError, Subject
from sql.pgwire import messages_backend as back
from sql.pgwire import messages_frontend as front
from sql.pgwire import messages_opening as opening
from sql.pgwire.messages import ProtocolError
from sql.pgwire.protocol import Phase, ServerProtocol
from sql.pgwire.startup import open_session, parse_options

STRINGS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
FORMATS = st.lists(st.sampled_from([0, 1]), max_size=3).map(tuple)
VALUES = st.lists(st.one_of(st.none(), st.binary(max_size=9)), max_size=4).map(tuple)
OIDS = st.lists(st.integers(0, 2**32 - 1), max_size=3).map(tuple)
KINDS = st.sampled_from("SP")


def binds() -> st.SearchStrategy[front.Bind]:
    def fits(bind: front.Bind) -> bool:
        return len(bind.formats) <= 1 or len(bind.formats) == len(bind.parameters)

    return st.builds(front.Bind, STRINGS, STRINGS, FORMATS, VALUES, FORMATS).filter(fits)


FRONTEND = st.one_of(
    st.builds(front.Query, STRINGS),
    st.builds(front.Parse, STRINGS, STRINGS, OIDS),
    binds(),
    st.builds(front.Describe, KINDS, STRINGS),
    st.builds(front.Close, KINDS, STRINGS),
    st.builds(front.Execute, STRINGS, st.integers(-(2**31), 2**31 - 1)),
    st.sampled_from([front.Sync(), front.Flush()]),
    st.builds(front.Password, st.binary(max_size=9)),
    st.builds(front.FunctionCall, st.binary(max_size=9)),
)
FIELDS = st.builds(
    back.FieldDescription, STRINGS, st.integers(0, 2**32 - 1), st.integers(0, 99), st.integers(0, 2**32 - 1),
    st.integers(-2, 64), st.integers(-1, 2**31 - 1), st.sampled_from([0, 1]),
)  # fmt: skip
BACKEND = st.one_of(
    st.builds(back.ParameterStatus, STRINGS, STRINGS),
    st.builds(back.BackendKeyData, st.integers(0, 2**31 - 1), st.binary(min_size=4, max_size=4)),
    st.builds(back.RowDescription, st.lists(FIELDS, max_size=3).map(tuple)),
    st.builds(back.DataRow, VALUES),
    st.builds(back.ParameterDescription, OIDS),
    st.builds(back.CommandComplete, STRINGS),
    st.builds(back.NegotiateProtocolVersion, st.integers(0, 9), st.lists(STRINGS, max_size=3).map(tuple)),
)
STARTUP = opening.Startup(0, (("user", "me"), ("database", "db")))


def started(data: bytes = b"") -> ServerProtocol:
    protocol = ServerProtocol()
    protocol.receive(STARTUP.encode())
    assert protocol.next_opening() == STARTUP
    protocol.admit()
    protocol.receive(data)
    return protocol


def everything(protocol: ServerProtocol) -> list[front.Frontend]:
    found = []
    while (message := protocol.next_message()) is not None:
        found.append(message)
    return found


@given(st.lists(FRONTEND, max_size=5), st.lists(st.integers(0, 200), max_size=5))
def test_messages_come_out_as_they_went_in_however_cut(messages: list[front.Frontend], cuts: list[int]) -> None:
    data = b"".join(message.encode() for message in messages)
    protocol = started()
    found, at = [], 0
    for cut in [*sorted(cuts), len(data)]:
        protocol.receive(data[at:cut])
        at = max(at, cut)
        found += everything(protocol)
    assert found == messages
    assert protocol.pending == 0


@given(BACKEND)
def test_backend_messages_round_trip(message: back.ParameterStatus) -> None:
    encoded = message.encode()
    assert struct.unpack("!i", encoded[1:5])[0] == len(encoded) - 1
    assert type(message).decode(encoded[5:]) == message


@given(st.lists(FIELDS, max_size=4))
def test_rows_are_described_alike_by_what_is_kept_of_their_fields(fields: list[back.FieldDescription]) -> None:
    kept = [field.encode()[: -back.FORMAT_BYTES] for field in fields]
    assert back.row_description(kept, [f.format for f in fields]) == back.RowDescription(tuple(fields)).encode()


@given(STRINGS, STRINGS, st.one_of(st.none(), STRINGS), st.one_of(st.none(), st.integers(1, 99)))
def test_reports_round_trip(state: str, message: str, detail: str | None, position: int | None) -> None:
    subject = None if detail is None else Subject("public", detail, constraint=message)
    report = back.Diagnostic("E", "ERROR", state, message, detail, None, position, subject)
    assert back.Diagnostic.decode("E", report.encode()[5:]) == report


@given(st.lists(st.tuples(STRINGS.filter(bool), STRINGS), max_size=4).map(tuple))
def test_startup_round_trips(parameters: tuple[tuple[str, str], ...]) -> None:
    startup = opening.Startup(2, parameters)
    protocol = ServerProtocol()
    protocol.receive(startup.encode())
    assert protocol.next_opening() == startup


@given(st.binary(max_size=200))
def test_any_startup_bytes_parse_or_are_refused(data: bytes) -> None:
    protocol = ServerProtocol()
    protocol.receive(data)
    refusal = None
    try:
        while protocol.phase is Phase.STARTUP and protocol.next_opening() is not None:
            pass
    except ProtocolError as error:
        refusal = error
    assert refusal is None or (refusal.fatal and protocol.phase is Phase.ENDED)


SHORT = st.builds(
    lambda kind, body: kind + struct.pack("!i", len(body) + 4) + body,
    st.sampled_from([bytes([kind]) for kind in front.FRONTEND]),
    st.binary(max_size=20),
)


@given(st.one_of(st.binary(max_size=100), st.lists(SHORT, max_size=4).map(b"".join)))
def test_any_bytes_parse_or_are_a_protocol_error(data: bytes) -> None:
    protocol = started(data)
    errors: list[ProtocolError] = []
    for _ in range(100):
        try:
            if protocol.next_message() is None:
                break
        except ProtocolError as error:
            errors.append(error)
            protocol.fail()
            protocol.end_pipeline()
    else:
        raise AssertionError("more messages than bytes")
    assert not any(error.fatal for error in errors[:-1])
    assert not errors or not errors[-1].fatal or protocol.phase is Phase.ENDED


def test_an_error_in_a_pipeline_skips_to_its_sync() -> None:
    bind = front.Bind("", "s", (), (), ())
    execute, sync = front.Execute("", 0), front.Sync()
    protocol = started(b"".join(m.encode() for m in (bind, execute, bind, execute, sync, bind, sync)))
    assert protocol.next_message() == bind
    assert protocol.next_message() == execute
    assert protocol.fail()
    assert protocol.next_message() == sync
    protocol.end_pipeline()
    assert protocol.next_message() == bind
    assert protocol.next_is_sync()


def test_an_error_in_a_simple_query_skips_nothing() -> None:
    protocol = started(front.Query("x").encode() * 2)
    assert protocol.next_message() == front.Query("x")
    assert not protocol.fail()
    assert protocol.next_message() == front.Query("x")


def test_copy_ignores_sync_and_drops_what_is_left() -> None:
    data = front.CopyData(b"1\n")
    stream = (front.Query("copy"), data, front.Sync(), front.Flush(), data, data, front.CopyDone(), front.Query("q"))
    protocol = started(b"".join(m.encode() for m in stream))
    assert protocol.next_message() == front.Query("copy")
    protocol.start_copy()
    assert [protocol.next_message(), protocol.next_message()] == [data, data]
    assert not protocol.fail()
    assert protocol.next_message() == front.Query("q")


def test_a_query_during_copy_is_an_error_of_the_copy() -> None:
    protocol = started(front.Query("copy").encode() + front.Query("q").encode())
    protocol.next_message()
    protocol.start_copy()
    with pytest.raises(ProtocolError) as raised:
        protocol.next_message()
    assert raised.value.message == "unexpected message type 0x51 during COPY from stdin"
    assert not raised.value.fatal


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"?\0\0\0\4", "invalid frontend message type 63"),
        (b"Q\0\0\0\3", "invalid message length"),
        (b"S\x7f\xff\xff\xff", "invalid message length"),
    ],
)
def test_lost_framing_is_fatal(data: bytes, message: str) -> None:
    protocol = started(data)
    with pytest.raises(ProtocolError) as raised:
        protocol.next_message()
    assert (raised.value.message, raised.value.fatal) == (message, True)
    assert protocol.next_message() is None


def test_openings() -> None:
    encryptions = map(opening.EncryptionRequest, (opening.SSL_REQUEST_CODE, opening.GSS_REQUEST_CODE))
    for request in (*encryptions, opening.CancelRequest(7, b"abcd")):
        protocol = ServerProtocol()
        protocol.receive(request.encode())
        assert protocol.next_opening() == request
    for bad in (
        b"\0\0\0\x08\0\2\0\0",
        b"\0\0\0\7",
        b"\0\0\xff\xff",
        opening.EncryptionRequest(opening.SSL_REQUEST_CODE).encode() + b"x",
    ):
        protocol = ServerProtocol()
        protocol.receive(bad)
        with pytest.raises(ProtocolError):
            protocol.next_opening()


def test_startup_parameters() -> None:
    startup = opening.Startup(
        2, (("user", "u"), ("options", r"-c a.b=1 --search-path=x\ y"), ("client_encoding", "'utf-8'"), ("_pq_.x", "1"))
    )
    opened = open_session(startup)
    assert (opened.user, opened.database, opened.unknown) == ("u", "u", ("_pq_.x",))
    assert opened.parameters == {"a.b": "1", "search_path": "x y", "client_encoding": "'utf-8'"}
    assert parse_options("") == {}


def test_a_long_message_is_put_together_once() -> None:
    message = front.Query("x" * 1_000_000)
    data = message.encode()
    protocol = started()
    for at in range(0, len(data), 1000):
        assert protocol.next_message() is None
        protocol.receive(data[at : at + 1000])
    assert protocol.next_message() == message


def test_an_outdated_plan_names_its_routine() -> None:
    message = "cached plan must not change result type"
    assert b"RRevalidateCachedQuery\0" in back.Diagnostic.of("ERROR", SqlError("0A000", message)).encode()
    message = 'column "x" is of type integer but expression is of type text'
    assert b"RtransformAssignedExpr\0" in back.Diagnostic.of("ERROR", SqlError("42804", message)).encode()
    assert b"\0R" not in back.Diagnostic.of("ERROR", SqlError("0A000", "something else")).encode()
