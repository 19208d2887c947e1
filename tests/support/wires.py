"""A conversation without a socket: what a session answers to a client's bytes, at once or by the way of all."""

from __future__ import annotations

from sql.pgwire import messages_frontend as front
from sql.pgwire.conversation import Conversation
from sql.pgwire.protocol import Phase, ServerProtocol
from sql.pgwire.run_request import Begun, RunRequest
from tests.support.sessions import Client

RUN = front.Execute("", 0).encode() + front.Sync().encode()


class Wire:
    """A conversation without a socket: what a session answers to bytes, with and without the shortcut."""

    stopping = False

    def __init__(self, client: Client) -> None:
        self.client, self.protocol = client, ServerProtocol()
        self.protocol.phase = Phase.QUERIES
        self.conversation = Conversation(self, self.protocol, client.session)
        self.written: list[bytes] = []
        self.request: RunRequest | Begun | None = None

    async def next_message(self) -> front.Frontend | RunRequest | Begun:
        if self.request is not None:
            request, self.request = self.request, None
            return request
        message = self.protocol.next_message()
        return front.Terminate() if message is None else message

    def write(self, data: bytes) -> None:
        self.written.append(data)

    async def drain(self) -> None:
        pass

    def all_ways(self, data: bytes) -> bytes:
        """The answer of the way of all queries."""

        async def run() -> bytes:
            self.written.clear()
            self.protocol.receive(data)
            await self.conversation.run()
            return b"".join(self.written)

        return self.client.server.run(run())

    def at_once(self, data: bytes) -> bytes | None:
        async def run() -> bytes | None:
            answer = self.conversation.arrived(data)
            if isinstance(answer, Begun):
                self.written.clear()
                self.request = answer
                await self.conversation.run()
                return b"".join(self.written)
            return answer if isinstance(answer, bytes) else None

        return self.client.server.run(run())

    def whole(self, data: bytes) -> bytes:
        """The answer as the listener has it given: at once, as one message, or as several."""

        async def run() -> bytes:
            self.written.clear()
            found = self.conversation.arrived(data)
            if isinstance(found, bytes):
                return found
            self.request = found
            if self.request is None:
                self.protocol.receive(data)
            await self.conversation.run()
            return b"".join(self.written)

        return self.client.server.run(run())

    def parse(self, name: str, text: str, *oids: int) -> None:
        answer = self.all_ways(front.Parse(name, text, oids).encode() + front.Sync().encode())
        assert b"1\0\0\0\4Z" in answer, answer

    def run(self, *texts: str) -> None:
        """Run statements, and drop what they have to tell the client."""
        for text in texts:
            self.client.run(text)
        self.client.session.notices.clear()
        self.client.session.parameter_changes.clear()

    def both(self, data: bytes) -> bytes | None:
        """The answer at once, None if there is none; compared with the other way's."""
        quick, other = self.at_once(data), self.all_ways(data)
        assert quick in (None, other)
        return quick


def bind(
    name: str, *values: bytes | None, form: int | None = None, results: tuple[int, ...] = (), describe: bool = False,
    max_rows: int = 0,
) -> bytes:  # fmt: skip
    """Bind, perhaps Describe, Execute and Sync of a prepared statement, as drivers send them."""
    forms = () if form is None else (form,)
    described = front.Describe("P", "").encode() if describe else b""
    last = front.Execute("", max_rows).encode() + front.Sync().encode()
    return front.Bind("", name, forms, values, results).encode() + described + last
