"""Which properties a source may give to Kafka's client.

Some read files of the server's, and a login module runs what its class does: so only these are taken.
"""

from __future__ import annotations

import re
from typing import Final

from ivm.errors import SqlError

KAFKA_PORT: Final = 9092
PROPERTIES: Final = frozenset((
    "security.protocol", "sasl.mechanism", "sasl.jaas.config", "ssl.endpoint.identification.algorithm",
    "ssl.protocol", "ssl.enabled.protocols", "ssl.truststore.type", "ssl.truststore.certificates", "ssl.keystore.type",
    "ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.key.password", "client.id", "client.rack", "group.id",
    "client.dns.lookup", "isolation.level", "request.timeout.ms", "default.api.timeout.ms", "session.timeout.ms",
    "heartbeat.interval.ms", "max.poll.records", "max.poll.interval.ms", "fetch.min.bytes", "fetch.max.bytes",
    "fetch.max.wait.ms", "max.partition.fetch.bytes", "receive.buffer.bytes", "reconnect.backoff.ms",
    "reconnect.backoff.max.ms", "retry.backoff.ms", "connections.max.idle.ms", "metadata.max.age.ms",
))  # fmt: skip
"""Certificates and keys are given as PEM, not as files."""
_LOGIN: Final = re.compile(
    r"\s*org\.apache\.kafka\.common\.security\.(?:plain\.PlainLoginModule|scram\.ScramLoginModule)\s+required"
    r"(?:\s+(?:username|password|tokenauth)\s*=\s*(?:\"(?:[^\"\\]|\\.)*\"|[\w.-]+))*\s*;\s*"
)


def check_property(name: str, value: str) -> None:
    """Raises 42501 for a property that is not in the list, and for a login by other than name and password."""
    if name not in PROPERTIES:
        hint = f"Properties are: {', '.join(sorted(PROPERTIES))}."
        raise SqlError("42501", f'permission denied for Kafka\'s property "{name}"', hint=hint)
    if name == "sasl.jaas.config" and not _LOGIN.fullmatch(value):
        hint = "It is one PlainLoginModule or ScramLoginModule required, with username and password."
        raise SqlError("42501", 'permission denied for such a value of Kafka\'s property "sasl.jaas.config"', hint=hint)
