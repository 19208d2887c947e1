"""What is sent to many clients beside the event loop comes whole, in order, and to nobody else."""

from __future__ import annotations

import asyncio
import random
import socket
import threading

import pytest

from ivm.errors import SqlError
from sql.admission.admission import Admission
from sql.pgwire import messages_opening as opening
from sql.pgwire import sending
from sql.pgwire.listener import ClientConnection, Server, serve
from sql.pgwire.sending import FEW, Line
from tests.support.wire_fake import FakeSession

ENDED = SqlError("57P01", "that is all")


class Clients:
    """A server in this thread's event loop, and clients that read in threads."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.connections: list[ClientConnection] = []
        self.sockets: list[socket.socket] = []
        self.got: list[bytearray] = []
        self._threads: list[threading.Thread] = []

    async def connect(self, slow: bool = False) -> None:
        known = set(self.server.connections)
        client = socket.create_connection(("127.0.0.1", self.server.port))
        client.sendall(opening.Startup(0, (("user", "me"),)).encode())
        while not (new := self.server.connections - known) or next(iter(new))._conversation is None:
            await asyncio.sleep(0.001)
        connection = next(iter(new))
        if slow:
            transport = connection._transport
            assert transport is not None
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        got = bytearray()
        thread = threading.Thread(target=_read, args=(client, got, 512 if slow else 1 << 16), daemon=True)
        thread.start()
        self.connections.append(connection)
        self.sockets.append(client)
        self.got.append(got)
        self._threads.append(thread)

    async def ended(self) -> None:
        """Wait until each client has read to the end."""
        for thread in self._threads:
            await asyncio.to_thread(thread.join, 60)
            assert not thread.is_alive()


def _read(client: socket.socket, got: bytearray, size: int) -> None:
    try:
        while data := client.recv(size):
            got += data
    except OSError:
        pass


def _messages(data: bytes, tag: int) -> list[int]:
    """The numbers of the test's messages of a client; fails if there are others'."""
    found, at = [], 0
    while at + 5 <= len(data):
        end = at + 1 + int.from_bytes(data[at + 1 : at + 5], "big")
        if data[at : at + 1] == b"d" and end <= len(data):
            assert int.from_bytes(data[at + 5 : at + 9], "big") == tag
            found.append(int.from_bytes(data[at + 9 : at + 13], "big"))
        at = end
    return found


def _message(tag: int, number: int, size: int) -> bytes:
    body = tag.to_bytes(4, "big") + number.to_bytes(4, "big") + bytes(size)
    return b"d" + (len(body) + 4).to_bytes(4, "big") + body


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The thread that sent each part that was not sent by the event loop."""
    threads: list[str] = []
    plain = sending.send

    def counted(batch: list[tuple[Line, bytes]]) -> list[int]:
        threads.extend([threading.current_thread().name] * len(batch))
        return plain(batch)

    monkeypatch.setattr(sending, "send", counted)
    return threads


async def _serve() -> Clients:
    async def session(user: str, database: str, parameters: dict[str, str], admission: Admission) -> FakeSession:
        return FakeSession(user, database, parameters)

    return Clients(await serve(session, "127.0.0.1", 0))


@pytest.mark.parametrize("seed", range(3))
def test_each_client_gets_its_bytes_in_order(seed: int, sent: list[str]) -> None:
    """Both ways of writing alternate; some clients are slow, some leave, and others take the numbers of their files."""
    rng = random.Random(seed)

    async def run() -> None:
        clients = await _serve()
        for i in range(3 * FEW):
            await clients.connect(slow=i % 7 == 0)
        written = [0] * len(clients.connections)
        gone: set[int] = set()
        for turn in range(150):
            for tag, connection in enumerate(clients.connections):
                if tag in gone:
                    continue
                message = _message(tag, written[tag], rng.choice([0, 10, 3000]))
                written[tag] += 1
                (connection.write if rng.random() < 0.1 else connection.send_beside)(message)
            if turn % 10 == 5:
                leaving = rng.choice([tag for tag in range(len(clients.connections)) if tag not in gone])
                gone.add(leaving)
                if rng.random() < 0.5:
                    clients.sockets[leaving].shutdown(socket.SHUT_RDWR)
                else:
                    clients.connections[leaving]._close()
                await clients.connect()
                written.append(0)
            await asyncio.sleep(rng.choice([0, 0, 0, 0.002]))
            while turn % 5 == 0 and any(c._line is not None and c._line.lent for c in clients.connections):
                await asyncio.sleep(0.001)
        await clients.server.close()
        await clients.ended()
        for tag, got in enumerate(clients.got):
            numbers = _messages(bytes(got), tag)
            assert numbers == list(range(len(numbers) if tag in gone else written[tag])), tag
        assert not any(connection._line and connection._line.lent for connection in clients.connections)

    asyncio.run(run())
    assert len(sent) > 30 * FEW, "each time that all have come back, those who keep up are sent to again"
    assert set(sent) == {"send_0"}


def test_the_last_words_come_behind_what_is_being_sent(sent: list[str]) -> None:
    async def run() -> None:
        clients = await _serve()
        for _ in range(FEW):
            await clients.connect()
        for tag, connection in enumerate(clients.connections):
            connection.send_beside(_message(tag, 0, 100))
            connection.end(ENDED)
        await clients.ended()
        for tag, got in enumerate(clients.got):
            assert _messages(bytes(got), tag) == [0]
            assert b"that is all" in got[got.index(b"d") :]
        await clients.server.close()

    asyncio.run(run())
    assert len(sent) == FEW


def test_a_few_are_sent_to_by_the_event_loop(sent: list[str]) -> None:
    async def run() -> None:
        clients = await _serve()
        for _ in range(FEW - 1):
            await clients.connect()
        for number in range(3):
            for tag, connection in enumerate(clients.connections):
                connection.send_beside(_message(tag, number, 0))
            await asyncio.sleep(0)
        await clients.server.close()
        await clients.ended()
        assert all(_messages(bytes(got), tag) == [0, 1, 2] for tag, got in enumerate(clients.got))

    asyncio.run(run())
    assert not sent


def test_who_is_behind_is_waited_for() -> None:
    """Bytes that wait for a socket that is lent count as those that the transport keeps."""

    async def run() -> None:
        clients = await _serve()
        await clients.connect()
        (connection,) = clients.connections
        connection.send_beside(b"")
        assert not connection.behind
        connection.write(_message(0, 0, sending.MOST_LATE))
        assert connection.behind
        await asyncio.wait_for(connection.drain(), 60)
        assert not connection.behind
        await clients.server.close()
        await clients.ended()
        assert _messages(bytes(clients.got[0]), 0) == [0]

    asyncio.run(run())
