"""Rules as pg_hba_file_rules shows them."""

from __future__ import annotations

from sql.admission.rules import BadLine, Rule
from sql.system.state import HbaLine


def shown(line: Rule | BadLine) -> HbaLine:
    """A line of the file as a row."""
    if isinstance(line, BadLine):
        return HbaLine(line.line, error=line.message)
    net = line.network
    address, mask = ("all", None) if net is None else (str(net.network_address), str(net.netmask))
    return HbaLine(
        line.line, line.type, tuple(name.text for name in line.databases), tuple(name.text for name in line.users),
        address, mask, line.method, (f"clientcert={line.certificate}",) if line.certificate else None,
    )  # fmt: skip
