"""The audit log: a line of JSON on the logger ``freshet.audit`` for everybody who was let in or refused, and for every
change of who may do what. JSON, since names may hold anything, line ends too."""

from __future__ import annotations

import json
import logging

from ivm.errors import SqlError
from sql.admission.admission import Admission, Client

log = logging.getLogger("freshet.audit")


def _say(level: int, event: str, fields: dict[str, object]) -> None:
    if log.isEnabledFor(level):
        known = {name: value for name, value in fields.items() if value not in (None, "")}
        log.log(level, "%s", json.dumps({"event": event, **known}))


def _origin(client: Client) -> dict[str, object]:
    tls = client.tls
    certificate = "" if tls is None else tls.client_dn
    return {"address": client.host, "tls": "" if tls is None else tls.version, "certificate": certificate}


def authorized(client: Client, backend: int, user: str, database: str, application: str, admission: Admission) -> None:
    """A session was opened."""
    who: dict[str, object] = {"backend": backend, "user": user, "database": database, "application": application}
    _say(logging.INFO, "connection authorized", {**who, "method": admission.method, **_origin(client)})


def refused(client: Client, user: str, database: str, application: str, method: str, error: SqlError, why: str) -> None:
    """A client was refused. ``why``: what it was not told."""
    fields: dict[str, object] = {
        "user": user, "database": database, "application": application, "method": method, **_origin(client),
        "sqlstate": error.sqlstate, "message": error.message, "detail": why or error.detail,
    }  # fmt: skip
    _say(logging.WARNING, "connection refused", fields)


def ended(client: Client, backend: int, user: str) -> None:
    """A session is over."""
    _say(logging.INFO, "disconnection", {"backend": backend, "user": user, **_origin(client)})


def changed(user: str, role: str, tag: str, statement: object) -> None:
    """A statement has changed roles or privileges, in a transaction that may still be rolled back. ``user``: of the
    session; ``role``: the current one."""
    fields: dict[str, object] = {"user": user, "role": role, "tag": tag, "statement": statement}
    _say(logging.INFO, "privileges changed", fields)
