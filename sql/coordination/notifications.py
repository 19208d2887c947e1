"""LISTEN and NOTIFY: messages between sessions, sent when the transaction that made them commits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from ivm.errors import SqlError
from sql.statements.results import Inbox, Notification

PAYLOAD_BYTES: Final = 8000
NAME_BYTES: Final = 64


class Channels:
    """The listeners of each channel, server-wide. Used on the event loop only."""

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
        """The channels of one listener."""
        return sorted(channel for channel, listeners in self._listening.items() if listener in listeners)

    def put(self, notification: Notification) -> list[Inbox]:
        """Puts it into the inboxes of those who listen, whom it does not yet tell."""
        inboxes = [listener.inbox for listener in self._listening.get(notification.channel, [])]
        for inbox in inboxes:
            inbox.arrived.append(notification)
        return inboxes


@dataclass(eq=False, slots=True)
class Notifications:
    """One session's channels and messages. ``inbox``: for its client. Its transaction's LISTEN and NOTIFY take effect
    at commit."""

    channels: Channels
    backend: int
    inbox: Inbox = field(default_factory=Inbox)
    _pending: list[Notification | tuple[str, str | None]] = field(default_factory=list)

    def notify(self, channel: str, payload: str) -> None:
        """Send a message at commit; duplicates within a transaction are sent once. 22023: the name is invalid, or the
        payload too long."""
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
        """Stop listening on a channel; None: on all channels."""
        self._pending.append(("unlisten", channel))

    def end_transaction(self, committed: bool) -> None:
        """Apply the transaction's LISTEN, UNLISTEN and NOTIFY in order, or discard them. A client gets all of a
        transaction's notifications together."""
        pending, self._pending = self._pending, []
        told: dict[int, Inbox] = {}
        for each in pending if committed else []:
            if isinstance(each, Notification):
                told |= {id(inbox): inbox for inbox in self.channels.put(each)}
            elif each[0] == "listen" and each[1] is not None:
                self.channels.listen(each[1], self)
            else:
                for channel in self.channels.of(self) if each[1] is None else (each[1],):
                    self.channels.unlisten(channel, self)
        for inbox in told.values():
            if inbox.arrives is not None:
                inbox.arrives()

    def close(self) -> None:
        for channel in self.channels.of(self):
            self.channels.unlisten(channel, self)
