"""ALTER TABLE that starts or ends inheritance from another table. Names are looked up at execution."""

from __future__ import annotations

from dataclasses import dataclass

from sql.catalog.partitioning import WrittenBound


@dataclass(frozen=True, slots=True)
class Attach:
    """ALTER TABLE parent ATTACH PARTITION child; without a bound, ALTER TABLE child INHERIT parent."""

    parent: tuple[str | None, str]
    child: tuple[str | None, str]
    bound: WrittenBound | None


@dataclass(frozen=True, slots=True)
class Detach:
    """ALTER TABLE parent DETACH PARTITION child; if not ``partition``, ALTER TABLE child NO INHERIT parent."""

    parent: tuple[str | None, str]
    child: tuple[str | None, str]
    partition: bool


Attachment = Attach | Detach
