"""A real psql, a real psycopg and raw sockets against a fake session."""

from __future__ import annotations

import asyncio
import shutil
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator

import psycopg
import pytest

from sql.admission.admission import Admission
from sql.pgwire import messages_backend as back
from sql.pgwire import messages_frontend as front
from sql.pgwire import messages_opening as opening
from sql.pgwire.copy_kernels import warm
from sql.pgwire.listener import Server, serve
from tests.support.wire_fake import FakeSession


class Running:
    """A server in its own thread; ``sessions`` in order of arrival."""

    def __init__(self) -> None:
        self.sessions: list[FakeSession] = []
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.server: Server = self.run(serve(self.session, "127.0.0.1", 0))
        self.port = self.server.port

    async def session(self, user: str, database: str, parameters: dict[str, str], admission: Admission) -> FakeSession:
        session = FakeSession(user, database, parameters)
        self.sessions.append(session)
        return session

    def run(self, coroutine):  # type: ignore[no-untyped-def]
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(20)

    def stop(self) -> None:
        self.run(self.server.close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(5)
        self.loop.close()

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(f"host=127.0.0.1 port={self.port} user=me dbname=db", autocommit=True)


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    warm()
    server = Running()
    yield server
    server.stop()


class Raw:
    """A socket that speaks the protocol by hand."""

    def __init__(self, running: Running, minor: int = 0, extra: tuple[tuple[str, str], ...] = ()) -> None:
        self.socket = socket.create_connection(("127.0.0.1", running.port), timeout=10)
        self.file = self.socket.makefile("rb")
        self.send(opening.Startup(minor, (("user", "me"), *extra)))
        self.start = self.until_ready()

    def send(self, *messages: front.Frontend | opening.Startup) -> None:
        self.socket.sendall(b"".join(message.encode() for message in messages))

    def read(self) -> tuple[str, bytes]:
        head = self.file.read(5)
        if not head:
            return "", b""
        return chr(head[0]), self.file.read(struct.unpack("!i", head[1:])[0] - 4)

    def until_ready(self) -> list[tuple[str, bytes]]:
        found = [self.read()]
        while found[-1][0] not in ("Z", ""):
            found.append(self.read())
        return found

    def kinds(self, *messages: front.Frontend) -> str:
        self.send(*messages)
        return "".join(kind for kind, _ in self.until_ready())

    def close(self) -> None:
        self.file.close()
        self.socket.close()


@pytest.fixture
def raw(running: Running) -> Iterator[Raw]:
    connection = Raw(running)
    yield connection
    connection.close()


def test_startup_tells_parameters_and_key(raw: Raw) -> None:
    kinds = "".join(kind for kind, _ in raw.start)
    assert kinds[0] == "R"
    assert kinds[-2:] == "KZ"
    told = dict(body.rstrip(b"\0").decode().split("\0", 1) if b"\0" in body.rstrip(b"\0")
                else (body.rstrip(b"\0").decode(), "") for kind, body in raw.start if kind == "S")  # fmt: skip
    assert told["server_version"].startswith("15.")
    assert told["client_encoding"] == "UTF8"
    assert told["session_authorization"] == "me"


def test_a_newer_minor_version_is_negotiated(running: Running) -> None:
    for asked, told, extra in ((0, 0, "_pq_.x"), (2, 2, "_pq_.x"), (9999, 2, "")):
        connection = Raw(running, asked, ((extra, "y"),) if extra else ())
        kind, body = connection.start[0]
        assert kind == "v"
        options = (extra,) if extra else ()
        assert back.NegotiateProtocolVersion.decode(body) == back.NegotiateProtocolVersion(told, options)
        connection.close()


def test_keys_for_cancelling_are_long_from_3_2_on(running: Running) -> None:
    for minor, length in ((0, 4), (2, 32), (9, 32)):
        connection = Raw(running, minor)
        assert minor == 9 or connection.start[0][0] == "R"
        key = next(back.BackendKeyData.decode(body) for kind, body in connection.start if kind == "K")
        assert len(key.secret) == length
        connection.send(front.Query("sleep"))
        time.sleep(0.3)
        for secret in (key.secret[:4] + b"x", key.secret):
            with socket.create_connection(("127.0.0.1", running.port), timeout=10) as plain:
                plain.sendall(opening.CancelRequest(key.backend_id, secret).encode())
                assert plain.recv(1) == b""
        body = next(body for kind, body in iter(connection.read, None) if kind == "E")
        assert b"57014" in body
        connection.close()


def test_encryption_is_refused_and_startup_goes_on(running: Running) -> None:
    with socket.create_connection(("127.0.0.1", running.port), timeout=10) as plain:
        for request in map(opening.EncryptionRequest, (opening.GSS_REQUEST_CODE, opening.SSL_REQUEST_CODE)):
            plain.sendall(request.encode())
            assert plain.recv(1) == b"N"
        plain.sendall(opening.Startup(0, (("user", "me"),)).encode())
        assert plain.recv(1) == b"R"


def test_no_user_is_refused(running: Running) -> None:
    with socket.create_connection(("127.0.0.1", running.port), timeout=10) as plain:
        plain.sendall(opening.Startup(0, (("database", "x"),)).encode())
        answer = plain.makefile("rb").read()
        assert back.Diagnostic.decode("E", answer[5:]).sqlstate == "28000"


def test_simple_queries(raw: Raw) -> None:
    assert raw.kinds(front.Query("select 1; select 2")) == "TDCTDCZ"
    assert raw.kinds(front.Query("")) == "IZ"
    assert raw.kinds(front.Query("notice; rows 0")) == "NCTCZ"
    assert raw.kinds(front.Query("set a b")) == "SCZ"
    assert raw.kinds(front.Query("select 1; fail; select 2")) == "TDCEZ"
    raw.send(front.Query("begin; fail"))
    assert raw.until_ready()[-1] == ("Z", b"E")
    raw.send(front.Query("commit"))
    assert raw.until_ready()[-1] == ("Z", b"I")


def test_a_pipeline_with_an_error_between_two_good_ones(raw: Raw) -> None:
    parse, bad = front.Parse("", "select $1"), front.Parse("", "fail")
    bind, bind_bad = front.Bind("", "", (1,), (b"\0\0\0\7",), (1,)), front.Bind("", "", (), (), ())
    execute, describe, sync = front.Execute("", 0), front.Describe("P", ""), front.Sync()
    answer = raw.kinds(parse, bind, describe, execute, bad, bind_bad, execute, parse, bind, execute, sync)
    assert answer == "12TDC12EZ"
    assert raw.kinds(parse, front.Describe("S", ""), bind, execute, sync) == "1tT2DCZ"
    assert raw.kinds(front.Close("S", "x"), front.Close("P", "x"), sync) == "33Z"
    assert raw.kinds(front.Bind("", "nope", (), (), ()), sync) == "EZ"


def test_binary_results_and_their_description(raw: Raw) -> None:
    raw.send(
        front.Parse("", "select $1"), front.Bind("", "", (1,), (b"\0\0\0\7",), (1,)), front.Describe("P", ""),
        front.Execute("", 0), front.Sync(),
    )  # fmt: skip
    answer = dict(raw.until_ready())
    assert back.RowDescription.decode(answer["T"]).fields[0].format == 1
    assert back.DataRow.decode(answer["D"]).values == (b"\0\0\0\7",)


def test_portals_with_row_limits(raw: Raw) -> None:
    bind, execute = front.Bind("p", "", (), (), ()), front.Execute("p", 2)
    answer = raw.kinds(front.Parse("", "rows 5"), bind, execute, execute, execute, front.Sync())
    assert answer == "12DDsDDsDCZ"


def test_flush_sends_what_there_is(raw: Raw) -> None:
    raw.send(front.Parse("", "select 1"), front.Flush())
    assert raw.read() == ("1", b"")
    assert raw.kinds(front.Sync()) == "Z"


def test_copy_in_simple_and_extended(raw: Raw, running: Running) -> None:
    data = front.CopyData(b"1\tx\n2\t"), front.CopyData(b"y\n"), front.CopyDone()
    assert raw.kinds(front.Query("copy t from stdin"), *data) == "GCZ"
    assert running.sessions[-1].copied == [(1, b"x"), (2, b"y")]
    head = front.Parse("", "copy t from stdin"), front.Bind("", "", (), (), ()), front.Execute("", 0)
    assert raw.kinds(*head, front.Sync(), *data, front.Sync()) == "12GCZ"
    assert raw.kinds(front.Query("copy t from stdin"), front.CopyData(b"bad\n"), *data) == "GEZ"
    assert raw.kinds(*head, front.CopyData(b"bad\n"), *data, front.Sync()) == "12GEZ"
    assert raw.kinds(front.Query("copy t from stdin"), front.CopyFail("no")) == "GEZ"
    assert raw.kinds(front.Query("copy t from stdin"), front.Query("select 1")) == "GEZ"
    assert raw.kinds(front.Query("select 1")) == "TDCZ"


def test_a_client_that_leaves_in_the_middle_of_copy(running: Running) -> None:
    connection = Raw(running)
    connection.send(front.Query("copy t from stdin"), front.CopyData(b"1\tx\n"), front.Terminate())
    found = [connection.read() for _ in range(3)]
    assert [kind for kind, _ in found] == ["G", "E", ""]
    assert b"C08P01" in found[1][1]


def test_copy_out_is_a_message_a_row(raw: Raw) -> None:
    raw.send(front.Query("copy t to stdout"))
    assert [body for kind, body in raw.until_ready() if kind == "d"] == [b"1\tone\n", b"2\ttwo\n", b"3\tthree\n"]


def test_bad_messages_are_errors_not_ends(raw: Raw) -> None:
    raw.socket.sendall(b"Q\0\0\0\7x\xff\0")
    assert [kind for kind, _ in raw.until_ready()] == ["E", "Z"]
    raw.socket.sendall(b"D\0\0\0\6?\0" + front.Sync().encode())
    assert [kind for kind, _ in raw.until_ready()] == ["E", "Z"]
    raw.send(front.FunctionCall(b""))
    report = raw.until_ready()[0]
    assert back.Diagnostic.decode("E", report[1]).sqlstate == "0A000"
    raw.socket.sendall(b"?\0\0\0\4")
    assert [kind for kind, _ in raw.until_ready()] == ["E", ""]


def test_an_unexpected_exception_is_an_internal_error(raw: Raw) -> None:
    raw.send(front.Query("crash"))
    report = back.Diagnostic.decode("E", raw.until_ready()[0][1])
    assert report.sqlstate == "XX000"
    assert raw.kinds(front.Query("select 1")) == "TDCZ"


def test_a_slow_reader_holds_the_writer(raw: Raw) -> None:
    raw.send(front.Query("rows 300000"))
    time.sleep(0.2)
    assert sum(kind == "D" for kind, _ in raw.until_ready()) == 300_000


def test_a_fast_sender_is_held_until_its_session_has_worked(raw: Raw, running: Running) -> None:
    raw.send(front.Query("copy t from stdin"))
    assert raw.read()[0] == "G"
    for _ in range(40):
        raw.send(front.CopyData(b"1\tx\n" * 50_000))
    raw.send(front.CopyDone())
    assert raw.until_ready()[0] == ("C", b"COPY 2000000\0")


def test_a_lost_client_ends_its_copy_out_and_its_session(running: Running) -> None:
    connection = Raw(running)
    session = running.sessions[-1]
    connection.send(front.Query("copy drip to stdout"))
    connection.read()
    connection.close()
    until(lambda: session.closed)


def until(condition) -> None:  # type: ignore[no-untyped-def]
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_psycopg(running: Running) -> None:
    with running.connect() as connection:
        assert connection.execute("select 1, 'é'").fetchone() == (1, "é")
        assert connection.execute("select %s", (5,)).fetchone() == (5,)
        assert connection.execute("select %s", (5,), binary=True).fetchone() == (5,)
        assert len(connection.execute("rows 2000").fetchall()) == 2000
        with pytest.raises(psycopg.errors.UndefinedTable) as raised:
            connection.execute("fail")
        assert raised.value.diag.message_hint == "create it"
        assert raised.value.diag.statement_position == "6"
        with connection.cursor().copy("copy t from stdin") as copy:
            copy.write_row((1, "a\tb"))
        assert running.sessions[-1].copied == [(1, b"a\tb")]
        with connection.cursor().copy("copy t to stdout") as copy:
            assert list(copy.rows()) == [("1", "one"), ("2", "two"), ("3", "three")]
        with connection.pipeline():
            cursors = [connection.execute("select %s", (i,)) for i in range(50)]
        assert [cursor.fetchone() for cursor in cursors] == [(i,) for i in range(50)]


def test_cancel_reaches_what_is_running_and_nothing_else(running: Running) -> None:
    with running.connect() as connection:
        connection.cancel_safe()
        assert connection.execute("select 1").fetchone() == (1,)
        timer = threading.Timer(0.1, connection.cancel_safe)
        timer.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("sleep")
        timer.join()
        assert connection.execute("select 1").fetchone() == (1,)


def test_a_wrong_key_cancels_nothing(running: Running) -> None:
    with socket.create_connection(("127.0.0.1", running.port), timeout=10) as plain:
        plain.sendall(opening.CancelRequest(1, b"0000").encode())
        assert plain.recv(1) == b""


@pytest.mark.skipif(shutil.which("psql") is None, reason="no psql on this machine")
def test_psql(running: Running) -> None:
    base = ["psql", "-X", "-h", "127.0.0.1", "-p", str(running.port), "-U", "me", "-d", "db"]
    script = (
        "select 1, 'a';\nnotice;\nfail;\ncopy t from stdin;\n1\tx\n\\.\ncopy t to stdout;\n\\echo :SERVER_VERSION_NUM\n"
    )
    done = subprocess.run(base, input=script, capture_output=True, text=True, timeout=30, check=False)
    assert done.stdout.splitlines()[-4:] == ["1\tone", "2\ttwo", "3\tthree", "150000"]
    assert "COPY 1" in done.stdout
    assert 'ERROR:  relation "x" does not exist' in done.stderr
    assert "NOTICE:  hello" in done.stderr


def test_closing_the_server_tells_the_clients() -> None:
    running = Running()
    connection = Raw(running)
    running.stop()
    assert back.Diagnostic.decode("E", connection.until_ready()[0][1]).sqlstate == "57P01"
    assert running.sessions[0].closed
    connection.close()
