"""LISTEN and NOTIFY: messages between sessions, sent when the transaction that made them commits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from ivm.errors import SqlError

PAYLOAD_BYTES: Final = 8000
NAME_BYTES: Final = 64


@dataclass(frozen=True, slots=True)
class Notification:
    """``sender``: the backend's number."""

    sender: int
    channel: str
    payload: str


class Channels:
    """Who listens to what, server-wide. On the event loop's thread."""

    def __init__(self) -> None:
        self._listening: dict[str, list[Notifications]] = {}

    def listen(self, channel: str, listener: Notifications) -> None:
        listeners = self._listening.setdefault(channel, [])
        if listener not in listeners:
            listeners.append(listener)

    def unlisten(self, channel: str, listener: Notifications) -> None:
        listeners = self._listening.get(channel, [])
        if listener in listeners:
            listeners.remove(listener)
            if not listeners:
                del self._listening[channel]

    def of(self, listener: Notifications) -> list[str]:
        """The channels that one listens to."""
        return sorted(channel for channel, listeners in self._listening.items() if listener in listeners)

    def send(self, notification: Notification) -> None:
        for listener in self._listening.get(notification.channel, []):
            listener.receive(notification)


@dataclass(eq=False, slots=True)
class Notifications:
    """One session's: ``arrived`` is for its client, what its transaction does to others waits for the commit."""

    channels: Channels
    backend: int
    arrived: list[Notification] = field(default_factory=list)
    arrives: Callable[[], None] | None = None
    """Set by the wire: there is something for an idle client."""
    _pending: list[Notification | tuple[str, str | None]] = field(default_factory=list)

    def notify(self, channel: str, payload: str) -> None:
        """22023: a bad name, or too long a payload. Equal messages of one transaction are sent once."""
        if not channel:
            raise SqlError("22023", "channel name cannot be empty")
        if len(channel.encode()) >= NAME_BYTES:
            raise SqlError("22023", "channel name too long")
        if len(payload.encode()) >= PAYLOAD_BYTES:
            raise SqlError("22023", "payload string too long")
        notification = Notification(self.backend, channel, payload)
        if notification not in self._pending:
            self._pending.append(notification)

    def listen(self, channel: str) -> None:
        self._pending.append(("listen", channel))

    def unlisten(self, channel: str | None) -> None:
        """None: all channels."""
        self._pending.append(("unlisten", channel))

    def end_transaction(self, committed: bool) -> None:
        """What the transaction asked for happens, in its order, or is forgotten."""
        pending, self._pending = self._pending, []
        for each in pending if committed else []:
            if isinstance(each, Notification):
                self.channels.send(each)
            elif each[0] == "listen" and each[1] is not None:
                self.channels.listen(each[1], self)
            else:
                for channel in self.channels.of(self) if each[1] is None else (each[1],):
                    self.channels.unlisten(channel, self)

    def receive(self, notification: Notification) -> None:
        self.arrived.append(notification)
        if self.arrives is not None:
            self.arrives()

    def close(self) -> None:
        for channel in self.channels.of(self):
            self.channels.unlisten(channel, self)
