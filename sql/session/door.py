"""The gate of a server that starts: its rules and certificate, and the first superuser's password; and the way in."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path

from sql.admission.admission import Admission
from sql.admission.gate import Gate
from sql.admission.rules import ANYBODY_HERE, FILE, is_loopback
from sql.admission.start import FIRST_RULES, asks_for_password, tls_files
from sql.catalog.roles import BOOTSTRAP_ID
from sql.cluster.cluster import Cluster
from sql.coordination.coordinator import Coordinator
from sql.engine.clock import timestamp_now
from sql.session.session import Session
from storage.scram import verifier


async def open_gate(
    cluster: Cluster, options: argparse.Namespace, password: str | None, say: Callable[[str], None]
) -> Gate:
    """The gate of a server with these flags (``sql.settings.flags``). With a ``password``, that of the first superuser
    is set and rules are written that ask for it. SqlError F0000: the server may not listen as it is to."""
    coordinator, engine = cluster.first, cluster.first.engine
    gate = Gate(
        options.data, lambda: engine.published.catalog.access, engine.dictionary.secret, timestamp_now,
        tls_files(options), elsewhere=not is_loopback(options.host),
    )  # fmt: skip
    if password is not None:
        name = await _set_password(coordinator, password)
        _write(options.data / FILE, FIRST_RULES)
        say(f'the password of superuser "{name}" is set, and {FILE} asks for passwords')
    elif asks_for_password(options):
        say(f"the first password was not set: {FILE} exists already")
    gate.load()
    if gate.rules is ANYBODY_HERE:
        say(f"whoever is on this machine may connect as superuser: there is no {FILE} in the data folder")
    cluster.guard(gate)
    return gate


async def admit(
    cluster: Cluster, user: str, database: str, parameters: dict[str, str], admission: Admission
) -> Session:
    """The session of a client that has been let in. Raises 3D000, 55000, and what opening the database and the session
    raise."""
    coordinator, name = await cluster.enter(database, user, admission)
    return Session(coordinator, user, name, parameters, admission)


async def _set_password(coordinator: Coordinator, password: str) -> str:
    name = coordinator.engine.published.catalog.access.roles[BOOTSTRAP_ID].name
    session = Session(coordinator, name, "postgres", {"application_name": "init-password"})
    try:
        async for _ in session.simple(f"ALTER ROLE CURRENT_USER PASSWORD '{verifier(password)}'"):
            pass
    finally:
        await session.close()
    return name


def _write(path: Path, text: str) -> None:
    """Write a file that is there whole or not at all, and that only its owner reads."""
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)
    number = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(number, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(number)
    new.replace(path)
