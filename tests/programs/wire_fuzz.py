"""Random messages to a server: none fails internally, hangs, or ends anything but its own connection.

    python -m tests.programs.wire_fuzz --messages 1000000            # in this process, without sockets
    python -m tests.programs.wire_fuzz --messages 100000 --sockets

Connections begin with a right or a wrong opening, then send flights of messages (``tests.support.wire_random``). After
each flight a connection has ended, or waits for the rest of a message, or answers Sync with ReadyForQuery. A finding is
anything else: an error of class XX, an exception in the log, an answer that is no message, a wait of 20 seconds, a
session that stays, memory that grows.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import resource
import socket
import struct
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sql.admission.gate import loopback_gate
from sql.pgwire.copy_kernels import warm
from sql.pgwire.listener import ClientConnection, serve
from sql.pgwire.listener import Server as Listener
from sql.pgwire.messages_frontend import CopyFail, Sync
from sql.pgwire.protocol import Phase
from sql.session.session import Session
from tests.support.sessions import Server
from tests.support.wire_random import SETUP, Messages

PATIENCE: Final = 20.0
ANSWERS: Final = b"RSKZCDTtIEGHd123ncsAVvNW"
"""The first bytes of the messages that a server sends."""
END: Final = CopyFail("over").encode() + Sync().encode()
_ENCRYPTION: Final = b"NSG"


@dataclass
class Found:
    """``states``: the errors by SQLSTATE."""

    messages: int = 0
    connections: int = 0
    states: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, what: str, *sent: object) -> None:
        self.wrong.append(what)
        print(f"-- {what}\n   {sent!r}"[:3000], flush=True)


class Answers:
    """Takes what a server sends apart."""

    def __init__(self, found: Found) -> None:
        self.found, self.left, self.opened, self.ready = found, b"", False, 0

    def take(self, data: bytes) -> None:
        self.left += data
        while self.left:
            if not self.opened and self.left[:1] in (b"N", b"S", b"G") and len(self.left) == 1:
                self.left = b""
                return
            if len(self.left) < 5:
                return
            code, (length,) = self.left[:1], struct.unpack("!i", self.left[1:5])
            if code not in ANSWERS or length < 4:
                self.found.add(f"no message: {self.left[:40]!r}")
                self.left = b""
                return
            if len(self.left) < length + 1:
                return
            body, self.left = self.left[5 : length + 1], self.left[length + 1 :]
            self.opened = True
            self.ready += code == b"Z"
            if code == b"E":
                fields = {part[:1]: part[1:] for part in body.split(b"\0") if part}
                state = fields.get(b"C", b"").decode()
                self.found.states[state] += 1
                if state.startswith("XX"):
                    self.found.add(f"{state}: {fields.get(b'M', b'').decode(errors='replace')}")


class Link(asyncio.Transport):
    """A transport without a socket."""

    def __init__(self, answers: Answers) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.answers, self.closed = answers, False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self.closed:
            self.answers.take(bytes(data))

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


async def settled(connection: ClientConnection, link: Link) -> bool:
    """Wait until a connection has ended or waits for bytes; whether it has within the patience."""
    until = time.monotonic() + PATIENCE
    while not link.closed and connection._arrived is None:
        if time.monotonic() > until:
            return False
        await asyncio.sleep(0 if time.monotonic() < until - PATIENCE + 0.05 else 0.001)
    return True


async def in_process(listener: Listener, messages: Messages, found: Found, flights: int) -> None:
    """One connection."""
    answers = Answers(found)
    link, connection = Link(answers), ClientConnection(listener)
    connection.connection_made(link)
    begin, sent = messages.opening(), []
    await asyncio.sleep(0)
    connection.data_received(begin)
    fine = await settled(connection, link)
    for _ in range(flights):
        if not fine or link.closed:
            break
        flight = messages.flight()
        sent = [begin, flight]
        found.messages += len(flight)
        data = b"".join(flight)
        cut = messages.rng.randrange(len(data) + 1)
        for part in (data[:cut], data[cut:]):
            connection.data_received(part)
        fine = await settled(connection, link)
        if fine and not link.closed and connection.session is not None and not connection._protocol.pending:
            before = answers.ready
            connection.data_received(END)
            fine = await settled(connection, link)
            waits = connection._protocol.phase is Phase.QUERIES and not connection._protocol.pending
            if fine and not link.closed and waits and answers.ready == before:
                found.add("Sync is not answered", *sent)
    if not fine:
        found.add("hangs", *sent)
    link.closed = True
    connection.connection_lost(None)
    found.connections += 1
    task = connection._task
    if task is not None:
        done, _ = await asyncio.wait({task}, timeout=PATIENCE)
        if not done:
            found.add("the connection's task does not end", *sent)


def over_socket(port: int, messages: Messages, found: Found, flights: int) -> None:
    """The same over a socket. A flight that leaves a message open ends the connection."""
    answers, sent = Answers(found), []
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        try:
            connection.sendall(messages.opening())
            connection.settimeout(0.2)
            _read(connection, answers, lambda: answers.ready > 0)
            for _ in range(flights):
                if not answers.ready:
                    break
                flight = messages.flight()
                sent.append(flight)
                found.messages += len(flight)
                connection.sendall(b"".join(flight) + END)
                before = answers.ready
                if not _read(connection, answers, lambda before=before: answers.ready > before):  # type: ignore[misc]
                    break
        except OSError:
            pass
    found.connections += 1


def _read(connection: socket.socket, answers: Answers, enough: object) -> bool:
    """Read until enough has come; False if nothing more comes, which may be for an open message."""
    assert callable(enough)
    for _ in range(20):
        try:
            data = connection.recv(1 << 16)
        except TimeoutError:
            return bool(enough())
        if not data:
            return False
        answers.take(data)
        if enough():
            return True
    return bool(enough())


class Noted(logging.Handler):
    """Exceptions in the log are findings."""

    def __init__(self, found: Found) -> None:
        super().__init__(logging.ERROR)
        self.found = found

    def emit(self, record: logging.LogRecord) -> None:
        self.found.add(f"logged: {self.format(record)}")


def resident() -> int:
    """Bytes of memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def run(count: int, seed: int, *, sockets: bool, flights: int = 12) -> Found:
    """Send so many messages; what was found."""
    found, messages = Found(), Messages(random.Random(seed))
    noted = Noted(found)
    logging.getLogger().addHandler(noted)
    warm()
    server = Server(Path(tempfile.mkdtemp()))
    client = server.client()
    client.run(SETUP)
    gate = loopback_gate()

    async def session(*given: object) -> Session:
        return Session(server.coordinator, *given)  # type: ignore[arg-type]

    async def inside(until: int) -> None:
        listener = Listener(session, gate)
        while found.messages < until and len(found.wrong) < 50:
            await in_process(listener, messages, found, flights)

    listening = server.run(serve(session, "127.0.0.1", 0, gate)) if sockets else None
    begun, first, told = time.monotonic(), 0, time.monotonic()
    step = min(2000, max(200, count // 10))
    while found.messages < count and len(found.wrong) < 50:
        if listening is None:
            server.run(inside(min(count, found.messages + step)), timeout=3600)
        else:
            over_socket(listening.port, messages, found, flights)
        if client.rows("SELECT count(*) FROM t") != [("50",)] and not found.wrong:
            client.run("DELETE FROM t WHERE a > 50")
        first = first or (resident() if found.messages > min(count // 5, 20_000) else 0)
        if time.monotonic() - told > 30:
            told = time.monotonic()
            print(f"{found.messages} messages, {found.connections} connections, {resident() >> 20} MiB", flush=True)
    if listening is not None:
        server.run(listening.close())
    time.sleep(0.5)
    client.run("TRUNCATE u")
    left = len(server.coordinator.sessions)
    if left > 1:
        found.add(f"{left - 1} sessions are left")
    seconds = time.monotonic() - begun
    print(f"{found.messages} messages in {found.connections} connections, {seconds:.0f} s; "
          f"memory {first >> 20} MiB, then {resident() >> 20} MiB; {len(found.wrong)} findings")  # fmt: skip
    print("errors:", ", ".join(f"{state} {n}" for state, n in found.states.most_common()))
    logging.getLogger().removeHandler(noted)
    client.close()
    server.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sockets", action="store_true")
    options = parser.parse_args()
    sys.exit(1 if run(options.messages, options.seed, sockets=options.sockets).wrong else 0)


if __name__ == "__main__":
    main()
