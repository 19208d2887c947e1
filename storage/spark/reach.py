"""Checks within seconds whether a Spark master or Connect server is reachable; Spark itself would try for a minute."""

from __future__ import annotations

import re
import socket
from typing import Final

from ivm.errors import SqlError

SECONDS: Final = 5.0
_PORTS: Final = {"spark": 7077, "sc": 15002}


def addresses(master: str) -> list[tuple[str, int]]:
    """The hosts and ports of a spark:// or sc:// URL, standby masters after commas included. 22023: there are none."""
    scheme, _, rest = master.partition("://")
    found = []
    for part in rest.partition("/")[0].split(","):
        match = re.fullmatch(r"(?:\[(.+)\]|([^\[\]:]+))(?::(\d{1,5}))?", part)
        if match is None or scheme not in _PORTS or int(match[3] or 1) > 65535:
            raise SqlError("22023", f'"{master}" names no host and port')
        found.append((match[1] or match[2], int(match[3] or _PORTS[scheme])))
    return found


def check_reachable(master: str) -> None:
    """Raises 58000 within seconds if no host answers."""
    reasons = []
    for host, port in addresses(master):
        try:
            socket.create_connection((host, port), SECONDS).close()
        except OSError as error:
            reasons.append(f"{host}:{port}: {error.strerror or error}")
        else:
            return
    raise SqlError(
        "58000",
        f"cannot reach Spark at {master}",
        detail="; ".join(reasons),
        hint="Start the cluster, or start this server with another --spark.",
    )


def own_address(master: str) -> str:
    """The address of this machine, which is the driver, as executors of this master reach it."""
    if master.startswith("local"):
        return "127.0.0.1"
    host, port = addresses(master)[0]
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((host, port))  # sends nothing; only finds the route
            return str(probe.getsockname()[0])
    except OSError as error:
        raise SqlError("58000", f"cannot reach Spark at {master}", detail=str(error)) from error
